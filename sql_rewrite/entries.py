"""What FROM lists in a private block: tables, and rows of nested blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.expressions import Expression
from sql_rewrite.plan import Source
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.spelling import named
from sql_rewrite.text import Text

__all__ = ["Entry", "View", "ambiguous_column", "column_named", "columns_of", "tables_of"]


@dataclass(frozen=True, slots=True)
class View:
    """Rows of a nested block under the generated name by which the trees of this block call them."""

    relation: str
    rows: Rows

    def column(self, name: str) -> tuple[str, Expression] | None:
        """The column of that name (ASCII case does not matter), with its own name."""
        folded = name.lower()
        return next(((own, found) for own, found in self.rows.columns if own.lower() == folded), None)


Entry = Source | View
"""What FROM lists: a table of the dataset, or rows of a nested block."""


def tables_of(entry: Entry) -> tuple[Source, ...]:
    """The tables of an entry; the first one's rows are the entry's."""
    return entry.rows.sources if isinstance(entry, View) else (entry,)


def columns_of(entry: Entry) -> list[str]:
    """The names of an entry's columns, in order."""
    if isinstance(entry, View):
        return [name for name, _ in entry.rows.columns]
    return [column.name for column in entry.table.columns]


def column_named(entry: Entry, name: str) -> str | None:
    """The own name of an entry's column."""
    if isinstance(entry, View):
        found = entry.column(name)
        return None if found is None else found[0]
    column = entry.table.column(name)
    return None if column is None else column.name


def ambiguous_column(node: exp.Column | exp.Identifier, relations: Sequence[str], text: Text) -> Refused:
    """The refusal of a name that columns of all these relations have."""
    name = node.name
    using = isinstance(node, exp.Identifier)
    return refuse(
        "ambiguous_column",
        f'column "{name[:63]}" is refused',
        "More than one table has a column of that name.",
        ("join with ON instead of USING: " if using else "write it with its table: ")
        + " or ".join(f"{named(relation)}.{named(name)}" for relation in relations),
        position=text.position(node),
    )
