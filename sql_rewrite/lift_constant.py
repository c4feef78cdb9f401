"""Constants of a text: literals, parameters, dates, and casts, which make other constants of them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Position, Refused
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.lifter import Lifter, ParameterValue, Reader, bare
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, rendered, whole_number
from sql_rewrite.text import Text

__all__ = ["READERS", "check_parameter", "literal_value", "missing_parameter", "moment", "typed"]

_TYPES: dict[exp.DType, ColumnType] = {
    exp.DType.TINYINT: ColumnType.INTEGER,
    exp.DType.SMALLINT: ColumnType.INTEGER,
    exp.DType.INT: ColumnType.INTEGER,
    exp.DType.BIGINT: ColumnType.INTEGER,
    exp.DType.INT128: ColumnType.INTEGER,
    exp.DType.UTINYINT: ColumnType.INTEGER,
    exp.DType.USMALLINT: ColumnType.INTEGER,
    exp.DType.UINT: ColumnType.INTEGER,
    exp.DType.UBIGINT: ColumnType.INTEGER,
    exp.DType.UINT128: ColumnType.INTEGER,
    exp.DType.FLOAT: ColumnType.NUMBER,
    exp.DType.DOUBLE: ColumnType.NUMBER,
    exp.DType.VARCHAR: ColumnType.TEXT,
    exp.DType.TEXT: ColumnType.TEXT,
    exp.DType.BOOLEAN: ColumnType.BOOLEAN,
    exp.DType.DATE: ColumnType.DATE,
    exp.DType.TIMESTAMP: ColumnType.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: ColumnType.TIMESTAMP,
}

_UNSIGNED = frozenset(kind for kind in _TYPES if kind.name.startswith("U"))
_DIGITS_MAX, _DECIMALS_MAX = 38, 15


def missing_parameter(name: object, text: Text) -> Refused:
    """The refusal of a parameter that the request gives no value."""
    known = str(name)[:63] if isinstance(name, str) and name else "name"
    return refuse(
        "unsupported_sql",
        f"the parameter ${known} is refused" if known == name else "a parameter is refused",
        'Parameters are named ("$name") and get their value in "parameters" of the request.',
        f'"parameters": {{"{known}": 65}} beside "sql" in the request, or -p {known}=65',
        position=text.parameter(known),
    )


def check_parameter(value: ParameterValue, position: Position | None) -> None:
    """Refuses the value of a parameter that no literal could have. Errors: Refused (too_large, parse_error)."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, str):
        if any(0xD800 <= ord(c) <= 0xDFFF or c == "\x00" for c in value):
            raise refuse("parse_error", "a parameter is refused", "It is not a proper text.", position=position)
        fits = len(value) <= 1_000
    elif isinstance(value, int):
        fits = -(2**63) <= value < 2**63
    else:
        fits = -1e300 <= value <= 1e300  # false for NaN
    if not fits:
        raise refuse(
            "too_large",
            "a parameter is refused",
            "Numbers must fit 64 bits (or 1e300 with a fraction), texts 1,000 characters.",
            position=position,
        )


def literal_value(node: exp.Literal, text: Text) -> str | int | float:
    """The value of a literal: text as it is, whole numbers exactly, other numbers as the nearest double."""
    if node.is_string:
        return str(node.this)
    digits = str(node.this).replace("_", "")
    try:
        if digits.isascii() and digits.isdigit():
            return int(digits) if len(digits) <= 40 else 2**63
        return float(digits)
    except ValueError:
        raise refuse(
            "parse_error", "a number could not be read", "It is not a decimal number.", position=text.position(node)
        ) from None


def _literal(lifter: Lifter, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Literal)
    return typed(lifter, node, literal_value(node, lifter.text))


def _boolean(lifter: Lifter, node: exp.Expr) -> Expression:
    return Literal(bool(node.this), ColumnType.BOOLEAN)


def _placeholder(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", text=lifter.text, what="a parameter")
    name = node.this
    if not isinstance(name, str) or name not in lifter.parameters:
        raise missing_parameter(name, lifter.text)
    check_parameter(lifter.parameters[name], lifter.text.position(node))
    return typed(lifter, node, lifter.parameters[name])


def typed(lifter: Lifter, node: exp.Expr, value: ParameterValue) -> Literal:
    """The constant, of the type that its value has. Errors: Refused (too_large)."""
    if value is None:
        return Literal(None, ColumnType.INTEGER)
    if isinstance(value, bool):
        return Literal(value, ColumnType.BOOLEAN)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise _number_too_large(lifter, node)
        return Literal(value, ColumnType.INTEGER)
    if isinstance(value, float | Fraction):
        number = float(value)
        if not -1e300 <= number <= 1e300:
            raise _number_too_large(lifter, node)
        return Literal(number, ColumnType.NUMBER)
    if len(value) > 1_000:
        raise _number_too_large(lifter, node)
    return Literal(value, ColumnType.TEXT)


def _number_too_large(lifter: Lifter, node: exp.Expr) -> Refused:
    return refuse(
        "too_large",
        "a literal is refused",
        "Numbers must fit 64 bits (or 1e300 with a fraction), texts 1,000 characters.",
        position=lifter.text.position(node),
    )


def moment(lifter: Lifter, node: exp.Expr, value: str, type_: ColumnType) -> Literal:
    """A date or timestamp literal. A text with a time beside a date column becomes a timestamp."""
    try:
        if type_ is ColumnType.DATE:
            return Literal(datetime.date.fromisoformat(value.strip()), ColumnType.DATE)
    except ValueError:
        type_ = ColumnType.TIMESTAMP
    try:
        found = datetime.datetime.fromisoformat(value.strip())
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None:
        raise refuse(
            "unsupported_type",
            "a text beside a date is refused",
            "It is not a date like 2024-12-31 or a time like 2024-12-31 23:59:59 without a zone.",
            "'2024-12-31'",
            position=lifter.text.position(node),
        )
    return Literal(found, ColumnType.TIMESTAMP)


def _cast(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "to", "safe", text=lifter.text, what="CAST")
    to = node.args["to"]
    decimal = _decimal(to)
    if decimal is not None:
        return _as_decimal(lifter, node, *decimal)
    type_ = _TYPES.get(to.this) if isinstance(to, exp.DataType) and not to.expressions else None
    if type_ is None:
        written = rendered(to)[:60] if isinstance(to, exp.Expr) else "this type"
        raise refuse(
            "unsupported_type",
            f"a cast to {written} is refused",
            "Only BIGINT, DOUBLE, DECIMAL, VARCHAR, BOOLEAN, DATE and TIMESTAMP are types of this language.",
            "cast to one of these",
            position=lifter.text.position(node),
        )
    source = bare(node.this)
    if isinstance(source, exp.Literal) and source.is_string and type_ in (ColumnType.DATE, ColumnType.TIMESTAMP):
        literal = moment(lifter, node, source.this, type_)
        if literal.type is type_:
            return literal
        return lifter.make(node, f"cast_{type_.value}", literal)
    if isinstance(source, exp.Null):
        return Literal(None, type_)
    made = lifter.make(node, f"cast_{type_.value}", lifter.lift(node.this))
    if to.this in _UNSIGNED:
        zero, null = Literal(0, ColumnType.INTEGER), Literal(None, ColumnType.INTEGER)
        return lifter.make(node, "case", lifter.make(node, ">=", made, zero), made, null)
    return made


def _decimal(to: object) -> tuple[int, int] | None:
    """The digits of a DECIMAL, and how many of them are decimals; None for any other type, and for too many."""
    if not isinstance(to, exp.DataType) or to.this is not exp.DType.DECIMAL:
        return None
    numbers = [whole_number(part.this) if isinstance(part, exp.DataTypeParam) else None for part in to.expressions]
    if not numbers:
        return 18, 3
    digits, decimals = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if digits is None or decimals is None or len(numbers) > 2:
        return None
    return (digits, decimals) if 0 < digits <= _DIGITS_MAX and decimals <= min(digits, _DECIMALS_MAX) else None


def _as_decimal(lifter: Lifter, node: exp.Expr, digits: int, decimals: int) -> Expression:
    """The NUMBER rounded to that many decimals, NULL where it has more digits than the type."""
    number = lifter.make(node, "cast_number", lifter.lift(node.this))
    rounded = lifter.make(node, "round", number, Literal(decimals, ColumnType.INTEGER))
    limit = Literal(10.0 ** (digits - decimals), ColumnType.NUMBER)
    fits = lifter.make(node, "<", lifter.make(node, "abs", rounded), limit)
    return lifter.make(node, "case", fits, rounded, Literal(None, ColumnType.NUMBER))


READERS: Mapping[type[exp.Expr], Reader] = {
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Placeholder: _placeholder,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
