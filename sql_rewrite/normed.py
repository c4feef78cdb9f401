"""Statistics of units that are scaled to norms, and the same statistics at other norms.

Each unit has one factor min(1, C / |vector|) for each norm, and all that it adds under that norm is multiplied by it:
its rows, or its sums. Adding or removing a unit therefore changes a statistic by a vector of norm C at most, where a
row (a step of a sum) is as many integer units as the statistic says. mechanisms/norms.md has the proofs.

What a statistic is, per aggregate:

    COUNT(*), COUNT(x)               scaled rows, by the norm of the unit's rows under the filter
    AVG(x), VARIANCE(x), STDDEV(x)   Bernstein sums of scaled rows, by the same norm; COUNT(*) rides on them
    CORR(y, x), REGR_...(y, x)       products of Bernstein vectors of scaled rows, by the norm of all rows
    MEDIAN(x), quantiles, MIN, MAX   scaled rows counted on a tree of intervals, by the same norm on each level
    SUM(x)                           scaled sums, by the norm of the unit's sums
    COUNT(DISTINCT unit)             scaled units, by the norm of ones; units where each is in one cell at most
    selection of hidden groups       weights, 1 / sqrt(k) in each of a unit's k groups; units where each is in one

Whole numbers need no value bounds in a SUM: the norm holds them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from privacy.aggregate import AggregateFunction
from privacy.norms import NORM_GRAIN, NORM_MAX, Norm, NormOf, NormPower
from privacy.policy import ColumnType, Dataset
from privacy.rank_tree import Drawn, RankTree, coordinates_on
from privacy.statistic import Encoding, Estimate, Sensitivity, Statistic, StatisticKind
from privacy.statistic_kind import coordinates_of
from sql_rewrite.bounded import BoundedCore, BoundedNorm, BoundedStatistic, finer
from sql_rewrite.builder import Builder, Family, Pair
from sql_rewrite.contribution import Bounding, NormedContribution
from sql_rewrite.encodings import (
    coarser,
    moment_encoding,
    normed_moment_encoding,
    normed_row_bits,
    normed_sum_encoding,
)
from sql_rewrite.expressions import Canonical, Expression, describe, form_of, interval_of, number_text
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.named_ranks import asked_of
from sql_rewrite.plan import Aggregate, Core
from sql_rewrite.ranks import SCALED_PARTS, check_hidden, tree_of
from sql_rewrite.value_bounds import MAGNITUDE_MAX, proved_range

__all__ = ["PARTS_LEAST", "PARTS_MOST", "WEIGHT_PARTS", "NormedBuilder", "at_norms", "greatest_norm", "parts_at"]

PARTS_LEAST, PARTS_MOST = 12, 30
"""Binary places of a unit's factor."""

WEIGHT_PARTS = 20
"""Binary places of the weights by which hidden groups are selected."""

_PARTS_NARROW = 20
"""So many places are enough to give up more of them for sums of 64 bits."""

_NARROW, _WIDE = 62, 86
"""Bits of what one unit adds to one cell: 2^86 of each of 2^40 units stay below 2^127."""


class NormedBuilder(Builder):
    """Where norms hold what a unit adds."""

    def __init__(
        self, core: Core, dataset: Dataset, contribution: NormedContribution, *, cells: int | None = None
    ) -> None:
        super().__init__(core, dataset)
        self.contribution = contribution
        self._cells = cells
        self._shared: dict[tuple[NormOf, Canonical | None, Canonical | None], str] = {}
        self._norms: dict[tuple[NormOf, Canonical | None, Canonical | None], str] = {}

    def units(self, condition: Expression | None) -> str:
        """The statistic that counts privacy units (with a row under `condition`) per cell."""
        key = (NormOf.UNITS, form_of(condition), None)
        if key not in self._shared:
            # A unit that is in one cell at most needs no norm: it counts once.
            alone = self.contribution.cells == 1
            kind = StatisticKind.UNITS if alone and condition is None else StatisticKind.COUNT
            norm = None if alone else self._norm(NormOf.UNITS, condition)
            self._shared[key] = self._add(kind, norm, condition=condition, text="privacy units", rows=1)
        return self._shared[key]

    def selection(self) -> str:
        """Units where each is in one cell at most, else weights, whose norm is one whatever is chosen."""
        cells = self.contribution.cells
        if cells == 1:
            return self.units(None)
        relation, whole = self.dataset.neighbouring, Fraction(2**WEIGHT_PARTS)
        statistic = Statistic(
            name=f"s{len(self.statistics)}",
            kind=StatisticKind.WEIGHTS,
            sensitivity=Sensitivity(relation, l0=cells, l1=whole * _root_up(cells), l2_squared=whole**2, linf=whole),
            encoding=Encoding(Fraction(0), 1 / whole, 0, int(whole)),
            argument="privacy units, each weighted by its number of groups",
        )
        self.statistics.append(
            BoundedStatistic(statistic=statistic, argument=None, filter=None, rows=1, bounding=Bounding.SCALED)
        )
        return statistic.name

    def rows(self, condition: Expression | None) -> str:
        """The statistic that counts rows under a condition."""
        return self._count(condition, None, "rows")

    def argument(self, family: Family, estimates: dict[str, Estimate], *, carries: bool) -> str | None:
        """Statistics of one argument. Returns the name of the moments that also count all rows, if there are any."""
        assert family.argument is not None
        argument = clip_columns(family.argument)
        sums, averages = family.needs(StatisticKind.SUM), family.needs(StatisticKind.MOMENTS)
        holders: dict[StatisticKind, str] = {}
        moments: str | None = None
        if averages:
            moments = self._moments(family, argument, carries=carries)
            holders = {StatisticKind.MOMENTS: moments, StatisticKind.COUNT: moments}
        elif family.needs(StatisticKind.COUNT):
            present = build("is_not_null", (family.argument,))
            holders[StatisticKind.COUNT] = self._count(family.filter, present, "values")
        if sums:
            holders[StatisticKind.SUM] = self._sum(family, argument)
        for aggregate in family.aggregates:
            function = aggregate.function
            # A statistic of its own counts the rows in which x is present, so it holds nothing but counts of x.
            counted = function is AggregateFunction.VALUES and moments is None
            estimates[aggregate.name] = Estimate(
                aggregate.name,
                AggregateFunction.ROWS if counted else function,
                holders[function.statistic],
                integer=function.whole(argument.type),
            )
        return moments

    def different(self, family: Family, estimates: dict[str, Estimate]) -> None:
        """Nothing: scaling does not bound what a value adds that several units share (mechanisms/distinct.md)."""
        raise AssertionError("counts bound the different values of a unit")

    def ranks(self, family: Family, estimates: dict[str, Estimate]) -> None:
        """One tree for all quantiles of an argument, by the norm of the unit's rows."""
        assert family.argument is not None
        argument = clip_columns(family.argument)
        limits = proved_range(family.aggregates[0], argument)
        if self._cells is None:
            check_hidden(family, self.trees)
        integer = argument.type is ColumnType.INTEGER
        tree, encoding, drawn = tree_of(
            family, limits, integer=integer, cells=self._cells, scaled=True, asked=asked_of(self.core, family)
        )
        name = self._add(
            StatisticKind.RANKS, self._norm(NormOf.ROWS, family.filter), condition=family.filter, argument=argument,
            encoding=encoding, text=_clipped_text(family.argument, *limits), rows=self.contribution.rows, tree=tree,
            drawn=drawn,
        )  # fmt: skip
        self.ranked(family, argument, name, estimates)

    def _count(self, condition: Expression | None, present: Expression | None, text: str) -> str:
        key = (NormOf.ROWS, form_of(condition), form_of(present))
        if key not in self._shared:
            norm = self._norm(NormOf.ROWS, condition)
            self._shared[key] = self._add(
                StatisticKind.COUNT, norm, condition=condition, present=present, text=text, rows=self.contribution.rows
            )
        return self._shared[key]

    def _sum(self, family: Family, argument: Expression) -> str:
        """The statistic of a SUM, which has one of its own whatever stands beside it."""
        assert family.argument is not None
        aggregate = next(a for a in family.aggregates if a.function.statistic is StatisticKind.SUM)
        lower, upper = _sum_range(aggregate, argument)
        integer = argument.type is ColumnType.INTEGER
        encoding = normed_sum_encoding(lower, upper, integer=integer, rows=self.contribution.rows)
        text = _clipped_text(family.argument, lower, upper)
        norm = self._norm(NormOf.SUM, family.filter, argument, encoding, text=text)
        return self._add(
            StatisticKind.SUM, norm, condition=family.filter, argument=argument, encoding=encoding, text=text,
            rows=self.contribution.rows, bounding=Bounding.CLIPPED,
        )  # fmt: skip

    def _moments(self, family: Family, argument: Expression, *, carries: bool) -> str:
        """The vector that counts, averages and variances share."""
        assert family.argument is not None
        aggregate = next(a for a in family.aggregates if a.function.statistic is StatisticKind.MOMENTS)
        lower, upper = proved_range(aggregate, argument)
        integer = argument.type is ColumnType.INTEGER
        degree = family.degree
        if degree > 2:
            encoding = coarser(moment_encoding(lower, upper, integer=integer), self.product_bits // degree)
        else:
            encoding = normed_moment_encoding(lower, upper, integer=integer, degree=degree)
        return self._add(
            StatisticKind.MOMENTS, self._norm(NormOf.ROWS, family.filter), condition=family.filter, argument=argument,
            encoding=encoding, text=_clipped_text(family.argument, lower, upper), rows=self.contribution.rows,
            degree=family.degree, counts_nulls=carries and argument.nullable,
        )  # fmt: skip

    @property
    def product_bits(self) -> int:
        """What a unit of all rows that are stored leaves."""
        return normed_row_bits(self.contribution.rows)

    def products(self, family: Family, pair: Pair, *, carries: bool) -> str:
        """Adds the statistic of a pair of values, by the norm of the unit's rows."""
        (argument, other), (encoding, second) = pair.arguments, pair.encodings
        return self._add(
            StatisticKind.PRODUCTS, self._norm(NormOf.ROWS, family.filter), condition=family.filter, argument=argument,
            encoding=encoding, text=pair.text, rows=self.contribution.rows, degree=family.degree,
            counts_nulls=carries and pair.nullable, second=(other, second, family.second_degree),
        )  # fmt: skip

    def _norm(
        self,
        of: NormOf,
        condition: Expression | None,
        argument: Expression | None = None,
        encoding: Encoding | None = None,
        *,
        text: str | None = None,
    ) -> str:
        """The norm of a vector, which several statistics may share."""
        key = (of, form_of(condition), form_of(argument))
        if key not in self._norms:
            name = f"n{len(self.norms)}"
            said = of.value if text is None else text
            self.norms.append(
                BoundedNorm(
                    norm=Norm(
                        name=name,
                        power=self.contribution.power,
                        of=of,
                        step=Fraction(1) if encoding is None else encoding.step,
                        text=said if condition is None else f"{said} where {describe(condition)}",
                    ),
                    filter=condition,
                    argument=argument,
                    encoding=encoding,
                    most=greatest_norm(of, self.contribution, encoding),
                )
            )
            self._norms[key] = name
        return self._norms[key]

    def _add(
        self,
        kind: StatisticKind,
        norm: str | None,
        *,
        condition: Expression | None,
        text: str,
        rows: int,
        argument: Expression | None = None,
        present: Expression | None = None,
        encoding: Encoding | None = None,
        degree: int = 0,
        counts_nulls: bool = False,
        bounding: Bounding = Bounding.SCALED,
        second: tuple[Expression, Encoding, int] | None = None,
        tree: RankTree | None = None,
        drawn: Drawn | None = None,
    ) -> str:
        """Adds a statistic. One under a norm gets its encoding and sensitivity from `at_norms`."""
        name = f"s{len(self.statistics)}"
        if kind is StatisticKind.COUNT and norm is not None:
            encoding = Encoding(Fraction(0), Fraction(1), 0, 1)
        one = Fraction(1)
        coordinates = coordinates_of(
            kind,
            degree=degree,
            second_degree=0 if second is None else second[2],
            others=counts_nulls,
            nodes=coordinates_on(tree, drawn),
        )
        self.statistics.append(
            BoundedStatistic(
                statistic=Statistic(
                    name=name,
                    kind=kind,
                    sensitivity=Sensitivity(self.dataset.neighbouring, l0=1, l1=one, l2_squared=one, linf=one),
                    coordinates=coordinates,
                    encoding=encoding,
                    degree=degree,
                    counts_nulls=counts_nulls,
                    fractional=norm is not None,
                    argument=text,
                    norm=norm,
                    second=None if second is None else second[1],
                    second_degree=0 if second is None else second[2],
                    tree=tree,
                    drawn=drawn,
                ),
                argument=argument,
                filter=condition,
                rows=rows,
                bounding=bounding,
                present=present,
                second=None if second is None else second[0],
            )
        )
        return name


def at_norms(bounded: BoundedCore, norms: Mapping[str, Fraction]) -> BoundedCore:
    """The core with these norms, by name: its sensitivities, encodings and, by `lower`, its statement.

    A pure function. Norms are rounded up to whole multiples of NORM_GRAIN, and lowered to the greatest that a unit can
    have: `contribution` says what they are then. A core without norms is returned as it is.
    Errors: KeyError when a norm is missing, ValueError for one that is not positive or beyond NORM_MAX.
    """
    contribution = bounded.contribution
    if not isinstance(contribution, NormedContribution) or not bounded.norms:
        return bounded
    chosen = {item.norm.name: _settled(norms[item.norm.name], item) for item in bounded.norms}
    sizes: dict[str, int] = dict.fromkeys(chosen, 1)
    for item in bounded.statistics:
        if item.statistic.norm is not None:
            sizes[item.statistic.norm] = max(sizes[item.statistic.norm], _size(item))
    degrees: dict[str, int] = dict.fromkeys(chosen, 1)
    for item in bounded.statistics:
        if item.statistic.norm is not None:
            degrees[item.statistic.norm] = max(degrees[item.statistic.norm], item.statistic.degree)
    parts = {name: parts_at(norm, sizes[name], degree=degrees[name]) for name, norm in chosen.items()}
    statistics = tuple(
        item
        if item.statistic.norm is None
        else _scaled(item, contribution, chosen[item.statistic.norm], parts[item.statistic.norm])
        for item in bounded.statistics
    )
    return replace(
        bounded,
        contribution=replace(contribution, norms=tuple(chosen.items())),
        statistics=statistics,
        described=replace(bounded.described, statistics=tuple(item.statistic for item in statistics)),
    )


def greatest_norm(of: NormOf, contribution: NormedContribution, encoding: Encoding | None) -> Fraction:
    """The greatest norm that a unit can have, by declarations alone."""
    match of:
        case NormOf.ROWS:
            most = Fraction(contribution.rows)
        case NormOf.UNITS:
            most = contribution.power.choose(l1=Fraction(contribution.cells), l2=_root_up(contribution.cells))
        case NormOf.SUM:
            assert encoding is not None
            most = Fraction(contribution.rows * encoding.largest)
        case _:
            assert_never(of)
    return min(_grained(most), Fraction(NORM_MAX))


def parts_at(norm: Fraction, size: int, *, degree: int = 1) -> int:
    """Binary places of the factors of a norm under which a row is worth at most `size`: an even number.

    Of moments of degree 3 or 4 it is one that all degrees divide, since each takes its part of it for its steps.

    As many as keep what a unit adds in 64 bits, unless those are too few; then as many as keep all sums in 128.
    """
    bits = math.ceil(norm * size - 1).bit_length()
    narrow = _NARROW - bits
    parts = min(PARTS_MOST, narrow if narrow >= _PARTS_NARROW else _WIDE - bits)
    parts -= parts % (2 if degree <= 2 else PARTS_LEAST)
    assert parts >= PARTS_LEAST
    return parts


def _settled(norm: Fraction, item: BoundedNorm) -> Fraction:
    if not 0 < norm <= NORM_MAX:
        raise ValueError("a norm must be greater than zero and at most 2^40")
    return min(_grained(norm), item.most)


def _grained(value: Fraction) -> Fraction:
    return math.ceil(value / NORM_GRAIN) * NORM_GRAIN


def _root_up(number: int) -> Fraction:
    """The square root rounded up to 20 binary places; exact for squares."""
    root = math.isqrt(number << 40)
    return Fraction(root if root * root == number << 40 else root + 1, 1 << 20)


def _size(item: BoundedStatistic) -> int:
    """Integer units of a row (a step of a sum) before its unit is scaled."""
    return item.row_units


def _scaled(item: BoundedStatistic, contribution: NormedContribution, norm: Fraction, parts: int) -> BoundedStatistic:
    """The statistic where units are scaled to a norm by factors of so many binary places."""
    encoding, statistic = item.row_encoding, item.statistic
    if statistic.tree is not None:
        encoding = statistic.encoding
        # Of its own: so many that the weights of all rows of a table stay below 2^60, whatever stands beside it.
        parts = SCALED_PARTS
    assert encoding is not None
    worth = norm * _size(item) * 2**parts
    cells, levels = contribution.cells, 1 if statistic.tree is None else statistic.tree.levels
    match contribution.power:
        case NormPower.L1:
            l1 = levels * worth
        case NormPower.L2:
            l1 = levels * worth * _root_up(cells)
        case _:
            assert_never(contribution.power)
    return replace(
        item,
        parts=parts,
        statistic=replace(
            statistic,
            encoding=encoding if statistic.tree is not None else finer(encoding, parts // max(1, statistic.degree)),
            sensitivity=Sensitivity(
                relation=statistic.sensitivity.relation,
                l0=cells * statistic.coordinates,
                l1=l1,
                l2_squared=levels * worth**2,
                linf=worth,
            ),
        ),
    )


def _sum_range(aggregate: Aggregate, argument: Expression) -> tuple[Fraction | None, Fraction | None]:
    """The range of a SUM's argument; of whole numbers it may be unknown."""
    if argument.type is not ColumnType.INTEGER:
        return proved_range(aggregate, argument)
    interval = interval_of(argument)
    lower, upper = interval.lower, interval.upper
    if lower is None or upper is None or max(abs(lower), abs(upper)) > MAGNITUDE_MAX:
        return None, None
    return lower, upper


def _clipped_text(argument: Expression, lower: Fraction | None, upper: Fraction | None) -> str:
    if lower is None or upper is None:
        return describe(argument)
    return f"{describe(argument)} clipped to [{number_text(lower)}, {number_text(upper)}]"
