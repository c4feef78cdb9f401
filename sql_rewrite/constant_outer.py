"""LEFT JOIN of rows about people with rows of constants: a row that meets none of them is kept, beside NULL.

    people LEFT JOIN (VALUES (0, 30), (30, 60)) AS b(low, high) ON age >= low AND age < high
    constants:  both rows with a mark of 1, and NULL with a mark of 0
    condition:  mark = 1 and the condition, or mark = 0 and the condition is not true for (0, 30), nor for (30, 60)

Claim. Each row about people meets exactly those rows that the outer join gives it. Proof: it meets a marked row where
the condition is true, and the row of NULL where it is true for none of them, which the second part says constant by
constant. So the join is one with constants, by a condition, and unit-local (constant_rows.py); a row meets
as many as without the row of NULL, or that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from privacy.policy import Column, ColumnType
from sql_rewrite.entries import View
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, walk
from sql_rewrite.functions import TypeRefused, build
from sql_rewrite.plan import Constants
from sql_rewrite.rows import Rows

__all__ = ["kept_people", "met_alone", "with_nobody"]

WRITTEN_MAX = 60_000
"""Most parts of a condition that is written out for each row: an estimate is free, and must not keep others waiting."""

_MARK = "there$"
_ZERO, _ONE, _FALSE = (
    Literal(0, ColumnType.INTEGER),
    Literal(1, ColumnType.INTEGER),
    Literal(value=False, type=ColumnType.BOOLEAN),
)


def with_nobody(view: View) -> View:
    """The rows of constants with a row of NULL, and a mark that tells it from the others. Requires: nothing else."""
    (source,) = view.rows.sources
    constants = source.constants
    assert constants is not None
    columns = tuple(_nullable(ref) for ref in constants.columns)
    range_ = Interval(_ZERO.interval.lower, _ONE.interval.upper) if _ZERO.interval and _ONE.interval else None
    mark = replace(columns[0], name=_MARK, type=ColumnType.INTEGER, nullable=False, interval=range_, declared=range_)
    mark = replace(mark, domain=(0, 1), length_max=None, shown=None)
    rows = (*((*row, 1) for row in constants.rows), (*(None for _ in columns), 0))
    table = replace(
        source.table,
        columns=(
            *(replace(column, nullable=True) for column in source.table.columns),
            Column(_MARK, ColumnType.INTEGER, nullable=False),
        ),
    )
    extended = replace(source, table=table, constants=Constants((*columns, mark), rows, len(rows)))
    shown = tuple((name, _nullable(ref)) for name, ref in view.rows.columns if isinstance(ref, ColumnRef))
    return View(view.relation, Rows((extended,), None, shown))


def _nullable(ref: ColumnRef) -> ColumnRef:
    domain = ref.domain if ref.domain is None or None in ref.domain else (*ref.domain, None)
    return replace(ref, nullable=True, domain=domain)


def met_alone(constants: Constants) -> Constants:
    """The constants without the row of NULL."""
    return replace(constants, rows=constants.rows[:-1])


def kept_people(constants: Constants, relation: str, parts: Sequence[Expression]) -> Expression:
    """The condition of the join, of the parts of ON. Errors: TypeRefused, where it is too large."""
    mark = replace(constants.columns[-1], relation=relation)
    names = [ref.name for ref in constants.columns]
    condition = parts[0] if len(parts) == 1 else build("and", parts)
    if len(constants.rows) * sum(1 for _ in walk(condition)) > WRITTEN_MAX:
        raise TypeRefused(
            "too_large",
            "a LEFT JOIN of constants is refused",
            "Its condition would be written out for each of their rows, and is too long for that.",
            ("use fewer rows of constants, or a shorter condition",),
        )
    met = [
        build("coalesce", (_for(condition, relation, dict(zip(names, row, strict=True))), _FALSE))
        for row in met_alone(constants).rows
    ]
    nowhere = build("not", (met[0] if len(met) == 1 else build("or", met),))
    here = build("and", (build("=", (mark, _ONE)), condition))
    return build("or", (here, build("and", (build("=", (mark, _ZERO)), nowhere))))


def _for(node: Expression, relation: str, row: Mapping[str, object]) -> Expression:
    """The condition for one row of constants."""
    if isinstance(node, ColumnRef) and node.relation == relation:
        return Literal(row[node.name], node.type)  # type: ignore[arg-type]
    if isinstance(node, Call):
        return build(node.operator, tuple(_for(argument, relation, row) for argument in node.arguments))
    return node
