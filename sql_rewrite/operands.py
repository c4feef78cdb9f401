"""The operands of a refused call as advice repeats them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.expressions import ColumnRef, columns_of
from sql_rewrite.filled import Operand
from sql_rewrite.lifter import Lifter

__all__ = ["operands_of"]

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_LONGEST = 100
"""An operand with more characters is not repeated in advice."""

_ALONE = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Cast)
"""Operands that need no brackets beside an operator."""


_NODES_MAX = 20
"""An operand of more nodes is not read for advice."""

_NO_OPERANDS = (exp.DataType, exp.Identifier, exp.Var, exp.Star, exp.Null)
_SEVERAL_ROWS = (exp.AggFunc, exp.Query, exp.Subquery, exp.Window, exp.WithinGroup, exp.Lambda)


def operands_of(lifter: Lifter, node: exp.Expr) -> list[Operand]:
    """The operands of a call or operator that can be read, in the order in which they are written."""
    found = []
    for part in _parts(node):
        place = lifter.text.position(part)
        try:
            lifted = lifter.lift(part)
        except Refused:
            continue
        if place is None or len(place.text) > _LONGEST:
            continue
        written = " ".join(place.text.split())
        sql = written if isinstance(part, _ALONE) and not isinstance(part, exp.Case) else f"({written})"
        open_column = isinstance(lifted, ColumnRef) and lifted.declared is None and lifted.type in _NUMBERS
        summed = f"GREATEST(<lowest>, LEAST({written}, <highest>))" if open_column else sql
        found.append(Operand(sql, lifted.type, summed, bool(columns_of(lifted))))
    return found


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands that are small and of one row: what else a refused call has in it is not looked at."""
    for child in node.iter_expressions():
        parts = child.expressions if isinstance(child, exp.Distinct | exp.Order) else [child]
        if isinstance(child, exp.Order) and child.this is not None:
            parts = [child.this]
        for part in parts:
            inner = part.this if isinstance(part, exp.Ordered) else part
            if isinstance(inner, exp.Expr) and not isinstance(inner, _NO_OPERANDS) and _small(inner):
                yield inner


def _small(node: exp.Expr) -> bool:
    """Whether few nodes are below, none of them of several rows."""
    seen = list(itertools.islice(node.walk(), _NODES_MAX + 1))
    return len(seen) <= _NODES_MAX and not any(isinstance(one, _SEVERAL_ROWS) for one in seen)
