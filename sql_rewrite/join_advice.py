"""What to write instead of a join that is refused: the joins that are possible between the tables that were meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privacy.policy import Dataset, Table
from sql_rewrite.plan import Source
from sql_rewrite.spelling import named

__all__ = ["INNER", "declared"]

INNER = "use JOIN, where rows without a partner are not meant"
"""Of an outer join: an inner one is another question, unless its rows without a partner are none that are asked for."""

_LINES = 5
_STEPS = 4
"""The most references of a way from one table to another."""


def declared(dataset: Dataset, *sources: Source, outer: str = "") -> tuple[str, ...]:
    """The joins between the tables of these sources: declared ones, over a table between them, or on the unit.

    Every declared join where no sources are named. Where nothing joins the tables that are, it says so. In place of an
    `outer` join that keeps the rows of the first source, a join from its table keeps them too.
    """
    if not sources:
        return tuple(line for one in dataset.tables for line, _ in _references(one))[:_LINES]
    tables = list({source.table.name: source.table for source in sources}.values())
    stored = [table for one in tables if (table := dataset.table(one.name)) is not None]
    lines = list(_between(stored, dataset))
    if not lines and len(stored) == 1:
        lines = list(_with_itself(stored[0]))
    if outer == "LEFT":
        lines = [_keeping(line) if line.startswith(f"{named(sources[0].table.name)} ") else line for line in lines]
    if lines or not stored:
        return tuple(lines[:_LINES])
    names = " and ".join(f'"{table.name}"' for table in stored)
    return (
        f"ask an administrator to declare a reference between {names}, if one holds the key of the other"
        if len(stored) > 1
        else f"ask an administrator to declare a reference from {names} to the table that is meant",
    )


def _keeping(line: str) -> str:
    return line.replace(" JOIN ", " LEFT JOIN ")


def _references(table: Table) -> Iterator[tuple[str, str]]:
    """The declared joins of a table, each with the table that it leads to."""
    for one in table.references:
        join = f"JOIN {named(one.table)} ON {_column(table.name, one.column)} = {_column(one.table, one.key)}"
        yield f"{named(table.name)} {join}", one.table


def _between(tables: Sequence[Table], dataset: Dataset) -> Iterator[str]:
    """Joins that read each two of the tables, directly or over one other table, or by the privacy unit."""
    for left in tables:
        for right in tables:
            if left is not right:
                yield from _along(left, right, dataset)
    for place, left in enumerate(tables):
        for right in tables[place + 1 :]:
            if any(True for ends in ((left, right), (right, left)) for _ in _along(*ends, dataset)):
                continue
            yield from _on_unit(left, right)
            if left.unit_column is None or right.unit_column is None:
                yield from _over_another(left, right, dataset)


def _along(left: Table, right: Table, dataset: Dataset) -> Iterator[str]:
    """The shortest way along references from one table to another, of protected tables as long as people own them."""
    ways = [(left, named(left.name))]
    for _ in range(_STEPS):
        further: list[tuple[Table, str]] = []
        for table, way in ways:
            for one in table.references:
                end = dataset.table(one.table)
                if end is not None and table.protected:
                    on = f"{_column(table.name, one.column)} = {_column(end.name, one.key)}"
                    further.append((end, f"{way} JOIN {named(end.name)} ON {on}"))
        found = [way for end, way in further if end.name == right.name]
        if found:
            yield from found
            return
        ways = further


def _over_another(left: Table, right: Table, dataset: Dataset) -> Iterator[str]:
    """Joins of a table that refers to both."""
    for middle in dataset.tables:
        ends = {one.table: one for one in middle.references}
        if left.name in ends and right.name in ends and middle.protected:
            joins = " ".join(
                f"JOIN {named(end)} ON {_column(middle.name, ends[end].column)} = {_column(end, ends[end].key)}"
                for end in (left.name, right.name)
            )
            yield f"{named(middle.name)} {joins}"


def _on_unit(left: Table, right: Table) -> Iterator[str]:
    if left.unit_column is not None and right.unit_column is not None:
        ends = f"{_column(left.name, left.unit_column)} = {_column(right.name, right.unit_column)}"
        yield f"{named(left.name)} JOIN {named(right.name)} ON {ends}"


def _with_itself(table: Table) -> Iterator[str]:
    if table.unit_column is not None and not table.one_row:
        unit = named(table.unit_column)
        yield f"{named(table.name)} a JOIN {named(table.name)} b ON a.{unit} = b.{unit}"


def _column(table: str, column: str) -> str:
    return f"{named(table)}.{named(column)}"
