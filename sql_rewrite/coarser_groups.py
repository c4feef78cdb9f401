"""What to ask instead of groups of one person each: the same numbers by those of its keys that everybody knows.

SELECT l_orderkey, SUM(price) AS revenue FROM ... WHERE ... GROUP BY l_orderkey, o_shippriority ORDER BY revenue
SELECT SUM(price) AS revenue, o_shippriority FROM ... WHERE ... GROUP BY o_shippriority
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sql_rewrite.aggregate_calls import aggregate_calls
from sql_rewrite.text import Text

__all__ = ["coarser"]

_CHARACTERS_MAX = 1_000


def coarser(node: exp.Select, text: Text, keys: Sequence[exp.Expr]) -> str | None:
    """The query by these of its keys, as they are written, without ORDER BY and LIMIT; None where it is not plain.

    A nested block, one with WITH, and one that only lists keys are not.
    """
    if node.parent is not None or any(node.args.get(part) for part in ("with_", "distinct", "qualify", "windows")):
        return None
    rows = _between(text, "FROM", "GROUP")
    if rows is None or ";" in rows:
        return None
    spelled = [_spelled(key, text) for key in keys]
    columns = [_spelled(one, text) for one in node.expressions if aggregate_calls([one])]
    if None in spelled or None in columns:
        return None
    shown = [*(key for key in spelled if key), *(column for column in columns if column)]
    listed = ", ".join(shown if columns else [*shown, "COUNT(*) AS n"])
    grouped = f" GROUP BY {', '.join(key for key in spelled if key)}" if spelled else ""
    query = f"SELECT {listed} {' '.join(rows.split())}{grouped}"
    return query if len(query) <= _CHARACTERS_MAX else None


def _spelled(node: exp.Expr, text: Text) -> str | None:
    place = text.position(node)
    return None if place is None else " ".join(place.text.split())


def _between(text: Text, first: str, last: str) -> str | None:
    """What is written from one word to another, both outside brackets and there once."""
    depth, found = 0, []
    for token in text.tokens:
        word = str(token.text).upper()
        depth += (word == "(") - (word == ")")
        if depth == 0 and word.split(" ")[0] in (first, last):
            found.append((word.split(" ")[0], token.start))
    if [word for word, _ in found] != [first, last]:
        return None
    piece = text.sql[found[0][1] : found[1][1]].strip()
    return None if "--" in piece or "/*" in piece else piece
