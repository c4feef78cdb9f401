"""The warning of LEAST and GREATEST of what may be NULL: a NULL among their arguments makes the value NULL here.

The engine's own functions skip NULL. Here a missing value must not become the bound of `LEAST(x, 200000)`. Between two
constants, `GREATEST(0, LEAST(x, 200000))`, that is what clipping means, and nothing is said.
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
    *,
    clips: bool = False,
) -> Iterator[Finding]:
    """The warning of one call of which an argument may be NULL. `clips`: another call holds it from the other side."""
    if operator not in EXTREMES:
        return
    reading = [one for one in arguments if columns_of(one)]
    if not any(one.nullable for one in reading):
        return
    if len(reading) == 1 and (clips or any(isinstance(one, Call) and one.operator in EXTREMES for one in reading)):
        return
    if all(isinstance(one, Call) and one.operator == "coalesce" for one in arguments):
        return  # NULL has been thought of
    name, written = operator.upper(), [one.sql for one in operands()]
    instead: tuple[str, ...] = ("write COALESCE around the arguments that may be NULL",)
    if len(written) == len(arguments) == 2 and len(reading) == 1:
        constant = written[arguments.index(reading[0]) == 0]
        instead = (f"COALESCE({name}({written[0]}, {written[1]}), {constant}) is as in DuckDB",)
    elif len(written) == len(arguments) == 2:
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
