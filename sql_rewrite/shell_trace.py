"""Traces of a whole shell block: its columns, which rows it reads, and whether noisy numbers choose among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sql_rewrite.plan import ShellOutput
from sql_rewrite.released import Released
from sql_rewrite.syntax import clauses, populated, select_place, whole_number
from sql_rewrite.trace import UNKNOWN, Trace, Tracer, moved

__all__ = ["BlockTrace", "leaves_out", "shifted", "trace_block", "value_of"]


@dataclass(frozen=True, slots=True)
class BlockTrace:
    """Traces of the projections; the cores whose rows are read; whether noisy numbers choose rows, or order them."""

    projections: tuple[Trace, ...]
    rows: frozenset[str]
    chosen: bool
    ordered: bool


def shifted(output: ShellOutput, offset: int) -> ShellOutput:
    """The output in a relation whose hidden identity columns stand further to the right."""
    if not offset:
        return output
    return replace(
        output,
        identity=None if output.identity is None else output.identity + offset,
        branch=None if output.branch is None else output.branch + offset,
        branches=tuple(shifted(branch, offset) for branch in output.branches),
        trace=moved(output.trace, offset),
    )


def value_of(released: Released) -> Trace:
    """The trace of a relation's first column where it stands as a value: of rows other than the reader's own."""
    trace = released.outputs[0].trace
    return replace(
        trace,
        reads=frozenset((core, name, None) for core, name, _ in trace.reads),
        across=trace.across | released.rows,
        chosen=trace.chosen or released.chosen,
    )


def leaves_out(node: exp.Expr, rows_most: Callable[[], int | None]) -> bool:
    """Whether LIMIT or OFFSET of a query may leave out rows, of which there are at most that many by public facts."""
    limit, offset = (_counted(node.args.get(slot)) for slot in ("limit", "offset"))
    if offset is not None and offset != 0:
        return True
    if limit is None:
        return False
    most = rows_most()
    return most is None or limit < most


def _counted(node: exp.Expr | None) -> int | None:
    """The number of a LIMIT or OFFSET, None without one; -1 when it is not a plain number."""
    if node is None:
        return None
    number = whole_number(node.args.get("expression")) if populated(node) <= {"expression"} else None
    return -1 if number is None else number


def trace_block(
    node: exp.Select,
    projections: Sequence[exp.Expr],
    sources: Sequence[tuple[str, Released]],
    nested: Callable[[exp.Expr], Released],
    rows_most: Callable[[], int | None],
) -> BlockTrace:
    """The traces of a SELECT block over released relations. Never refuses: what is not understood is unknown.

    `rows_most` is the number of rows that its LIMIT has to leave at least, so that it leaves out none.
    """
    columns: dict[tuple[str, str], Trace] = {}
    offset = 0
    for alias, released in sources:
        for output in released.outputs:
            trace = moved(output.trace, offset)
            columns[alias.lower(), output.name.lower()] = trace
            columns.setdefault(("", output.name.lower()), trace)
        offset += released.identities or 0
    rows = frozenset().union(*(released.rows for _, released in sources))

    def inner(query: exp.Expr) -> Trace:
        return value_of(nested(query))

    def tracer(known: Mapping[tuple[str, str], Trace], *, chosen: bool) -> Tracer:
        def column(reference: exp.Column) -> Trace:
            return known.get((reference.table.lower(), reference.name.lower()), UNKNOWN)

        return Tracer(column, inner, rows=rows, chosen=chosen)

    before = tracer(columns, chosen=False)
    joins = [on for join in node.args.get("joins") or [] for on in clauses(join, "on")]
    where = [clause.this for clause in clauses(node, "where")]
    kept = any(released.chosen for _, released in sources) or not before.constant([*joins, *where])
    group = node.args.get("group")
    if group is not None and not before.constant(
        item for item in group.expressions if not isinstance(item, exp.Literal)
    ):
        kept = True
    over = tracer(columns, chosen=kept)
    traces = tuple(over.trace(projection.this) for projection in projections)
    aliased = dict(columns)
    for projection, trace in zip(projections, traces, strict=True):
        aliased.setdefault(("", projection.alias.lower()), trace)
    after = tracer(aliased, chosen=kept)
    filters = [clause.this for clause in clauses(node, "having", "qualify")]
    chosen = kept or not after.constant(filters)
    ordered = any(released.ordered for _, released in sources)
    order = node.args.get("order")
    if order is not None:
        ordered = not all(_sorting(item, traces, after).constant for item in order.expressions)
    if ordered and leaves_out(node, rows_most):
        chosen = True
    return BlockTrace(traces, rows, chosen, ordered)


def _sorting(item: exp.Expr, traces: Sequence[Trace], tracer: Tracer) -> Trace:
    """What an ORDER BY sorts by: a position is one of the projections."""
    node = item.this if isinstance(item, exp.Ordered) else item
    place = select_place(node)
    if place is not None:
        return traces[place] if 0 <= place < len(traces) else UNKNOWN
    return tracer.trace(node)
