"""Calls of functions. Which operator a call is follows from the names in the registry (`Operator.names`, `parts`).

The parser makes a class of its own of most functions, with a slot for each argument; which ones, it is asked once, when
this is imported.
A call that has a syntax of its own (`EXTRACT(year FROM d)`), or means several operators (`LOG`), has a reader here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from privacy.policy import ColumnType
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.filled import fill
from sql_rewrite.functions import REGISTRY
from sql_rewrite.lift_clock import CLOCKS, clock
from sql_rewrite.lift_difference import difference, number_of
from sql_rewrite.lift_interval import age
from sql_rewrite.lift_refusal import unlisted, unread, worded
from sql_rewrite.lifter import Lifter, Reader
from sql_rewrite.operands import operands_of
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import DIALECT, consume, populated, whole_number

__all__ = ["NAMES", "READERS"]

_AS_TEXT = (ColumnType.INTEGER, ColumnType.BOOLEAN, ColumnType.DATE)
"""What || and CONCAT join to a text without a CAST, as the dialect does: types with one spelling of each value."""

_COLUMNS = ("x0", "x1", "x2")
"""Arguments of the example of a call. Of one that takes any number, what follows goes where the last of them went."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A function's operator, the slots of its arguments in order, and what the parser puts in others of every call."""

    operator: str
    slots: tuple[str, ...]
    fixed: tuple[tuple[str, object], ...]
    alike: bool


def _calls() -> tuple[dict[type[exp.Expr], _Call], dict[str, _Call]]:
    """The calls of all operators by their class, and by their name where the parser has no class for it.

    The parser reads one example of each, `name(x0, x1)`.
    """
    listed = [(operator, name) for operator in REGISTRY.values() for name in operator.names]
    examples = [f"{name}({', '.join(_COLUMNS[: operator.takes])})" for operator, name in listed]
    classes: dict[type[exp.Expr], _Call] = {}
    names: dict[str, _Call] = {}
    parsed = sqlglot.parse_one(f"SELECT {', '.join(examples)}", dialect=DIALECT).expressions
    for (operator, name), node in zip(listed, parsed, strict=True):
        slots = {part.name: part.arg_key for part in node.find_all(exp.Column)}
        anonymous = isinstance(node, exp.Anonymous)
        others = () if anonymous else sorted(populated(node) - {*slots.values()})
        call = _Call(
            operator.name,
            tuple(dict.fromkeys(slots[column] for column in _COLUMNS[: operator.takes])),
            tuple((slot, node.args[slot]) for slot in others),
            operator.alike,
        )
        known = names.setdefault(name, call) if anonymous else classes.setdefault(type(node), call)
        assert known == call, f"{name} is a call of {known.operator} and of {call.operator}"
    return classes, names


_CALLS, _NAMED = _calls()
_PARTS = {part: operator.name for operator in REGISTRY.values() for part in operator.parts}

NAMES = frozenset({*_NAMED, "date_part", "datepart"})
"""Functions that the parser has no class for, in lower case."""


def _read(lifter: Lifter, node: exp.Expr) -> Expression:
    return _read_as(lifter, node, _CALLS[type(node)])


def _read_as(lifter: Lifter, node: exp.Expr, call: _Call) -> Expression:
    consume(node, "this", *call.slots, *dict(call.fixed), text=lifter.text, what=worded(node))
    if any(node.args.get(slot) != value for slot, value in call.fixed):
        raise unread(lifter, node)
    arguments: list[exp.Expr] = []
    for slot in call.slots:
        value = node.args.get(slot)
        arguments += value if isinstance(value, list) else [] if value is None else [value]
    if call.alike:
        return lifter.make(node, call.operator, *lifter.siblings(arguments))
    return lifter.make(node, call.operator, *[lifter.lift(argument) for argument in arguments])


def _anonymous(lifter: Lifter, node: exp.Expr) -> Expression:
    assert isinstance(node, exp.Anonymous)
    name = str(node.this).lower()
    if (
        name in ("date_part", "datepart")
        and len(node.expressions) == 2
        and isinstance(node.expressions[0], exp.Literal)
    ):
        consume(node, "this", "expressions", text=lifter.text, what="a function call")
        return _date_part(lifter, node, str(node.expressions[0].this), node.expressions[1])
    if name in CLOCKS and not node.expressions:
        consume(node, "this", "expressions", text=lifter.text, what="a function call")
        return clock(lifter, node, name)
    if name not in _NAMED:
        consume(node, "this", "expressions", text=lifter.text, what="a function call")
        raise unlisted(lifter, node)
    return _read_as(lifter, node, _NAMED[name])


_FIRM = (exp.Column, exp.Paren, exp.Literal)
_AROUND = (
    exp.Paren, exp.Alias, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.EQ, exp.NEQ, exp.LT, exp.LTE,
    exp.GT, exp.GTE, exp.And, exp.Or, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Select, exp.Where,
)  # fmt: skip


def _clear(node: exp.Expr) -> bool:
    """Whether a power is read alike wherever ** binds tighter than *: names, numbers and brackets beside it."""
    return isinstance(node.this, _FIRM) and isinstance(node.expression, _FIRM) and isinstance(node.parent, _AROUND)


def _power(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what="POWER")
    position = lifter.text.position(node)
    if position is not None and not position.text.lower().startswith(("pow", "(pow")) and not _clear(node):
        raise refuse(
            "unsupported_sql",
            "the operators ^ and ** are refused",
            "Their precedence differs between parsers, beside a sign, a cast and one another.",
            fill("POWER({x}, {y})", operands_of(lifter, node)),
            position=position,
        )
    return lifter.make(node, "power", lifter.lift(node.this), lifter.lift(node.expression))


def _log(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what="LOG")
    argument = node.expression
    if argument is None:
        return lifter.make(node, "log10", lifter.lift(node.this))
    base = node.this
    if isinstance(base, exp.Literal) and base.this in ("2", "10"):
        return lifter.make(node, f"log{base.this}", lifter.lift(argument))
    raise unread(lifter, node)


def _trim(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "position", "expression", text=lifter.text, what="TRIM")
    where = str(node.args.get("position") or "BOTH").upper()
    operator = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim"}.get(where)
    if operator is None:
        raise unread(lifter, node)
    if node.expression is not None:
        return lifter.make(node, f"{operator}_of", lifter.lift(node.this), lifter.lift(node.expression))
    return lifter.make(node, operator, lifter.lift(node.this))


def _pi(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, text=lifter.text, what="PI")
    return Literal(math.pi, ColumnType.NUMBER)


def _regular(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what=worded(node))
    operator = "regexp_matches" if isinstance(node, exp.RegexpLike) else "regexp_full_match"
    return lifter.make(node, operator, lifter.lift(node.this), lifter.lift(node.expression))


def _regexp_extract(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", "group", "null_if_pos_overflow", text=lifter.text, what="REGEXP_EXTRACT")
    parts = [node.this, node.expression, node.args.get("group")]
    return lifter.make(node, "regexp_extract", *[lifter.lift(part) for part in parts if part is not None])


def _regexp_replace(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(
        node,
        "this",
        "expression",
        "replacement",
        "modifiers",
        "single_replace",
        text=lifter.text,
        what="REGEXP_REPLACE",
    )
    parts = [node.this, node.expression, node.args.get("replacement"), node.args.get("modifiers")]
    return lifter.make(node, "regexp_replace", *[lifter.lift(part) for part in parts if part is not None])


def _concat_ws(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "expressions", "coalesce", "safe", text=lifter.text, what="CONCAT_WS")
    separator, *parts = node.expressions
    return _joined(lifter, node, separator, parts)


def _array_to_string(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what="ARRAY_TO_STRING")
    if not isinstance(node.this, exp.Array):
        raise unread(lifter, node)
    return _joined(lifter, node, node.expression, node.this.expressions)


def _joined(lifter: Lifter, node: exp.Expr, separator: exp.Expr, parts: list[exp.Expr]) -> Expression:
    """The texts that are not NULL with a constant separator between them: before each, and cut off at the start."""
    constant = lifter.lift(separator)
    if not parts or not isinstance(constant, Literal) or not isinstance(constant.value, str):
        raise unread(lifter, node)
    empty = Literal("", ColumnType.TEXT)
    pieces = []
    for part in parts:
        piece = lifter.make(node, "concat", constant, lifter.lift(part))
        pieces.append(lifter.make(node, "coalesce", piece, empty))
    start = Literal(len(constant.value) + 1, ColumnType.INTEGER)
    return lifter.make(node, "substr", lifter.make(node, "concat", *pieces), start)


def _chr(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "expressions", "charset", text=lifter.text, what="CHR")
    code = whole_number(node.expressions[0]) if len(node.expressions) == 1 else None
    if code is None or not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
        raise refuse(
            "unsupported_function",
            f"{lifter.text.spelled(node) or 'CHR'} is refused",
            "Its argument must be a constant, and the code point of a character.",
            "CHR(10)",
            position=lifter.text.position(node),
        )
    return Literal(chr(code), ColumnType.TEXT)


def _pad(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", "fill_pattern", "is_left", text=lifter.text, what=worded(node))
    operator = "lpad" if node.args.get("is_left") else "rpad"
    parts = [node.this, node.expression, node.args.get("fill_pattern")]
    return lifter.make(node, operator, *[lifter.lift(part) for part in parts if part is not None])


def _concat(lifter: Lifter, node: exp.Expr) -> Expression:
    """CONCAT skips NULLs in the dialect, the operator || does not: each argument of CONCAT is coalesced."""
    consume(node, "expressions", "coalesce", "safe", text=lifter.text, what="CONCAT")
    empty = Literal("", ColumnType.TEXT)
    read = [lifter.lift(part) for part in node.expressions]
    parts = [lifter.make(node, "coalesce", _written(lifter, node, part), empty) for part in read]
    return lifter.make(node, "concat", *parts)


def _pipe(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", "safe", text=lifter.text, what="||")
    parts = [lifter.lift(node.this), lifter.lift(node.expression)]
    if any(part.type is ColumnType.TEXT for part in parts):
        parts = [_written(lifter, node, part) for part in parts]
    return lifter.make(node, "concat", *parts)


def _written(lifter: Lifter, node: exp.Expr, part: Expression) -> Expression:
    """A part of a text that is put together: whole numbers, days and truth values as a CAST would write them."""
    return lifter.make(node, "cast_text", part) if part.type in _AS_TEXT else part


def _extract(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", text=lifter.text, what="EXTRACT")
    return _date_part(lifter, node, _unit(lifter, node, node.this), node.expression)


def _unit(lifter: Lifter, node: exp.Expr, unit: object) -> str:
    """The unit of a date function: a word or a text, never a computed value."""
    if isinstance(unit, exp.Var | exp.Literal):
        return str(unit.name)
    raise refuse(
        "unsupported_function",
        f"{lifter.text.spelled(node) or 'a part of a date'} is refused",
        "The part of the date is not one word, like year or 'year'.",
        position=lifter.text.position(node),
    )


def _epoch(lifter: Lifter, node: exp.Expr) -> Expression:
    """The seconds of a moment, or of a difference of two."""
    moments = difference(lifter, node.this)
    if moments is None:
        return _read(lifter, node)
    consume(node, "this", text=lifter.text, what="EPOCH")
    return number_of(lifter, node, moments)


def _date_part(lifter: Lifter, node: exp.Expr, unit: str, value: exp.Expr) -> Expression:
    part = age(lifter, value, unit)
    if part is not None:
        return part
    operator = _PARTS.get(unit.lower())
    if operator is None:
        raise refuse(
            "unsupported_function",
            f"{lifter.text.spelled(node) or 'a part of a date'} is refused",
            f'"{unit[:40]}" is not one of: ' + ", ".join(sorted(_PARTS)) + ".",
            position=lifter.text.position(node),
        )
    return lifter.make(node, operator, lifter.lift(value))


def _date_trunc(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "unit", text=lifter.text, what="DATE_TRUNC")
    unit = node.args["unit"]
    name = _unit(lifter, node, unit).lower()
    return lifter.make(node, "date_trunc", Literal(name, ColumnType.TEXT), lifter.lift(node.this))


def _date_diff(lifter: Lifter, node: exp.Expr) -> Expression:
    consume(node, "this", "expression", "unit", "date_part_boundary", text=lifter.text, what="DATE_DIFF")
    unit = node.args.get("unit")
    name = _unit(lifter, node, unit).lower()
    start, end = lifter.siblings([node.expression, node.this])
    return lifter.make(node, "date_diff", Literal(name, ColumnType.TEXT), start, end)


READERS: Mapping[type[exp.Expr], Reader] = {
    **dict.fromkeys(_CALLS, _read),
    exp.TimeToUnix: _epoch,
    exp.Pow: _power,
    exp.Log: _log,
    exp.Trim: _trim,
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.ArrayToString: _array_to_string,
    exp.Chr: _chr,
    exp.Pi: _pi,
    exp.RegexpLike: _regular,
    exp.RegexpFullMatch: _regular,
    exp.SimilarTo: _regular,
    exp.RegexpExtract: _regexp_extract,
    exp.RegexpReplace: _regexp_replace,
    exp.Pad: _pad,
    exp.DPipe: _pipe,
    exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc,
    exp.DateTrunc: _date_trunc,
    exp.DateDiff: _date_diff,
    exp.Anonymous: _anonymous,
}
