"""The values of rows as whole numbers of steps, in one layer of a statement or in two.

Claim. In two layers (`in_two_layers`) a row's integer is what one layer makes of it: the nearest whole number of steps
from the offset to the clipped value, held to the ends of the encoding; NULL for NULL.

Proof. Let f be the way from a value to a whole double: conversion to double, difference, product with a power of two
(or quotient), nearest whole number. Each is monotone, since each rounds to the nearest. So for ends low <= high of a
clip, f(min(max(x, low), high)) = min(max(f(x), f(low)), f(high)): the clip may follow f, at f(low) and f(high), which
`_way` computes here with the same operations of doubles. To hold that to [lowest, highest] too is to hold f(x) to [a,
b], with a and b the two ends f(low) and f(high) held to [lowest, highest]; a clip to an interval and then to another
one is the clip to the ends of the first that are held to the second. All ends are below 2^53, so doubles hold them,
and the cast of what lies between them is exact and never fails; NaN is above all numbers, before and after. The bound
is therefore true whatever floating-point arithmetic came before it, as in one layer.

Claim 2. A whole double v is beyond ends low <= high, whole and at most 2^50 in size, if and only if |v - m| > h in
doubles, with m = (low + high) / 2 and h = (high - low) / 2. Proof. Both are multiples of 1/2 of at most 2^51 in size,
so doubles hold them and h + 1. Differences are rounded to the nearest double, which is monotone. If low <= v <= high,
the exact |v - m| is at most h, and rounded it is at most h. Else it is at least h + 1, and so it is when rounded. An
infinite v is beyond, and so is what is not a number, whose size is above all numbers. QED. One comparison takes the
place of two for each value between the ends, as most are.

What it saves: a value is written once and not four times, and the engine computes it once. In one layer it is repeated
in branches of a CASE, of which the engine shares none.
"""

from __future__ import annotations

import math
from fractions import Fraction

from privacy.policy import ColumnType
from privacy.statistic import Encoding
from sql_rewrite.expressions import Call, Expression, Literal
from sql_rewrite.layer_values import HeldSteps, NearestSteps, Steps
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.relations import Output, Projected, Relation, TableRows
from sql_rewrite.scalars import Arithmetic, Cast, Clip, EngineType, Named, Scalar, Whole

__all__ = ["in_two_layers", "steps_of"]

_EXACT = 2**53
"""Whole numbers up to here are doubles."""

_CENTRED = 2**50
"""Ends up to here have a middle that is a double, and so has what is one beyond them."""


def steps_of(argument: Expression, encoding: Encoding, parameters: ParameterList, *, layered: bool) -> Scalar:
    """The integer T of a value: moved to whole steps and clipped; NULL for NULL.

    The clip is on integers, so the bound is true whatever floating-point arithmetic came before it. With `layered` it
    is for `in_two_layers`, which needs no clip of its own below it.
    """
    offset, step = encoding.offset, encoding.step
    ends = offset + encoding.lowest * step, offset + encoding.highest * step
    whole = step.numerator == 1 and all(end.denominator == 1 for end in (offset, *ends))
    if argument.type is ColumnType.INTEGER and whole:
        lowest, highest = int(ends[0]), int(ends[1])
        value = lower_expression(_unclipped(argument, lowest, highest), parameters)
        clipped = Cast(Clip(value, Whole(lowest), Whole(highest), closed=False), EngineType.INTEGER)
        moved = Arithmetic("-", clipped, Whole(offset.numerator), EngineType.INTEGER)
        return moved if step == 1 else Arithmetic("*", moved, Whole(step.denominator), EngineType.INTEGER)
    low, high = encoding.lowest, encoding.highest
    if layered and _fits(low, high):
        argument, low, high = _clip_later(argument, encoding)
    # The argument lies between its bounds already (clip_columns). The bound is true even if it did not.
    return Steps(lower_expression(argument, parameters), offset, step, low, high)


def in_two_layers(rows: TableRows) -> Relation:
    """The rows whose values are steps, with these rounded in one layer and held to their ends in the next."""
    inner: list[Output] = []
    outer: list[Output] = []
    for output in rows.outputs:
        value = output.value
        if isinstance(value, Steps) and _fits(value.lowest, value.highest):
            inner.append(Output(NearestSteps(value.value, value.offset, value.step), output.name))
            low, high = value.lowest, value.highest
            centred = max(-low, high) <= _CENTRED
            outer.append(Output(HeldSteps(Named(output.name), low, high, centred), output.name))
        else:
            inner.append(output)
            outer.append(Output(Named(output.name), output.name))
    if inner == list(rows.outputs):
        return rows
    return Projected(TableRows(tuple(inner), rows.sources, rows.where), "e", tuple(outer))


def _fits(lowest: int, highest: int) -> bool:
    return max(-lowest, highest) <= _EXACT


def _clip_later(argument: Expression, encoding: Encoding) -> tuple[Expression, int, int]:
    """What a clip to constants is of, and the ends to which its steps are held; any other argument as it is."""
    lowest, highest = encoding.lowest, encoding.highest
    if isinstance(argument, Call) and argument.operator == "clip":
        inner, low, high = argument.arguments
        if isinstance(low, Literal) and isinstance(high, Literal):
            ends = [_way(end.value, encoding) for end in (low, high)]
            if None not in ends:
                first, last = (min(max(end, lowest), highest) for end in ends if end is not None)
                return inner, first, last
    return argument, lowest, highest


def _way(value: object, encoding: Encoding) -> int | None:
    """The whole steps from the offset to a number, in the operations of doubles that the engine does."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    way = (float(value) - float(encoding.offset)) / float(encoding.step)
    if not math.isfinite(way):
        return None
    size = math.floor(abs(Fraction(way)) + Fraction(1, 2))  # halves away from zero
    return size if way > 0 else -size


def _unclipped(argument: Expression, lowest: int, highest: int) -> Expression:
    """The argument without its own clip to the same bounds, which would be repeated: the engine plans both."""
    if isinstance(argument, Call) and argument.operator == "clip":
        inner, low, high = argument.arguments
        if isinstance(low, Literal) and isinstance(high, Literal) and (low.value, high.value) == (lowest, highest):
            return inner
    return argument
