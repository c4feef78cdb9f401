"""Deliberate privacy bugs, one for each guard, as patches of the real functions.

Each names what the audit must say when it finds it, so that a bug is not "caught" by an accident of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms import families
from mechanisms import release as releasing
from mechanisms.measurement import Perturbed, root_up
from mechanisms.measurements import gaussian, gaussian_moments, gaussian_pairs, laplace
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.measurements.gaussian_threshold import GaussianThresholdMeasurement
from mechanisms.measurements.laplace import LaplaceMeasurement
from mechanisms.measurements.moments_threshold import GaussianMomentsThreshold, LaplaceMomentsThreshold
from mechanisms.measurements.truncated_geometric import TruncatedGeometricMeasurement
from privacy.bounds import BOUND_MAX
from privacy.events import GaussianEvent, LaplaceEvent
from privacy.policy import KeyValue
from privacy.statistic import Encoding, Sensitivity, StatisticKind
from sql_rewrite import bound as bounding
from sql_rewrite import evaluate as evaluating
from sql_rewrite import group_keys, join_links, joins, lower_expression, lower_steps, lower_units, unit_worth
from sql_rewrite import lower as lowering
from sql_rewrite.bound import BoundedStatistic
from sql_rewrite.contribution import Bounding, Contribution
from sql_rewrite.dialects.duckdb import DUCKDB, DuckDB
from sql_rewrite.expressions import ColumnRef, Expression
from sql_rewrite.functions import building
from sql_rewrite.layer_values import HeldSteps, PlaceCounts, Steps
from sql_rewrite.plan import Core
from sql_rewrite.relations import ChosenGroups, Extended, Grouped, Output, Relation, TableRows
from sql_rewrite.scalars import Arithmetic, Cast, Coalesce, Column, EngineType, Named, Scalar, Whole
from sql_rewrite.statistics import moments, ranks, totals, vectors
from sql_rewrite.statistics.moments import Moments
from sql_rewrite.unit_worth import difference
from tests.audit.harness import CURRENT

__all__ = ["BUGS", "Bug", "change_sensitivity"]

_Lowering = lowering._Lowering
_Builder = bounding._Builder
_UnitSums = lower_units.UnitSums


@dataclass(frozen=True)
class Bug:
    """A bug: its name, how to plant it, and what the audit says (a regular expression)."""

    name: str
    plant: Callable[[pytest.MonkeyPatch], None]
    says: str


BUGS: list[Bug] = []


def planted(says: str) -> Callable[[Callable[[pytest.MonkeyPatch], None]], Callable[[pytest.MonkeyPatch], None]]:
    """Registers a bug under its function's name."""

    def register(plant: Callable[[pytest.MonkeyPatch], None]) -> Callable[[pytest.MonkeyPatch], None]:
        BUGS.append(Bug(plant.__name__, plant, says))
        return plant

    return register


def change_sensitivity(patch: pytest.MonkeyPatch, change: Callable[[_Builder, BoundedStatistic], Sensitivity]) -> None:
    """Changes the declared sensitivity of every statistic after it was proved."""
    genuine = _Builder._add

    def add(self: Any, *arguments: Any, **named: Any) -> None:
        genuine(self, *arguments, **named)
        last = self.statistics[-1]
        self.statistics[-1] = replace(last, statistic=replace(last.statistic, sensitivity=change(self, last)))

    patch.setattr(_Builder, "_add", add)


def _statistics(patch: pytest.MonkeyPatch, name: str, change: Callable[[BoundedStatistic], BoundedStatistic]) -> None:
    """Lets one method of the lowering see other statistics."""
    genuine = getattr(_Lowering, name)
    patch.setattr(_Lowering, name, lambda self, bounded, *rest: genuine(self, change(bounded), *rest))


# Declared sensitivities


@planted("changed by")
def sensitivity_of_one_group(patch: pytest.MonkeyPatch) -> None:
    """A unit's several groups are forgotten."""

    def one(builder: _Builder, bounded: BoundedStatistic) -> Sensitivity:
        s, groups = bounded.statistic.sensitivity, builder.contribution.groups
        return replace(s, l0=max(1, s.l0 // groups), l1=s.l1 / groups, l2_squared=s.l2_squared / groups)

    change_sensitivity(patch, one)


@planted("l2_squared changed by")
def l2_of_one_group(patch: pytest.MonkeyPatch) -> None:
    """Only the L2 norm forgets the groups."""
    change_sensitivity(patch, lambda _, b: replace(b.statistic.sensitivity, l2_squared=b.statistic.sensitivity.linf**2))


@planted("l0 changed by")
def l0_of_one_coordinate(patch: pytest.MonkeyPatch) -> None:
    """Entries that a unit may change are counted as cells."""
    change_sensitivity(patch, lambda builder, b: replace(b.statistic.sensitivity, l0=builder.contribution.groups))


@planted("sum .* changed by")
def sum_with_upper_minus_lower(patch: pytest.MonkeyPatch) -> None:
    """A clipped sum calibrated for replacing a unit, not for adding one."""

    def width(builder: _Builder, bounded: BoundedStatistic) -> Sensitivity:
        s, encoding = bounded.statistic.sensitivity, bounded.statistic.encoding
        if bounded.statistic.kind is not StatisticKind.SUM or encoding is None:
            return s
        cell, groups = Fraction(bounded.rows * max(1, encoding.highest - encoding.lowest)), builder.contribution.groups
        return replace(s, l1=cell * groups, l2_squared=cell**2 * groups, linf=cell)

    change_sensitivity(patch, width)


@planted("changed by")
def sensitivity_of_one_row(patch: pytest.MonkeyPatch) -> None:
    """A unit's several rows are forgotten."""

    def one(_: _Builder, bounded: BoundedStatistic) -> Sensitivity:
        s, rows = bounded.statistic.sensitivity, bounded.rows
        return replace(s, l1=s.l1 / rows, l2_squared=s.l2_squared / rows**2, linf=s.linf / rows)

    change_sensitivity(patch, one)


# Bounding in SQL


@planted("(l1|l2_squared) changed by")
def one_level_of_a_tree(patch: pytest.MonkeyPatch) -> None:
    """A row in one interval of each level is charged as if it were in one of the first level alone."""

    def change(_: _Builder, item: BoundedStatistic) -> Sensitivity:
        bound, tree = item.statistic.sensitivity, item.statistic.tree
        if tree is None:
            return bound
        return replace(bound, l1=bound.l1 / tree.levels, l2_squared=bound.l2_squared / tree.levels)

    change_sensitivity(patch, change)


@planted("ranks s0 .*(l0|l1) changed by|ranks s0 of c0: .*expected")
def intervals_that_overlap(patch: pytest.MonkeyPatch) -> None:
    """The first interval of each level also counts the rows of the next one."""
    genuine = releasing.nodes_of

    def overlapping(tree: Any, places: Any) -> Any:
        found = genuine(tree, places).copy()
        found[:, 0] += found[:, 1]
        return found

    patch.setattr(releasing, "nodes_of", overlapping)


@planted("ranks s0 of c0: .*expected")
def a_place_for_null(patch: pytest.MonkeyPatch) -> None:
    """Rows without a value lie in the first place."""
    genuine = DuckDB._place_counts

    def counted(self: Any, node: Any) -> str:
        return genuine(self, replace(node, place=Coalesce((node.place, Whole(0)))))

    patch.setitem(DuckDB._writers, PlaceCounts, counted)


def _unit_sums(patch: pytest.MonkeyPatch, change: Callable[[BoundedStatistic], BoundedStatistic]) -> None:
    """Lets what one unit adds be computed for other statistics."""
    genuine = _UnitSums.__init__

    def made(self: Any, bounded: Any, *rest: Any) -> None:
        genuine(self, replace(bounded, statistics=tuple(change(item) for item in bounded.statistics)), *rest)

    patch.setattr(_UnitSums, "__init__", made)


@planted("changed by")
def rows_of_a_unit_not_bounded(patch: pytest.MonkeyPatch) -> None:
    """A unit's rows of one group all count."""
    _unit_sums(patch, lambda item: replace(item, rows=BOUND_MAX))


@planted("l1 changed by|l2_squared changed by")
def scaling_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A unit's groups are each within their bound, and together beyond the bound over all groups."""
    _unit_sums(patch, lambda item: replace(item, scaled=False))


@planted("l1 changed by|l2_squared changed by")
def each_group_has_the_whole_total(patch: pytest.MonkeyPatch) -> None:
    """The bound over all groups is applied to one group at a time: a sum of caps."""

    def with_totals(self: Any, partial: Relation) -> Relation:
        return Extended(partial, "pp", tuple(Output(Named(f"n{name[1:]}"), name) for name in self.totals()))

    patch.setattr(_UnitSums, "with_totals", with_totals)


@planted("changed by|expected")
def parts_rounded_up(patch: pytest.MonkeyPatch) -> None:
    """What a part of a row is worth is rounded up: several groups together leave the bound by a step each."""
    genuine = _UnitSums._part

    def part(self: Any, item: BoundedStatistic, size: int) -> Scalar:
        down = genuine(self, item, size)
        assert isinstance(down, Arithmetic)
        more = difference(Arithmetic("+", down.left, down.right, down.type), Whole(1))
        return replace(down, left=more)

    patch.setattr(_UnitSums, "_part", part)


@planted("l2_squared changed by")
def l2_of_an_even_spread(patch: pytest.MonkeyPatch) -> None:
    """The L2 norm of a bound over all groups, as if every unit spread its rows evenly."""

    def even(builder: _Builder, bounded: BoundedStatistic) -> Sensitivity:
        s = bounded.statistic.sensitivity
        return replace(s, l2_squared=max(s.linf**2, s.l1**2 / builder.contribution.groups)) if bounded.scaled else s

    change_sensitivity(patch, even)


@planted("moments .* changed by")
def clipped_sum_not_a_part_of_its_rows(patch: pytest.MonkeyPatch) -> None:
    """The clipped sum of a count and a sum is all of the unit's values, whatever its allotted rows are worth."""
    patch.setattr(
        Moments, "clipped_moment", lambda self, unit, item: Coalesce((Named(f"{item.statistic.name}x"), Whole(0)))
    )


@planted("moments .* changed by")
def two_sums_side_by_side(patch: pytest.MonkeyPatch) -> None:
    """A clipped and a scaled sum each as a coordinate of its own, at the price of one."""
    genuine = _UnitSums._coordinates

    def coordinates(self: Any, item: BoundedStatistic) -> Any:
        parts = list(genuine(self, item))
        if item.bounding is Bounding.BOTH and item.statistic.raised:
            v, k, s = (Named(f"{item.statistic.name}{part}") for part in "vks")
            parts[0], parts[2] = difference(v, k), s
        return parts

    patch.setattr(_UnitSums, "_coordinates", coordinates)


@planted("moments .* changed by")
def null_rows_beside_the_bound(patch: pytest.MonkeyPatch) -> None:
    """Rows with NULL have a bound of their own beside that of the values."""
    genuine = _UnitSums._coordinates

    def coordinates(self: Any, item: BoundedStatistic) -> Any:
        parts = list(genuine(self, item))
        return [*parts[:-1], Named(f"{item.statistic.name}a")] if item.statistic.counts_nulls else parts

    patch.setattr(_UnitSums, "_coordinates", coordinates)


@planted("changed by")
def groups_of_a_unit_not_chosen(patch: pytest.MonkeyPatch) -> None:
    """A unit keeps all its groups."""
    genuine = _Lowering._units_summed

    def summed(self: Any, contribution: Contribution) -> Relation:
        contribution = replace(contribution, choose_groups=False)
        self.bounded = replace(self.bounded, contribution=contribution)
        return genuine(self, contribution)

    patch.setattr(_Lowering, "_units_summed", summed)


@planted("changed by")
def groups_chosen_by_position(patch: pytest.MonkeyPatch) -> None:
    """The choice depends on the unit's number, which other units can change."""
    genuine = _Lowering.base

    def base(self: Any, *, with_unit: bool) -> Relation:
        rows = genuine(self, with_unit=with_unit)
        assert isinstance(rows, TableRows)
        root = self.core.sources[0].relation
        number = Output(Column(root, "unit$id"), "d")
        return replace(rows, outputs=tuple(number if output.name == "d" else output for output in rows.outputs))

    patch.setattr(_Lowering, "base", base)


@planted("units .* changed by")
def units_counted_as_rows(patch: pytest.MonkeyPatch) -> None:
    """COUNT(DISTINCT unit) counts each row of a unit."""
    genuine = _Lowering._units_summed

    def rows(bounded: BoundedStatistic) -> BoundedStatistic:
        if bounded.statistic.kind is not StatisticKind.UNITS:
            return bounded
        return replace(bounded, statistic=replace(bounded.statistic, kind=StatisticKind.COUNT), rows=BOUND_MAX)

    def summed(self: Any, contribution: Contribution) -> Relation:
        self.bounded = replace(self.bounded, statistics=tuple(rows(b) for b in self.bounded.statistics))
        return genuine(self, contribution)

    patch.setattr(_Lowering, "_units_summed", summed)


@planted("changed by|not unique")
def join_that_multiplies(patch: pytest.MonkeyPatch) -> None:
    """A reference may be followed backwards, to a key that is not unique: a person's row is repeated."""
    genuine = join_links.refers
    for module in (join_links, joins):
        patch.setattr(module, "refers", lambda child, parent: genuine(parent, child))
    patch.setattr(joins, "_check_unit_path", lambda *_: None)


@planted("changed by|expected")
def join_without_condition(patch: pytest.MonkeyPatch) -> None:
    """Every row meets every row of the parent table."""
    genuine = type(DUCKDB)._source
    patch.setattr(
        type(DUCKDB), "_source", lambda self, source: re.sub(r" ON \([^()]*\)", " ON (TRUE)", genuine(self, source))
    )


# Values


@planted("changed by|failed with ExecutionFailed|failed with FrameFault")
def values_not_clipped(patch: pytest.MonkeyPatch) -> None:
    """Declared bounds are believed: neither the column nor the encoded value is clipped."""
    clip, proved = bounding.clip_columns, bounding.proved_range
    patch.setattr(bounding, "clip_columns", lambda expression: expression)
    patch.setattr(bounding, "proved_range", lambda aggregate, argument: proved(aggregate, clip(argument)))

    def encoded(self: Any, bounded: BoundedStatistic) -> Scalar:
        encoding, argument = bounded.statistic.encoding, bounded.argument
        assert encoding is not None
        assert argument is not None
        value = lower_expression.lower(argument, self.parameters)
        return Steps(value, encoding.offset, encoding.step, encoding.lowest, encoding.highest)

    patch.setattr(_Lowering, "encoded", lambda self, bounded, *, layered=False: encoded(self, bounded))
    patch.setitem(DUCKDB._writers, HeldSteps, lambda self, node: f"TRY_CAST({self.write(node.steps)} AS BIGINT)")


@planted("expected")
def null_becomes_the_upper_bound(patch: pytest.MonkeyPatch) -> None:
    """A missing value is in no branch that compares it, and the last branch is the highest one."""
    genuine = DUCKDB._writers[HeldSteps]
    last = re.compile(r"WHEN (abs\(.*?\)) > (\S+ AS DOUBLE\)) THEN (.*? END) ELSE (\S+) END")
    patch.setitem(
        DUCKDB._writers,
        HeldSteps,
        lambda self, node: last.sub(r"WHEN \1 <= \2 THEN \4 ELSE \3 END", genuine(self, node)),
    )


@planted("changed by|expected")
def clip_left_to_wider_ends(patch: pytest.MonkeyPatch) -> None:
    """The clip of a value is left to its steps, and these are held to twice the bounds."""
    genuine = lower_steps._clip_later

    def later(argument: Expression, encoding: Encoding) -> tuple[Expression, int, int]:
        inner, lowest, highest = genuine(argument, encoding)
        return inner, 2 * lowest, 2 * highest

    patch.setattr(lower_steps, "_clip_later", later)


@planted("changed by")
def cells_not_chosen(patch: pytest.MonkeyPatch) -> None:
    """Where the choice among rows is left to cells, the unit keeps all of them."""
    genuine = DUCKDB._writers[ChosenGroups]
    patch.setitem(
        DUCKDB._writers,
        ChosenGroups,
        lambda self, node: self.write(node.rows) if isinstance(node.rows, Grouped) else genuine(self, node),
    )


@planted("expected")
def infinities_kept(patch: pytest.MonkeyPatch) -> None:
    """A result that is not finite is clipped as a value instead of being NULL."""
    patch.setattr(lower_expression._Lowering, "value", lambda self, expression: self.loose(expression))


@planted("expected")
def filter_ignored(patch: pytest.MonkeyPatch) -> None:
    """FILTER (WHERE ...) is dropped."""
    _statistics(patch, "vector", lambda bounded: replace(bounded, filter=None))
    for module in (unit_worth, moments, ranks, totals, vectors):
        patch.setattr(module, "under", lambda item, value: value)


@planted("expected|changed by")
def high_half_of_a_sum_lost(patch: pytest.MonkeyPatch) -> None:
    """Sums wrap at 62 bits."""
    genuine = lowering.halves_of

    def halves(name: str, *, count: bool) -> tuple[Output, Output]:
        high, low = genuine(name, count=count)
        return replace(high, value=Cast(Whole(0), EngineType.INTEGER)), low

    patch.setattr(lowering, "halves_of", halves)


# Keys


@planted("failed with|outside the public cells")
def rows_outside_the_public_keys_not_gathered(patch: pytest.MonkeyPatch) -> None:
    """Declared keys count as all values of a column, although its other values count in a group of their own."""
    patch.setattr(group_keys, "gathered", lambda key, limit: key)
    patch.setattr(evaluating, "open_reads", lambda expression: [])


@planted("failed with|outside the public cells")
def null_is_no_cell(patch: pytest.MonkeyPatch) -> None:
    """Only values that are declared are public values of a key that may be NULL."""
    genuine = evaluating.closed_domain

    def declared(column: Any) -> Any:
        domain = genuine(column)
        return domain and tuple(value for value in domain if value is not None)

    patch.setattr(evaluating, "closed_domain", declared)


@planted("failed with|outside the public cells")
def a_wrong_rule_for_null(patch: pytest.MonkeyPatch) -> None:
    """CASE is said to be NULL never."""
    broken = replace(building.REGISTRY["case"], nullable=lambda arguments: False)
    patch.setattr(building, "REGISTRY", {**building.REGISTRY, "case": broken})


@planted("not exactly the public cells|shown groups depend on data")
def empty_public_groups_hidden(patch: pytest.MonkeyPatch) -> None:
    """Only groups with rows are shown: the histogram over the keys that are present."""

    def present(keys: Any, domain: Any) -> Any:
        shown = sorted(keys, key=domain.index)
        return np.array([shown.index(key) for key in keys], dtype=np.intp), shown

    patch.setattr(releasing, "_public_order", present)


@planted("depends? on data")
def domain_read_from_rows(patch: pytest.MonkeyPatch) -> None:
    """The values of a key are listed from the table."""
    genuine = bounding.key_domain

    def key_domain(core: Core, dataset: Any) -> Any:
        domains, cells = genuine(core, dataset)
        if cells is None and len(core.keys) == 1 and isinstance(key := core.keys[0][1], ColumnRef):
            table = next(s.table.name for s in core.sources if s.relation == key.relation)
            rows = CURRENT[-1].connection.execute(f'SELECT DISTINCT "{key.name}" FROM "{table}" ORDER BY 1').fetchall()
            values: tuple[KeyValue, ...] = tuple(row[0] for row in rows)
            return (values,), tuple((value,) for value in values)
        return domains, cells

    patch.setattr(bounding, "key_domain", key_domain)


@planted("depends on data")
def table_size_in_the_statement(patch: pytest.MonkeyPatch) -> None:
    """The number of people is a parameter of the query."""
    genuine = lowering.lower

    def lower(bounded: Any) -> Any:
        statement = genuine(bounded)
        row = CURRENT[-1].connection.execute("SELECT COUNT(*) FROM people").fetchone()
        assert row is not None
        return replace(statement, sql=f"{statement.sql} LIMIT {1000 + row[0]}")

    patch.setattr(lowering, "lower", lower)


@planted("released")
def threshold_off(patch: pytest.MonkeyPatch) -> None:
    """Hidden groups are shown whatever their noisy size."""

    def kept(genuine: Any) -> Any:
        def perturb(self: Any, exact: Any, bits: Any) -> Perturbed:
            return Perturbed(genuine(self, exact, bits).values, np.ones(len(exact), dtype=np.bool_))

        return perturb

    for cls in (
        TruncatedGeometricMeasurement,
        GaussianThresholdMeasurement,
        GaussianMomentsThreshold,
        LaplaceMomentsThreshold,
    ):
        patch.setattr(cls, "perturb", kept(cls.perturb))


@planted("order of rows")
def groups_in_the_order_of_rows(patch: pytest.MonkeyPatch) -> None:
    """Hidden groups come as the engine found them."""
    patch.setattr(releasing, "_sortable", lambda value: 0)


# Noise and price


@planted("not that of the charged event")
def laplace_charged_for_twice_its_scale(patch: pytest.MonkeyPatch) -> None:
    """The event names more noise than is drawn."""
    genuine = LaplaceMeasurement.event

    def event(self: LaplaceMeasurement) -> LaplaceEvent:
        return replace(genuine(self), scale=2 * genuine(self).scale)

    patch.setattr(LaplaceMeasurement, "event", event)


@planted("not that of the charged event")
def gaussian_charged_for_twice_its_scale(patch: pytest.MonkeyPatch) -> None:
    """The event names more noise than is drawn."""
    genuine = GaussianMeasurement.event

    def event(self: GaussianMeasurement) -> Any:
        real = genuine(self)
        return replace(real, variance=4 * real.variance) if isinstance(real, GaussianEvent) else real

    patch.setattr(GaussianMeasurement, "event", event)


@planted("above")
def price_not_split(patch: pytest.MonkeyPatch) -> None:
    """Every statistic takes more than its share of epsilon."""
    genuine = LaplaceMeasurement.for_epsilon.__func__  # type: ignore[attr-defined]

    def for_epsilon(cls: Any, *, epsilon: Fraction, **named: Any) -> LaplaceMeasurement:
        made = genuine(cls, epsilon=2 * epsilon, **named)
        assert isinstance(made, LaplaceMeasurement)
        return made

    patch.setattr(LaplaceMeasurement, "for_epsilon", classmethod(for_epsilon))


@planted("rounding to the grid are not in the event")
def rounding_to_the_grid_is_free(patch: pytest.MonkeyPatch) -> None:
    """The rounding of sums to a coarse grid is left out of the sensitivity."""
    patch.setattr(laplace, "_l1_with_rounding", lambda statistic, grid: statistic.sensitivity.l1)
    patch.setattr(gaussian, "_l2_squared_with_rounding", lambda statistic, grid: statistic.sensitivity.l2_squared)


@planted("rounding to the grid are not in the event|not that of the charged event")
def middle_moments_with_too_little_noise(patch: pytest.MonkeyPatch) -> None:
    """The middle sums of squares get less noise than the curve of a row's vector allows."""
    genuine = families.squares_of

    def greater(statistic: Any) -> Any:
        squares = genuine(statistic)
        return squares and tuple(square if square == 1 else 2 * square for square in squares)

    for module in (families, gaussian_moments):
        patch.setattr(module, "squares_of", greater)


@planted("rounding to the grid are not in the event|not that of the charged event")
def averages_of_two_columns_with_too_little_noise(patch: pytest.MonkeyPatch) -> None:
    """The shared count of two columns gets the noise of a whole price, and both averages theirs of the same one."""
    patch.setattr(gaussian_pairs, "own_sigmas", lambda sigma, squares: tuple(root_up(sigma**2 / 16) for _ in squares))


@planted("forgets part of the L1 sensitivity")
def event_with_half_the_sensitivity(patch: pytest.MonkeyPatch) -> None:
    """The price is that of half the change."""
    genuine = LaplaceMeasurement.event

    def event(self: LaplaceMeasurement) -> LaplaceEvent:
        return replace(genuine(self), l1_sensitivity=genuine(self).l1_sensitivity / 2)

    patch.setattr(LaplaceMeasurement, "event", event)
