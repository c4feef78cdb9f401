"""How long the strings of an outer query can get: bounded before any engine reads the text.

Binding computes constants, and a trial on made-up rows computes everything, so a few nested REPLACEs over constants
would keep the engine busy before anything is charged. A bound that follows from the tree alone comes first: the length
of each value from the lengths of its arguments, a column's from the longest value of the queries below it.
"""

from __future__ import annotations

from sqlglot import exp

from sql_rewrite.plain_calls import REPEATED_MAX
from sql_rewrite.refuse import refuse
from sql_rewrite.shell_names import FORMATTED_MAX
from sql_rewrite.text import Text

__all__ = ["GROWING", "check_sizes"]

GROWING = (exp.Replace, exp.Concat, exp.DPipe, exp.Repeat, exp.Format)
"""Functions of the outer query whose strings can be longer than their arguments."""

_STARTS = (*GROWING, exp.Literal)

LENGTH_MAX = 1_000_000
"""Most characters that one value may have."""

WORK_MAX = 4_000_000
"""Most characters of all values together that may be long."""

_KEY = 1_000
"""An upper bound on the length of a released value."""

_NUMBER = 40
"""An upper bound on the length of a number, date or timestamp as text."""

_LONG = 10_000


def check_sizes(tree: exp.Expr, original: exp.Expr, text: Text) -> None:
    """Refuses the tree of an outer query, written out of the original one, whose strings could become too long.

    Errors: Refused (too_large), at the first function that makes longer strings.
    """
    if not [node for node in tree.find_all(*_STARTS) if _may_be_long(node)]:
        return
    sizes = _Sizes()
    sizes.query(tree)
    if sizes.greatest > LENGTH_MAX or sizes.work > WORK_MAX:
        raise refuse(
            "too_large",
            "the part above the aggregates is refused",
            f"Its strings could have more than {LENGTH_MAX:,} characters, or {WORK_MAX:,} together.",
            "use fewer or shorter strings in REPLACE, REPEAT, FORMAT, CONCAT and ||",
            position=text.position(original.find(*GROWING)),
        )


def _may_be_long(node: exp.Expr) -> bool:
    """Whether a value of more than `_LONG` characters may start at a node: where none does, there is none."""
    return not isinstance(node, exp.Literal) or len(str(node.this)) > _LONG


class _Sizes:
    """Bounds on the lengths of strings; `widest` is that of the columns which the query that is read may name."""

    def __init__(self) -> None:
        self.widest = _KEY
        self.greatest = 0
        self.work = 0

    def query(self, query: exp.Expr) -> None:
        """Reads a query, those inside it first.

        A relation of FROM names none of the columns beside it: the outer query has no lateral joins (scope.py)."""
        nodes = list(query.walk(bfs=False, prune=lambda node: node is not query and isinstance(node, exp.Query)))
        inner = [node for node in nodes if node is not query and isinstance(node, exp.Query)]
        around = found = self.widest
        for part in sorted(inner, key=lambda part: not isinstance(part.parent, exp.From | exp.Join)):
            self.widest = around if isinstance(part.parent, exp.From | exp.Join) else found
            self.query(part)
            found = max(found, self.widest)
        self.widest = found
        known: dict[int, int] = {}
        for node in reversed(nodes):  # parts before what they are parts of
            size = self._size(node, known)
            known[id(node)] = size
            self.greatest = max(self.greatest, size)
            if size > _LONG:
                self.work += size
        if isinstance(query, exp.Select):
            self.widest = max(self.widest, *(known[id(node)] for node in query.expressions))

    def _size(self, node: exp.Expr, known: dict[int, int]) -> int:
        if isinstance(node, exp.Column | exp.Query):
            return self.widest
        if isinstance(node, exp.Literal):
            return len(str(node.this))
        parts = [known[id(part)] for part in node.iter_expressions()]
        if isinstance(node, exp.Replace):
            longer = known.get(id(node.args.get("replacement")), 1)
            return known[id(node.this)] * max(longer, 1)
        if isinstance(node, exp.Repeat):
            return known[id(node.this)] * REPEATED_MAX
        if isinstance(node, exp.Format):
            return sum(parts) + FORMATTED_MAX * len(parts)
        if isinstance(node, exp.Concat | exp.DPipe):
            return sum(parts)
        return max(parts, default=_NUMBER)
