"""What a query costs in time: worst-case nanoseconds of each operator for one row, and of all rows of one unit.

Claim. Let two data sets differ in one privacy unit. On the reference machine the running times of one plan differ by
at most `Work.unit_nanoseconds`, as far as the engine's table is right (`sql_rewrite/dialects/costs.py`). The plan and
its statement are the same, so the engine does the same for each row of the others; the unit has at most
`rows_stored_per_unit` rows in a table (the snapshot keeps no more), each of them takes every branch of every CASE,
every side of AND and OR and every FILTER at most once, and holds strings of at most `length_max` characters. The rows
are adjacent (snapshots are ordered by unit), so they touch few vectors; a vector in which a single row needs an
operator costs `vector`. Grouped by unit and key they are apart, in the worst case one group in each vector. Tables
that two statements share are made of one pass: what the second does with them is counted by cell and by unit. Of a
table of units a unit has one row, or a part of one: less than what is counted for its rows. What
makes the claim a measurement and not a proof: the table (`benchmarks/cost.py` reproduces it; SAFETY is the factor above
it), caches, and the engine's own freedom to do things in another order.

`server/journey/moments.py` makes the tick of a plan ten times that long, and proves what then shows.

The table holds worst cases: the most expensive values of several alphabets for `character`, integers of 128 bits in
`wide`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, assert_never

from privacy.policy import LENGTH_MAX_DEFAULT, ColumnType, Table
from privacy.wording import shortened
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.conditions_first import conditions_first
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.cost_below import Below, work_below
from sql_rewrite.cost_usual import USUAL_SHARE, array_nanoseconds, usual_share
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.dialects.duckdb_costs import DUCKDB_COSTS
from sql_rewrite.expression_cost import ExpressionMeter, Took
from sql_rewrite.expressions import Call, Expression, describe
from sql_rewrite.join_tree import asked
from sql_rewrite.list_advice import shorter_lists
from sql_rewrite.norm_shapes import Shape, finds_squares, shape_of, shares_tables
from sql_rewrite.plan import joined_when
from sql_rewrite.refuse import refuse
from sql_rewrite.statistics.registry import sums_of
from sql_rewrite.stored_norms import counts_units, sums_are_norms
from sql_rewrite.unit_facts import paired_rows, pieces, rows_tried, times_tried

__all__ = [
    "OPERATORS_MAX",
    "ROWS_ASSUMED",
    "SAFETY",
    "UNIT_NANOSECONDS_MAX",
    "Work",
    "check_work",
    "parts_of",
    "passes_of",
    "work_of",
]

SAFETY = 2
"""Factor between the table and what is assumed: for caches, orders of evaluation, and what was not measured."""

UNIT_NANOSECONDS_MAX = 250_000_000
"""Most that the rows of one unit may cost; a plan's tick is ten times as much, at most 2.5 seconds."""

OPERATORS_MAX = 3_000
"""Most operators of all statements of a query. DuckDB plans each in 25 microseconds, before any row is read."""

_KEY_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Work:
    """What a query's statements do.

    `unit_nanoseconds` is the most that the rows of one unit cost in all cores together, with SAFETY; `row_nanoseconds`
    what the declared numbers of rows cost, as far as they are declared; `operators` how many operators are planned, and
    `plan_nanoseconds` how long that takes, and going to the worker once more for each histogram.
    `costliest` describes the operator on which a unit's rows cost most, None where there is none.
    """

    unit_nanoseconds: float
    row_nanoseconds: float
    operators: int
    plan_nanoseconds: float
    costliest: str | None
    costs: EngineCosts = field(repr=False)
    """The table that all of it follows from."""


ROWS_ASSUMED = 50_000
"""Rows of a table where none are declared: a prediction that is wrong makes answers later, and reveals no more."""

TYPICAL_CHARACTERS = 32
"""Characters of a stored text where the time of a whole table is predicted; worst cases use `length_max`."""


def work_of(
    cores: Iterable[BoundedCore],
    costs: EngineCosts = DUCKDB_COSTS,
    *,
    first: Sequence[BoundedCore] = (),
    apart: Collection[str] = (),
) -> Work:
    """What the statements of these cores do, and those of the histograms of norms of the cores in `first`.

    Those of the cores named in `apart` share no tables with the sums, whose value bounds are chosen in between.
    A function of the plan and of declarations.
    """
    cores = list(cores)
    statements = [(bounded, passes_of(bounded)) for bounded in cores]
    # Of rows that both statements share the sums have counted the one pass.
    summed = {id(bounded) for bounded in cores if bounded.described.name not in apart}
    histograms = [
        (bounded, 0 if id(bounded) in summed and shares_tables(bounded) else 1 + finds_squares(bounded))
        for bounded in first
    ]
    stored = [bounded for bounded, _ in histograms if shape_of(bounded) is Shape.STORED]
    statements += [(bounded, passes) for bounded, passes in histograms if shape_of(bounded) is not Shape.STORED]
    parts = [_histogram_work(bounded, costs) for bounded in stored]
    parts += [_statement_work(bounded, costs, passes) for bounded, passes in statements]
    operators = sum(part.operators for part in parts)
    # The first of those that cost most.
    costliest = max(
        (_costliest(bounded, costs) for bounded, _ in statements), key=lambda one: one[0], default=(0, None)
    )
    return Work(
        unit_nanoseconds=sum(part.unit for part in parts) * SAFETY,
        row_nanoseconds=sum(part.rows for part in parts),
        operators=operators,
        plan_nanoseconds=operators * costs.plan + len(first) * costs.statement,
        costliest=None if costliest[1] is None else shortened(describe(costliest[1])),
        costs=costs,
    )


class _Statement(NamedTuple):
    """What a statement takes: nanoseconds of one unit's rows and of all rows, and operators that are planned."""

    unit: float
    rows: float
    operators: int


def _histogram_work(bounded: BoundedCore, costs: EngineCosts) -> _Statement:
    """A histogram of kept norms: each of them is looked at, and one of each unit has its bins computed."""
    norms, table = len(bounded.norms), bounded.core.sources[0].table
    row, vector = costs.factor * (1 + norms), costs.core_vector + costs.factor * norms
    rows = row * _expected(table) * USUAL_SHARE * (1 / _ROWS_TOGETHER if table.stored_units else 1)
    return _Statement(row * table.rows_stored + costs.scattered + vector, rows, costs.plan_core + 4 * norms)


def _statement_work(given: BoundedCore, costs: EngineCosts, passes: int) -> _Statement:
    """One statement that reads the rows so often: for one unit in the worst case, for all rows as usual."""
    bounded = replace(given, core=conditions_first(given.core))
    root = bounded.core.sources[0].table
    stored = rows_tried(bounded.core.sources)
    scans = scans_of(bounded)
    parts = _parts(bounded, scans)
    worst = _core(bounded, costs, passes, parts, scans)
    usual = _core(bounded, costs, passes, parts, scans, typical=TYPICAL_CHARACTERS)
    cells = min(bounded.described.keys.groups_per_unit, stored)
    groups = 0 if bounded.described.keys.domain is not None else cells
    unit = stored * worst.row + _vectors(bounded, costs) * worst.vector
    unit += groups * (costs.group + _sums(bounded) * costs.group / 10)
    if not bounded.one_row and passes:
        unit += cells * _held_nanoseconds(bounded, costs)
    choice = (costs.choice + costs.key * len(bounded.core.keys)) * bounded.chosen_by_cell
    unit += min(len(bounded.described.keys.domain or ()), stored) * choice
    if not bounded.one_row:
        # Values of the unit do not lie together once they are grouped.
        unit += stored * costs.clipped * sum(1 for b in bounded.statistics if b.distinct is not None)
    normed = isinstance(bounded.contribution, NormedContribution)
    shape = shape_of(bounded) if normed else None
    if normed and shape is not Shape.STORED:
        # Totals of the unit over its cells, its factors, and these beside its cells: for each statement.
        unit += cells * (costs.choice + 2 * costs.join) + len(bounded.norms) * costs.scattered
    # Rows of joined tables are hashed whether or not a row finds them.
    reads = passes * scans
    below = _below(bounded, costs)
    unit += reads * (paired_rows(bounded.core.sources) * (costs.scan + costs.join + costs.unit) + below.unit)
    unit += asked(bounded.core.sources) * costs.join * max(1, reads)
    of_cell = _cell_nanoseconds(bounded, costs) if passes and shape is Shape.CELLS else 0.0
    expected = _expected(root) * times_tried(bounded.core.sources)
    if root.stored_units and (counts_units(bounded) or (normed and sums_are_norms(bounded))):
        expected = -(-expected // _ROWS_TOGETHER)
    rows = reads * below.row + expected * (usual.row + of_cell + choice * _cells_share(bounded))
    rows = rows * usual_share(bounded) + array_nanoseconds(bounded)
    return _Statement(unit, rows, worst.operators + reads * below.operators)


def _expected(table: Table) -> int:
    """About how many rows a table has."""
    return table.rows_expected or ROWS_ASSUMED


def _vectors(bounded: BoundedCore, costs: EngineCosts) -> int:
    """In how many vectors the rows of one unit are."""
    return pieces(bounded.core.sources) + -(-(rows_tried(bounded.core.sources) - 1) // costs.vector_rows)


def _costliest(bounded: BoundedCore, costs: EngineCosts) -> tuple[float, Call | None]:
    """The operator on which the rows of one unit cost most, and how much that is."""
    stored, vectors, meter = rows_tried(bounded.core.sources), _vectors(bounded, costs), ExpressionMeter(costs)
    taken = ((call, meter.own(call)) for call in _calls(bounded))
    found = ((stored * own.row + vectors * own.vector, call) for call, own in taken)
    return max(found, key=lambda one: one[0], default=(-1.0, None))


def _below(bounded: BoundedCore, costs: EngineCosts) -> Below:
    """What is computed within each unit before the core's rows are there."""
    if all(source.stored and source.only is None for source in bounded.core.sources):
        return Below()
    worst, usual = ExpressionMeter(costs), ExpressionMeter(costs, typical=TYPICAL_CHARACTERS)

    def lowered(meter: ExpressionMeter, part: Expression) -> tuple[float, float, int]:
        found, text = meter.lowered(part), 0.0
        if part.type is ColumnType.TEXT:
            text = min(meter.characters(part), LENGTH_MAX_DEFAULT) * (costs.key_character + costs.salt_character)
        return found.row + text, found.vector, found.operators

    return work_below(
        bounded.core.sources, costs, partial(lowered, worst), partial(lowered, usual),
        lambda source: _expected(source.table),
    )  # fmt: skip


_ROWS_TOGETHER = 8
"""Rows of a unit, where it is predicted how many units there are, or rows in one cell: a usual number of visits."""


def _cells_share(bounded: BoundedCore) -> float:
    """The cells of units for each row, if each unit's rows are spread evenly over all groups.

    A prediction alone: it is in no bound.
    """
    domain = bounded.described.keys.domain
    if not domain:
        return 1.0
    return len(domain) * (1 - (1 - 1 / len(domain)) ** _ROWS_TOGETHER) / _ROWS_TOGETHER


def _cell_nanoseconds(bounded: BoundedCore, costs: EngineCosts) -> float:
    """What the cells of units take for each row."""
    return _cells_share(bounded) * (
        costs.cell + costs.cell_sum * sum(sums_of(b.statistic.kind).numbers(b) for b in bounded.statistics)
    )


def _sums(bounded: BoundedCore) -> int:
    """The columns of sums that the statement makes: counts by place are one pair of lists."""
    return sum(1 if b.statistic.tree is not None else b.statistic.coordinates for b in bounded.statistics)


def _held_nanoseconds(bounded: BoundedCore, costs: EngineCosts) -> float:
    """Time of the expressions that hold what a unit adds to one group, where only units beyond the bounds need them.

    Factors come after the window over the groups of each unit, which leaves them together: for all of them they cost
    what they would for one. What holds a sum comes before it.
    """
    return sum(sums_of(b.statistic.kind).held_nanoseconds(b, costs) for b in bounded.statistics)


def scans_of(bounded: BoundedCore) -> int:
    """How often one statement reads the rows for its sums: once, and once more for the values of each DISTINCT.

    For quantiles of scaled rows twice more: for their weights, and to count them by place. Once more for each quantile
    of which blocks have answers.
    """
    values = sum(1 for b in bounded.statistics if b.distinct is not None)
    ranks = sum(1 for b in bounded.statistics if b.statistic.tree is not None)
    blocks = sum(len(b.statistic.block_names) for b in bounded.statistics if b.statistic.drawn)
    if bounded.one_row:
        # Beside different values, or what blocks answer, each tree is read by itself.
        apart = values + (ranks if values or blocks else 0)
        return apart + blocks + (apart < len(bounded.statistics))
    return values + 2 * ranks + blocks + (values + ranks < len(bounded.statistics))


def parts_of(bounded: BoundedCore) -> list[tuple[Expression, int]]:
    """The expressions of a core, and how often the statement holds each of them at most."""
    return _parts(bounded, scans_of(bounded))


def _parts(bounded: BoundedCore, scans: int) -> list[tuple[Expression, int]]:
    parts: list[tuple[Expression, int]] = []
    if bounded.core.where is not None:
        parts.append((bounded.core.where, scans))
    parts += [(met, scans) for met in joined_when(bounded.core.sources)]
    parts += [(key, 3 * scans) for _, key in bounded.core.keys]
    for statistic in bounded.statistics:
        parts += [(argument, 3) for argument in statistic.arguments]
        parts += [(part, 1) for part in (statistic.filter, statistic.present, statistic.distinct) if part]
    return parts


def _calls(bounded: BoundedCore) -> Iterable[Call]:
    seen: set[int] = set()
    stack: list[Expression] = [expression for expression, _ in parts_of(bounded)]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(node.arguments)


def _core(
    bounded: BoundedCore,
    costs: EngineCosts,
    passes: int,
    parts: Sequence[tuple[Expression, int]],
    scans: int,
    *,
    typical: int | None = None,
) -> Took:
    """One core for one row that is read so often: its expressions, and the joins, sums and groups around them."""
    if not passes:
        return Took(operators=costs.plan_core + 2 * len(bounded.norms))
    meter = ExpressionMeter(costs, typical=typical)
    total = Took()
    for expression, copies in parts:
        total = total.plus(meter.lowered(expression), copies)
    sums = _sums(bounded)
    keys = [key for _, key in bounded.core.keys]
    paired = paired_rows(bounded.core.sources)
    written = [source.join for source in bounded.core.sources if source.join is not None]
    joins = sum(not join.on_unit or bool(join.also) for join in written)
    row = costs.scan + costs.join * (len(bounded.core.sources) - 1) if not paired else costs.pair + costs.join * joins
    row += costs.sum * sums + costs.key * len(keys) + costs.join * sum(len(join.also) for join in written)
    place = costs.place if typical is None else costs.place_usual
    row += place * sum(b.statistic.tree is not None for b in bounded.statistics)
    texts = [key for key in keys if key.type is ColumnType.TEXT]
    compared = sum(min(meter.characters(key), _KEY_CHARACTERS) for key in texts) * costs.key_character
    row += compared
    stored = isinstance(bounded.contribution, NormedContribution) and shape_of(bounded) is Shape.STORED
    if not bounded.one_row:
        row += 0.0 if paired or stored else costs.unit
        for key, domain in zip(keys, bounded.domains, strict=True):
            if domain is None:
                row += costs.salt
                if key.type is ColumnType.TEXT:
                    row += costs.salt_text + costs.salt_character * min(meter.characters(key), _KEY_CHARACTERS)
        match bounded.contribution:
            case Contribution() as counted:
                if counted.choose_groups and not bounded.chosen_by_cell:
                    row += costs.choice + costs.key * len(keys)
                if counted.scaled:
                    # The rows of the unit over all its groups: a window over at most as many rows as the choice sorts.
                    row += costs.choice
            case NormedContribution():
                # The unit's factors beside its rows: beside its cells they are counted by cell.
                row += {Shape.ROWS: costs.join, Shape.STORED: costs.factor * len(bounded.norms)}.get(
                    shape_of(bounded), 0.0
                )
            case _:
                assert_never(bounded.contribution)
    base = row
    operators = costs.plan_core + len(keys) + 2 * sums
    # Factors of units beyond a norm are computed in vectors of rows that lie together.
    vectors = costs.core_vector + costs.clipped * len(bounded.norms) * stored
    for _ in range(scans - 1):
        # The same rows, keys and groups once more; what a value takes is beside it.
        row += base
        operators += costs.plan_core
        vectors += costs.core_vector
    for b in bounded.statistics:
        if b.distinct is not None:
            row += _value_row(b.distinct, bounded, meter, costs)
        if b.statistic.tree is not None and not bounded.one_row:
            # Joined to its weight, and grouped by its place beside the keys.
            row += costs.join + costs.key * (1 + len(keys)) + costs.sum
        # Hashed into its block, grouped by it, and kept with the others of the block until their middle is found.
        row += len(b.statistic.block_names) * (costs.salt_text + 20 * costs.salt_character + costs.key + costs.place)
    return Took().plus(total.plus(Took(row, vectors, operators)), passes)


def _value_row(value: Expression, bounded: BoundedCore, meter: ExpressionMeter, costs: EngineCosts) -> float:
    """What a row's value adds to its scan: grouped by, with those of its unit and with all, salted, ranked twice."""
    keys = len(bounded.core.keys)
    text = value.type is ColumnType.TEXT
    length = meter.characters(value) if text else 0
    grouped = costs.key * (1 + keys) + costs.key_character * length
    if bounded.one_row:
        return grouped
    hidden = sum(1 for domain in bounded.domains if domain is None)
    salted = costs.salt * (1 + hidden) + text * (costs.salt_text + costs.salt_character * length)
    ranked = costs.choice + costs.key * (2 + keys) + costs.key_character * length
    return 2 * grouped + 2 * costs.unit + salted + 2 * ranked


def passes_of(bounded: BoundedCore) -> int:
    """How often the statement of the sums reads the rows: twice where factors of units come back to them.

    Once more where the cells of these rows decide about the factors.
    """
    match bounded.contribution:
        case Contribution():
            return 1
        case NormedContribution():
            return 2 + finds_squares(bounded) if shape_of(bounded) is Shape.ROWS else 1
        case _:
            assert_never(bounded.contribution)


def check_work(
    cores: Sequence[BoundedCore],
    costs: EngineCosts = DUCKDB_COSTS,
    *,
    first: Sequence[BoundedCore] = (),
    apart: Collection[str] = (),
) -> Work:
    """The work of a query's cores and of the histograms of norms of those in `first`, all together.

    `apart` as `work_of` says.

    Errors: Refused (too_large) when planning them, or the rows of one unit, would take too long. Depends on the text
    and on declarations only, never on the machine: a text is always answered or always refused.
    """
    work = work_of(cores, costs, first=first, apart=apart)
    if work.operators > OPERATORS_MAX:
        raise refuse(
            "too_large",
            "the query is refused",
            f"Written out for the engine it has {work.operators:,} operators, guards and their copies included, and "
            f"{OPERATORS_MAX:,} may be planned.",
            *shorter_lists([core.core for core in cores], work.operators, OPERATORS_MAX),
            "nest functions of numbers less deeply: each guard doubles what is below it",
            "ask for its aggregates in several queries",
        )
    if work.unit_nanoseconds > UNIT_NANOSECONDS_MAX and any(paired_rows(core.core.sources) for core in cores):
        raise refuse(
            "join_multiplies",
            "a join on the privacy unit is refused",
            f"All pairs of one person's rows may take {round(work.unit_nanoseconds / 1e6):,} ms, which would show "
            f"whether "
            f"they are there; {UNIT_NANOSECONDS_MAX // 1_000_000} ms are allowed.",
            "aggregate one of the tables first, in a nested query that groups by the privacy unit",
            "ask an administrator to declare a smaller rows_stored_per_unit, or length_max of texts",
        )
    if work.unit_nanoseconds > UNIT_NANOSECONDS_MAX:
        named = "its expressions" if work.costliest is None else work.costliest
        milliseconds = round(work.unit_nanoseconds / 1e6)
        raise refuse(
            "too_large",
            "the query is refused",
            f"The rows of one person may take {milliseconds:,} ms, which would show whether they are there; "
            f"{UNIT_NANOSECONDS_MAX // 1_000_000} ms are allowed. The most expensive part is {named}.",
            "work on a piece of a text, for example LEFT(x, 50)",
            "ask for its aggregates in several queries",
            "ask an administrator to declare a smaller length_max or rows_stored_per_unit",
        )
    return work
