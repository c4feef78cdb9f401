"""The rows of a core as an engine reads them: keys, encoded values and filters, or what a snapshot keeps of units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from privacy.policy import ColumnType
from privacy.stored_norms import FIRST, UNITS, sizes_table, units_table
from sql_rewrite.bounded import BoundedCore, BoundedStatistic
from sql_rewrite.conditions_first import conditions_first
from sql_rewrite.contribution import Contribution
from sql_rewrite.expressions import ColumnRef, Expression, needs_wide
from sql_rewrite.join_tree import unit_source
from sql_rewrite.layer_values import KeyText
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.lower_normed import ALIKE
from sql_rewrite.lower_steps import in_two_layers, steps_of
from sql_rewrite.lower_unit_groups import DRAW, UNIT, lowered_sources, read_columns
from sql_rewrite.plan import KEY_CHARACTERS_MAX
from sql_rewrite.relations import HiddenKey, LoweredSource, Output, Relation, TableRows, TableSource
from sql_rewrite.scalars import Cast, Column, EngineType, Holds, Scalar
from sql_rewrite.statistics.registry import sums_of
from sql_rewrite.stored_norms import UnitTable, known_norms, unit_table
from sql_rewrite.unit_worth import under

__all__ = ["LoweredRows"]

_NO_NORMS: Mapping[str, str] = MappingProxyType({})
_NO_COLUMNS: Mapping[str, ColumnRef] = MappingProxyType({})


class LoweredRows:
    """The rows of one core, with what statistics need of each: columns named as in lower.py."""

    def __init__(self, bounded: BoundedCore, parameters: ParameterList | None = None) -> None:
        self.core = conditions_first(bounded.core)
        self.bounded = replace(bounded, core=self.core)
        self.parameters = ParameterList() if parameters is None else parameters
        self.keys = tuple([name for name, _ in self.core.keys])

    def units_stored(self) -> Relation:
        """One row of each unit with its norms, where the snapshot keeps them, or one of all with the same norms."""
        norms, source = known_norms(self.bounded), self.core.sources[0]
        root, table = source.relation, source.table.name
        assert norms is not None
        columns = tuple([Output(Column(root, column), f"{name}m") for name, column in norms.items()])
        match unit_table(source.table, norms.values()):
            case UnitTable.FIRST:
                return TableRows(columns, self.joined(draw=False), Column(root, FIRST))
            case UnitTable.UNITS:
                return TableRows(columns, (TableSource(units_table(table), root, None),), None)
            case UnitTable.SIZES:
                columns = (*columns, Output(Column(root, UNITS), ALIKE))
                return TableRows(columns, (TableSource(sizes_table(table), root, None),), None)
            case other:
                assert_never(other)

    def units_kept(self, columns: tuple[Output, ...], *, named: bool) -> Relation:
        """One row of each unit with these columns of what the snapshot keeps, and its number where that is read."""
        (source,) = self.core.sources
        if not named and source.table.stored_units:
            return TableRows(columns, (TableSource(units_table(source.table.name), source.relation, None),), None)
        unit = Output(Column(source.relation, UNIT), "u")
        return TableRows((unit, *columns), self.joined(draw=False), Column(source.relation, FIRST))

    def base(
        self, *, with_unit: bool, norms: Mapping[str, str] = _NO_NORMS, more: Mapping[str, ColumnRef] = _NO_COLUMNS
    ) -> Relation:
        """Rows with their keys, encoded values and filters, and with the norms of their unit in these columns.

        No row is left out for its key: all its values are in the public domain (`map_domain` says why), and the
        release refuses a group that is not.
        """
        contribution = self.bounded.contribution
        chosen = isinstance(contribution, Contribution) and contribution.choose_groups
        draw = with_unit and chosen
        columns = self.placed(with_unit=with_unit, with_draw=draw)
        columns += [Output(Column(self.core.sources[0].relation, column), f"{name}m") for name, column in norms.items()]
        columns += [Output(Column(column.relation, column.name), name) for name, column in more.items()]
        for bounded in self.bounded.statistics:
            columns += self.row_columns(bounded)
        where = self.where()
        return in_two_layers(TableRows(tuple(columns), self.joined(*more.values(), draw=draw), where))

    def placed(self, *, with_unit: bool, with_draw: bool, as_text: bool = False) -> list[Output]:
        """The unit of a row, its draw, and its keys; with `as_text` these never as places in a list."""
        columns = []
        root = unit_source(self.core.sources, draw=with_draw).relation
        if with_unit:
            columns.append(Output(Column(root, UNIT), "u"))
        if with_draw:
            columns.append(Output(Column(root, DRAW), "d"))
        for (name, key), domain in zip(self.core.keys, self.bounded.domains, strict=True):
            columns.append(Output(self._key(key, public=domain is not None, as_text=as_text), name))
        return columns

    def joined(self, *more: Expression, draw: bool) -> tuple[LoweredSource, ...]:
        """The sources, with what is read of them; with `draw` one of them has that of the unit."""
        if all(source.stored and source.only is None for source in self.core.sources):
            return lowered_sources(self.core.sources, (), self.parameters, draw=draw)
        read = read_columns(self.core.sources, *self.parts(), *more)
        return lowered_sources(self.core.sources, read, self.parameters, draw=draw)

    def parts(self) -> list[Expression | None]:
        """What is computed of the joined rows."""
        parts = [self.core.where, *(key for _, key in self.core.keys)]
        for item in self.bounded.statistics:
            parts += [*item.arguments, item.filter, item.present, item.distinct]
        return parts

    def where(self) -> Scalar | None:
        """The condition of the joined rows."""
        return None if self.core.where is None else lower_expression(self.core.where, self.parameters)

    def _key(self, key: Expression, *, public: bool, as_text: bool = False) -> Scalar:
        value = lower_expression(key, self.parameters)
        if key.type is ColumnType.TEXT and not public:
            texts = sum(1 for _, other in self.core.keys if other.type is ColumnType.TEXT)
            return KeyText(value, KEY_CHARACTERS_MAX // texts, cheap=isinstance(key, ColumnRef))
        if self.listed(key) and not as_text:
            return value
        return Cast(value, EngineType(key.type.value), safe=needs_wide(key))

    def listed(self, key: Expression) -> bool:
        """Whether a key may be stored as its place in a declared list: grouped as it is, its text is read at the end.

        Where groups are chosen their texts decide, as they do in snapshots that store texts: rows have them then, and
        cells get them.
        """
        chosen = isinstance(self.bounded.contribution, Contribution) and self.bounded.contribution.choose_groups
        chosen = chosen and not self.bounded.chosen_by_cell
        return isinstance(key, ColumnRef) and key.type is ColumnType.TEXT and key.domain is not None and not chosen

    def row_columns(self, bounded: BoundedStatistic) -> list[Output]:
        """Per row of one statistic: its value `t`, a second `u`, the filter `f`, and `h`, whether there is a value."""
        name = bounded.statistic.name
        columns = []
        if bounded.argument is not None:
            columns.append(Output(self.encoded(bounded, layered=True), f"{name}t"))
        if bounded.second is not None:
            assert bounded.statistic.second is not None
            second = steps_of(bounded.second, bounded.statistic.second, self.parameters, layered=True)
            columns.append(Output(second, f"{name}u"))
        if bounded.filter is not None:
            columns.append(Output(Holds(lower_expression(bounded.filter, self.parameters)), f"{name}f"))
        if bounded.present is not None:
            columns.append(Output(lower_expression(bounded.present, self.parameters), f"{name}h"))
        return columns

    def encoded(self, bounded: BoundedStatistic, *, layered: bool = False) -> Scalar:
        """The integer T of a statistic's argument."""
        assert bounded.argument is not None
        assert bounded.row_encoding is not None
        return steps_of(bounded.argument, bounded.row_encoding, self.parameters, layered=layered)

    def vector(self, bounded: BoundedStatistic) -> list[Scalar]:
        """The integers that one row of the base adds to each coordinate (NULL: nothing)."""
        return [under(bounded, part) for part in sums_of(bounded.statistic.kind).row(bounded)]

    @property
    def hidden(self) -> tuple[HiddenKey, ...]:
        """The keys whose values are not public."""
        return tuple(
            [
                HiddenKey(name, key.type is ColumnType.TEXT, key.type is ColumnType.INTEGER)
                for (name, key), domain in zip(self.core.keys, self.bounded.domains, strict=True)
                if domain is None
            ]
        )
