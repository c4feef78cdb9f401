"""Outer joins that keep the rows of a public table, as FROM hospitals LEFT JOIN visits: these are keys, and no more.

A public row without a partner would be a row of nobody, and whether it has none depends on everybody. So such rows
never exist: the join is an inner one. The groups of public keys are there anyway, because all public groups are.

Claim. Where the checks below pass, each group has the value that the outer join would give it: a row of nobody adds
nothing to any aggregate, and does not make a group of its own. Proof: in it every column of the other side is NULL. An
aggregate's argument or FILTER that needs one of them (`needed`, `present`) is NULL or not true there, and so it is left
out; keys that read the public side alone are those of a public group; and a WHERE that needs one drops the row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from privacy.aggregate import AggregateFunction
from privacy.refusal import Position, Refused
from sql_rewrite.expressions import Expression, columns_of
from sql_rewrite.plan import Aggregate
from sql_rewrite.reachable import conjuncts, needed, present
from sql_rewrite.refuse import refuse

__all__ = ["check_nested", "check_preserved"]


def check_nested(preserved: Collection[str], own: Sequence[Expression], position: Position | None) -> None:
    """Refuses a nested block among whose rows those of nobody would have to be. Errors: Refused (unsupported_sql)."""
    if preserved and not _dropped(preserved, own):
        raise _sees("a nested query", position)


def _dropped(preserved: Collection[str], own: Sequence[Expression]) -> bool:
    """Whether a part of WHERE drops the rows of nobody."""
    parts = [part for whole in own for part in conjuncts(whole)]
    return any(column.relation not in preserved for part in parts for column in needed(part))


def check_preserved(
    preserved: Collection[str],
    own: Sequence[Expression],
    keys: Sequence[Expression],
    aggregates: Sequence[tuple[Aggregate, Expression | None]],
    position: Position | None,
) -> None:
    """Refuses what would see rows of nobody. `preserved` are the relations of the public side.

    `own` are the parts of the block's WHERE: what ON or a nested query says drops no row of nobody. Beside each
    aggregate is what it aggregates, also where it is COUNT(x) of an x that is never NULL.
    Errors: Refused (unsupported_sql).
    """
    if not preserved or _dropped(preserved, own):
        return

    def others(expression: Expression) -> bool:
        return any(column.relation not in preserved for column in columns_of(expression))

    if any(map(others, own)):
        raise _sees("a condition of WHERE", position)
    if any(map(others, keys)):
        raise _sees("a key of GROUP BY", position)
    for aggregate, argument in aggregates:
        if aggregate.function is AggregateFunction.UNITS:
            continue
        found = set() if argument is None else present(argument)
        found = found | (set() if aggregate.filter is None else needed(aggregate.filter))
        if all(column.relation in preserved for column in found):
            raise _sees(aggregate.text, aggregate.position)


def _sees(what: str, position: Position | None) -> Refused:
    return refuse(
        "unsupported_sql",
        f"{what} above an outer join is refused",
        "The join keeps public rows without a partner. Whether there are any depends on everybody, so they are never "
        "made; this would see them.",
        "count a column of the table of people, as COUNT(x), instead of rows",
        "use JOIN: the groups of public keys are shown in any case",
        position=position,
    )
