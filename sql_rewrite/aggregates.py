"""How SQL text calls the aggregates: views of `privacy.aggregate` for the lift."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import sqlglot
from sqlglot import exp

from privacy.aggregate import AggregateFunction
from sql_rewrite.syntax import DIALECT

__all__ = ["BY_NAME", "BY_NODE", "called"]


def _of_values(function: AggregateFunction) -> bool:
    """Whether it is a call NAME(x) of numbers; the lift reads COUNT by itself, because its forms are grammar."""
    return function.statistic.described.of_values


def _views() -> tuple[dict[type[exp.Expr], AggregateFunction], dict[str, AggregateFunction]]:
    """The aggregates of values by the parser's class of node, and by name where the parser has no class for it.

    Errors: ValueError when nothing would distinguish two aggregates, or when a name is read as something else.
    """
    nodes: dict[type[exp.Expr], AggregateFunction] = {}
    names: dict[str, AggregateFunction] = {}
    for function in filter(_of_values, AggregateFunction):
        for name in function.described.names:
            written = f"{name}(y, x)" if function.described.of_pairs else f"{name}(x)"
            node = sqlglot.parse_one(written, read=DIALECT)
            if isinstance(node, exp.Anonymous):
                known = names.setdefault(name, function)
            elif isinstance(node, exp.AggFunc):
                known = nodes.setdefault(type(node), function)
            else:
                raise ValueError(f"{written} is not read as a call of an aggregate")  # noqa: TRY004 - it is the value of a name that is wrong
            if known is not function:
                raise ValueError(f"{written} is both {known.name} and {function.name}")
    return nodes, names


_nodes, _names = _views()
BY_NODE: Mapping[type[exp.Expr], AggregateFunction] = MappingProxyType(_nodes)
"""Aggregates of values by the class of the parser's node."""

BY_NAME: Mapping[str, AggregateFunction] = MappingProxyType(_names)
"""Aggregates of values for which the parser has no class: they are calls of any name."""


def called(node: exp.Expr) -> tuple[AggregateFunction, tuple[exp.Expr, ...]] | None:
    """The aggregate of values that a node calls, and its operands; None for any other node."""
    if isinstance(node, exp.Anonymous):
        function = BY_NAME.get(str(node.this).lower())
        operands = tuple(node.expressions)
    else:
        function = BY_NODE.get(type(node))
        pair = function is not None and function.described.of_pairs
        operands = (node.this, node.args.get("expression")) if pair else (node.this,)
    if function is None or len(operands) != (2 if function.described.of_pairs else 1):
        return None
    return None if any(operand is None for operand in operands) else (function, operands)
