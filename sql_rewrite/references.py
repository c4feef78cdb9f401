"""A column of a source as a typed node: what the declarations, and the join that it comes by, say of its values."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from privacy.policy import Column, ColumnType, Dataset, KeyValue, PublicKeys, Table
from sql_rewrite.expressions import ColumnRef, Expression, Interval
from sql_rewrite.plan import Source
from sql_rewrite.unit_values import renamed

__all__ = ["reference", "without_unit"]


def reference(source: Source, column: Column, dataset: Dataset) -> ColumnRef:
    """A column of a source as a typed node. Columns of an outer join's parent may be NULL."""
    outer = source.join is not None and source.join.outer
    if not source.stored:
        expression = source.made[column.name]
        nullable = expression.nullable or outer
        found = renamed(expression, column.name, column.description, nullable=nullable)
        return replace(found, relation=source.relation)
    declared = None
    if column.bounds is not None and column.type not in (ColumnType.TEXT, ColumnType.BOOLEAN):
        declared = Interval(Fraction(column.bounds.lower), Fraction(column.bounds.upper))
    nullable = column.nullable or outer
    other = None if column.keys is None else column.keys.other
    domain = None if column.keys is None else _domain(column.keys, nullable=nullable)
    table = source.table
    is_unit = (table.name == dataset.unit.table and column.name == dataset.unit.key) or (
        table.protected and not table.unit_path and column.name == table.unit_column
    )
    fewer = source.join is not None and (source.only is not None or source.join.when is not None)
    if outer and source.join is not None and (source.join.on_unit or fewer):
        is_unit = False  # it is NULL for units without a partner, which it does not count
    return ColumnRef(
        relation=source.relation,
        name=column.name,
        type=column.type,
        nullable=nullable,
        declared=declared,
        domain=domain,
        other=other,
        is_unit=is_unit,
        length_max=column.length_max if other is None else column.length_stored,
        identifies=is_unit or _identifies(table, column),
    )


def without_unit(expression: Expression, relation: str) -> Expression:
    """A column of a relation that some rows of a unit meet no row of: it is not the unit's key in each of them."""
    if not isinstance(expression, ColumnRef) or expression.relation != relation:
        return expression
    return replace(expression, is_unit=False)


def _identifies(table: Table, column: Column) -> bool:
    """Whether a value of the column belongs to one row of a protected table, or to one row on its way to the unit."""
    leads = bool(table.unit_path) and table.unit_path[0].column == column.name
    return table.protected and (leads or column.unique or column.name == table.key)


def _domain(keys: PublicKeys, *, nullable: bool) -> tuple[KeyValue, ...] | None:
    """Every value of a column with these keys, NULL last: in it where the column, or `other`, can be NULL."""
    values = [value for value in keys.values if value is not None]
    if keys.other is not None and keys.other.value is not None and keys.other.value not in values:
        values.append(keys.other.value)
    missing = nullable or (keys.other is not None and keys.other.value is None)
    return (*values, None) if missing else tuple(values) or None
