"""The geometric mean, which DuckDB writes out too: GEOMEAN(x) is EXP(AVG(LN(x))).

The average of the logarithms is released, and the shell takes its power of e: the answer's interval follows from that
of the average. LN of what is not positive is NULL, as everywhere (functions.md), so such rows contribute nothing.
"""

from __future__ import annotations

from sqlglot import exp

from sql_rewrite.aggregate_calls import NESTED

__all__ = ["NAMES", "write_out"]

NAMES = frozenset({"geomean", "geometric_mean"})
"""DuckDB's names of it: macros over aggregates."""


def write_out(block: exp.Select, folded: str) -> None:
    """Writes out every geometric mean of the block itself: not of queries inside it, and not over a window.

    `folded` is the whole text in lower case: most have no such call, and are not looked through."""
    if "geo" not in folded:
        return
    stack: list[exp.Expr] = list(block.iter_expressions())
    while stack:
        node = stack.pop()
        if isinstance(node, NESTED):
            continue
        call = node.this if isinstance(node, exp.Filter) else node
        if _is_mean(call) and not isinstance(node.parent, exp.Window):
            mean = exp.Avg(this=exp.Ln(this=call.expressions[0]))
            mean.meta.update(call.meta)
            inner: exp.Expr = mean
            if isinstance(node, exp.Filter):
                inner = exp.Filter(this=mean, expression=node.expression)
            node.replace(exp.Exp(this=inner))
            stack.append(inner)
        else:
            stack.extend(node.iter_expressions())


def _is_mean(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in NAMES and len(node.expressions) == 1
