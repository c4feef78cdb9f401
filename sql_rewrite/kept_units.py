"""Units whose rows are not added up for a question, because the snapshot keeps what they add up to.

    SELECT SUM(cost) FROM visits JOIN people USING (person_id) WHERE age > 60
    (one row of each person in visits, with the person's kept total) JOIN (people with age > 60) ON their unit

Beside each row a snapshot keeps how many rows of its unit the table has, and the sums of some columns over them in the
steps of a SUM (`unit$rows`, `unit$total$COLUMN`). In one row of each unit `unit$first` is true
(privacy/stored_norms.py).

Claim. Where `kept_sums` gives columns, they are, in the rows with `unit$first`, what grouping the rows of the core by
unit gives (layer 1 of lower_units.py), unit for unit. Proof. The core has no keys, and reads one stored table with
neither WHERE nor condition nor filter; tables that only say which units count are asked after this layer in both shapes
(late_units.py). So the rows of a unit are all of its stored rows, and those with `unit$first` are one for each unit
that has any; so are the rows of TABLE$units, which is read where no table comes after it. COUNT(*) of a unit's rows is
`unit$rows`, and so is the number of those with a value where a row always has one. A sum is known by a total only if
its argument and encoding are written as the texts with which the total was made (kept_totals.py): then it adds up the
same integers. A unit without a value has the total 0 instead of NULL, and both add nothing above: a sum is clipped
between ends of which the lower is at most 0 and the upper at least 0, moments take NULL for 0, and the sums over units
leave NULL out. QED.

All layers above are as they were, with the bounds on what a unit adds. Sensitivities, prices and identities do not know
of it; an older snapshot keeps nothing, and its rows are grouped.
"""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import Table
from privacy.stored_norms import ROWS, total_name
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.kept_totals import total_of
from sql_rewrite.layer_values import Count, Sum
from sql_rewrite.relations import Output
from sql_rewrite.scalars import Column, Named, Scalar

__all__ = ["kept_sums"]


def kept_sums(bounded: BoundedCore, partial: Sequence[Output]) -> tuple[Output, ...] | None:
    """Layer 1 of a core over its units, as columns of the rows with `unit$first`; None where any is not kept.

    A function of the plan, of declarations, and of what the snapshot keeps.
    """
    core = bounded.core
    if len(core.sources) != 1 or core.keys or core.where is not None:
        return None
    (source,) = core.sources
    if not source.stored or source.only is not None or source.table.stored_norms is None:
        return None
    if any(item.filter is not None or item.present is not None for item in bounded.statistics):
        return None
    values = {f"{item.statistic.name}t": item for item in bounded.statistics}
    found = []
    for output in partial:
        column = _column(output.value, values, source.table)
        if column is None:
            return None
        found.append(Output(Column(source.relation, column), output.name))
    return tuple(found)


def _column(value: Scalar, values: dict[str, BoundedStatistic], table: Table) -> str | None:
    """The column that has a sum over the rows of a unit."""
    if isinstance(value, Count) and value.value is None:
        return ROWS
    added = value.value if isinstance(value, Count | Sum) else None
    item = values.get(added.name) if isinstance(added, Named) else None
    if item is None:
        return None
    if isinstance(value, Count):
        return None if any(argument.nullable for argument in item.arguments) else ROWS
    total = total_of(item.argument, item.row_encoding, table.rows_stored)
    return None if total is None or total not in table.stored_totals else total_name(total.column)
