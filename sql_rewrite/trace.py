"""How a cell of the shell depends on released numbers, which decides what interval can be reported for it.

    n * 2.0          affine in one number of its own row
    a - b            affine in two
    SUM(n)           affine, across rows
    MAX(n)           not affine, but it rises with every number that it reads
    n / SUM(n) ...   a quotient of affine parts
    RANK() OVER ...  a rank: it rises with the numbers of other rows and falls with its own, or the reverse

Only what the tree shows counts: in doubt, the weaker claim is made.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from privacy.by_slots import by_slots

__all__ = ["CONSTANT", "FOLLOWED", "UNKNOWN", "Shape", "Trace", "Tracer", "merged", "moved", "together"]


class Shape(enum.IntEnum):
    """From the best known to the least known dependence on the numbers that are read."""

    CONSTANT = 0
    AFFINE = 1
    RATIO = 2
    SMOOTH = 3
    ROUGH = 4
    RANK = 5
    FOLDED = 6
    """Numbers on both sides of a point give the same value (ABS, squares), or distant ones do (remainders): noise
    alone pushes the value away from there."""


Extreme = Literal["max", "min"]

Read = tuple[str, str, int | None]
"""Core, column, and the hidden identity column that names the row; None for the rows of a whole relation."""


@by_slots
@dataclass(frozen=True, slots=True)
class Trace:
    """What one column of a shell relation reads, and how.

    `rises`: 1 where the value never falls when a number that it reads rises, -1 where it never rises then, 0 when it
    reads none, None when that is not known. `extreme` is "max" or "min" where the value follows one number at a time,
    the greatest or the least. `divisors` are the numbers that it divides by. `across` names the cores whose rows
    are read beside the row's own. `chosen`: which rows are read depends on noisy numbers.
    """

    reads: frozenset[Read] = frozenset()
    across: frozenset[str] = frozenset()
    shape: Shape = Shape.CONSTANT
    rises: int | None = 0
    extreme: Extreme | None = None
    chosen: bool = False
    divisors: frozenset[Read] = frozenset()

    @property
    def constant(self) -> bool:
        """Whether no noisy number moves the value within one choice of rows."""
        return self.shape is Shape.CONSTANT and not self.chosen


CONSTANT = Trace()
UNKNOWN = Trace(shape=Shape.FOLDED, rises=None, chosen=True)

_QUERIES = (exp.Query, exp.Subquery)
_SAME_SHAPE = (exp.Paren, exp.Alias)
_ROUNDING = (exp.Round, exp.Floor, exp.Ceil, exp.Trunc, exp.Sign)
_RISING = (exp.Sqrt, exp.Cbrt, exp.Ln, exp.Exp)
_PICKS = (exp.FirstValue, exp.LastValue, exp.Lag, exp.Lead, exp.NthValue)
_RANKS = (exp.RowNumber, exp.Rank, exp.PercentRank, exp.CumeDist, exp.Ntile)
_FOLDING = (exp.Abs, exp.Pow, exp.Mod)
_STEPS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.Escape, exp.Interval, exp.Log,
    exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Left, exp.Right, exp.Substring, exp.Concat, exp.DPipe,
    exp.Replace, exp.StartsWith, exp.EndsWith, exp.Contains, exp.SplitPart,
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear, exp.Week,
    exp.WeekOfYear, exp.Hour, exp.Minute, exp.Second, exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.DateDiff,
    exp.IgnoreNulls, exp.RespectNulls,
    exp.Reverse, exp.ConcatWs, exp.TimeToStr, exp.Monthname, exp.Dayname, exp.LastDay, exp.Pi, exp.Repeat, exp.Format,
)  # fmt: skip
"""Functions of one row that go in steps, or whose direction is not known, and nothing worse."""

_ARITHMETIC = (
    exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Cast, exp.TryCast, exp.Coalesce, exp.Nullif,
    exp.Greatest, exp.Least,
)  # fmt: skip
_OVER_ROWS = (
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile, exp.PercentileCont,
    exp.PercentileDisc, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.ArgMax,
    exp.ArgMin, exp.AnyValue, exp.First, exp.Last, exp.LogicalAnd, exp.LogicalOr, exp.Corr, exp.CovarPop, exp.CovarSamp,
    exp.GroupConcat, exp.Mode, exp.Skewness, exp.Kurtosis, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2, exp.RegrCount,
    exp.RegrAvgx, exp.RegrAvgy, exp.RegrSxx, exp.RegrSyy, exp.RegrSxy,
)  # fmt: skip
_VALUES = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Case, exp.If, exp.Window, exp.Filter, exp.WithinGroup)
_PARTS = (
    exp.Identifier, exp.Star, exp.Var, exp.DataType, exp.DataTypeParam, exp.WindowSpec, exp.Order, exp.Ordered,
    exp.Where, exp.Distinct,
)  # fmt: skip
"""Parts of other nodes, which have no value of their own."""

FOLLOWED: frozenset[type[exp.Expr]] = frozenset(
    (
        *_VALUES, *_SAME_SHAPE, *_ARITHMETIC, *_ROUNDING, *_RISING, *_FOLDING, *_STEPS, *_OVER_ROWS, *_PICKS, *_RANKS,
        exp.DenseRank, *_PARTS,
    )
)  # fmt: skip
"""Every class of node through which noise is followed: the allow-list of the shell (`sql_rewrite/shell.py`)."""

_DOUBLES = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
_NUMBERS = (
    *_DOUBLES, exp.DataType.Type.TINYINT, exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT,
    exp.DataType.Type.INT128, exp.DataType.Type.DECIMAL,
)  # fmt: skip


def moved(trace: Trace, offset: int) -> Trace:
    """The trace with the identity columns of its rows further to the right."""
    if not offset or not trace.reads:
        return trace

    def further(reads: frozenset[Read]) -> frozenset[Read]:
        return frozenset((core, name, None if place is None else place + offset) for core, name, place in reads)

    return replace(trace, reads=further(trace.reads), divisors=further(trace.divisors))


def merged(traces: Iterable[Trace], shape: Shape, rises: int | None) -> Trace:
    """What all of the traces read together, with this shape."""
    parts = list(traces)
    return Trace(
        reads=frozenset().union(*(part.reads for part in parts)),
        across=frozenset().union(*(part.across for part in parts)),
        shape=shape,
        rises=rises,
        chosen=any(part.chosen for part in parts),
        divisors=frozenset().union(*(part.divisors for part in parts)),
    )


def together(*rises: int | None) -> int | None:
    """The direction of something that goes along with each of its parts."""
    known = {one for one in rises if one != 0}
    if not known:
        return 0
    return known.pop() if len(known) == 1 else None


def _flipped(rises: int | None) -> int | None:
    return None if rises is None else -rises


class Tracer:
    """Traces expressions of one block.

    `column` gives the trace of a column reference, `nested` that of a nested query's only value. `rows` are the cores
    whose rows the block reads; `chosen` says that noisy numbers decide which of them.
    """

    def __init__(
        self,
        column: Callable[[exp.Column], Trace],
        nested: Callable[[exp.Expr], Trace],
        *,
        rows: frozenset[str],
        chosen: bool,
    ) -> None:
        self._column = column
        self._nested = nested
        self._rows = rows
        self._chosen = chosen

    def trace(self, node: exp.Expr) -> Trace:
        """The trace of an expression."""
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, _QUERIES):
            return self._nested(node)
        if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None):
            return UNKNOWN
        if isinstance(node, exp.Any | exp.All):
            return UNKNOWN
        if isinstance(node, _SAME_SHAPE):
            return self.trace(node.this)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Filter):
            inner, condition = self.trace(node.this), self.trace(node.expression.this)
            if condition.constant:
                return inner
            # The condition is of each row that the aggregate reads, not of the row that it gives.
            over = self._over_rows(condition, Shape.FOLDED, None)
            return replace(merged([inner, over], Shape.FOLDED, None), chosen=True)
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        if isinstance(node, exp.WithinGroup):
            return UNKNOWN if node.expression is None else self._within_group(node)  # the engine refuses ()
        if isinstance(node, exp.Case | exp.If):
            return self._case(node)
        parts = [self.trace(child) for child in _operands(node)]
        if all(part.shape is Shape.CONSTANT for part in parts):
            return merged(parts, Shape.CONSTANT, 0)
        if isinstance(node, exp.Binary) and len(parts) < 2:
            return UNKNOWN  # a star where a value belongs: the engine refuses it
        result = self._operator(node, parts)
        # A rank is known as it stands only: with its own number beside it, both move in opposite ways.
        return replace(result, shape=Shape.FOLDED, rises=None) if result.shape is Shape.RANK else result

    def constant(self, nodes: Iterable[exp.Expr]) -> bool:
        """Whether no noisy number decides any of the expressions."""
        return all(self.trace(node).constant for node in nodes)

    def _operator(self, node: exp.Expr, parts: Sequence[Trace]) -> Trace:
        first, *others = parts
        fixed = all(other.shape is Shape.CONSTANT for other in others)
        if isinstance(node, exp.Neg):
            return replace(first, rises=_flipped(first.rises))
        if isinstance(node, exp.Add | exp.Sub):
            other = others[0]
            rises = together(first.rises, _flipped(other.rises) if isinstance(node, exp.Sub) else other.rises)
            both = merged(parts, max(first.shape, other.shape, Shape.AFFINE), rises)
            if both.shape is Shape.RATIO and Shape.CONSTANT not in (first.shape, other.shape):
                both = replace(both, shape=Shape.SMOOTH)
            alone = first if fixed else other if first.shape is Shape.CONSTANT else None
            return replace(both, extreme=alone.extreme if alone is not None else None)
        if isinstance(node, exp.Mul) and first.shape is Shape.CONSTANT:
            return self._scaled(merged(parts, others[0].shape, others[0].rises), others[0], _sign(node.this))
        if isinstance(node, exp.Mul | exp.Div) and fixed:
            return self._scaled(merged(parts, first.shape, first.rises), first, _sign(node.expression))
        if isinstance(node, exp.IntDiv) and fixed:
            rounded = merged(parts, max(first.shape, Shape.ROUGH), first.rises)
            return self._scaled(rounded, first, _sign(node.expression))
        if isinstance(node, exp.Div):
            ratio = max(first.shape, others[0].shape) is Shape.AFFINE
            whole = merged(parts, Shape.RATIO if ratio else max(first.shape, others[0].shape, Shape.SMOOTH), None)
            return replace(whole, divisors=whole.divisors | others[0].reads)
        if isinstance(node, exp.Mul):
            folded = bool(first.reads & others[0].reads)
            worst = max(first.shape, others[0].shape, Shape.SMOOTH)
            return merged(parts, Shape.FOLDED if folded else worst, None)
        if isinstance(node, exp.Cast | exp.TryCast):
            return self._cast(node, first)
        if isinstance(node, exp.Coalesce | exp.Nullif) and fixed:
            return replace(merged(parts, first.shape, first.rises), extreme=first.extreme)
        if isinstance(node, _ROUNDING) and fixed:
            return replace(merged(parts, max(first.shape, Shape.ROUGH), first.rises), extreme=first.extreme)
        if isinstance(node, _RISING) and fixed:
            return replace(merged(parts, max(first.shape, Shape.SMOOTH), first.rises), extreme=first.extreme)
        if isinstance(node, exp.Greatest | exp.Least):
            return merged(parts, Shape.FOLDED, together(*(part.rises for part in parts)))
        steps = (*_STEPS, *_ROUNDING, *_RISING, exp.IntDiv, exp.Coalesce, exp.Nullif)
        if isinstance(node, steps):
            return merged(parts, max(Shape.ROUGH, *(part.shape for part in parts)), None)
        # Folding ones, and whatever is not named above: the weakest claim.
        return merged(parts, Shape.FOLDED, None)

    @staticmethod
    def _scaled(whole: Trace, noisy: Trace, sign: int | None) -> Trace:
        """A noisy value times a constant, whose sign is None when it is not seen."""
        if sign is None or noisy.rises is None:
            return replace(whole, rises=None)
        return replace(whole, rises=noisy.rises * sign, extreme=noisy.extreme)

    @staticmethod
    def _cast(node: exp.Expr, inner: Trace) -> Trace:
        kind = node.args["to"].this
        if kind in _DOUBLES:
            return inner
        if kind in _NUMBERS:
            return replace(inner, shape=max(inner.shape, Shape.ROUGH))
        return replace(inner, shape=Shape.FOLDED, rises=None, extreme=None)

    def _case(self, node: exp.Expr) -> Trace:
        """CASE with conditions on keys is one of its branches; others are steps."""
        ifs = node.args.get("ifs") if isinstance(node, exp.Case) else [node]
        subject = [node.this] if isinstance(node, exp.Case) and node.this is not None else []
        conditions = [self.trace(part.this) for part in ifs or []] + [self.trace(part) for part in subject]
        branches = [self.trace(part.args["true"]) for part in ifs or []]
        default = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
        branches += [] if default is None else [self.trace(default)]
        everything = [*conditions, *branches]
        worst = max(part.shape for part in everything)
        worst = Shape.FOLDED if worst is Shape.RANK else worst
        if all(condition.constant for condition in conditions):
            return merged(everything, worst, together(*(branch.rises for branch in branches)))
        return merged(everything, max(worst, Shape.ROUGH), None)

    def _over_rows(self, inner: Trace, shape: Shape, rises: int | None, extreme: Extreme | None = None) -> Trace:
        """A function of the rows of the block."""
        cores = frozenset(core for core, _, _ in inner.reads)
        return Trace(
            reads=frozenset((core, name, None) for core, name, _ in inner.reads),
            across=inner.across | cores | self._rows,
            shape=shape,
            rises=rises,
            extreme=extreme,
            chosen=inner.chosen or self._chosen,
        )

    def _aggregate(self, node: exp.Expr, name: exp.Expr | None = None) -> Trace:
        """An aggregate, also one over a window with public partitions and order."""
        parts = [self.trace(child) for child in _operands(node)]
        inner = merged(parts, max((part.shape for part in parts), default=Shape.CONSTANT), None)
        if inner.shape is Shape.CONSTANT:
            return self._over_rows(inner, Shape.CONSTANT, 0)
        first = parts[0]
        plain = all(part.shape is Shape.CONSTANT for part in parts[1:]) and not isinstance(node.this, exp.Distinct)
        if plain and isinstance(node, exp.Sum | exp.Avg):
            shape = Shape.AFFINE if first.shape is Shape.AFFINE else Shape.FOLDED
            return self._over_rows(inner, shape, first.rises)
        if plain and isinstance(node, exp.Max | exp.Min):
            greatest = isinstance(node, exp.Max) == (first.rises == 1)
            # Of one number in each row; of several, any may decide.
            extreme: Extreme | None = ("max" if greatest else "min") if first.rises and len(first.reads) == 1 else None
            return self._over_rows(inner, Shape.FOLDED, first.rises, extreme)
        if plain and isinstance(node, exp.Median | exp.Quantile | exp.PercentileCont | exp.PercentileDisc):
            return self._over_rows(inner, Shape.FOLDED, first.rises)
        if plain and isinstance(node, _PICKS):
            return self._over_rows(inner, first.shape, first.rises)
        return self._over_rows(inner, Shape.FOLDED, None)

    def _within_group(self, node: exp.Expr) -> Trace:
        """PERCENTILE_CONT or PERCENTILE_DISC of the number that it sorts by, in either direction: as MEDIAN."""
        by = [self.trace(key) for key in _sorted_by(node.expression)]
        fraction = [self.trace(child) for child in _operands(node.this)]
        inner = merged([*by, *fraction], max(part.shape for part in (*by, *fraction)), None)
        if inner.shape is Shape.CONSTANT:
            return self._over_rows(inner, Shape.CONSTANT, 0)
        plain = len(by) == 1 and all(part.shape is Shape.CONSTANT for part in fraction)
        return self._over_rows(inner, Shape.FOLDED, by[0].rises if plain else None)

    def _window(self, node: exp.Window) -> Trace:
        function = node.this
        while isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
            function = function.this
        order = node.args.get("order")
        keys = [*(node.args.get("partition_by") or []), *([] if order is None else _sorted_by(order))]
        traces = [self.trace(key) for key in keys]
        named = node.args.get("alias") is not None or isinstance(node.args.get("over"), exp.Identifier)
        if named:
            return self._over_rows(UNKNOWN, Shape.FOLDED, None)
        if all(trace.constant for trace in traces):
            if isinstance(function, exp.Filter):
                inner = self.trace(function)
                return inner
            if isinstance(function, (*_RANKS, exp.DenseRank)):
                return self._over_rows(CONSTANT, Shape.CONSTANT, 0)
            return self._aggregate(function)
        by = [self.trace(key) for key in ([] if order is None else _sorted_by(order))]
        noisy = [trace for trace in by if not trace.constant]
        parted = all(self.trace(key).constant for key in node.args.get("partition_by") or [])
        whole = merged(traces, Shape.FOLDED, None)
        if isinstance(function, _RANKS) and parted and len(by) == len(noisy) == 1 and noisy[0].rises:
            ranked = replace(noisy[0], shape=Shape.RANK, rises=None, extreme=None)
            # The row's own number is read with its place; those of the others by the cores that are read across.
            return replace(ranked, across=ranked.across | self._rows, chosen=ranked.chosen or self._chosen)
        return self._over_rows(whole, Shape.FOLDED, None)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The expressions under a node, without types, names and stars."""
    found: list[exp.Expr] = []
    for child in node.iter_expressions():
        if isinstance(child, exp.Distinct):
            found.extend(child.expressions)
        elif not isinstance(child, exp.DataType | exp.Identifier | exp.Star | exp.Var):
            found.append(child)
    return found


def _sorted_by(order: exp.Expr) -> list[exp.Expr]:
    return [item.this if isinstance(item, exp.Ordered) else item for item in order.expressions]


def _sign(node: exp.Expr) -> int | None:
    """The sign of a constant factor; None when it is not written out or is zero."""
    if isinstance(node, exp.Paren):
        return _sign(node.this)
    if isinstance(node, exp.Neg):
        inner = _sign(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string:
        try:
            return 1 if float(node.this) > 0 else None
        except ValueError:
            return None
    return None
