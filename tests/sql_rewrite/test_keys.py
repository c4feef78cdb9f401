"""Group keys that are whole numbers, and keys that may leave 64 bits."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.policy import KeyValue
from privacy.refusal import Finding, Refused
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.evaluate import evaluate
from sql_rewrite.expressions import ColumnRef, Expression, Interval, Literal
from sql_rewrite.functions import build
from sql_rewrite.keys import fits, whole
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.plan_key import core_key
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.function_cases import (
    EDGES,
    INTEGER,
    NUMBER,
    TEXT,
    I,
    J,
    X,
    Y,
    edge_rows,
    integer,
    null,
    number,
    run,
)

LEVEL = ColumnRef("t", "level", INTEGER, nullable=False, domain=(0, 1, 2, 3))


def of(operator: str, *arguments: Expression) -> Expression:
    """An operator applied to arguments."""
    return build(operator, arguments)


def floor(value: Expression) -> Expression:
    """FLOOR."""
    return of("floor", value)


def core(sql: str) -> BoundedCore:
    """The only bounded core of a text."""
    (only,) = bound(lift(sql, CLINIC))
    return only


def refused(sql: str) -> Finding:
    """The first finding of a text that must be refused."""
    with pytest.raises(Refused) as caught:
        bound(lift(sql, CLINIC))
    return caught.value.findings[0]


WHOLE = [
    floor(X),
    of("ceil", of("divide", J, integer(10))),
    of("trunc", Y),
    of("round", Y),
    of("round", Y, integer(-2)),
    of("multiply", floor(X), number(10.0)),
    of("multiply", floor(Y), of("ceil", Y)),
    of("add", floor(X), J),
    of("subtract", of("round", Y), of("trunc", X)),
    of("negate", floor(X)),
    of("abs", of("ceil", X)),
    of("modulo", floor(Y), integer(7)),
    of("least", floor(X), floor(Y)),
    of("coalesce", floor(X), number(-1.0)),
    of("nullif", floor(X), number(3.0)),
    of("case", of(">", X, number(1.5)), floor(X), null(NUMBER)),
    of("cast_number", J),
    of("as_number", J),
    J,
]
FRACTIONS = [
    X,
    of("divide", J, integer(10)),
    of("multiply", floor(X), number(0.5)),
    of("round", X, integer(1)),
    of("sqrt", floor(X)),
    of("divide", floor(X), integer(2)),
    of("case", of(">", X, number(1.5)), floor(X), X),
    of("coalesce", floor(X), number(0.5)),
    number(2.5),
]


@pytest.mark.parametrize("expression", WHOLE, ids=str)
def test_whole_numbers_have_whole_values(expression: Expression) -> None:
    """Shows on difficult values that what counts as whole is: no value has a fraction."""
    assert whole(expression)
    for row in itertools.islice(edge_rows(expression), 2_000):
        value = evaluate(expression, row)
        assert value is None or float(value).is_integer()  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", FRACTIONS, ids=str)
def test_numbers_with_a_fraction_are_not_whole(expression: Expression) -> None:
    """Shows that a fraction is seen, and that each of these has one for some value."""
    assert not whole(expression)
    values = [evaluate(expression, row) for row in itertools.islice(edge_rows(expression), 2_000)]
    assert any(value is not None and not float(value).is_integer() for value in values)  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", [e for e in WHOLE if e.type is NUMBER], ids=str)
def test_a_whole_number_is_the_same_integer_in_the_engine(expression: Expression) -> None:
    """Shows in DuckDB that the key is the double's own value within 64 bits, NULL beyond, and never an error."""
    rows = list(itertools.islice(edge_rows(expression), 1_500))
    keys, numbers = run(of("cast_integer", expression), rows), run(expression, rows)
    for key, value in zip(keys, numbers, strict=True):
        assert value is None or isinstance(value, float)
        inside = value is not None and -(2.0**63) <= value < 2.0**63
        assert key == (int(value) if inside and value is not None else None)
        assert key is None or (isinstance(key, int) and float(key) == value)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=5), st.data())
def test_sums_and_products_of_whole_doubles_are_whole(values: list[float], data: st.DataObject) -> None:
    """Shows the arithmetic behind it: rounding an integer to a double gives an integer, whatever its size."""
    total = float(math.floor(values[0]))
    for value in values[1:]:
        other = float(math.floor(value))
        total = data.draw(st.sampled_from([total + other, total - other, total * other]))
        if not math.isfinite(total):
            return
        assert total.is_integer()


# --- keys of queries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("FLOOR(hours / 10)", tuple(range(9))),
        ("FLOOR(hours / 10) * 10", tuple(range(0, 90, 10))),
        ("ROUND(hours / 40)", (0, 1, 2)),
        ("TRUNC(hours / 40) - 1", (-1, 0, 1)),
        ("FLOOR(MONTH(born) / 4)", (0, 1, 2, 3)),
    ],
)
def test_public_columns_give_public_whole_keys(key: str, expected: tuple[KeyValue, ...]) -> None:
    """Shows that whole numbers of public columns, and of small ranges, are public keys, as integers."""
    only = core(f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY k")
    assert only.domains[0] is not None
    assert set(expected) == {value for value in only.domains[0] if value is not None}
    assert all(type(value) is int for value in only.domains[0] if value is not None)


@pytest.mark.parametrize("key", ["FLOOR(salary / 1000)", "ROUND(salary, -3)", "CEIL(age / 10)", "TRUNC(salary) * 2"])
def test_other_whole_keys_are_selected(key: str) -> None:
    """Shows that a number which is only bounded has hidden keys, like an integer that is only bounded."""
    only = core(f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY k")
    assert only.domains == (None,)
    assert only.described.keys.selection is not None


def test_a_whole_number_and_its_integer_are_one_release() -> None:
    """Shows that FLOOR(x) and CAST(FLOOR(x) AS BIGINT) ask the same of the rows, and differ in the shell alone."""
    plain = lift("SELECT FLOOR(hours / 10) AS k, COUNT(*) FROM people GROUP BY k", CLINIC)
    cast = lift("SELECT CAST(FLOOR(hours / 10) AS BIGINT) AS k, COUNT(*) FROM people GROUP BY k", CLINIC)
    assert core_key(bound(plain)[0], CLINIC) == core_key(bound(cast)[0], CLINIC)
    assert 'CAST("k0" AS DOUBLE)' in plain.shell.sql
    assert cast.shell.trivial
    assert [("k", "key"), ("count_star()", "released")] == [(o.name, o.kind) for o in plain.shell.outputs]


def test_a_whole_key_may_stand_anywhere_above() -> None:
    """Shows HAVING, ORDER BY and arithmetic on the key, by its expression and by its alias."""
    for text in (
        "SELECT FLOOR(hours / 10) AS k, COUNT(*) FROM people GROUP BY k HAVING FLOOR(hours / 10) > 2 ORDER BY k",
        "SELECT FLOOR(hours / 10) * 10 AS low, FLOOR(hours / 10) * 10 + 9 AS high, COUNT(*) FROM people GROUP BY "
        "FLOOR(hours / 10)",
        "SELECT FLOOR(hours / 10), CAST(FLOOR(hours / 10) AS BIGINT), COUNT(*) FROM people GROUP BY ALL",
        "SELECT k, n FROM (SELECT FLOOR(hours / 10) AS k, COUNT(*) AS n FROM people GROUP BY k) WHERE k < 3.5",
    ):
        lower(core(text))


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("hours / 10", "GROUP BY hours // 10"),
        ("salary / 10", "GROUP BY FLOOR(salary / 10)"),
        ("salary", "GROUP BY FLOOR(salary)"),
        ("ROUND(salary, 12)", "GROUP BY FLOOR(ROUND(salary, 12))"),
    ],
)
def test_a_fraction_is_no_key(key: str, instead: str) -> None:
    """Shows the refusal, and that what it suggests is answered."""
    found = refused(f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY k")
    assert found.code == "unsupported_type"
    assert instead in found.instead
    core(f"SELECT COUNT(*) FROM people {instead}")


# --- keys beyond 64 bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    ["hours * 9223372036854775807", "age * 9223372036854775807", "person_id % 7 * 9223372036854775807",
     "person_id * person_id",
     "FLOOR(income)", "FLOOR(EXP(age * 3))", "ROUND(salary * 1e30)"],
)  # fmt: skip
def test_a_key_that_may_leave_64_bits_is_refused(key: str) -> None:
    """Shows that no cell is made for a value that no row can have, and that the refusal points at the key."""
    found = refused(f"SELECT {key} AS k, COUNT(*) FROM people GROUP BY k")
    assert found.code == "too_large"
    assert found.position is not None
    assert key == found.position.text
    assert any("GREATEST" in line for line in found.instead)


@pytest.mark.parametrize(
    "key",
    ["hours * 115292150460684697", "age * 1000", "age * 92233720368547758", "hospital_id + 1",
     "hospital_id * 2", "-hospital_id", "visit_id // 100 * 100", "FLOOR(visit_id / 100) * 100",
     "CAST(FLOOR(cost) AS BIGINT)", "visit_id % 10"],
)  # fmt: skip
def test_keys_within_64_bits_are_answered(key: str) -> None:
    """Shows that bounds, public values and half the range of other columns decide."""
    table = "visits" if "_id" in key or "cost" in key else "people"
    core(f"SELECT {key} AS k, COUNT(*) FROM {table} GROUP BY k")


def test_public_values_decide_one_by_one() -> None:
    """Shows the last factor that fits, and the first that does not."""
    last = (2**63 - 1) // 3
    assert fits(of("multiply", LEVEL, integer(last)), 1_000)
    assert not fits(of("multiply", LEVEL, integer(last + 1)), 1_000)
    without = replace(LEVEL, domain=(0, 1, 2))
    assert fits(of("multiply", without, integer(last + 1)), 1_000)


def test_bounds_decide_for_other_columns() -> None:
    """Shows the same for declared bounds, and that a column without bounds has half its range."""
    bounded = replace(J, declared=Interval(Fraction(0), Fraction(3)))
    last = (2**63 - 1) // 3
    assert fits(of("multiply", bounded, integer(last)), 1_000)
    assert not fits(of("multiply", bounded, integer(last + 1)), 1_000)
    assert fits(of("add", J, J), 1_000)
    assert not fits(of("add", of("add", J, J), J), 1_000)
    assert fits(floor(X), 1_000)
    assert not fits(floor(Y), 1_000)


def test_a_row_beyond_its_bounds_has_a_null_key_and_no_error() -> None:
    """Shows in DuckDB that a stored value which breaks the bounds gives NULL where the key leaves 64 bits."""
    key = of("multiply", I, integer(10**18))
    assert not fits(key, 1_000)
    safe = of("multiply", I, integer(10**17))
    assert fits(safe, 1_000)
    rows = [{("t", "i"): value} for value in EDGES[INTEGER]]
    found = run(of("cast_integer", safe), rows)
    for row, value in zip(rows, found, strict=True):
        stored = row["t", "i"]
        exact = stored * 10**17 if isinstance(stored, int) else None
        assert value == (exact if exact is not None and -(2**63) <= exact < 2**63 else None)


def test_constants_are_whole_or_not() -> None:
    """Shows the rule for literals and NULL."""
    assert whole(number(3.0))
    assert whole(null(NUMBER))
    assert not whole(number(3.5))
    assert not whole(Literal("3", TEXT))
