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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.account import Account
from accountant.reads import FRAMES_MAX
from accountant.request import CoreCharge, HeldRelease, Reuse, StoredRelease
from mechanisms.calibrate import Calibration
from mechanisms.estimates import linear_form, linear_standard_error
from mechanisms.families import BY_MECHANISM, NoiseFamily
from mechanisms.held_sums import HeldSums, Wanted, added_table, answered, derived_table, keys_table, may_say
from mechanisms.interval import two_sided_alpha
from mechanisms.measurement import Measurement
from mechanisms.release import note_of
from mechanisms.released_table import ReleasedTable
from mechanisms.summed import Summed
from privacy.policy import ColumnType, KeyValue
from privacy.refusal import ExecutionFailed
from privacy.release import ColumnKind
from privacy.statistic import Estimate
from privacy.values import Cell
from server.answer_rows import from_stored
from server.journey.holding import held_of
from server.journey.joining import Joined, Piece, join, joined_sums
from server.journey.query import Prepared
from server.journey.reuse import Reusable, Stored, serves
from server.pricing import Priced
from server.question import Question
from sql_rewrite.bound import BoundedCore
from sql_rewrite.boxes import rows_within
from sql_rewrite.finer_groups import FinerFrame

__all__ = [
    "Derived",
    "LessExact",
    "has_same_groups",
    "is_derived",
    "is_joined",
    "less_exact",
    "stored_table",
    "with_derived",
]


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
        width = self.question.half_width is not None
        alphas = self._alphas if exact else ()
        return answered(sums, wanted, alphas, selection=selection, exact=exact, widths=width)

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


def _family(measurement: Measurement) -> NoiseFamily:
    """The family of the noise of sums, which may be added up."""
    one = measurement.one if isinstance(measurement, Summed) else measurement
    return BY_MECHANISM[one.name].name


@dataclass(frozen=True, slots=True)
class Derived:
    """The charges of a question with the stored releases of others that serve them, and those that have to be there.

    `inputs` are as `ReserveRequest` has them: what was weighed of several releases is true of these alone.
    """

    charges: tuple[CoreCharge, ...]
    inputs: Mapping[str, str | None]


def with_derived(
    charges: tuple[CoreCharge, ...],
    reusable: Reusable,
    stored: Stored,
    question: Question,
    prepared: Prepared,
    priced: Priced | None,
    account: Account,
) -> Derived:
    """The charges, with the stored releases of other questions from which the answers of cores follow.

    Those of the question itself are not looked up here: they come first in any case. Of a question of several cores
    none is derived: numbers of two cores may then have the same noise, and what is computed of both is stated for
    noise that is independent.
    """
    if len(prepared.cores) != 1:
        return Derived(charges, {})
    if priced is None or question.max_staleness_s is not None or reusable.reuse is Reuse.NONE or not charges[0].lent:
        return Derived(charges, {})
    (core,), (charge, *others) = prepared.cores, charges
    offer = _Offer(question, prepared, priced)
    boxed = list[HeldRelease]()
    key = _offered(offer, core, charge, stored, reusable.reuse, account, boxed)
    if key is not None:
        return Derived((replace(charge, derived=(key,)), *others), {})
    found = _joined(offer, core, boxed, exact=True) if len(boxed) > 1 else None
    if found is None or charge.core_key in reusable.beside(charges).serving:
        return Derived(charges, {})
    # What is stored of the question itself is kept under its own key, the first one.
    releases = sorted([piece.release for piece in found.pieces], key=lambda one: one.core_key != charge.core_key)
    for release in releases:
        best = stored.free((release.core_key,), reusable.reuse, question.principal, account)
        if best is None or best.id != release.id:
            return Derived(charges, {})
    joined = replace(charge, joined=tuple([(one.core_key, one.quality) for one in releases]))
    inputs = {charge.core_key: releases[0].id, **{one.core_key: one.id for one in releases[1:]}}
    return Derived((joined, *others), inputs)


def _joined(offer: _Offer, core: BoundedCore, releases: Sequence[HeldRelease], *, exact: bool) -> Joined | None:
    """What several stored releases say together of all columns of a core; None where that is not enough."""
    boxed = offer.prepared.box(core)
    if boxed is None:
        return None
    pieces = []
    for release in releases:
        held = held_of(release.held)
        if held.box is not None:
            origins = None if held.origins is None else held.origins | {release.id}
            pieces.append(Piece(release, held.sums, held.box, origins))
    found = join(boxed[1], offer.prepared.estimands(core), pieces)
    return None if found is None or offer.estimates(core, found.sums, exact=exact) is None else found


def _offered(
    offer: _Offer,
    core: BoundedCore,
    charge: CoreCharge,
    stored: Stored,
    reuse: Reuse,
    account: Account,
    boxed: list[HeldRelease],
) -> tuple[str, Fraction] | None:
    """The key and quality of the best stored release of another question that holds all columns of a core.

    `boxed` gets those of which several may do it together. The ledger serves the best release of a key. So only that
    one is offered: a better one may have been stored by a version that wrote nothing for other questions.
    """
    for release, sums in _candidates(offer, core, charge, stored, reuse, account, boxed):
        if offer.estimates(core, sums) is not None:
            best = stored.free((release.core_key,), reuse, offer.question.principal, account)
            if best is not None and best.id == release.id:
                return release.core_key, release.quality
    return None


def _candidates(
    offer: _Offer,
    core: BoundedCore,
    charge: CoreCharge,
    stored: Stored,
    reuse: Reuse,
    account: Account,
    boxed: list[HeldRelease],
) -> Iterator[tuple[HeldRelease, Sequence[HeldSums]]]:
    """Stored releases of other questions of the same rows, with what they hold of a core's groups.

    `boxed` gets those that are linear in the cells of these rows, the core's own among them.
    """
    # What is read are sums of cells: that each cell is as exact does not say that these are.
    summed = core.described.levels or core.described.running is not None
    frame = None if summed else offer.prepared.frame(core)
    if frame is None:
        return
    own, principal = {key for key, _ in charge.serving}, offer.question.principal
    for release in stored.held(frame.key, reuse, principal, account):
        if release.core_key not in own:
            yield release, held_of(release.held).sums
    finer, box = {one.coarse: one for one in offer.prepared.finer(core)}, offer.prepared.box(core)
    frames = [*finer, *([box[0]] if box is not None and box[0] not in finer else [])][-FRAMES_MAX:]
    for release in stored.finer(frames, reuse, principal, account):
        held = held_of(release.held)
        if held.box is not None and box is not None and release.coarse == box[0]:
            boxed.append(release)
            if release.core_key not in own:
                yield release, held.of_rows(box[1])
            continue
        within = finer.get(release.coarse or "")
        if within is not None and release.core_key not in own:
            yield release, held.within(within)


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
    for release, sums in _candidates(offer, core, charge, stored, reusable.reuse, account, []):
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


def is_joined(charge: CoreCharge, release: StoredRelease) -> bool:
    """Whether a release that serves a charge is the first of several which do so together."""
    alone = any(release.core_key == key and serves(release, least) for key, least in charge.served_by)
    return bool(charge.joined) and release.core_key == charge.joined[0][0] and not alone


def stored_table(
    release: StoredRelease,
    charge: CoreCharge,
    core: BoundedCore,
    *,
    question: Question,
    prepared: Prepared,
    priced: Priced | None,
    beside: Mapping[str, StoredRelease],
) -> ReleasedTable:
    """The table of a core that a stored release serves, with intervals at the asked confidence.

    `beside` are all releases that serve the question, by key: of several that serve a core together the others.
    Errors: ExecutionFailed where a release of another question does not hold what it was offered for.
    """
    name = core.described.name
    table = from_stored(release.body, name, question.confidence)
    if is_joined(charge, release) and priced is not None:
        releases = [release, *[beside[key] for key, _ in charge.joined[1:]]]
        return _joined_table(_Offer(question, prepared, priced), core, releases)
    if not is_derived(charge, release):
        return table
    if priced is None or release.held is None:
        raise ExecutionFailed
    offer, held = _Offer(question, prepared, priced), held_of(release.held)
    alpha, keys = two_sided_alpha(question.confidence), core.described.keys
    names = [column.name for column in keys.columns]
    if has_same_groups(release, core, prepared):
        estimates = offer.estimates(core, held.sums)
        if estimates is None:
            raise ExecutionFailed
        return derived_table(table, name, estimates, alpha=alpha, keys=names)
    box = prepared.box(core)
    if held.box is not None and box is not None and release.coarse == box[0]:
        rows, estimates = rows_within(box[1], held.box), offer.estimates(core, held.of_rows(box[1]))
        if rows is None or estimates is None:
            raise ExecutionFailed
        return derived_table(added_table(table, keys, rows), name, estimates, alpha=alpha, keys=names)
    within = next((one for one in prepared.finer(core) if one.coarse == release.coarse), None)
    estimates = None if within is None else offer.estimates(core, held.within(within))
    if within is None or estimates is None or keys.domain is None:
        raise ExecutionFailed
    coarser = added_table(table, keys, _groups(table, tuple(held.keys), within, keys.domain))
    return derived_table(coarser, name, estimates, alpha=alpha, keys=names)


def _joined_table(offer: _Offer, core: BoundedCore, releases: Sequence[StoredRelease]) -> ReleasedTable:
    """The table of a core that several stored releases say together. Errors: ExecutionFailed where they do not."""
    question, keys = offer.question, core.described.keys
    records = [
        HeldRelease(id=one.id, core_key=one.core_key, quality=one.quality, coarse=one.coarse, held=one.held or "")
        for one in releases
    ]
    found = _joined(offer, core, records, exact=False)
    estimates = None if found is None else offer.estimates(core, found.sums, exact=False)
    if found is None or estimates is None or len(found.pieces) != len(releases):
        raise ExecutionFailed
    tables = [from_stored(one.body, core.described.name, question.confidence) for one in releases]
    # Of the sums that were made: each release has names of its own for what it measured.
    notes = tuple([note_of(one.measurement) for one in found.sums])
    table = keys_table(tables[0], keys, joined_sums(found, tables), notes)
    alpha, names = two_sided_alpha(question.confidence), [column.name for column in keys.columns]
    return derived_table(table, core.described.name, estimates, alpha=alpha, keys=names)


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
