"""The select list of a private block, with columns by their declared names, and what GROUP BY means by its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.refuse import refuse
from sql_rewrite.sources import SourceNames
from sql_rewrite.syntax import select_place, unbracketed
from sql_rewrite.text import Text

__all__ = ["SelectList", "grouped_by", "meant_by"]

Grouped = Iterator[tuple[exp.Expr, exp.Expr | None]]
"""What was written in GROUP BY, and the expression that it means; None for a place outside the select list."""


def grouped_by(
    group: exp.Expr,
    values: Sequence[exp.Expr],
    alias: Callable[[str], exp.Expr | None],
    other: Callable[[exp.Expr], exp.Expr],
) -> Grouped:
    """The keys of a GROUP BY over a select list of these values, those of ALL first; no other part of it is read.

    `alias` says what an unqualified name stands for, None where it is a column; `other` reads anything else.
    """
    if group.args.get("all"):
        yield from ((value, value) for value in values if not aggregate_calls([value]))
    for item in (part for whole in group.expressions for part in unbracketed(whole)):
        yield item, meant_by(item, values, alias, other)


def meant_by(
    item: exp.Expr,
    values: Sequence[exp.Expr],
    alias: Callable[[str], exp.Expr | None],
    other: Callable[[exp.Expr], exp.Expr],
) -> exp.Expr | None:
    """What one key means, as `grouped_by` says; None for a place outside the select list."""
    place = select_place(item)
    if place is not None:
        return values[place] if 0 <= place < len(values) else None
    named = alias(item.name) if isinstance(item, exp.Column) and not item.table else None
    return other(item) if named is None else named


class SelectList:
    """The expressions of a select list: as they are written, and with the columns of sources by their own names."""

    def __init__(self, node: exp.Select, names: SourceNames, text: Text) -> None:
        self._text = text
        self._names = names
        self.written: list[exp.Expr] = node.expressions
        self.projections = [names.qualified(projection) for projection in self.written]
        self.values = [projection.unalias() for projection in self.projections]
        """The expressions without their aliases."""

    def shown(self, node: exp.Expr) -> exp.Expr | None:
        """The one column of the answer that has the name of an unqualified column, which ORDER BY means then."""
        if not isinstance(node, exp.Column) or node.table:
            return None
        found = [
            value
            for written, value in zip(self.written, self.values, strict=True)
            if isinstance(written, exp.Column) and written.name.lower() == node.name.lower()
        ]
        return found[0] if len(found) == 1 else None

    def alias(self, name: str) -> exp.Expr | None:
        """What the select list calls so. Errors: Refused when two of its columns have the name."""
        named = [p for p in self.projections if isinstance(p, exp.Alias) and p.alias.lower() == name.lower()]
        if len(named) > 1:
            raise refuse(
                "ambiguous_column",
                f'the alias "{name[:63]}" is refused',
                "Two columns of the select list have that name, and this text could mean either.",
                "give each column its own alias",
                position=self._text.position(named[1]),
            )
        inner: exp.Expr | None = named[0].this if named else None
        return inner

    def grouped_by(self, group: exp.Expr) -> Grouped:
        """The keys of the block's GROUP BY; a column of its tables comes before an alias. Errors: Refused."""
        return grouped_by(
            group,
            self.values,
            lambda name: None if self._names.knows(name) else self.alias(name),
            self._names.qualified,
        )
