"""How a block writes its windows: the function, what it is partitioned and ordered by, and its frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sqlglot import exp

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.aggregate_calls import AggregateReader
from sql_rewrite.evaluate import evaluate, is_quick
from sql_rewrite.expressions import Expression, Literal, columns_of
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.plan import Placement, UnitFunction, UnitPlace, UnitValue, UnitWindow, WindowFrame, WindowTerm
from sql_rewrite.refuse import refuse
from sql_rewrite.syntax import consume, whole_number
from sql_rewrite.text import Text
from sql_rewrite.unit_calls import UnitCalls
from sql_rewrite.unit_plan import RANKED
from sql_rewrite.window_frames import read_frame

__all__ = ["NUMBER_MAX", "Spec", "WindowReader", "frame_of", "includes_row", "row_number"]

NUMBER_MAX = 1_000_000
"""Most rows that a window looks away, and most parts of NTILE: no unit has more rows."""

_NULLS_OR_FIRST = (exp.IgnoreNulls, exp.RespectNulls, exp.AnyValue, exp.First, exp.Last)
"""Aggregates whose value over a window depends on its order."""

_PLACES: Mapping[type[exp.Expr], Placement] = {
    exp.RowNumber: Placement.ROW_NUMBER,
    exp.Rank: Placement.RANK,
    exp.DenseRank: Placement.DENSE_RANK,
    exp.PercentRank: Placement.PERCENT_RANK,
    exp.CumeDist: Placement.CUME_DIST,
    exp.Ntile: Placement.NTILE,
    exp.Lag: Placement.LAG,
    exp.Lead: Placement.LEAD,
    exp.FirstValue: Placement.FIRST_VALUE,
    exp.LastValue: Placement.LAST_VALUE,
    exp.NthValue: Placement.NTH_VALUE,
}
_OF_OTHERS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
_ENDS = (Placement.FIRST_VALUE, Placement.LAST_VALUE, Placement.NTH_VALUE)
_KNOWN = (
    "ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, "
    "COUNT, SUM, AVG, MIN, MAX, BOOL_OR and BOOL_AND"
)


@dataclass(frozen=True, slots=True)
class Spec:
    """What is written in the brackets of OVER, with that of the window which it names."""

    partition: Sequence[exp.Expr]
    order: Sequence[exp.Expr]
    frame: exp.Expr | None


class WindowReader:
    """Reads the windows of one block; `named` are those of its WINDOW clause."""

    def __init__(self, text: Text, lifter: ExpressionLift, named: Sequence[exp.Expr]) -> None:
        self._text = text
        self._lifter = lifter
        self._calls = UnitCalls(text, lifter, AggregateReader(text, lifter))
        self._named = {window.name.lower(): window for window in named}
        self._used: set[str] = set()

    def spec(self, node: exp.Window) -> Spec:
        """What a window is over. Errors: Refused."""
        consume(node, "this", "partition_by", "order", "spec", "alias", "over", text=self._text, what="a window")
        own = Spec(node.args.get("partition_by") or [], self._order(node), node.args.get("spec"))
        alias = node.args.get("alias")
        if alias is None:
            return own
        named = self._named.get(alias.name.lower())
        if named is None:
            raise refuse(
                "unknown_table",
                f'the window "{alias.name[:63]}" is refused',
                "The block has no WINDOW of that name.",
                position=self._text.position(node),
            )
        self._used.add(alias.name.lower())
        if named.args.get("alias") is not None:
            raise self._refused(named, "a window that is made of another one", "write its PARTITION BY and ORDER BY")
        consume(named, "this", "partition_by", "order", "spec", "over", text=self._text, what="WINDOW")
        if own.partition or (own.order and self._order(named)):
            raise self._refused(node, "a window that changes another one", "write its PARTITION BY and ORDER BY out")
        return Spec(
            named.args.get("partition_by") or [], own.order or self._order(named), own.frame or named.args.get("spec")
        )

    def check_used(self) -> None:
        """Refuses a WINDOW that no call names: nothing is ever ignored. Errors: Refused."""
        unused = next((window for name, window in self._named.items() if name not in self._used), None)
        if unused is not None:
            raise refuse(
                "unsupported_sql",
                f'the window "{unused.name[:63]}" is refused',
                "It is never used, and nothing is ever ignored.",
                "leave it out",
                position=self._text.position(unused),
            )

    def _order(self, node: exp.Expr) -> Sequence[exp.Expr]:
        order = node.args.get("order")
        if order is None:
            return ()
        consume(order, "expressions", text=self._text, what="ORDER BY")
        terms: Sequence[exp.Expr] = order.expressions
        return terms

    def terms(
        self, items: Sequence[exp.Expr], meant: Callable[[exp.Expr], exp.Expr] = lambda node: node
    ) -> tuple[WindowTerm, ...]:
        """The terms of an ORDER BY. Errors: Refused."""
        terms = []
        for item in items:
            consume(item, "this", "desc", "nulls_first", text=self._text, what="a term of ORDER BY")
            found = self._lifter.lift(meant(item.this))
            terms.append(WindowTerm(found, bool(item.args.get("desc")), bool(item.args.get("nulls_first"))))
        return tuple(terms)

    def value(self, node: exp.Window, rows: int) -> UnitValue | UnitPlace:
        """What the window computes of at most so many rows. Errors: Refused."""
        call = node.this
        if isinstance(call, exp.IgnoreNulls) and type(call.this) in _OF_OTHERS:
            consume(call, "this", text=self._text, what="IGNORE NULLS")
            place = self._place(_PLACES[type(call.this)], call.this)
            if not place.number:
                raise self._unknown(call.this)
            return replace(place, ignores_null=True)
        function = _PLACES.get(type(call))
        if function is None:
            inner = call.this if isinstance(call, exp.Filter) else call
            if not isinstance(inner, exp.AggFunc) or isinstance(inner, _NULLS_OR_FIRST):
                raise self._unknown(inner)
            if not isinstance(inner, exp.CountIf) and isinstance(inner.this, exp.Distinct):
                raise self._unknown(inner)
            value = self._calls.value(call, rows)
            assert value.function is not UnitFunction.DISTINCT
            if value.by is not None or value.function in RANKED:
                raise self._unknown(inner)
            return value
        return self._place(function, call)

    def _place(self, function: Placement, call: exp.Expr) -> UnitPlace:
        text, what = self._text, self._text.spelled(call) or function.value.upper()
        match function:
            case Placement.NTILE:
                consume(call, "this", text=text, what=what)
                return UnitPlace(function, number=self._number(call, call.this, least=1))
            case Placement.LAG | Placement.LEAD:
                consume(call, "this", "offset", "default", text=text, what=what)
                away = call.args.get("offset")
                number = 1 if away is None else self._number(call, away, least=0)
                return self._neighbour(function, call, number)
            case Placement.NTH_VALUE:
                consume(call, "this", "offset", text=text, what=what)
                number = self._number(call, call.args.get("offset"), least=1)
                return UnitPlace(function, self._lifter.lift(call.this), number)
            case Placement.FIRST_VALUE | Placement.LAST_VALUE:
                consume(call, "this", text=text, what=what)
                return UnitPlace(function, self._lifter.lift(call.this))
            case (
                Placement.ROW_NUMBER
                | Placement.RANK
                | Placement.DENSE_RANK
                | Placement.PERCENT_RANK
                | Placement.CUME_DIST
            ):
                consume(call, text=text, what=what)
                return UnitPlace(function)
            case _:
                assert_never(function)

    def _neighbour(self, function: Placement, call: exp.Expr, number: int) -> UnitPlace:
        default = call.args.get("default")
        if default is None or isinstance(default, exp.Null):
            return UnitPlace(function, self._lifter.lift(call.this), number)
        argument, otherwise = self._lifter.siblings([call.this, default])
        value = None if columns_of(otherwise) or not is_quick(otherwise) else evaluate(otherwise, {})
        if argument.type is ColumnType.NUMBER and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        elif otherwise.type is not argument.type:
            value = None
        if value is None:
            raise refuse(
                "unsupported_type",
                f"{self._text.spelled(call) or function.value.upper()} is refused",
                "What it gives where no row is must be a constant of the same type.",
                "leave it out, and write COALESCE around the call",
                position=self._text.position(call),
            )
        return UnitPlace(function, argument, number, Literal(value, argument.type))

    def _number(self, call: exp.Expr, node: object, *, least: int) -> int:
        number = whole_number(node)
        if number is None or not least <= number <= NUMBER_MAX:
            raise refuse(
                "unsupported_sql",
                f"{self._text.spelled(call) or 'a window'} is refused",
                f"Its number must be a constant from {least} to {NUMBER_MAX:,}.",
                position=self._text.position(call),
            )
        return number

    def _unknown(self, node: exp.Expr) -> Refused:
        return refuse(
            "unsupported_function",
            f"{self._text.spelled(node) or 'a function'} over a window of one person's rows is refused",
            f"Over such windows {_KNOWN} are computed; it is not answered yet.",
            position=self._text.position(node),
        )

    def _refused(self, node: exp.Expr, what: str, instead: str) -> Refused:
        return refuse(
            "unsupported_sql", f"{what} is refused", "It is not answered yet.", instead,
            position=self._text.position(node),
        )  # fmt: skip


def row_number(partition: tuple[Expression, ...], order: tuple[WindowTerm, ...]) -> UnitWindow:
    """The window that numbers rows."""
    return UnitWindow("", UnitPlace(Placement.ROW_NUMBER), partition, order, None)


def includes_row(frame: WindowFrame | None) -> bool:
    """Whether a row itself is among the rows that a window reads for it."""
    if frame is None:
        return True
    return (frame.start or 0) <= 0 <= (frame.end or 0) and frame.exclude in ("", "ties")


def frame_of(
    value: UnitValue | UnitPlace,
    written: exp.Expr | None,
    *,
    order: Sequence[WindowTerm],
    lifter: ExpressionLift,
    node: exp.Expr,
) -> WindowFrame | None:
    """The frame of a window; None for what each function reads without one. Errors: Refused.

    The first row and the last one of all rows do not depend on which of equal rows comes first but by their content;
    the last of those that are equal in the order would, so LAST_VALUE must say which rows it means.
    """
    text, ordered = lifter.text, bool(order)
    frame = None if written is None else read_frame(written, order, lifter, node)
    if isinstance(value, UnitValue):
        return None if frame == WindowFrame(rows=False, start=None, end=0) else frame
    if value.function not in _ENDS:
        if written is not None:
            raise refuse(
                "unsupported_sql",
                f"{value.function.value.upper()} with a frame is refused",
                "It has the same value whatever the frame is.",
                "leave the frame out",
                position=text.position(node),
            )
        return None
    if frame is None:
        frame = WindowFrame(rows=False, start=None, end=0 if ordered else None)
    plain = (frame.by, frame.exclude) == ("", "")
    if frame.rows and plain:
        return frame
    if not plain:
        raise refuse(
            "unsupported_sql",
            f"{value.function.value.upper()} over this frame is refused",
            "Frames of RANGE with a distance, GROUPS and EXCLUDE are answered of COUNT, SUM, AVG, MIN and MAX.",
            "write ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW after its ORDER BY",
            position=text.position(node),
        )
    if value.ignores_null and (frame.start, frame.end) != (None, None):
        raise _of_equals(value, text, node)
    if value.function is Placement.FIRST_VALUE and frame.start is None:
        return WindowFrame(rows=True, start=None, end=0)
    if value.function is Placement.LAST_VALUE and frame.end is None:
        return WindowFrame(rows=True, start=0, end=None)
    if frame.start is None and frame.end is None:
        return replace(frame, rows=True)
    raise _of_equals(value, text, node)


def _of_equals(value: UnitPlace, text: Text, node: exp.Expr) -> Refused:
    return refuse(
        "unsupported_sql",
        f"{value.function.value.upper()} over rows that are equal in the order is refused",
        "Without a frame of ROWS it reads up to the last row of the same place in the order, whichever that is.",
        "write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING after its ORDER BY",
        "use FIRST_VALUE, and DESC after each term of ORDER BY",
        position=text.position(node),
    )
