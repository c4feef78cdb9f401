"""Which columns of an answer follow from stored releases of other questions, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accountant.request import CoreCharge, StoredRelease
from server.journey.held import has_same_groups, is_derived, is_joined
from server.journey.query import Prepared

__all__ = ["derived_json"]


_SAME = "the noisy sums of the release, which measured the same rows in the same groups"
_FINER = "noisy sums of groups of the release, which are finer: each unit is in one of them, so they add up"
_TOGETHER = "the weighted sum of numbers of several releases, each with noise of its own, that has the least variance"


def derived_json(
    prepared: Prepared, charges: Sequence[CoreCharge], releases: Mapping[str, StoredRelease]
) -> list[dict[str, object]]:
    """The cores that releases of other questions serve: the columns, and the release that they follow from."""
    found: list[dict[str, object]] = []
    for core, charge in zip(prepared.cores, charges, strict=False):
        release = releases.get(charge.core_key)
        if release is not None and is_derived(charge, release):
            found.append(
                {
                    "columns": [aggregate.text for aggregate in core.core.aggregates],
                    "release": f"/v1/releases/{release.id}",
                    "by": _SAME if has_same_groups(release, core, prepared) else _FINER,
                }
            )
        if release is not None and is_joined(charge, release):
            columns = [aggregate.text for aggregate in core.core.aggregates]
            names = [release.id, *[releases[key].id for key, _ in charge.joined[1:]]]
            found += [{"columns": columns, "release": f"/v1/releases/{name}", "by": _TOGETHER} for name in names]
    return found
