"""Groups of people without an aggregate: over public keys they follow from declarations, and nothing is read.

    SELECT DISTINCT sex FROM people        (sex is declared to be Female or Male)
    shell: SELECT k0 AS sex FROM (VALUES ('Female', 0), ('Male', 1)) AS keys1$(k0, row$)

Whether anybody is in a group is not known, and the answer says so: it shows every group that WHERE does not rule out
by the declarations alone. So it is a function of the text and of public metadata, and costs nothing. Hidden keys
without an aggregate are a core like any other: the groups that the noisy count of their units selects.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from sqlglot import exp

from privacy.policy import ColumnType, Dataset, KeyValue
from privacy.refusal import Finding, Position
from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.keys import key_domain
from sql_rewrite.plan import Core
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import clauses

__all__ = ["GROUPS_MAX", "constant", "declared_groups", "distinct_keys", "group_rows", "groups_of_declaration"]

GROUPS_MAX = 1_000
"""Most groups that are written out as constants of the outer query."""


def distinct_keys(node: exp.Select) -> bool:
    """Whether SELECT DISTINCT lists what may be keys and aggregates nothing, so that it is GROUP BY of all of it."""
    distinct = node.args.get("distinct")
    if distinct is None or distinct.args.get("on") is not None or node.args.get("group") is not None:
        return False
    if aggregate_calls([*node.expressions, *clauses(node, "having", "qualify", "order")]) or not node.expressions:
        return False
    return all(
        value.find(exp.Column) is not None and value.find(exp.Star, exp.Window, exp.Query) is None
        for value in node.expressions
    )


def groups_of_declaration(core: Core, dataset: Dataset) -> tuple[tuple[KeyValue, ...], ...] | None:
    """The groups of a core that has keys and no aggregate, where they are public; None for any other core.

    Errors: Refused (key_domain_too_large, no_groups).
    """
    if not core.keys or core.aggregates or core.choice is not None:
        return None
    _, cells = key_domain(core, dataset)
    if cells is not None and len(cells) > GROUPS_MAX:
        raise refuse(
            "key_domain_too_large",
            "a query without an aggregate is refused",
            f"Its groups are public, and there are {len(cells):,}: more than {GROUPS_MAX:,} are not listed.",
            "add COUNT(*) to the select list",
        )
    return cells


def declared_groups(position: Position | None) -> Finding:
    """The warning that nobody need be in the groups."""
    return Finding(
        code="groups_declared",
        what="the groups are those of the declarations",
        why="Their keys are public and nothing is counted, so no row was read: nobody need be in them.",
        instead=("add COUNT(*) to the select list",),
        position=position,
    )


def group_rows(
    core: Core, cells: Sequence[Sequence[KeyValue]], numbers: Mapping[str, str]
) -> tuple[list[str], list[list[exp.Expr]]]:
    """The groups as constants: the names of their columns, and their rows.

    `numbers` are keys that are there once more, by another name and as the doubles that they were.
    """
    names = [name for name, _ in core.keys]
    types = [key.type for _, key in core.keys]
    doubles = [(names.index(name), double) for name, double in numbers.items()]
    rows = []
    for cell in cells:
        row = [constant(value, kind) for value, kind in zip(cell, types, strict=True)]
        row += [exp.cast(constant(cell[place], types[place]), "double") for place, _ in doubles]
        rows.append(row)
    return [*names, *(double for _, double in doubles)], rows


def constant(value: KeyValue, kind: ColumnType) -> exp.Expr:
    """A value, of its type, as SQL."""
    written: exp.Expr
    if value is None:
        written = exp.Null()
    elif isinstance(value, bool):
        written = exp.Boolean(this=value)
    elif isinstance(value, int):
        written = exp.Literal.number(value)
    elif isinstance(value, datetime.datetime):
        written = exp.Literal.string(value.isoformat(sep=" "))
    elif isinstance(value, datetime.date):
        written = exp.Literal.string(value.isoformat())
    else:
        written = exp.Literal.string(str(value))
    result: exp.Expr = exp.cast(written, kind.sql.lower())
    return result
