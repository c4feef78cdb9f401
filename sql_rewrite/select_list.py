"""The select list of a private block, with columns by their declared names, and the aliases that it gives."""

from __future__ import annotations

from sqlglot import exp

from sql_rewrite.refuse import refuse
from sql_rewrite.sources import SourceNames
from sql_rewrite.text import Text

__all__ = ["SelectList"]


class SelectList:
    """The expressions of a select list: as they are written, and with the columns of sources by their own names."""

    def __init__(self, node: exp.Select, names: SourceNames, text: Text) -> None:
        self._text = text
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
