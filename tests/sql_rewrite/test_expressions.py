"""Expression nodes: invariants, equal forms, text for people, the evaluator, and public keys of expressions."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privacy.policy import ColumnType, KeyValue, Other
from sql_rewrite.dialects.duckdb import DUCKDB, quote
from sql_rewrite.evaluate import evaluate, map_domain
from sql_rewrite.expressions import (
    BIGINT,
    Call,
    ColumnRef,
    Expression,
    Interval,
    Literal,
    canonical,
    columns_of,
    describe,
    interval_of,
)
from sql_rewrite.functions import build, cast, clip_columns, ranges
from sql_rewrite.group_keys import gathered
from sql_rewrite.lower_expression import ParameterList, lower
from tests.sql_rewrite.function_cases import (
    BOOLEAN,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    TIMESTAMP,
    B,
    D,
    I,
    J,
    K,
    M,
    S,
    U,
    X,
    Y,
    edge_rows,
    integer,
    null,
    number,
    run,
    text,
)
from tests.sql_rewrite.test_functions import nested

SEX = ColumnRef("t", "sex", TEXT, nullable=False, domain=("F", "M"))
REGION = ColumnRef("t", "region", TEXT, nullable=True, domain=("west", "East", "north", None))
TOWN = ColumnRef("t", "town", TEXT, nullable=True, domain=("west", "East"))
YEARS = ColumnRef("t", "years", INTEGER, domain=(0, 1, 2, 3, -1, None), other=Other(-1))
WARD = ColumnRef("t", "ward", TEXT, nullable=False, domain=("a", "b", None), other=Other(None))
AGE = ColumnRef("t", "age", INTEGER, nullable=False, domain=tuple(range(0, 100, 10)))


# --- nodes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, INTEGER),
        (1, NUMBER),
        (float("nan"), NUMBER),
        (float("inf"), NUMBER),
        (2**127, INTEGER),
        (1, BOOLEAN),
        (datetime.datetime(2024, 1, 1), DATE),
        (datetime.date(2024, 1, 1), TIMESTAMP),
        (datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), TIMESTAMP),
        ("x" * 10_001, TEXT),
    ],
)
def test_literals_hold_values_of_their_type_only(value: object, kind: ColumnType) -> None:
    """A constant of the wrong Python type, not finite, with a zone, or too large is no literal."""
    with pytest.raises(AssertionError):
        Literal(value, kind)  # type: ignore[arg-type]


def test_a_lone_surrogate_is_no_text() -> None:
    """Half a character cannot be stored and cannot be sent to the engine."""
    with pytest.raises(UnicodeEncodeError):
        Literal("\ud800", TEXT)


def test_equal_python_values_of_different_types_are_different_literals() -> None:
    """1, 1.0 and TRUE are equal in Python, but not as constants of a query."""
    assert len({integer(1), number(1.0), Literal(True, BOOLEAN)}) == 3


def test_integer_columns_have_the_range_of_their_type() -> None:
    """Without a narrower range an INTEGER column holds 64 bits, a NUMBER anything finite."""
    assert interval_of(J) == BIGINT
    assert Interval(None, None) == interval_of(Y)


def test_columns_of_lists_each_column_once_in_order() -> None:
    """Columns come in the order of their first appearance."""
    expression = build("case", (build("=", (S, text("a"))), J, build("add", (J, K))))
    assert columns_of(expression) == (S, J, K)


# --- interval arithmetic -----------------------------------------------------------------------------------------

_SIDES = st.one_of(st.none(), st.fractions(-10, 10, max_denominator=4))


@st.composite
def intervals_with_member(draw: st.DrawFn) -> tuple[Interval, Fraction]:
    """An interval, perhaps open to one side, and a value in it."""
    low, middle, high = sorted(draw(st.tuples(*[st.fractions(-10, 10, max_denominator=4)] * 3)))
    return Interval(draw(st.sampled_from([low, None])), draw(st.sampled_from([high, None]))), middle


@settings(deadline=None)
@given(first=intervals_with_member(), second=intervals_with_member())
def test_interval_arithmetic_contains_every_result(
    first: tuple[Interval, Fraction], second: tuple[Interval, Fraction]
) -> None:
    """Whatever two members are taken, the operation's result lies in the operation's interval."""
    (a, x), (b, y) = first, second
    assert ranges.add(a, b).contains(x + y)
    assert ranges.multiply(a, b).contains(x * y)
    assert ranges.negate(a).contains(-x)
    assert ranges.absolute(a).contains(abs(x))
    assert ranges.hull((a, b)).contains(x)
    assert ranges.smallest((a, b)).contains(min(x, y))
    assert ranges.largest((a, b)).contains(max(x, y))
    assert ranges.outward(a).contains(x)
    if y != 0:
        assert ranges.divide(a, b).contains(x / y)
    if abs(y) >= 1:
        assert ranges.divide(a, b, least_divisor=Fraction(1)).contains(x / y)


# --- equal forms -------------------------------------------------------------------------------------------------

_EQUAL = [
    (build("add", (J, K)), build("add", (K, J))),
    (build(">", (J, K)), build("<", (K, J))),
    (build(">=", (J, K)), build("<=", (K, J))),
    (build("=", (S, U)), build("=", (U, S))),
    (build("and", (B, build("not", (B,)))), build("and", (build("not", (B,)), B))),
    (build("and", (build("and", (B, build("is_null", (J,)))), B)), build("and", (build("is_null", (J,)), B))),
    (build("in", (J, integer(1), integer(2))), build("in", (J, integer(2), integer(1), integer(2)))),
    (build("greatest", (J, integer(0))), build("greatest", (integer(0), J))),
    (build("or", (B, B)), B),
    (J, ColumnRef("T", "J", INTEGER)),
]
_UNEQUAL = [
    (build("subtract", (J, K)), build("subtract", (K, J))),
    (build("divide", (J, K)), build("divide", (K, J))),
    (build("<", (J, K)), build("<", (K, J))),
    (build("=", (J, integer(1))), build("=", (J, number(1.0)))),
    (build("coalesce", (J, K)), build("coalesce", (K, J))),
    (build("and", (B, build("is_null", (J,)))), build("or", (B, build("is_null", (J,))))),
    (build("is_null", (S,)), build("=", (S, text("")))),
    (text("NULL"), null(TEXT)),
    (text("1"), integer(1)),
    (J, clip_columns(I)),
    (build("concat", (S, U)), build("concat", (U, S))),
]


@pytest.mark.parametrize(("first", "second"), _EQUAL)
def test_equal_spellings_have_one_form(first: Expression, second: Expression) -> None:
    """Order of commutative sides, repeats, direction of comparisons and case of names do not matter."""
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(("first", "second"), _UNEQUAL)
def test_different_meanings_have_different_forms(first: Expression, second: Expression) -> None:
    """Anything that may change a value changes the form: a stored release must not answer another question."""
    assert canonical(first) != canonical(second)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_forms_are_json_and_hashable(data: st.DataObject) -> None:
    """The form of any expression survives JSON as nested lists, and can be a dictionary's key."""
    form = canonical(data.draw(nested(data.draw(st.sampled_from(list(ColumnType))), 3)))
    assert json.loads(json.dumps(form)) == json.loads(json.dumps(form))
    assert form in {form}


# --- text for people ---------------------------------------------------------------------------------------------

_DESCRIBED = [
    (build("add", (build("multiply", (J, integer(2))), K)), "(j * 2) + k"),
    (
        build("case", (build(">", (J, integer(5))), text("old"), text("it's"))),
        "CASE WHEN j > 5 THEN 'old' ELSE 'it''s' END",
    ),
    (build("is_null", (S,)), "s IS NULL"),
    (build("in", (J, integer(1), null(INTEGER))), "j IN (1, NULL)"),
    (build("like", (S, text("a!%"), text("!"))), "s LIKE 'a!%' ESCAPE '!'"),
    (build("divide", (J, K)), "j / k"),
    (build("not", (B,)), "NOT b"),
    (cast(S, INTEGER), "CAST(s AS BIGINT)"),
    (clip_columns(build("sqrt", (I,))), "SQRT(clip(i, -5 to 10))"),
    (build("nullif", (J, integer(9))), "NULLIF(j, 9)"),
    (build("date_trunc", (text("month"), D)), "date_trunc('month', d)"),
    (build("=", (D, text("2024-02-29"))), "d = '2024-02-29'"),
    (build("=", (B, Literal(True, BOOLEAN))), "b = TRUE"),
    (build("day_of_week", (D,)), "DAYOFWEEK(d)"),
    (build("negate", (Y,)), "-y"),
    (build("and", (build(">=", (J, integer(1))), build("<=", (J, integer(2))))), "(j >= 1) AND (j <= 2)"),
]


@pytest.mark.parametrize(("expression", "expected"), _DESCRIBED, ids=[expected for _, expected in _DESCRIBED])
def test_descriptions(expression: Expression, expected: str) -> None:
    """Expressions are shown close to the SQL that was written."""
    assert expected == describe(expression)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_expression_has_a_description(data: st.DataObject) -> None:
    """Describing never fails, and names every column that is read."""
    expression = data.draw(nested(data.draw(st.sampled_from(list(ColumnType))), 4))
    shown = describe(expression)
    assert all(column.name in shown for column in columns_of(expression))


# --- lowering ----------------------------------------------------------------------------------------------------


def test_constants_are_parameters_and_shared() -> None:
    """No constant of the query is in the SQL text; equal ones of one type have one number, others do not."""
    parameters = ParameterList()
    tree = lower(
        build("and", (build("=", (S, text("'; DROP"))), build("in", (J, integer(1), integer(1), integer(7))))),
        parameters,
    )
    same_text = '("t"."s" = CAST($1 AS VARCHAR))'
    in_list = '("t"."j" IN (CAST($2 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS BIGINT)))'
    assert DUCKDB.write(tree) == f"({same_text} AND {in_list})"
    assert parameters.values == ("'; DROP", 1, 7)
    assert parameters.add(value=True) == 4
    assert parameters.add(1.0) == 5
    assert parameters.add(0.0) == 6
    assert parameters.add(-0.0) == 7
    assert parameters.add(1) == 2


def test_names_are_quoted() -> None:
    """A quotation mark in a name cannot end the identifier."""
    assert quote('a"b') == '"a""b"'
    assert run(U, [{("t", U.name): "x"}]) == ["x"]


# --- evaluator ---------------------------------------------------------------------------------------------------


def test_evaluate_reads_columns_by_relation_and_name() -> None:
    """Two relations may have a column of one name."""
    other = ColumnRef("o", "j", INTEGER)
    assert evaluate(build("subtract", (J, other)), {("t", "j"): 4, ("o", "j"): 7}) == -3


def test_evaluate_gives_null_for_infinities() -> None:
    """Overflow of a double is NULL at the operator where it happens, not an infinity further up."""
    quotient = build("divide", (number(1.0), build("multiply", (Y, Y))))
    assert evaluate(quotient, {("t", "y"): 1e200}) is None
    assert run(quotient, [{("t", "y"): 1e200}, {("t", "y"): 2.0}]) == [None, 0.25]


# --- public keys -------------------------------------------------------------------------------------------------

_OLD = build(">=", (AGE, integer(60)))
_DOMAINS: list[tuple[Expression, tuple[KeyValue, ...] | None]] = [
    (SEX, ("F", "M")),
    (REGION, ("west", "East", "north", None)),
    (TOWN, ("west", "East", None)),
    (build("is_null", (TOWN,)), (False, True)),
    (build("coalesce", (TOWN, text("none"))), ("west", "East", "none")),
    (build("case", (build("is_null", (TOWN,)), text("missing"), TOWN)), ("west", "East", "missing")),
    (build("is_null", (SEX,)), (False,)),
    (build("coalesce", (SEX, text("none"))), ("F", "M")),
    (YEARS, None),
    (build("is_null", (YEARS,)), (False, True)),
    (build("integer_divide", (YEARS, integer(2))), None),
    (gathered(YEARS, 100), (0, 1, 2, 3, -1, None)),
    (gathered(build("integer_divide", (YEARS, integer(2))), 100), (0, 1, None)),
    (gathered(build("is_null", (YEARS,)), 100), (False, True)),
    (gathered(WARD, 100), ("a", "b", None)),
    (gathered(build("coalesce", (WARD, text("z"))), 100), ("a", "b", "z")),
    (gathered(build("case", (build(">", (YEARS, integer(1))), text("x"), text("y"))), 100), ("x", "y")),
    (build("lower", (REGION,)), ("west", "east", "north", None)),
    (build("left", (REGION, integer(0))), ("", None)),
    (build("concat", (SEX, text("-"), REGION)), ("F-East", "F-north", "F-west", "M-East", "M-north", "M-west", None)),
    (build("integer_divide", (AGE, integer(50))), (0, 1)),
    (cast(build("floor", (build("divide", (AGE, integer(30))),)), INTEGER), (0, 1, 2, 3)),
    (_OLD, (False, True)),
    (build("=", (REGION, text("west"))), (True, False, None)),
    (build("is_null", (REGION,)), (False, True)),
    (build(">", (J, integer(3))), (False, True, None)),
    (build("is_null", (J,)), (False, True)),
    (B, (False, True, None)),
    (build("case", (build(">", (J, integer(3))), text("high"), text("low"))), ("high", "low")),
    (build("case", (build(">", (J, integer(3))), text("high"))), ("high", None)),
    (build("case", (_OLD, text("old"), SEX)), ("F", "M", "old")),
    (build("case", (build(">", (J, integer(3))), text("x"), SEX)), ("x", "F", "M")),
    (build("case", (build(">", (J, integer(3))), null(TEXT), S)), None),
    (build("coalesce", (REGION, text("none"))), ("west", "East", "north", "none")),
    (build("month", (D,)), (*range(1, 13), None)),
    (build("year", (D,)), None),
    (build("greatest", (integer(0), build("least", (K, integer(2))))), (0, 1, 2)),
    (build("sign", (Y,)), (-1, 0, 1, None)),
    (
        build("monthname", (ColumnRef("t", "d", DATE, nullable=False),)),
        (
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ),
    ),
    (text("everybody"), ("everybody",)),
    (null(TEXT), (None,)),
    (integer(3), (3,)),
    (J, None),
    (S, None),
    (D, None),
    (Y, None),
    (number(1.5), None),
    (build("multiply", (AGE, number(1.0))), None),
    (cast(build("ln", (build("add", (AGE, integer(1))),)), INTEGER), None),
    (build("date_trunc", (text("month"), M)), None),
]


@pytest.mark.parametrize(("expression", "expected"), _DOMAINS, ids=[describe(expression) for expression, _ in _DOMAINS])
def test_public_keys_of_expressions(expression: Expression, expected: tuple[KeyValue, ...] | None) -> None:
    """Finite values are found from declared keys, truth values, constants and ranges; everything else has none."""
    assert expected == map_domain(expression, 1_000)


def test_public_keys_respect_the_limit() -> None:
    """More combinations or values than the limit are no public keys."""
    assert map_domain(build("concat", (SEX, REGION)), 8) is not None
    assert map_domain(build("concat", (SEX, REGION)), 7) is None
    assert map_domain(SEX, 1) is None
    assert map_domain(build("month", (D,)), 12) is None
    assert map_domain(build("month", (D,)), 13) is not None


def test_keys_that_python_may_spell_differently_are_not_public() -> None:
    """A letter that Python's tables do not know may be mapped by the engine: no keys from LOWER of it."""
    unknown = ColumnRef("t", "s", TEXT, domain=("a", "\U0001fbff\U000e0fff"))
    assert map_domain(build("lower", (unknown,)), 10) is None
    assert map_domain(build("trim", (unknown,)), 10) == ("a", "\U0001fbff\U000e0fff", None)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_public_keys_contain_every_value(data: st.DataObject) -> None:
    """Whatever DuckDB computes for rows inside the columns' keys is in the mapped keys."""
    kind = data.draw(st.sampled_from([INTEGER, TEXT, BOOLEAN, DATE, TIMESTAMP]))
    expression = gathered(_with_domains(data.draw(nested(kind, 3)), data), 1_000)
    domain = map_domain(expression, 1_000)
    if domain is None:
        return
    assert len(set(domain)) == len(domain)
    rows = [
        row
        for row in edge_rows(expression, 300)
        if all(
            c.domain is None or c.other or row[c.relation, c.name] in (*c.domain, None) for c in columns_of(expression)
        )
    ]
    if rows:
        assert set(run(expression, rows)) <= set(domain)


def _with_domains(expression: Expression, data: st.DataObject) -> Expression:
    """The expression with public keys on some of its columns."""
    keys: dict[str, tuple[KeyValue, ...]] = {
        "i": (0, 1, -10),
        "j": (2**63 - 1, 0, -(2**63)),
        "s": ("a", "ß", "9223372036854775808", "2024-02-29"),
        "d": (datetime.date(2024, 2, 29), datetime.date(1, 1, 1)),
    }
    chosen = data.draw(st.sets(st.sampled_from(sorted(keys))))

    def replaced(node: Expression) -> Expression:
        if isinstance(node, ColumnRef) and node.name in chosen:
            other = Other(None) if node.name in ("j", "s") else None
            domain = (*keys[node.name], None) if other else keys[node.name]
            return ColumnRef(node.relation, node.name, node.type, declared=node.declared, domain=domain, other=other)
        if isinstance(node, Call):
            return build(node.operator, tuple(replaced(argument) for argument in node.arguments))
        return node

    return replaced(expression)


def test_clipped_numbers_lie_between_doubles_inside_the_bounds() -> None:
    """0.1 is no double: the clip bound is the next double inside, so that the proved range is the true one."""
    clipped = interval_of(clip_columns(X))
    assert clipped.lower is not None
    assert Fraction(1, 10) <= clipped.lower < Fraction(1, 10) + Fraction(1, 10**15)
    assert Fraction(199, 2) == clipped.upper
