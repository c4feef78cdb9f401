"""Set operations of released relations.

The rows of UNION ALL are those of its branches and keep their identity: `id$0` holds the number of the branch, then
come the hidden columns of the first and of the second, NULL in the rows of the other. The rows of a set operation that
removes repeats have no identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from privacy.release import ColumnKind
from sql_rewrite.plan import ShellOutput
from sql_rewrite.released import REPLICATE, Form, Released, column, quoted
from sql_rewrite.shell_trace import leaves_out, shifted
from sql_rewrite.trace import Shape, Trace, merged, together

__all__ = ["unite"]


def unite(
    left: Released,
    right: Released,
    node: exp.SetOperation,
    *,
    copy: Callable[[exp.Expr], exp.Expr],
    ordered: bool,
    instances: int,
) -> Released:
    """The relation of a set operation. `copy` gives checked copies of its ORDER BY, LIMIT and OFFSET.

    Requires: both sides have as many columns. `ordered` says that noisy numbers decide the order.
    """
    all_rows = isinstance(node, exp.Union) and node.args.get("distinct") is False
    kept = all_rows and left.identities is not None and right.identities is not None
    sides = (left, right)
    starts = (1, 1 + (left.identities or 0))
    outputs = tuple(
        _output(
            a.name, (shifted(a, starts[0]), shifted(b, starts[1])) if kept else (a, b), kept=kept, chosen=not all_rows
        )
        for a, b in zip(left.outputs, right.outputs, strict=True)
    )

    def rows_most() -> int | None:
        most = [side.rows_most() for side in sides]
        known = [rows for rows in most if rows is not None]
        return sum(known) if len(known) == len(most) else None

    limited = ordered and leaves_out(node, rows_most)
    slots = [slot for slot in ("order", "limit", "offset") if node.args.get(slot) is not None]

    def build(form: Form) -> exp.Query | None:
        branches = [tree for side in sides if (tree := side.form(form)) is not None]
        if len(branches) < len(sides):
            return None
        first, second = (
            branch.copy() if form is Form.PLAIN else _with_identity(sides, number, branch, form, starts)
            for number, branch in enumerate(branches)
        )
        tree = type(node)(
            this=exp.Subquery(this=first), expression=exp.Subquery(this=second), distinct=node.args.get("distinct")
        )
        for slot in slots:
            # Every form copies them, which checks them; simulated rows are neither cut nor sorted.
            clause = copy(node.args[slot])
            if form is not Form.SIMULATED:
                tree.set(slot, clause)
        return tree

    return Released(
        outputs,
        identities=1 + sum(side.identities or 0 for side in sides) if kept else None,
        build=build,
        instances=instances,
        rows=left.rows | right.rows,
        chosen=left.chosen or right.chosen or limited or not all_rows,
        ordered=ordered,
        rows_most=rows_most,
    )


def _output(name: str, parts: tuple[ShellOutput, ShellOutput], *, kept: bool, chosen: bool) -> ShellOutput:
    """The column of both branches."""
    a, b = parts
    kind = a.kind if a.kind == b.kind else ColumnKind.DERIVED
    if not kept:
        kind = ColumnKind.KEY if kind == ColumnKind.KEY else ColumnKind.DERIVED
    worst = max(a.trace.shape, b.trace.shape)
    trace = merged((a.trace, b.trace), worst, together(a.trace.rises, b.trace.rises))
    if chosen:
        trace = Trace(trace.reads, trace.across, max(worst, Shape.ROUGH), None, chosen=True)
    if not kept or kind == ColumnKind.KEY:
        return ShellOutput(name=name, kind=kind, trace=trace)
    return ShellOutput(name=name, kind=kind, trace=trace, branch=0, branches=parts)


def _with_identity(
    sides: Sequence[Released], number: int, branch: exp.Query, form: Form, starts: Sequence[int]
) -> exp.Query:
    """One branch with the hidden columns of the whole. `branch` is its tree in the form."""
    own = sides[number].identities or 0
    hidden = [REPLICATE] if form is Form.SIMULATED else []
    names = [f"c${i}" for i in range(len(sides[number].outputs))]
    inner = [*names, *hidden, *(f"i${i}" for i in range(own))]
    select: list[exp.Expr] = [
        exp.alias_(column(inside), output.name, quoted=True)
        for inside, output in zip(names, sides[0].outputs, strict=True)
    ]
    select += [column(name) for name in hidden]
    for place in range(1 + sum(one.identities or 0 for one in sides)):
        mine = place - starts[number]
        value: exp.Expr = column(f"i${mine}") if 0 <= mine < own else exp.Null()
        select.append(exp.alias_(exp.Literal.number(number) if place == 0 else value, f"id${place}", quoted=True))
    alias = exp.TableAlias(this=quoted("branch$"), columns=[quoted(name) for name in inner])
    tree = exp.Select(expressions=select)
    tree.set("from_", exp.From(this=exp.Subquery(this=branch.copy(), alias=alias)))
    return tree
