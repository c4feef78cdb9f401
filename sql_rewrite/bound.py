"""Plan to bounded plan: contribution bounds, keys, and statistics with their proved sensitivities.

One privacy unit owns at most `groups_per_unit` groups of a core, and in each of them a vector of integers that is worth
at most the rows allotted to it there (contribution.py). Adding or removing the unit therefore changes each statistic
by at most the sums below; the proofs are in mechanisms/moments.md and mechanisms/bounding.md.

What a statistic is, per aggregate:

    COUNT(*)                         units when a unit counts at most once in a group, else rows
    COUNT(DISTINCT unit)             units
    SUM(x) alone                     one sum of clipped integers
    SUM(x) with COUNT                sums of degree 1, clipped: COUNT and SUM share them
    AVG(x), with or without COUNT    Bernstein sums of degree 1, scaled
    AVG(x) with SUM(x)               both in one vector, at the same price
    VARIANCE(x), STDDEV(x)           Bernstein sums of degree 2, scaled: COUNT and AVG share them

What an aggregate means does not depend on its company: SUM clips the sum of a unit, COUNT its rows, averages
and variances weigh a unit by its rows. Where a unit owns one row all of that is the same, and all share one vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType, Dataset, KeyValue
from privacy.refusal import Collector, Finding, Refused
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
from sql_rewrite.clipped import clipped_columns
from sql_rewrite.contribution import FINE, Bounding, Contribution, contribution_of
from sql_rewrite.expressions import (
    Call,
    ColumnRef,
    Expression,
    Interval,
    Literal,
    Value,
    canonical,
    columns_of,
    describe,
    interval_of,
)
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.functions.moments import has_calendar_range
from sql_rewrite.functions.operator import TypeRefused
from sql_rewrite.keys import key_domain
from sql_rewrite.plan import Aggregate, Core, Plan

__all__ = ["BoundedCore", "BoundedStatistic", "bound", "bound_core"]

WIDTH_MAX = 2**30
"""Most steps between the bounds of a value: with it every product of the bounding SQL stays below 2^127."""

MAGNITUDE_MAX = Fraction(10**15)
"""Largest absolute value bound that is accepted; beyond it doubles lose whole units."""

STEP_EXPONENT_MIN = -900
"""Exponent of the finest step: a power of two that a double holds exactly, and whose reciprocal is finite."""


@dataclass(frozen=True, slots=True)
class BoundedStatistic:
    """A statistic with what the lowering needs: the clipped argument, the filter, and the bound per unit and cell.

    A unit's rows under `filter` are allotted; of them those under `present` count (COUNT(x) alone). `scaled` says that
    the bound over all groups may bind.
    """

    statistic: Statistic
    argument: Expression | None
    filter: Expression | None
    rows: int
    bounding: Bounding = Bounding.SCALED
    present: Expression | None = None
    scaled: bool = False


@dataclass(frozen=True, slots=True)
class BoundedCore:
    """A core whose every sum has a proved sensitivity."""

    core: Core
    contribution: Contribution
    statistics: tuple[BoundedStatistic, ...]
    domains: tuple[tuple[KeyValue, ...] | None, ...]
    """Public values of each key, or None: rows with other values do not take part."""
    described: CoreStatistics

    def clipped(self) -> tuple[tuple[str, Value, Value], ...]:
        """The columns of which values beyond their declared bounds count as the bound, with the bounds."""
        return tuple(clipped_columns(bounded.argument for bounded in self.statistics))


def bound(plan: Plan) -> tuple[BoundedCore, ...]:
    """Bounds every core of the plan.

    Errors: Refused with the findings of all cores (column_without_bounds, key_domain_too_large, ...).
    """
    findings = Collector()
    cores: list[BoundedCore] = []
    for core in plan.cores:
        with findings:
            cores.append(bound_core(core, plan.dataset))
    findings.refuse()
    return tuple(cores)


def bound_core(core: Core, dataset: Dataset) -> BoundedCore:
    """Bounds one core. Errors: Refused, as `bound`."""
    domains, cells = key_domain(core, dataset)
    contribution = contribution_of(core, None if cells is None else len(cells))
    builder = _Builder(core, dataset, contribution)
    selection = None
    if cells is None:
        selection = builder.units(None)
    estimates = builder.estimates(selection)
    if not builder.statistics:
        raise Refused(
            [
                Finding(
                    code="unsupported_sql",
                    what="a query without an aggregate is refused",
                    why="Its groups are public, so there is nothing to measure.",
                    instead=("add COUNT(*) to the select list",),
                )
            ]
        )
    keys = Keys(
        columns=tuple(KeyColumn(name, key.type) for name, key in core.keys),
        domain=cells,
        groups_per_unit=contribution.groups,
        selection=selection,
    )
    return BoundedCore(
        core=core,
        contribution=contribution,
        statistics=tuple(builder.statistics),
        domains=domains,
        described=CoreStatistics(
            name=core.name,
            keys=keys,
            statistics=tuple(bounded.statistic for bounded in builder.statistics),
            estimates=estimates,
        ),
    )


@dataclass(slots=True)
class _Family:
    """Aggregates of one argument under one filter."""

    argument: Expression | None
    filter: Expression | None
    aggregates: list[Aggregate]

    def needs(self, kind: StatisticKind) -> bool:
        """Whether an aggregate of the family is computed from this kind of sums."""
        return any(aggregate.function.statistic is kind for aggregate in self.aggregates)

    @property
    def degree(self) -> int:
        """The least degree of moments that holds all of the family's averages and variances; zero without one."""
        return max(aggregate.function.degree for aggregate in self.aggregates)


class _Builder:
    """Turns the aggregates of one core into statistics and estimates."""

    def __init__(self, core: Core, dataset: Dataset, contribution: Contribution) -> None:
        self.core = core
        self.dataset = dataset
        self.contribution = contribution
        self.statistics: list[BoundedStatistic] = []
        self._units: dict[str, str] = {}

    def estimates(self, selection: str | None) -> tuple[Estimate, ...]:
        """All aggregates as estimates; adds the statistics that they need."""
        families: dict[str, _Family] = {}
        for aggregate in self.core.aggregates:
            form = repr((_form(aggregate.argument), _form(aggregate.filter)))
            families.setdefault(form, _Family(aggregate.argument, aggregate.filter, [])).aggregates.append(aggregate)
        estimates: dict[str, Estimate] = {}
        findings = Collector()
        carriers: dict[str, str] = {}  # filter form -> moments statistic that counts every row under that filter
        wants_rows = {
            repr(_form(family.filter))
            for family in families.values()
            if family.argument is None and family.needs(StatisticKind.COUNT)
        }
        for family in families.values():
            if family.argument is None:
                continue
            filter_form = repr(_form(family.filter))
            # A count of all rows rides on the first sums that see the same rows, unless counting units is free.
            carries = filter_form in wants_rows and filter_form not in carriers and not self._counted(family, selection)
            with findings:
                name = self._argument(family, estimates, carries=carries)
                if carries and name is not None:
                    carriers[filter_form] = name
        findings.refuse()
        for family in families.values():
            if family.argument is not None:
                continue
            for aggregate in family.aggregates:
                estimates[aggregate.name] = self._without_argument(family, aggregate, carriers)
        return tuple(estimates[aggregate.name] for aggregate in self.core.aggregates)

    def _without_argument(self, family: _Family, aggregate: Aggregate, carriers: dict[str, str]) -> Estimate:
        """The estimate of a count of rows or units."""
        function = aggregate.function
        match function.statistic:
            case StatisticKind.UNITS:
                # Units under a filter are counted as rows, at most one of each unit.
                shown = function if family.filter is None else AggregateFunction.ROWS
                statistic = self.units(family.filter)
            case StatisticKind.COUNT:
                shown, statistic = function, self._rows(family, carriers)
            case StatisticKind.SUM | StatisticKind.MOMENTS:
                raise AssertionError("sums and moments have an argument")
            case _:
                assert_never(function.statistic)
        return Estimate(aggregate.name, shown, statistic, integer=function.whole(None))

    def _counted(self, family: _Family, selection: str | None) -> bool:
        """Whether COUNT(*) of these rows is the number of units that a selection counts anyway."""
        return selection is not None and self._once and family.filter is None

    @property
    def _once(self) -> bool:
        """Whether a unit counts at most once in a group, so that its rows there are itself."""
        return self.contribution.rows == 1 and not self.contribution.scaled

    def units(self, condition: Expression | None) -> str:
        """The statistic that counts privacy units (with a row under `condition`) per cell."""
        form = repr(_form(condition))
        if form not in self._units:
            name = f"s{len(self.statistics)}"
            kind = StatisticKind.UNITS if condition is None else StatisticKind.COUNT
            self._add(name, kind, per_row=1, argument=None, condition=condition, text="privacy units", units=True)
            self._units[form] = name
        return self._units[form]

    def _rows(self, family: _Family, carriers: dict[str, str]) -> str:
        form = repr(_form(family.filter))
        if form in carriers:
            return carriers[form]
        if self._once:
            return self.units(family.filter)
        return self._count(family.filter, None, "rows")

    def _values(self, condition: Expression | None, present: Expression) -> str:
        """The statistic of COUNT(x) alone. Where units are scaled, by their rows whether x is there or not."""
        if self.contribution.scaled:
            return self._count(condition, present, "values")
        both = present if condition is None else build("and", (condition, present))
        return self.units(both) if self._once else self._count(both, None, "values")

    def _count(self, condition: Expression | None, present: Expression | None, text: str) -> str:
        form = "rows" + repr((_form(condition), _form(present)))
        if form not in self._units:
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
            self._units[form] = name
        return self._units[form]

    def _argument(self, family: _Family, estimates: dict[str, Estimate], *, carries: bool) -> str | None:
        """Statistics of one argument. Returns the name of moments that also count all rows, if they do."""
        assert family.argument is not None
        sums, averages = family.needs(StatisticKind.SUM), family.needs(StatisticKind.MOMENTS)
        if not sums and not averages:
            statistic = self._values(family.filter, build("is_not_null", (family.argument,)))
            for aggregate in family.aggregates:
                # The rows of this statistic are those where x is there: no other count of x is among them.
                assert aggregate.function is AggregateFunction.VALUES
                estimates[aggregate.name] = Estimate(aggregate.name, AggregateFunction.ROWS, statistic, integer=True)
            return None
        argument = clip_columns(family.argument)
        lower, upper = self._bounds(family, argument)
        integer = argument.type is ColumnType.INTEGER
        degree, several = family.degree, not self.contribution.one_row
        counts = family.needs(StatisticKind.COUNT) or carries
        text = f"{describe(family.argument)} clipped to [{_number(lower)}, {_number(upper)}]"
        apart: str | None = None
        if sums and ((several and degree == 2) or (degree == 0 and not counts)):
            encoding = _sum_encoding(lower, upper, integer=integer, fine=self.contribution.scaled)
            apart = f"s{len(self.statistics)}"
            self._add(
                apart,
                StatisticKind.SUM,
                per_row=max(abs(encoding.lowest), abs(encoding.highest), 1),
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
            holds = _holder(aggregate.function, apart, name)
            whole = aggregate.function.whole(argument.type)
            estimates[aggregate.name] = Estimate(aggregate.name, aggregate.function, holds, integer=whole)
        return name

    def _moments(
        self,
        family: _Family,
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
        if self.contribution.one_row:
            encoding = _moment_encoding(*limits, integer=integer)
        elif sums:
            averages = family.needs(StatisticKind.MOMENTS)
            bounding = Bounding.BOTH if averages else Bounding.CLIPPED
            encoding = _stepped_encoding(*limits, integer=integer)
            raised = averages and encoding.offset + encoding.step * encoding.highest > 0
            lowered = averages and encoding.offset < 0
        else:
            encoding = _fine(_moment_encoding(*limits, integer=integer), degree)
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

    def _bounds(self, family: _Family, argument: Expression) -> tuple[Fraction, Fraction]:
        """The proved range of an aggregate's argument, or a refusal that names the ways out."""
        interval = interval_of(_without_calendar(argument))
        aggregate = family.aggregates[0]
        if (
            interval.lower is None
            or interval.upper is None
            or (argument.type is ColumnType.INTEGER and max(abs(interval.lower), abs(interval.upper)) > MAGNITUDE_MAX)
        ):
            assert family.argument is not None
            why, instead = _unbounded(family.argument)
            inner = describe(family.argument)
            raise Refused(
                [
                    Finding(
                        code="column_without_bounds",
                        what=f"{aggregate.text} is refused",
                        why=why,
                        instead=(
                            f"{_call(aggregate.text)}(GREATEST(<lowest>, LEAST({inner}, <highest>)))",
                            *instead,
                            "use COUNT(*), which needs no bounds",
                        ),
                        position=aggregate.position,
                    )
                ]
            )
        if max(abs(interval.lower), abs(interval.upper)) > MAGNITUDE_MAX:
            raise Refused(
                [
                    Finding(
                        code="column_without_bounds",
                        what=f"{aggregate.text} is refused",
                        why="The bounds of its argument are larger than 1e15, so the answer would be all noise.",
                        instead=("declare tighter bounds, or clip the argument with GREATEST and LEAST",),
                        position=aggregate.position,
                    )
                ]
            )
        return interval.lower, interval.upper

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
    ) -> None:
        """Adds a statistic whose vector of one unit in one cell is worth its allotted rows, `per_row` each, in L1.

        Over all cells L1 adds up and L2 adds up in squares; `Contribution` bounds both in rows. A unit that is
        counted as such is worth one row in each of its groups, whatever its rows.
        """
        contribution = self.contribution
        groups, rows = contribution.groups, 1 if units else contribution.rows
        scaled = contribution.scaled and not units
        l1_rows = groups if units else contribution.l1_rows
        l2_squared_rows = groups if units else contribution.l2_squared_rows
        coordinates = degree + 1 + raised + lowered + counts_nulls if degree else 1
        self.statistics.append(
            BoundedStatistic(
                statistic=Statistic(
                    name=name,
                    kind=kind,
                    sensitivity=Sensitivity(
                        relation=self.dataset.neighbouring,
                        l0=groups * coordinates,
                        l1=Fraction(l1_rows * per_row),
                        l2_squared=Fraction(l2_squared_rows * per_row**2),
                        linf=Fraction(rows * per_row),
                    ),
                    coordinates=coordinates,
                    encoding=encoding,
                    degree=degree,
                    counts_nulls=counts_nulls,
                    raised=raised,
                    lowered=lowered,
                    fractional=scaled,
                    argument=text,
                ),
                argument=argument,
                filter=condition,
                rows=rows,
                bounding=bounding,
                present=present,
                scaled=scaled,
            )
        )


def _holder(function: AggregateFunction, sum_alone: str | None, shared: str | None) -> str:
    """Which of a family's statistics holds an aggregate: the sum by itself where there is one, or the moments."""
    match function.statistic:
        case StatisticKind.SUM:
            holds = shared if sum_alone is None else sum_alone
        case StatisticKind.COUNT | StatisticKind.MOMENTS:
            holds = shared
        case StatisticKind.UNITS:
            raise AssertionError("units have no argument")
        case _:
            assert_never(function.statistic)
    assert holds is not None
    return holds


_LIMITLESS = "so one person could change it without limit."


def _without_calendar(argument: Expression) -> Expression:
    """The argument with differences of dates that have no declared bounds as columns of which nothing is known.

    9,999 years are a range, and an average within it would be noise alone. Where the query clips it, it has another.
    """
    if isinstance(argument, Call) and has_calendar_range(argument):
        wide = Interval(Fraction(-(2**62)), Fraction(2**62)) if argument.type is ColumnType.INTEGER else None
        return ColumnRef("", "", argument.type, interval=wide)
    if not isinstance(argument, Call) or argument.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
        return argument
    arguments = tuple(_without_calendar(part) for part in argument.arguments)
    if all(new is old for new, old in zip(arguments, argument.arguments, strict=True)):
        return argument
    try:
        return build(argument.operator, arguments)
    except TypeRefused:  # beyond 128 bits with an argument of which nothing is known
        return ColumnRef("", "", ColumnType.NUMBER)


def _unbounded(argument: Expression) -> tuple[str, tuple[str, ...]]:
    """Why an argument has no range, and what may help: the columns, or the operator, from which that comes."""
    columns: dict[str, None] = {}
    stack: list[Expression] = [argument]
    while stack:
        node = stack.pop()
        if isinstance(node, ColumnRef):
            columns[f'"{node.name}"'] = None
        if not isinstance(node, Call):
            continue
        if has_calendar_range(node):
            dates = [column for column in columns_of(node) if column.declared is None]
            columns.update(dict.fromkeys(f'"{column.name}"' for column in dates))
            if dates:
                continue
        if node.operator in ("cast_integer", "cast_number") and node.arguments[0].type is ColumnType.TEXT:
            return f"{describe(node)} reads text as a number, and a text can hold any number, {_LIMITLESS}", ()
        culprits = [part for part in node.arguments if not _has_range(part)]
        if not culprits:
            return f"{describe(node)} has no range below 1e15 that could be proved, {_LIMITLESS}", ()
        stack.extend(reversed(culprits))
    names = ", ".join(columns) or "its columns"
    many = "the columns" if len(columns) > 1 else "the column"
    return f"No value bounds are declared for {names}, {_LIMITLESS}", (
        f"ask an administrator to declare bounds for {many}",
    )


def _has_range(expression: Expression) -> bool:
    """Whether a number's range is known and small enough for a sum; true for constants and for what is no number."""
    if expression.type not in (ColumnType.INTEGER, ColumnType.NUMBER) or isinstance(expression, Literal):
        return True
    interval = interval_of(_without_calendar(clip_columns(expression)))
    return (
        interval.lower is not None
        and interval.upper is not None
        and max(abs(interval.lower), abs(interval.upper)) <= MAGNITUDE_MAX
    )


def _sum_encoding(lower: Fraction, upper: Fraction, *, integer: bool, fine: bool) -> Encoding:
    """Whole steps through zero: step 1 for integers, else a power of two that makes at most 2^30 steps.

    `fine` divides the steps of integers until the larger bound has enough of them for a part of a row.
    """
    largest = max(abs(lower), abs(upper))
    step = _step(largest, integer=integer)
    encoding = Encoding(offset=Fraction(0), step=step, lowest=math.floor(lower / step), highest=math.ceil(upper / step))
    if not fine:
        return encoding
    parts = _parts(max(abs(encoding.lowest), abs(encoding.highest), 1), FINE)
    return Encoding(encoding.offset, step / parts, encoding.lowest * parts, encoding.highest * parts)


def _moment_encoding(lower: Fraction, upper: Fraction, *, integer: bool) -> Encoding:
    """Whole steps from the lower bound; at least one, so that the noise is never zero."""
    if integer:
        lower, upper = Fraction(math.floor(lower)), Fraction(math.ceil(upper))
    step = _step(upper - lower, integer=integer)
    return Encoding(offset=lower, step=step, lowest=0, highest=max(1, math.ceil((upper - lower) / step)))


def _stepped_encoding(lower: Fraction, upper: Fraction, *, integer: bool) -> Encoding:
    """From the lower bound in steps that also lead through zero, fine enough for a part of a row."""
    step = _step(max(abs(lower), abs(upper), upper - lower), integer=integer)
    low = math.floor(lower / step)
    width = max(1, math.ceil(upper / step) - low)
    return _fine(Encoding(offset=low * step, step=step, lowest=0, highest=width), 1)


def _fine(encoding: Encoding, degree: int) -> Encoding:
    """The same range in steps so small that a row of W^degree units can be scaled."""
    least = 1 << -(-(FINE.bit_length() - 1) // degree)
    parts = _parts(encoding.highest, least)
    return Encoding(encoding.offset, encoding.step / parts, 0, encoding.highest * parts)


def _parts(size: int, least: int) -> int:
    """The power of two by which steps are divided so that there are at least so many."""
    parts = 1
    while size * parts < least:
        parts *= 2
    return parts


def _step(size: Fraction, *, integer: bool) -> Fraction:
    if size == 0:
        return Fraction(1)
    # Never below the smallest normal doubles: a step that reads as zero would make 0 / 0, and a cast of it raises.
    exponent = max(math.ceil(math.log2(float(size))) - 30 + 1, STEP_EXPONENT_MIN)
    step = Fraction(2) ** exponent
    while size / step > WIDTH_MAX:
        step *= 2
    return max(step, Fraction(1)) if integer else step


def _form(expression: Expression | None) -> object:
    return None if expression is None else canonical(expression)


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.12g}"


def _call(text: str) -> str:
    return text.split("(", 1)[0].strip().upper() or "SUM"
