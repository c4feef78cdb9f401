"""Bounded plan to the statement that an engine runs: generated SQL, bound parameters, named result columns.

Rows are encoded to integers, bounded per unit and group, and summed as 128-bit integers. The shapes (r = rows per
unit and group, C = groups per unit):

    one row per unit      rows -> group by key
    no choice of groups   rows -> group by unit and key, bound what the unit adds (lower_units.py) -> group by key
    choice of groups      rows -> keep C groups of each unit by a keyed hash -> as above

The window of the choice ranks groups (dense_rank) by a hash of the unit's secret draw and the key, with the key
itself as tie-break: two keys with one hash must not share a rank. The choice is a function of the unit's own rows
and of its draw alone, so it is the same on neighbouring data.

The engine finds groups by a hash that everybody can compute. One unit with many hidden keys could hold such that fall
in front of a group of others, and make each of their rows take longer. So groups of hidden keys have one more column,
made from the keys and a number that the worker draws for each run (SEED): what the hash of a group is, nobody knows
beforehand. Texts go through MD5, because texts with equal hashes can be made whatever comes after; different integers,
dates and moments always have different hashes. Where a unit has one row it has one key, and nothing is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import ColumnType
from privacy.statement import Statement, StatementKey, StatementSum
from privacy.statistic import StatisticKind
from sql_rewrite.bound import BoundedCore, BoundedStatistic
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, needs_wide
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.lower_units import UnitSums

__all__ = ["SEED", "UNITS_MAX", "lower"]

UNITS_MAX = 2**40
"""Most units (and rows) of a snapshot: a public constant that keeps every sum below 2^127."""

SEED = "getvariable('seed')"
"""The worker's number of this run; NULL where statements are only planned."""

_ARRAY_SUMS_MAX = 4
"""Most sums for an array with one entry per unit: 2^22 entries (the engine's setting) then stay below 1 GiB."""

KEY_CHARACTERS_MAX = 256
"""Characters of all hidden text keys of one group together. Every group that occurs travels to the mechanism, so an
answer's size tells how many there are: long keys would let a query choose the number at which it fails."""

_SPLIT = 2**62
_SQL_TYPES = {
    ColumnType.INTEGER: "BIGINT",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}


def lower(bounded: BoundedCore) -> Statement:
    """The statement of one core. A pure function: the same text for every state of the data."""
    return _Lowering(bounded).statement()


class _Lowering:
    def __init__(self, bounded: BoundedCore) -> None:
        self.bounded = bounded
        self.core = bounded.core
        self.parameters = ParameterList()
        self.keys = [name for name, _ in self.core.keys]

    def statement(self) -> Statement:
        if self.bounded.contribution.one_row:
            sums = self._rows_summed()
        else:
            sums = self._units_summed()
        keys = [f'"g"."{name}" AS "{name}"' for name in self.keys]
        columns = keys + [
            part
            for b in self.bounded.statistics
            for i in range(b.statistic.coordinates)
            for part in self._split(f"{b.statistic.name}_{i}", count=self._is_count(b))
        ]
        return Statement(
            sql=f'SELECT {", ".join(columns)} FROM ({sums}) AS "g"',
            parameters=tuple(self.parameters.values),
            keys=tuple(StatementKey(name, key.type) for name, key in self.core.keys),
            sums=tuple(
                StatementSum(f"{b.statistic.name}_{i}", UNITS_MAX * int(b.statistic.sensitivity.linf))
                for b in self.bounded.statistics
                for i in range(b.statistic.coordinates)
            ),
        )

    def _coordinates(self) -> list[str]:
        return [f"{b.statistic.name}_{i}" for b in self.bounded.statistics for i in range(b.statistic.coordinates)]

    def _is_count(self, bounded: BoundedStatistic) -> bool:
        """Whether the statistic is the engine's COUNT(*): a BIGINT that is never NULL and far below 2^62."""
        kind = bounded.statistic.kind
        if not self.bounded.contribution.one_row:
            return kind is StatisticKind.UNITS
        return kind in (StatisticKind.UNITS, StatisticKind.COUNT) and bounded.filter is None

    def _split(self, name: str, *, count: bool) -> tuple[str, str]:
        if count:
            return f'CAST(0 AS BIGINT) AS "{name}_high"', f'"g"."{name}" AS "{name}_low"'
        value = f'CAST(COALESCE("g"."{name}", 0) AS HUGEINT)'
        return (
            f'CAST({value} // {_SPLIT} AS BIGINT) AS "{name}_high"',
            f'CAST({value} % {_SPLIT} AS BIGINT) AS "{name}_low"',
        )

    # Rows

    def _from(self) -> str:
        parts = []
        for source in self.core.sources:
            table = f'"main"."{source.table.name}" AS "{source.relation}"'
            if source.join is None:
                parts.append(table)
            else:
                kind = "LEFT JOIN" if source.join.outer else "INNER JOIN"
                child, parent = source.join.child, source.join.parent
                parts.append(
                    f'{kind} {table} ON ("{child.relation}"."{child.name}" = "{parent.relation}"."{parent.name}")'
                )
        return " ".join(parts)

    def _base(self, *, with_unit: bool) -> str:
        """Rows with their keys, encoded values and filters.

        No row is left out for its key: all its values are in the public domain (`map_domain` says why), and the
        release refuses a group that is not.
        """
        columns = []
        root = self.core.sources[0].relation
        if with_unit:
            columns.append(f'"{root}"."unit$id" AS "u"')
            if self.bounded.contribution.choose_groups:
                columns.append(f'"{root}"."unit$draw" AS "d"')
        for (name, key), domain in zip(self.core.keys, self.bounded.domains, strict=True):
            columns.append(f'{self._key(key, public=domain is not None)} AS "{name}"')
        for bounded in self.bounded.statistics:
            columns += self._row_columns(bounded)
        where = "" if self.core.where is None else f" WHERE ({lower_expression(self.core.where, self.parameters)})"
        return f"SELECT {', '.join(columns) or '1'} FROM {self._from()}{where}"

    def _key(self, key: Expression, *, public: bool) -> str:
        text = lower_expression(key, self.parameters)
        if key.type is ColumnType.TEXT and not public:
            texts = sum(1 for _, other in self.core.keys if other.type is ColumnType.TEXT)
            most, whole = KEY_CHARACTERS_MAX // texts, f"CAST({text} AS VARCHAR)"
            cut = f"left({whole}, {most})"
            # A text of so many bytes has at most so many characters; counting characters takes far longer.
            return (
                f"CASE WHEN strlen({whole}) <= {most} THEN {whole} ELSE {cut} END"
                if isinstance(key, ColumnRef)
                else cut
            )
        if key.type is ColumnType.INTEGER and needs_wide(key):
            return f"TRY_CAST({text} AS BIGINT)"
        return f"CAST({text} AS {_SQL_TYPES[key.type]})"

    def _row_columns(self, bounded: BoundedStatistic) -> list[str]:
        """Per row: the encoded value `t`, the filter `f`, and whether a value is there `h`, of one statistic."""
        name = bounded.statistic.name
        columns = []
        if bounded.argument is not None:
            columns.append(f'{self._encoded(bounded)} AS "{name}t"')
        if bounded.filter is not None:
            columns.append(f'COALESCE({lower_expression(bounded.filter, self.parameters)}, FALSE) AS "{name}f"')
        if bounded.present is not None:
            columns.append(f'{lower_expression(bounded.present, self.parameters)} AS "{name}h"')
        return columns

    def _encoded(self, bounded: BoundedStatistic) -> str:
        """The integer T of a value: moved to whole steps and clipped; NULL for NULL.

        The clip is on integers, so the bound is true whatever floating-point arithmetic came before it.
        """
        encoding, argument = bounded.statistic.encoding, bounded.argument
        assert encoding is not None
        assert argument is not None
        offset, step = encoding.offset, encoding.step
        ends = offset + encoding.lowest * step, offset + encoding.highest * step
        whole = step.numerator == 1 and all(end.denominator == 1 for end in (offset, *ends))
        if argument.type is ColumnType.INTEGER and whole:
            lowest, highest = int(ends[0]), int(ends[1])
            value = lower_expression(_unclipped(argument, lowest, highest), self.parameters)
            clipped = (
                f"CASE WHEN {value} < {lowest} THEN {lowest} WHEN {value} > {highest} THEN {highest} ELSE {value} END"
            )
            moved = f"(CAST({clipped} AS BIGINT) - {offset.numerator})"
            return moved if step == 1 else f"({moved} * {step.denominator})"
        value = lower_expression(argument, self.parameters)
        # The argument lies between its bounds already (clip_columns); TRY_CAST and the clip of T keep the statement
        # total and the bound true even if it did not. GREATEST and LEAST ignore NULL, so NULL is kept out of them.
        steps = (
            f"TRY_CAST(ROUND((CAST({value} AS DOUBLE) - {_double(float(offset))}) / {_double(float(step))}) AS BIGINT)"
        )
        inside = f"GREATEST({encoding.lowest}, LEAST({steps}, {encoding.highest}))"
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE {inside} END"

    def _vector(self, bounded: BoundedStatistic) -> list[str]:
        """The integers that one row of the base adds to each coordinate (NULL: nothing)."""
        statistic = bounded.statistic
        name = statistic.name
        when = f'"{name}f"' if bounded.filter is not None else None

        def only(text: str) -> str:
            return text if when is None else f"CASE WHEN {when} THEN {text} END"

        if statistic.kind in (StatisticKind.UNITS, StatisticKind.COUNT):
            return [only("1")]
        t = f'"{name}t"'
        if statistic.kind is StatisticKind.SUM:
            return [only(t)]
        assert statistic.encoding is not None
        width = statistic.encoding.highest
        if statistic.degree == 1:
            parts = [f"({width} - {t})", t]
        else:
            parts = [f"({width} - {t}) * ({width} - {t})", f"2 * {t} * ({width} - {t})", f"{t} * {t}"]
        if statistic.counts_nulls:
            parts.append(f"CASE WHEN {t} IS NULL THEN CAST({width**statistic.degree} AS BIGINT) END")
        return [only(part) for part in parts]

    def _group(self, names: Sequence[str], *, sums: int) -> str:
        """GROUP BY these columns, by hashing unless they are units alone with a few sums.

        For integers and dates the engine may instead allocate one entry for every value between the least and the
        greatest. One person's extreme date would then decide about gigabytes of memory, and so about failure: a
        group of text, even a constant one, rules that out. Numbers of units are dense, and worth the faster form.
        """
        if not names:
            return ""
        listed = [f'"{name}"' for name in names]
        if self.keys or sums > _ARRAY_SUMS_MAX:
            listed.append("CAST('' AS VARCHAR)")
        return " GROUP BY " + ", ".join(listed)

    def _rows_summed(self) -> str:
        columns = [f'"{name}"' for name in self.keys]
        for bounded in self.bounded.statistics:
            for i, text in enumerate(self._vector(bounded)):
                aggregate = "COUNT(*)" if text == "1" else f"SUM({text})"
                columns.append(f'{aggregate} AS "{bounded.statistic.name}_{i}"')
        grouped = self._group(self.keys, sums=len(self._coordinates()))
        return f'SELECT {", ".join(columns)} FROM ({self._base(with_unit=False)}) AS "b"{grouped}'

    # Units

    def _units_summed(self) -> str:
        """Partial sums per unit and group, held to what its rows are worth, then summed per group."""
        rows = self._base(with_unit=True)
        contribution = self.bounded.contribution
        if contribution.choose_groups:
            hashed = ", ".join(['"d"', *[f'"{name}"' for name in self.keys]])
            order = ", ".join([f"hash({hashed})", *[f'"{name}"' for name in self.keys]])
            rows = (
                f'SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY "u" ORDER BY {order}) AS "rank" '
                f'FROM ({rows}) AS "b") AS "w" WHERE "rank" <= {contribution.groups}'
            )
        unit_sums = UnitSums(self.bounded)
        names = list(self.keys)
        salt = self._salt()
        if salt is not None:
            rows = f'SELECT *, {salt} AS "s" FROM ({rows}) AS "h"'
            names.insert(0, "s")
        keys = [f'"{name}"' for name in self.keys]
        columns = unit_sums.partial()
        listed = ", ".join(['"u"', *[f'"{name}"' for name in names], *columns])
        text = f'SELECT {listed} FROM ({rows}) AS "r"{self._group(["u", *names], sums=len(columns))}'
        text = unit_sums.with_totals(text)
        for place, layer in enumerate(unit_sums.masses()):
            if layer:
                text = f'SELECT *, {", ".join(layer)} FROM ({text}) AS "p{place}"'
        listed = ", ".join([*keys, *unit_sums.sums()])
        return f'SELECT {listed} FROM ({text}) AS "p"{self._group(names, sums=len(self._coordinates()))}'

    def _salt(self) -> str | None:
        """A number that follows from the hidden keys and the seed; None without hidden keys."""
        salt: str | None = None
        for (name, key), domain in zip(self.core.keys, self.bounded.domains, strict=True):
            if domain is None:
                value = f'md5_number(concat({SEED}, "{name}"))' if key.type is ColumnType.TEXT else f'"{name}"'
                salt = f"hash({value}, {SEED})" if salt is None else f"hash({salt}, {value}, {SEED})"
        return salt


def _unclipped(argument: Expression, lowest: int, highest: int) -> Expression:
    """The argument without a clip of its own that the clip to the same bounds repeats: the engine plans both."""
    if isinstance(argument, Call) and argument.operator == "clip":
        inner, low, high = argument.arguments
        if isinstance(low, Literal) and isinstance(high, Literal) and (low.value, high.value) == (lowest, highest):
            return inner
    return argument


def _double(value: float) -> str:
    """A double literal that reads back to the same number."""
    return f"CAST('{value!r}' AS DOUBLE)"
