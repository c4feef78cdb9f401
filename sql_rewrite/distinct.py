"""Aggregates of different values: which sums they need, and what distinguishes two values.

The different values of a cell are a set to which units add theirs: (cell, value) counts once, whoever has it. Each
unit brings in at most `rows` of them per cell and `total` over all of its cells, chosen by a hash that is keyed with
its draw (sql_rewrite/lower_distinct.py); mechanisms/distinct.md has the theorem. One value is what a row is elsewhere.

    COUNT(DISTINCT x)                       one count of values
    SUM(DISTINCT x) alone                   one sum of clipped integers, one for each value
    AVG, VARIANCE, STDDEV of DISTINCT x     Bernstein sums of values; SUM and COUNT share them

The values of a column are compared as they are stored. The columns of an expression are clipped to their
bounds first, as in any sum; a count does not clip them, so beside such sums it has a statistic of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privacy.policy import ColumnType
from privacy.statistic import Encoding, StatisticKind
from sql_rewrite.builder import Family
from sql_rewrite.encodings import moment_encoding, sum_encoding
from sql_rewrite.expressions import ColumnRef, Expression, describe, form_of, number_text
from sql_rewrite.functions import clip_columns
from sql_rewrite.plan import Aggregate
from sql_rewrite.value_bounds import proved_range

__all__ = ["DifferentValues", "different_values"]


@dataclass(frozen=True, slots=True)
class DifferentValues:
    """One statistic of different values, and the aggregates that it holds."""

    kind: StatisticKind
    distinct: Expression
    """The value of which each different one counts."""
    aggregates: tuple[Aggregate, ...]
    text: str
    argument: Expression | None = None
    """What is summed: a function of that value, or None where values are counted."""
    encoding: Encoding | None = None
    degree: int = 0

    @property
    def per_value(self) -> int:
        """The most that one value adds in L1."""
        match self.kind:
            case StatisticKind.COUNT:
                return 1
            case StatisticKind.SUM:
                assert self.encoding is not None
                return self.encoding.largest
            case StatisticKind.MOMENTS:
                assert self.encoding is not None
                return int(self.encoding.highest**self.degree)
            case _:
                raise AssertionError("different values are counted, added up, or averaged")


def different_values(family: Family) -> Iterator[DifferentValues]:
    """The statistics of a family of different values. Errors: Refused (column_without_bounds, ...)."""
    assert family.argument is not None
    written = family.argument
    of_values = tuple([a for a in family.aggregates if a.function.statistic is not StatisticKind.COUNT])
    counts = tuple([a for a in family.aggregates if a.function.statistic is StatisticKind.COUNT])
    argument = clip_columns(written)
    told = written if isinstance(written, ColumnRef) else argument
    together = bool(of_values) and form_of(told) == form_of(written)
    if of_values:
        lower, upper = proved_range(of_values[0], argument)
        integer = argument.type is ColumnType.INTEGER
        text = f"different values of {describe(written)} clipped to [{number_text(lower)}, {number_text(upper)}]"
        held = (*of_values, *counts) if together else of_values
        if family.degree == 0 and held == of_values:
            encoding = sum_encoding(lower, upper, integer=integer, fine=False)
            yield DifferentValues(StatisticKind.SUM, told, held, text, argument, encoding)
        else:
            encoding = moment_encoding(lower, upper, integer=integer)
            yield DifferentValues(
                StatisticKind.MOMENTS, told, held, text, argument, encoding, degree=max(family.degree, 1)
            )
    if counts and not together:
        yield DifferentValues(StatisticKind.COUNT, written, counts, f"different values of {describe(written)}")
