"""Text: case, length, pieces, patterns. Characters are Unicode code points, as in the engine."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal
from sql_rewrite.functions import ranges
from sql_rewrite.functions.operator import (
    Lower,
    Lowerer,
    Operator,
    Resolved,
    TypeRefused,
    arity,
    constant,
    constant_integer,
    constant_text,
    expect,
)
from sql_rewrite.scalars import Concatenation, Function, FunctionName, Like, Scalar

__all__ = ["OPERATORS", "lower_case", "parse_pattern", "upper_case", "work"]

TEXT, INTEGER, BOOLEAN = ColumnType.TEXT, ColumnType.INTEGER, ColumnType.BOOLEAN

PATTERN_MAX = 200
NEEDLE_MAX = 1_000
PIECE_MAX = 1_000
START_MAX = 1_000_000
GROWTH_MAX = 16
FIXED_MAX = 4_000
"""Most characters of one value that come from constants and from pieces of constant length."""
TEXT_MAX = ranges.between(0, 2**32)
"""No engine stores a longer text."""


# --- Python references -------------------------------------------------------------------------------------------


def _lower_character(character: str) -> str:
    folded = character.lower()
    # One code point becomes one: the dotted capital I is the only one whose full mapping has two.
    return folded if len(folded) == 1 else "i" if character == "\u0130" else character


def _upper_character(character: str) -> str:
    folded = character.upper()
    if len(folded) == 1:
        return folded
    if character == "\u00df":
        return "\u1e9e"
    titled = character.title()
    return titled if len(titled) == 1 else character


def lower_case(text: str) -> str:
    """The text with every character mapped to its one lower-case character."""
    return text.lower() if text.isascii() else "".join(map(_lower_character, text))


def upper_case(text: str) -> str:
    """The text with every character mapped to its one upper-case character."""
    return text.upper() if text.isascii() else "".join(map(_upper_character, text))


def _case_agrees(text: str) -> bool:
    """Whether Python's Unicode tables know all characters; an engine with newer tables may map others."""
    return text.isascii() or all(unicodedata.category(character) != "Cn" for character in text)


_SPACES = "\u0020\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""What the engine trims: the space separators of Unicode, neither tabs nor line ends."""


def parse_pattern(pattern: str, escape: str | None) -> tuple[str | None, ...] | None:
    """A LIKE pattern as a tuple of literal characters, "" for one character and None for any number of them.

    Returns None when the pattern ends with its escape character.
    """
    parts: list[str | None] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if escape is not None and character == escape:
            position += 1
            if position == len(pattern):
                return None
            parts.append(pattern[position])
        elif character == "%":
            parts.append(None)
        elif character == "_":
            parts.append("")
        else:
            parts.append(character)
        position += 1
    return tuple(parts)


def _matches(text: str, parts: Sequence[str | None]) -> bool:
    """Greedy matching: returning to the last % is enough, so the time is at most text times pattern."""
    at = part = 0
    retry_at = retry_part = -1
    while at < len(text):
        if part < len(parts) and parts[part] is None:
            retry_at, retry_part = at, part
            part += 1
        elif part < len(parts) and parts[part] in ("", text[at]):
            at += 1
            part += 1
        elif retry_part >= 0:
            retry_at += 1
            at, part = retry_at, retry_part + 1
        else:
            return False
    return all(rest is None for rest in parts[part:])


# --- resolving ---------------------------------------------------------------------------------------------------


def _resolve_text(forms: str, kind: ColumnType = TEXT) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1)
        return Resolved((expect(forms, arguments[0], TEXT),), kind)

    return resolve


def _call(name: FunctionName) -> Lower:
    return lambda call, lowerer: Function(name, tuple([lowerer.value(argument) for argument in call.arguments]))


def _resolve_like(forms: str, *, fold: bool) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 2, 3)
        text = expect(forms, arguments[0], TEXT)
        pattern = constant_text(forms, arguments[1], "pattern", most=PATTERN_MAX)
        escape = None
        if len(arguments) == 3:
            escape = constant_text(forms, arguments[2], "escape character", most=1)
            if len(escape) != 1 or not escape.isascii() or (fold and escape.isalpha()):
                raise TypeRefused(
                    "unsupported_function",
                    f'"{forms}" is refused here',
                    "The escape must be one ASCII character (not a letter for ILIKE).",
                )
        if parse_pattern(pattern, escape) is None:
            raise TypeRefused(
                "unsupported_function", f'"{forms}" is refused here', "The pattern ends with its escape character."
            )
        return Resolved((text, *arguments[1:]), BOOLEAN)

    return resolve


def _escape(call: Call) -> str | None:
    if len(call.arguments) < 3:
        return None
    value = constant("LIKE", call.arguments[2], "escape character", TEXT).value
    assert isinstance(value, str)
    return value


def _like_lower(*, fold: bool, negated: bool) -> Lower:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        text, pattern, *escape = (lowerer.value(argument) for argument in call.arguments)
        return Like(text, pattern, escape[0] if escape else None, fold=fold, negated=negated)

    return lower


def _like(*, fold: bool, negated: bool) -> Callable[[Call, Sequence[Any]], bool]:
    def reference(call: Call, values: Sequence[Any]) -> bool:
        text, pattern = values[0], values[1]
        if fold:
            text, pattern = lower_case(text), lower_case(pattern)
        parts = parse_pattern(pattern, _escape(call))
        assert parts is not None
        return _matches(text, parts) is not negated

    return reference


def _like_operator(name: str, word: str, meaning: str, *, fold: bool, negated: bool) -> Operator:
    return Operator(
        name=name,
        forms=f"a {word} 'pattern' [ESCAPE 'c']",
        signature="TEXT, constant pattern of up to 200 characters, constant character -> BOOLEAN",
        meaning=meaning,
        totality="The pattern is a constant that was read beforehand; matching it is defined for every text.",
        resolve=_resolve_like(word, fold=fold),
        lower=_like_lower(fold=fold, negated=negated),
        reference=_like(fold=fold, negated=negated),
        exact_text=_case_agrees if fold else None,
        section="Text",
    )


def _resolve_piece(forms: str) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 2)
        constant_integer(forms, arguments[1], "number of characters", least=0, most=PIECE_MAX)
        return Resolved((expect(forms, arguments[0], TEXT), arguments[1]), TEXT)

    return resolve


def _resolve_substr(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "SUBSTR"
    arity(forms, arguments, 2, 3)
    constant_integer(forms, arguments[1], "start", least=1, most=START_MAX)
    if len(arguments) == 3:
        constant_integer(forms, arguments[2], "number of characters", least=0, most=PIECE_MAX)
    return Resolved((expect(forms, arguments[0], TEXT), *arguments[1:]), TEXT)


def _substr(call: Call, values: Sequence[Any]) -> str:
    start = values[1] - 1
    text: str = values[0]
    return text[start:] if len(values) == 2 else text[start : start + values[2]]


def _right(call: Call, values: Sequence[Any]) -> str:
    text: str = values[0]
    return text[len(text) - min(values[1], len(text)) :]


def _resolve_needle(forms: str, kind: ColumnType = BOOLEAN) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 2)
        constant_text(forms, arguments[1], "searched text", most=NEEDLE_MAX)
        return Resolved((expect(forms, arguments[0], TEXT), arguments[1]), kind)

    return resolve


def _resolve_replace(arguments: tuple[Expression, ...]) -> Resolved:
    forms = "REPLACE"
    arity(forms, arguments, 3)
    old = constant_text(forms, arguments[1], "searched text", most=NEEDLE_MAX)
    new = constant_text(forms, arguments[2], "replacement", most=NEEDLE_MAX)
    if len(new.encode()) > len(old.encode()):
        raise TypeRefused(
            "too_large",
            '"REPLACE" is refused here',
            "The replacement is longer than what it replaces, so the text could grow without limit.",
        )
    return Resolved((expect(forms, arguments[0], TEXT), *arguments[1:]), TEXT)


def _replace(call: Call, values: Sequence[Any]) -> str:
    text: str = values[0]
    return text if values[1] == "" else text.replace(values[1], values[2])


def growth(expression: Expression) -> int:
    """How many times a stored text may be repeated in a value of the expression; constants count as nothing."""
    if isinstance(expression, ColumnRef):
        return 1
    if isinstance(expression, Literal) or expression.type is not TEXT:
        return 0
    texts = [growth(argument) for argument in expression.arguments if argument.type is TEXT]
    if expression.operator == "concat":
        return sum(texts)
    if expression.operator in ("left", "right") or (expression.operator == "substr" and len(expression.arguments) == 3):
        return 0
    return max(texts, default=0)


def fixed(expression: Expression) -> int:
    """How many characters of a value of the expression may come from the query: constants and pieces."""
    if isinstance(expression, ColumnRef):
        return 0
    longest = _longest(expression)
    if longest is not None:
        return longest
    if not isinstance(expression, Call):
        return 0
    texts = [fixed(argument) for argument in expression.arguments if argument.type is TEXT]
    if not texts:
        return 40  # a number, a truth value, a date or the name of a day as text
    return sum(texts) if expression.operator == "concat" else max(texts)


WORK_UNIT = 50
"""Steps over characters that count as much as one operator."""


def work(arguments: Sequence[Expression]) -> int:
    """What reading long constants costs beside the operator itself, in operators.

    A constant behind a condition on one person's row is read for that row alone: without a limit, the time of a
    query would tell whether the row is there. Patterns are matched in text times pattern steps at worst.
    """
    long = sum(fixed(argument) for argument in arguments if argument.type is TEXT and not isinstance(argument, Literal))
    if not long:
        return 0
    needles = [len(a.value) for a in arguments if isinstance(a, Literal) and isinstance(a.value, str)]
    return long * (1 + max(needles, default=0)) // WORK_UNIT


def _resolve_concat(forms: str) -> Callable[[tuple[Expression, ...]], Resolved]:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 1, GROWTH_MAX)
        converted = tuple(expect(forms, argument, TEXT) for argument in arguments)
        if sum(growth(argument) for argument in converted) > GROWTH_MAX:
            raise TypeRefused(
                "too_large", f'"{forms}" is refused here', f"It joins more than {GROWTH_MAX} stored texts in one value."
            )
        if sum(fixed(argument) for argument in converted) > FIXED_MAX:
            # Repeated constants would make one person's row as large and slow as the query likes.
            raise TypeRefused(
                "too_large",
                f'"{forms}" is refused here',
                f"Its constants may make a text of more than {FIXED_MAX:,} characters.",
            )
        return Resolved(converted, TEXT)

    return resolve


def _length_range(arguments: Sequence[Expression], intervals: Sequence[Interval]) -> Interval:
    longest = _longest(arguments[0])
    return Interval(Fraction(0), None if longest is None else Fraction(longest))


def _longest(expression: Expression) -> int | None:
    """The most characters that the text can have, where the expression itself says so."""
    if isinstance(expression, Literal):
        return len(expression.value) if isinstance(expression.value, str) else 0
    if isinstance(expression, Call):
        last = expression.arguments[-1]
        cut = expression.operator in ("left", "right") or (
            expression.operator == "substr" and len(expression.arguments) == 3
        )
        if cut and isinstance(last, Literal) and isinstance(last.value, int):
            return last.value
    return None


def _trim(name: FunctionName, forms: str, meaning: str, function: Callable[[str], str]) -> Operator:
    return Operator(
        name=name,
        forms=forms,
        signature="TEXT -> TEXT",
        meaning=meaning,
        totality="Removing characters is defined for every text and makes it shorter.",
        resolve=_resolve_text(forms),
        lower=_call(name),
        reference=lambda call, values: function(values[0]),
        section="Text",
    )


def _needle(name: FunctionName, forms: str, meaning: str, function: Callable[[str, str], bool]) -> Operator:
    return Operator(
        name=name,
        forms=forms,
        signature="TEXT, constant of up to 1,000 characters -> BOOLEAN",
        meaning=meaning,
        totality="Searching a constant is defined for every text.",
        resolve=_resolve_needle(forms),
        lower=_call(name),
        reference=lambda call, values: function(values[0], values[1]),
        section="Text",
    )


def _piece(name: FunctionName, forms: str, meaning: str, reference: Callable[[Call, Sequence[Any]], str]) -> Operator:
    return Operator(
        name=name,
        forms=forms,
        signature="TEXT, constant from 0 to 1,000 -> TEXT",
        meaning=meaning,
        totality="The number of characters is a small constant; shorter texts are returned as they are.",
        resolve=_resolve_piece(forms),
        lower=_call(name),
        reference=reference,
        section="Text",
    )


OPERATORS: tuple[Operator, ...] = (
    _like_operator(
        "like", "LIKE", "Whether the whole text fits the pattern: % any characters, _ one.", fold=False, negated=False
    ),
    _like_operator("not_like", "NOT LIKE", "The opposite of LIKE; NULL for NULL.", fold=False, negated=True),
    _like_operator("ilike", "ILIKE", "LIKE after both sides were turned to lower case.", fold=True, negated=False),
    _like_operator("not_ilike", "NOT ILIKE", "The opposite of ILIKE; NULL for NULL.", fold=True, negated=True),
    Operator(
        name="lower",
        forms="LOWER(a)",
        signature="TEXT -> TEXT",
        meaning="Every character mapped to its one lower-case character.",
        totality="The mapping has one result per code point and leaves unknown ones alone.",
        resolve=_resolve_text("LOWER"),
        lower=_call("lower"),
        reference=lambda call, values: lower_case(values[0]),
        exact_text=_case_agrees,
        section="Text",
    ),
    Operator(
        name="upper",
        forms="UPPER(a)",
        signature="TEXT -> TEXT",
        meaning="Every character mapped to its one upper-case character.",
        totality="The mapping has one result per code point and leaves unknown ones alone.",
        resolve=_resolve_text("UPPER"),
        lower=_call("upper"),
        reference=lambda call, values: upper_case(values[0]),
        exact_text=_case_agrees,
        section="Text",
    ),
    Operator(
        name="length",
        forms="LENGTH(a), CHAR_LENGTH(a)",
        signature="TEXT -> INTEGER",
        meaning="The number of code points.",
        totality="Every stored text is valid UTF-8 of less than 2^32 bytes.",
        resolve=_resolve_text("LENGTH", INTEGER),
        lower=_call("length"),
        reference=lambda call, values: len(values[0]),
        range=_length_range,
        ceiling=TEXT_MAX,
        section="Text",
    ),
    _trim("trim", "TRIM(a)", "Without spaces at both ends (Unicode space separators).", lambda t: t.strip(_SPACES)),
    _trim("ltrim", "LTRIM(a)", "Without spaces at the start.", lambda t: t.lstrip(_SPACES)),
    _trim("rtrim", "RTRIM(a)", "Without spaces at the end.", lambda t: t.rstrip(_SPACES)),
    _piece("left", "LEFT(a, n)", "The first n characters.", lambda call, values: str(values[0][: values[1]])),
    _piece("right", "RIGHT(a, n)", "The last n characters.", _right),
    Operator(
        name="substr",
        forms="SUBSTR(a, start [, n]), SUBSTRING",
        signature="TEXT, constant from 1 to 1,000,000, constant from 0 to 1,000 -> TEXT",
        meaning="From the character at start (1 is the first): n characters, or all that follow.",
        totality="Start and length are bounded constants; a start behind the end gives the empty text.",
        resolve=_resolve_substr,
        lower=_call("substr"),
        reference=_substr,
        section="Text",
    ),
    Operator(
        name="concat",
        forms="a || b, CONCAT(a, b, ...)",
        signature="TEXT, ... -> TEXT",
        meaning="The texts one after another; NULL when one is NULL (in CONCAT, NULL is replaced by the empty text).",
        totality="At most 16 stored texts are joined in one value, so its size stays near that of the data.",
        resolve=_resolve_concat("||"),
        lower=lambda call, lowerer: Concatenation(tuple([lowerer.value(argument) for argument in call.arguments])),
        reference=lambda call, values: "".join(values),
        section="Text",
    ),
    Operator(
        name="replace",
        forms="REPLACE(a, old, new)",
        signature="TEXT, constant, constant that is not longer -> TEXT",
        meaning="Every occurrence of old, from left to right, replaced by new.",
        totality="The replacement is not longer than what it replaces, so the text cannot grow.",
        resolve=_resolve_replace,
        lower=_call("replace"),
        reference=_replace,
        section="Text",
    ),
    _needle("starts_with", "STARTS_WITH(a, 'x')", "Whether the text begins with it.", lambda a, b: a.startswith(b)),
    _needle("ends_with", "ENDS_WITH(a, 'x'), SUFFIX", "Whether the text ends with it.", lambda a, b: a.endswith(b)),
    _needle("contains", "CONTAINS(a, 'x')", "Whether it occurs in the text.", lambda a, b: b in a),
    Operator(
        name="position",
        forms="POSITION('x' IN a), STRPOS(a, 'x'), INSTR",
        signature="TEXT, constant of up to 1,000 characters -> INTEGER",
        meaning="Where it occurs first (1 is the first character), 0 when it does not; 1 for the empty text.",
        totality="Searching a constant is defined for every text, and a text has fewer than 2^32 characters.",
        resolve=_resolve_needle("POSITION", INTEGER),
        lower=_call("position"),
        reference=lambda call, values: values[0].find(values[1]) + 1,
        range=_length_range,
        ceiling=TEXT_MAX,
        section="Text",
    ),
)
"""Entries of the allow-list."""
