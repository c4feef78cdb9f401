"""What FROM lists: tables and rows of people for a private block, relations of released numbers for the outer query.

    SELECT COUNT(*) FROM visits AS v JOIN (SELECT person_id FROM people WHERE sex = 'f') AS p USING (person_id)
    private:  the table visits, and the rows of the nested query

A block that reads rows about people has only such items, constants, and what an earlier stage releases.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sqlglot import exp

from privacy.policy import Table
from privacy.refusal import Refused
from sql_rewrite.base_tables import base_table
from sql_rewrite.constant_lists import read_constants
from sql_rewrite.constant_rows import rows_of_cells
from sql_rewrite.expressions import Expression
from sql_rewrite.full_joins import Side, full_join, left_join
from sql_rewrite.full_joins import write_out as write_full
from sql_rewrite.joins import SOURCES_MAX
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.lifting import Items, Lifting, Tables
from sql_rewrite.plan import Source
from sql_rewrite.public import is_constant_relation
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.released import Form, Released, check_name, column, hidden_columns, quoted
from sql_rewrite.row_unions import gathered
from sql_rewrite.rows import Rows
from sql_rewrite.rows_block import listed, named_rows, too_many_names
from sql_rewrite.scope import Names, Scope
from sql_rewrite.shell_form import NodeWriter
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text
from sql_rewrite.unit_facts import names_unit

__all__ = ["FromItems", "alias_columns", "mixed", "renamed"]


class FromItems:
    """Reads the items of FROM."""

    def __init__(self, lift: Lifting) -> None:
        self._lift = lift
        self._derived = 0

    def new_name(self, what: str) -> str:
        """A name of a relation that has none, which no other one has and no text can write."""
        self._derived += 1
        return f"{what}{self._derived}$"

    def listed(self, node: exp.Select, scope: Scope, first: int, *, people: bool) -> Items:
        """What FROM lists: tables and rows of a block that reads some of people, and relations of the outer query."""
        tables: Tables = []
        released: list[tuple[str, Released]] = []
        if node.args.get("joins") and not node.args.get("from_"):
            raise refuse(
                "parse_error",
                "a join without FROM is refused",
                "There is nothing that it could join to.",
                position=self._lift.text.position(node.args["joins"][0]),
            )
        if node.args.get("from_") is not None:
            consume(node.args["from_"], "this", text=self._lift.text, what="FROM")
        if people and (full_join(node) or left_join(node)):
            self._write_outer(node, scope)
        left_out = self._left_out(node, scope) if people else frozenset()
        for place, item in enumerate(listed(node)):
            found = self._relation(item, scope, first, people=people)
            if place in left_out and isinstance(found, Rows):
                found = self._alone(item, found, scope, first)
            if isinstance(found, tuple):
                released.append(found)
            else:
                tables.append((item, found))
                first += len(found.sources) if isinstance(found, Rows) else 1
        return tables, released

    def _left_out(self, node: exp.Select, scope: Scope) -> frozenset[int]:
        """The places of items whose rows an outer join may leave out beside rows about people that it keeps."""
        sides = [str(join.args.get("side") or "").upper() for join in node.args.get("joins") or []]
        if "LEFT" not in sides and sides != ["RIGHT"]:
            return frozenset()
        people = [self._lift.seeker.reads_people(item, scope) for item in listed(node)]
        found = {place for place, side in enumerate(sides, start=1) if side == "LEFT" and any(people[:place])}
        return frozenset(found | ({0} if sides == ["RIGHT"] and people[1] else set()))

    def _alone(self, item: exp.Expr, rows: Rows, scope: Scope, first: int) -> Rows:
        """Rows that an outer join may leave out: those of several tables become one source (row_unions.py)."""
        people = bool(rows.sources) and all(source.table.protected for source in rows.sources[:1])
        if rows.plain or not people:
            return rows
        again = self._relation(item, scope, 0, people=True)  # in a source of its own tables have names of their own
        assert isinstance(again, Rows)
        return gathered(item, again, f"r{first}", self._lift.dataset, self._lift.text)

    def _write_outer(self, node: exp.Select, scope: Scope) -> None:
        """Writes out an outer join of rows about people; any other one is read, or refused, as it stands."""
        sides = []
        if not all(self._lift.seeker.reads_people(item, scope) for item in listed(node)):
            return
        for item in listed(node):
            found = self._relation(item, scope, 0, people=True)
            if isinstance(found, Table):
                source = Source("r0", found)
                columns = [(c.name, reference(source, c, self._lift.dataset)) for c in found.columns]
                rows = Rows((source,), None, tuple(columns))
            elif isinstance(found, Rows):
                rows = found
            else:
                return
            if not rows.sources or not rows.sources[0].table.protected:
                return
            units = tuple(name for name, column in rows.columns if names_unit(column, rows.sources))
            sides.append(Side(item, tuple(name for name, _ in rows.columns), units))
        write_full(node, (sides[0], sides[1]), self._lift.text)

    def _relation(
        self, item: exp.Expr, scope: Scope, first: int, *, people: bool
    ) -> Table | Rows | tuple[str, Released]:
        if first >= SOURCES_MAX:
            raise refuse(
                "too_large",
                "FROM is refused",
                f"It joins more than {SOURCES_MAX} tables.",
                position=self._lift.text.position(item),
            )
        if people and self._lift.seeker.constants(item, scope) is not None:
            return self._constants(item, scope, first)
        if isinstance(item, exp.Subquery):
            consume(item, "this", "alias", "with_", text=self._lift.text, what="a derived table")
            inner = self._lift.with_(item, Scope(scope.ctes))
            if people and self._lift.seeker.of_rows(item.this, inner):
                return self._aliased_rows(item, self._lift.rows(item.this, inner, first))
            row = self._row(item, scope) if people else None
            if row is not None:
                return row
            released = self._lift.query(item.this, inner)
            return self._aliased(item, released, self.new_name("derived"))
        if is_constant_relation(item):
            copy = NodeWriter(self._lift.nodes, self._lift.blocks.nested, Names({}, ()), scope).copy
            default = self.new_name("derived")
            relation = self._lift.public.constants(item, copy)
            if isinstance(item, exp.Unnest | exp.Table):
                default = relation.outputs[0].name
            return self._aliased(item, relation, default)
        if isinstance(item, exp.Table):
            name = item.name
            cte = scope.ctes.get(name.lower()) if not item.args.get("db") else None
            if cte is not None:
                consume(item, "this", "alias", text=self._lift.text, what="a table")
                if people and cte.of_rows:
                    return self._aliased_rows(item, cte.rows(first))
                row = self._row(item, scope) if people else None
                if row is not None:
                    return row
                return self._aliased(item, cte.released(), name)
            table = base_table(
                item, self._lift.dataset, self._lift.text, [cte.node.alias for cte in scope.ctes.values()]
            )
            return table if people else self._aliased(item, self._lift.public.table(table), item.name)
        raise refuse(
            "unsupported_sql",
            "a relation in FROM is refused",
            "Only tables of the dataset, CTEs and bracketed queries can be read.",
            position=self._lift.text.position(item),
        )

    def _constants(self, item: exp.Expr, scope: Scope, first: int) -> Rows:
        """Rows of constants beside rows about people. Errors: Refused."""
        found = self._lift.seeker.constants(item, scope)
        assert found is not None
        lift = ExpressionLift(self._lift.text, partial(_no_column, self._lift.text), self._lift.parameters).lift
        cte = scope.ctes.get(item.name.lower()) if found is not item and isinstance(item, exp.Table) else None
        inside = scope if cte is None else cte.scope
        if self._lift.known.makes(found, inside):
            cells = self._lift.known.cells(found, inside)
        else:
            cells = read_constants(found, lift, self._lift.dataset, self._lift.text)
        rows = rows_of_cells(found, f"r{first}", cells, self._lift.dataset, self._lift.text)
        if cte is not None:
            cte.read()
            consume(item, "this", "alias", text=self._lift.text, what="a table")
            rows = named_rows(rows, alias_columns(cte.node.args["alias"], self._lift.text), self._lift.text, item)
        return self._aliased_rows(item, rows)

    def _row(self, item: exp.Expr, scope: Scope) -> Rows | None:
        """An item of FROM beside people as the row, or the rows by public keys, that it releases; None for others."""
        row = self._lift.stages.item(item, scope)
        table = self._lift.stages.groups.table(item, scope) if row is None and not self._lift.nonempty else None
        if row is None and table is None:
            return None
        self._lift.stages.warn(item)
        return self._aliased_rows(item, Rows((), None, row or (), table))

    def _aliased(self, item: exp.Expr, released: Released, default: str) -> tuple[str, Released]:
        alias = item.args.get("alias")
        if alias is None:
            return default, released
        consume(alias, "this", "columns", text=self._lift.text, what="an alias")
        names = alias_columns(alias, self._lift.text)
        if names:
            released = renamed(released, names, item, self._lift.text)
        check_name(alias.name, self._lift.text, item)
        return alias.name or default, released

    def _aliased_rows(self, item: exp.Expr, rows: Rows) -> Rows:
        alias = item.args.get("alias")
        if alias is None:
            return rows
        consume(alias, "this", "columns", text=self._lift.text, what="an alias")
        check_name(alias.name, self._lift.text, item)
        return named_rows(rows, alias_columns(alias, self._lift.text), self._lift.text, item)


def alias_columns(alias: exp.Expr, text: Text) -> list[str]:
    """The column names of an alias, which are names and nothing else."""
    columns = alias.args.get("columns") or []
    for identifier in columns:
        if not isinstance(identifier, exp.Identifier):
            raise refuse(
                "parse_error",
                "a list of column names is refused",
                "It contains something that is not a name.",
                position=text.position(alias),
            )
    return [identifier.name for identifier in columns]


def renamed(released: Released, names: list[str], node: exp.Expr, text: Text) -> Released:
    """The relation with these names of its first columns. Errors: Refused."""
    if len(names) > len(released.outputs):
        raise too_many_names(names, len(released.outputs), text, node)
    for name in names:
        check_name(name, text, node)
    new = tuple(
        replace(output, name=names[i]) if i < len(names) else output for i, output in enumerate(released.outputs)
    )

    def build(form: Form) -> exp.Query | None:
        tree = released.form(form)
        if tree is None:
            return None
        names = [output.name for output in new] + hidden_columns(form, released.identities or 0)
        inner = exp.Subquery(
            this=tree.copy(),
            alias=exp.TableAlias(this=quoted("renamed$"), columns=[quoted(name) for name in names]),
        )
        select = exp.Select(expressions=[column(name) for name in names])
        select.set("from_", exp.From(this=inner))
        return select

    return Released(
        new,
        identities=released.identities,
        build=build,
        instances=released.instances,
        rows=released.rows,
        chosen=released.chosen,
        ordered=released.ordered,
        rows_most=released.rows_most,
    )


def mixed(node: exp.Select, text: Text) -> Refused:
    """The refusal of a block that reads rows about people beside released numbers."""
    return refuse(
        "unsupported_sql",
        "a join of a table of people with released numbers is refused",
        "It is not answered yet.",
        "aggregate each side in its own query and join the results",
        position=text.position(node.args["from_"]),
    )


def _no_column(text: Text, node: exp.Column) -> Expression:
    """The refusal of a column among constants."""
    raise refuse(
        "unsupported_sql",
        "a relation of constants is refused",
        "Constants stand there, and neither columns nor queries.",
        position=text.position(node),
    )
