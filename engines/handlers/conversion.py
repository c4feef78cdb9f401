"""How a source column becomes a declared type: total SQL expressions, one row of a table for each pair of types.

No expression raises on any row. `value` is NULL where a value does not convert; `failed` is true exactly there;
`special` is true where NaN or an infinity becomes NULL, which is allowed and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engines.described import Written
from engines.handlers.connection import literal
from engines.handlers.layout import PLAIN_TYPES
from engines.table_source import DateOrder, ThousandsMark

__all__ = ["DATE_ORDERS", "THOUSANDS", "WHOLE_TYPES", "ZONED", "Conversion", "conversion"]

WHOLE_TYPES: tuple[str, ...] = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
)
"""The engine's whole-number types."""
_FLOAT = frozenset(("FLOAT", "DOUBLE"))
_TEXT = frozenset(("VARCHAR", "ENUM"))
_MOMENT = frozenset(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"))
ZONED = "TIMESTAMP WITH TIME ZONE"
"""A moment on the time line: a day and a clock only in a zone, which has to be declared."""

_WHOLE_TEXT = "[+-]?[0-9]{1,40}([.]0*)?"
_NUMBER_TEXT = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,5})?"
_SPECIAL_TEXT = "[+-]?(nan|inf|infinity)"
_DATE_TEXT = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK_TEXT = "[ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?"
_ZONE_TEXT = " ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"


@dataclass(frozen=True, slots=True)
class Conversion:
    """SQL expressions over one source column."""

    value: str
    failed: str
    special: str = "false"
    zoned: str = "false"
    """Whether the moment has an offset, and no zone is declared whose clock is meant."""


DATE_ORDERS: dict[DateOrder, tuple[str, str]] = {
    "YYYY-MM-DD": ("", ""),
    "DD.MM.YYYY": ("[.]", r"\3-\2-\1\4"),
    "DD/MM/YYYY": ("/", r"\3-\2-\1\4"),
    "MM/DD/YYYY": ("/", r"\3-\1-\2\4"),
    "DD-MM-YYYY": ("-", r"\3-\2-\1\4"),
}
"""How days may be written as text: the mark between the parts, and the parts put in the order of ISO 8601."""


THOUSANDS: dict[ThousandsMark, str] = {",": "[,]", ".": "[.]", "'": "['\u2019]", " ": "[ \u00a0\u202f]", "_": "[_]"}
"""Separators of thousands, and the pattern of the characters that each of them stands for."""


def conversion(*, source_type: str, declared: str, column: str, written: Written = Written()) -> Conversion | None:
    """Expressions for a source type (engine text) and a declared type (language word), or None for no conversion.

    `column` is the quoted source column. A moment with a zone becomes a day or a clock only where one is declared.
    """
    base = source_type.split("(", maxsplit=1)[0].strip().upper()
    if source_type.endswith("]"):
        return None
    if base == '"NULL"':
        base = "NULL"
    if base == "NULL":
        return Conversion(value=f"CAST(NULL AS {PLAIN_TYPES[declared]})", failed="false")
    if base == "ENUM":
        column = f"CAST({column} AS VARCHAR)"
    if base in _TEXT:
        column = _standard(column, declared, written)
    if base == ZONED and declared in ("date", "timestamp"):
        if written.zone is None:
            return None
        column, base = _local(column, written.zone), "TIMESTAMP"
    if base in _TEXT and declared == "timestamp":
        return _text_timestamp(column, written.zone)
    if base in _TEXT and declared == "boolean" and (written.true or written.false):
        return _words(column, written)
    rule = {
        "integer": _integer,
        "number": _number,
        "text": _text,
        "boolean": _boolean,
        "date": _date,
        "timestamp": _timestamp,
    }[declared]
    return rule(base, column)


def _local(column: str, zone: str) -> str:
    """A moment as the clock of a zone showed it; NULL for one that no clock can show."""
    return f"TRY(timezone({literal(zone)}, {column}))"


def _words(column: str, written: Written) -> Conversion:
    """Truth values in declared words, and in no others."""
    word = f"lower(trim({column}))"
    branches = " ".join(
        f"WHEN {word} IN ({', '.join(literal(listed.strip().lower()) for listed in words)}) THEN {value}"
        for value, words in (("true", written.true), ("false", written.false))
        if words
    )
    return _plain(f"CASE {branches} END", column)


def _standard(column: str, declared: str, written: Written) -> str:
    """Text in the declared way of writing numbers and days, rewritten in the standard one.

    Text that is written in another way becomes text that converts to nothing (never NULL): it is refused, not read in
    a way that was not declared. A point beside a decimal comma is such text: it might separate thousands.
    """
    if declared in ("integer", "number"):
        return _standard_number(column, written)
    mark, order = DATE_ORDERS[written.dates]
    if mark and declared in ("date", "timestamp"):
        pattern = f"([0-9]{{1,2}}){mark}([0-9]{{1,2}}){mark}([0-9]{{4}})(.*)"
        match, ordered = (
            f"regexp_full_match(trim({column}), '{pattern}')",
            f"regexp_replace(trim({column}), '{pattern}', '{order}')",
        )
        return f"CASE WHEN {match} THEN {ordered} WHEN {column} IS NOT NULL THEN 'x' END"
    return column


def _standard_number(column: str, written: Written) -> str:
    if written.thousands:
        mark = THOUSANDS[written.thousands]
        fraction = "," if written.decimal == "," else "[.]"
        grouped = literal(f"[+-]?[0-9]{{1,3}}({mark}[0-9]{{3}})+({fraction}[0-9]*)?")
        # A mark that does not stand between groups of three digits does not separate thousands.
        column = (
            f"CASE WHEN regexp_full_match(trim({column}), {grouped}) "
            f"THEN regexp_replace(trim({column}), {literal(mark)}, '', 'g') "
            f"WHEN regexp_matches(trim({column}), {literal(mark)}) THEN 'x' ELSE {column} END"
        )
    if written.decimal == ",":
        return f"CASE WHEN contains({column}, '.') THEN 'x' ELSE replace({column}, ',', '.') END"
    return column


def _plain(value: str, column: str) -> Conversion:
    return Conversion(value=value, failed=f"({column} IS NOT NULL AND ({value}) IS NULL)")


def _matches(column: str, pattern: str) -> str:
    return f"regexp_full_match(trim({column}), '{pattern}', 'i')"


def _integer(base: str, column: str) -> Conversion | None:
    if base in WHOLE_TYPES or base == "BOOLEAN":
        return _plain(f"TRY_CAST({column} AS BIGINT)", column)
    if base in _FLOAT:
        value = (
            f"CASE WHEN isfinite({column}) THEN "
            f"CASE WHEN trunc({column}) = {column} THEN TRY_CAST({column} AS BIGINT) END END"
        )
        special = f"({column} IS NOT NULL AND NOT isfinite({column}))"
        return Conversion(
            value=value, failed=f"({column} IS NOT NULL AND NOT {special} AND ({value}) IS NULL)", special=special
        )
    if base == "DECIMAL":
        return _plain(f"CASE WHEN trunc({column}) = {column} THEN TRY_CAST({column} AS BIGINT) END", column)
    if base in _TEXT:
        digits = f"regexp_replace(trim({column}), '[.]0*$', '')"
        return _plain(f"CASE WHEN {_matches(column, _WHOLE_TEXT)} THEN TRY_CAST({digits} AS BIGINT) END", column)
    return None


def _number(base: str, column: str) -> Conversion | None:
    if base in WHOLE_TYPES or base in _FLOAT or base in ("DECIMAL", "BOOLEAN"):
        raw = f"TRY_CAST({column} AS DOUBLE)"
    elif base in _TEXT:
        raw = (
            f"CASE WHEN {_matches(column, _NUMBER_TEXT)} OR {_matches(column, _SPECIAL_TEXT)} "
            f"THEN TRY_CAST(trim({column}) AS DOUBLE) END"
        )
    else:
        return None
    return Conversion(
        value=f"CASE WHEN isfinite({raw}) THEN {raw} END",
        failed=f"({column} IS NOT NULL AND ({raw}) IS NULL)",
        special=f"(({raw}) IS NOT NULL AND NOT isfinite({raw}))",
    )


def _text(base: str, column: str) -> Conversion | None:
    if base in _TEXT:
        return _plain(column, column)
    if base in WHOLE_TYPES or base in ("BOOLEAN", "UUID", "DATE", "DECIMAL"):
        return _plain(f"TRY_CAST({column} AS VARCHAR)", column)
    return None


def _boolean(base: str, column: str) -> Conversion | None:
    if base == "BOOLEAN":
        return _plain(column, column)
    if base in WHOLE_TYPES:
        return _plain(f"CASE {column} WHEN 0 THEN false WHEN 1 THEN true END", column)
    if base in _TEXT:
        word = f"lower(trim({column}))"
        return _plain(
            f"CASE WHEN {word} IN ('true', 't', '1', 'yes', 'y') THEN true "
            f"WHEN {word} IN ('false', 'f', '0', 'no', 'n') THEN false END",
            column,
        )
    return None


def _date(base: str, column: str) -> Conversion | None:
    if base == "DATE":
        return _plain(_in_years(column, column), column)
    if base in _MOMENT:
        moment = f"TRY_CAST({column} AS TIMESTAMP)"
        midnight = f"CASE WHEN {moment} = date_trunc('day', {moment}) THEN TRY_CAST({moment} AS DATE) END"
        return _plain(_in_years(moment, midnight), column)
    if base in _TEXT:
        day = f"TRY_CAST(trim({column}) AS DATE)"
        return _plain(f"CASE WHEN {_matches(column, _DATE_TEXT)} THEN {_in_years(day, day)} END", column)
    return None


def _timestamp(base: str, column: str) -> Conversion | None:
    if base in _MOMENT or base == "DATE":
        moment = f"TRY_CAST({column} AS TIMESTAMP)"
        return _plain(_in_years(moment, moment), column)
    return None


def _text_timestamp(column: str, zone: str | None) -> Conversion:
    """Text without an offset is taken as it stands; with one it becomes the clock of the zone. Z is a clock: UTC's."""
    plain = f"TRY_CAST(trim({column}) AS TIMESTAMP)"
    moment = _local(f"TRY_CAST(trim({column}) AS TIMESTAMPTZ)", zone or "UTC")
    has_zone = _matches(column, f"{_DATE_TEXT}{_CLOCK_TEXT}{_ZONE_TEXT}")
    conversion = _plain(
        f"CASE WHEN {_matches(column, f'{_DATE_TEXT}({_CLOCK_TEXT})?')} THEN {_in_years(plain, plain)} "
        f"WHEN {has_zone} THEN {_in_years(moment, moment)} END",
        column,
    )
    if zone is not None:
        return conversion
    asked = f"({has_zone} AND NOT {_matches(column, '.*Z')} AND ({conversion.value}) IS NOT NULL)"
    return replace(conversion, zoned=asked)


def _in_years(moment: str, value: str) -> str:
    """The value where the moment lies in the years 1 to 9999, else NULL."""
    return f"CASE WHEN isfinite({moment}) THEN CASE WHEN year({moment}) BETWEEN 1 AND 9999 THEN {value} END END"
