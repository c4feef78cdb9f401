"""Every operator of the allow-list against DuckDB: total, typed, within its range, and equal to its reference."""

from __future__ import annotations

import dataclasses
import datetime
import functools
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privacy.policy import ColumnType
from privacy.refusal import Refused
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import (
    BIGINT,
    Call,
    ColumnRef,
    Expression,
    Interval,
    Literal,
    describe,
    interval_of,
    needs_wide,
)
from sql_rewrite.functions import REGISTRY, TypeRefused, bounds_of, build, cast, clip_columns, ranges
from sql_rewrite.functions.__main__ import tables
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.lower_expression import ParameterList, lower
from sql_rewrite.syntax import parse
from tests.sql_rewrite.function_cases import (
    BOOLEAN,
    COLUMNS,
    DATE,
    EDGES,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    B,
    C,
    D,
    E,
    I,
    J,
    K,
    M,
    N,
    S,
    U,
    X,
    Y,
    Z,
    check,
    check_settings,
    edge_rows,
    flatten,
    integer,
    null,
    number,
    row_strategy,
    run,
    text,
)

_PAIRS = [(I, J), (X, Y), (I, X), (Y, J), (S, U), (B, C), (D, E), (M, N), (D, N), (M, E)]
_NUMBER_PAIRS = [(I, J), (K, K), (X, Y), (Z, Z), (I, Y), (X, J), (J, integer(7)), (Y, number(0.5)), (J, null(INTEGER))]
_LITERALS = [(J, integer(3)), (J, number(2.5)), (Y, integer(2)), (S, text("ab")), (D, text("2024-02-29"))]
_LITERALS += [
    (M, text("2024-02-29")),
    (M, text("2024-02-29 12:34:56.12")),
    (D, Literal(datetime.datetime(2020, 1, 6), TIMESTAMP)),
]
_COMPARED = _PAIRS + _LITERALS + [(J, null(INTEGER)), (J, integer(2**70)), (build("multiply", (J, J)), K)]
_NUMBERS = [(I,), (J,), (K,), (X,), (Y,), (Z,), (build("multiply", (I, J)),), (build("add", (X, Y)),)]
_DATES = [(D,), (M,)]
_PATTERNS = ["", "%", "_", "a%", "%b", "%a%", "a_%", "%a_%b%", "a\\%b", "%%", "_%_", "é", "%日_"]
_UNITS = ["year", "quarter", "month", "week", "day"]
_CLOCK = ["hour", "minute", "second"]
_LONG = ["decade", "century"]
_POWERS = [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, 1 / 3, -0.5, 100.0, 400.0]
_KNOWN = build("greatest", (integer(0), build("least", (J, integer(200)))))
_SMALL = build("greatest", (number(-3.0), build("least", (Y, number(4.0)))))
_REGULAR = [
    "",
    "a",
    "^a",
    "a$",
    "^$",
    "a|b|",
    "(a+)b",
    "(a|b)*?b",
    r"\d+",
    r"(\d{4})-\d{2}",
    r"^\s*\w+\s*$",
    "[^a-c]",
    r"\bb",
]
_REGULAR += [
    "é",
    "[é-日]",
    ".",
    "^..$",
    r"\.",
    "a{2}b",
    "(?:ab|b){1,3}$",
    "(a??)(b)",
    r"\x{0}",
    "[]a-]".replace("]a", r"\]a"),
]
_REGULAR += [r"^(\S+) (\S+)", "^(.*)$", "(a|ab)(c|bcd)?", "x*", r"(\w)$", "[%_]", r"^[+-]?[0-9]+(?:\.[0-9]*)?$"]
_FORMATS = ["%Y-%m", "%d.%-m.%y %H:%M:%S", "é%A%B%a%b%%", "%j %-d %-H %I %f %g %p", "%u %w %G-W%V", "no date"]
_CLIPPED_DAY = build("clip", (D, Literal(datetime.date(1970, 1, 1), DATE), Literal(datetime.date(2024, 2, 29), DATE)))
_INTERVALS = [(1, 0, 0), (-1, 0, 0), (12, -1, 0), (0, 30, 0), (0, 0, 90_000_000_000), (-14, 3, -1), (0, 0, 0)]
_INTERVALS += [(120_000, 0, 0), (-120_000, 3_660_000, 0), (0, -3_660_000, 3_660_000 * 86_400_000_000)]

CASES: dict[str, list[tuple[Expression, ...]]] = {
    "and": [(B, C), (B, C, build("not", (B,)))],
    "or": [(B, C), (B, C, build("not", (B,)))],
    "not": [(B,)],
    **{name: list(_COMPARED) for name in ("=", "<>", "<", "<=", ">", ">=", "is_distinct_from", "is_not_distinct_from")},
    "is_null": [(J,), (Y,), (S,), (B,), (D,), (M,), (build("divide", (J, K)),)],
    "is_not_null": [(J,), (Y,), (S,), (B,), (D,), (M,), (build("divide", (J, K)),)],
    "in": [
        (J, integer(1), integer(2**63 - 1), null(INTEGER)),
        (J, integer(1), number(0.5)),
        (Y, integer(1), number(0.5)),
        (S, text("a"), text("日本"), text("")),
        (D, text("2024-02-29"), text("0001-01-01")),
        (B, Literal(True, BOOLEAN)),
        (build("multiply", (J, J)), integer(4)),
    ],
    "case": [
        (B, J, I),
        (B, J, C, X, Y),
        (B, S),
        (build(">", (J, K)), D, B, M, N),
        (B, null(INTEGER), J),
        (B, build("multiply", (J, J)), J),
        (B, number(1.5), integer(2)),
    ],
    "coalesce": [(I, J), (I, K), (X, Y, Z), (J, X), (S, text("missing")), (D, M), (B, C), (J, integer(0)), (K, J)],
    "nullif": [
        (I, J),
        (X, Y),
        (J, number(2.0)),
        (Y, integer(1)),
        (S, text("")),
        (D, E),
        (J, build("multiply", (K, K))),
    ],
    "least": [
        (I, J),
        (X, Y),
        (J, integer(200)),
        (Y, J),
        (S, U),
        (D, E),
        (D, M),
        (B, C),
        (K, integer(3)),
        (K, K),
        (I, J, K),
    ],
    "greatest": [
        (I, J),
        (X, Y),
        (J, integer(0)),
        (Y, J),
        (S, U),
        (D, E),
        (D, M),
        (B, C),
        (K, integer(3)),
        (K, K),
        (I, J, K),
    ],
    "clip": [
        (J, integer(-5), integer(10)),
        (Y, number(0.25), number(1e10)),
        (Z, number(0.0), number(0.0)),
        (build("multiply", (J, J)), integer(-4), integer(4)),
    ],
    "as_number": [(J,), (K,), (build("multiply", (J, J)),)],
    "as_timestamp": [(D,)],
    "add": [*_NUMBER_PAIRS, (build("multiply", (J, integer(2**40))), K)],
    "subtract": [*_NUMBER_PAIRS, (D, E), (D, text("2024-02-29"))],
    "multiply": _NUMBER_PAIRS,
    "negate": _NUMBERS,
    "divide": [
        *_NUMBER_PAIRS,
        (_KNOWN, _KNOWN),
        (_SMALL, _SMALL),
        (Y, number(-4.0)),
        (J, integer(0)),
        (J, build("multiply", (K, K))),
    ],
    "integer_divide": [
        (I, J),
        (K, K),
        (J, integer(7)),
        (J, integer(-1)),
        (J, integer(0)),
        (build("multiply", (I, J)), K),
        (_KNOWN, _KNOWN),
    ],
    "modulo": [
        *_NUMBER_PAIRS,
        (J, integer(-1)),
        (J, integer(-7)),
        (build("multiply", (I, J)), K),
        (_KNOWN, integer(10)),
    ],
    "abs": _NUMBERS,
    "sign": _NUMBERS,
    "floor": _NUMBERS,
    "ceil": _NUMBERS,
    "trunc": _NUMBERS,
    "round": [
        *_NUMBERS,
        *((column, integer(digits)) for column in (J, X, Y) for digits in (-15, -3, -1, 0, 1, 2, 15)),
        (_SMALL, integer(1)),
        (_KNOWN, integer(-2)),
    ],
    "sqrt": [*_NUMBERS, (_KNOWN,), (_SMALL,), (build("abs", (Y,)),)],
    "ln": [*_NUMBERS, (_KNOWN,), (_SMALL,), (build("add", (_KNOWN, integer(1))),)],
    "log10": [*_NUMBERS, (_KNOWN,), (_SMALL,)],
    "log2": [*_NUMBERS, (_KNOWN,), (_SMALL,)],
    **{name: [*_NUMBERS, (_KNOWN,), (_SMALL,)] for name in ("sin", "cos", "tan", "atan", "degrees", "radians")},
    **{name: [*_NUMBERS, (_SMALL,), (build("sin", (Y,)),)] for name in ("asin", "acos")},
    "atan2": [(X, Y), (J, K), (Y, X), (_SMALL, _KNOWN), (Y, number(0.0))],
    "exp": [*_NUMBERS, (_KNOWN,), (_SMALL,)],
    "power": [
        (X, Y),
        (J, K),
        (_SMALL, _SMALL),
        (_KNOWN, Y),
        (J, number(2.0)),
        *((value, number(power)) for value in (Y, _SMALL, _KNOWN) for power in _POWERS),
    ],
    **{
        name: [
            *((S, text(pattern)) for pattern in _PATTERNS),
            (S, text("a!%b"), text("!")),
            (S, text("%!_!!"), text("!")),
            (S, text("Stra%")),
            (S, text("ΣΣ")),
        ]
        for name in ("like", "not_like", "ilike", "not_ilike")
    },
    "lower": [(S,)],
    "upper": [(S,)],
    "length": [(S,), (U,), (build("left", (S, integer(3))),)],
    "trim": [(S,)],
    "ltrim": [(S,)],
    "rtrim": [(S,)],
    "left": [(S, integer(0)), (S, integer(1)), (S, integer(1000))],
    "right": [(S, integer(0)), (S, integer(1)), (S, integer(1000))],
    "substr": [
        (S, integer(1), integer(2)),
        (S, integer(2)),
        (S, integer(3), integer(0)),
        (S, integer(20_999), integer(1000)),
        (S, integer(1_000_000)),
    ],
    "concat": [(S, U), (S, text("-"), S), (S,)],
    "replace": [
        (S, text("a"), text("b")),
        (S, text("ab"), text("")),
        (S, text(""), text("")),
        (S, text("日"), text("a")),
        (S, text("aa"), text("a")),
    ],
    **{name: [(S, text(p)) for p in _REGULAR] for name in ("regexp_matches", "regexp_full_match")},
    "regexp_extract": [
        *((S, text(p)) for p in _REGULAR),
        *((S, text(p), integer(1)) for p in _REGULAR if "(" in p.replace("(?:", "")),
        (S, text("(a)|(b)"), integer(2)),
    ],
    "regexp_replace": [
        (S, text(p), text(new), *every)
        for p, new in (
            ("a", "b"),
            ("[0-9]", "#"),
            (r"\s+", " "),
            ("[^a-z]", ""),
            ("ab|a", ""),
            ("日", "&"),
            (r"\d{2}", "é"),
        )
        for every in ((), (text("g"),))
    ],
    "split_part": [
        (S, text(separator), integer(place))
        for separator in (" ", "a", "-", ".", "日", "\x00", "\\", "]", "^")
        for place in (1, 2, 3, 50, -1, -2, -50)
    ]
    + [(S, text(separator), integer(place)) for separator in ("ab", "aa", "- ", "bca") for place in (1, 2, 3, 50)],
    **{
        name: [(S, integer(n), text(pad)) for n, pad in ((0, "x"), (3, "xy"), (200, "日a"), (7, "\x00"))]
        for name in ("lpad", "rpad")
    },
    **{
        name: [(S, text(characters)) for characters in ("", "a", "ab%", " ", "日é", "\x00", "01")]
        for name in ("trim_of", "ltrim_of", "rtrim_of")
    },
    "translate": [(S, text(old), text(new)) for old, new in (("ab", "日"), ("aa", "xy"), ("", ""), ("日e ", "e"))],
    "ascii": [(S,)],
    "unicode": [(S,)],
    "strftime": [(column, text(written)) for column in (D, M) for written in _FORMATS],
    "starts_with": [(S, text("")), (S, text("a")), (S, text("日"))],
    "ends_with": [(S, text("")), (S, text("b")), (S, text("日"))],
    "contains": [(S, text("")), (S, text("ab")), (S, text("%")), (S, text("\x00"))],
    "position": [(S, text("")), (S, text("b")), (S, text("日")), (S, text("ab")), (S, text("\x00"))],
    **{
        name: list(_DATES)
        for name in ("year", "quarter", "month", "day", "day_of_week", "day_of_week_iso", "day_of_year")
    },
    **{name: list(_DATES) for name in ("year_week", "decade", "century")},
    **{name: [(M,)] for name in ("millisecond", "microsecond")},
    **{name: list(_DATES) for name in ("week", "iso_year", "dayname", "monthname", "epoch")},
    **{name: [(M,)] for name in ("hour", "minute", "second")},
    "date_trunc": [(text(u), D) for u in [*_UNITS, *_LONG]]
    + [(text(u), M) for u in [*_UNITS, *_LONG, *_CLOCK]]
    + [(text("MONTH"), D)],
    "date_diff": [(text(u), D, E) for u in _UNITS]
    + [(text(u), M, N) for u in _UNITS + _CLOCK]
    + [(text("day"), D, N), (text("hour"), M, E), (text("year"), D, text("2024-02-29"))],
    "add_interval": [
        (column, integer(months), integer(days), integer(clock))
        for column in (D, M)
        for months, days, clock in _INTERVALS
    ]
    + [(_CLIPPED_DAY, integer(-3), integer(10), integer(5))],
    "add_days": [
        *((D, integer(days)) for days in (0, 1, -400, 3_660_000, -3_652_058, 2**40)),
        *((D, number) for number in (J, K, I, _KNOWN, build("multiply", (J, J)), null(INTEGER))),
        (_CLIPPED_DAY, _KNOWN),
    ],
    "date_sub": [(text(u), a, b) for u in [*_UNITS, *_CLOCK, "microsecond"] for a, b in ((D, E), (M, N), (D, N))],
    "age_part": [(text(u), a, b) for u in ("year", "month", "day") for a, b in ((D, E), (M, N), (D, N))],
    "make_date": [
        (J, K, I),
        (integer(2024), J, K),
        (build("year", (D,)), build("month", (D,)), integer(1)),
        (J, integer(2), integer(29)),
        (_KNOWN, _KNOWN, _KNOWN),
        (build("modulo", (J, integer(10_000))), build("modulo", (K, integer(13))), build("modulo", (J, integer(32)))),
        (build("multiply", (J, K)), integer(1), integer(1)),
    ],
    "last_day": list(_DATES),
    "time_bucket": [
        (*map(integer, width), column)
        for width in ((1, 0, 0), (5, 0, 0), (120_000, 0, 0), (0, 7, 0), (0, 10, 0), (0, 3_660_000, 0))
        for column in (D, M, _CLIPPED_DAY)
    ]
    + [(*map(integer, width), M) for width in ((0, 0, 900_000_000), (0, 1, 1), (0, 0, 7_000_001))],
    "gather": [
        (S, null(TEXT), text("a"), text("ab")),
        (U, text("other"), text("a")),
        (J, integer(-1), integer(0), integer(7), integer(2**63 - 1)),
        (K, null(INTEGER), integer(1), integer(3)),
        (B, null(BOOLEAN), Literal(True, BOOLEAN)),
        (M, null(TIMESTAMP), Literal(datetime.datetime(1970, 1, 1), TIMESTAMP)),
        (S, text("all")),
    ],
    "gather_range": [
        (J, integer(-1), integer(0), integer(50)),
        (K, null(INTEGER), integer(0), integer(50)),
        (D, null(DATE), Literal(datetime.date(1970, 1, 1), DATE), Literal(datetime.date(2024, 12, 31), DATE)),
    ],
    "cast_integer": [(J,), (Y,), (S,), (B,), (build("multiply", (J, J)),), (_SMALL,), (K,)],
    "cast_number": [(J,), (Y,), (S,), (B,), (build("multiply", (J, J)),)],
    "cast_text": [(J,), (S,), (B,), (D,), (M,), (build("multiply", (J, J)),)],
    "cast_boolean": [(J,), (Y,), (S,), (B,), (build("multiply", (J, J)),)],
    "cast_date": [(D,), (M,), (S,)],
    "cast_timestamp": [(D,), (M,), (S,)],
}
"""Lists of arguments for every operator: each type it accepts, mixtures, constants, narrow and wide ranges."""

_FLAT = flatten(CASES)
_IDS = [f"{name}-{place}" for place, (name, _) in enumerate(_FLAT)]


def test_every_operator_has_cases() -> None:
    """An operator without cases below would be tested by nothing."""
    assert set(REGISTRY) == set(CASES)


@pytest.mark.sparse(16)
@pytest.mark.parametrize(("name", "arguments"), _FLAT, ids=_IDS)
def test_operator_on_edge_values(name: str, arguments: tuple[Expression, ...]) -> None:
    """On values at the edges of the types: no error under any setting, equal to the reference, within the range."""
    expression = build(name, arguments)
    rows = edge_rows(expression)
    check(expression, rows)
    check_settings(expression, rows)
    clipped = clip_columns(expression)
    if clipped != expression:
        check(clipped, rows)
        assert interval_of(clipped).inside(interval_of(expression))


@pytest.mark.sparse(10)
@pytest.mark.parametrize("name", sorted(REGISTRY))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_operator_on_random_values(name: str, data: st.DataObject) -> None:
    """On random rows: no error, equal to the reference, within type, range and NULL promise."""
    arguments = data.draw(st.sampled_from(CASES[name]))
    expression = build(name, arguments)
    check(expression, data.draw(row_strategy(expression)))


# --- NULL --------------------------------------------------------------------------------------------------------


def _present(expression: Expression) -> Expression:
    """The expression over columns that are never NULL."""
    if isinstance(expression, ColumnRef):
        return dataclasses.replace(expression, nullable=False)
    if isinstance(expression, Call):
        return build(expression.operator, tuple(_present(argument) for argument in expression.arguments))
    return expression


@pytest.mark.sparse(8)
@pytest.mark.parametrize(("name", "arguments"), _FLAT, ids=_IDS)
def test_what_is_never_null_is_never_null_in_the_engine(name: str, arguments: tuple[Expression, ...]) -> None:
    """Over columns without NULL, on edge values: an operator that says so gives no NULL. Its groups have no NULL cell.

    The cases above have columns that may be NULL, of which nearly every result may be NULL: this is the test that
    fails when a rule for NULL is wrong.
    """
    expression = build(name, tuple(_present(argument) for argument in arguments))
    if not expression.nullable:
        rows = edge_rows(expression)
        assert None not in run(expression, rows)
        assert None not in [evaluate(expression, row) for row in rows]


def test_the_test_of_null_rules_sees_every_kind_of_operator() -> None:
    """Every operator but three has a case that promises a value: NULLIF never does, and these logarithms follow LN."""
    promised = {
        name
        for name, arguments in _FLAT
        if not build(name, tuple(_present(argument) for argument in arguments)).nullable
    }
    assert set(REGISTRY) - promised == {"nullif", "log2", "log10"}


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_texts_are_no_longer_than_the_operator_says(name: str) -> None:
    """Time and memory are bounded by the length of texts: each operator that gives one says it, and keeps to it."""
    for arguments in CASES[name]:
        expression = build(name, arguments)
        if not isinstance(expression, Call) or expression.type is not TEXT:
            continue
        characters = REGISTRY[expression.operator].characters
        assert characters is not None
        for row in edge_rows(expression):
            parts = [evaluate(argument, row) for argument in expression.arguments]
            value = evaluate(expression, row)
            lengths = [len(part) if isinstance(part, str) else 0 for part in parts]
            assert value is None or len(str(value)) <= characters(expression.arguments, lengths)


@pytest.mark.parametrize("name", [name for name, operator in REGISTRY.items() if operator.values])
def test_operators_give_the_values_that_they_list(name: str) -> None:
    """Every listed value occurs, and no other: they are public keys without a look at rows."""
    values = [
        evaluate(build(name, arguments), row)
        for arguments in CASES[name]
        for day in range(365)
        for row in [{("t", part): datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for part in "de"}]
        if arguments[0].type is DATE
    ]
    assert set(values) == set(REGISTRY[name].values)


# --- random nesting ----------------------------------------------------------------------------------------------

_LEAVES: dict[ColumnType, list[Expression]] = {
    INTEGER: [I, J, K, integer(0), integer(-3), integer(1000), null(INTEGER)],
    NUMBER: [X, Y, Z, number(0.0), number(2.5), number(-1e3), null(NUMBER)],
    TEXT: [S, U, text("a"), text("")],
    BOOLEAN: [B, C],
    DATE: [D, E, Literal(datetime.date(2024, 2, 29), DATE)],
    TIMESTAMP: [M, N, Literal(datetime.datetime(1969, 12, 31, 23, 59, 59, 1), TIMESTAMP)],
}
_N = (INTEGER, NUMBER)
_GRAMMAR: dict[ColumnType, list[tuple[str, list[ColumnType | Literal]]]] = {
    INTEGER: [
        *((name, [INTEGER, INTEGER]) for name in ("add", "subtract", "multiply", "integer_divide", "modulo")),
        *((name, [INTEGER]) for name in ("negate", "abs", "sign", "floor")),
        *((name, [INTEGER, INTEGER]) for name in ("least", "greatest", "coalesce", "nullif")),
        ("case", [BOOLEAN, INTEGER, INTEGER]),
        ("case", [BOOLEAN, INTEGER, BOOLEAN, INTEGER, INTEGER]),
        ("cast_integer", [NUMBER]),
        ("cast_integer", [TEXT]),
        ("cast_integer", [BOOLEAN]),
        ("cast_integer", [INTEGER]),
        ("round", [INTEGER, integer(-2)]),
        ("length", [TEXT]),
        ("subtract", [DATE, DATE]),
        ("date_diff", [text("month"), TIMESTAMP, DATE]),
        ("year", [DATE]),
    ],
    NUMBER: [
        *(
            (name, [a, b])
            for name in ("add", "subtract", "multiply", "modulo")
            for a, b in ((NUMBER, NUMBER), (INTEGER, NUMBER))
        ),
        *(("divide", [a, b]) for a in _N for b in _N),
        *((name, [NUMBER]) for name in ("negate", "abs", "floor", "ceil", "trunc", "round", "sqrt")),
        *((name, [NUMBER, INTEGER]) for name in ("least", "greatest", "coalesce", "nullif")),
        ("round", [NUMBER, integer(2)]),
        ("case", [BOOLEAN, NUMBER, INTEGER]),
        ("cast_number", [INTEGER]),
        ("cast_number", [TEXT]),
        ("epoch", [TIMESTAMP]),
    ],
    TEXT: [
        ("lower", [TEXT]),
        ("upper", [TEXT]),
        ("trim", [TEXT]),
        ("concat", [TEXT, TEXT]),
        ("left", [TEXT, integer(3)]),
        ("substr", [TEXT, integer(2), integer(2)]),
        ("case", [BOOLEAN, TEXT, TEXT]),
        ("coalesce", [TEXT, TEXT]),
        ("cast_text", [INTEGER]),
        ("cast_text", [DATE]),
        ("monthname", [DATE]),
    ],
    BOOLEAN: [
        *((name, [BOOLEAN, BOOLEAN]) for name in ("and", "or", "=", "is_distinct_from")),
        ("not", [BOOLEAN]),
        *(
            (name, [kind, kind])
            for name in ("=", "<", ">=", "<>", "is_not_distinct_from")
            for kind in (INTEGER, NUMBER, TEXT, DATE)
        ),
        *((name, [INTEGER, NUMBER]) for name in ("=", "<", ">", "<=")),
        ("<", [DATE, TIMESTAMP]),
        ("is_null", [NUMBER]),
        ("is_not_null", [INTEGER]),
        ("in", [INTEGER, integer(1), integer(2**40)]),
        ("in", [TEXT, text("a"), text("")]),
        (">=", [NUMBER, INTEGER]),
        ("like", [TEXT, text("%a_")]),
        ("cast_boolean", [NUMBER]),
    ],
    DATE: [
        ("date_trunc", [text("week"), DATE]),
        ("cast_date", [TIMESTAMP]),
        ("cast_date", [TEXT]),
        ("case", [BOOLEAN, DATE, DATE]),
        ("greatest", [DATE, DATE]),
    ],
    TIMESTAMP: [
        ("date_trunc", [text("hour"), TIMESTAMP]),
        ("cast_timestamp", [DATE]),
        ("case", [BOOLEAN, TIMESTAMP, DATE]),
        ("coalesce", [TIMESTAMP, TIMESTAMP]),
    ],
}


@st.composite
def nested(draw: st.DrawFn, kind: ColumnType, depth: int) -> Expression:
    """A random expression of a type; parts that would be refused for their range become leaves."""
    if depth == 0 or draw(st.integers(0, 7)) == 0:
        return draw(st.sampled_from(_LEAVES[kind]))
    name, wanted = draw(st.sampled_from(_GRAMMAR[kind]))
    parts = [draw(nested(part, depth - 1)) if isinstance(part, ColumnType) else part for part in wanted]
    try:
        return build(name, parts)
    except TypeRefused as refusal:
        if refusal.finding.code != "too_large":
            raise
        return draw(st.sampled_from(_LEAVES[kind]))


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_nested_expressions(data: st.DataObject) -> None:
    """Random expressions of depth 4 raise nothing, equal the reference, and stay in range, raw and clipped."""
    expression = data.draw(nested(data.draw(st.sampled_from(list(ColumnType))), 4))
    rows = edge_rows(expression, limit=60)
    check(expression, rows)
    clipped = clip_columns(expression)
    if clipped != expression:
        check(clipped, rows)


# --- documentation -----------------------------------------------------------------------------------------------


def test_every_operator_says_why_it_is_total() -> None:
    """Each entry has its totality argument, meaning and signature as sentences of its own."""
    for operator in REGISTRY.values():
        assert operator.totality.endswith("."), operator.name
        assert len(operator.totality) > 30, operator.name
        assert operator.meaning.endswith("."), operator.name
        assert " -> " in operator.signature, operator.name
        assert operator.section != "other", operator.name


def test_documentation_lists_every_operator() -> None:
    """docs/functions.md holds the tables that the registry writes, word for word."""
    page = (Path(__file__).parents[2] / "docs" / "functions.md").read_text(encoding="utf-8")
    assert tables() in page
    for name in REGISTRY:
        assert f"`{name}`" in page


# --- single facts ------------------------------------------------------------------------------------------------


def test_least_does_not_turn_a_missing_value_into_the_bound() -> None:
    """LEAST(NULL, 200000) is NULL here, although the engine's own function gives 200000."""
    expression = build("least", (J, integer(200_000)))
    assert run(expression, [{("t", "j"): v} for v in (None, 5, 10**6)]) == [None, 5, 200_000]


def test_a_marker_beyond_the_bounds_is_still_recognised() -> None:
    """NULLIF(i, 999) compares the stored value even where the result is clipped to at most 10."""
    expression = clip_columns(build("nullif", (I, integer(999))))
    assert run(expression, [{("t", "i"): v} for v in (999, 998, 3, None)]) == [None, 10, 3, None]
    assert (interval_of(expression).lower, interval_of(expression).upper) == (-5, 10)


def test_conditions_read_the_stored_value() -> None:
    """CASE WHEN i > 500 sees 501 although the bound of i is 10; the value of the branch is clipped."""
    expression = clip_columns(build("case", (build(">", (I, integer(500))), I, integer(0))))
    assert run(expression, [{("t", "i"): v} for v in (501, 500, None)]) == [10, 0, 0]


def test_clipping_twice_changes_nothing() -> None:
    """clip_columns is idempotent, and leaves columns without bounds alone."""
    expression = build("add", (build("multiply", (I, integer(2))), X))
    assert clip_columns(expression) == clip_columns(clip_columns(expression))
    assert clip_columns(J) == J


@pytest.mark.parametrize(
    ("declared", "reached"),
    [((0, 100), (0, 100)), ((0.5, 10.5), (1, 10)), ((0.25, 0.75), (0, 1)), ((-(2.0**80), 2.0**80), None)],
)
def test_integer_columns_are_clipped_to_whole_numbers(
    declared: tuple[float, float], reached: tuple[int, int] | None
) -> None:
    """Bounds are moved inward to whole numbers, outward when none lies within, and dropped beyond 64 bits."""
    column = ColumnRef("t", "j", INTEGER, declared=Interval(Fraction(declared[0]), Fraction(declared[1])))
    clipped = clip_columns(column)
    expected = (BIGINT.lower, BIGINT.upper) if reached is None else reached
    assert expected == (interval_of(clipped).lower, interval_of(clipped).upper)
    check(clipped, edge_rows(clipped))


def test_bounds_of_tells_a_bound_from_a_storage_size() -> None:
    """An undeclared 64-bit column is unbounded; clipped, cut, or taken modulo it is bounded."""
    assert not bounds_of(clip_columns(J)).bounded
    assert not bounds_of(build("add", (J, integer(1)))).bounded
    assert not bounds_of(build("length", (S,))).bounded
    assert not bounds_of(cast(Y, INTEGER)).bounded
    assert (bounds_of(_KNOWN).lower, bounds_of(_KNOWN).upper) == (0, 200)
    assert (
        bounds_of(build("modulo", (J, integer(10)))).lower,
        bounds_of(build("modulo", (J, integer(10)))).upper,
    ) == (-9, 9)
    assert (bounds_of(clip_columns(I)).lower, bounds_of(clip_columns(I)).upper) == (-5, 10)
    assert bounds_of(build("year", (D,))).bounded
    assert bounds_of(build("length", (build("left", (S, integer(3))),))).upper == 3


def test_wide_integers_are_announced() -> None:
    """A product of two 64-bit columns needs HUGEINT; a product of clipped ones does not."""
    assert needs_wide(build("multiply", (J, K)))
    assert not needs_wide(clip_columns(build("multiply", (I, I))))
    assert not needs_wide(build("modulo", (build("multiply", (J, K)), integer(10))))


def test_products_beyond_126_bits_are_refused() -> None:
    """j * j * j could overflow 128 bits: refused, with the ways out; as DOUBLE it is answered."""
    with pytest.raises(TypeRefused) as refusal:
        build("multiply", (build("multiply", (J, J)), J))
    assert refusal.value.finding.code == "too_large"
    assert any("CAST" in way for way in refusal.value.finding.instead)
    assert build("multiply", (build("multiply", (cast(J, NUMBER), J)), J)).type is NUMBER


def test_long_chains_of_and_stay_shallow() -> None:
    """A thousand conditions joined by AND become one flat node that still runs."""
    expression: Expression = build("=", (J, integer(0)))
    for value in range(1, 1_000):
        expression = build("or", (expression, build("=", (J, integer(value)))))
    assert isinstance(expression, Call)
    assert len(expression.arguments) == 1_000
    assert run(expression, [{("t", "j"): 999}, {("t", "j"): 1000}]) == [True, False]


def test_deep_and_self_repeating_expressions_are_refused() -> None:
    """A limit on depth and on repeated guards keeps text and recursion small."""

    def deep() -> Expression:
        return functools.reduce(lambda inner, _: build("sign", (inner,)), range(200), J)

    def repeated() -> Expression:
        return functools.reduce(lambda inner, _: build("exp", (build("sqrt", (inner,)),)), range(40), Y)

    for grown in (deep, repeated):
        with pytest.raises(TypeRefused) as refusal:
            grown()
        assert refusal.value.finding.code == "too_large"


def test_long_sums_of_numbers_need_one_guard() -> None:
    """Forty added doubles are not refused: infinities stay visible along the chain, one test at the end is enough."""
    total = functools.reduce(lambda inner, _: build("add", (inner, Y)), range(40), build("add", (Y, Y)))
    assert run(total, [{("t", "y"): v} for v in (1.0, 1e307, None)]) == [42.0, None, None]


_REFUSED: list[tuple[str, tuple[Expression, ...], str]] = [
    ("no_such_function", (J,), "unsupported_function"),
    ("add", (J, S), "unsupported_type"),
    ("add", (D, J), "unsupported_type"),
    ("subtract", (M, N), "unsupported_type"),
    ("=", (J, text("1")), "unsupported_type"),
    ("=", (J, S), "unsupported_type"),
    ("=", (B, J), "unsupported_type"),
    ("=", (D, text("yesterday")), "unsupported_type"),
    ("=", (D, text("2023-02-29")), "unsupported_type"),
    ("=", (D, S), "unsupported_type"),
    ("and", (B, J), "unsupported_type"),
    ("case", (J, J, J), "unsupported_type"),
    ("case", (B, J, S), "unsupported_type"),
    ("coalesce", (J, S), "unsupported_type"),
    ("in", (J, K), "unsupported_function"),
    ("in", (J, *(integer(i) for i in range(1_001))), "too_large"),
    ("like", (S, U), "unsupported_function"),
    ("like", (S, text("a" * 201)), "too_large"),
    ("like", (S, text("a!"), text("!")), "unsupported_function"),
    ("like", (S, text("a"), text("!!")), "too_large"),
    ("ilike", (S, text("a"), text("x")), "unsupported_function"),
    ("like", (J, text("1%")), "unsupported_type"),
    ("left", (S, J), "unsupported_function"),
    ("left", (S, integer(-1)), "too_large"),
    ("substr", (S, integer(0)), "too_large"),
    ("concat", (S, J), "unsupported_type"),
    ("concat", (S,) * 17, "unsupported_function"),
    ("concat", (build("concat", (S,) * 16), S), "too_large"),
    ("replace", (S, text("a"), text("bb")), "too_large"),
    ("round", (Y, J), "unsupported_function"),
    ("round", (Y, integer(16)), "too_large"),
    ("integer_divide", (Y, J), "unsupported_type"),
    ("hour", (D,), "unsupported_type"),
    ("year", (S,), "unsupported_type"),
    ("date_trunc", (text("hour"), D), "unsupported_function"),
    ("date_trunc", (text("millennium"), D), "unsupported_function"),
    ("date_trunc", (S, D), "unsupported_function"),
    ("date_diff", (text("day"), J, K), "unsupported_type"),
    ("cast_text", (Y,), "unsupported_type"),
    ("cast_date", (J,), "unsupported_type"),
    ("cast_integer", (D,), "unsupported_type"),
    ("sqrt", (S,), "unsupported_type"),
    ("power", (Y,), "unsupported_function"),
]


@pytest.mark.parametrize(
    ("name", "arguments", "code"), _REFUSED, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(_REFUSED)]
)
def test_refusals(name: str, arguments: tuple[Expression, ...], code: str) -> None:
    """Wrong types, values of rows where constants are needed, and unbounded growth are refused with their code."""
    with pytest.raises(TypeRefused) as refusal:
        build(name, arguments)
    assert code == refusal.value.finding.code
    assert refusal.value.finding.what
    assert refusal.value.finding.why.endswith(".")


def test_text_with_public_keys_sorts_as_text() -> None:
    """A text column stored as ENUM is compared by its text, not by the order of its declared values."""
    column = ColumnRef("t", "s", TEXT, domain=("z", "a", "m"))
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT unnest(['z', 'a', 'm'])::ENUM('z', 'a', 'm') AS s")
    parameters = ParameterList()
    sql = DUCKDB.write(lower(build("<", (column, text("n"))), parameters))
    assert connection.execute(f"SELECT {sql} FROM t", list(parameters.values)).fetchall() == [
        (False,),
        (True,),
        (True,),
    ]
    parameters = ParameterList()
    sql = DUCKDB.write(lower(build("coalesce", (build("nullif", (column, text("a"))), text("other"))), parameters))
    assert connection.execute(f"SELECT {sql} FROM t", list(parameters.values)).fetchall() == [
        ("z",),
        ("other",),
        ("m",),
    ]
    assert connection.execute(f"SELECT {DUCKDB.write(lower(column, parameters))} FROM t").fetchall() == [
        ("z",),
        ("a",),
        ("m",),
    ]


def test_edge_values_cover_every_type() -> None:
    """Each type's edge values hold NULL and at least both ends of its range."""
    assert set(ColumnType) == set(EDGES)
    assert all(None in values for values in EDGES.values())
    assert {-(2**63), 2**63 - 1} <= set(EDGES[INTEGER])


@settings(max_examples=30, deadline=None)
@given(values=st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), max_size=50))
def test_wide_integers_become_near_doubles(values: list[tuple[int, int]]) -> None:
    """A HUGEINT is converted as the engine does it, rounding more than once: within the range that allows for it."""
    product = build("multiply", (J, K))
    rows = [{("t", "j"): first, ("t", "k"): second} for first, second in values]
    for expression in (cast(product, NUMBER), build("add", (product, number(0.0)))):
        check(expression, rows)
    for (first, second), found in zip(values, run(cast(product, NUMBER), rows), strict=True):
        assert isinstance(found, float)
        assert ranges.converted(ranges.point(first * second), wide=True).contains(found)


# --- names -------------------------------------------------------------------------------------------------------

_COLUMNS = {column.name: column for column in COLUMNS}


def _lifted(written: str) -> Expression:
    """The expression that a text is read as."""
    tree, parsed = parse(f"SELECT {written}")
    return ExpressionLift(parsed, lambda node: _COLUMNS[node.name], {}).lift(tree.expressions[0])


def _writable(argument: Expression) -> bool:
    """Whether a test can write the argument without its own grammar of SQL."""
    if isinstance(argument, ColumnRef):
        return argument.name.isidentifier()
    if not isinstance(argument, Literal):
        return False
    return argument.value.isprintable() if isinstance(argument.value, str) else isinstance(argument.value, int)


@pytest.mark.parametrize(
    ("name", "function"), [(name, function) for name, operator in REGISTRY.items() for function in operator.names]
)
def test_every_function_of_an_operator_is_read_as_it(name: str, function: str) -> None:
    """Each name is lifted to its operator with the arguments in their order, and one more of them is refused."""
    cases = [arguments for arguments in CASES[name] if all(map(_writable, arguments))]
    assert cases
    for arguments in cases:
        written = ", ".join(map(describe, arguments))
        assert _lifted(f"{function}({written})") == build(name, arguments)
    if REGISTRY[name].takes is not None:
        more = ", ".join([*map(describe, cases[-1]), *["1"] * 4])
        with pytest.raises(Refused):
            _lifted(f"{function}({more})")


@pytest.mark.parametrize(("name", "part"), [(name, part) for name, o in REGISTRY.items() for part in o.parts])
def test_every_part_of_a_date_is_read_as_its_operator(name: str, part: str) -> None:
    """EXTRACT and date_part read each word as the operator that has it."""
    expected = build(name, (M,))
    assert _lifted(f"EXTRACT({part} FROM m)") == expected
    assert _lifted(f"date_part('{part}', m)") == expected


def test_what_is_no_function_of_the_registry_is_refused_by_its_name() -> None:
    """DuckDB has it, the parser has a class for it, and no description has its name."""
    with pytest.raises(Refused) as refused:
        _lifted("GAMMA(x) + SIN(y)")
    assert "GAMMA()" in refused.value.findings[0].what
