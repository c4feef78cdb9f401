"""Which cores need not group their rows by unit, because the snapshot keeps the norms of their units.

Claim. Where `known_norms` gives a column for a norm, that column of every row that the core reads is the number that
grouping these rows would give for the unit which owns the row: the sum of its rows over all cells (L1, or one cell),
or the sum of the squares of its rows in each cell (L2). And the rows with `unit$first` are one row of each unit that
has a row, and no other.

Proof. The core reads one stored table with neither WHERE nor condition, and the norm counts rows without a filter: so
its rows are all rows of the table, each once, and what it counts of a unit is its rows. `unit$rows` is their number,
whatever the groups are. With one key, which is a column as it is stored, a unit's cells are its rows for each value of
the column, NULL among them, and `unit$squares$COLUMN` is the sum of the squares of their numbers. Attaching makes all
three of the rows that it stores (engines/handlers/units.py), and no table changes after that. Every sum is therefore
the same integer as without the columns: factor times value, added up per cell (lower_normed.py), and every histogram.
Sensitivities, prices and identities do not know of it. An older snapshot keeps no norms, and gets the other shapes.
"""

from __future__ import annotations

from collections.abc import Mapping

from privacy.norms import NormOf, NormPower
from privacy.stored_norms import ROWS, squares_name
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.expressions import ColumnRef

__all__ = ["known_norms"]


def known_norms(bounded: BoundedCore) -> Mapping[str, str] | None:
    """For each norm of a core the column that has it (L2: its square) in every row; None where one of them is unknown.

    A function of the plan, of declarations, and of what the snapshot keeps.
    """
    contribution, core = bounded.contribution, bounded.core
    if not isinstance(contribution, NormedContribution) or not bounded.norms or len(core.sources) != 1:
        return None
    (source,) = core.sources
    kept = source.table.stored_norms
    if kept is None or not source.stored or source.only is not None or core.where is not None:
        return None
    if any(item.statistic.norm is None or item.statistic.tree is not None for item in bounded.statistics):
        return None
    if any(norm.norm.of is not NormOf.ROWS or norm.filter is not None for norm in bounded.norms):
        return None
    if any(domain is None for domain in bounded.domains):
        return None
    if contribution.power is NormPower.L1 or contribution.cells == 1:
        return {norm.norm.name: ROWS for norm in bounded.norms}
    if len(core.keys) != 1:
        return None
    ((_, key),) = core.keys
    if not isinstance(key, ColumnRef) or key.relation != source.relation or key.name not in kept:
        return None
    return {norm.norm.name: squares_name(key.name) for norm in bounded.norms}
