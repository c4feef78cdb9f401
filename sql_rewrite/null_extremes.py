"""The warning of LEAST and GREATEST of several columns: a NULL among them makes the value NULL here.

The engine's own functions skip NULL. Here a missing value must not become the bound of `LEAST(x, 200000)`; beside a
constant that is what clipping means, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from privacy.refusal import Finding, Position
from sql_rewrite.expressions import Call, Expression, columns_of
from sql_rewrite.filled import Operand

__all__ = ["EXTREMES", "null_extremes"]

EXTREMES = frozenset({"least", "greatest"})


def null_extremes(
    operator: str,
    arguments: Sequence[Expression],
    operands: Callable[[], Sequence[Operand]],
    position: Callable[[], Position | None],
) -> Iterator[Finding]:
    """The warning of one call, where two of its arguments read columns and one of these may be NULL."""
    if operator not in EXTREMES:
        return
    reading = [one for one in arguments if columns_of(one)]
    if len(reading) < 2 or not any(one.nullable for one in reading):
        return
    if all(isinstance(one, Call) and one.operator == "coalesce" for one in arguments):
        return  # NULL has been thought of
    name, written = operator.upper(), [one.sql for one in operands()]
    instead: tuple[str, ...] = ("write COALESCE around the arguments that may be NULL",)
    if len(written) == len(arguments) == 2:
        first, second = written
        skipping = f"{name}(COALESCE({first}, {second}), COALESCE({second}, {first}))"
        instead = (f"{skipping} is as in DuckDB",)
    yield Finding(
        code="null_not_skipped",
        what=f"{name} is NULL in rows where an argument is NULL",
        why="DuckDB's own function skips NULL; here a missing value never becomes a bound, so such rows do not count.",
        instead=instead,
        position=position(),
    )
