"""Outer joins that keep the rows of a public table, as FROM hospitals LEFT JOIN visits: these are keys, and no more.

A public row without a partner would be a row of nobody, and whether it has none depends on everybody. So such rows
never exist: the join is an inner one. The groups of public keys are there anyway, because all public groups are.

Claim. Where the checks below pass, each group has the value that the outer join would give it: a row of nobody adds
nothing to any aggregate, and does not make a group of its own. Proof: in it every column of the other side is NULL. An
aggregate's argument or FILTER that needs one of them (`needed`, `present`) is NULL or not true there, and so it is left
out, and a sum of what is 0 there adds nothing; keys that read the public side alone are those of a public group; and a
WHERE that needs one drops the row.

Which public groups there are follows from the public side alone: conditions of ON say which rows meet, and rule out no
group (`Core.met`). A FULL JOIN of people with a public table keeps the rows of both: a row of people without a partner
is its unit's alone, as in a LEFT JOIN from people, and the public rows without one are groups as above.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from privacy.aggregate import AggregateFunction
from privacy.refusal import Position, Refused
from sql_rewrite.evaluate import evaluate, is_exact
from sql_rewrite.expressions import Expression, columns_of
from sql_rewrite.join_advice import INNER
from sql_rewrite.merged_keys import Merged, of_nobody
from sql_rewrite.plan import Aggregate
from sql_rewrite.reachable import conjuncts, needed, present
from sql_rewrite.refuse import refuse

__all__ = ["check_nested", "check_preserved", "drops_nobody"]


def check_nested(preserved: Collection[str], own: Sequence[Expression], position: Position | None) -> None:
    """Refuses a nested block among whose rows those of nobody would have to be. Errors: Refused (unsupported_sql)."""
    if preserved and not drops_nobody(preserved, own):
        raise _sees("a nested query", position)


def drops_nobody(preserved: Collection[str], own: Sequence[Expression]) -> bool:
    """Whether a part of WHERE drops the rows of nobody."""
    parts = [part for whole in own for part in conjuncts(whole)]
    return any(column.relation not in preserved for part in parts for column in needed(part))


def check_preserved(
    preserved: Collection[str],
    own: Sequence[Expression],
    keys: Sequence[Expression],
    aggregates: Sequence[tuple[Aggregate, Expression | None]],
    position: Position | None,
    *,
    counted: str,
    merged: Sequence[Merged] = (),
    public: Sequence[str] = (),
) -> None:
    """Refuses what would see rows of nobody. `preserved` are the relations of the public side.

    `own` are the parts of the block's WHERE: what ON or a nested query says drops no row of nobody. Beside each
    aggregate is what it aggregates, also where it is COUNT(x) of an x that is never NULL. `counted` is a column of the
    table of people that can be counted, and `merged` are keys of both sides that rows of nobody have (merged_keys.py);
    `public` are public columns that a FULL JOIN compares, as the text may call them.
    Errors: Refused (unsupported_sql).
    """
    if not preserved or drops_nobody(preserved, own):
        return
    own = [of_nobody(part, merged) for part in own]
    keys = [of_nobody(key, merged) for key in keys]

    def others(expression: Expression) -> bool:
        return any(column.relation not in preserved for column in columns_of(expression))

    if any(map(others, own)):
        raise _sees("a condition of WHERE", position)
    if any(map(others, keys)):
        instead = [f"group by {column}, the public table's own column" for column in public]
        raise _sees("a key of GROUP BY", position, *instead)
    for aggregate, argument in aggregates:
        if aggregate.function is AggregateFunction.UNITS:
            continue
        argument = None if argument is None else of_nobody(argument, merged)
        found = set() if argument is None else present(argument)
        found = found | (set() if aggregate.filter is None else needed(aggregate.filter))
        if all(column.relation in preserved for column in found) and not _adds_nothing(aggregate, argument, preserved):
            raise _sees(
                aggregate.text,
                aggregate.position,
                f"count a column of the table of people, as COUNT({counted}), instead of rows",
            )


def _adds_nothing(aggregate: Aggregate, argument: Expression | None, preserved: Collection[str]) -> bool:
    """Whether its argument is NULL in a row of nobody, or a sum's is 0, as CASE WHEN v.urgent THEN 1 ELSE 0 END."""
    if argument is None or not is_exact(argument):
        return False
    columns = columns_of(argument)
    if any(column.relation in preserved for column in columns):
        return False
    value = evaluate(argument, {(column.relation, column.name): None for column in columns})
    summed = aggregate.function is AggregateFunction.SUM and not aggregate.distinct
    return value is None or (summed and value == 0)


def _sees(what: str, position: Position | None, *instead: str) -> Refused:
    return refuse(
        "unsupported_sql",
        f"{what} above an outer join is refused",
        "The join keeps public rows without a partner. Whether there are any depends on everybody, so they are never "
        "made; this would see them.",
        *(instead or ("count a column of the table of people, as COUNT(x), instead of rows",)),
        f"{INNER}: the groups of public keys are shown in any case",
        position=position,
    )
