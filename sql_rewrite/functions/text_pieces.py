"""Text: pieces between separators, padding, single characters. Everything that decides about length is a constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from privacy.policy import ColumnType
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.expressions import Call, Expression, Literal, Value
from sql_rewrite.functions import ranges
from sql_rewrite.functions.operator import (
    Lowerer,
    Operator,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    constant_integer,
    constant_text,
    expect,
    one_argument,
    plain_call,
)
from sql_rewrite.functions.values import of_text, of_texts, text, whole
from sql_rewrite.scalars import EngineType, Function, Scalar, SplitPart

__all__ = ["OPERATORS"]

TEXT, INTEGER = ColumnType.TEXT, ColumnType.INTEGER

SEPARATOR_MAX = 20
PARTS_MAX = 50
LENGTH_MAX = 200
SET_MAX = 100
TRIMMED_MAX = 20


# --- the parts of a text ---------------------------------------------------------------------------------------------


def _resolve_split(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "SPLIT_PART"
    arity(forms, arguments, 3)
    separator = constant_text(forms, arguments[1], "separator", most=SEPARATOR_MAX)
    place = constant_integer(forms, arguments[2], "number of the part", least=-PARTS_MAX, most=PARTS_MAX)
    if not separator or place == 0 or (place < 0 and len(separator) > 1):
        raise TypeRefused(
            "unsupported_function",
            '"SPLIT_PART" is refused here',
            "The separator is one character at least, exactly one where parts are counted from the end, and parts are "
            "counted from 1, or from -1 for the last one.",
            ("SPLIT_PART(x, ',', 1)",),
        )
    return Resolved((expect(forms, arguments[0], TEXT), *arguments[1:]), TEXT)


def _split_lower(call: Call, lowerer: Lowerer) -> Scalar:
    _, separator, place = call.arguments
    assert isinstance(separator, Literal)
    assert isinstance(place, Literal)
    return SplitPart(lowerer.value(call.arguments[0]), text(separator.value), whole(place.value))


def _split(call: Call, values: Sequence[Value]) -> str:
    parts, place = text(values[0]).split(text(values[1])), whole(values[2])
    if abs(place) > len(parts):
        return ""
    return parts[place - 1 if place > 0 else place]


# --- padding ---------------------------------------------------------------------------------------------------------


def _resolve_pad(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "LPAD and RPAD"
    arity(forms, arguments, 3)
    constant_integer(forms, arguments[1], "number of characters", least=0, most=LENGTH_MAX)
    if not constant_text(forms, arguments[2], "padding", most=SET_MAX):
        raise TypeRefused("unsupported_function", f'"{forms}" is refused here', "The padding is empty.")
    return Resolved((expect(forms, arguments[0], TEXT), *arguments[1:]), TEXT)


def _padding(values: Sequence[Value]) -> str:
    missing = max(0, whole(values[1]) - len(text(values[0])))
    padding = text(values[2])
    return (padding * (missing // len(padding) + 1))[:missing]


def _pad_characters(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    number = arguments[1]
    assert isinstance(number, Literal)
    return whole(number.value)


def _pad(name: str, where: str, join: Callable[[str, str], str], cost: Cost) -> Operator:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        value, number, padding = map(lowerer.value, call.arguments)
        return Function(name, (value, number, padding))

    def reference(call: Call, values: Sequence[Value]) -> str:
        return join(text(values[0])[: whole(values[1])], _padding(values))

    return Operator(
        name=name,
        forms=f"{name.upper()}(a, n, 'x')",
        signature="TEXT, constant from 0 to 200, constant of up to 100 characters -> TEXT",
        meaning=f"The text with exactly n characters: the first ones, or the padding repeated {where}.",
        totality="The number of characters is a small constant and the padding is not empty.",
        resolve=_resolve_pad,
        lower=lower,
        reference=reference,
        characters=_pad_characters,
        cost=cost,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    )


# --- characters ------------------------------------------------------------------------------------------------------


def _resolve_set(arguments: tuple[Expression, ...]) -> Resolved:
    arity("TRIM", arguments, 2)
    constant_text("TRIM", arguments[1], "list of characters", most=TRIMMED_MAX)
    return Resolved((expect("TRIM", arguments[0], TEXT), arguments[1]), TEXT)


def _trim(name: str, forms: str, where: str, function: Callable[[str, str], str], cost: Cost) -> Operator:
    return Operator(
        name=f"{name}_of",
        forms=forms,
        signature="TEXT, constant of up to 20 characters -> TEXT",
        meaning=f"Without any of these characters {where}.",
        totality="Removing characters is defined for every text and makes it shorter.",
        resolve=_resolve_set,
        lower=plain_call(name),
        reference=of_texts(function),
        characters=as_long_as_the_first,
        cost=cost,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    )


def as_long_as_the_first(arguments: Sequence[Expression], lengths: Sequence[int]) -> int:
    """Not longer than the text that it is made of."""
    return lengths[0]


def _resolve_translate(arguments: tuple[Expression, ...]) -> Resolved:
    arity("TRANSLATE", arguments, 3)
    for argument, role in zip(arguments[1:], ("characters", "replacements"), strict=True):
        constant_text("TRANSLATE", argument, f"list of {role}", most=SET_MAX)
    return Resolved((expect("TRANSLATE", arguments[0], TEXT), *arguments[1:]), TEXT)


def _translate(call: Call, values: Sequence[Value]) -> str:
    characters, old, new = map(text, values)
    table = {ord(sign): new[place] if place < len(new) else None for place, sign in reversed(list(enumerate(old)))}
    return characters.translate(table)


def _code(name: str, forms: str, empty: int, *others: str) -> Operator:
    within = ranges.between(empty, 0x10FFFF)
    return Operator(
        name=name,
        forms=forms,
        signature="TEXT -> INTEGER",
        meaning=f"The code point of the first character, {empty} for the empty text.",
        totality="Every stored text is valid UTF-8, so its first character has a code point.",
        names=(name, *others),
        resolve=one_argument(name.upper(), TEXT, to=INTEGER),
        lower=plain_call(name, cast=EngineType.INTEGER),
        reference=of_text(lambda value: ord(value[0]) if value else empty),
        range=lambda arguments, intervals: within,
        cost=Cost(row=30, vector=4000, character=7),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    )


OPERATORS: tuple[Operator, ...] = (
    Operator(
        name="split_part",
        forms="SPLIT_PART(a, ',', n)",
        signature="TEXT, constant of up to 20 characters, constant from -50 to 50 -> TEXT",
        meaning="The n-th part between separators, from the end when n is negative (with a separator of one "
        "character); empty where there is none.",
        totality="The separator and the number are constants; searching them is linear in the text and has a result "
        "for every text.",
        names=("split_part",),
        takes=3,
        resolve=_resolve_split,
        lower=_split_lower,
        reference=_split,
        characters=as_long_as_the_first,
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    ),
    _pad("lpad", "at the start", lambda kept, padding: padding + kept, Cost(row=2800, vector=17_000, character=6)),
    _pad("rpad", "at the end", lambda kept, padding: kept + padding, Cost(row=2800, vector=17_000, character=6)),
    _trim(
        "trim",
        "TRIM(a, 'xy'), TRIM(BOTH 'x' FROM a)",
        "at both ends",
        str.strip,
        Cost(row=1400, vector=15_000, character=35),
    ),
    _trim("ltrim", "LTRIM(a, 'xy')", "at the start", str.lstrip, Cost(row=1400, vector=15_000, character=35)),
    _trim("rtrim", "RTRIM(a, 'xy')", "at the end", str.rstrip, Cost(row=1400, vector=15_000, character=35)),
    Operator(
        name="translate",
        forms="TRANSLATE(a, 'xy', 'zw')",
        signature="TEXT, constant of up to 100 characters, constant of up to 100 characters -> TEXT",
        meaning="Each character of the first list replaced by the one at its place in the second, or removed.",
        totality="One character becomes one or none, so the text cannot grow.",
        names=("translate",),
        takes=3,
        resolve=_resolve_translate,
        lower=plain_call("translate"),
        reference=_translate,
        characters=as_long_as_the_first,
        cost=Cost(row=3500, vector=8000, character=60),
        nullable=any_nullable,
        strict=True,
        exact=True,
        section="Text",
    ),
    _code("ascii", "ASCII(a)", 0),
    _code("unicode", "UNICODE(a), ORD(a)", -1, "ord"),
)
"""Entries of the allow-list."""
