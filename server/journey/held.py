"""Answers from stored releases of other questions: which of them hold what a question asks, and their tables.

A stored release is looked for by the frame of a core, which is its rows and groups without its aggregates
(sql_rewrite/frames.py). Where its sums say all that is asked, at least as exactly as the wish would buy it, its key and
quality are offered to the ledger after the keys of the core itself. The ledger decides in its own transaction, as it
does of every stored release: nothing else is known to it, and nothing is charged for what is derived.

What is offered follows from the plan, the price and what is stored. Others' releases are offered where the policy
shares them for free, or the account was charged for reading them: who has not paid for a release pays for its own
question first. A question that says how old its answer may be is offered none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from accountant.account import Account
from accountant.request import CoreCharge, Reuse, StoredRelease
from mechanisms.calibrate import Calibration
from mechanisms.families import BY_MECHANISM, NoiseFamily
from mechanisms.held_sums import HeldSums, Wanted, answered, derived_table
from mechanisms.interval import two_sided_alpha
from mechanisms.noisy_sums import measurement_from_plain, measurement_to_plain
from mechanisms.released_table import ReleasedTable
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed
from privacy.statistic import Estimate
from server.answer_rows import from_stored
from server.journey.query import Prepared
from server.journey.reuse import Reusable, Stored
from server.pricing import Priced
from server.question import Question
from sql_rewrite.bound import BoundedCore
from sql_rewrite.frames import given

__all__ = ["for_others", "is_derived", "stored_table", "with_derived"]

_VERSION = 1
"""Of what `for_others` writes. What another version wrote is not looked at."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What is compared of one question: how exact its columns would be if they were measured anew."""

    question: Question
    prepared: Prepared
    priced: Priced

    def estimates(self, core: BoundedCore, held: str) -> tuple[Estimate, ...] | None:
        """The columns of a core as estimates of held sums; None where these do not say them exactly enough."""
        sums = held_sums(held)
        calibration = self._calibration(BY_MECHANISM[sums[0].measurement.name].name) if sums else None
        if calibration is None:
            return None
        name, selecting = core.described.name, core.described.keys.selection
        selection = None if selecting is None else calibration.measurement(name, selecting)
        columns = zip(self.prepared.estimands(core), core.core.aggregates, core.described.estimates, strict=True)
        wanted = [
            Wanted(
                estimand,
                aggregate.function,
                estimate,
                calibration.measurement(name, estimate.statistic),
                whole=aggregate.argument is None or aggregate.argument.type is ColumnType.INTEGER,
            )
            for estimand, aggregate, estimate in columns
        ]
        return answered(sums, wanted, self._alphas, selection=selection)

    def _calibration(self, family: NoiseFamily) -> Calibration | None:
        """What a stored release of this family has to be as exact as; None where none of it serves the wish."""
        price = next((one for one in self.priced.enough if one.family is family), None)
        if price is None:
            return None
        if price == self.priced.price:
            return self.priced.calibration
        try:
            return self.prepared.calibrations.get(self.prepared.priced, price).calibration
        except ValueError:
            return None

    @property
    def _alphas(self) -> tuple[float, ...]:
        """How often intervals may miss that are compared: each by itself, and all that the answer shows."""
        confidence, cells = self.question.confidence, self.prepared.at_once()
        return tuple(dict.fromkeys((two_sided_alpha(confidence), two_sided_alpha(confidence, cells or 1))))


def for_others(
    release: StoredRelease, core: BoundedCore, prepared: Prepared, charge: CoreCharge, table: ReleasedTable
) -> StoredRelease:
    """A fresh release with the fields by which other questions find it; as it is where none may use it.

    That is where its meaning was chosen by other releases, as by histograms, which its frame does not name.
    """
    frame = prepared.frame(core) if charge.lent else None
    if frame is None or not table.sums:
        return release
    gives = given(core, prepared.plan.dataset)
    sums = [
        {**measurement_to_plain(one.measurement), "gives": list(gives[one.measurement.statistic.name])}
        for one in table.sums
    ]
    held = json.dumps({"version": _VERSION, "sums": sums}, separators=(",", ":"))
    return replace(release, frame=frame.key, held=held)


@lru_cache(maxsize=1024)
def held_sums(held: str) -> tuple[HeldSums, ...]:
    """What `for_others` wrote of a release; nothing of what this version does not know."""
    try:
        body = json.loads(held)
        if body["version"] != _VERSION:
            return ()
        return tuple(HeldSums(measurement_from_plain(one), frozenset(one["gives"])) for one in body["sums"])
    except (KeyError, TypeError, ValueError):
        return ()


def with_derived(
    charges: tuple[CoreCharge, ...],
    reusable: Reusable,
    stored: Stored,
    question: Question,
    prepared: Prepared,
    priced: Priced | None,
    account: Account,
) -> tuple[CoreCharge, ...]:
    """The charges, with the stored releases of other questions from which the answers of cores follow.

    Those of the question itself are not looked up here: they come first in any case.
    """
    if priced is None or question.max_staleness_s is not None or reusable.reuse is Reuse.NONE:
        return charges
    offer, found = _Offer(question, prepared, priced), list(charges)
    for place, core in enumerate(prepared.cores):
        key = _offered(offer, core, charges[place], stored, reusable.reuse, account) if charges[place].lent else None
        if key is not None:
            found[place] = replace(charges[place], derived=(key,))
    return tuple(found)


def _offered(
    offer: _Offer, core: BoundedCore, charge: CoreCharge, stored: Stored, reuse: Reuse, account: Account
) -> tuple[str, Fraction] | None:
    """The key and quality of the best stored release of another question that holds all columns of a core."""
    frame = None if core.described.levels else offer.prepared.frame(core)
    if frame is None:
        return None
    own = {key for key, _ in charge.serving}
    for release in stored.held(frame.key, reuse, offer.question.principal, account):
        if release.core_key not in own and offer.estimates(core, release.held) is not None:
            return release.core_key, release.quality
    return None


def is_derived(charge: CoreCharge, release: StoredRelease) -> bool:
    """Whether a release that serves a charge is one of another question."""
    return any(release.core_key == key for key, _ in charge.derived)


def stored_table(
    release: StoredRelease,
    charge: CoreCharge,
    core: BoundedCore,
    *,
    question: Question,
    prepared: Prepared,
    priced: Priced | None,
) -> ReleasedTable:
    """The table of a core that a stored release serves, with intervals at the asked confidence.

    Errors: ExecutionFailed where a release of another question does not hold what it was offered for.
    """
    name = core.described.name
    table = from_stored(release.body, name, question.confidence)
    if not is_derived(charge, release):
        return table
    estimates = None
    if priced is not None and release.held is not None:
        estimates = _Offer(question, prepared, priced).estimates(core, release.held)
    if estimates is None:
        raise ExecutionFailed
    keys = [column.name for column in core.described.keys.columns]
    return derived_table(table, name, estimates, alpha=two_sided_alpha(question.confidence), keys=keys)
