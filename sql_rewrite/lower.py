"""Bounded plan to the statement that an engine runs: generated SQL, bound parameters, named result columns.

Rows are encoded to integers, bounded per unit and group, and summed as 128-bit integers. The shapes (r = rows per
unit and group, C = groups per unit):

    one row per unit      rows -> group by key
    units are scaled      as lower_normed.py says: no choice of groups
    no choice of groups   rows -> group by unit and key, bound what the unit adds (lower_units.py) -> group by key
    choice of groups      rows -> keep C groups of each unit by a keyed hash -> as above; of few public groups the
                          choice is among those that are grouped by unit and key (`BoundedCore.chosen_by_cell`)
    different values      beside the others, as lower_distinct.py says

The window of the choice ranks groups (dense_rank) by a hash of the unit's secret draw and the key, with the key
itself as tie-break: two keys with one hash must not share a rank. The choice is a function of the unit's own rows
and of its draw alone, so it is the same on neighbouring data.

An engine may find groups by a hash that anyone can compute. One unit with many hidden keys could hold keys that collide
with a group of others, and make each of their rows take longer. So groups of hidden keys have one more column, made
from the keys and a number that is drawn for each run (`Salted`), or are themselves hidden by one (masked_keys.py):
nobody knows the hash of a group in advance. A unit with one row has one key, and needs none of this.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

from privacy.policy import ColumnType
from privacy.statement import Shared, SharedTable, Statement, StatementKey, StatementSum
from privacy.stored_norms import ROWS, units_table
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Contribution, NormedContribution
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.expressions import ColumnRef
from sql_rewrite.kept_units import kept_sums
from sql_rewrite.late_units import late_units
from sql_rewrite.layer_values import Count, ListedPlaces, PlaceCounts, Sum
from sql_rewrite.light_units import keeps_rows, number_kept, split
from sql_rewrite.lower_distinct import merged, told_apart, values_summed
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.lower_normed import NormSums
from sql_rewrite.lower_ranks import (
    blocks_answered,
    places_counted,
    places_summed,
    weighed_alike,
    weighed_by_norm,
    weighed_by_number,
    weighed_by_unit,
)
from sql_rewrite.lower_rows import LoweredRows
from sql_rewrite.lower_steps import in_two_layers
from sql_rewrite.lower_unit_groups import UNIT, lowered_sources, read_columns
from sql_rewrite.lower_units import UnitSums
from sql_rewrite.masked_keys import grouped_by_hidden, names_of, salted
from sql_rewrite.norm_shapes import Shape
from sql_rewrite.plan import Core, Source
from sql_rewrite.relations import (
    ChosenGroups,
    Extended,
    Grouped,
    Output,
    Projected,
    Relation,
    TableRows,
    TableSource,
    UnitFactors,
)
from sql_rewrite.scalars import (
    Case,
    Cast,
    Column,
    EngineType,
    Holds,
    Named,
)
from sql_rewrite.statement_columns import UNITS_MAX, coordinates_of, halves_of, lists_of
from sql_rewrite.statistics.registry import sums_of
from sql_rewrite.stored_norms import counts_units, known_norms, sums_are_norms
from sql_rewrite.unit_worth import ONE, under

__all__ = ["lower", "lower_histogram"]


def lower(bounded: BoundedCore, dialect: Dialect = DUCKDB, *, shared: bool = False) -> Statement:
    """The statement of one core. A pure function: the same text for every state of the data.

    With `shared` it reads the tables that it shares with the histogram of its norms; what comes out is the same.
    """
    return _Lowering(bounded).statement(dialect, shared=shared)


def lower_histogram(bounded: BoundedCore, bin_name: str, dialect: Dialect, *, shared: bool) -> Statement:
    """The histogram of the norms of a core (norms.py): the bin, and for each norm the number of units as two halves.

    With `shared` it reads the tables that it shares with the sums, and they stay for these.
    """
    names = dict.fromkeys(item.norm.name for item in bounded.norms)
    if not shared:
        owned = [next(b for b in bounded.statistics if b.statistic.norm == name) for name in names]
        bounded = replace(bounded, statistics=tuple(dict.fromkeys(owned)))
    lowering = _Lowering(bounded)
    sums = NormSums(bounded, lowering.keys, lowering.hidden)
    rows = lowering.units_stored() if sums.shape is Shape.STORED else lowering.base(with_unit=True)
    columns = [Output(Column("g", bin_name), bin_name)]
    for name in names:
        columns += halves_of(f"{name}_0", count=False)
    tree = Projected(sums.binned(rows, bin_name, shared=shared), "g", tuple(columns))
    return Statement(
        sql=dialect.write(tree),
        parameters=() if shared else tuple(lowering.parameters.values),
        keys=(StatementKey(bin_name, ColumnType.INTEGER),),
        sums=tuple(StatementSum(f"{name}_0", UNITS_MAX) for name in names),
        shared=lowering.shared(rows, dialect, kept=True) if shared else None,
    )


class _Lowering(LoweredRows):
    """The statement of one core."""

    def statement(self, dialect: Dialect, *, shared: bool) -> Statement:
        rows = self.base(with_unit=True) if shared else None
        whole = rows is None or NormSums(self.bounded, self.keys, self.hidden).shape is Shape.ROWS
        return Statement(
            sql=dialect.write(self.tree(rows)),
            parameters=tuple(self.parameters.values) if whole else (),
            shared=None if rows is None else self.shared(rows, dialect, kept=False),
            keys=tuple(StatementKey(name, key.type) for name, key in self.core.keys),
            sums=tuple(
                StatementSum(f"{b.statistic.name}_{i}", math.floor(UNITS_MAX * b.statistic.sensitivity.linf))
                for b in self.bounded.statistics
                if b.statistic.tree is None
                for i in range(b.statistic.coordinates)
            ),
            by_place=tuple(
                places
                for b in self.bounded.statistics
                if b.statistic.tree is not None
                for places in lists_of(b.statistic)
            ),
        )

    def shared(self, rows: Relation, dialect: Dialect, *, kept: bool) -> Shared:
        """The tables over these rows. Only the first reads rows, and so takes parameters."""
        found = NormSums(self.bounded, self.keys, self.hidden).tables(rows)
        given = [tuple(self.parameters.values), *[()] * (len(found) - 1)]
        tables = [SharedTable(name, dialect.write(tree), own) for (name, tree), own in zip(found, given, strict=True)]
        return Shared(tuple(tables), kept)

    def tree(self, shared: Relation | None = None) -> Relation:
        """Keys and exact sums, each as two halves; with `shared`, over the tables that are made of these rows."""
        apart = self._apart()
        sums = self._merged(apart) if apart else self._summed(shared)
        columns = [
            Output(Cast(Column("g", name), EngineType.TEXT) if self.listed(key) else Column("g", name), name)
            for name, key in self.core.keys
        ]
        for b in self.bounded.statistics:
            for i in range(b.statistic.coordinates if b.statistic.tree is None else 0):
                columns += halves_of(f"{b.statistic.name}_{i}", count=not apart and self._is_count(b))
        for b in self.bounded.statistics:
            if b.statistic.tree is not None:
                for places in lists_of(b.statistic):
                    counts = Column("g", f"{places.name}_p")
                    columns.append(Output(ListedPlaces("places", counts), f"{places.name}_places"))
                    columns.append(Output(ListedPlaces("rows", counts), f"{places.name}_rows"))
        return Projected(sums, "g", tuple(columns))

    def _apart(self) -> tuple[BoundedStatistic, ...]:
        """What is not summed in one pass with the others: different values, and beside them, or scaled, quantiles."""
        together = self.bounded.one_row and all(
            b.distinct is None and not b.statistic.block_names for b in self.bounded.statistics
        )
        wanted = [b for b in self.bounded.statistics if b.distinct is not None or b.statistic.tree is not None]
        return () if together else tuple(wanted)

    def _summed(self, shared: Relation | None = None) -> Relation:
        """The sums of every statistic by group."""
        if counts_units(self.bounded):
            return self._units_counted()
        match self.bounded.contribution:
            case NormedContribution():
                return self._norms_summed(shared)
            case Contribution() as counted:
                return self._rows_summed() if counted.one_row else self._units_summed(counted)
            case _:
                assert_never(self.bounded.contribution)

    def _units_counted(self) -> Relation:
        """The number of units that have a row, for each statistic."""
        (source,) = self.core.sources
        column = Output(Column(source.relation, ROWS), "n")
        rows = TableRows((column,), (TableSource(units_table(source.table.name), source.relation, None),), None)
        counts = tuple([Output(Count(), f"{item.statistic.name}_0") for item in self.bounded.statistics])
        return Grouped(rows, "r", (), (), counts)

    def _merged(self, apart: tuple[BoundedStatistic, ...]) -> Relation:
        """The sums of rows in one pass, and those of different values in one for each, side by side."""
        contribution = self.bounded.contribution
        parts: list[tuple[Relation, tuple[str, ...]]] = []
        plain = tuple([b for b in self.bounded.statistics if all(b is not other for other in apart)])
        if plain:
            parts.append((self._of(plain)._summed(), coordinates_of(plain)))
        for item in apart:
            alone = self._of((item,))
            if item.statistic.tree is not None:
                parts.append((alone._placed_summed(), (f"{item.statistic.name}_p",)))
                parts += alone._answered(item)
                continue
            assert isinstance(contribution, Contribution)
            summed = values_summed(
                alone._valued(item, contribution), item, contribution,
                keys=self.keys, hidden=self.hidden, vector=self.vector, encoded=self.encoded,
            )  # fmt: skip
            parts.append((summed, coordinates_of((item,))))
        placed = tuple(
            [f"{places.name}_p" for b in apart if b.statistic.tree is not None for places in lists_of(b.statistic)]
        )
        return merged(tuple(parts), self.keys, () if self.bounded.one_row else self.hidden, placed)

    def _of(self, statistics: tuple[BoundedStatistic, ...]) -> _Lowering:
        """The lowering of some of the statistics, with the norms that they have."""
        held = {b.statistic.norm for b in statistics}
        norms = tuple([norm for norm in self.bounded.norms if norm.norm.name in held])
        return _Lowering(replace(self.bounded, statistics=statistics, norms=norms), self.parameters)

    def _placed_summed(self) -> Relation:
        """The numbers by place of the one statistic, by group."""
        if self.bounded.one_row:
            return self._rows_summed()
        (item,) = self.bounded.statistics
        return places_summed(self._weighed(item), item, keys=self.keys, hidden=self.hidden)

    def _weighed(self, item: BoundedStatistic) -> tuple[Relation, ...]:
        """The rows with what each weighs: those of units within the bounds apart, where that is known."""
        bounded, keys, hidden = self.bounded, self.keys, self.hidden
        known = known_norms(bounded)
        if known is not None:
            return (weighed_by_norm(self.base(with_unit=False, norms=known), bounded, keys=keys),)
        if not keeps_rows(bounded):
            return (weighed_by_unit(self.base(with_unit=True), bounded, keys=keys, hidden=hidden),)
        assert isinstance(bounded.contribution, Contribution)
        light, heavy = split(self.core, bounded.contribution)
        numbers = None if heavy is None else number_kept(bounded, item)
        if numbers is not None:
            _, beyond = split(self.core, bounded.contribution, numbers)
            assert beyond is not None
            number = ColumnRef(self.core.sources[0].relation, numbers, ColumnType.INTEGER, nullable=False)
            rest = self._over(beyond).base(with_unit=False, more={f"{item.statistic.name}n": number})
            whole = weighed_alike(self.base(with_unit=False), bounded, keys=keys, hidden=hidden)
            return whole, weighed_by_number(rest, bounded)
        every = heavy is not None and not keys
        rows = (self if every else self._over(light)).base(with_unit=False)
        parts = (weighed_alike(rows, bounded, keys=keys, hidden=hidden),)
        if heavy is None:
            return parts
        rest = self._over(heavy).base(with_unit=True)
        return (*parts, weighed_by_unit(rest, bounded, keys=keys, hidden=hidden, counted=every))

    def _over(self, core: Core) -> _Lowering:
        """The lowering of these rows instead."""
        return _Lowering(replace(self.bounded, core=core), self.parameters)

    def _answered(self, item: BoundedStatistic) -> list[tuple[Relation, tuple[str, ...]]]:
        """What the blocks of a sample-and-aggregate answer by place, a relation for each quantile."""
        found: list[tuple[Relation, tuple[str, ...]]] = []
        fractions = () if item.statistic.drawn is None else item.statistic.drawn.fractions
        for name, fraction in zip(item.statistic.block_names, fractions, strict=False):
            columns = (*self.placed(with_unit=False, with_draw=True), *self.row_columns(item))
            rows = in_two_layers(TableRows(columns, self.joined(draw=True), self.where()))
            found.append((blocks_answered(rows, item, fraction, f"{name}_p", keys=self.keys), (f"{name}_p",)))
        return found

    def _valued(self, item: BoundedStatistic, contribution: Contribution) -> Relation:
        """Rows with their unit and its draw, their keys, and the value of which each different one counts."""
        assert item.distinct is not None
        several = not contribution.one_row
        columns = self.placed(with_unit=several, with_draw=several, as_text=several)
        value = told_apart(lower_expression(item.distinct, self.parameters), item.distinct)
        if item.filter is not None:
            value = Case(((Holds(lower_expression(item.filter, self.parameters)), value),), closed=False)
        columns.append(Output(value, f"{item.statistic.name}v"))
        where = self.where()
        return TableRows(tuple(columns), self.joined(draw=several), where)

    def _is_count(self, bounded: BoundedStatistic) -> bool:
        """Whether the statistic is a plain count of rows: of 64 bits, never NULL and far below 2^62."""
        return sums_of(bounded.statistic.kind).plain_count(bounded, one_row=self.bounded.one_row)

    # Sums by group

    def _rows_summed(self) -> Relation:
        if len(self.bounded.statistics) == 1 and self.bounded.statistics[0].statistic.drawn is not None:
            return places_counted(self.base(with_unit=False), self.bounded.statistics[0], keys=self.keys)
        columns = []
        for bounded in self.bounded.statistics:
            if bounded.statistic.tree is not None:
                place = under(bounded, Named(f"{bounded.statistic.name}t"))
                columns.append(Output(PlaceCounts(place), f"{bounded.statistic.name}_p"))
                continue
            for i, value in enumerate(self.vector(bounded)):
                aggregate = Count() if value is ONE else Sum(value)
                columns.append(Output(aggregate, f"{bounded.statistic.name}_{i}"))
        return Grouped(self.base(with_unit=False), "b", self.keys, self.keys, tuple(columns))

    # Units

    def _norms_summed(self, shared: Relation | None) -> Relation:
        """Units scaled to norms, and summed per group."""
        vectors = {bounded.statistic.name: self.vector(bounded) for bounded in self.bounded.statistics}
        stored = known_norms(self.bounded)
        if sums_are_norms(self.bounded):
            return NormSums(self.bounded, self.keys, self.hidden).of_units(self.units_stored())
        if stored is not None:
            rows = self.base(with_unit=False, norms=stored)
        else:
            rows = self.base(with_unit=True) if shared is None else shared
        return NormSums(self.bounded, self.keys, self.hidden).summed(rows, vectors, shared=shared is not None)

    def _units_summed(self, contribution: Contribution) -> Relation:
        """Partial sums per unit and group, held to what its rows are worth, then summed per group."""
        late = late_units(self.core, read_columns((), *self.parts()))
        alone, unit_sums = self._without(late), UnitSums(self.bounded, contribution)
        kept = kept_sums(alone.bounded, unit_sums.partial())
        by_cell, names = self.bounded.chosen_by_cell, names_of(self.keys, self.hidden)
        if kept is None:
            rows = alone.base(with_unit=True)
            if contribution.choose_groups and not by_cell:
                rows = ChosenGroups(rows, self.keys, contribution.groups)
            by = ("u", "d", *names) if by_cell else ("u", *names)
            layer = grouped_by_hidden(salted(rows, self.hidden), "r", by, by, self.hidden, unit_sums.partial())
        else:
            layer = alone.units_kept(kept, named=bool(late))
        for source in late:
            layer = UnitFactors(layer, self._units_of(source), ())
        if by_cell:
            texts = tuple([name for name, key in self.core.keys if key.type is ColumnType.TEXT])
            layer = ChosenGroups(layer, self.keys, contribution.groups, texts)
        layer = unit_sums.with_totals(layer)
        for place, outputs in enumerate(unit_sums.masses()):
            if outputs:
                layer = Extended(layer, f"p{place}", outputs)
        return grouped_by_hidden(layer, "p", self.keys, names, self.hidden, unit_sums.sums())

    def _without(self, late: tuple[Source, ...]) -> _Lowering:
        """The lowering of the rows without these sources."""
        if not late:
            return self
        sources = tuple([source for source in self.core.sources if source not in late])
        return _Lowering(replace(self.bounded, core=replace(self.core, sources=sources)), self.parameters)

    def _units_of(self, source: Source) -> Relation:
        """The units that have a row of a source."""
        units = (Output(Column(source.relation, UNIT), "u"),)
        alone = (replace(source, join=None),)
        return TableRows(units, lowered_sources(alone, (), self.parameters, draw=False), None)
