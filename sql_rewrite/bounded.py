"""Cores whose every sum has a proved sensitivity, as the lowering and the mechanisms see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from privacy.aggregate import AggregateFunction
from privacy.by_slots import by_slots
from privacy.norms import Norm
from privacy.policy import ColumnType, KeyValue
from privacy.statistic import CoreStatistics, Encoding, Statistic
from privacy.statistic_kind import units_of_row
from sql_rewrite.contribution import Bounding, Contribution, NormedContribution
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, Value, describe, walk
from sql_rewrite.plan import Core, Source

__all__ = ["BoundedCore", "BoundedNorm", "BoundedStatistic", "finer"]


_CELLS_FEW = 16
"""Public groups that are few beside any number of rows."""


def finer(encoding: Encoding, places: int) -> Encoding:
    """The same range in steps divided by 2^places; negative ones take back what positive ones did."""
    if places < 0:
        lowest, highest = encoding.lowest >> -places, encoding.highest >> -places
        assert (lowest << -places, highest << -places) == (encoding.lowest, encoding.highest)
    else:
        lowest, highest = encoding.lowest << places, encoding.highest << places
    return Encoding(encoding.offset, encoding.step / Fraction(2) ** places, lowest, highest)


def places_within(statistic: Statistic) -> Encoding:
    """How a value becomes the finer place among which quantiles are drawn: as many to each place of the tree."""
    tree, encoding, drawn = statistic.tree, statistic.encoding, statistic.drawn
    assert tree is not None
    assert encoding is not None
    assert drawn is not None
    step = encoding.step / drawn.finer
    offset = tree.lower + ((step - 1) if tree.whole else step) / 2
    return Encoding(offset, step, 0, (encoding.highest + 1) * drawn.finer - 1)


@by_slots
@dataclass(frozen=True, slots=True)
class BoundedStatistic:
    """A statistic with what the lowering needs: the clipped argument, the filter, and the bound per unit and cell.

    A unit's rows under `filter` are allotted; of those, the ones under `present` count (COUNT(x) alone). `scaled` says
    that the bound over all groups may bind.
    """

    statistic: Statistic
    argument: Expression | None
    filter: Expression | None
    rows: int
    bounding: Bounding = Bounding.SCALED
    present: Expression | None = None
    scaled: bool = False
    distinct: Expression | None = None
    """Of different values the value that distinguishes them: each counts once in a cell, whoever has it."""
    parts: int = 0
    """Binary places of the factor by which a unit is scaled to a norm: one row is 2^parts integer units more."""
    second: Expression | None = None
    """Of products, the clipped second argument."""

    @property
    def row_encoding(self) -> Encoding | None:
        """How the value of one row becomes an integer, before its unit is scaled to a norm."""
        if self.statistic.drawn is not None:
            return places_within(self.statistic)
        return None if self.statistic.encoding is None else finer(self.statistic.encoding, -self._doublings)

    @property
    def row_units(self) -> int:
        """Integer units of a row (a step of a sum) before its unit is scaled. Requires: an encoding."""
        encoding, statistic = self.row_encoding, self.statistic
        assert encoding is not None
        return units_of_row(
            statistic.kind,
            highest=encoding.highest,
            degree=statistic.degree,
            second_highest=1 if statistic.second is None else statistic.second.highest,
            second_degree=statistic.second_degree,
        )

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """The clipped arguments."""
        return tuple(part for part in (self.argument, self.second) if part is not None)

    @property
    def _doublings(self) -> int:
        # The encoding of ranks is that of their places, whose counts are scaled.
        return 0 if self.statistic.tree is not None else self.parts // max(1, self.statistic.degree)


@dataclass(frozen=True, slots=True)
class BoundedNorm:
    """A norm with what the lowering needs: which rows it is of, and of which argument.

    `most` is the greatest norm that a unit can have, by declarations alone.
    """

    norm: Norm
    filter: Expression | None
    argument: Expression | None
    encoding: Encoding | None
    """How a row's argument becomes a number of steps."""
    most: Fraction


@by_slots
@dataclass(frozen=True, slots=True)
class BoundedCore:
    """A core whose every sum has a proved sensitivity."""

    core: Core
    contribution: Contribution | NormedContribution
    statistics: tuple[BoundedStatistic, ...]
    domains: tuple[tuple[KeyValue, ...] | None, ...]
    """Public values of each key, or None where they are not public."""
    described: CoreStatistics
    norms: tuple[BoundedNorm, ...] = ()
    """The norms of a core whose units are scaled to norms, as `described` lists them."""

    @property
    def one_row(self) -> bool:
        """Whether each unit owns at most one row, so that nothing is cut."""
        return isinstance(self.contribution, Contribution) and self.contribution.one_row

    @property
    def joins_averages(self) -> bool:
        """Whether averages of two columns are measured as means of pairs (sql_rewrite/together.py)."""
        both = zip(self.core.aggregates, self.described.estimates, strict=False)
        return any(
            one.function is AggregateFunction.AVERAGE and estimate.kind is not AggregateFunction.AVERAGE
            for one, estimate in both
        )

    @property
    def chosen_by_cell(self) -> bool:
        """Whether a unit's groups are chosen among its cells, and not among its rows: a function of declarations.

        The choice is the same: it ranks the groups that a unit has, by their keys. Grouping first leaves as many rows
        for the window as there are cells, at most one for each public group; it pays where these are few, or few beside
        the rows that units may have. Of hidden groups there may be as many as rows; and quantiles and different values
        need the rows of the groups that are kept.
        """
        domain = self.described.keys.domain
        if not isinstance(self.contribution, Contribution) or not self.contribution.choose_groups or domain is None:
            return False
        if any(item.statistic.tree is not None or item.distinct is not None for item in self.statistics):
            return False
        return len(domain) <= max(_CELLS_FEW, self.contribution.total // _CELLS_FEW)

    def clipped(self) -> tuple[tuple[str, Value, Value], ...]:
        """The columns whose values beyond the declared bounds count as the bound, with the bounds."""
        arguments = [part for bounded in self.statistics for part in bounded.arguments]
        return tuple(clipped_columns(arguments, self.core.sources))


def clipped_columns(
    arguments: Sequence[Expression | None], sources: Sequence[Source]
) -> Iterator[tuple[str, Value, Value]]:
    """Columns that the arguments clip, with the bounds; except those whose values are all known to lie within."""
    for argument in arguments:
        for node in () if argument is None else walk(argument):
            # LEAST and GREATEST of the analyst are other operators.
            if not isinstance(node, Call) or node.operator != "clip":
                continue
            column, *ends = node.arguments
            lower, upper = (end.value if isinstance(end, Literal) else None for end in ends)
            if isinstance(column, ColumnRef) and not _within(column, lower, upper) and _cut(column, sources):
                yield describe(column), lower, upper


def _cut(column: ColumnRef, sources: Sequence[Source]) -> bool:
    """Whether an end is declared: conditions prove every other one of the rows that are read (narrowed_values.py)."""
    declared = _declared(column, sources)
    if declared is None:
        return True
    own = column.declared or declared
    return own.lower == declared.lower is not None or own.upper == declared.upper is not None


def _declared(column: ColumnRef, sources: Sequence[Source]) -> Interval | None:
    """What is declared of a column before conditions narrow it; None where that is not known."""
    source = next((one for one in sources if one.relation == column.relation), None)
    if source is None:
        return None
    if not source.stored:
        made = source.made.get(column.name)
        # A column without bounds has those that the question chose, which answers show by themselves.
        return (made.declared or Interval(None, None)) if isinstance(made, ColumnRef) else None
    found = next((one for one in source.table.columns if one.name == column.name), None)
    if found is None or found.bounds is None:
        return None if found is None else Interval(None, None)
    return Interval(found.bounds.lower, found.bounds.upper)


def _within(column: ColumnRef, lower: Value, upper: Value) -> bool:
    """Whether every value of the column is known to lie within: verified keys, and no group for other values."""
    if column.domain is None or column.other is not None or column.type is not ColumnType.INTEGER:
        return False
    return (
        isinstance(lower, int)
        and isinstance(upper, int)
        and all(value is None or (isinstance(value, int) and lower <= value <= upper) for value in column.domain)
    )
