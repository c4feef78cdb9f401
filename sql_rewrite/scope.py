"""What a block of the outer query can see: common table expressions, relations, columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.entries import ambiguous_column
from sql_rewrite.refuse import did_you_mean, refuse
from sql_rewrite.released import Released
from sql_rewrite.rows import Rows
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = ["Cte", "Names", "Scope", "unknown_column"]


class Cte:
    """A common table expression: released numbers, lifted when they are first used, or rows about people.

    Rows are lifted at every use, under other names of their tables. `of_rows` is whether it selects them. `scope` is
    what its own query can see.
    """

    def __init__(
        self, node: exp.CTE, lift_it: Callable[[], Released], rows: Callable[[int], Rows] | None, scope: Scope
    ) -> None:
        self.node = node
        self.scope = scope
        self.of_rows = rows is not None
        self._lift = lift_it
        self._rows = rows
        self._released: Released | None = None
        self._read = False

    @property
    def used(self) -> bool:
        """Whether anything reads it."""
        return self._read

    def read(self) -> None:
        """Says that something reads it, as rows of constants or as what it releases, which need not be lifted."""
        self._read = True

    def released(self) -> Released:
        """Its relation. Errors: Refused."""
        self._read = True
        if self._released is None:
            self._released = self._lift()
        return self._released

    def written(self) -> exp.Expr:
        """Its own query, which what reads it stands for as well."""
        self._read = True
        query: exp.Expr = self.node.this
        return query

    def rows(self, first: int) -> Rows:
        """Its rows, whose tables have names from that number on. Errors: Refused."""
        assert self._rows is not None
        self._read = True
        return self._rows(first)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a block can see: CTEs by folded name, and the columns of the blocks around it."""

    ctes: Mapping[str, Cte]
    outer: tuple[str, ...] = ()


class Names:
    """Names that a shell block can see, folded. `joins` are those of its relations, from the second one on."""

    def __init__(
        self,
        relations: Mapping[str, Sequence[str]],
        outer: Sequence[str],
        aliases: Sequence[str] = (),
        joins: Sequence[exp.Join] = (),
    ) -> None:
        self.relations = {alias.lower(): [name.lower() for name in columns] for alias, columns in relations.items()}
        self.outer = tuple(outer)
        self.aliases = tuple(alias.lower() for alias in aliases)
        self.joins = tuple(joins)
        self._unqualified = frozenset(name for columns in self.relations.values() for name in columns)

    def with_aliases(self, aliases: Sequence[str]) -> Names:
        """The same names and the aliases of a select list."""
        return Names(self.relations, self.outer, aliases, self.joins)

    def unqualified(self) -> frozenset[str]:
        """Columns of all relations, without their relations."""
        return self._unqualified

    def all(self) -> list[str]:
        """Every visible name, for suggestions and for the blocks inside this one."""
        qualified = [f"{alias}.{name}" for alias, columns in self.relations.items() for name in columns]
        return [*sorted(self.unqualified()), *qualified]

    def check(self, node: exp.Column, text: Text) -> None:
        """Refuses a column that is none of the visible ones."""
        consume(node, "this", "table", text=text, what="a column reference")
        if isinstance(node.this, exp.Star):
            raise refuse(
                "unsupported_sql",
                "* is refused here",
                "It stands for several columns.",
                position=text.position(node),
            )
        name, table = node.name.lower(), node.table.lower()
        if table:
            columns = self.relations.get(table)
            if columns is None and f"{table}.{name}" in self.outer:
                return
            if columns is None:
                raise refuse(
                    "unknown_table",
                    f'relation "{node.table[:63]}" is refused',
                    "No relation of that name is read here.",
                    *did_you_mean(node.table, self.relations),
                    position=text.position(node),
                )
            if name in columns:
                return
        elif name in self.unqualified() or name in self.aliases or name in self.outer:
            joined = node.find_ancestor(exp.Join, exp.Query)
            place = next((i for i, join in enumerate(self.joins, start=1) if join is joined), len(self.joins))
            found = self._holding(name, place)
            if len(found) > 1 and not _names_output(node, found):
                raise ambiguous_column(node, found, text)
            return
        raise unknown_column(node, self.all(), text)

    def check_using(self, text: Text) -> None:
        """Refuses a name of USING that several of the relations before it have, unless an earlier USING joined them."""
        for place, join in enumerate(self.joins):
            for identifier in join.args.get("using") or ():
                found = self._holding(identifier.name.lower(), place)
                if len(found) > 1:
                    raise ambiguous_column(identifier, found, text)

    def owner_of_using(self, name: str, last: int | None = None) -> str | None:
        """The relation whose column an unqualified name of USING is, of those up to a place; None for other names.

        It is the first one: inner and left joins show its value.
        """
        name = name.lower()
        if not any(name == i.name.lower() for join in self.joins for i in join.args.get("using") or ()):
            return None
        relations = list(self.relations.items())[: None if last is None else last + 1]
        return next((alias for alias, columns in relations if name in columns), None)

    def _holding(self, name: str, last: int) -> list[str]:
        """The relations that an unqualified name may mean, of those up to a place; one where USING joins them by it."""
        found = [alias for alias, columns in list(self.relations.items())[: last + 1] if name in columns]
        using = {i.name.lower() for join in self.joins[:last] for i in join.args.get("using") or ()}
        return found[:1] if name in using else found


def _names_output(node: exp.Column, relations: Sequence[str]) -> bool:
    """Whether a column is a whole term of ORDER BY that means a column of the answer: an alias, or the one of its name.

    `relations` have a column of that name, which a star shows.
    """
    around = node.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    select = around.parent.parent if isinstance(around, exp.Ordered) and around.parent is not None else None
    if not isinstance(select, exp.Select):
        return False
    shown = 0
    for item in select.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
            return True
        if item.is_star:
            table = item.table.lower() if isinstance(item, exp.Column) else ""
            shown += sum(table in ("", relation) for relation in relations)
        else:
            shown += item.alias_or_name.lower() == node.name.lower()
    return shown == 1


def unknown_column(node: exp.Column, known: Sequence[str], text: Text) -> Refused:
    """The refusal of a name that no relation in scope has."""
    name = node.name
    return refuse(
        "unknown_column",
        f'column "{name[:63]}" is refused',
        "No table that the query reads has a column of that name.",
        *did_you_mean(name, known),
        position=text.position(node),
    )
