"""Columns, difficult values and the comparison with DuckDB that the tests of the allow-list share."""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb
from hypothesis import strategies as st

from privacy.policy import ColumnType
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import (
    Call,
    ColumnRef,
    Expression,
    Interval,
    Literal,
    Value,
    columns_of,
    interval_of,
    walk,
)
from sql_rewrite.functions import REGISTRY
from sql_rewrite.lower_expression import ParameterList, lower
from sql_rewrite.scalars import engine_type

INTEGER, NUMBER, TEXT = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TEXT
BOOLEAN, DATE, TIMESTAMP = ColumnType.BOOLEAN, ColumnType.DATE, ColumnType.TIMESTAMP

I = ColumnRef("t", "i", INTEGER, declared=Interval(Fraction(-5), Fraction(10)))  # noqa: E741
J = ColumnRef("t", "j", INTEGER)
K = ColumnRef("t", "k", INTEGER, nullable=False)
X = ColumnRef("t", "x", NUMBER, declared=Interval(Fraction(1, 10), Fraction(199, 2)))
Y = ColumnRef("t", "y", NUMBER)
Z = ColumnRef("t", "z", NUMBER, nullable=False)
S = ColumnRef("t", "s", TEXT)
U = ColumnRef("t", 'odd "name', TEXT)
B = ColumnRef("t", "b", BOOLEAN)
C = ColumnRef("t", "c", BOOLEAN)
D = ColumnRef("t", "d", DATE)
E = ColumnRef("t", "e", DATE)
M = ColumnRef("t", "m", TIMESTAMP)
N = ColumnRef("t", "n", TIMESTAMP)
COLUMNS = (I, J, K, X, Y, Z, S, U, B, C, D, E, M, N)

_MAX = sys.float_info.max
EDGES: dict[ColumnType, tuple[Value, ...]] = {
    INTEGER: (
        *(None, 0, 1, -1, 2, 3, -3, 7, 10, -10, 50, 100, -12345, 86_400),
        *(2**31, -(2**31), 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63),
    ),
    NUMBER: (
        *(None, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.5, 0.1, 0.49999999999999994, 1.005, 2.675, 100.0),
        *(-7.5, 1e-300, 5e-324, -5e-324, 1e15 + 0.5, 4503599627370497.5, 2.0**53, 2.0**63, -(2.0**63), 1e19, 1e36),
        *(709.0, 710.0, -745.2, 1e154, 1.4e154, 1e300, _MAX, -_MAX, math.pi),
    ),
    TEXT: (
        *(None, "", " ", "a", "A", "ab", "aab", "%", "_", "a%b", "\\", "'", '"', "\t a \n", "\x00", "a\x00b"),
        *("0", "1", "-1", "+7", " 42 ", "1.5", "1e3", "1_000", "0x10", "9223372036854775807", "9223372036854775808"),
        *("-9223372036854775808", "1e400", ".5", "5.", ".", "e5", "nan", "inf", "true", "F", "yes", "TRUE ", "٣"),
        *("2024-02-29", "2023-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "2024-2-9", "2024-02-29 12:00:00"),
        *("2024-02-29T23:59:59.5", "2024-02-29 24:00:00", "2024-02-29 12:00", "10000-01-01", "infinity", "epoch"),
        *("ß", "ẞ", "İ", "ı", "ǅ", "Σς", "ŉ", "ᾀ", "é", "e\u0301", "日本", "👩‍👩‍👧", "\u00a0x\u3000", "\U0010ffff"),
        *("abc" * 7_000, "%" * 300, "9" * 500, "Straße", "STRASSE", "hospital north"),
    ),
    BOOLEAN: (None, False, True),
    DATE: (
        None,
        *(datetime.date(1, 1, 1), datetime.date(1, 12, 31), datetime.date(4, 2, 29), datetime.date(1582, 10, 4)),
        *(datetime.date(1582, 10, 15), datetime.date(1899, 12, 31), datetime.date(1900, 2, 28)),
        *(
            datetime.date(1969, 12, 31),
            datetime.date(1970, 1, 1),
            datetime.date(2000, 2, 29),
            datetime.date(2020, 1, 5),
        ),
        *(
            datetime.date(2020, 1, 6),
            datetime.date(2021, 1, 1),
            datetime.date(2024, 2, 29),
            datetime.date(2024, 12, 30),
        ),
        *(datetime.date(9999, 1, 1), datetime.date(9999, 12, 31)),
    ),
    TIMESTAMP: (
        None,
        *(datetime.datetime(1, 1, 1), datetime.datetime(1, 1, 1, 0, 0, 0, 1), datetime.datetime(4, 2, 29, 23, 59, 59)),
        *(datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime.datetime(1970, 1, 1)),
        *(
            datetime.datetime(1960, 1, 1, 0, 30, 0, 500_000),
            datetime.datetime(2020, 1, 5, 12),
            datetime.datetime(2020, 1, 6, 1),
        ),
        *(datetime.datetime(2024, 2, 29, 12, 34, 56, 120_000), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    ),
}
"""Values at the edges of what a snapshot can store. Doubles are finite, years are 1 to 9999."""

VALUES: dict[ColumnType, st.SearchStrategy[Any]] = {
    INTEGER: st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-20, 20)),
    NUMBER: st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.floats(-100, 100)),
    TEXT: st.one_of(st.none(), st.text(max_size=12), st.text("ab%_ 1.-", max_size=8)),
    BOOLEAN: st.sampled_from([None, False, True]),
    DATE: st.one_of(st.none(), st.dates()),
    TIMESTAMP: st.one_of(st.none(), st.datetimes()),
}

Row = Mapping[tuple[str, str], Value]


def key(column: ColumnRef) -> tuple[str, str]:
    """The column's key in a row."""
    return (column.relation, column.name)


def edge_rows(expression: Expression, limit: int = 600) -> list[Row]:
    """All combinations of edge values of the columns read, thinned evenly to a limit."""
    columns = columns_of(expression)
    values = [[v for v in EDGES[column.type] if column.nullable or v is not None] for column in columns]
    total = math.prod(map(len, values))
    strides = [math.prod(map(len, values[:place])) for place in range(len(values))]
    step = next(n for n in itertools.count(max(1, total // limit)) if math.gcd(n, total) == 1)  # meets every value
    return [
        {
            key(column): listed[place // before % len(listed)]
            for column, listed, before in zip(columns, values, strides, strict=True)
        }
        for place in range(0, total, step)
    ]


def row_strategy(expression: Expression, size: int = 25) -> st.SearchStrategy[list[Row]]:
    """Batches of random rows for the columns read."""
    fields = {
        key(column): VALUES[column.type] if column.nullable else VALUES[column.type].filter(lambda v: v is not None)
        for column in columns_of(expression)
    }
    return st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=size)


@functools.cache
def _connection(settings: tuple[str, ...]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for setting in settings:
        connection.execute(f"SET {setting}")
    return connection


STRICT = ("error_on_division_by_zero=true",)
QUIET = ("error_on_division_by_zero=false", "ieee_floating_point_ops=true")
LOUD = ("error_on_division_by_zero=true", "ieee_floating_point_ops=false")


def run(expression: Expression, rows: Sequence[Row], settings: tuple[str, ...] = QUIET) -> list[Value]:
    """The lowered SQL run by DuckDB on a table of these rows; raises what DuckDB raises."""
    connection = _connection(settings)
    columns = columns_of(expression)
    reads = [
        f'unnest(${place + 1}::{c.type.sql}[]) AS "{c.name.replace(chr(34), chr(34) * 2)}"'
        for place, c in enumerate(columns)
    ]
    reads.append(f"unnest(range({len(rows)})) AS row$number")
    lists: list[Any] = [[row[key(column)] for row in rows] for column in columns]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE t AS SELECT {', '.join(reads)}", lists)
    parameters = ParameterList()
    sql = DUCKDB.write(lower(expression, parameters))
    answer = connection.execute(
        f"SELECT {sql}, typeof({sql}) FROM t ORDER BY row$number", list(parameters.values)
    ).fetchall()
    assert {DUCKDB.types[engine_type(expression)]} >= {kind for _, kind in answer}, (
        "the SQL type is not the promised one"
    )
    return [value for value, _ in answer]


def is_exact(expression: Expression) -> bool:
    """Whether all operators of the expression are bit-exact in Python."""
    return all(REGISTRY[node.operator].exact for node in walk(expression) if isinstance(node, Call))


def same(expected: Value, found: Value, *, exact: bool) -> bool:
    """Whether both are the same value of the same Python type."""
    if type(expected) is not type(found):
        return False
    if isinstance(expected, float) and isinstance(found, float) and not exact:
        return math.isclose(expected, found, rel_tol=1e-14, abs_tol=1e-307)
    return expected == found


def check(expression: Expression, rows: Sequence[Row]) -> None:
    """DuckDB raises nothing, agrees with `evaluate`, and stays within type, range and NULL promise."""
    exact = is_exact(expression)
    found = run(expression, rows)
    interval = interval_of(expression)
    for row, value in zip(rows, found, strict=True):
        expected = evaluate(expression, row)
        assert same(expected, value, exact=exact), (expression, row, expected, value)
        if value is None:
            assert expression.nullable, (expression, row)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            assert math.isfinite(value)
            assert interval.contains(value), (expression, row, value, interval)


def check_settings(expression: Expression, rows: Sequence[Row]) -> None:
    """Nothing is raised whatever the connection's arithmetic settings are, and results do not depend on them."""
    expected = run(expression, rows)
    for settings in (STRICT, LOUD):
        assert expected == run(expression, rows, settings)


def number(value: float) -> Literal:
    """A NUMBER constant."""
    return Literal(value, NUMBER)


def integer(value: int) -> Literal:
    """An INTEGER constant."""
    return Literal(value, INTEGER)


def text(value: str) -> Literal:
    """A TEXT constant."""
    return Literal(value, TEXT)


def null(kind: ColumnType) -> Literal:
    """A NULL constant."""
    return Literal(None, kind)


def flatten(cases: Mapping[str, Iterable[Sequence[Expression]]]) -> list[tuple[str, tuple[Expression, ...]]]:
    """Pairs of operator and arguments."""
    return [(name, tuple(arguments)) for name, listed in cases.items() for arguments in listed]
