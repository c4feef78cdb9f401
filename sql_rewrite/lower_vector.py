"""What one row adds to moments of degree 3 and 4 and to products of two values: entries, and sums of their tails.

The entries of one value T in [0, W] at degree d are the terms of ((W-T) + T)^d; those of two values are the products of
the entries of both. A *tail* is the sum of an entry and all after it: a unit's vector is scaled as running sums, which
stay in order when each is rounded down (mechanisms/bounding.md). Nothing here is above the worth of a row, at most
2^60, and factors in brackets are at most six times a power of W: all of it fits 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from sql_rewrite.bounded import BoundedStatistic
from sql_rewrite.scalars import Arithmetic, ArithmeticSymbol, EngineType, Named, Scalar, Whole

__all__ = ["by_tails", "coordinates_of_values", "entries", "tail_names", "tails"]


def by_tails(item: BoundedStatistic) -> bool:
    """Whether a unit's rows are summed as tails of their vectors: the other statistics have fewer sums of their own."""
    return item.statistic.second is not None or item.statistic.degree > 2


def coordinates_of_values(item: BoundedStatistic) -> int:
    """The coordinates without that of NULL."""
    return item.statistic.coordinates - item.statistic.counts_nulls


def tail_names(item: BoundedStatistic) -> list[str]:
    """Columns of the sums of tails, without the first tail, which is the worth of the rows."""
    return [f"{item.statistic.name}z{i}" for i in range(1, coordinates_of_values(item))]


def entries(item: BoundedStatistic) -> list[Scalar]:
    """The entries of one row, from its integers `t` and (of the second value) `u`."""
    first, second = _both(item)
    if second is None:
        return _entries(*first)
    return [_times(one, other) for one in _entries(*first) for other in _entries(*second)]


def tails(item: BoundedStatistic) -> list[Scalar]:
    """The tails of one row except the first: NULL where a value is."""
    first, second = _both(item)
    if second is None:
        return _tails(*first)
    degree, width, _ = second
    whole = width**degree
    found: list[Scalar] = []
    later = [*_tails(*first), None]
    for place, (entry, after) in enumerate(zip(_entries(*first), later, strict=True)):
        # All entries whose first factor comes later, and of this one those from the second factor on.
        rest = None if after is None else _times(Whole(whole), after)
        if place:
            # Where the second value is NULL, a tail that does not read it has to be NULL too.
            start = _plus(_times(Whole(whole), entry), _times(Whole(0), second[2]))
            found.append(start if rest is None else _plus(start, rest))
        for tail in _tails(*second):
            part = _times(entry, tail)
            found.append(part if rest is None else _plus(part, rest))
    return found


_Value = tuple[int, int, Scalar]
"""Degree, width and name of a value."""


def _both(item: BoundedStatistic) -> tuple[_Value, _Value | None]:
    statistic, encoding = item.statistic, item.row_encoding
    assert encoding is not None
    first = (statistic.degree, encoding.highest, Named(f"{statistic.name}t"))
    if statistic.second is None:
        return first, None
    return first, (statistic.second_degree, statistic.second.highest, Named(f"{statistic.name}u"))


def _entries(degree: int, width: int, t: Scalar) -> list[Scalar]:
    left = _open("-", Whole(width), t)
    return [_product(_CHOICES[degree][i], [t] * i + [left] * (degree - i)) for i in range(degree + 1)]


_CHOICES = {1: (1, 1), 2: (1, 2, 1), 3: (1, 3, 3, 1), 4: (1, 4, 6, 4, 1)}
"""Binomial coefficients."""


def _tails(degree: int, width: int, t: Scalar) -> list[Scalar]:
    """The tails of one value except the first: polynomials in T."""
    left = _open("-", Whole(width), t)
    match degree:
        case 1:
            return [t]
        case 2:
            return [_times(t, _open("-", Whole(2 * width), t)), _times(t, t)]
        case 3:
            most = _open("-", Whole(3 * width), _times(Whole(2), t))  # up to 3 W
            return [_rest(width**3, [left] * 3), _product(1, [t, t, most]), _product(1, [t, t, t])]
        case 4:
            most = _plus(
                _open("-", Whole(6 * width**2), _times(Whole(8 * width), t)), _product(3, [t, t])
            )  # up to 6 W^2
            last = _open("-", Whole(4 * width), _times(Whole(3), t))
            return [
                _rest(width**4, [left] * 4),
                _product(1, [t, t, most]),
                _product(1, [t, t, t, last]),
                _product(1, [t, t, t, t]),
            ]
    raise AssertionError(f"moments of degree {degree} are not proved")


def _rest(whole: int, factors: Sequence[Scalar]) -> Scalar:
    return _open("-", Whole(whole), _product(1, factors))


def _product(factor: int, parts: Sequence[Scalar]) -> Scalar:
    result = parts[0] if factor == 1 else _times(Whole(factor), parts[0])
    for part in parts[1:]:
        result = _times(result, part)
    return result


def _times(one: Scalar, other: Scalar) -> Scalar:
    return _open("*", one, other)


def _plus(one: Scalar, other: Scalar) -> Scalar:
    return _open("+", one, other)


def _open(symbol: ArithmeticSymbol, left: Scalar, right: Scalar) -> Scalar:
    """Always in brackets, because an operator around it multiplies."""
    return Arithmetic(symbol, left, right, EngineType.INTEGER)
