"""ROLLUP, CUBE and GROUPING SETS of a private block: one release of the finest level, from which the others follow.

    SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY ROLLUP (region, sex)
    core c0:  patients grouped by region and sex, a0 = rows
    shell:    the rows of c0; SUM(a0) of c0 by region; SUM(a0) of all of c0, one after another (UNION ALL)

Claim. Every level is a function of one release, so the children of every row add up to it exactly, and no level costs
anything beside it. Proof: post-processing (Dwork and Roth 2014, Proposition 2.1). The keys have to be public: of hidden
ones, groups that are not shown would be missing from every total. Which levels the noise of that release is drawn on,
and how the finest is estimated from them, is no part of the plan (mechanisms/consistency.md): a core says which levels
are read.

What adds up: COUNT and SUM. An average of a coarser level is that of the averages below it, weighted by their noisy
counts where these are positive. Other aggregates of a coarser level do not follow from those of the finest one: each
level is then a core of its own, as if UNION ALL stood between them. Where these share no noise with the others, the
others are still one release for all levels (apart_levels.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.refusal import Finding, Position
from privacy.statistic import StatisticKind
from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.plan import Aggregate, Core
from sql_rewrite.refuse import refuse
from sql_rewrite.released import Released, aliased, column
from sql_rewrite.syntax import populated, unbracketed
from sql_rewrite.text import Text

__all__ = [
    "GROUPINGS",
    "LEVELS",
    "LEVELS_MAX",
    "Levels",
    "MixedLevels",
    "adds_up",
    "levels_of",
    "measured_levels",
    "with_levels_of",
]

LEVELS_MAX = 16
"""Most levels of one GROUP BY."""

LEVELS = (exp.Rollup, exp.Cube, exp.GroupingSets)
"""Parts of GROUP BY that stand for several levels."""

GROUPINGS = (exp.Grouping, exp.GroupingId)
"""The functions that say which keys a row is grouped by."""

_ADDED = (AggregateFunction.ROWS, AggregateFunction.VALUES, AggregateFunction.SUM)


_ALONE = (
    AggregateFunction.QUANTILE,
    AggregateFunction.QUANTILE_DISCRETE,
    AggregateFunction.LEAST,
    AggregateFunction.GREATEST,
    AggregateFunction.UNITS,
)
"""Aggregates with a noise of their own, whatever is beside them."""


class MixedLevels(Exception):
    """Some aggregates of a block follow from the finest of its levels, and others do not."""


@dataclass(slots=True)
class Levels:
    """The levels of one block: its keys, and of each level the places of those that it groups by.

    `groupings` are the calls of GROUPING that the block has, by the names of their keys: columns of the relation.
    """

    keys: tuple[exp.Expr, ...]
    sets: tuple[tuple[int, ...], ...]
    groupings: dict[tuple[str, ...], str] = field(default_factory=dict)

    def finest(self, node: exp.Select) -> exp.Select:
        """The block, grouped by all keys of all levels."""
        copy = node.copy()
        assert isinstance(copy, exp.Select)
        copy.set("group", exp.Group(expressions=[key.copy() for key in self.keys]))
        copy.parent = node.parent
        return copy

    def grouping(self, keys: Sequence[str]) -> str:
        """The name of the column of GROUPING of some keys, by their names in the shell."""
        return self.groupings.setdefault(tuple(keys), f"g{len(self.groupings)}")

    def only(self, node: exp.Select, places: Sequence[int]) -> exp.Select:
        """The block, grouped by the keys of one level alone."""
        copy = node.copy()
        assert isinstance(copy, exp.Select)
        copy.set("group", exp.Group(expressions=[self.keys[place].copy() for place in places]) if places else None)
        copy.parent = node.parent
        return copy

    def apart(self, core: Core, *, public: bool) -> bool:
        """Whether the levels do not follow from the finest one, so that each has to be asked for itself."""
        added = (*_ADDED, AggregateFunction.AVERAGE)
        return not public or any(one.distinct or one.function not in added for one in core.aggregates)

    def mixed(self, core: Core) -> bool:
        """Whether some aggregates follow from the finest level and the others share no noise with them.

        Asked apart, the former are one release for all levels: of L levels with one statistic of each kind every
        statistic then gets 1 / (L + 1) of the price, and not 1 / 2L.
        """
        added = (*_ADDED, AggregateFunction.AVERAGE)
        others = [one for one in core.aggregates if one.distinct or one.function not in added]
        alone = all(one.distinct or one.function in _ALONE for one in others)
        once = len(set(map(frozenset, self.sets))) == len(self.sets)
        return alone and once and 0 < len(others) < len(core.aggregates)

    def own(
        self, core: str, keys: Sequence[str], grouped: Mapping[str, str], aggregates: Mapping[str, str]
    ) -> exp.Select:
        """The block of one level over the relation of its own core.

        `keys` are the names of all keys in the relation of all levels; `grouped` gives those of this level, and
        `aggregates` all aggregates, by the names that they have in the core.
        """
        values: list[exp.Expr] = [
            aliased(column(grouped[key], core) if key in grouped else exp.Null(), key) for key in dict.fromkeys(keys)
        ]
        values += [aliased(column(inside, core), name) for name, inside in aggregates.items()]
        values += [aliased(exp.Literal.number(bits), name) for name, bits in self._bits(grouped)]
        return exp.Select(expressions=values)

    def _bits(self, grouped: Collection[str]) -> list[tuple[str, int]]:
        """The columns of GROUPING on one level."""
        return [
            (name, int("".join("0" if key in grouped else "1" for key in wanted), 2))
            for wanted, name in self.groupings.items()
        ]

    def warning(self, position: Position | None) -> Finding:
        """What an answer says whose levels have noise of their own."""
        return Finding(
            code="levels_apart",
            what=f"each of the {len(self.sets)} levels is a release of its own",
            why="They do not follow from the finest one, so they share the price, and totals are not the sums of their "
            "parts.",
            instead=(
                "group by declared keys, and ask for COUNT, SUM and AVG alone: all levels then cost what one does",
            ),
            position=position,
        )

    def read_by(self, core: Core, keys: Sequence[str]) -> Core:
        """The core with the levels that are read of it; `keys` are the names of `self.keys` in its relation."""
        names = [name for name, _ in core.keys]
        # A key that is a number has two columns.
        places = [names.index(key if key in names else key.removesuffix("_number")) for key in keys]
        sets = (tuple(sorted({places[place] for place in level})) for level in self.sets)
        return replace(core, levels=tuple(dict.fromkeys(sets)))

    def relation(
        self,
        core: Core,
        relation: Released,
        keys: Sequence[str],
        *,
        block: Callable[[exp.Select, Released], Released],
        unite: Callable[[Released, Released], Released],
    ) -> Released:
        """All levels over the relation of the core, one after another. `keys` are the shell's names of `self.keys`."""
        counts = {
            aggregate.name: _count_of(aggregate, core.aggregates)
            for aggregate in core.aggregates
            if aggregate.function is AggregateFunction.AVERAGE
        }
        shown = [output.name for output in relation.outputs]
        found: Released | None = None
        for places in self.sets:
            grouped = {keys[place] for place in places}
            level = block(self._level(core, shown, grouped, counts), relation)
            found = level if found is None else unite(found, level)
        assert found is not None
        return found

    def _level(self, core: Core, shown: Sequence[str], grouped: set[str], counts: Mapping[str, str]) -> exp.Select:
        """The block of one level over the core's relation, whose columns are `shown`."""
        values: list[exp.Expr] = []
        by: list[exp.Expr] = []
        # A key that is a number has two columns.
        inside = {name for key in grouped for name in (key, key.removesuffix("_number"))}
        numbers = {name.removesuffix("_number") for name in shown if name.endswith("_number")}
        aggregates = {aggregate.name for aggregate in core.aggregates}
        finest = set(shown) - aggregates - numbers <= grouped
        for name in shown:
            read = column(name, core.name)
            if name not in aggregates:
                values.append(aliased(read if name in inside else exp.Null(), name))
                by += [read.copy()] if name in inside else []
            elif finest:
                values.append(aliased(read, name))
            elif name in counts:
                values.append(aliased(_weighted(read, column(counts[name], core.name)), name))
            else:
                values.append(aliased(exp.Sum(this=read), name))
        values += [aliased(exp.Literal.number(bits), name) for name, bits in self._bits(grouped)]
        tree = exp.Select(expressions=values)
        if not finest and by:
            tree.set("group", exp.Group(expressions=by))
        return tree


def with_levels_of(core: Core, other: Core) -> Core:
    """A core whose levels are read, and those of another one that asks the same."""
    if not core.levels and not other.levels:
        return core
    finest = (tuple(range(len(core.keys))),)
    return replace(core, levels=tuple(dict.fromkeys((*(core.levels or finest), *(other.levels or finest)))))


def measured_levels(core: Core, statistics: Sequence[BoundedStatistic], *, normed: bool) -> tuple[tuple[int, ...], ...]:
    """The levels that may be measured beside the finest one: none where a sum is not that of the cells below it.

    Where units are scaled to norms nothing is known of the cells in which one unit changes sums; the finest level is
    then measured alone, as where there are no levels.
    """
    return core.levels if adds_up(statistics, normed=normed) else ()


def adds_up(statistics: Sequence[BoundedStatistic], *, normed: bool) -> bool:
    """Whether numbers of coarser cells are sums of those below them, and it is known what a unit changes in both."""
    added = (StatisticKind.UNITS, StatisticKind.COUNT, StatisticKind.SUM, StatisticKind.MOMENTS)
    return not normed and all(one.statistic.kind in added and not one.statistic.distinct for one in statistics)


def _weighted(average: exp.Expr, count: exp.Expr) -> exp.Expr:
    """The average of averages, weighted by their counts where these are positive; NULL where none is."""
    weight = exp.Case(
        ifs=[exp.If(this=exp.Is(this=average.copy(), expression=exp.Null()), true=exp.Literal.number(0))],
        default=exp.Greatest(this=count, expressions=[exp.Literal.number(0)]),
    )
    whole = exp.Sum(this=exp.Mul(this=average.copy(), expression=weight))
    return exp.Div(
        this=whole, expression=exp.Nullif(this=exp.Sum(this=weight.copy()), expression=exp.Literal.number(0))
    )


def _count_of(average: Aggregate, aggregates: Iterable[Aggregate]) -> str:
    """The name of the aggregate that counts the values of an average."""
    same = [
        other.name
        for other in aggregates
        if other.function in (AggregateFunction.VALUES, AggregateFunction.ROWS)
        and (other.argument == average.argument or _counts_all(other, average))
        and other.filter == average.filter
    ]
    return same[0]


def _counts_all(other: Aggregate, average: Aggregate) -> bool:
    """Whether a count of rows counts the values of an average, which are never NULL."""
    return other.argument is None and average.argument is not None and not average.argument.nullable


def levels_of(node: exp.Select, text: Text) -> Levels | None:
    """The levels of a block's GROUP BY; None where it has one level. Errors: Refused (too_large)."""
    group = node.args.get("group")
    if group is None or populated(group) - {"expressions"}:
        return None
    if not any(isinstance(item, LEVELS) for item in group.expressions):
        return None
    parts = [_sets(item) for item in group.expressions]
    number = 1
    for part in parts:
        number *= len(part)
    if number > LEVELS_MAX:
        raise refuse(
            "too_large",
            "GROUP BY is refused",
            f"It has more than {LEVELS_MAX} levels.",
            "ask them in several queries",
            position=text.position(group),
        )
    keys: list[exp.Expr] = []
    sets: list[tuple[int, ...]] = []
    for chosen in itertools.product(*parts):
        places: list[int] = []
        for key in itertools.chain.from_iterable(chosen):
            if key not in keys:
                keys.append(key)
            places.append(keys.index(key))
        sets.append(tuple(dict.fromkeys(places)))
    return Levels(tuple(keys), tuple(sets))


def _sets(item: exp.Expr) -> list[list[exp.Expr]]:
    """The sets of keys that a part of GROUP BY stands for."""
    if isinstance(item, exp.GroupingSets):
        return [keys for part in item.expressions for keys in _sets(part)]
    if isinstance(item, exp.Rollup):
        parts = [unbracketed(part) for part in item.expressions]
        return [[key for part in parts[:length] for key in part] for length in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        parts = [unbracketed(part) for part in item.expressions]
        if len(parts) > LEVELS_MAX.bit_length():
            # Too many, and not written out to say so.
            return [[]] * (LEVELS_MAX + 1)
        return [
            [key for part in chosen for key in part]
            for length in range(len(parts), -1, -1)
            for chosen in itertools.combinations(parts, length)
        ]
    return [unbracketed(item)]
