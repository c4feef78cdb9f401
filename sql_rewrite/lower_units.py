"""What one unit adds to one group, as SQL: its rows allotted, its sums held to the worth of the allotted rows.

Four layers, each a SELECT over the one before. The second is there only where the bound over all groups may bind, the
third and fourth name what the integers of a vector are made of:

    1  per unit and group: n rows under each filter, and per statistic its rows n, sums x of T and y of T^2
    2  per unit: m, the rows of all its groups, each clipped to r; NULL where they are not too many
    3  v, what the unit's rows are worth; k and l, running sums of the scaled vector; a, what all rows are worth (NULLs
       too); s, the clipped sum
    4  per group: the sums over units

Names are those of the statistics (s0n, s0x, ...) and of the filters (n0, m0, ...). Every quotient is of non-negative
integers and rounds down. mechanisms/bounding.md says why the bounds hold, and that nothing leaves 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from privacy.statistic import Encoding, StatisticKind
from sql_rewrite.bound import BoundedCore, BoundedStatistic
from sql_rewrite.contribution import Bounding
from sql_rewrite.expressions import canonical

__all__ = ["UnitSums"]


class UnitSums:
    """The layers of one core."""

    def __init__(self, bounded: BoundedCore) -> None:
        self.contribution = bounded.contribution
        self.statistics = bounded.statistics
        self.filters: dict[str, int] = {}
        for item in bounded.statistics:
            if _needs_rows(item):
                self.filters.setdefault(_form(item), len(self.filters))

    def partial(self) -> list[str]:
        """Layer 1: columns beside the unit and the keys."""
        counted: dict[int, str] = {}
        for item in self.statistics:
            if _needs_rows(item):
                i = self._filter(item)
                counted.setdefault(i, f'{_count(item, "1")} AS "n{i}"')
        columns = list(counted.values())
        for item in self.statistics:
            columns += self._partial(item)
        return columns

    def _partial(self, item: BoundedStatistic) -> list[str]:
        name, kind = item.statistic.name, item.statistic.kind
        t = f'"{name}t"'
        total = f'SUM({_under(item, t)}) AS "{name}x"'
        match kind:
            case StatisticKind.UNITS:
                return []
            case StatisticKind.COUNT:
                return [] if item.present is None else [f'{_count(item, _present(name))} AS "{name}n"']
            case StatisticKind.SUM:
                return [total]
            case StatisticKind.MOMENTS:
                squares = [f'SUM({_under(item, f"{t} * {t}")}) AS "{name}y"'] if item.statistic.degree == 2 else []
                return [total, f'COUNT({_under(item, t)}) AS "{name}n"', *squares]
            case _:
                assert_never(kind)

    def totals(self) -> dict[str, str]:
        """The unit's rows over all its groups, by name, for each filter under which they may be too many."""
        numbers = sorted({self._filter(item) for item in self.statistics if item.scaled})
        rows = self.contribution.rows
        return {f"m{i}": f'CAST(SUM(CASE WHEN "n{i}" > {rows} THEN {rows} ELSE "n{i}" END) AS BIGINT)' for i in numbers}

    def with_totals(self, partial: str) -> str:
        """Layer 2 over layer 1: `partial` with the totals of units that are beyond the bound, NULL for all others.

        A window over all units would cost four times as much: few units are beyond the bound. The row of no unit is
        there so that some row always is: the engine skips a join with nothing, so that the first unit beyond the bound
        would make all rows of the others look for their totals, and take longer.
        """
        totals = self.totals()
        if not totals:
            return partial
        listed = ", ".join(f'{text} AS "{name}"' for name, text in totals.items())
        beyond = " OR ".join(f"{text} > {self.contribution.total}" for text in totals.values())
        names = ", ".join(f'"m"."{name}"' for name in totals)
        nobody = ", ".join(["-1", *["CAST(NULL AS BIGINT)" for _ in totals]])
        # Numbers of units are dense, and worth the engine's array; with many sums it would be a large one (lower.py).
        unit = '"u"' if len(totals) <= 3 else "\"u\", CAST('' AS VARCHAR)"
        return (
            f'WITH "pp" AS MATERIALIZED ({partial}) SELECT "a".*, {names} FROM "pp" AS "a" LEFT JOIN '
            f'(SELECT "u", {listed} FROM "pp" GROUP BY {unit} HAVING {beyond} UNION ALL SELECT {nobody}) AS "m" '
            'ON ("a"."u" = "m"."u")'
        )

    def masses(self) -> tuple[list[str], list[str]]:
        """Layer 3, in two steps: what values and rows are worth and the scaled vector; then the clipped sum."""
        first: list[str] = []
        second: list[str] = []
        for item in self.statistics:
            if item.statistic.kind is not StatisticKind.MOMENTS:
                continue
            name, encoding = item.statistic.name, _encoding(item)
            size = encoding.highest**item.statistic.degree
            first.append(f'{self._worth(item, size)} AS "{name}v"')
            if item.statistic.counts_nulls:
                first.append(f'{self._allotted(item, size)} AS "{name}a"')
            if item.bounding is not Bounding.CLIPPED:
                x, y = (f'COALESCE("{name}{part}", 0)' for part in "xy")
                first.append(f'{self._scaled(item, x if item.statistic.degree == 1 else y)} AS "{name}k"')
                if item.statistic.degree == 2:
                    first.append(f'{self._scaled(item, f"({2 * encoding.highest} * {x} - {y})")} AS "{name}l"')
            if item.bounding is not Bounding.SCALED:
                second.append(f'{self._clipped_moment(item)} AS "{name}s"')
        return first, second

    def sums(self) -> list[str]:
        """Layer 4: every coordinate of every statistic."""
        columns = []
        for item in self.statistics:
            name = item.statistic.name
            if item.statistic.kind is StatisticKind.UNITS:
                columns.append(f'COUNT(*) AS "{name}_0"')
                continue
            bound = int(item.statistic.sensitivity.linf)
            for i, text in enumerate(self._coordinates(item)):
                columns.append(f'SUM({_narrow(text, bound)}) AS "{name}_{i}"')
        return columns

    def _coordinates(self, item: BoundedStatistic) -> Sequence[str]:
        name, kind = item.statistic.name, item.statistic.kind
        match kind:
            case StatisticKind.COUNT:
                return [self._counted(item)]
            case StatisticKind.SUM:
                x, encoding = f'"{name}x"', _encoding(item)
                return [self._clipped(item, x, min(encoding.lowest, 0), max(encoding.highest, 0))]
            case StatisticKind.MOMENTS:
                return self._moments(item)
            case StatisticKind.UNITS:
                raise AssertionError("units are counted, not summed")
            case _:
                assert_never(kind)

    def _moments(self, item: BoundedStatistic) -> list[str]:
        name = item.statistic.name
        v, k, s = f'"{name}v"', f'"{name}k"', f'"{name}s"'
        match item.bounding:
            case Bounding.SCALED if item.statistic.degree == 2:
                parts = [f'({v} - "{name}l")', f'("{name}l" - {k})', k]
            case Bounding.SCALED:
                parts = [f"({v} - {k})", k]
            case Bounding.CLIPPED:
                assert item.statistic.degree == 1
                parts = [f"({v} - {s})", s]
            case Bounding.BOTH:
                assert item.statistic.degree == 1
                parts = [f"({v} - GREATEST({k}, {s}))", f"LEAST({k}, {s})"]
                if item.statistic.raised:
                    parts.append(f"GREATEST({s} - {k}, 0)")
                if item.statistic.lowered:
                    parts.append(f"GREATEST({k} - {s}, 0)")
            case _:
                assert_never(item.bounding)
        if item.statistic.counts_nulls:
            parts.append(f'("{name}a" - {v})')
        return parts

    # What rows are worth

    def _filter(self, item: BoundedStatistic) -> int:
        return self.filters[_form(item)]

    def _rows(self, item: BoundedStatistic) -> str:
        """c: the unit's rows in the group, clipped to r."""
        n = f'"n{self._filter(item)}"'
        return f"CASE WHEN {n} > {item.rows} THEN {item.rows} ELSE {n} END"

    def _values(self, item: BoundedStatistic) -> str:
        """c': those with a value, clipped to r."""
        n = f'"{item.statistic.name}n"'
        return f"CASE WHEN {n} > {item.rows} THEN {item.rows} ELSE {n} END"

    def _over(self, item: BoundedStatistic) -> str:
        """Whether the unit has more rows than the bound over all groups: m > R."""
        return f'"m{self._filter(item)}" > {self.contribution.total}'

    def _fewer(self, item: BoundedStatistic) -> str:
        """Whether the allotted part c R / m is less than the unit's rows with a value."""
        m, total = f'"m{self._filter(item)}"', self.contribution.total
        return f"{self._over(item)} AND ({self._rows(item)}) * {total} < {m} * ({self._values(item)})"

    def _part(self, item: BoundedStatistic, size: int) -> str:
        """floor(size c R / m)."""
        total = self.contribution.total * size
        return f'(CAST({self._rows(item)} AS HUGEINT) * CAST({total} AS HUGEINT)) // "m{self._filter(item)}"'

    def _allotted(self, item: BoundedStatistic, size: int) -> str:
        """What the unit's allotted rows are worth, at `size` each."""
        whole = f"({self._rows(item)}) * {_wide(size)}"
        return f"CASE WHEN {self._over(item)} THEN {self._part(item, size)} ELSE {whole} END" if item.scaled else whole

    def _worth(self, item: BoundedStatistic, size: int) -> str:
        """What the unit's rows with a value are worth: at most the allotted ones."""
        whole = f"({self._values(item)}) * {_wide(size)}"
        return f"CASE WHEN {self._fewer(item)} THEN {self._part(item, size)} ELSE {whole} END" if item.scaled else whole

    def _counted(self, item: BoundedStatistic) -> str:
        size = 1 if item.statistic.encoding is None else item.statistic.encoding.highest
        if item.present is not None:
            return self._worth(item, size)
        return self._allotted(item, size)

    # Values

    def _scaled(self, item: BoundedStatistic, running: str) -> str:
        """A running sum of the vector, scaled to r rows and then to the allotted part of them."""
        n, rows = f'"{item.statistic.name}n"', item.rows
        text = f"CASE WHEN {n} > {rows} THEN ({running} * CAST({rows} AS HUGEINT)) // {n} ELSE {running} END"
        if not item.scaled:
            return text
        m, total = f'"m{self._filter(item)}"', self.contribution.total
        part = f"({text}) * (({self._rows(item)}) * {total}) // ({m} * ({self._values(item)}))"
        return f"CASE WHEN {self._fewer(item)} THEN {part} ELSE {text} END"

    def _clipped(self, item: BoundedStatistic, x: str, lowest: int, highest: int) -> str:
        """x held to the worth of the allotted rows, each between `lowest` <= 0 and `highest` >= 0."""

        def most(limit: int) -> str:
            whole = str(item.rows * limit)
            if not item.scaled or not limit:
                return whole
            return f"(CASE WHEN {self._over(item)} THEN {self._part(item, limit)} ELSE {whole} END)"

        low, high = f"(-{most(-lowest)})", most(highest)
        return f"CASE WHEN {x} < {low} THEN {low} WHEN {x} > {high} THEN {high} ELSE {x} END"

    def _clipped_moment(self, item: BoundedStatistic) -> str:
        """The clipped sum in steps above the lower bound, held to [0, v] whatever happened before."""
        name, encoding = item.statistic.name, _encoding(item)
        low = int(encoding.offset / encoding.step)
        high = low + encoding.highest
        x = f'COALESCE("{name}x", 0)'
        if low:
            x = f'({x} + {low} * CAST("{name}n" AS HUGEINT))'
        text = f"({self._clipped(item, x, min(low, 0), max(high, 0))})"
        v = f'"{name}v"'
        if low:
            shift = f"(CAST({v} AS HUGEINT) * {abs(low)}) // {encoding.highest}"
            text = f"({text} {'-' if low > 0 else '+'} {shift})"
        if item.bounding is Bounding.BOTH and not item.statistic.lowered:
            text = f'GREATEST({text}, "{name}k")'
        if item.bounding is Bounding.BOTH and not item.statistic.raised:
            text = f'LEAST({text}, "{name}k")'
        return f"GREATEST(0, LEAST({text}, {v}))"


def _needs_rows(item: BoundedStatistic) -> bool:
    """Whether the number of rows under the filter decides what the statistic gets."""
    if item.statistic.kind is StatisticKind.UNITS:
        return False
    return item.scaled or item.statistic.kind is StatisticKind.COUNT or item.statistic.counts_nulls


def _form(item: BoundedStatistic) -> str:
    return repr(None if item.filter is None else canonical(item.filter))


def _under(item: BoundedStatistic, text: str) -> str:
    """The expression on rows under the filter."""
    return text if item.filter is None else f'CASE WHEN "{item.statistic.name}f" THEN {text} END'


def _count(item: BoundedStatistic, condition: str) -> str:
    """The number of rows under the filter for which an expression is not NULL."""
    text = _under(item, condition)
    return "COUNT(*)" if text == "1" else f"COUNT({text})"


def _present(name: str) -> str:
    return f'CASE WHEN "{name}h" THEN 1 END'


def _encoding(item: BoundedStatistic) -> Encoding:
    assert item.statistic.encoding is not None
    return item.statistic.encoding


def _wide(size: int) -> str:
    """A factor of a number of rows; wide where the product of both may leave 64 bits."""
    return str(size) if size < 2**40 else f"CAST({size} AS HUGEINT)"


def _narrow(text: str, bound: int) -> str:
    """Casts a bounded partial sum to 64 bits where it fits: the outer sum is then much faster."""
    return f"CAST({text} AS BIGINT)" if bound < 2**63 else text
