"""A refusal with one finding, and suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Collection

from privacy.refusal import Finding, Position, Refused
from privacy.wording import nearest

__all__ = ["did_you_mean", "refuse", "rows_chosen"]


def refuse(
    code: str,
    what: str,
    why: str,
    *instead: str,
    position: Position | None = None,
) -> Refused:
    """A refusal with one finding."""
    return Refused([Finding(code=code, what=what, why=why, instead=instead, position=position)])


def rows_chosen(clause: str, *instead: str, position: Position | None) -> Refused:
    """The refusal of a clause that sorts or chooses rows about people."""
    return refuse(
        "private_row_limit",
        f"{clause} on private rows is refused",
        "The rows that it chooses, puts together or in order belong to more than one person.",
        *instead,
        "leave it out, or write it in the query that aggregates",
        position=position,
    )


def did_you_mean(name: str, known: Collection[str]) -> tuple[str, ...]:
    """A suggestion for a misspelt public name, or no line."""
    near = nearest(name, known)
    return () if near is None else (f'did you mean "{near}"?',)
