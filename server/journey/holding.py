"""What a stored release says for other questions: its sums and their noise, its groups, and what noise is in it.

Written with a release when it is made, and read when other questions are asked. Reads no released number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from accountant.request import CoreCharge, StoredRelease
from mechanisms.held_sums import HeldSums
from mechanisms.measurements.gaussian_combined import CombinedGaussian
from mechanisms.noisy_sums import measurement_from_plain, measurement_to_plain
from mechanisms.released_table import ReleasedTable
from mechanisms.summed import adds_up, summed
from privacy.values import Json
from server.journey.joining import box_from_plain, box_to_plain
from server.journey.query import Prepared
from sql_rewrite.bound import BoundedCore
from sql_rewrite.boxes import Box, rows_within
from sql_rewrite.finer_groups import FinerFrame, coarse_of, held_keys
from sql_rewrite.frames import given

__all__ = ["Held", "for_others", "held_of"]

_VERSION = 2
"""Of what `for_others` writes. What a later version wrote is not looked at; the first one (0.13) knew no boxes."""

_FIRST = 1


def for_others(
    release: StoredRelease,
    core: BoundedCore,
    prepared: Prepared,
    charge: CoreCharge,
    table: ReleasedTable,
    base: StoredRelease | None = None,
) -> StoredRelease:
    """A fresh release with the fields by which other questions find it; as it is where none may use it.

    `base` is the stored release that it was measured in addition to, where there is one. As it is where its meaning was
    chosen by other releases, as by histograms, which its frame does not name.
    """
    frame = prepared.frame(core) if charge.lent else None
    if frame is None or not table.sums:
        return release
    dataset = prepared.plan.dataset
    gives = given(core, dataset)
    sums = [
        {**measurement_to_plain(one.measurement), "gives": list(gives[one.measurement.statistic.name])}
        for one in table.sums
    ]
    boxed = prepared.box(core)
    keys = [] if boxed is not None else held_keys(core, dataset)
    body: dict[str, Json] = {"version": _VERSION, "sums": sums, "keys": keys, "origins": _origins_of(base)}
    coarse = coarse_of(core, dataset, core.core.where) if keys else None
    if boxed is not None:
        coarse, body["box"] = boxed[0], box_to_plain(boxed[1])
    return replace(release, frame=frame.key, coarse=coarse, held=json.dumps(body, separators=(",", ":")))


def _origins_of(base: StoredRelease | None) -> list[str] | None:
    """The releases whose noise is in one that is made from another; None where that is not known."""
    if base is None:
        return []
    known = None if base.held is None else held_of(base.held).origins
    return None if known is None else sorted({base.id, *known})


@dataclass(frozen=True, slots=True)
class Held:
    """What a release holds: its sums, and by the digests of its keys how many values each has, in their order.

    Without keys its groups are not all combinations of them, or it has none. `origins` are other releases whose noise
    is in it, None where they are not known.
    """

    sums: tuple[HeldSums, ...] = ()
    keys: Mapping[str, int] = field(default_factory=dict)
    box: Box | None = None
    origins: frozenset[str] | None = None

    def within(self, frame: FinerFrame) -> tuple[HeldSums, ...]:
        """The sums of its groups that make one of a coarser frame; none where they do not."""
        if self.box is not None or any(key not in self.keys for key in (*frame.keys, *frame.allowed)):
            return ()
        free = [key for key in self.keys if key not in frame.keys]
        cells = math.prod(len(frame.allowed[key]) if key in frame.allowed else self.keys[key] for key in free)
        return self._added(cells)

    def of_rows(self, asked: Box | None) -> tuple[HeldSums, ...]:
        """The sums of its groups that make one of a box of the same rows; none where they do not."""
        rows = None if asked is None or self.box is None else rows_within(asked, self.box)
        return () if rows is None else self._added(len(rows[0]))

    def _added(self, cells: int) -> tuple[HeldSums, ...]:
        return tuple(
            [
                replace(one, measurement=summed(one.measurement, cells))
                for one in self.sums
                if cells and adds_up(one.measurement, cells)
            ]
        )


@lru_cache(maxsize=1024)
def held_of(held: str) -> Held:
    """What `for_others` wrote of a release; nothing of what this version does not know."""
    try:
        body = json.loads(held)
        if body["version"] not in (_FIRST, _VERSION):
            return Held()
        sums = tuple([HeldSums(measurement_from_plain(one), frozenset(one["gives"])) for one in body["sums"]])
        keys = {str(key): int(size) for key, size in body["keys"]}
        if body["version"] == _FIRST:
            alone = not any(isinstance(one.measurement, CombinedGaussian) for one in sums)
            return Held(sums, keys, origins=frozenset() if alone else None)
        told, box = body["origins"], body.get("box")
        origins = None if told is None else frozenset(map(str, told))
        return Held(sums, keys, None if box is None else box_from_plain(box), origins)
    except (KeyError, TypeError, ValueError):
        return Held()
