"""LIKE and ILIKE: patterns are constants, read before any row is."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, Expression, Value
from sql_rewrite.functions.letters import case_agrees, lower_case
from sql_rewrite.functions.operator import (
    Lower,
    Lowerer,
    Operator,
    Reference,
    Resolve,
    Resolved,
    TypeRefused,
    any_nullable,
    arity,
    constant_text,
    expect,
)
from sql_rewrite.functions.values import text
from sql_rewrite.scalars import Like, Scalar

__all__ = ["OPERATORS"]

TEXT, BOOLEAN = ColumnType.TEXT, ColumnType.BOOLEAN

PATTERN_MAX = 200


def _parse_pattern(pattern: str, escape: str | None) -> tuple[str | None, ...] | None:
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


def _matches(searched: str, parts: Sequence[str | None]) -> bool:
    """Greedy matching: returning to the last % is enough, so the time is at most text times pattern."""
    at = part = 0
    retry_at = retry_part = -1
    while at < len(searched):
        if part < len(parts) and parts[part] is None:
            retry_at, retry_part = at, part
            part += 1
        elif part < len(parts) and parts[part] in ("", searched[at]):
            at += 1
            part += 1
        elif retry_part >= 0:
            retry_at += 1
            at, part = retry_at, retry_part + 1
        else:
            return False
    return all(left is None for left in parts[part:])


def _resolve_like(forms: str, *, fold: bool) -> Resolve:
    def resolve(arguments: tuple[Expression, ...]) -> Resolved:
        arity(forms, arguments, 2, 3)
        searched = expect(forms, arguments[0], TEXT)
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
        if _parse_pattern(pattern, escape) is None:
            raise TypeRefused(
                "unsupported_function", f'"{forms}" is refused here', "The pattern ends with its escape character."
            )
        return Resolved((searched, *arguments[1:]), BOOLEAN)

    return resolve


def _escape(call: Call) -> str | None:
    if len(call.arguments) < 3:
        return None
    return constant_text("LIKE", call.arguments[2], "escape character", most=1)


def _like_lower(*, fold: bool, negated: bool) -> Lower:
    def lower(call: Call, lowerer: Lowerer) -> Scalar:
        searched, pattern, *escape = (lowerer.value(argument) for argument in call.arguments)
        return Like(searched, pattern, escape[0] if escape else None, fold=fold, negated=negated)

    return lower


def _like(*, fold: bool, negated: bool) -> Reference:
    def reference(call: Call, values: Sequence[Value]) -> bool:
        searched, pattern = text(values[0]), text(values[1])
        if fold:
            searched, pattern = lower_case(searched), lower_case(pattern)
        parts = _parse_pattern(pattern, _escape(call))
        assert parts is not None
        return _matches(searched, parts) is not negated

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
        exact=case_agrees if fold else True,
        nullable=any_nullable,
        strict=True,
        section="Text",
    )


OPERATORS: tuple[Operator, ...] = (
    _like_operator(
        "like", "LIKE", "Whether the whole text fits the pattern: % any characters, _ one.", fold=False, negated=False
    ),
    _like_operator("not_like", "NOT LIKE", "The opposite of LIKE; NULL for NULL.", fold=False, negated=True),
    _like_operator("ilike", "ILIKE", "LIKE after both sides were turned to lower case.", fold=True, negated=False),
    _like_operator("not_ilike", "NOT ILIKE", "The opposite of ILIKE; NULL for NULL.", fold=True, negated=True),
)
"""Entries of the allow-list."""
