"""Shell blocks: a SELECT over released relations, as such a relation itself.

What its columns are, whether its rows have an identity, and how noise reaches them is said here; how its forms are
written, in `shell_form.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from privacy.release import ColumnKind
from sql_rewrite.levels import LEVELS
from sql_rewrite.plan import Core, Counting, ShellOutput
from sql_rewrite.refuse import did_you_mean, refuse
from sql_rewrite.released import Form, Released, aliased, check_name, column
from sql_rewrite.scope import Names, Scope, unknown_column
from sql_rewrite.shell import ShellNodes, has_aggregate, output_name
from sql_rewrite.shell_form import Block, NestedQueries, write_block
from sql_rewrite.shell_names import matching
from sql_rewrite.shell_trace import shifted, trace_block
from sql_rewrite.syntax import clauses, consume, populated, select_place
from sql_rewrite.trace import UNKNOWN, Trace

__all__ = ["ShellBlocks"]

_QUERIES = (exp.Query, exp.Subquery)
_CONSTANTS = (exp.Literal, exp.Boolean, exp.Null)


class ShellBlocks:
    """Builds the shell blocks of one query. `query` lifts nested queries; `cores` are the query's cores so far."""

    def __init__(self, nodes: ShellNodes, cores: Sequence[Core], query: Callable[[exp.Expr, Scope], Released]) -> None:
        self.text = nodes.text
        self.nodes = nodes
        self.cores = cores
        self.nested = NestedQueries(nodes, query)
        self.counting: list[Counting] = []

    def block(self, node: exp.Select, sources: Sequence[tuple[str, Released]], scope: Scope) -> Released:
        """The relation of a SELECT block over released relations. Its forms are built, and checked, when asked for."""
        visible = {alias: [o.name for o in released.outputs] for alias, released in sources}
        names = Names(visible, scope.outer, joins=node.args.get("joins") or ())
        if len(names.relations) != len(sources):
            raise refuse(
                "ambiguous_column",
                "two relations of one name are refused",
                "The columns could not be distinguished.",
                "give each relation its own alias",
                position=self.text.position(node),
            )
        for alias, released in sources:
            self._check_columns(alias, released, node)
        names.check_using(self.text)
        projections = self._projections(node, sources)
        # Only names that the analyst gave; a column under its own name would vouch for itself, and for a whole row.
        aliases = [p.alias for p in node.expressions if isinstance(p, exp.Alias) and not _keeps_name(p)]
        rows_most = partial(_rows_most, node, sources)
        traced = trace_block(
            node, projections, sources, lambda query: self.nested.released(query, names, scope), rows_most
        )
        outputs = tuple(
            self._output(p, sources, trace) for p, trace in zip(projections, traced.projections, strict=True)
        )
        grouped = node.args.get("group") is not None or has_aggregate(
            [*projections, *clauses(node, "having", "order", "qualify")]
        )
        keys = self._identity_keys(node, projections, sources, names) if grouped else None
        identities = None if node.args.get("distinct") is not None else _identities(sources, keys, grouped=grouped)
        if grouped:
            outputs = tuple(
                o
                if o.kind == ColumnKind.KEY
                else replace(
                    o, kind=ColumnKind.DERIVED, core=None, column=None, identity=None, branch=None, branches=()
                )
                for o in outputs
            )
        if identities is None:
            outputs = tuple(replace(o, identity=None, branch=None, branches=()) for o in outputs)

        self._note_counting(node, sources, grouped=grouped)

        parts = Block(node, projections, sources, names, aliases, scope, keys)

        def build(form: Form) -> exp.Query | None:
            return write_block(parts, form, self.nodes, self.nested, self.cores)

        # Nested queries are counted here, before anything is written out: each level of a chain would double them.
        nested = sum(self.nested.released(inner, names, scope).instances for inner in _own_queries(node, projections))
        read = self.nodes.instances(max(1, nested + sum(released.instances for _, released in sources)), node)
        return Released(
            outputs,
            identities=identities,
            build=build,
            instances=read,
            rows=traced.rows,
            chosen=traced.chosen,
            ordered=traced.ordered,
            rows_most=rows_most,
        )

    def _note_counting(self, node: exp.Select, sources: Sequence[tuple[str, Released]], *, grouped: bool) -> None:
        """Keeps what depends on how many groups there are: aggregates over groups, and LIMIT."""
        cores = sorted(name for _, released in sources if not released.chosen for name in released.rows)
        filtered = bool(clauses(node, "where", "having", "qualify"))
        limited = node.args.get("limit") is not None
        if cores and not filtered and (grouped or limited):
            place = node.args["limit"] if limited else next(iter(node.expressions), node)
            what = "LIMIT" if limited else "an aggregate over groups"
            self.counting.append(Counting(what, tuple(dict.fromkeys(cores)), self.text.position(place)))

    def _check_columns(self, alias: str, released: Released, node: exp.Expr) -> None:
        """Refuses to read a relation two of whose columns have one name: one would stand for both."""
        seen: set[str] = set()
        for output in released.outputs:
            if output.name.lower() in seen:
                raise refuse(
                    "ambiguous_column",
                    f'relation "{alias[:63]}" is refused',
                    f'Two of its columns are named "{output.name[:63]}".',
                    "give each column its own alias",
                    position=self.text.position(node),
                )
            seen.add(output.name.lower())

    def _projections(self, node: exp.Select, sources: Sequence[tuple[str, Released]]) -> list[exp.Expr]:
        """The select list with stars written out and every column named."""
        result: list[exp.Expr] = []
        for projection in node.expressions:
            if isinstance(projection, exp.Columns):
                read = [(alias, o.name) for alias, released in sources for o in released.outputs]
                result += [aliased(column(name, alias), name) for alias, name in matching(projection, read, self.text)]
                continue
            star = projection.this if isinstance(projection, exp.Column) else projection
            if isinstance(star, exp.Star):
                left_out = self._left_out(star)
                wanted = projection.table.lower() if isinstance(projection, exp.Column) else None
                if wanted in (None, "") and any(join.args.get("using") for join in node.args.get("joins") or []):
                    raise refuse(
                        "ambiguous_column",
                        "* beside USING is refused",
                        "It shows a column of USING once, or once for each relation.",
                        "write the columns that you want",
                        "join with ON instead of USING",
                        position=self.text.position(projection),
                    )
                meant = [source for source in sources if wanted in (None, "", source[0].lower())]
                if not meant:
                    raise refuse(
                        "unknown_table",
                        "* is refused",
                        "It stands for the columns of no relation that is read here.",
                        *did_you_mean(wanted or "", [alias for alias, _ in sources]),
                        position=self.text.position(projection),
                    )
                shown = [(alias, o.name) for alias, released in meant for o in released.outputs]
                unknown = left_out - {name.lower() for _, name in shown}
                if unknown:
                    raise unknown_column(exp.column(min(unknown)), [name for _, name in shown], self.text)
                written = self._replaced(star, {name.lower() for _, name in shown} - left_out)
                result += [
                    aliased(written.get(name.lower(), column(name, alias)), name)
                    for alias, name in shown
                    if name.lower() not in left_out
                ]
                continue
            name = projection.alias if isinstance(projection, exp.Alias) else output_name(self.text, projection)
            inner = projection.this if isinstance(projection, exp.Alias) else projection
            check_name(name, self.text, projection)
            result.append(aliased(inner, name))
        if not result:
            raise refuse(
                "unsupported_sql",
                "an empty select list is refused",
                "There is nothing to answer.",
                position=self.text.position(node),
            )
        return result

    def _replaced(self, star: exp.Expr, shown: set[str]) -> dict[str, exp.Expr]:
        """What * REPLACE writes in place of columns, by their folded names. Errors: Refused."""
        written = {one.alias.lower(): one.this for one in star.args.get("replace") or [] if isinstance(one, exp.Alias)}
        if len(written) != len(star.args.get("replace") or []) or not set(written) <= shown:
            raise refuse(
                "unsupported_sql",
                "* REPLACE is refused",
                "It takes an expression AS each column that * shows, once.",
                position=self.text.position(star),
            )
        return written

    def _left_out(self, star: exp.Expr) -> set[str]:
        """The folded names that * EXCLUDE leaves out. Errors: Refused."""
        consume(star, "except_", "replace", text=self.text, what="*")
        names = star.args.get("except_") or []
        if not all(
            isinstance(name, exp.Identifier) or (isinstance(name, exp.Column) and not name.table) for name in names
        ):
            raise refuse(
                "unsupported_sql",
                "* EXCLUDE is refused",
                "It takes names of columns.",
                position=self.text.position(star),
            )
        return {name.name.lower() for name in names}

    def _output(
        self, projection: exp.Expr, sources: Sequence[tuple[str, Released]], trace: Trace = UNKNOWN
    ) -> ShellOutput:
        name = projection.alias
        inner = projection.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Column):
            offset, own, relation = 0, inner.name.lower(), inner.table.lower()
            for alias, released in sources:
                if not relation or relation == alias.lower():
                    for output in released.outputs:
                        if output.name.lower() == own:
                            return replace(shifted(output, offset), name=name, trace=trace)
                offset += released.identities or 0
        if isinstance(inner, _CONSTANTS):
            return ShellOutput(name=name, kind=ColumnKind.KEY, trace=trace)
        return ShellOutput(name=name, kind=ColumnKind.DERIVED, trace=trace)

    def _identity_keys(
        self,
        node: exp.Select,
        projections: Sequence[exp.Expr],
        sources: Sequence[tuple[str, Released]],
        names: Names,
    ) -> list[exp.Expr] | None:
        """The grouping columns of a shell aggregation when all of them are keys; they then name its rows."""
        group = node.args.get("group")
        if group is None:
            return []
        if populated(group) - {"expressions"} or group.find(*LEVELS) is not None:
            return None
        keys: list[exp.Expr] = []
        for item in group.expressions:
            place = select_place(item)
            if place is not None:
                if not 0 <= place < len(projections):
                    return None
                item = projections[place].this
            elif isinstance(item, exp.Column) and not item.table and item.name.lower() not in names.unqualified():
                alias = next((p for p in projections if p.alias.lower() == item.name.lower()), None)
                if alias is None:
                    return None
                item = alias.this
            if self._output(exp.alias_(item.copy(), "x"), sources).kind != ColumnKind.KEY:
                return None
            keys.append(item)
        return keys


def _identities(
    sources: Sequence[tuple[str, Released]], keys: Sequence[exp.Expr] | None, *, grouped: bool
) -> int | None:
    """How many columns identify a row of a block: its keys where it is grouped, else those of all its sources."""
    if grouped:
        return None if keys is None else len(keys)
    counts = [released.identities for _, released in sources]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _rows_most(node: exp.Select, sources: Sequence[tuple[str, Released]]) -> int | None:
    """The most rows of a block by public facts: those of its sources, or of any join of them, matched or not."""
    group = node.args.get("group")
    if group is not None and (populated(group) - {"expressions", "all"} or group.find(*LEVELS) is not None):
        return None
    most = 1
    for _, released in sources:
        rows = released.rows_most()
        if rows is None:
            return None
        most *= rows if len(sources) == 1 else rows + 1
    return max(most, 1)


def _keeps_name(alias: exp.Alias) -> bool:
    inner = alias.this
    return isinstance(inner, exp.Column) and not inner.table and inner.name.lower() == alias.alias.lower()


def _own_queries(node: exp.Select, projections: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The outermost queries inside a block's own expressions, its relations apart."""
    stack = [*projections]
    stack += clauses(node, "where", "group", "having", "qualify", "order", "limit", "offset")
    stack += node.args.get("windows") or []
    stack += [on for join in node.args.get("joins") or [] for on in clauses(join, "on")]
    found: list[exp.Expr] = []
    if not [part for part in stack if part.find(*_QUERIES) is not None]:
        return found
    while stack:
        current = stack.pop()
        if isinstance(current, _QUERIES):
            found.append(current)
        else:
            stack += current.iter_expressions()
    return found
