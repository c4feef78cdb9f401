"""Units that no bound of a question can hold back, known by how many rows of theirs are stored.

    SELECT MEDIAN(cost) FROM visits                                  at most 64 rows of a person count
    visits of people who have at most 64: each weighs 1; visits of the others: each weighs a part of that

A snapshot keeps beside each row how many rows its unit has in the table (`unit$rows`, privacy/stored_norms.py). Let the
first source of a core be such a table, and let each of its rows be in one joined row at most. W is the weight of a
whole row (lower_ranks.py), N the number of rows that are stored of a unit, n of those with a value in a group.

Claim 1. Where groups are not chosen, and N <= T = min(rows, total) of the contribution bounds, each row of the unit
that has a value weighs W. Proof. Joins, WHERE and filters leave at most N of the unit's rows over all groups, so that
0 < n <= N <= rows, and the rows over all groups are not beyond `total`. Its values are worth v = n W (unit_worth.py),
and a row weighs floor(v / n) = W. QED.

So rows with N <= T get W without a look at their unit, and only rows with N > T are grouped by it and joined to its
weight. N is never NULL, so each row is on one side, and a unit is on one side with all of its rows: the groups of the
units with N > T are what they were.

Claim 2. Where the core reads all rows of that table alone, has no keys, and a row has a value always, n is N. Where a
row has a value if and only if a column of it has one, n is the number of the unit's values in that column, which the
snapshot may keep beside its rows (`unit$values$...`). Proof. The group has every row of the unit. QED. Then a row
weighs floor(min(n, rows) W / n), and no unit is grouped at all.

Claim 3. Without keys, W for every row with a value, and of the rows with N > T what they weigh beyond W (which is
negative) add up to the same at every place; by claim 2 so they do with n > T in place of N > T. Proof. A row with
N <= T weighs W by claim 1, one with n <= T by its weight, and any other one is in both sums: W + (w - W) = w. QED. Rows
that all weigh W are counted, which takes half as long as adding up, and no filter is in their way.

All give each row the integer that grouping gives, so sums, sensitivities, prices and identities do not know of it. An
older snapshot keeps no numbers of rows, and gets the other shape. What a row costs at most is counted as before
(cost.py): beyond T it takes the same way, after one comparison more.
"""

from __future__ import annotations

from dataclasses import replace

from privacy.policy import ColumnType
from privacy.stored_norms import ROWS
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Contribution
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal
from sql_rewrite.functions import build
from sql_rewrite.kept_totals import values_of
from sql_rewrite.plan import Core
from sql_rewrite.unit_facts import rows_of_unit

__all__ = ["keeps_rows", "number_kept", "split"]


def keeps_rows(bounded: BoundedCore) -> bool:
    """Whether the snapshot says of each row of a core how many rows its unit has at most, and no groups are chosen."""
    first, contribution = bounded.core.sources[0], bounded.contribution
    if not isinstance(contribution, Contribution) or contribution.choose_groups:
        return False
    kept = first.stored and first.table.stored_norms is not None
    return kept and rows_of_unit(bounded.core.sources) == first.table.rows_stored


def number_kept(bounded: BoundedCore, item: BoundedStatistic) -> str | None:
    """The column that has how many rows of a unit count for a statistic: claim 2. Requires: `keeps_rows`.

    None where what counts is not all of the unit's rows, or all of them with a value that are counted.
    """
    core = bounded.core
    alone = len(core.sources) == 1 and core.sources[0].only is None and core.where is None and not core.keys
    if not alone or item.filter is not None or item.present is not None:
        return None
    nullable = [argument for argument in item.arguments if argument.nullable]
    if not nullable:
        return ROWS
    column = _plain(nullable[0]) if len(item.arguments) == 1 else None
    table = core.sources[0].table
    kept = None if column is None else values_of(column.name)
    return None if kept is None or kept not in table.stored_totals else kept.name


def _plain(argument: Expression) -> ColumnRef | None:
    """The column that an argument is, clipped to constants or not: NULL where that is NULL, and nowhere else."""
    if isinstance(argument, Call) and argument.operator == "clip":
        argument, *ends = argument.arguments
        if not all(isinstance(end, Literal) and end.value is not None for end in ends):
            return None
    return argument if isinstance(argument, ColumnRef) else None


def split(core: Core, contribution: Contribution, column: str = ROWS) -> tuple[Core, Core | None]:
    """The core over the rows of units within its bounds, and over those of all others; None where no unit has more.

    `column` has the number of rows, of those that count (`number_kept`).
    Requires: `keeps_rows`. A condition on the first source is tested after the number of rows.
    """
    first, *others = core.sources
    most = min(contribution.rows, contribution.total)
    if first.table.rows_stored <= most:
        return core, None
    number = ColumnRef(first.relation, column, ColumnType.INTEGER, nullable=False)
    found = []
    for operator in ("<=", ">"):
        own = build(operator, (number, Literal(most, ColumnType.INTEGER)))
        own = own if first.only is None else build("and", (own, first.only))
        found.append(replace(core, sources=(replace(first, only=own), *others)))
    light, heavy = found
    return light, heavy
