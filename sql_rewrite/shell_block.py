"""Shell blocks: a SELECT over released relations, checked node by node and written in its three forms.

plain        the answer's columns
identified   and, after them, hidden columns that name the row by the released rows it came from
simulated    and `replicate$`: the block over replicates of the released tables, split by the replicate in every
             window, join and grouping; row filters, orders and limits are left out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from privacy.release import ColumnKind
from sql_rewrite.plan import Core, Counting, ShellOutput
from sql_rewrite.refuse import did_you_mean, refuse
from sql_rewrite.shell import (
    REPLICATE,
    Names,
    Released,
    Scope,
    ShellNodes,
    check_name,
    column,
    has_aggregate,
    has_window,
    output_name,
    partition_windows,
    quoted,
    unknown_column,
)
from sql_rewrite.shell_trace import shifted, trace_block
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["ShellBlocks"]

_OPERATORS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike,
    exp.Escape, exp.DPipe,
)  # fmt: skip
_CHAINS = (exp.And, exp.Or, exp.Add, exp.Mul, exp.DPipe)
"""Operators that may stand side by side without brackets when the left one comes first."""


class ShellBlocks:
    """Builds the shell blocks of one query. `query` lifts nested queries; `cores` are the query's cores so far."""

    def __init__(
        self,
        text: Text,
        nodes: ShellNodes,
        cores: Sequence[Core],
        query: Callable[[exp.Expr, Scope], Released],
    ) -> None:
        self.text = text
        self.nodes = nodes
        self.cores = cores
        self.query = query
        self._nested: dict[int, Released] = {}
        self.counting: list[Counting] = []
        self._read = 0

    def block(self, node: exp.Select, sources: Sequence[tuple[str, Released]], scope: Scope) -> Released:
        """The relation of a SELECT block over released relations. Its forms are built, and checked, when asked for."""
        names = Names({alias: [o.name for o in released.outputs] for alias, released in sources}, scope.outer)
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
        projections = self._projections(node, sources)
        # Only names that the analyst gave; a column under its own name would vouch for itself, and for a whole row.
        aliases = [p.alias for p in node.expressions if isinstance(p, exp.Alias) and not _keeps_name(p)]
        traced = trace_block(node, projections, sources, lambda query: self._nested_query(query, names, scope))
        outputs = tuple(
            replace(self._output(p, sources, names), trace=trace)
            for p, trace in zip(projections, traced.projections, strict=True)
        )
        grouped = node.args.get("group") is not None or has_aggregate(
            [*projections, *[node.args[s] for s in ("having", "order", "qualify") if node.args.get(s)]]
        )
        keys = self._identity_keys(node, projections, sources, names) if grouped else None
        identities: int | None
        if node.args.get("distinct") is not None or (grouped and keys is None):
            identities = None
        elif grouped:
            identities = len(keys or [])
        elif any(released.identities is None for _, released in sources):
            identities = None
        else:
            identities = sum(released.identities or 0 for _, released in sources)
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

        def build(form: str) -> exp.Query | None:
            return self._form(node, projections, sources, names, aliases, scope, form, keys)

        # Nested queries are counted here, before anything is written out: each level of a chain would double them.
        nested = sum(self._nested_query(inner, names, scope).instances for inner in _own_queries(node, projections))
        read = self.nodes.instances(max(1, nested + sum(released.instances for _, released in sources)), node)
        return Released(
            outputs,
            identities=identities,
            build=build,
            instances=read,
            rows=traced.rows,
            chosen=traced.chosen,
            ordered=traced.ordered,
        )

    def _note_counting(self, node: exp.Select, sources: Sequence[tuple[str, Released]], *, grouped: bool) -> None:
        """Keeps what depends on how many groups there are: aggregates over groups, and LIMIT."""
        cores = sorted(name for _, released in sources if not released.chosen for name in released.rows)
        filtered = any(node.args.get(slot) is not None for slot in ("where", "having", "qualify"))
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
            star = projection.this if isinstance(projection, exp.Column) else projection
            if isinstance(star, exp.Star):
                consume(star, text=self.text, what="*")
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
                for alias, released in meant:
                    result += [exp.alias_(column(o.name, alias), o.name, quoted=True) for o in released.outputs]
                continue
            name = projection.alias if isinstance(projection, exp.Alias) else output_name(self.text, projection)
            inner = projection.this if isinstance(projection, exp.Alias) else projection
            check_name(name, self.text, projection)
            result.append(exp.alias_(inner.copy(), name, quoted=True))
        if not result:
            raise refuse(
                "unsupported_sql",
                "an empty select list is refused",
                "There is nothing to answer.",
                position=self.text.position(node),
            )
        return result

    def _output(self, projection: exp.Expr, sources: Sequence[tuple[str, Released]], names: Names) -> ShellOutput:
        name = projection.alias
        inner = projection.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Column):
            offset = 0
            for alias, released in sources:
                if not inner.table or inner.table.lower() == alias.lower():
                    for output in released.outputs:
                        if output.name.lower() == inner.name.lower():
                            return replace(shifted(output, offset), name=name)
                offset += released.identities or 0
        if isinstance(inner, exp.Literal | exp.Boolean | exp.Null):
            return ShellOutput(name=name, kind=ColumnKind.KEY)
        return ShellOutput(name=name, kind=ColumnKind.DERIVED)

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
        if populated(group) - {"expressions"}:
            return None
        keys: list[exp.Expr] = []
        for item in group.expressions:
            if isinstance(item, exp.Literal) and not item.is_string:
                place = int(item.this) - 1
                if not 0 <= place < len(projections):
                    return None
                item = projections[place].this
            elif isinstance(item, exp.Column) and not item.table and item.name.lower() not in names.unqualified():
                alias = next((p for p in projections if p.alias.lower() == item.name.lower()), None)
                if alias is None:
                    return None
                item = alias.this
            if self._output(exp.alias_(item.copy(), "x"), sources, names).kind != ColumnKind.KEY:
                return None
            keys.append(item)
        return keys

    def _form(
        self,
        node: exp.Select,
        projections: Sequence[exp.Expr],
        sources: Sequence[tuple[str, Released]],
        names: Names,
        aliases: Sequence[str],
        scope: Scope,
        form: str,
        keys: Sequence[exp.Expr] | None = None,
    ) -> exp.Query | None:
        """One form of a shell block; None when the form does not exist for it."""
        if form == "simulated" and any(released.form("simulated") is None for _, released in sources):
            return None
        joins = node.args.get("joins") or []
        driver = sources[0][0] if sources else "driver$"
        copies = [self.copy(p, names.with_aliases(aliases), scope, form, driver) for p in projections]
        clauses: dict[str, exp.Expr | None] = {}
        for slot in ("where", "group", "having", "qualify", "order", "limit", "offset"):
            clause = node.args.get(slot)
            if clause is not None:
                clauses[slot] = self.copy(clause, names.with_aliases(aliases), scope, form, driver)
        windows = [
            self.copy(w, names.with_aliases(aliases), scope, form, driver) for w in node.args.get("windows") or []
        ]
        if any(c is None for c in (*copies, *clauses.values(), *windows)):
            return None
        tree = exp.Select()
        hidden: list[exp.Expr] = []
        if form != "plain":
            if keys is not None:
                for i, key in enumerate(keys):
                    copy = self.copy(key, names, scope, form, driver)
                    assert copy is not None
                    hidden.append(exp.alias_(copy, f"id${i}", quoted=True))
            else:
                place = 0
                for alias, released in sources:
                    for i in range(released.identities or 0):
                        hidden.append(exp.alias_(column(f"id${i}", alias), f"id${place}", quoted=True))
                        place += 1
        if form == "simulated":
            hidden.insert(0, exp.alias_(column(REPLICATE, driver), REPLICATE, quoted=True))
            nodes = [c for c in copies if c is not None]
            windowed = has_window([*nodes, *windows])  # type: ignore[list-item]
            partition_windows([*nodes, *windows], driver)  # type: ignore[list-item]
            for window in windows:
                assert window is not None
                if isinstance(window, exp.Window):
                    window.set("partition_by", [column(REPLICATE, driver), *(window.args.get("partition_by") or [])])
            for slot in ("having", "qualify", "order", "limit", "offset"):
                clauses.pop(slot, None)
            if not windowed and keys is None:
                clauses.pop("where", None)
            if keys is not None:
                group = exp.Group(expressions=[column(REPLICATE, driver)])
                for key in keys:
                    copy = self.copy(key, names, scope, form, driver)
                    group.append("expressions", copy)
                clauses["group"] = group
        # Hidden columns come last: positions in ORDER BY and GROUP BY count the analyst's columns.
        tree.set("expressions", [*copies, *hidden])
        if sources:
            if not self._from(tree, joins, sources, names, aliases, scope, form):
                return None
        elif form == "simulated":
            if not self.cores:
                return None
            first = exp.Select(expressions=[column(REPLICATE)], distinct=exp.Distinct()).from_(
                exp.Table(this=quoted(self.cores[0].name))
            )
            tree = tree.from_(exp.Subquery(this=first, alias=exp.TableAlias(this=quoted("driver$"))))
        for slot, clause in clauses.items():
            tree.set(slot, clause)
        if windows:
            tree.set("windows", windows)
        distinct = node.args.get("distinct")
        if distinct is not None:
            consume(distinct, text=self.text, what="DISTINCT")
            tree.set("distinct", exp.Distinct())
        return tree

    def _from(
        self,
        tree: exp.Select,
        joins: Sequence[exp.Join],
        sources: Sequence[tuple[str, Released]],
        names: Names,
        aliases: Sequence[str],
        scope: Scope,
        form: str,
    ) -> bool:
        """Sets FROM and the joins of a shell block; False when the form does not exist for them."""

        def relation(place: int) -> exp.Expr:
            alias, released = sources[place]
            # A grouped block names its rows by keys, so its sources need no identity of their own.
            chosen = released.form(form if released.identities is not None or form == "simulated" else "plain")
            assert chosen is not None
            return exp.Subquery(this=chosen.copy(), alias=exp.TableAlias(this=quoted(alias)))

        tree.set("from_", exp.From(this=relation(0)))
        driver = sources[0][0]
        for place, join in enumerate(joins, start=1):
            consume(join, "this", "on", "using", "side", "kind", text=self.text, what="a join")
            side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
            if side not in ("", "LEFT", "RIGHT", "FULL") or kind not in ("", "INNER", "CROSS", "OUTER"):
                raise refuse(
                    "unsupported_sql",
                    f"a {side or kind} join is refused".lower(),
                    "Only inner, left, right, full and cross joins of released numbers are answered.",
                    position=self.text.position(join.this),
                )
            if form == "simulated" and side in ("RIGHT", "FULL"):
                return False
            on = join.args.get("on")
            using = [identifier.copy() for identifier in join.args.get("using") or []]
            for identifier in using:
                if identifier.name.lower() not in names.unqualified():
                    raise unknown_column(exp.column(identifier.name), names.all(), self.text)
                identifier.set("quoted", True)
            condition = self.copy(on, names, scope, form, driver) if on is not None else None
            if on is not None and condition is None:
                return False
            new = exp.Join(this=relation(place), side=join.args.get("side"), kind=join.args.get("kind"))
            if form == "simulated":
                same = exp.EQ(this=column(REPLICATE, sources[place][0]), expression=column(REPLICATE, driver))
                if using:
                    for identifier in using:
                        pair = exp.EQ(
                            this=column(identifier.name, sources[place][0]), expression=column(identifier.name, driver)
                        )
                        same = exp.and_(same, pair)  # type: ignore[assignment]
                    using = []
                condition = exp.and_(same, exp.paren(condition)) if condition is not None else same
                new.set("kind", None)
            if condition is not None:
                new.set("on", condition)
            if using:
                new.set("using", using)
            tree.append("joins", new)
        return True

    def copy(self, node: exp.Expr, names: Names, scope: Scope, form: str, driver: str | None) -> exp.Expr | None:
        """A checked copy of a shell node, with parameters bound, names quoted and nested queries replaced.

        Operands that are operators themselves get brackets: the generator leaves them out, and the engine would
        read the text with its own precedence. None when a nested query has no simulated form.
        """
        result = self._copy(node, names, scope, form, driver)
        if result is None or not isinstance(node, _OPERATORS) or not isinstance(node.parent, _OPERATORS):
            return result
        chain = type(node) is type(node.parent) and isinstance(node, _CHAINS) and node.arg_key == "this"
        pattern = isinstance(node.parent, exp.Escape)
        return result if chain or pattern else exp.Paren(this=result)

    def _copy(self, node: exp.Expr, names: Names, scope: Scope, form: str, driver: str | None) -> exp.Expr | None:
        if isinstance(node, exp.Placeholder):
            return self.nodes.literal(node)
        if isinstance(node, exp.Subquery | exp.Query):
            inner = self._nested_query(node, names, scope)
            if form != "simulated":
                return exp.Subquery(this=_plain(inner))
            simulated = inner.form("simulated")
            if simulated is None or len(inner.outputs) != 1 or driver is None:
                return None
            alias = f"nested{list(self._nested).index(id(node))}$"
            body = exp.Subquery(this=simulated.copy(), alias=exp.TableAlias(this=quoted(alias)))
            select = exp.Select(expressions=[column(inner.outputs[0].name, alias)]).from_(body)
            return exp.Subquery(
                this=select.where(
                    exp.EQ(this=column(REPLICATE, alias), expression=column(REPLICATE, driver)), copy=False
                )
            )
        if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
            if form == "simulated":
                return None
            if isinstance(node, exp.Exists):
                return exp.Exists(this=_plain(self._nested_query(node.this, names, scope)))
            consume(node, "this", "query", text=self.text, what="IN")
            left = self.copy(node.this, names, scope, form, driver)
            query = self._nested_query(node.args["query"], names, scope)
            return exp.In(this=left, query=exp.Subquery(this=_plain(query)))
        if isinstance(node, exp.Column):
            self._check_column(node, names)
            copy = exp.Column(this=quoted(node.name))
            if node.table:
                copy.set("table", quoted(node.table))
            return copy
        if isinstance(node, exp.Limit | exp.Offset):
            consume(node, "expression", text=self.text, what="LIMIT")
            value = self.copy(node.expression, names, scope, form, driver)
            number = value.this if isinstance(value, exp.Paren) else value
            if not isinstance(number, exp.Literal) or number.is_string or not str(number.this).isdigit():
                raise refuse(
                    "unsupported_sql",
                    "LIMIT is refused",
                    "Its value must be a whole number.",
                    position=self.text.position(node),
                )
            return type(node)(expression=value)
        if not isinstance(node, exp.Where | exp.Having | exp.Qualify | exp.Group):
            self.nodes.check_node(node)
        elif isinstance(node, exp.Group):
            consume(node, "expressions", "all", text=self.text, what="GROUP BY")
        result = type(node)()
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                copied = self.copy(value, names, scope, form, driver)
                if copied is None:
                    return None
                result.set(name, copied)
            elif isinstance(value, list):
                parts: list[object] = []
                for part in value:
                    if isinstance(part, exp.Expr):
                        copied = self.copy(part, names, scope, form, driver)
                        if copied is None:
                            return None
                        parts.append(copied)
                    else:
                        parts.append(part)
                result.set(name, parts)
            else:
                result.set(name, value)
        if isinstance(result, exp.Alias) and isinstance(result.args.get("alias"), exp.Identifier):
            result.args["alias"].set("quoted", True)
        return result

    def _nested_query(self, node: exp.Expr, names: Names, scope: Scope) -> Released:
        found = self._nested.get(id(node))
        if found is None:
            found = self.query(node, Scope(scope.ctes, (*scope.outer, *names.all())))
            self._nested[id(node)] = found
            self._read += found.instances
            self.nodes.instances(self._read, node)
        return found

    def _check_column(self, node: exp.Column, names: Names) -> None:
        consume(node, "this", "table", text=self.text, what="a column reference")
        if isinstance(node.this, exp.Star):
            raise refuse(
                "unsupported_sql", "* is refused here", "It stands for several columns.",
                position=self.text.position(node),
            )  # fmt: skip
        name, table = node.name.lower(), node.table.lower()
        if table:
            columns = names.relations.get(table)
            if columns is None and f"{table}.{name}" in names.outer:
                return
            if columns is None:
                raise refuse(
                    "unknown_table",
                    f'relation "{node.table[:63]}" is refused',
                    "No relation of that name is read here.",
                    *did_you_mean(node.table, names.relations),
                    position=self.text.position(node),
                )
            if name in columns:
                return
        elif name in names.unqualified() or name in names.aliases or name in names.outer:
            return
        raise unknown_column(node, names.all(), self.text)


def _keeps_name(alias: exp.Alias) -> bool:
    inner = alias.this
    return isinstance(inner, exp.Column) and not inner.table and inner.name.lower() == alias.alias.lower()


def _own_queries(node: exp.Select, projections: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The outermost queries inside a block's own expressions, its relations apart."""
    stack = [*projections]
    slots = ("where", "group", "having", "qualify", "order", "limit", "offset")
    stack += [node.args[slot] for slot in slots if node.args.get(slot) is not None]
    stack += node.args.get("windows") or []
    stack += [join.args["on"] for join in node.args.get("joins") or [] if join.args.get("on") is not None]
    found: list[exp.Expr] = []
    while stack:
        current = stack.pop()
        if isinstance(current, exp.Query | exp.Subquery):
            found.append(current)
        else:
            stack.extend(current.iter_expressions())
    return found


def _plain(released: Released) -> exp.Query:
    tree = released.form("plain")
    assert tree is not None
    copy: exp.Query = tree.copy()
    return copy
