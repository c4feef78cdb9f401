"""Groups that would be noise, merged into coarser ones: `accuracy.merge` of a request.

Which groups may be one row follows from declarations and the text (`forest_of`), so the price and the number of
intervals that hold at once are known before; which ones are is decided on noisy numbers (mechanisms/merging.md).
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.estimates import linear_form
from mechanisms.interval import two_sided_alpha
from mechanisms.merging import Merger, Node, Row, nodes_of, rows_shown
from mechanisms.noisy_sums import NoisySums
from mechanisms.released_table import ReleasedTable
from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, KeyValue
from privacy.refusal import Finding, Refused
from privacy.release import ColumnKind, ReleasedColumn
from privacy.statistic import CoreStatistics, RunningSums, Statistic
from privacy.values import Cell
from server.question import Question
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import FilteredArrangement, Plan

__all__ = ["Forest", "MergedRows", "forest_of", "merged_table", "with_forest"]

CELLS_MAX = 500
"""Most groups of a question whose groups are merged: their intervals hold at once."""

_ORDERED = (ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.DATE, ColumnType.TIMESTAMP)
_COUNTS = (AggregateFunction.ROWS, AggregateFunction.UNITS, AggregateFunction.VALUES)
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Forest:
    """Which groups may be one row: within each combination of the other keys, those that are near in one key.

    `key` is its place, `levels` the names of rows that are not single groups, the finest first.
    """

    key: int
    roots: tuple[Node, ...]
    levels: tuple[str, ...]

    @property
    def nodes(self) -> int:
        """How many intervals hold at once."""
        return len(nodes_of(self.roots))


@dataclass(frozen=True, slots=True)
class MergedRows:
    """What was merged: the forest, the rows with the values of the key that each has, and by which column."""

    forest: Forest
    rows: tuple[Row, ...]
    values: tuple[tuple[KeyValue, ...], ...]
    column: str
    relative: Fraction
    sums: tuple[NoisySums, ...]


def with_forest(
    plan: Plan, cores: tuple[BoundedCore, ...], question: Question, *, open_bounds: bool
) -> tuple[BoundedCore, ...]:
    """The cores as they are measured where groups are merged; `open_bounds`: the question chooses value bounds.

    Errors: Refused where they cannot be merged.
    """
    if open_bounds:
        raise _refused("The question would choose value bounds from the data.", "declare bounds, or clip in the text")
    _check(question, plan, cores)
    (core,) = cores
    forest = forest_of(core.described)
    described = replace(core.described, running=_running(core.described, forest))
    return (replace(core, described=described),)


def _check(question: Question, plan: Plan, cores: Sequence[BoundedCore]) -> None:
    shell = plan.shell
    arrangement = shell.arrangement
    cut = arrangement is not None and (arrangement.limit is not None or arrangement.offset > 0)
    plain = shell.trivial or (arrangement is not None and not cut and not isinstance(arrangement, FilteredArrangement))
    if len(cores) != 1 or not plain or plan.stages or shell.chosen or question.nonempty or question.with_cut:
        raise _refused(
            "Rows are merged where the answer shows keys and aggregates of one GROUP BY as they are, in any order.",
            "leave out LIMIT, HAVING, windows and arithmetic, nonempty and with_cut",
        )
    (core,) = cores
    described = core.described
    if described.keys.domain is None or not described.keys.columns or described.choice is not None:
        raise _refused("Groups are merged that are public: others are not shown where they are small.", _DECLARE)
    if len(described.keys.domain) > CELLS_MAX:
        raise _refused(f"It has more than {CELLS_MAX} groups.", "group by a coarser key")
    held = {one.name: one for one in described.statistics}
    if described.norms or any(_form(held[one.statistic], one.kind) is None for one in described.estimates):
        raise _refused(
            "Only numbers that add up can be merged, within contribution bounds: counts and sums.",
            "ask for COUNT and SUM, and for averages as their quotient",
        )
    if forest_of(described).nodes <= len(described.keys.domain):
        raise _refused("No key of it is a number, a date or a text with several values.", _DECLARE)


_DECLARE = "group by a number, a date or a text with declared keys"


def _form(statistic: Statistic, kind: AggregateFunction) -> object:
    return None if statistic.distinct or statistic.drawn is not None else linear_form(statistic, kind)


def _refused(why: str, instead: str) -> Refused:
    return Refused(
        [
            Finding(
                code="accuracy_unreachable",
                what="merging the groups of this question is refused",
                why=why,
                instead=(instead,),
                field="accuracy.merge",
            )
        ]
    )


def forest_of(core: CoreStatistics) -> Forest:
    """The forest over the groups of a core; one without nodes but single groups where no key is fit. Public groups."""
    domain = core.keys.domain
    assert domain is not None
    columns = core.keys.columns
    fit = [place for place, one in enumerate(columns) if one.type in (*_ORDERED, ColumnType.TEXT)]
    if not fit:
        return Forest(0, tuple(Node((cell,)) for cell in range(len(domain))), ())
    key = max(fit, key=lambda one: (columns[one].type in _ORDERED, len({cell[one] for cell in domain}), -one))
    parts: dict[tuple[KeyValue, ...], list[int]] = {}
    for place, cell in enumerate(domain):
        parts.setdefault((*cell[:key], *cell[key + 1 :]), []).append(place)
    levels: dict[str, None] = {}
    roots: list[Node] = []
    for places in parts.values():
        known = [place for place in places if domain[place][key] is not None]
        if known:
            roots.append(_tree(known, [domain[place][key] for place in known], columns[key].type, levels))
        roots += [Node((place,)) for place in places if domain[place][key] is None]
    return Forest(key, tuple(roots), tuple(levels))


def _tree(places: Sequence[int], values: Sequence[KeyValue], kind: ColumnType, levels: dict[str, None]) -> Node:
    """The tree over groups by the values of their key."""
    if kind is ColumnType.TEXT:
        leaves = tuple(Node((place,)) for place in places)
        if len(leaves) > 1:
            levels[OTHER] = None
        return leaves[0] if len(leaves) == 1 else Node(tuple(places), OTHER, leaves, rest=True)
    both = sorted(zip(values, places, strict=True), key=lambda one: _rank(one[0]))
    named: list[tuple[str, Callable[[int, KeyValue], object]]] = []
    if kind in (ColumnType.DATE, ColumnType.TIMESTAMP):
        named += [("week", _week), ("month", _month), ("year", _year)]
    else:
        named += [(f"{2**one} values", _run(2**one)) for one in range(1, (len(both) - 1).bit_length())]
    nodes: list[tuple[tuple[KeyValue, ...], Node]] = [((value,), Node((place,))) for value, place in both]
    firsts = [value for value, _ in both]
    for name, level in [*named, ("all", lambda _place, _value: None)]:
        nodes = list(_gathered(nodes, firsts, name, level, levels))
    ((_, root),) = nodes
    return root


def _gathered(
    nodes: Sequence[tuple[tuple[KeyValue, ...], Node]],
    firsts: Sequence[KeyValue],
    name: str,
    level: Callable[[int, KeyValue], object],
    levels: dict[str, None],
) -> Iterator[tuple[tuple[KeyValue, ...], Node]]:
    """Neighbours that have one label on a level as nodes; single ones stay as they are."""
    places = {value: place for place, value in enumerate(firsts)}
    for _, found in itertools.groupby(nodes, key=lambda one: level(places[one[0][0]], one[0][0])):
        group = list(found)
        if len(group) == 1:
            yield group[0]
            continue
        levels[name] = None
        children = tuple(node for _, node in group)
        cells = tuple(sorted(cell for child in children for cell in child.cells))
        yield tuple(value for values, _ in group for value in values), Node(cells, name, children)


def _rank(value: KeyValue) -> float:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.UTC).timestamp()
    if isinstance(value, datetime.date):
        return float(value.toordinal())
    assert isinstance(value, int | float)
    return float(value)


def _run(length: int) -> Callable[[int, KeyValue], object]:
    return lambda place, _value: place // length


def _week(_place: int, value: KeyValue) -> object:
    """The calendar week, cut at the ends of months: so weeks are parts of months."""
    assert isinstance(value, datetime.date)
    return value.year, value.month, value.isocalendar()[:2]


def _month(_place: int, value: KeyValue) -> object:
    assert isinstance(value, datetime.date)
    return value.year, value.month


def _year(_place: int, value: KeyValue) -> object:
    assert isinstance(value, datetime.date)
    return value.year


def _running(core: CoreStatistics, forest: Forest) -> RunningSums | None:
    """The rows that may be shown as sums over neighbouring groups, for the choice of a tree; None for no order."""
    domain = core.keys.domain
    assert domain is not None
    values = list(dict.fromkeys(cell[forest.key] for cell in domain))
    places = {value: place for place, value in enumerate(values)}
    ends: dict[tuple[int, int], None] = {}
    for node in nodes_of(forest.roots):
        inside = sorted({places[domain[cell][forest.key]] for cell in node.cells})
        if inside != list(range(inside[0], inside[-1] + 1)):
            return None
        if len(inside) > 1:
            ends[inside[0], inside[-1] + 1] = None
    return RunningSums(forest.key, tuple(ends), cells=True) if ends else None


def merged_table(
    table: ReleasedTable, core: CoreStatistics, relative: Fraction, confidence: Fraction
) -> tuple[ReleasedTable, MergedRows | None]:
    """The table with merged groups, and which those are; as it is where it was stored without its sums (0.1.0)."""
    domain = core.keys.domain
    if table.sums is None or domain is None or table.rows != len(domain):
        return table, None
    forest, alpha = forest_of(core), two_sided_alpha(confidence, 1)
    mergers: dict[str, Merger] = {}
    for column in table.columns:
        sums = table.sums_of(column.name)
        estimate = None if sums is None else sums.estimate(column.name)
        if column.role == ColumnKind.RELEASED and sums is not None and estimate is not None:
            mergers[column.name] = Merger(sums, estimate, forest.roots, alpha)
    counts = [one.name for one in core.estimates if one.kind in _COUNTS]
    decides = (counts or [one.name for one in core.estimates])[0]
    rows = tuple(
        sorted(rows_shown(forest.roots, mergers[decides], relative), key=lambda one: (bool(one.whole), one.cells[0]))
    )
    name = core.keys.columns[forest.key].name
    label = _label({cell[forest.key] for cell in domain})
    columns = tuple(
        _of_rows(column, rows, mergers[column.name])
        if column.name in mergers
        else _of_keys(column, rows, label if column.name == name else None)
        for column in table.columns
    )
    values = tuple(tuple(domain[cell][forest.key] for cell in row.cells) for row in rows)
    merged = MergedRows(forest, rows, values, decides, relative, table.sums)
    return replace(table, rows=len(rows), columns=columns, sums=None), merged


def _label(values: set[KeyValue]) -> str:
    """The value of a text key that stands for merged ones: no value of its own."""
    label = OTHER
    while label in values:
        label = f"({label})"
    return label


def _of_rows(column: ReleasedColumn, rows: Sequence[Row], merger: Merger) -> ReleasedColumn:
    numbers = [merger.value(row.cells) for row in rows]
    reaches = [merger.reach(row) for row in rows]
    whole = column.type is ColumnType.INTEGER
    lows = [number - reach for number, reach in zip(numbers, reaches, strict=True)]
    highs = [number + reach for number, reach in zip(numbers, reaches, strict=True)]
    return replace(
        column,
        values=tuple(numbers),
        standard_errors=tuple(merger.error(row) for row in rows),
        lows=tuple(math.floor(low) if whole else low for low in lows),
        highs=tuple(math.ceil(high) if whole else high for high in highs),
    )


def _of_keys(column: ReleasedColumn, rows: Sequence[Row], label: str | None) -> ReleasedColumn:
    """A key: of ordered ones the first value of a row; `label` where the values of a text are merged."""
    text = column.type is ColumnType.TEXT

    def value(row: Row) -> Cell:
        merged = label is not None and text and len(row.cells) > 1
        return label if merged else column.values[row.cells[0]]

    return replace(column, values=tuple(map(value, rows)))
