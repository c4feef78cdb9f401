"""The public shell: which SQL may stand above released tables, and how its error is propagated.

Everything here is post-processing of released numbers (Dwork and Roth 2014, Proposition 2.1), so the rules are
wide; they are still an allow-list, because the text that runs is made from the analyst's tree. A node may stand in the
shell when noise is followed through it (`trace.FOLLOWED`): otherwise no interval could be reported for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.lift_constant import check_parameter, missing_parameter
from sql_rewrite.lift_refusal import is_volatile
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.refuse import refuse
from sql_rewrite.released import REPLICATE, column
from sql_rewrite.shell_names import check_format
from sql_rewrite.syntax import DUCKDB, UNFORESEEN, consume, kinds_of, rendered
from sql_rewrite.text import Text
from sql_rewrite.trace import FOLLOWED

__all__ = ["AS_THEY_ARE", "ShellNodes", "generate", "has_aggregate", "has_window", "output_name", "partition_windows"]

INSTANCES_MAX = 32

_TYPES = frozenset(
    exp.DataType.Type[name]
    for name in (
        "TINYINT SMALLINT INT BIGINT INT128 UTINYINT USMALLINT UINT UBIGINT UINT128 FLOAT DOUBLE DECIMAL TEXT VARCHAR "
        "BOOLEAN DATE TIMESTAMP TIMESTAMPNTZ"
    ).split()
)
"""Types that a released number may be cast to."""
_WITH_NULLS = (exp.IgnoreNulls, exp.RespectNulls)
_OVER_ROWS = (exp.Window, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_LOOKED_AT = kinds_of(exp.Placeholder, exp.DataType, exp.Star, exp.Format, exp.First, exp.Last, *_WITH_NULLS)
AS_THEY_ARE = frozenset(kind for kind in FOLLOWED if kind not in _LOOKED_AT)
"""Nodes that may stand in the shell, wherever they stand."""
_WINDOWED = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead)


def generate(tree: exp.Expr) -> str:
    """The SQL text of a shell tree, which is not read again: the generator may change it.

    Errors: Refused, for arguments that the generator does not foresee.
    """
    try:
        return DUCKDB.generate(tree, copy=False, comments=False)
    except UNFORESEEN:
        raise refuse(
            "unsupported_sql",
            "the part above the aggregates is refused",
            "A function in it has arguments of a form that is not answered.",
            "see docs/sql.md for what is answered",
        ) from None


class ShellNodes:
    """Checks the shell's parts and builds their forms. One per query."""

    def __init__(self, text: Text, parameters: Mapping[str, ParameterValue]) -> None:
        self.text = text
        self._parameters = parameters

    def instances(self, count: int, node: exp.Expr) -> int:
        """The count, within the limit: a chain of doubling CTEs ends here and not in the engine's planner."""
        if count > INSTANCES_MAX:
            raise refuse(
                "too_large",
                "the query is refused",
                f"It reads more than {INSTANCES_MAX} relations once its CTEs are written out.",
                "read each of them once",
                position=self.text.position(node),
            )
        return count

    def allows(self, node: exp.Expr) -> bool:
        """Whether a node of this class may stand in the shell."""
        return type(node) in FOLLOWED

    def check_node(self, node: exp.Expr) -> None:
        """Refuses a node whose class may not stand in the shell."""
        if type(node) in AS_THEY_ARE or isinstance(node, exp.Placeholder):
            return
        if type(node) not in FOLLOWED:
            raise self.refusal(node)
        if isinstance(node, exp.DataType):
            self._check_type(node)
        if isinstance(node, exp.Star):
            consume(node, text=self.text, what="*")
            if not isinstance(node.parent, exp.Count):
                raise self.refusal(node)
        if isinstance(node, exp.Format):
            check_format(node, self.text)
        if isinstance(node, exp.First | exp.Last) and not isinstance(node.this, exp.Order):
            raise refuse(
                "unsupported_function",
                f"{self.text.spelled(node) or 'FIRST'} without ORDER BY is refused",
                "Released rows have no order, so which of them is the first would differ from run to run.",
                "write FIRST(x ORDER BY y), or ARG_MIN(x, y)",
                position=self.text.position(node),
            )
        if isinstance(node, _WITH_NULLS) and not (
            isinstance(node.parent, _OVER_ROWS) or isinstance(node.this, exp.AnyValue)
        ):
            raise self.refusal(node)

    def _check_type(self, node: exp.DataType) -> None:
        """Refuses types that no answer has: texts of other systems, bits, lists and whatever a type can be made of."""
        parts = node.expressions if node.this is exp.DataType.Type.DECIMAL else []
        plain = all(isinstance(part, exp.DataTypeParam) for part in parts)
        if node.this not in _TYPES or not plain or len(parts) != len(node.expressions):
            raise refuse(
                "unsupported_type",
                f"the type {rendered(node)[:60]} is refused",
                "Released numbers become numbers, texts, booleans, dates and timestamps.",
                "cast to BIGINT, DOUBLE, DECIMAL(10, 2), VARCHAR, BOOLEAN, DATE or TIMESTAMP",
                position=self.text.position(node),
            )

    def refusal(self, node: exp.Expr) -> Refused:
        """The refusal of a construct that is not part of the shell's language."""
        name = str(node.this) if isinstance(node, exp.Anonymous) else type(node).__name__
        if isinstance(node, exp.Func | exp.Anonymous):
            volatile = is_volatile(node, self.text.spelled(node) or name)
            return refuse(
                "volatile_function" if volatile else "unsupported_function",
                f"{self.text.spelled(node) or name.lower()[:60] + '()'} is refused",
                "Its value depends on the moment."
                if volatile
                else "It is not in the list of functions that may be used on released numbers.",
                "see the list of functions under /v1/capabilities",
                position=self.text.position(node),
            )
        words = "".join((" " + c.lower()) if c.isupper() else c for c in name).strip()
        return refuse(
            "unsupported_sql",
            f"{words} is refused",
            "This construct is not part of the language for released numbers.",
            "see docs/sql.md for what is answered",
            position=self.text.position(node),
        )

    def literal(self, node: exp.Placeholder) -> exp.Expr:
        """The literal of a named parameter."""
        name = node.this
        if not isinstance(name, str) or name not in self._parameters:
            raise missing_parameter(name, self.text)
        value = self._parameters[name]
        check_parameter(value, self.text.position(node))
        if value is None:
            return exp.Null()
        if isinstance(value, bool):
            return exp.Boolean(this=value)
        if isinstance(value, str):
            return exp.Literal.string(value)
        return exp.Paren(this=exp.Literal.number(float(value) if not isinstance(value, int) else value))


def has_window(nodes: Sequence[exp.Expr]) -> bool:
    """Whether a window function stands in any of the nodes (outside nested queries)."""
    return any(isinstance(part, exp.Window) for node in nodes for part in _own_nodes(node))


def has_aggregate(nodes: Sequence[exp.Expr]) -> bool:
    """Whether an aggregate that is not a window function stands in any of the nodes (outside nested queries)."""
    for node in nodes:
        # Mostly there is none at all, which the tree says faster by itself.
        for part in _own_nodes(node) if node.find(exp.AggFunc) is not None else ():
            if isinstance(part, exp.AggFunc) and not isinstance(part, _WINDOWED):
                parent = part.parent
                while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
                    part, parent = parent, parent.parent
                if not (isinstance(parent, exp.Window) and parent.this is part):
                    return True
    return False


def _own_nodes(node: exp.Expr) -> list[exp.Expr]:
    found = [node]
    for current in found:  # which grows meanwhile
        if not isinstance(current, exp.Query):
            found += current.iter_expressions()
    return found


def partition_windows(nodes: Sequence[exp.Expr], relation: str) -> None:
    """Adds the replicate to every window's partition, in place."""
    for node in nodes:
        for part in _own_nodes(node):
            if isinstance(part, exp.Window) and not part.args.get("alias"):
                part.set("partition_by", [column(REPLICATE, relation), *(part.args.get("partition_by") or [])])


def output_name(text: Text, node: exp.Expr) -> str:
    """The name of an answer's column that has no alias: the column's own, or the text of its expression."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return "count_star()"
    place = text.position(node)
    whole = place is not None and (not isinstance(node, exp.Func) or "(" in place.text)
    return " ".join((place.text if whole and place else rendered(node)).split())[:63]
