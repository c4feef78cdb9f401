"""Tables of a private block: which table's rows are counted, and the many-to-one joins to its parents.

A join is answered only along a declared reference, from the table that holds the reference to the table whose
unique key it names. Such a join never repeats a row, so the contribution bounds of the first table stay true.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from privacy.policy import Column, ColumnType, Dataset, KeyValue, PublicKeys, Reference, Table
from privacy.refusal import Position, Refused
from sql_rewrite.expressions import ColumnRef, Interval
from sql_rewrite.plan import Join, Source
from sql_rewrite.syntax import Text, consume, did_you_mean, refuse

__all__ = ["SourceNames", "base_table", "resolve_sources"]

SOURCES_MAX = 8
_NESTED = (exp.Query, exp.Subquery)
_RELATION = "relation"
"""Mark of a column node whose table is a relation's own name and not an alias."""


def base_table(item: exp.Table, dataset: Dataset, text: Text, others: Sequence[str] = ()) -> Table:
    """The dataset's table that a FROM item names.

    Errors: Refused (unknown_table, unsupported_sql); table functions and files are refused here.
    """
    schema = item.args.get("db")
    if schema is not None and not isinstance(schema, exp.Identifier):
        raise refuse("parse_error", "a table is refused", "Its schema has no name.", position=text.position(item))
    if not isinstance(item.this, exp.Identifier):
        raise refuse(
            "unsupported_sql",
            "a table function is refused",
            "Only tables of the dataset can be read; functions, files and catalogues cannot.",
            position=text.position(item),
        )
    consume(item, "this", "alias", "db", text=text, what="a table")
    alias = item.args.get("alias")
    if alias is not None:
        consume(alias, "this", text=text, what="a table's alias")
    table = dataset.table(item.name)
    known_schema = schema is None or schema.name.lower() in (dataset.name.lower(), "main")
    if table is None or not known_schema:
        known = [t.name for t in dataset.tables] + list(others)
        raise refuse(
            "unknown_table",
            f'table "{item.name[:63]}" is refused',
            "The dataset has no table of that name." if known_schema else "There are no schemas here.",
            *(did_you_mean(item.name, known) or ("tables: " + ", ".join(sorted(known)[:20]),)),
            position=text.position(item),
        )
    return table


class SourceNames:
    """The sources of a private block and the resolution of column names against them."""

    def __init__(self, sources: tuple[Source, ...], aliases: dict[str, str], text: Text, dataset: Dataset) -> None:
        self.sources = sources
        self._aliases = aliases  # folded name as written -> relation
        self._by_relation = {source.relation: source for source in sources}
        self._text = text
        self._dataset = dataset

    def knows(self, name: str) -> bool:
        """Whether some source has a column of that name."""
        return any(source.table.column(name) is not None for source in self.sources)

    def is_source(self, node: exp.Column) -> bool:
        """Whether a column node names a column of a source."""
        try:
            return self._sought(node) is not None
        except Refused:
            return False

    def resolve(self, node: exp.Column) -> ColumnRef:
        """The typed reference of a column node. Errors: Refused (unknown_column, unknown_table, ambiguous_column)."""
        source, column = self._find(node)
        return reference(source, column, self._dataset)

    def qualified(self, node: exp.Expr) -> exp.Expr:
        """A copy of a node in which every column of a source is written as relation and declared name.

        Two spellings of one expression are then equal trees. Nested queries are left alone, and stay the same
        objects, so that they are lifted once.
        """
        if isinstance(node, _NESTED):
            return node
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            try:
                found = self._sought(node)
            except Refused:
                found = None
            if found is None:
                return node.copy()
            source, column = found
            if _RELATION in node.meta:
                return node.copy()
            copy = exp.Column(
                this=exp.Identifier(this=column.name, quoted=True),
                table=exp.Identifier(this=source.relation, quoted=True),
            )
            copy.meta[_RELATION] = True
            place = self._place(node)
            if place is not None:
                copy.meta.update(place)
            return copy
        result = type(node)()
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                result.set(name, self.qualified(value))
            elif isinstance(value, list):
                result.set(name, [self.qualified(v) if isinstance(v, exp.Expr) else v for v in value])
            else:
                result.set(name, value)
        result.meta.update(node.meta)
        return result

    def _place(self, node: exp.Column) -> dict[str, int] | None:
        spans = [part.meta for part in node.walk() if "start" in part.meta]
        if not spans:
            return None
        return {"start": min(m["start"] for m in spans), "end": max(m["end"] for m in spans)}

    def _sought(self, node: exp.Column) -> tuple[Source, Column] | None:
        """The source and column of a node, None when there is none: most asked names are aliases of the answer."""
        consume(node, "this", "table", text=self._text, what="a column reference")
        name, qualifier = node.name, node.table
        if qualifier:
            relation = self._relation(node)
            column = None if relation is None else self._by_relation[relation].table.column(name)
            return None if relation is None or column is None else (self._by_relation[relation], column)
        found = [(s, c) for s in self.sources if (c := s.table.column(name)) is not None]
        if len(found) > 1 and not self._same_by_join(found):
            raise refuse(
                "ambiguous_column",
                f'column "{name[:63]}" is refused',
                "More than one table has a column of that name.",
                "write it with its table: " + ", ".join(f"{s.table.name}.{c.name}" for s, c in found),
                position=self._text.position(node),
            )
        return found[0] if found else None

    def _relation(self, node: exp.Column) -> str | None:
        """The relation that a column node names: our own name for it on nodes of ours, an alias on the analyst's.

        The analyst may call a table r1 that is our r0.
        """
        return node.table if _RELATION in node.meta else self._aliases.get(node.table.lower())

    def _find(self, node: exp.Column) -> tuple[Source, Column]:
        found = self._sought(node)
        if found is not None:
            return found
        name, qualifier = node.name, node.table
        if qualifier:
            relation = self._relation(node)
            if relation is None:
                raise refuse(
                    "unknown_table",
                    f'relation "{qualifier[:63]}" is refused',
                    "No table of that name is read here.",
                    *did_you_mean(qualifier, self._aliases),
                    position=self._text.position(node),
                )
            raise self._unknown(name, [self._by_relation[relation]], self._text.position(node))
        if isinstance(node.this, exp.Identifier) and node.this.quoted:
            raise self._unknown(
                name, self.sources, self._text.position(node), f"a text stands in single quotes: '{name[:63]}'"
            )
        raise self._unknown(name, self.sources, self._text.position(node))

    def _same_by_join(self, found: Sequence[tuple[Source, Column]]) -> bool:
        """Whether all candidates are the two sides of inner or left joins on that very column."""
        first, column = found[0]
        for source, other in found[1:]:
            join = source.join
            if join is None:
                return False
            sides = {(join.child.relation, join.child.name), (join.parent.relation, join.parent.name)}
            if sides != {(first.relation, column.name), (source.relation, other.name)}:
                return False
        return True

    def _unknown(self, name: str, sources: Sequence[Source], position: Position | None, *hints: str) -> Refused:
        known = [column.name for source in sources for column in source.table.columns]
        return refuse(
            "unknown_column",
            f'column "{name[:63]}" is refused',
            "No table that the query reads has a column of that name.",
            *(did_you_mean(name, known) or ("columns: " + ", ".join(known[:20]), *(hints or _AS_TEXT))),
            position=position,
        )


_AS_TEXT = ("a text stands in single quotes: 'North'",)


def reference(source: Source, column: Column, dataset: Dataset) -> ColumnRef:
    """A column of a source as a typed node. Columns of an outer join's parent may be NULL."""
    outer = source.join is not None and source.join.outer
    declared = None
    if column.bounds is not None and column.type not in (ColumnType.TEXT, ColumnType.BOOLEAN):
        declared = Interval(Fraction(column.bounds.lower), Fraction(column.bounds.upper))
    nullable = column.nullable or outer
    other = None if column.keys is None else column.keys.other
    domain = None if column.keys is None else _domain(column.keys, nullable=nullable)
    table = source.table
    is_unit = (table.name == dataset.unit.table and column.name == dataset.unit.key) or (
        table.protected and not table.unit_path and column.name == table.unit_column
    )
    return ColumnRef(
        relation=source.relation,
        name=column.name,
        type=column.type,
        nullable=nullable,
        declared=declared,
        domain=domain,
        other=other,
        is_unit=is_unit,
        length_max=column.length_max if other is None else column.length_stored,
        identifies=is_unit or _identifies(table, column),
    )


def _identifies(table: Table, column: Column) -> bool:
    """Whether a value of the column belongs to one row of a protected table, or to one row on its way to the unit."""
    leads = bool(table.unit_path) and table.unit_path[0].column == column.name
    return table.protected and (leads or column.unique or column.name == table.key)


def _domain(keys: PublicKeys, *, nullable: bool) -> tuple[KeyValue, ...] | None:
    """Every value of a column with these keys, NULL last: in it where the column, or `other`, can be NULL."""
    values = [value for value in keys.values if value is not None]
    if keys.other is not None and keys.other.value is not None and keys.other.value not in values:
        values.append(keys.other.value)
    missing = nullable or (keys.other is not None and keys.other.value is None)
    return (*values, None) if missing else tuple(values) or None


def resolve_sources(
    node: exp.Select, tables: Sequence[tuple[exp.Expr, Table]], dataset: Dataset, text: Text
) -> SourceNames:
    """The sources of a block: the table whose rows are counted first, its parents after it.

    Errors: Refused (join_not_on_key, join_multiplies, too_large, unsupported_sql).
    """
    if len(tables) > SOURCES_MAX:
        raise refuse("too_large", "FROM is refused", f"It joins more than {SOURCES_MAX} tables.")
    aliases: dict[str, str] = {}
    drafts: list[Source] = []
    for place, (item, table) in enumerate(tables):
        relation = f"r{place}"
        name = (item.alias or item.name).lower()
        if name in aliases:
            raise refuse(
                "ambiguous_column",
                f'table "{name[:63]}" is read twice under one name',
                "The columns could not be distinguished.",
                "give each its own alias",
                position=text.position(item),
            )
        aliases[name] = relation
        drafts.append(Source(relation, table))
    links: list[tuple[str, Column, str, Column, bool, Position | None]] = []
    for place, join in enumerate(node.args.get("joins") or [], start=1):
        links.append(_link(join, drafts, aliases, place, text, dataset))
    return SourceNames(_ordered(drafts, links, dataset, text, node), aliases, text, dataset)


def _link(
    join: exp.Join,
    drafts: Sequence[Source],
    aliases: dict[str, str],
    place: int,
    text: Text,
    dataset: Dataset,
) -> tuple[str, Column, str, Column, bool, Position | None]:
    """The two ends of a join's equality: (left relation, column, joined relation, column, outer, position)."""
    position = text.position(join.this)
    if join.args.get("method"):
        raise refuse(
            "unsupported_sql",
            f"a {str(join.args['method']).lower()} join is refused",
            "It does not say which columns are compared.",
            *_declared(dataset),
            position=position,
        )
    consume(join, "this", "on", "using", "side", "kind", text=text, what="a join")
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
        raise refuse(
            "unsupported_sql",
            f"a {(side + ' ' + kind).strip().lower()} join is refused",
            "Tables of people are joined with JOIN or LEFT JOIN, from a table to what it refers to.",
            position=position,
        )
    visible = SourceNames(tuple(drafts[: place + 1]), aliases, text, dataset)
    on, using = join.args.get("on"), join.args.get("using") or []
    if len(using) == 1 and on is None:
        name = using[0].name
        right = drafts[place].table.column(name)
        left = next(((s, c) for s in drafts[:place] if (c := s.table.column(name)) is not None), None)
        if left is not None and right is not None:
            return left[0].relation, left[1], drafts[place].relation, right, side == "LEFT", position
    while isinstance(on, exp.Paren):
        on = on.this
    if isinstance(on, exp.EQ) and isinstance(on.this, exp.Column) and isinstance(on.expression, exp.Column):
        one, two = visible.resolve(on.this), visible.resolve(on.expression)
        if two.relation != drafts[place].relation:
            one, two = two, one
        if two.relation == drafts[place].relation and one.relation != two.relation:
            left_table = next(s for s in drafts if s.relation == one.relation).table
            left_column, right_column = left_table.column(one.name), drafts[place].table.column(two.name)
            assert left_column is not None
            assert right_column is not None
            return one.relation, left_column, two.relation, right_column, side == "LEFT", position
    if on is None and not using and not kind:
        raise refuse(
            "join_not_on_key",
            "a join without a condition is refused",
            "A join says on what: the tables stand beside each other without a condition of their own.",
            *_declared(dataset, [source.table.name for source in drafts]),
            position=position,
        )
    raise refuse(
        "join_not_on_key",
        "a join is refused",
        "It is not one equality between a declared reference and the key it names.",
        *_declared(dataset, [source.table.name for source in drafts]),
        position=position,
    )


def _declared(dataset: Dataset, tables: Sequence[str] = ()) -> tuple[str, ...]:
    """The declared joins between these tables, or all of them when there is none."""
    lines = {
        f"{table.name} JOIN {r.table} ON {table.name}.{r.column} = {r.table}.{r.key}": (table.name, r.table)
        for table in dataset.tables
        for r in table.references
    }
    meant = [line for line, ends in lines.items() if set(ends) <= set(tables)]
    return tuple((meant or list(lines))[:5])


def _ordered(
    drafts: Sequence[Source],
    links: Sequence[tuple[str, Column, str, Column, bool, Position | None]],
    dataset: Dataset,
    text: Text,
    node: exp.Select,
) -> tuple[Source, ...]:
    """Sources from the counted table to its parents. Each link must point from a reference to a unique key."""
    by_relation = {source.relation: source for source in drafts}
    joins: dict[str, Join] = {}
    for left, left_column, right, right_column, outer, position in links:
        child, parent = (left, left_column), (right, right_column)
        if _reference_of(by_relation[left].table, left_column, by_relation[right].table, right_column) is None:
            child, parent = parent, child
            forward = _reference_of(by_relation[child[0]].table, child[1], by_relation[parent[0]].table, parent[1])
            if forward is None:
                raise refuse(
                    "join_not_on_key",
                    "a join is refused",
                    "No declared reference connects these two columns.",
                    *_declared(dataset),
                    position=position,
                )
            if outer:
                raise refuse(
                    "join_multiplies",
                    "a LEFT JOIN to many rows is refused",
                    "It would repeat rows of one person and add rows without a partner.",
                    *_declared(dataset, [by_relation[child[0]].table.name, by_relation[parent[0]].table.name]),
                    position=position,
                )
        _check_unit_path(by_relation[child[0]].table, child[1], by_relation[parent[0]].table, dataset, position)
        if parent[0] in joins:
            raise refuse(
                "join_multiplies",
                "a join is refused",
                "Two tables refer to one table, so rows of one person would be multiplied.",
                "aggregate each table in its own query",
                position=position,
            )
        joins[parent[0]] = Join(
            child=reference(by_relation[child[0]], child[1], dataset),
            parent=reference(by_relation[parent[0]], parent[1], dataset),
            outer=outer,
        )
    roots = [source for source in drafts if source.relation not in joins]
    if len(roots) != 1:
        raise refuse(
            "join_multiplies",
            "FROM is refused",
            "It does not start from one table whose rows are counted.",
            *_declared(dataset),
            position=text.position(node),
        )
    root = roots[0]
    if not root.table.protected:
        raise refuse(
            "unsupported_sql",
            "a query of public tables alone is refused",
            "Public tables are known to everybody; reading them through the server is not answered yet.",
            *(line for line in _declared(dataset) if f" JOIN {root.table.name} ON " in line),
            position=text.position(node),
        )
    result, placed = [root], {root.relation}
    while len(result) < len(drafts):
        ready = [
            s for s in drafts if s.relation not in placed and joins[s.relation].child.relation in placed
        ]  # parents whose child is already there
        if not ready:
            raise refuse("join_multiplies", "FROM is refused", "Its joins form a ring.", position=text.position(node))
        for source in ready:
            result.append(Source(source.relation, source.table, joins[source.relation]))
            placed.add(source.relation)
    return tuple(result)


def _reference_of(child: Table, column: Column, parent: Table, key: Column) -> Reference | None:
    return next(
        (
            r
            for r in child.references
            if r.column.lower() == column.name.lower()
            and r.table.lower() == parent.name.lower()
            and r.key.lower() == key.name.lower()
        ),
        None,
    )


def _check_unit_path(child: Table, column: Column, parent: Table, dataset: Dataset, position: Position | None) -> None:
    """A protected parent must be on the child's own way to the privacy unit: then both rows have one owner."""
    if not parent.protected:
        return
    if not child.protected:
        raise refuse(
            "join_multiplies",
            "a join is refused",
            f'The public table "{child.name}" cannot own rows of people.',
            position=position,
        )
    direct = not child.unit_path and child.unit_column == column.name and parent.name == dataset.unit.table
    along = (
        bool(child.unit_path) and child.unit_path[0].column == column.name and child.unit_path[0].table == parent.name
    )
    if not (direct or along):
        raise refuse(
            "join_not_on_key",
            "a join is refused",
            "It does not follow the table's way to the privacy unit, so two people could meet in one row.",
            *_declared(dataset),
            position=position,
        )
