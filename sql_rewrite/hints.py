"""What to write instead of what is not answered: by the function's name as the analyst wrote it, or instead of rows.

A hint that holds a query is a query that is accepted: it names the analyst's own column and table, and a test runs it.
Where they are not known the hint is a description.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from sql_rewrite.expressions import Interval
from sql_rewrite.filled import Operand, fill

__all__ = ["AGGREGATES", "FUNCTIONS", "REASONS", "SHORT", "About", "counted", "instead_of", "listed"]

SHORT = tuple(function.described.short for function in AggregateFunction if function.described.short)
"""The aggregates that come first to mind."""

AGGREGATES = f"use {', '.join(SHORT[:-1])} or {SHORT[-1]}"
FUNCTIONS = "see the list of functions under /v1/capabilities"

_PARTS = "date_trunc('month', {d}), YEAR({d}), MONTH({d}) or DAYOFWEEK({d})"
_PATTERN = "{t} LIKE 'N%', CONTAINS({t}, 'text') or STARTS_WITH({t}, 'text')"


@dataclass(frozen=True, slots=True)
class About:
    """The column that a refused function was asked about, with its table, both as SQL can name them, and its bounds."""

    column: str
    type: ColumnType
    table: str
    declared: Interval | None = None


Hint = Callable[[About | None, Sequence[Operand]], str]
"""What to write, by the column that was asked about and the operands that can be read."""


def counted(table: str) -> str:
    """A query that counts the rows of a table."""
    return f"SELECT COUNT(*) AS n FROM {table}"


def listed(about: About) -> str:
    """A query that counts the rows of each value of a column; of a number with a fraction in buckets."""
    if about.type is ColumnType.NUMBER:
        return f"SELECT {_bucket(about)} AS bucket, COUNT(*) AS n FROM {about.table} GROUP BY bucket"
    return f"SELECT {about.column}, COUNT(*) AS n FROM {about.table} GROUP BY {about.column}"


def _spread(about: About | None, given: Sequence[Operand] = ()) -> str:
    if about is None:
        return "group by FLOOR(x / 10), or date_trunc('month', x), and COUNT(*): that is their spread"
    bucket = {
        ColumnType.INTEGER: _bucket(about),
        ColumnType.NUMBER: _bucket(about),
        ColumnType.DATE: f"date_trunc('month', {about.column})",
        ColumnType.TIMESTAMP: f"date_trunc('month', {about.column})",
    }.get(about.type, about.column)
    return f"their spread: SELECT {bucket} AS bucket, COUNT(*) AS n FROM {about.table} GROUP BY bucket"


def _bucket(about: About) -> str:
    """Some ten buckets between the declared bounds of a number; its values themselves where they are few and whole."""
    width, span = 10.0, None
    if about.declared is not None and about.declared.lower is not None and about.declared.upper is not None:
        span = float(about.declared.upper - about.declared.lower)
        tens = 10.0 ** math.floor(math.log10(span / 10)) if span > 0 else 1.0
        width = next(tens * step for step in (1, 2, 5, 10) if tens * step >= span / 10 * (1 - 1e-9))
    if about.type is ColumnType.INTEGER and (width <= 1 or (span is not None and span <= 20)):
        return about.column
    if span is None and about.type is ColumnType.NUMBER:  # without bounds it may leave the range of whole numbers
        return f"FLOOR(GREATEST(0, LEAST({about.column}, 1000000)) / 10) * 10"
    if width <= 1:  # the number of the bucket: a number with a fraction cannot be a key
        return f"FLOOR({about.column})" if width == 1 else f"FLOOR({about.column} / {width:g})"
    return f"FLOOR({about.column} / {width:.0f}) * {width:.0f}"


def _best(about: About | None, given: Sequence[Operand] = ()) -> str:
    said = "the value beside an extreme one is one person's"
    if about is None:
        return f"{said}; the best of groups, by a count: group by it, ORDER BY COUNT(*) DESC, LIMIT 1"
    key = about.column
    if about.type is ColumnType.NUMBER:
        return f"{said}; the best of groups, by a count: {listed(about)} ORDER BY n DESC LIMIT 1"
    return (
        f"{said}; the best of groups, by a count: "
        f"SELECT {key} FROM {about.table} GROUP BY {key} ORDER BY COUNT(*) DESC LIMIT 1"
    )


def _shared(about: About | None, given: Sequence[Operand] = ()) -> str:
    if about is None:
        return "group by x, and COUNT(*): the values that many people share"
    return f"the values that many people share: {listed(about)}"


def _most(about: About | None, given: Sequence[Operand] = ()) -> str:
    if about is None:
        return "group by x, ORDER BY COUNT(*) DESC, LIMIT 10"
    return f"{listed(about)} ORDER BY n DESC LIMIT 10"


def _said(form: str) -> Hint:
    return lambda about, given: fill(form, given)


def _measured(form: str) -> Hint:
    """An aggregate of the operands."""
    return lambda about, given: fill(form, given, summed=True)


_ONE_PERSON = "Its value would be that of one person, or show single people."

REASONS: Mapping[str, str] = {
    name: why
    for why, names in {
        _ONE_PERSON: "arg_min arg_max argmin argmax min_by max_by arg_min_null arg_max_null first last any_value "
        "arbitrary list array_agg string_agg group_concat listagg stringagg json_group_array first_value last_value",
        "One row alone decides each bit of it.": "bit_and bit_or bit_xor bitstring_agg",
        "One row could change a product without limit.": "product",
    }.items()
    for name in names.split()
}
"""Why an aggregate of rows about people is never answered, by its name; of others nobody has proved a bound yet."""

_HINTS: Mapping[str, Hint] = {
    hinted: hint
    for hint, names in {
        _best: "arg_min arg_max argmin argmax min_by max_by arg_min_null arg_max_null",
        _spread: "mad histogram entropy equi_width_bins",
        _most: "approx_top_k approx_top_count approx_top_sum",
        _said("COUNT_IF({x} % 2 = 1) counts the rows whose last bit is set"): "bit_and bit_or bit_xor bitstring_agg",
        _shared: "first last any_value arbitrary list array_agg string_agg group_concat listagg stringagg "
        "json_group_array first_value last_value",
        _measured("GEOMEAN(GREATEST(1, {x})) is the geometric mean"): "product",
        _said(_PARTS): "week_of_year",
        _said("STRFTIME({d}, '%Y-%m-%d')"): "to_char date_format format_date formatdatetime",
        _said(
            "{d} + INTERVAL 3 MONTH"
        ): "dateadd add_months timestampadd date_part_diff to_days to_months to_years interval",
        _said("EXTRACT(year FROM AGE(DATE '2024-12-31', {d}))"): "age months_between",
        _said("CONCAT(UPPER(LEFT({t}, 1)), LOWER(SUBSTR({t}, 2)))"): "initcap",
        _said("RIGHT({t}, 3), or {t} LIKE '%abc'"): "reverse",
        _said("LPAD({t}, 10, ' ')"): "repeat space",
        _said("CAST({t} AS DATE) or CAST({t} AS TIMESTAMP)"): "strptime try_strptime to_date to_timestamp str_to_date",
        _said(_PATTERN): "regexp_matches regexp_full_match regexp_like regexp_extract regexp_replace rlike regexp glob "
        "levenshtein jaccard similar",
        _said("POSITION('text' IN {t})"): "charindex locate find indexof",
        _said("{i} // {j} for whole numbers"): "divide fdiv",
        _said("CASE WHEN {p} THEN {x} ELSE {y} END"): "iff decode choose",
        _said("COALESCE({x}, 0)"): "zeroifnull",
    }.items()
    for hinted in names.split()
} | {
    hinted: _measured(re.sub(r"\b([xyv])\b", r"{\1}", function.described.hint))
    for function in AggregateFunction
    for hinted in function.described.elsewhere
}


def instead_of(name: str, otherwise: str, about: About | None = None, given: Sequence[Operand] = ()) -> tuple[str, ...]:
    """What to write instead of a function of that name (with or without its bracket), asked about a column.

    `given` are its operands, as far as they can be read.
    """
    hint = _HINTS.get(name.removesuffix("()").lower())
    return (otherwise,) if hint is None else (hint(about, given), otherwise)
