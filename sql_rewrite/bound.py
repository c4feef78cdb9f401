"""Plan to bounded plan: contribution bounds, keys, and statistics with their proved sensitivities.

One privacy unit owns at most `groups_per_unit` groups of a core, and in each of them a vector of integers that is worth
at most the rows allotted to it there (contribution.py). Adding or removing the unit therefore changes each statistic
by at most the sums below; the proofs are in mechanisms/moments.md and mechanisms/bounding.md. Where questions choose
the bounds, units are scaled to norms instead (normed.py).

What a statistic is, per aggregate:

    COUNT(*)                         units when a unit counts at most once in a group, else rows
    COUNT(DISTINCT unit)             units
    SUM(x) alone                     one sum of clipped integers
    SUM(x) with COUNT                sums of degree 1, clipped: COUNT and SUM share them
    AVG(x), with or without COUNT    Bernstein sums of degree 1, scaled
    AVG(x) with SUM(x)               both in one vector, at the same price
    VARIANCE(x), STDDEV(x)           Bernstein sums of degree 2, scaled: COUNT and AVG share them
    any of them of DISTINCT x        the same sums over different values, of which a unit brings in some (distinct.py)
    CORR(y, x), REGR_...(y, x)       products of Bernstein vectors of both values, scaled: COUNT(*) shares them
    MEDIAN(x), quantiles, MIN, MAX   counts on a tree of intervals, which all quantiles of x share

What an aggregate means does not depend on its company: SUM clips the sum of a unit, COUNT its rows, averages
and variances weigh a unit by its rows. Where a unit owns one row all of that is the same, and all share one vector.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import assert_never

from privacy.aggregate import AggregateFunction
from privacy.norms import NormPower
from privacy.policy import ColumnType, Dataset, KeyValue
from privacy.rank_tree import Drawn, RankTree, coordinates_on
from privacy.refusal import Collector
from privacy.statistic import (
    CoreStatistics,
    Encoding,
    Estimate,
    KeyColumn,
    Keys,
    Sensitivity,
    Statistic,
    StatisticKind,
)
from privacy.statistic_kind import coordinates_of
from sql_rewrite.bounded import BoundedCore, BoundedNorm, BoundedStatistic
from sql_rewrite.builder import Builder, Family, Pair
from sql_rewrite.choices import described_choice, hidden_candidates
from sql_rewrite.contribution import (
    FINE,
    NOMINAL_NORM,
    Bounding,
    Contribution,
    NormedContribution,
    contribution_of,
    contribution_over_atoms,
)
from sql_rewrite.distinct import different_values
from sql_rewrite.encodings import ROW_BITS, coarser, moment_encoding, refined, stepped_encoding, sum_encoding
from sql_rewrite.expressions import Canonical, Expression, describe, form_of, number_text
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.keys import key_domain
from sql_rewrite.levels import measured_levels
from sql_rewrite.named_ranks import asked_of
from sql_rewrite.normed import NormedBuilder, at_norms
from sql_rewrite.plan import Aggregate, Core, Plan
from sql_rewrite.ranks import check_hidden, tree_of
from sql_rewrite.refuse import refuse
from sql_rewrite.running_sums import measured_running
from sql_rewrite.statistics.registry import holder_of
from sql_rewrite.together import parts_of, with_joined_averages
from sql_rewrite.value_bounds import proved_range

__all__ = ["BoundedCore", "BoundedNorm", "BoundedStatistic", "bound", "bound_core"]


def bound(plan: Plan, *, power: NormPower = NormPower.L2) -> tuple[BoundedCore, ...]:
    """Bounds every core of the plan; where questions choose norms, they are of that power, and nominal.

    Errors: Refused with the findings of all cores (column_without_bounds, key_domain_too_large, ...).
    """
    findings = Collector()
    cores: list[BoundedCore] = []
    for core in plan.cores:
        with findings:
            cores.append(bound_core(core, plan.dataset, power=power))
    findings.refuse()
    return tuple(cores)


def bound_core(core: Core, dataset: Dataset, *, power: NormPower = NormPower.L2, joined: bool = True) -> BoundedCore:
    """Bounds one core. Errors: Refused, as `bound`.

    Without `joined`, each average has its own statistic (sql_rewrite/together.py), as up to version 0.12.0.
    """
    domains, cells = key_domain(core, dataset)
    if core.choice is not None:
        if cells is None:
            raise hidden_candidates(core)
        return _bound_choice(core, dataset, domains, cells)
    if core.atoms is not None:
        assert cells is not None
        contribution = contribution_over_atoms(core, cells, power)
    else:
        contribution = contribution_of(core, None if cells is None else len(cells), power)
    builder: _Builder | NormedBuilder
    match contribution:
        case Contribution():
            groups = contribution.groups
            builder = _Builder(core, dataset, contribution, cells=None if cells is None else len(cells), joined=joined)
        case NormedContribution():
            groups = contribution.cells
            builder = NormedBuilder(core, dataset, contribution, cells=None if cells is None else len(cells))
        case _:
            assert_never(contribution)
    selection = None
    if cells is None and not builder.selects_by_rows():
        selection = builder.selection()
    estimates = builder.estimates(selection)
    if cells is None and selection is None:
        selection = builder.selected_by
    if not builder.statistics:
        raise refuse(
            "unsupported_sql",
            "a query without an aggregate is refused",
            "Its groups are public, so there is nothing to measure.",
            "add COUNT(*) to the select list",
        )
    keys = Keys(
        columns=tuple(KeyColumn(name, key.type) for name, key in core.keys),
        domain=cells,
        groups_per_unit=groups,
        selection=selection,
    )
    bounded = BoundedCore(
        core=core,
        contribution=contribution,
        statistics=tuple(builder.statistics),
        domains=domains,
        described=CoreStatistics(
            name=core.name,
            keys=keys,
            statistics=tuple(bounded.statistic for bounded in builder.statistics),
            estimates=estimates,
            norms=tuple(norm.norm for norm in builder.norms),
            levels=measured_levels(core, builder.statistics, normed=bool(builder.norms)),
            running=measured_running(core, builder.statistics, cells, normed=bool(builder.norms)),
        ),
        norms=tuple(builder.norms),
    )
    return at_norms(bounded, dict.fromkeys((norm.norm.name for norm in builder.norms), NOMINAL_NORM))


def _bound_choice(
    core: Core,
    dataset: Dataset,
    domains: tuple[tuple[KeyValue, ...] | None, ...],
    cells: tuple[tuple[KeyValue, ...], ...],
) -> BoundedCore:
    """Bounds a core that releases keys alone: its only statistic is that of their score."""
    assert core.choice is not None
    contribution = contribution_of(core, len(cells))
    assert isinstance(contribution, Contribution)
    builder = _Builder(replace(core, aggregates=(core.choice.score,)), dataset, contribution, cells=len(cells))
    builder.estimates(None)
    columns = tuple(KeyColumn(name, key.type) for name, key in core.keys)
    keys = Keys(columns=columns, domain=cells, groups_per_unit=contribution.groups)
    (score,) = builder.statistics
    described = described_choice(core, keys, score.statistic)
    return BoundedCore(core, contribution, (score,), domains, described)


_SUMMED = (StatisticKind.SUM, StatisticKind.MOMENTS, StatisticKind.PRODUCTS, StatisticKind.COUNT)
"""The kinds of sums that one argument, or one pair, may have beside each other."""


class _Builder(Builder):
    """Where bounds hold what a unit adds."""

    def __init__(
        self, core: Core, dataset: Dataset, contribution: Contribution, *, cells: int | None, joined: bool = False
    ) -> None:
        super().__init__(core, dataset)
        self.contribution = contribution
        self._joined = joined
        self._cells = cells
        self._shared: dict[tuple[bool, Canonical | None, Canonical | None], str] = {}
        """Statistics that several aggregates may need, by whether they count units, filter and present value."""

    def aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates, with averages of two columns as means of pairs."""
        return with_joined_averages(self.core) if self._joined else self.core.aggregates

    def counted(self, family: Family, selection: str | None) -> bool:
        """Whether COUNT(*) of these rows is the number of units that a selection counts anyway."""
        return selection is not None and self._once and family.filter is None

    def selects_by_rows(self) -> bool:
        """Where hidden groups have moments of one argument, or averages of two, and nothing beside but a count of rows.

        A unit is one row of each of its groups, so all rows are all units: own_threshold.md. Other statistics would
        share the price either way, and a count of units is one by which groups are selected.
        """
        if self._cells is not None or not self._once:
            return False
        every = self.aggregates()
        counts, others = [one for one in every if one.argument is None], [one for one in every if one.argument]
        return (
            any(one.function.statistic is not StatisticKind.COUNT for one in others)
            and all(one.function is AggregateFunction.ROWS and one.filter is None for one in counts)
            and all(one.filter is None and not one.distinct and one.function.statistic in _SUMMED for one in others)
            and len({(form_of(one.argument), form_of(one.second)) for one in others}) == 1
            and (others[0].second is None or parts_of(others, self.core) == 2)
        )

    @property
    def _once(self) -> bool:
        """Whether a unit counts at most once in a group, so that its rows there are itself."""
        return self.contribution.rows == 1 and not self.contribution.scaled

    def units(self, condition: Expression | None) -> str:
        """The statistic that counts privacy units (with a row under `condition`) per cell."""
        key = (True, form_of(condition), None)
        if key not in self._shared:
            name = f"s{len(self.statistics)}"
            kind = StatisticKind.UNITS if condition is None else StatisticKind.COUNT
            self._add(name, kind, per_row=1, argument=None, condition=condition, text="privacy units", units=True)
            self._shared[key] = name
        return self._shared[key]

    def rows(self, condition: Expression | None) -> str:
        """The statistic that counts rows under a condition: units where each has one."""
        return self.units(condition) if self._once else self._count(condition, None, "rows")

    def _values(self, condition: Expression | None, present: Expression) -> str:
        """The statistic of COUNT(x) alone. Units are scaled by all their rows, with or without a value of x."""
        if self.contribution.scaled:
            return self._count(condition, present, "values")
        both = present if condition is None else build("and", (condition, present))
        return self.units(both) if self._once else self._count(both, None, "values")

    def _count(self, condition: Expression | None, present: Expression | None, text: str) -> str:
        key = (False, form_of(condition), form_of(present))
        if key not in self._shared:
            name = f"s{len(self.statistics)}"
            scaled = self.contribution.scaled
            # Scaled rows are counted in small parts, so that rounding down does not lose whole rows.
            encoding = Encoding(Fraction(0), Fraction(1, FINE), 0, FINE) if scaled else None
            self._add(
                name,
                StatisticKind.COUNT,
                per_row=FINE if scaled else 1,
                argument=None,
                condition=condition,
                present=present,
                text=text,
                encoding=encoding,
            )
            self._shared[key] = name
        return self._shared[key]

    def argument(self, family: Family, estimates: dict[str, Estimate], *, carries: bool) -> str | None:
        """Statistics of one argument. Returns the name of the moments that also count all rows, if there are any."""
        assert family.argument is not None
        sums, averages = family.needs(StatisticKind.SUM), family.needs(StatisticKind.MOMENTS)
        if not sums and not averages:
            statistic = self._values(family.filter, build("is_not_null", (family.argument,)))
            for aggregate in family.aggregates:
                # This statistic counts the rows in which x is present, so it holds nothing but counts of x.
                assert aggregate.function is AggregateFunction.VALUES
                estimates[aggregate.name] = Estimate(aggregate.name, AggregateFunction.ROWS, statistic, integer=True)
            return None
        argument = clip_columns(family.argument)
        lower, upper = proved_range(family.aggregates[0], argument)
        integer = argument.type is ColumnType.INTEGER
        degree, several = family.degree, not self.contribution.one_row
        counts = family.needs(StatisticKind.COUNT) or carries
        text = f"{describe(family.argument)} clipped to [{number_text(lower)}, {number_text(upper)}]"
        apart: str | None = None
        if sums and ((several and degree >= 2) or (degree == 0 and not counts)):
            encoding = sum_encoding(lower, upper, integer=integer, fine=self.contribution.scaled)
            apart = f"s{len(self.statistics)}"
            self._add(
                apart,
                StatisticKind.SUM,
                per_row=encoding.largest,
                argument=argument,
                condition=family.filter,
                text=text,
                encoding=encoding,
                bounding=Bounding.CLIPPED,
            )
        name: str | None = None
        if apart is None or degree:
            name = self._moments(
                family, argument, (lower, upper), text=text, degree=max(degree, 1), sums=sums and apart is None,
                carries=carries,
            )  # fmt: skip
        for aggregate in family.aggregates:
            holds = holder_of(aggregate.function, apart, name)
            whole = aggregate.function.whole(argument.type)
            estimates[aggregate.name] = Estimate(aggregate.name, aggregate.function, holds, integer=whole)
        return name

    def different(self, family: Family, estimates: dict[str, Estimate]) -> None:
        """Statistics of the different values of one argument: mechanisms/distinct.md. A row of them is a value."""
        for part in different_values(family):
            name = f"s{len(self.statistics)}"
            self._add(
                name,
                part.kind,
                per_row=part.per_value,
                argument=part.argument,
                condition=family.filter,
                text=part.text,
                encoding=part.encoding,
                degree=part.degree,
                distinct=part.distinct,
            )
            for aggregate in part.aggregates:
                # A statistic of its own holds nothing but the number of values.
                shown = AggregateFunction.ROWS if part.kind is StatisticKind.COUNT else aggregate.function
                whole = aggregate.function.whole(part.distinct.type)
                estimates[aggregate.name] = Estimate(aggregate.name, shown, name, integer=whole)

    def ranks(self, family: Family, estimates: dict[str, Estimate]) -> None:
        """One tree for all quantiles of an argument: each row is in one interval of each level."""
        assert family.argument is not None
        argument = clip_columns(family.argument)
        limits = proved_range(family.aggregates[0], argument)
        integer, scaled = argument.type is ColumnType.INTEGER, not self.contribution.one_row
        if self._cells is None:
            check_hidden(family, self.trees)
        tree, encoding, drawn = tree_of(
            family, limits, integer=integer, cells=self._cells, scaled=scaled, asked=asked_of(self.core, family)
        )
        name = f"s{len(self.statistics)}"
        self._add(
            name,
            StatisticKind.RANKS,
            per_row=tree.worth,
            argument=argument,
            condition=family.filter,
            text=f"{describe(family.argument)} clipped to [{number_text(limits[0])}, {number_text(limits[1])}]",
            encoding=encoding,
            tree=tree,
            drawn=drawn,
        )
        self.ranked(family, argument, name, estimates)

    def _moments(
        self,
        family: Family,
        argument: Expression,
        limits: tuple[Fraction, Fraction],
        *,
        text: str,
        degree: int,
        sums: bool,
        carries: bool,
    ) -> str:
        """Adds the vector that counts, averages and variances share, and where `sums` is set the sum too."""
        integer = argument.type is ColumnType.INTEGER
        bounding, raised, lowered = Bounding.SCALED, False, False
        if degree > 2:
            encoding = refined(coarser(moment_encoding(*limits, integer=integer), ROW_BITS // degree), degree)
        elif self.contribution.one_row:
            encoding = moment_encoding(*limits, integer=integer)
        elif sums:
            averages = family.needs(StatisticKind.MOMENTS)
            bounding = Bounding.BOTH if averages else Bounding.CLIPPED
            encoding = stepped_encoding(*limits, integer=integer)
            raised = averages and encoding.offset + encoding.step * encoding.highest > 0
            lowered = averages and encoding.offset < 0
        else:
            encoding = refined(moment_encoding(*limits, integer=integer), degree)
        name = f"s{len(self.statistics)}"
        self._add(
            name,
            StatisticKind.MOMENTS,
            per_row=encoding.highest**degree,
            argument=argument,
            condition=family.filter,
            text=text,
            encoding=encoding,
            degree=degree,
            counts_nulls=carries and argument.nullable,
            bounding=bounding,
            raised=raised,
            lowered=lowered,
        )
        return name

    product_bits = ROW_BITS

    def products(self, family: Family, pair: Pair, *, carries: bool) -> str:
        """Adds the statistic of a pair of values, which all aggregates of them share."""
        name = f"s{len(self.statistics)}"
        first, second = pair.encodings
        degrees = family.degree, family.second_degree
        self._add(
            name,
            StatisticKind.PRODUCTS,
            per_row=first.highest ** degrees[0] * second.highest ** degrees[1],
            argument=pair.arguments[0],
            condition=family.filter,
            text=pair.text,
            encoding=first,
            degree=degrees[0],
            counts_nulls=carries and pair.nullable,
            second=(pair.arguments[1], second, degrees[1]),
            parts=parts_of(family.aggregates, self.core),
        )
        return name

    def _add(
        self,
        name: str,
        kind: StatisticKind,
        *,
        per_row: int,
        argument: Expression | None,
        condition: Expression | None,
        text: str,
        present: Expression | None = None,
        encoding: Encoding | None = None,
        degree: int = 0,
        counts_nulls: bool = False,
        bounding: Bounding = Bounding.SCALED,
        raised: bool = False,
        lowered: bool = False,
        units: bool = False,
        distinct: Expression | None = None,
        second: tuple[Expression, Encoding, int] | None = None,
        tree: RankTree | None = None,
        drawn: Drawn | None = None,
        parts: int = 1,
    ) -> None:
        """Adds a statistic whose vector of one unit in one cell is worth its allotted rows, `per_row` each, in L1.

        Of ranks that is the vector of one level of the tree, and all levels have the same worth (quantiles.md): rows
        with a value weigh what moments of them would be worth.
        """
        contribution = self.contribution
        # Of different values a unit brings in some, whole: it is never scaled.
        scaled = contribution.scaled and not units and distinct is None
        other, other_encoding, other_degree = (None, None, 0) if second is None else second
        others, nodes = raised + lowered + counts_nulls, coordinates_on(tree, drawn)
        coordinates = coordinates_of(kind, degree=degree, second_degree=other_degree, others=others, nodes=nodes)
        # What rounding adds to a scaled unit is small beside a row: mechanisms/gaussian_moments.md counts on it.
        assert contribution.one_row or distinct is not None or degree * bool(per_row < FINE) < 2
        statistic = Statistic(
            name=name,
            kind=kind,
            sensitivity=self._sensitivity(per_row, coordinates, tree, units=units),
            coordinates=coordinates,
            encoding=encoding,
            degree=degree,
            counts_nulls=counts_nulls,
            raised=raised,
            lowered=lowered,
            fractional=scaled or (tree is not None and not contribution.one_row),
            argument=text,
            distinct=distinct is not None,
            second=other_encoding,
            second_degree=other_degree,
            tree=tree,
            drawn=drawn,
            parts=parts,
        )
        self.statistics.append(
            BoundedStatistic(
                statistic,
                argument=argument,
                filter=condition,
                rows=1 if units else contribution.rows,
                bounding=bounding,
                present=present,
                scaled=scaled,
                distinct=distinct,
                second=other,
            )
        )

    def _sensitivity(self, per_row: int, coordinates: int, tree: RankTree | None, *, units: bool) -> Sensitivity:
        """What one unit changes of a statistic, of whose cells each has so many coordinates.

        Over all cells L1 adds up and L2 adds up in squares; `Contribution` bounds both in rows. A unit that is
        counted as such is worth one row in each of its groups, whatever its rows. The levels of a tree add up too.
        """
        contribution = self.contribution
        groups = contribution.groups
        l1_rows = groups if units else contribution.l1_rows
        l2_squared_rows = groups if units else contribution.l2_squared_rows
        levels = 1 if tree is None else tree.levels
        # A unit with one row is in one node of each level.
        changed = levels if tree is not None and contribution.one_row else coordinates
        return Sensitivity(
            relation=self.dataset.neighbouring,
            l0=groups * changed,
            l1=Fraction(levels * l1_rows * per_row),
            l2_squared=Fraction(levels * l2_squared_rows * per_row**2),
            linf=Fraction((1 if units else contribution.rows) * per_row),
        )
