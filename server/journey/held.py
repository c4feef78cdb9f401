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
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from accountant.account import Account
from accountant.request import CoreCharge, HeldRelease, Reuse, StoredRelease
from mechanisms.calibrate import Calibration
from mechanisms.estimates import linear_form, linear_standard_error
from mechanisms.families import BY_MECHANISM, NoiseFamily
from mechanisms.held_sums import HeldSums, Wanted, added_table, answered, derived_table, may_say
from mechanisms.interval import two_sided_alpha
from mechanisms.measurement import Measurement
from mechanisms.noisy_sums import measurement_from_plain, measurement_to_plain
from mechanisms.released_table import ReleasedTable
from mechanisms.summed import Summed, adds_up, summed
from privacy.policy import ColumnType, KeyValue
from privacy.refusal import ExecutionFailed
from privacy.release import ColumnKind
from privacy.statistic import Estimate
from privacy.values import Cell
from server.answer_rows import from_stored
from server.journey.query import Prepared
from server.journey.reuse import Reusable, Stored
from server.pricing import Priced
from server.question import Question
from sql_rewrite.bound import BoundedCore
from sql_rewrite.finer_groups import FinerFrame, coarse_of, held_keys
from sql_rewrite.frames import given

__all__ = ["LessExact", "for_others", "has_same_groups", "is_derived", "less_exact", "stored_table", "with_derived"]

_VERSION = 1
"""Of what `for_others` writes. What another version wrote is not looked at."""


@dataclass(frozen=True, slots=True)
class _Offer:
    """What is compared of one question: how exact its columns would be if they were measured anew."""

    question: Question
    prepared: Prepared
    priced: Priced

    def estimates(
        self, core: BoundedCore, sums: Sequence[HeldSums], *, exact: bool = True
    ) -> tuple[Estimate, ...] | None:
        """The columns of a core as estimates of held sums; None where these do not say them (exactly enough)."""
        estimands = self.prepared.estimands(core) if sums else ()
        if not sums or not all(any(may_say(one.gives, estimand) for one in sums) for estimand in estimands):
            return None
        calibration = self._calibration(_family(sums[0].measurement))
        if calibration is None:
            return None
        name, selecting = core.described.name, core.described.keys.selection
        selection = None if selecting is None else calibration.measurement(name, selecting)
        columns = zip(estimands, core.core.aggregates, core.described.estimates, strict=True)
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
        return answered(sums, wanted, self._alphas if exact else (), selection=selection, exact=exact)

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
    dataset = prepared.plan.dataset
    gives = given(core, dataset)
    sums = [
        {**measurement_to_plain(one.measurement), "gives": list(gives[one.measurement.statistic.name])}
        for one in table.sums
    ]
    keys = held_keys(core, dataset)
    coarse = coarse_of(core, dataset, core.core.where) if keys else None
    held = json.dumps({"version": _VERSION, "sums": sums, "keys": keys}, separators=(",", ":"))
    return replace(release, frame=frame.key, coarse=coarse, held=held)


@dataclass(frozen=True, slots=True)
class _Held:
    """What a release holds: its sums, and by the digests of its keys how many values each has, in their order.

    Without keys its groups are not all combinations of them, or it has none.
    """

    sums: tuple[HeldSums, ...] = ()
    keys: Mapping[str, int] = field(default_factory=dict)

    def within(self, frame: FinerFrame) -> tuple[HeldSums, ...]:
        """The sums of its groups that make one of a coarser frame; none where they do not."""
        if any(key not in self.keys for key in (*frame.keys, *frame.allowed)):
            return ()
        free = [key for key in self.keys if key not in frame.keys]
        cells = math.prod(len(frame.allowed[key]) if key in frame.allowed else self.keys[key] for key in free)
        return tuple(
            [
                replace(one, measurement=summed(one.measurement, cells))
                for one in self.sums
                if cells and adds_up(one.measurement, cells)
            ]
        )


@lru_cache(maxsize=1024)
def _held_of(held: str) -> _Held:
    """What `for_others` wrote of a release; nothing of what this version does not know."""
    try:
        body = json.loads(held)
        if body["version"] != _VERSION:
            return _Held()
        sums = [HeldSums(measurement_from_plain(one), frozenset(one["gives"])) for one in body["sums"]]
        return _Held(tuple(sums), {str(key): int(size) for key, size in body["keys"]})
    except (KeyError, TypeError, ValueError):
        return _Held()


def _family(measurement: Measurement) -> NoiseFamily:
    """The family of the noise of sums, which may be added up."""
    one = measurement.one if isinstance(measurement, Summed) else measurement
    return BY_MECHANISM[one.name].name


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

    Those of the question itself are not looked up here: they come first in any case. Of a question of several cores
    none is derived: numbers of two cores may then have the same noise, and what is computed of both is stated for
    noise that is independent.
    """
    if len(prepared.cores) > 1:
        return charges
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
    """The key and quality of the best stored release of another question that holds all columns of a core.

    The ledger serves the best release of a key. So only that one is offered: a better one may have been stored by a
    version that wrote nothing for other questions.
    """
    for release, sums in _candidates(offer, core, charge, stored, reuse, account):
        if offer.estimates(core, sums) is not None:
            best = stored.free((release.core_key,), reuse, offer.question.principal, account)
            if best is not None and best.id == release.id:
                return release.core_key, release.quality
    return None


def _candidates(
    offer: _Offer, core: BoundedCore, charge: CoreCharge, stored: Stored, reuse: Reuse, account: Account
) -> Iterator[tuple[HeldRelease, Sequence[HeldSums]]]:
    """Stored releases of other questions of the same rows, with what they hold of a core's groups."""
    frame = None if core.described.levels else offer.prepared.frame(core)
    if frame is None:
        return
    own, principal = {key for key, _ in charge.serving}, offer.question.principal
    for release in stored.held(frame.key, reuse, principal, account):
        if release.core_key not in own:
            yield release, _held_of(release.held).sums
    finer = {one.coarse: one for one in offer.prepared.finer(core)}
    for release in stored.finer(list(finer), reuse, principal, account):
        within = finer.get(release.coarse or "")
        if within is not None and release.core_key not in own:
            yield release, _held_of(release.held).within(within)


@dataclass(frozen=True, slots=True)
class LessExact:
    """A stored release that says all columns of a question less exactly than the wish: their standard errors.

    `epsilon` is about the greatest spend that it serves for free.
    """

    release: str
    errors: Mapping[str, float | None]
    epsilon: Fraction


def less_exact(
    question: Question,
    prepared: Prepared,
    priced: Priced,
    charges: Sequence[CoreCharge],
    reusable: Reusable,
    stored: Stored,
    account: Account,
    at_spend: Callable[[Fraction], Priced | None],
) -> LessExact | None:
    """The best stored release of another question that would serve for a smaller spend; None where none does.

    Of questions of one core with public groups, which no stored release serves as they are.
    """
    if len(prepared.cores) != 1 or question.max_staleness_s is not None or reusable.reuse is Reuse.NONE:
        return None
    (core,), (charge, *_) = prepared.cores, charges
    if any(reusable.serve()) or not charge.lent or core.described.keys.domain is None:
        return None
    offer = _Offer(question, prepared, priced)
    for release, sums in _candidates(offer, core, charge, stored, reusable.reuse, account):
        if offer.estimates(core, sums, exact=False) is None:
            continue
        spend = priced.epsilon
        for _ in range(_HALVINGS):
            spend = spend / 2 // _SPENDS * _SPENDS
            if not spend:
                break
            less = at_spend(spend)
            found = None if less is None else _Offer(question, prepared, less).estimates(core, sums)
            if found is not None:
                return LessExact(release.id, _errors(core, sums, found), spend)
    return None


_SPENDS = Fraction(1, 10**6)
_HALVINGS = 12
"""How often a spend is halved until a stored release is exact enough."""


def _errors(core: BoundedCore, sums: Sequence[HeldSums], estimates: Sequence[Estimate]) -> dict[str, float | None]:
    """The standard errors of estimates that have one before the answer, by the text of their aggregates."""
    known = {one.measurement.statistic.name: one.measurement for one in sums}
    found: dict[str, float | None] = {}
    for aggregate, estimate in zip(core.core.aggregates, estimates, strict=True):
        measurement = known[estimate.statistic]
        form = linear_form(measurement.statistic, estimate.kind)
        exact = None if form is None else linear_standard_error(measurement, form, integer=estimate.integer)
        found[aggregate.text] = exact
    return found


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
    if priced is None or release.held is None:
        raise ExecutionFailed
    offer, held = _Offer(question, prepared, priced), _held_of(release.held)
    alpha, keys = two_sided_alpha(question.confidence), core.described.keys
    names = [column.name for column in keys.columns]
    if has_same_groups(release, core, prepared):
        estimates = offer.estimates(core, held.sums)
        if estimates is None:
            raise ExecutionFailed
        return derived_table(table, name, estimates, alpha=alpha, keys=names)
    within = next((one for one in prepared.finer(core) if one.coarse == release.coarse), None)
    estimates = None if within is None else offer.estimates(core, held.within(within))
    if within is None or estimates is None or keys.domain is None:
        raise ExecutionFailed
    coarser = added_table(table, keys, _groups(table, tuple(held.keys), within, keys.domain))
    return derived_table(coarser, name, estimates, alpha=alpha, keys=names)


def has_same_groups(release: StoredRelease, core: BoundedCore, prepared: Prepared) -> bool:
    """Whether a release of another question is of the same groups; otherwise it is of finer ones."""
    frame = prepared.frame(core)
    return frame is not None and release.frame == frame.key


def _groups(
    table: ReleasedTable, held: Sequence[str], within: FinerFrame, cells: Sequence[Sequence[KeyValue]]
) -> list[list[int]]:
    """For each cell of a core the rows of a finer release that make it. Errors: ExecutionFailed where one has none."""
    columns = [column.values for column in table.columns if column.role is ColumnKind.KEY]
    own = [held.index(key) for key in within.keys]
    picked = [(held.index(key), values) for key, values in within.allowed.items()]
    rows: dict[tuple[Cell, ...], list[int]] = {}
    for row, cell in enumerate(zip(*columns, strict=True)):
        if all(cell[place] in values for place, values in picked):
            rows.setdefault(tuple([cell[place] for place in own]), []).append(row)
    if any(tuple(cell) not in rows for cell in cells):
        raise ExecutionFailed
    return [rows[tuple(cell)] for cell in cells]
