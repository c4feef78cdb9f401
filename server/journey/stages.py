"""Questions of several stages: which release a later stage read is a part of what its own release answers.

The private parts of a question are priced together, and all of them are charged before the first one runs. A part that
reads numbers which another part releases (`sql_rewrite.stages`) is a question of its own for each release that it may
have read. So its key holds the key of that release and the query that made it, which is known before the release is:
a query makes one release of a key at most. The same text finds both stored releases, and pays nothing.

The ledger decides which stored releases serve. Where it would take others than those in the keys, nothing is charged,
and the question is prepared again (`ReserveRequest.inputs`).
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from accountant.account import Account
from accountant.request import CoreCharge, Reuse, StoredRelease
from mechanisms.released_table import ReleasedTable
from privacy.bounds import AskedContribution, AutomaticContribution
from privacy.policy import ColumnType, Dataset
from privacy.refusal import Finding, Refused
from privacy.statement import Released, StageValue, Statement
from privacy.values import Cell
from server.answer_rows import from_stored
from server.arranging import arranged
from server.journey.charges import charges_of
from server.journey.nobody import without_guesses
from server.journey.query import Prepared
from server.journey.reuse import Reusable, Stored
from server.pricing import Priced
from server.question import Question
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.plan import KEY_CHARACTERS_MAX, Arrangement, Plan
from sql_rewrite.released import ROW
from sql_rewrite.stage_hidden import places_of
from sql_rewrite.stage_tables import CELLS_MAX, EVERY, cell_name

__all__ = [
    "at_origins",
    "by_counts",
    "chooses_later_norms",
    "own_keys",
    "refuse_width",
    "sampled",
    "stage_values",
]

VERSION = 1
"""Of the identity of what a later stage asks."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The release that a later stage reads: its key, and the query that made it, or makes it now."""

    key: str
    query_id: str

    @staticmethod
    def of(charge: CoreCharge, stored: StoredRelease | None, query_id: str) -> Origin:
        """The stored release that serves a core, else the one that the query itself will make."""
        return Origin(charge.core_key, query_id) if stored is None else Origin(stored.core_key, stored.query_id)


def at_origins(
    question: Question,
    prepared: Prepared,
    priced: Priced | None,
    account: Account,
    stored: Stored,
    query_id: str = "",
) -> tuple[Question, Prepared, dict[str, str | None]]:
    """The question with keys that say which releases its later stages read, and which stored ones these are.

    The last are by the key of their charge, None for what the query itself will release. Where a stored release that
    would serve is too old for the question, none serves it: then all of it is measured anew.
    Errors: Refused (too_large) where a stored list of groups has no room: nothing is charged then.
    """
    if priced is None or not prepared.plan.stages:
        return question, prepared, {}
    for asked in (question, replace(question, reuse=Reuse.NONE)):
        found, inputs, served = _at_origins(asked, prepared, priced, account, stored, query_id)
        if _reusable(asked, found, priced, account, stored).reuse is not Reuse.NONE:
            break
    for place, release in served:
        _check_lists(prepared, place, release, question)
    return asked, found, inputs


def _at_origins(
    question: Question, prepared: Prepared, priced: Priced, account: Account, stored: Stored, query_id: str
) -> tuple[Prepared, dict[str, str | None], list[tuple[int, StoredRelease]]]:
    """As `at_origins`; the last are the stored releases that serve, with the places of their cores."""
    places = {core.core.name: place for place, core in enumerate(prepared.cores)}
    known: dict[str, Origin] = {}
    inputs: dict[str, str | None] = {}
    served: list[tuple[int, StoredRelease]] = []
    found = prepared
    while names := _unsettled(prepared, known):
        charges, serving = charges_of(found, priced), _reusable(question, found, priced, account, stored).found
        for name in names:
            charge = charges[places[name]]
            release = serving.get(charge.core_key)
            if release is not None:
                served.append((places[name], release))
            known[name] = Origin.of(charge, release, query_id)
            inputs[charge.core_key] = None if release is None else release.id
        found = _with_keys(prepared, known)
    return found, inputs, served


def own_keys(prepared: Prepared, found: Callable[[BoundedCore, str], StoredRelease | None]) -> tuple[str, ...]:
    """The keys of the cores where later stages read the stored releases that are `found`, by core and key.

    A core that reads one which is not stored has a key that nothing has.
    """
    places = {core.core.name: place for place, core in enumerate(prepared.cores)}
    known: dict[str, Origin] = {}
    settled = prepared
    while names := _unsettled(prepared, known):
        for name in names:
            release = found(prepared.cores[places[name]], settled.keys[places[name]])
            known[name] = Origin("", "") if release is None else Origin(release.core_key, release.query_id)
        settled = _with_keys(prepared, known)
    return settled.keys


def _check_lists(prepared: Prepared, place: int, release: StoredRelease, question: Question) -> None:
    """Refuses, before anything is charged, a stored release whose groups have no room. Errors: Refused (too_large)."""
    core = prepared.cores[place]
    lists = [one for one in prepared.plan.lists if one[0] == core.described.name]
    if lists and core.described.keys.domain is None:
        table = from_stored(release.body, core.described.name, question.confidence)
        stage_values(core, without_guesses(core, table), lists)


def _reusable(question: Question, prepared: Prepared, priced: Priced, account: Account, stored: Stored) -> Reusable:
    charges = charges_of(prepared, priced)
    return Reusable(stored, question, prepared.plan.dataset, charges, account, cores=len(prepared.cores))


def _unsettled(prepared: Prepared, known: Mapping[str, Origin]) -> list[str]:
    """The cores that later stages read whose origin is not known yet, and can be: their own keys are complete."""
    stages = dict(prepared.plan.stages)
    read = {name for inputs in stages.values() for name in inputs}
    return sorted(name for name in read - known.keys() if known.keys() >= set(stages.get(name, ())))


def _with_keys(prepared: Prepared, known: Mapping[str, Origin]) -> Prepared:
    """The query as it was prepared, with complete keys of the cores whose origins are known."""
    stages = dict(prepared.plan.stages)
    keys, histograms = [], []
    earlier = dict(prepared.earlier)
    for core, key, histogram in zip(prepared.cores, prepared.keys, prepared.histograms, strict=True):
        inputs = stages.get(core.core.name, ())
        settled = bool(inputs) and known.keys() >= set(inputs)
        keys.append(_key(key, inputs, known) if settled else key)
        if settled and core.core.name in earlier:
            earlier[core.core.name] = _key(earlier[core.core.name], inputs, known)
        if settled and histogram is not None:
            histogram = replace(histogram, key=_key(histogram.key, inputs, known))
        histograms.append(histogram)
    return replace(prepared, keys=tuple(keys), histograms=tuple(histograms), earlier=earlier)


def _key(key: str, inputs: Sequence[str], known: Mapping[str, Origin]) -> str:
    """The key of a core (SHA-256, hex) that reads these releases, by the names that its expressions have for them."""
    read = [[name, known[name].key, known[name].query_id] for name in sorted(inputs)]
    body = {"core": key, "stages": read, "version": VERSION}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def stage_values(
    core: BoundedCore, table: ReleasedTable, lists: Sequence[tuple[str, str, Arrangement]] = ()
) -> dict[StageValue, Released]:
    """What a core releases, for the parameters of later stages.

    A number that is no finite double is NULL, as it is everywhere in the private part. Of groups it is each number of
    each public one, NULL where the table lacks it, and whether the table has it, and each of the `lists`. Of hidden
    ones it is what the lists have in their places. Errors: Refused (too_large) where one of these has more groups.
    """
    name, cells = core.described.name, core.described.keys.domain
    numbers = {aggregate.name for aggregate in core.core.aggregates}
    columns = [column for column in table.columns if column.name in numbers]
    if not core.core.keys:
        return {StageValue(name, column.name): _number(column.numbers[0]) for column in columns}
    if cells is None:
        return _hidden_values(core, table, lists)
    if len(cells) > CELLS_MAX:
        return {}
    keys = [column.values for column in table.columns if column.name not in numbers]
    rows = {cell: row for row, cell in enumerate(zip(*keys, strict=True))}
    shown = {EVERY: set(rows)}
    for of, listed, arrangement in lists:
        if of == name:
            whole = replace(arrangement, columns=tuple(column for column, _ in core.core.keys))
            shown[listed] = set(arranged(table, whole))
    found: dict[StageValue, Released] = {}
    for place, cell in enumerate(cells):
        for column in columns:
            value = _number(column.numbers[rows[cell]]) if cell in rows else None
            found[StageValue(name, cell_name(column.name, place))] = value
        for listed, there in shown.items():
            found[StageValue(name, cell_name(listed, place))] = cell in there
    return found


def _hidden_values(
    core: BoundedCore, table: ReleasedTable, lists: Sequence[tuple[str, str, Arrangement]]
) -> dict[StageValue, Released]:
    """What the lists of hidden groups of a core have in their places: keys, numbers, and whether there is a group."""
    name, keys = core.described.name, dict(core.core.keys)
    numbers = {aggregate.name for aggregate in core.core.aggregates}
    columns = [column for column in table.columns if column.name in numbers or column.name in keys]
    found: dict[StageValue, Released] = {}
    for of, listed, arrangement in lists:
        if of != name:
            continue
        rows = [row for (row,) in arranged(table, replace(arrangement, columns=(ROW,))) if isinstance(row, int)]
        places = places_of(arrangement)
        if len(rows) > places:
            raise Refused([_too_many(len(rows), places)])
        for place in range(places):
            there = place < len(rows)
            found[StageValue(name, cell_name(listed, place))] = there
            for column in columns:
                value = column.values[rows[place]] if there else None
                known = _number(value) if column.name in numbers else _key_value(value)
                found[StageValue(name, cell_name(column.name, place, listed))] = known
    return found


def _key_value(value: Cell) -> Released:
    assert value is None or isinstance(value, (str, int, datetime.date))
    assert not isinstance(value, str) or len(value) <= KEY_CHARACTERS_MAX
    return value


def _too_many(groups: int, places: int) -> Finding:
    return Finding(
        code="too_large",
        what="a released list of groups that are not public is refused",
        why=f"It has {groups:,} groups, and a later part of the question has room for {places}. What was released is "
        "stored.",
        instead=(
            "write ORDER BY COUNT(*) DESC LIMIT 100, or HAVING, into the nested query: the stored list serves it",
            "group by coarser keys",
        ),
    )


def _number(value: Cell) -> float | None:
    assert value is None or isinstance(value, (int, float))
    number = None if value is None else float(value)
    return number if number is not None and math.isfinite(number) else None


def sampled(plan: Plan, statements: Sequence[Statement]) -> list[Statement]:
    """Statements as the planner tries them before anything is spent: with made-up numbers for what is not released."""
    made = _MadeUp()
    filled = [statement.filled(made) for statement in statements]
    read = {name for _, inputs in plan.stages for name in inputs}
    assert {value.core for value in made} <= read, "a statement reads a stage that the plan does not know"
    return filled


class _MadeUp(dict[StageValue, Released]):
    """A value of its type for whatever an earlier stage releases."""

    def __missing__(self, value: StageValue) -> Released:
        self[value] = _SAMPLES.get(value.type, 1.0)
        return self[value]


_SAMPLES: Mapping[ColumnType, Released] = {
    ColumnType.TEXT: "a",
    ColumnType.INTEGER: 1,
    ColumnType.DATE: datetime.date(2000, 1, 1),
    ColumnType.TIMESTAMP: datetime.datetime(2000, 1, 1),
}
"""Made-up values of types other than numbers and truth values."""


def chooses_later_norms(question: Question, prepared: Prepared) -> bool:
    """Whether a width is asked for although how much of a unit counts in a later stage would be chosen at a run."""
    if not prepared.plan.stages or (question.half_width is None and question.relative is None):
        return False
    later = {name for name, _ in prepared.plan.stages}
    return any(
        one is not None and core.core.name in later
        for core, one in zip(prepared.cores, prepared.histograms, strict=True)
    )


def by_counts(question: Question, dataset: Dataset) -> Question:
    """The question with the bounds for hidden groups where it would choose norms: its widths follow from its text.

    Every bound is safe (privacy/bounds.py), because the sensitivity follows from the bound that is used; what a unit
    has beyond it is cut, and the answer warns of it (`bounds_assumed`).
    """
    bounds = [table.contribution for table in dataset.tables if table.contribution is not None and not table.one_row]
    counted = [bound.counted if isinstance(bound, AutomaticContribution) else bound for bound in bounds]
    groups = max((bound.groups_per_unit for bound in counted), default=1)
    return replace(question, contribution=AskedContribution(groups_per_unit=groups))


def refuse_width(question: Question, prepared: Prepared) -> None:
    """Refuses an accuracy as the price of stages whose widths are not known before it. Errors: Refused.

    How exact a number is that only later stages read, no wish says: it gets its part of the least spend that reaches
    the half width of what is shown. A relative accuracy is a half width of that, by sizes that are known (sizes.py).
    """
    if not prepared.plan.stages or (question.half_width is None and question.relative is None):
        return
    later = {name for name, _ in prepared.plan.stages}
    chosen = set() if prepared.values is None else set(prepared.values.places)
    chosen |= {core.core.name for core, one in zip(prepared.cores, prepared.histograms, strict=True) if one is not None}
    if later & chosen:
        raise Refused([_NO_WIDTH])


_NO_WIDTH = Finding(
    code="unsupported_sql",
    what="an accuracy for a question of several stages is refused",
    why="Value bounds in a later stage are chosen when the numbers that it reads are released, and the width of its "
    "own numbers follows from them.",
    instead=(
        'ask with a spend: "spend": {"epsilon": "1"}, or --epsilon 1',
        "clip columns without bounds: SUM(GREATEST(0, LEAST(x, 1000)))",
        "ask the nested query by itself with an accuracy, and write its number (or $name, a parameter) in its place",
    ),
)
