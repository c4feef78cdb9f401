"""What each operator costs for one row, at worst: reproduces the table of `sql_rewrite/dialects/duckdb_costs.py`.

    python -m benchmarks.cost [--rows 40000] [--characters 200] [--check]

Every operator of the allow-list is built over columns that hold the values that are dearest for it, lowered as a query
would be, and run on one thread. What the plain scan takes is subtracted; the processor's time is taken, the least of
several runs, so that other work on the machine counts little. Figures in nanoseconds of this machine:

    row        for one row, texts of one character, integers of 64 bits
    wide       for one row, integers of 128 bits
    character  for each further character of its text arguments, the worst of several alphabets
    pattern    for each character of its text arguments and each character of the constant that it searches
    vector     for a vector of the engine in which one row needs the operator (a branch that one person's row takes)

`speed` is the time of `engines.handlers.speed.PROBE`; figures divided by (speed / its `probe`) are those of the table.
With `--check` the exit code is 1 when a figure is above the table's.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb

from engines.handlers.connection import private_settings
from engines.handlers.speed import probe_nanoseconds
from privacy.policy import ColumnType
from sql_rewrite.dialects.costs import Cost
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.expressions import ColumnRef, Expression, Interval, Literal, columns_of
from sql_rewrite.functions import REGISTRY, TypeRefused, build
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression

INTEGER, NUMBER, TEXT = ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.TEXT
BOOLEAN, DATE, TIMESTAMP = ColumnType.BOOLEAN, ColumnType.DATE, ColumnType.TIMESTAMP
VECTOR = 2_048
HEADROOM = 1.25
"""The printed table is above what was measured by this factor."""
DIGITS = {"row": 1, "vector": 0.01, "wide": 1, "character": 10, "pattern": 100}
"""To how many parts of a nanosecond figures are rounded up."""


def column(name: str, kind: ColumnType) -> ColumnRef:
    """A column of the measured table."""
    return ColumnRef("t", name, kind)


X, Y = column("x", NUMBER), column("y", NUMBER)
I = column("i", INTEGER)  # noqa: E741
J = ColumnRef("t", "j", INTEGER, interval=Interval(Fraction(-(2**50)), Fraction(2**50)))
S, R = column("s", TEXT), column("r", TEXT)
B, C = column("b", BOOLEAN), column("c", BOOLEAN)
D, E = column("d", DATE), column("e", DATE)
T, U = column("w", TIMESTAMP), column("v", TIMESTAMP)
WIDE = build("multiply", (I, J))


def whole(value: int) -> Literal:
    return Literal(value, INTEGER)


def words(value: str) -> Literal:
    return Literal(value, TEXT)


_DAYS = tuple(Literal(datetime.date(2001, 1, day), DATE) for day in (1, 2, 9))

REGULAR = ("a", "[ab]*a[ab]{20}c", "(a|b)+c", "(?:a|b|ab|ba)+(c|d)$", "a.{20}b", "[^a-m]+")
"""Regular expressions, some of which make large automata."""

Sample = tuple[Expression, Sequence[Expression]]
"""An expression, and the parts of it whose cost is subtracted."""


def samples(name: str) -> list[Sample]:
    """Expensive uses of one operator; the second part is measured too, and subtracted."""
    wide = [WIDE]
    made: Mapping[str, list[Sample]] = {
        **{op: [(build(op, (B, C)), ()), (build(op, (B, C, B, C)), ())] for op in ("and", "or")},
        "not": [(build("not", (B,)), ())],
        **{
            op: [(build(op, pair), ()) for pair in ((X, Y), (I, J), (S, R), (D, E), (T, U))]
            + [(build(op, (WIDE, J)), wide)]
            for op in ("=", "<>", "<", "<=", ">", ">=", "is_distinct_from", "is_not_distinct_from")
        },
        "is_null": [(build("is_null", (S,)), ())],
        "is_not_null": [(build("is_not_null", (S,)), ())],
        "in": [
            (build("in", (X, *(Literal(k + 0.5, NUMBER) for k in range(2)))), ()),
            (build("in", (S, words("a"), words("b"))), ()),
        ],
        "case": [(build("case", (B, X, C, Y, X)), ()), (build("case", (B, S, R)), ()), (build("case", (B, WIDE, J)), wide)],  # noqa: E501
        "coalesce": [(build("coalesce", (X, Y)), ()), (build("coalesce", (S, R)), ())],
        "nullif": [(build("nullif", pair), ()) for pair in ((X, Y), (S, R), (I, J))],
        "least": [(build("least", pair), ()) for pair in ((X, Y), (S, R), (I, J))],
        "greatest": [(build("greatest", pair), ()) for pair in ((X, Y), (S, R), (I, J))],
        "clip": [
            (build("clip", (X, Literal(0.0, NUMBER), Literal(9.0, NUMBER))), ()),
            (build("clip", (I, whole(0), whole(9))), ()),
        ],
        "gather": [(build("gather", (S, words("other"), words("a"))), ()), (build("gather", (I, whole(0), whole(7))), ())],  # noqa: E501
        "gather_range": [(build("gather_range", (I, whole(0), whole(5), whole(9))), ()), (build("gather_range", (D, *_DAYS)), ())],  # noqa: E501
        "as_number": [(build("as_number", (I,)), ()), (build("as_number", wide), wide)],
        "as_timestamp": [(build("as_timestamp", (D,)), ())],
        **{op: [(build(op, (X, Y)), ()), (build(op, (I, J)), ()), (build(op, (WIDE, J)), wide)] for op in ("add", "subtract")},  # noqa: E501
        "multiply": [(build("multiply", (X, Y)), ()), (WIDE, ())],
        "negate": [(build("negate", (X,)), ()), (build("negate", (I,)), ()), (build("negate", wide), wide)],
        "divide": [(build("divide", (X, Y)), ()), (build("divide", (I, J)), ())],
        **{
            op: [(build(op, (I, J)), ()), (build(op, (WIDE, J)), wide)] + ([(build(op, (X, Y)), ())] if op == "modulo" else [])  # noqa: E501
            for op in ("integer_divide", "modulo")
        },
        "abs": [(build("abs", (X,)), ()), (build("abs", wide), wide)],
        "sign": [(build("sign", (X,)), ()), (build("sign", wide), wide)],
        **{op: [(build(op, (X,)), ())] for op in ("floor", "ceil", "trunc", "sqrt", "ln", "log10", "log2", "exp")},
        "round": [(build("round", (X, whole(k))), ()) for k in (0, 2, -2)] + [(build("round", (I, whole(-2))), ())],
        "power": [(build("power", (X, Y)), ()), (build("power", (X, Literal(2.5, NUMBER))), ())],
        **{
            op: [(build(op, (S, words(pattern))), ()) for pattern in ("%b%d%", "%b_d%f", "a%", "%a", "%ab%", "%a_b%c%")]
            for op in ("like", "not_like", "ilike", "not_ilike")
        },
        **{op: [(build(op, (S,)), ())] for op in ("lower", "upper", "length", "trim", "ltrim", "rtrim")},
        **{op: [(build(op, (S, whole(k))), ()) for k in (1, 1000)] for op in ("left", "right")},
        "substr": [(build("substr", (S, whole(2))), ()), (build("substr", (S, whole(500), whole(1000))), ())],
        "concat": [(build("concat", (S, R)), ())],
        "replace": [(build("replace", (S, words("a"), words("b"))), ()), (build("replace", (S, words("aab"), words(""))), ())],  # noqa: E501
        **{op: [(build(op, (S, words("aab"))), ()), (build(op, (S, words("ab"))), ()), (build(op, (S, words("b"))), ())] for op in ("starts_with", "ends_with", "contains", "position")},  # noqa: E501
        **{op: [(build(op, (D,)), ()), (build(op, (T,)), ())] for op in REGISTRY if REGISTRY[op].section == "Dates" and len(_arguments(op)) == 1},  # noqa: E501
        **{op: [(build(op, (T,)), ())] for op in ("hour", "minute", "second", "millisecond", "microsecond")},
        "date_trunc": [(build("date_trunc", (words(k), T)), ()) for k in ("quarter", "week", "hour")],
        "date_diff": [(build("date_diff", (words(k), T, U)), ()) for k in ("year", "month", "week", "second")],
        "add_interval": [(build("add_interval", (k, whole(7), whole(3), whole(5))), ()) for k in (D, T)],
        "add_days": [(build("add_days", (D, I)), ()), (build("add_days", (D, whole(9))), ()), (build("add_days", (D, WIDE)), wide)],  # noqa: E501
        **{op: [(build(op, (words(k), T, U)), ()) for k in ("year", "month", "day")] for op in ("date_sub", "age_part")},  # noqa: E501
        "make_date": [(build("make_date", (build("add", (J, whole(1990))), build("add", (build("modulo", (I, whole(12))), whole(1))), J)), (J, build("add", (build("modulo", (I, whole(12))), whole(1)))))],  # noqa: E501
        **{op: [(build(op, (S, words(k))), ()) for k in REGULAR] for op in ("regexp_matches", "regexp_full_match", "regexp_extract")},  # noqa: E501
        "regexp_replace": [(build("regexp_replace", (S, words(k), words(""), words("g"))), ()) for k in REGULAR],
        "split_part": [(build("split_part", (S, words(k), whole(n))), ()) for k, n in (("a", 1), ("b", 50), ("a", -50), ("ab", 1), ("aa", 50))],  # noqa: E501
        **{op: [(build(op, (S, whole(200), words("ab"))), ()), (build(op, (S, whole(3), words("ab"))), ())] for op in ("lpad", "rpad")},  # noqa: E501
        **{op: [(build(op, (S, words(k))), ()) for k in ("a", "bcdefghijklmnoa", "ß ")] for op in ("trim_of", "ltrim_of", "rtrim_of")},  # noqa: E501
        "translate": [(build("translate", (S, words(k), words("xyz"))), ()) for k in ("a", "abcdefghijklmnopqrst" * 5)],
        "strftime": [(build("strftime", (k, words(f))), ()) for k in (D, T) for f in ("%Y-%m", "%A%B" * 12, "%f%S%M%H" * 6, "%G%V%j" * 8)],  # noqa: E501
        "last_day": [(build("last_day", (k,)), ()) for k in (D, T)],
        "time_bucket": [(build("time_bucket", (whole(m), whole(d), whole(0), k)), ()) for m, d in ((5, 0), (0, 9)) for k in (D, T)],  # noqa: E501
        "cast_integer": [(build("cast_integer", (k,)), ()) for k in (X, S, B)] + [(build("cast_integer", wide), wide)],
        "cast_number": [(build("cast_number", (k,)), ()) for k in (I, S, B)] + [(build("cast_number", wide), wide)],
        "cast_text": [(build("cast_text", (k,)), ()) for k in (I, B, D, T)] + [(build("cast_text", wide), wide)],
        "cast_boolean": [(build("cast_boolean", (k,)), ()) for k in (I, X, S)],
        "cast_date": [(build("cast_date", (k,)), ()) for k in (T, S)],
        "cast_timestamp": [(build("cast_timestamp", (k,)), ()) for k in (D, S)],
    }  # fmt: skip
    return made[name] if name in made else [(call, ()) for call in _accepted(name)]


def _accepted(name: str) -> list[Expression]:
    """Uses of an operator without expensive ones in the list: every column, pair and constant that it takes."""
    columns = (X, I, S, B, D, T)
    pairs = (
        (X, Y),
        (I, J),
        (S, R),
        (D, E),
        (T, U),
        *((part, constant) for part in columns for constant in (whole(2), words("ab"))),
    )
    calls: list[Expression] = []
    for arguments in (*((part,) for part in columns), *pairs):
        try:
            calls.append(build(name, arguments))
        except TypeRefused:
            continue
    assert calls, f"the expensive uses of {name} must be listed"
    return calls


_CONSTANTS = (
    *("date_trunc", "date_diff", "hour", "minute", "second"),
    *("add_interval", "add_days", "date_sub", "age_part", "make_date", "time_bucket"),
    *("strftime", "millisecond", "microsecond"),
)
"""Operators of dates that need more than a date."""


def _arguments(name: str) -> range:
    return range(1 if name not in _CONSTANTS else 2)


ALPHABETS: tuple[Callable[[int], str], ...] = (
    # What is searched is nearly found everywhere, or is found everywhere.
    lambda n: f"repeat('a', {n - 1}) || CAST(k % 10 AS VARCHAR)",
    lambda n: f"repeat(chr(97 + CAST(k % 20 AS INT)), {n})",
    lambda n: f"repeat(CAST(k % 10 AS VARCHAR), {n})",
    lambda n: f"repeat(' ', {n - 1}) || CAST(k % 10 AS VARCHAR)",
    lambda n: f"repeat('ß', {n - 1}) || CAST(k % 10 AS VARCHAR)",
    lambda n: f"repeat('İ', {n - 1}) || CAST(k % 10 AS VARCHAR)",
    lambda n: f"repeat('😀', {n - 1}) || CAST(k % 10 AS VARCHAR)",
    lambda n: f"repeat('\U00010400', {n})",
    lambda n: f"left('0001-02-03 ' || repeat(' ', {n}), {n})",
    lambda n: f"left('12' || repeat('.', 1) || repeat('7', {n}), {n})",
)


PATTERNED = ("like", "not_like", "ilike", "not_ilike", "replace", "starts_with", "ends_with", "contains", "position")
"""Operators that search a constant."""


class Bench:
    """One connection with the measured table."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.connection = duckdb.connect(":memory:", config=private_settings(threads=1, memory_limit_mb=2048))
        self.fill("chr(97 + CAST(k % 20 AS INT))")

    def fill(self, text: str) -> None:
        """The table with that text in every row. Numbers are such that no branch is free."""
        self.connection.execute(
            "CREATE OR REPLACE TABLE t AS SELECT k, CAST(k % 977 AS DOUBLE) * 1.37 + 0.5 AS x, "
            "CAST(k % 37 AS DOUBLE) * 0.61 + 0.25 AS y, (k % 977) * 1000003 + 1 AS i, k % 37 + 1 AS j, "
            f"{text} AS s, {text} AS r, k % 3 = 0 AS b, k % 5 <> 0 AS c, DATE '1970-01-01' + CAST(k % 20000 AS INT) AS d, "  # noqa: E501
            "DATE '2001-03-04' - CAST(k % 9000 AS INT) AS e, TIMESTAMP '2001-03-04 05:06:07.89' + INTERVAL (k % 9999) MINUTE "  # noqa: E501
            f"AS w, TIMESTAMP '1971-03-04 05:06:07.89' + INTERVAL (k % 999) HOUR AS v FROM range({self.rows}) q(k)"
        )

    def nanoseconds(self, expressions: Sequence[Expression], *, sparse: bool) -> float:
        """Processor time of the whole table; with `sparse` one row of each vector needs the expressions."""
        parameters = ParameterList()
        lowered = [DUCKDB.write(lower_expression(expression, parameters)) for expression in expressions]
        if sparse:
            lowered = [f"CASE WHEN k % {VECTOR} = 77 THEN {text} END" for text in lowered]
        counted = ", ".join(f"count(o{n})" for n in range(len(lowered)))
        sql = f"SELECT {counted} FROM (SELECT {', '.join(f'{text} AS o{n}' for n, text in enumerate(lowered))} FROM t)"
        best = float("inf")
        for _ in range(5):
            start = time.process_time_ns()
            self.connection.execute(sql, list(parameters.values)).fetchall()
            best = min(best, time.process_time_ns() - start)
        return best


def measure(name: str, short: Bench, sparse: Bench, long: Bench, characters: int) -> Cost:
    """The figures of one operator."""
    row = wide = vector = character = pattern = 0.0
    rates: list[tuple[Expression, float]] = []
    for expression, parts in samples(name):
        # The columns are read anyway; what is needed of the arguments is not the operator's either.
        dense = (
            short.nanoseconds([expression], sparse=False) - short.nanoseconds(_below(expression, parts), sparse=False)
        ) / short.rows
        rates.append((expression, dense))
        if parts:
            wide = max(wide, dense)
        else:
            row = max(row, dense)
        alone = sparse.nanoseconds([expression], sparse=True) - sparse.nanoseconds(
            _below(expression, parts), sparse=True
        )
        vector = max(vector, alone * VECTOR / sparse.rows)
    texts = [(expression, rate) for expression, rate in rates if any(a.type is TEXT for a in columns_of(expression))]
    if texts:
        for alphabet in ALPHABETS:
            long.fill(alphabet(characters))
            for expression, rate in texts:
                base = long.nanoseconds(_below(expression, ()), sparse=False)
                took = (long.nanoseconds([expression], sparse=False) - base) / long.rows
                character = max(character, (took - rate) / characters)
    if name in PATTERNED:
        # Nearly found at every character: the dearest text for a search that goes back.
        for letter in ("a", "ß", "İ", "😀"):
            long.fill(f"repeat('{letter}', {characters - 1}) || CAST(k % 10 AS VARCHAR)")
            base = long.nanoseconds([S], sparse=False)
            needle = "_" * 99 + "b" if "like" in name else letter * 99 + "b"
            arguments = [S, words(f"%{needle}%" if "like" in name else needle), words("")]
            took = long.nanoseconds([build(name, arguments[: 3 if name == "replace" else 2])], sparse=False) - base
            pattern = max(pattern, (took / long.rows / characters - character) / len(needle))
    return Cost(row=row, vector=vector, wide=wide, character=character, pattern=pattern)


def _below(expression: Expression, parts: Sequence[Expression]) -> list[Expression]:
    """What is subtracted: the parts, and the columns that the expression reads beside them."""
    read = [column for part in parts for column in columns_of(part)]
    return [*parts, *(column for column in columns_of(expression) if column not in read)]


def taken(cost: Cost, part: str) -> float:
    """What the model takes for a part of an operator's cost."""
    return max(cost.row, cost.wide) if part == "wide" else float(getattr(cost, part))


def main() -> int:
    """Prints the table, and what is above it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_960)
    parser.add_argument("--characters", type=int, default=200)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    speed = probe_nanoseconds()
    scale = speed / DUCKDB.costs.probe
    figures: dict[str, Any] = {"speed_ns": round(speed), "scale": round(scale, 2)}
    above = []
    short, sparse, long = Bench(options.rows), Bench(400 * VECTOR), Bench(VECTOR)
    for name in options.only or REGISTRY:
        cost = measure(name, short, sparse, long, options.characters)
        found = {part: getattr(cost, part) / scale for part in ("row", "vector", "wide", "character", "pattern")}
        shown = {part: math.ceil(value * HEADROOM * DIGITS[part]) / DIGITS[part] for part, value in found.items()}
        print(
            f'    "{name}": Cost({", ".join(f"{part}={value:g}" for part, value in shown.items() if value)}),',
            flush=True,
        )
        known = DUCKDB.costs.operators.get(name) or REGISTRY[name].cost
        if known is None or any(value > taken(known, part) for part, value in found.items()):
            above.append(name)
    print(json.dumps({**figures, "above_the_table": above}))
    return 1 if options.check and above else 0


if __name__ == "__main__":
    sys.exit(main())
