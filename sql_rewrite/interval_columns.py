"""Columns of nested queries that hold intervals: both moments of a difference stand for it.

    SELECT AVG(stay) FROM (SELECT left_at - came_at AS stay FROM visits) AS v WHERE stay > INTERVAL 2 HOUR
    SELECT AVG(left_at - came_at) FROM visits WHERE left_at - came_at > INTERVAL 2 HOUR

An interval is no value of the language. A nested query that selects one has two columns in its place, `stay$later` and
`stay$earlier`, which no unquoted name means, and `lift_difference` reads the name as their difference. So it may stand
wherever a difference may; anything else is refused by the name of the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sqlglot import exp

from sql_rewrite.text import Text

__all__ = ["logical", "moments_of_interval", "named_moments", "shown_name"]

_ENDS = ("$later", "$earlier")
_Value = TypeVar("_Value")


def named_moments(name: str, moments: tuple[_Value, _Value], text: Text) -> list[tuple[str, _Value]]:
    """Both columns of an interval of that name, the later moment first."""
    text.intervals.add(name.lower())
    return [(f"{name}{end}", moment) for end, moment in zip(_ENDS, moments, strict=True)]


def moments_of_interval(node: exp.Column) -> list[exp.Column]:
    """The columns that stand for one of that name."""
    return [
        exp.Column(this=exp.Identifier(this=f"{node.name}{end}", quoted=True), table=node.args.get("table"))
        for end in _ENDS
    ]


def shown_name(name: str) -> str:
    """What people call a column that holds one of the moments."""
    return name.removesuffix(_ENDS[0]).removesuffix(_ENDS[1])


def logical(columns: Sequence[tuple[str, _Value]]) -> list[list[tuple[str, _Value]]]:
    """The columns as the text counts them: both of an interval are one."""
    found: list[list[tuple[str, _Value]]] = []
    for name, value in columns:
        before = found[-1][0][0] if found else ""
        if name.endswith(_ENDS[1]) and before == name.removesuffix(_ENDS[1]) + _ENDS[0]:
            found[-1].append((name, value))
        else:
            found.append([(name, value)])
    return found
