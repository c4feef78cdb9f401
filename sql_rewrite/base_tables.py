"""The dataset's table that a FROM item names."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from privacy.policy import Dataset, Table
from sql_rewrite.refuse import did_you_mean, refuse
from sql_rewrite.syntax import consume
from sql_rewrite.text import Text

__all__ = [
    "base_table",
]


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
            "The dataset has no table of that name." if known_schema else "The dataset has no schemas.",
            *(did_you_mean(item.name, known) or ("tables: " + ", ".join(sorted(known)[:20]),)),
            position=text.position(item),
        )
    return table
