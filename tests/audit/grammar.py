"""The one grammar of random SQL expressions: forms with holes, which each generator fills from its own columns.

A hole names a maker of its type, `{whole}` one level deeper and `{whole0}` at the bottom; `[FLOOR|CEIL]` is one of a
few words. Generators add forms of their own, and say what the leaves are. Everything follows from one random source.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

__all__ = ["DEAD", "REALS", "TRUTHS", "WHOLES", "WORDS", "Grammar"]

WHOLES = (
    "({whole} + {whole})",
    "({whole} - {whole})",
    "({whole} * {whole0})",
    "({whole} // {whole0})",
    "({whole} % {whole0})",
    "ABS({whole})",
    "SIGN({real})",
    "LENGTH({words})",
    "[year|month|day|quarter]({day})",
    "CAST({real} AS BIGINT)",
    "TRY_CAST({words} AS BIGINT)",
    "CASE WHEN {truth} THEN {whole} ELSE {whole0} END",
    "COALESCE({whole}, {whole0})",
    "date_diff('day', {day0}, {day0})",
)
"""Forms of an INTEGER."""

REALS = (
    "({real} [+|-|*|/] {real})",
    "({real} * {real0})",
    "SQRT({real})",
    "ABS({real})",
    "FLOOR({real})",
    "ROUND({real}, 1)",
    "CAST({whole} AS DOUBLE)",
    "({whole} / {whole0})",
    "LEAST({real}, {real0})",
    "NULLIF({real}, 0.5)",
    "CASE WHEN {truth} THEN {real} END",
)
"""Forms of a NUMBER."""

WORDS = (
    "LOWER({words})",
    "UPPER({words})",
    "TRIM({words})",
    "({words} || {words0})",
    "SUBSTR({words}, 1, 2)",
    "LEFT({words}, 1)",
    "CAST({whole} AS VARCHAR)",
    "COALESCE({words}, {words0})",
)
"""Forms of a TEXT."""

TRUTHS = ("({truth} AND {truth})", "({truth} OR {truth})", "(NOT {truth})")
"""Forms of a BOOLEAN made of others."""

DEAD = ("FALSE", "1 = 2", "({n} > 5 AND {n} < 3)", "{x} <> {x}", "{w} < {w}", "NULL")
"""Conditions that no row meets, seen or unseen by an optimizer: of an INTEGER n, a NUMBER x and a TEXT w."""

_HOLE = re.compile(r"\{([a-z]+)(0?)\}|\[([^\[\]]*\|[^\[\]]*)\]")


class Grammar:
    """Fills forms. Makers, the methods that holes name, take a depth and return SQL text of their type."""

    def __init__(self, r: random.Random) -> None:
        """`r` is the only source of chance."""
        self.r = r

    def one_of(self, forms: Sequence[str], depth: int) -> str:
        """One of the forms with its holes filled, from left to right."""

        def filled(hole: re.Match[str]) -> str:
            maker, bottom, words = hole.groups()
            if words is not None:
                return self.r.choice(words.split("|"))
            return str(getattr(self, maker)(0 if bottom else depth - 1))

        return _HOLE.sub(filled, self.r.choice(forms))
