"""What a synthetic table would be and cost: from declarations, balances and the request, without looking at rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from fractions import Fraction

from accountant.account import Account
from mechanisms.families import FAMILIES, NoiseFamily
from mechanisms.synthetic.counts import CELLS_MAX, PAIR_CELLS_MAX
from mechanisms.synthetic.price import Synthesis
from privacy.binned import BinnedColumn, Marginal
from privacy.bounds import ValueBounds
from privacy.loss import Loss
from privacy.policy import Column, ColumnType, Dataset, Table
from privacy.refusal import Collector, Finding, Refused
from privacy.statement import Statement
from privacy.unit import Neighbouring
from server.above_floor import BelowFloor, above_floor, require_worth
from server.floor import Floor
from server.spends import affordable_amount
from server.synthetic.refusals import (
    COLUMNS_MAX,
    above_most,
    below_floor,
    column_refused,
    name_refused,
    no_columns,
    no_noise,
    options_refused,
    public_table,
    rows_refused,
    too_many_cells,
    too_many_columns,
    unknown_column,
    unknown_table,
    unpaid,
)
from server.synthetic.terms import ColumnWish, MakeSynthetic, Planned
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.marginals import WITHOUT_KEYS, binned_column, binned_reason, lower_marginals

__all__ = ["BINS_MAX", "RUNS", "cells_at_most", "plan", "sample_statements"]

BINS_MAX = 256
RUNS = 3
"""How often rows are read: for columns, for pairs, for triples."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}\Z", re.ASCII)


def plan(request: MakeSynthetic, dataset: Dataset, path: Sequence[Account]) -> Planned:
    """The table that a request asks for. Errors: Refused, with everything at once that can be said at once."""
    collected = Collector()
    if _NAME.match(request.name) is None:
        collected.add(name_refused(request.name))
    table = dataset.table(request.table)
    if table is None or table.drawn is not None:
        collected.add(unknown_table(request.table, [one.name for one in dataset.tables if one.protected]))
    elif not table.protected:
        collected.add(public_table(table.name))
    elif dataset.neighbouring is not Neighbouring.ADD_REMOVE:
        collected.add(no_noise("its sensitivities hold where units are added and removed"))
    collected.refuse()
    assert table is not None
    columns, binned, left_out = _columns(request, table)
    rows = _rows(request, table)
    synthesis = _priced(request, dataset, path, columns=len(columns), rows=rows)
    return Planned(
        request=request,
        dataset=dataset,
        table=table,
        columns=columns,
        binned=binned,
        left_out=left_out,
        synthesis=synthesis,
        path=tuple(path),
    )


def _columns(
    request: MakeSynthetic, table: Table
) -> tuple[tuple[Column, ...], tuple[BinnedColumn, ...], tuple[tuple[str, str], ...]]:
    """The columns, with their places, and those that were left out."""
    left_out: list[tuple[str, str]] = []
    wishes = request.columns
    if wishes is None:
        reasons = [(column, binned_reason(table, column)) for column in table.columns]
        left_out = [(column.name, reason) for column, reason in reasons if reason is not None]
        wishes = tuple(ColumnWish(name=column.name) for column, reason in reasons if reason is None)
    if not wishes:
        raise Refused([no_columns(left_out)])
    if len(wishes) > COLUMNS_MAX:
        raise Refused([too_many_columns(len(wishes))])
    collected, columns, binned = Collector(), [], []
    for wish in wishes:
        column = table.column(wish.name)
        if column is None or column in columns:
            collected.add(unknown_column(wish.name))
            continue
        bounds = _bounds(wish, column)
        reason = binned_reason(table, column)
        if isinstance(bounds, Finding) or reason is not None:
            refused = column_refused(column.name, str(reason), keys_would_do=reason == WITHOUT_KEYS)
            collected.add(bounds if isinstance(bounds, Finding) else refused)
            continue
        columns.append(column)
        binned.append(binned_column(table, column, bins=wish.bins, bounds=bounds))
    collected.refuse()
    cells = cells_at_most(binned)
    if cells > CELLS_MAX:
        raise Refused([too_many_cells(cells, CELLS_MAX)])
    return tuple(columns), tuple(binned), tuple(left_out)


def cells_at_most(binned: Sequence[BinnedColumn]) -> int:
    """The most cells of all pairs that may be measured, whichever places are kept later."""
    return sum(min(one.size * other.size, PAIR_CELLS_MAX) for one, other in itertools.combinations(binned, 2))


def _bounds(wish: ColumnWish, column: Column) -> ValueBounds | Finding | None:
    """The bounds that a wish names; a refusal of options that the column cannot have."""
    numeric = column.type in (ColumnType.INTEGER, ColumnType.NUMBER)
    dated = column.type in (ColumnType.DATE, ColumnType.TIMESTAMP)
    if wish.bins is not None and (not (numeric or dated) or column.keys is not None):
        return options_refused(column.name, "Bins are for numbers and dates without declared keys.")
    if wish.low is None and wish.high is None:
        return None
    if not numeric or column.keys is not None:
        return options_refused(column.name, "Bounds are for numbers without declared keys.")
    if wish.low is None or wish.high is None or wish.low >= wish.high:
        return options_refused(column.name, "Bounds are a low and a high that is greater.")
    if column.type is ColumnType.INTEGER and (wish.low.denominator != 1 or wish.high.denominator != 1):
        return options_refused(column.name, "Bounds of whole numbers are whole numbers.")
    return ValueBounds(wish.low, wish.high)


def _rows(request: MakeSynthetic, table: Table) -> int:
    """How many rows of a unit count."""
    if table.one_row:
        if request.rows_per_unit not in (None, 1):
            raise Refused([rows_refused(1)])
        return 1
    assert table.counted is not None
    rows = table.counted.rows_per_unit if request.rows_per_unit is None else request.rows_per_unit
    if not 1 <= rows <= table.rows_stored:
        raise Refused([rows_refused(table.rows_stored)])
    return rows


def _priced(request: MakeSynthetic, dataset: Dataset, path: Sequence[Account], *, columns: int, rows: int) -> Synthesis:
    """The noise that an epsilon of the account buys. Errors: Refused."""
    leaf, currency = path[0], FAMILIES[NoiseFamily.GAUSSIAN].currency
    most, floor = dataset.limits.epsilon_max, Floor.of(dataset, path[-1])

    def losses(amount: Fraction) -> list[Loss]:
        return [Synthesis(columns, rows, amount).event().loss()]

    def at(epsilon: Fraction) -> Synthesis:
        if epsilon > most:
            raise Refused([above_most(most)])
        if not currency.pays(leaf):
            raise Refused([unpaid(currency.unpaid or "")])
        try:
            amount = affordable_amount(
                losses,
                nominal=currency.nominal_amount(epsilon, leaf),
                asked=epsilon,
                power=currency.power,
                leaf=leaf,
                covered=lambda found: floor.missing(found[0], runs=RUNS) <= 1,
            )
            if amount is None:
                raise BelowFloor(floor, None)
            synthesis = Synthesis(columns, rows, amount)
            loss = synthesis.event().loss()
        except ValueError as error:
            raise Refused([no_noise(str(error))]) from None
        require_worth(floor, loss, looks=RUNS)
        return synthesis

    return above_floor(
        at,
        request.epsilon,
        most=most,
        loss=lambda made: made.event().loss(),
        path=path,
        refused=below_floor,
    )


def sample_statements(planned: Planned, dialect: Dialect) -> tuple[Statement, ...]:
    """Statements with every operator of those that will run, which are planned on empty tables before the charge.

    Which pairs and triples are counted later follows from what is released first; all of them are written alike.
    """
    count, rows = len(planned.columns), planned.synthesis.rows
    lists: list[list[Marginal]] = [[(number,) for number in range(count)]]
    every: list[Marginal] = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if every:
        lists.append(every)
    if count > 2:
        lists.append([(number, (number + 1) % count, (number + 2) % count) for number in range(count)])
    narrowed = [one.narrowed(0, 0) if one.chosen else one for one in planned.binned]
    return tuple(
        lower_marginals(planned.table, columns, marginals, rows_per_unit=rows, dialect=dialect)
        for columns, marginals in zip((planned.binned, narrowed, narrowed), lists, strict=False)
    )
