"""MODE(x): the most frequent value, which is a choice of a group, not a sum.

    SELECT ward, MODE(sex) FROM visits GROUP BY ward
    core:         visits where sex IS NOT NULL, k0 = ward, k1 = sex; the best k1 within each k0, by COUNT(*)
    shell block:  SELECT k0 AS ward, k1 AS mode(sex) FROM c0

The value of x is a key of the core, for which the call stands in the block above; x itself is no key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from privacy.aggregate import AggregateFunction
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import AggregateReader, is_mode
from sql_rewrite.expressions import Expression
from sql_rewrite.functions import build
from sql_rewrite.group_keys import GroupKey, GroupKeyReader
from sql_rewrite.plan import Aggregate
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, rendered
from sql_rewrite.text import Text

__all__ = ["Mode", "ModeReader"]


@dataclass(frozen=True, slots=True)
class Mode:
    """What MODE asks for: the key that its calls stand for, the score of its values, and which rows have one."""

    key: GroupKey
    score: Aggregate
    present: Expression | None


class ModeReader:
    """Reads the calls of MODE of one block."""

    def __init__(self, text: Text, aggregates: AggregateReader, keys: GroupKeyReader) -> None:
        self._text = text
        self._aggregates = aggregates
        self._keys = keys

    def read(self, calls: Sequence[exp.Expr]) -> Mode:
        """The one MODE of a block whose aggregate calls these are. Requires: one of them is. Errors: Refused."""
        modes = [call for call in calls if is_mode(call)]
        other = next((call for call in calls if call != modes[0]), None)
        if other is not None:
            both = "another one" if is_mode(other) else "other aggregates"
            raise self._refused(
                other,
                f"MODE beside {both} is refused",
                "It releases a value by a choice of its own, and no count with which others could share a price.",
                "ask it in a query of its own, and join the answers on their keys",
            )
        call = modes[0]
        condition: Expression | None = None
        if isinstance(call, exp.Filter):
            consume(call, "this", "expression", text=self._text, what="FILTER")
            consume(call.expression, "this", text=self._text, what="FILTER")
            condition = self._aggregates.condition(call.expression.this, "FILTER")
        key = self._keys.most_frequent(call, self._operand(call.this if condition is not None else call))
        place = self._text.position(call)
        described = place.text if place else rendered(call)
        score = Aggregate("", AggregateFunction.ROWS, None, condition, place, described[:120])
        present = build("is_not_null", (key.written,)) if key.written.nullable else None
        return Mode(key, score, present)

    def _operand(self, node: exp.Expr) -> exp.Expr:
        """The value whose most frequent one is asked for."""
        operand: exp.Expr | None
        if isinstance(node, exp.WithinGroup):
            consume(node, "this", "expression", text=self._text, what="WITHIN GROUP")
            consume(node.expression, "expressions", text=self._text, what="WITHIN GROUP")
            ordered = node.expression.expressions
            if node.this.this is not None or len(ordered) != 1 or not isinstance(ordered[0], exp.Ordered):
                raise self._form(node)
            consume(ordered[0], "this", "desc", "nulls_first", text=self._text, what="WITHIN GROUP")
            operand = ordered[0].this
        else:
            consume(node, "this", text=self._text, what="MODE")
            operand = node.this
        if operand is None or isinstance(operand, exp.Distinct | exp.Order):
            raise self._form(node)
        return operand

    def _form(self, node: exp.Expr) -> Refused:
        return self._refused(
            node,
            "MODE is refused in this form",
            "It takes one value, neither DISTINCT nor sorted by another one.",
            "write MODE(x), or MODE() WITHIN GROUP (ORDER BY x)",
        )

    def _refused(self, node: exp.Expr, what: str, why: str, instead: str) -> Refused:
        return refuse("unsupported_sql", what, why, instead, position=self._text.position(node))
