"""Queries of public tables and constants beside rows about people: what they say is computed before anything runs.

    SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(beds) FROM hospitals)
    core:  visits where cost > 412.5

    SELECT AVG(h.n) FROM patients JOIN (SELECT region, COUNT(*) AS n FROM hospitals GROUP BY region) AS h USING (region)
    core:  patients beside four rows of constants, of which each meets one at most

Claim. It has no price. Proof: everybody knows the rows of public tables and the text, so also what follows from them;
the core is the one of the text in which an analyst has written the values.

The values are constants of the plan, so the release has them in its identity, and another version of a table makes
another question. They are the same in every order of a table's rows (known_block.py). A nested query has to be read
without the rows around it, and of tables of at most 100,000 values (public_values.py), of which only the columns that
it names are read. A larger table is no list of constants: a block that selects its rows stays a scan of it, which the
block around it joins (nested_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

from sqlglot import exp

from privacy.policy import ColumnType, Dataset
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.constant_lists import constants_in, read_constants, typed
from sql_rewrite.expressions import Expression, Literal, Value
from sql_rewrite.known_block import KnownBlock, is_rank, joined
from sql_rewrite.known_rows import KnownRows, KnownTable, Meter
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.public import is_constant_relation
from sql_rewrite.public_values import is_readable, public_values
from sql_rewrite.quantified import among_values, quantified_query
from sql_rewrite.refuse import refuse
from sql_rewrite.scope import Cte, Scope
from sql_rewrite.syntax import consume, populated
from sql_rewrite.text import Text

__all__ = ["KnownQueries"]

_ONE = frozenset({"expressions", "from_", "joins", "where", "with_"})
_MADE = frozenset({"group", "having", "distinct", "qualify", "order", "limit", "offset"})
_SIDES = frozenset({"this", "expression", "distinct", "with_"})


class KnownQueries:
    """Reads such queries of one text. `with_` gives what a query with a WITH of its own can see."""

    def __init__(
        self,
        text: Text,
        parameters: Mapping[str, ParameterValue],
        dataset: Dataset,
        with_: Callable[[exp.Expr, Scope], Scope],
    ) -> None:
        self._text = text
        self._parameters = parameters
        self._dataset = dataset
        self._with = with_
        self._meter = Meter()
        self._tables: dict[int, KnownTable] = {}
        self._known: dict[int, bool] = {}
        self._kept: list[exp.Expr] = []
        """Trees that were read: what is known of a tree is found by its identity."""
        self._relations = 0

    # Which queries are known

    def knows(self, node: exp.Expr, scope: Scope) -> bool:
        """Whether a query reads nothing but small public tables and constants, by clauses that are read here."""
        if is_constant_relation(node):
            return True
        if isinstance(node, exp.Subquery):
            plain = not populated(node) - {"this", "alias", "with_"}
            return plain and self.knows(node.this, self._with(node, scope))
        if isinstance(node, exp.SetOperation):
            inner = self._with(node, scope)
            return not populated(node) - _SIDES and self.knows(node.this, inner) and self.knows(node.expression, inner)
        if not isinstance(node, exp.Select) or populated(node) - _ONE - _MADE:
            return False
        if id(node) not in self._known:
            self._kept.append(node)
            self._known[id(node)] = self._knows_block(node, self._with(node, scope))
        return self._known[id(node)]

    def _knows_block(self, node: exp.Select, scope: Scope) -> bool:
        if node.args.get("from_") is None:
            return not populated(node) - {"expressions", "with_"}
        if not self._knows_item(node.args["from_"].this, scope):
            return False
        distinct = node.args.get("distinct")
        if distinct is not None and populated(distinct):
            return False
        if not all(map(is_rank, node.find_all(exp.Window))):
            return False
        joins = node.args.get("joins") or []
        if any(populated(join) - {"this", "on", "using", "kind", "side"} for join in joins):
            return False
        if any(join.side not in ("", "LEFT") or join.kind not in ("", "INNER", "CROSS", "OUTER") for join in joins):
            return False
        if not all(self._knows_item(item, scope) for item in _items(node)):
            return False
        clauses = [*node.expressions, *(join.args["on"] for join in joins if join.args.get("on") is not None)]
        clauses += [node.args[slot] for slot in ("where", "group", "having", "qualify", "order") if node.args.get(slot)]
        return all(self.knows(query, Scope(scope.ctes)) for clause in clauses for query in _nested(clause))

    def _knows_item(self, item: exp.Expr, scope: Scope) -> bool:
        if isinstance(item, exp.Subquery):
            return self.knows(item, Scope(scope.ctes))
        if is_constant_relation(item):
            return True
        if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
            return False
        if populated(item) - {"this", "alias"}:
            return False
        cte = scope.ctes.get(item.name.lower())
        return is_readable(item.name, self._dataset) if cte is None else self.knows(cte.node.this, cte.scope)

    def makes(self, node: exp.Expr, scope: Scope) -> bool:
        """Whether a known query groups, sorts or counts rows, or has nested queries of its own.

        Others are rows of the tables themselves, which are joined along references.
        """
        if not self.knows(node, scope):
            return False
        if isinstance(node, exp.Subquery):
            return self.makes(node.this, self._with(node, scope))
        if isinstance(node, exp.SetOperation):
            return True
        if not isinstance(node, exp.Select):
            return False
        inner = self._with(node, scope)
        if node.args.get("from_") is None:
            return False
        where = [node.args["where"]] if node.args.get("where") is not None else []
        if populated(node) & _MADE or aggregate_calls(node.expressions) or node.find(exp.Window) is not None:
            return True
        if any(_nested(clause) for clause in (*node.expressions, *where)):
            return True
        return any(self._is_made(item, inner) for item in _items(node))

    def _is_made(self, item: exp.Expr, scope: Scope) -> bool:
        if isinstance(item, exp.Subquery):
            return self.makes(item, Scope(scope.ctes))
        cte = scope.ctes.get(item.name.lower()) if isinstance(item, exp.Table) else None
        if cte is None:
            return False
        constant = constants_in(cte.node.this, lambda table: False) is not None
        return constant or self.makes(cte.node.this, cte.scope)

    # What they say

    def scalar(self, node: exp.Subquery, scope: Scope) -> Literal | None:
        """The one value of a known query in brackets, None for another one. Errors: Refused."""
        if not self.knows(node, scope):
            return None
        table = self.table(node, scope)
        if len(table.names) != 1 or len(table.rows) > 1:
            several = f"{len(table.rows):,} rows" if len(table.names) == 1 else f"{len(table.names)} columns"
            raise refuse(
                "unsupported_sql",
                "a nested query is refused",
                f"It has {several} where one value is needed.",
                "select one aggregate, as MAX(x)" if len(table.names) == 1 else "select one column",
                position=self._text.position(node),
            )
        return Literal(table.rows[0][0] if table.rows else None, table.kinds[0])

    def inside(self, node: exp.Select, scope: Scope) -> Callable[[exp.Column], bool]:
        """Whether a column is one of what a known query reads, and no other one. Errors: Refused."""
        inner = self._with(node, scope)
        rows = [self._item(item, inner) for item in _items(node)]

        def holds(column: exp.Column) -> bool:
            return any(one.named(column.name, column.table) for one in rows)

        return holds

    def cells(self, node: exp.Expr, scope: Scope) -> tuple[list[str], list[tuple[Expression, ...]]]:
        """The names of columns and the rows of a known query, as constants. Errors: Refused."""
        table = self.table(node, scope)
        return list(table.names), [tuple(map(Literal, row, table.kinds)) for row in table.rows]

    def table(self, node: exp.Expr, scope: Scope) -> KnownTable:
        """The rows of a known query. Requires: `knows`. Errors: Refused."""
        if isinstance(node, exp.Subquery):
            consume(node, "this", "alias", "with_", text=self._text, what="a bracketed query")
            return self.table(node.this, self._with(node, scope))
        if is_constant_relation(node):
            return self._of_constants(node)
        if id(node) not in self._tables:
            self._kept.append(node)
            self._tables[id(node)] = self._read(node, self._with(node, scope))
        return self._tables[id(node)]

    def _read(self, node: exp.Expr, scope: Scope) -> KnownTable:
        if isinstance(node, exp.SetOperation):
            return self._both(node, self.table(node.this, scope), self.table(node.expression, scope))
        assert isinstance(node, exp.Select)
        if node.args.get("from_") is None:
            return self._of_constants(node)
        consume(node.args["from_"], "this", text=self._text, what="FROM")
        block = partial(
            KnownBlock,
            node,
            text=self._text,
            parameters=self._parameters,
            member=partial(self._member, scope=Scope(scope.ctes)),
            meter=self._meter,
        )
        first, *others = _items(node)
        named = _named(node)
        rows = self._item(first, scope, named)
        for item, join in zip(others, node.args.get("joins") or (), strict=True):
            rows = joined(rows, self._item(item, scope, named), join, block(rows))
        return block(rows).table()

    def _item(self, item: exp.Expr, scope: Scope, named: Collection[str] | None = None) -> KnownRows:
        """An item of FROM as rows under its name, of a table the columns that are named, or all."""
        self._relations += 1
        relation = f"known{self._relations}$"
        alias, given = item.args.get("alias"), []
        if isinstance(alias, exp.TableAlias):
            consume(alias, "this", "columns", text=self._text, what="an alias")
            given = [one.name for one in alias.args.get("columns") or []]
        cte: Cte | None = None
        if isinstance(item, exp.Subquery):
            table = self.table(item, Scope(scope.ctes))
        elif is_constant_relation(item):
            table = self._of_constants(item)
        else:
            cte = scope.ctes.get(item.name.lower())
            table = self._public(item, named if not given else None) if cte is None else self._cte(cte)
        if len(given) > len(table.names):
            raise self._columns(item)
        names = (*given, *table.names[len(given) :])
        self._meter.take(len(table.rows) * len(names), partial(self._too_much, item))
        return KnownRows.of(KnownTable(names, table.kinds, table.rows), item.alias_or_name, relation)

    def _cte(self, cte: Cte) -> KnownTable:
        cte.read()
        table = self.table(cte.node.this, cte.scope)
        given = [one.name for one in cte.node.args["alias"].args.get("columns") or []]
        if len(given) > len(table.names):
            raise self._columns(cte.node)
        return KnownTable((*given, *table.names[len(given) :]), table.kinds, table.rows)

    def _public(self, item: exp.Expr, named: Collection[str] | None) -> KnownTable:
        names, rows = public_values(item.name, named, self._dataset)
        table = self._dataset.table(item.name)
        assert table is not None
        kinds = {column.name: column.type for column in table.columns}
        return KnownTable(tuple(names), tuple(kinds[name] for name in names), tuple(rows))

    def _of_constants(self, node: exp.Expr) -> KnownTable:
        lift = ExpressionLift(self._text, self._no_column, self._parameters).lift
        names, cells = read_constants(node, lift, self._dataset, self._text)
        columns = [typed(node, name, [row[at] for row in cells], self._text) for at, name in enumerate(names)]
        rows = tuple(_values(row) for row in zip(*(found for found, _ in columns), strict=True))
        return KnownTable(tuple(names), tuple(kind for _, kind in columns), rows)

    def _both(self, node: exp.SetOperation, left: KnownTable, right: KnownTable) -> KnownTable:
        """The rows of a set operation. Errors: Refused."""
        if len(left.names) != len(right.names):
            raise refuse(
                "unsupported_sql",
                "a set operation is refused",
                "Its two sides have different numbers of columns.",
                position=self._text.position(node),
            )
        every = [*left.rows, *right.rows]
        columns = []
        for at, name in enumerate(left.names):
            kinds = [left.kinds[at]] * len(left.rows) + [right.kinds[at]] * len(right.rows)
            cells: list[Expression] = [Literal(row[at], kind) for row, kind in zip(every, kinds, strict=True)]
            columns.append(typed(node, name, cells, self._text))
        rows = [_values(row) for row in zip(*(found for found, _ in columns), strict=True)]
        kinds_made = tuple(kind for _, kind in columns)
        first, second = rows[: len(left.rows)], rows[len(left.rows) :]
        if isinstance(node, exp.Union) and node.args.get("distinct") is False:
            return KnownTable(left.names, kinds_made, tuple(rows))
        if node.args.get("distinct") is False:
            raise refuse(
                "unsupported_sql",
                "a set operation with ALL is refused",
                "Of public rows UNION ALL, UNION, INTERSECT and EXCEPT are read here.",
                position=self._text.position(node),
            )
        among = set(second)
        if isinstance(node, exp.Union):
            kept = rows
        elif isinstance(node, exp.Intersect):
            kept = [row for row in first if row in among]
        else:
            kept = [row for row in first if row not in among]
        return KnownTable(left.names, kinds_made, tuple(dict.fromkeys(kept)))

    def _member(self, lifter: ExpressionLift, node: exp.Expr, scope: Scope) -> Expression | None:
        """A nested query in an expression of a known one; None for what is none."""
        if isinstance(node, exp.Subquery):
            return self.scalar(node, scope)
        query = quantified_query(node, self._text)
        if query is not None:
            table = self.table(query, scope)
            if len(table.names) != 1:
                raise self._columns(node)
            return among_values(lifter, node, [value for (value,) in table.rows], table.kinds[0])
        if isinstance(node, exp.Exists):
            return Literal(value=bool(self.table(node.this, scope).rows), type=ColumnType.BOOLEAN)
        if not isinstance(node, exp.In):
            return None
        consume(node, "this", "query", text=self._text, what="IN")
        table = self.table(node.args["query"], scope)
        if len(table.names) != 1:
            raise self._columns(node)
        if not table.rows:
            return Literal(value=False, type=ColumnType.BOOLEAN)
        values = [Literal(value, table.kinds[0]) for (value,) in dict.fromkeys(table.rows)]
        return lifter.make(node, "in", lifter.lift(node.this), *values)

    def _too_much(self, node: exp.Expr) -> Refused:
        return refuse(
            "too_large",
            "a nested query of public tables is refused",
            "It is computed before anything runs, and reads too many values.",
            "ask it by itself, which is free, and write its values (or $name, a parameter) in its place",
            position=self._text.position(node),
        )

    def _columns(self, node: exp.Expr) -> Refused:
        return refuse(
            "unknown_column",
            "a nested query is refused",
            "It has another number of columns than are named or compared.",
            position=self._text.position(node),
        )

    def _no_column(self, column: exp.Column) -> Expression:
        raise refuse(
            "unsupported_sql",
            "a relation of constants is refused",
            "Constants stand there, and neither columns nor queries.",
            position=self._text.position(column),
        )


def _items(node: exp.Select) -> list[exp.Expr]:
    return [node.args["from_"].this, *(join.this for join in node.args.get("joins") or [])]


def _nested(clause: exp.Expr) -> list[exp.Expr]:
    """The outermost queries inside a clause."""
    if isinstance(clause, exp.Query):
        return [clause]
    return [query for part in clause.iter_expressions() for query in _nested(part)]


def _values(row: tuple[Expression, ...]) -> tuple[Value, ...]:
    return tuple([one.value for one in row if isinstance(one, Literal)])


def _named(node: exp.Select) -> set[str] | None:
    """The folded names of all columns that a block can read of a table, None where it may read all of them."""
    if any(not isinstance(star.parent, exp.Count) for star in node.find_all(exp.Star)):
        return None
    return {name.name.lower() for name in node.find_all(exp.Column, exp.Identifier)}
