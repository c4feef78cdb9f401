"""Which cores need not group their rows by unit, because the snapshot keeps the norms of their units.

Claim. Where `known_norms` gives a column for a norm, that column of every row that the core reads is the number that
grouping these rows would give for the unit which owns the row: the sum of its rows over all cells (L1, or one cell),
or the sum of the squares of its rows in each cell (L2). And the rows with `unit$first` are one row of each unit that
has a row, and no other.

Proof. The core reads one stored table with neither WHERE nor condition, and the norm has no filter: so its rows are
all rows of the table, each once. Where it counts rows, what it counts of a unit is its rows. `unit$rows` is their
number, whatever the groups are. With one key, which is a column as it is stored, a unit's cells are its rows for each
value of the column, NULL among them, and `unit$squares$COLUMN` is the sum of the squares of their numbers. Of a norm
of sums the argument and its encoding are written as the texts with which a total was made (kept_totals.py): the total
is the sum of the same integers, none of them negative, so their sum over the unit's rows is the sum of absolute
values over its cells, and `unit$total$COLUMN$BY` the sum of the squares. All are within the greatest norm, where
grouping holds sums to it, so that changes none. No row's integer is beyond its cell's, so that row times factor fits
where cell times factor does. Attaching makes all three of the rows that it stores (engines/handlers/units.py), and no
table changes after that. Every sum is therefore the same integer as without the columns: factor times value, added up
per cell (lower_normed.py), and every histogram. Sensitivities, prices and identities do not know of it. An older
snapshot keeps no norms, and gets the other shapes.

Claim. Where the snapshot has the tables of a table's units, a histogram, and the sums of a core for which
`sums_are_norms` says so, read from them are the same integers.

Proof. TABLE$units is written from what the rows were joined with, one row for each unit that has one: it has the rows
with `unit$first`, less what a histogram does not read. What such a core adds for a unit is its norm times its factor:
one cell, whose number of rows or sum is the norm, and no row of the unit decides anything else. In TABLE$sizes the
units with equally many rows are one row with their number. The bin and the factor are functions of the number of rows
alone, so each of them counts in the same bin and adds the same integer, and as many times that integer as there are
units is their sum. At most 2^40 units of at most 2^62 each are below 2^127 (lower.py), where that product is made.

Claim. Where `counts_units` says so, each number of a core is that of the rows of TABLE$units.

Proof. It reads one stored table without a condition, has no groups, and counts units without a filter: each unit that
has a row counts once, however its contribution is bounded, and TABLE$units has one row for each of these.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import assert_never

from privacy.norms import NormOf, NormPower
from privacy.policy import Table
from privacy.statistic import StatisticKind
from privacy.stored_norms import ROWS, squares_name, total_name
from sql_rewrite.bounded import BoundedCore, BoundedNorm, BoundedStatistic
from sql_rewrite.contribution import NormedContribution
from sql_rewrite.expressions import ColumnRef
from sql_rewrite.kept_totals import total_of
from sql_rewrite.statistics.registry import sums_of
from sql_rewrite.unit_worth import ONE

__all__ = ["UnitTable", "counts_units", "known_norms", "sums_are_norms", "unit_table"]


class UnitTable(enum.Enum):
    """Where the norms of units are read without their rows."""

    FIRST = "one row of each unit in the table itself"
    UNITS = "one row of each unit in a table of its own"
    SIZES = "one row for each number of rows, with how many units have as many"


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
    if any(item.statistic.norm is None for item in bounded.statistics):
        return None
    if any(norm.filter is not None for norm in bounded.norms):
        return None
    if any(domain is None for domain in bounded.domains):
        return None
    by = None
    if contribution.power is NormPower.L2 and contribution.cells > 1:
        if len(core.keys) != 1:
            return None
        ((_, key),) = core.keys
        if not isinstance(key, ColumnRef) or key.relation != source.relation or key.name not in kept:
            return None
        by = key.name
    found = {norm.norm.name: _column(norm, source.table, by) for norm in bounded.norms}
    known = {name: column for name, column in found.items() if column is not None}
    return known if len(known) == len(found) else None


def unit_table(table: Table, columns: Iterable[str]) -> UnitTable:
    """Where the norms of a table's units are, which it keeps in these columns."""
    if not table.stored_units:
        return UnitTable.FIRST
    return UnitTable.SIZES if set(columns) == {ROWS} else UnitTable.UNITS


def sums_are_norms(bounded: BoundedCore) -> bool:
    """Whether each sum of a core is that of its units' norms, each times its factor: without groups, of all rows."""
    # Only what has known norms is asked, and is a sum over rows: quantiles are not.
    known = not bounded.core.keys and known_norms(bounded) is not None
    return known and all(item.statistic.tree is None and _is_norm(item) for item in bounded.statistics)


def counts_units(bounded: BoundedCore) -> bool:
    """Whether a core counts all units that have a row of a table of which the snapshot keeps the units, and no more."""
    source, *others = bounded.core.sources
    if others or bounded.core.keys or bounded.core.where is not None or not bounded.statistics:
        return False
    if not source.table.stored_units or not source.stored or source.only is not None:
        return False
    return all(
        item.statistic.kind is StatisticKind.UNITS
        and item.filter is None
        and item.present is None
        and not item.distinct
        for item in bounded.statistics
    )


def _is_norm(item: BoundedStatistic) -> bool:
    """Whether it is the number of all rows of a unit, or their sum: its norm, where that adds up over rows."""
    if item.statistic.kind is StatisticKind.SUM:
        return True
    return item.filter is None and item.present is None and list(sums_of(item.statistic.kind).row(item)) == [ONE]


def _column(norm: BoundedNorm, table: Table, by: str | None) -> str | None:
    """The column that has a norm (with `by` its square, over the cells of that column); None where none has."""
    match norm.norm.of:
        case NormOf.ROWS:
            return ROWS if by is None else squares_name(by)
        case NormOf.SUM:
            total = total_of(norm.argument, norm.encoding, table.rows_stored) if table.stored_totals else None
            if total is None or total not in table.stored_totals or (by is not None and not total.squares):
                return None
            return total_name(total.column, by)
        case NormOf.UNITS:
            return None
        case _:
            assert_never(norm.norm.of)
