"""One list of aggregates: everything that tells them apart is a view of it, and each view is whole."""

from __future__ import annotations

import math
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

from mechanisms.estimates import ESTIMATORS, linear_form, registered
from privacy.aggregate import AggregateFunction
from privacy.described import Described, ResultType
from privacy.policy import ColumnType
from privacy.refusal import Refused
from privacy.statistic import StatisticKind
from server.matrix import sql_matrix
from sql_rewrite.bound import bound
from sql_rewrite.hints import AGGREGATES
from sql_rewrite.lift import lift
from tests.hostile.duck import Reader
from tests.sql_rewrite.datasets import CLINIC

CHECKOUT = Path(__file__).resolve().parents[1]
SAMPLES = ((), (3.0,), (3.0, 3.0), (1.0, 2.5, -4.0), tuple(range(100)))
FORMS = [(function, form) for function in AggregateFunction for form in function.described.forms]
DISTINCT = [(function, form) for function in AggregateFunction for form in function.described.distinct]


PARTS = (("(p) WITHIN GROUP (ORDER BY x)", "(0.5) WITHIN GROUP (ORDER BY hours)"),)
"""How the part of the rows is written in the forms that have one."""


def asked(form: str) -> str:
    """A question with the call, over a column that may be NULL."""
    for placeholder, written in (
        ("(x)", "(hours)"),
        ("DISTINCT x)", "DISTINCT hours)"),
        ("(y, x)", "(hours, age)"),
        ("(condition)", "(age > 30)"),
        ("unit)", "person_id)"),
        *PARTS,
        ("(x, p)", "(hours, 0.5)"),
    ):
        form = form.replace(placeholder, written)
    return f"SELECT {form} AS n FROM people"


@pytest.mark.parametrize(("function", "form"), FORMS, ids=lambda value: getattr(value, "name", value))
def test_every_form_is_read_as_its_aggregate(function: AggregateFunction, form: str) -> None:
    """Each way to write an aggregate is lifted to it, and to sums that hold it, of the result type that it has."""
    plan = lift(asked(form), CLINIC)
    ((aggregate,),) = [core.aggregates for core in plan.cores]
    assert function is aggregate.function
    (core,) = bound(plan)
    (estimate,) = core.described.estimates
    (statistic,) = core.described.statistics
    assert estimate.kind in (function, AggregateFunction.ROWS)
    linear = linear_form(statistic, estimate.kind) is not None
    ratio = function.statistic in (StatisticKind.MOMENTS, StatisticKind.RANKS) or function.described.of_pairs
    whole = function.described.result is ResultType.WHOLE and function is not AggregateFunction.PRESENT
    assert linear is (whole or (not ratio and function is not AggregateFunction.PRESENT))
    argument = None if aggregate.argument is None else aggregate.argument.type
    assert estimate.integer is function.whole(argument)


@pytest.mark.parametrize(("function", "form"), DISTINCT, ids=lambda value: getattr(value, "name", value))
def test_every_form_of_different_values_is_read(function: AggregateFunction, form: str) -> None:
    """Each way to write it is lifted to the aggregate of different values, and to sums of such."""
    plan = lift(asked(form), CLINIC)
    ((aggregate,),) = [core.aggregates for core in plan.cores]
    assert function is aggregate.function
    assert aggregate.distinct
    (core,) = bound(plan)
    (statistic,) = core.described.statistics
    assert statistic.distinct
    assert f"`{form}`" in (CHECKOUT / "docs" / "sql.md").read_text("utf-8")


@pytest.mark.parametrize(("function", "form"), FORMS, ids=lambda value: getattr(value, "name", value))
def test_only_counts_take_text(function: AggregateFunction, form: str) -> None:
    """An argument of a type that is not in the description is refused; counts take every type, or no argument."""
    of_text = asked(form).replace("hours", "education")
    if not function.arguments or ColumnType.TEXT in function.arguments:
        assert function is lift(of_text, CLINIC).cores[0].aggregates[0].function
        return
    with pytest.raises(Refused) as refused:
        lift(of_text, CLINIC)
    assert {finding.code for finding in refused.value.findings} == {"unsupported_type"}


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("function", "name"),
    [(function, name) for function in AggregateFunction for name in function.described.elsewhere],
    ids=lambda value: getattr(value, "name", value),
)
def test_names_of_other_systems_lead_to_it(function: AggregateFunction, name: str) -> None:
    """A name that the list knows from elsewhere is refused with the aggregate's hint."""
    reader = Reader()
    with pytest.raises(Refused) as refused:
        reader.read(f"SELECT {name}(hours) FROM people")
    reader.close()
    hint = function.described.hint
    filled = re.sub(r"\b[xv]\b", "hours", hint)  # of one column; of two it says what the letters are
    lines = [line for finding in refused.value.findings for line in finding.instead]
    assert any(line == filled or line.endswith(f": {hint}") for line in lines)


def test_capabilities_and_hints_are_the_list() -> None:
    """What is announced, and what is suggested, is every aggregate in its order."""
    assert sql_matrix()["aggregates"] == [form for _, form in (*FORMS, *DISTINCT)]
    assert AGGREGATES == "use COUNT, SUM, AVG, VARIANCE, STDDEV or MEDIAN"


@pytest.mark.parametrize("function", AggregateFunction, ids=lambda function: function.name)
def test_docs_have_its_line(function: AggregateFunction) -> None:
    """docs/sql.md has the line of each aggregate, as its description says."""
    forms = ", ".join(f"`{form}`" for form in function.described.forms)
    lines = (CHECKOUT / "docs" / "sql.md").read_text("utf-8").splitlines()
    assert f"| {forms} | {function.described.meaning} |" in lines


def test_docs_say_what_becomes_of_rows_beyond_the_bounds() -> None:
    """The second table of docs/sql.md has a row for every way that aggregates treat them, with calls of that way."""
    text = (CHECKOUT / "docs" / "sql.md").read_text("utf-8")
    table = text.partition("| aggregate | of a unit with more rows than are allotted to it in a group |")[2]
    rows = [line.strip("| ").split(" | ") for line in table.partition("\n\n")[0].splitlines()[2:]]
    ways = {form: function.described.beyond for function, form in FORMS}
    assert {(form, way) for names, way in rows for form in names.strip("`").split("`, `")} <= ways.items()
    assert sorted(way for _, way in rows) == sorted(set(ways.values()))


def test_every_aggregate_has_one_estimator() -> None:
    """None is left out, none is there twice, and each estimator says whose it is."""
    assert set(ESTIMATORS) == set(AggregateFunction)
    assert all(estimator.function is function for function, estimator in ESTIMATORS.items())
    for function in AggregateFunction:
        with pytest.raises(ValueError, match=f"no estimator .* {function.name}"):
            registered(estimator for estimator in ESTIMATORS.values() if estimator.function is not function)
        with pytest.raises(ValueError, match=f"two estimators .* {function.name}"):
            registered((*ESTIMATORS.values(), ESTIMATORS[function]))


@pytest.mark.parametrize("values", SAMPLES, ids=repr)
@pytest.mark.parametrize(("function", "form"), FORMS, ids=lambda value: getattr(value, "name", value))
@pytest.mark.sparse(10)
def test_the_definition_is_that_of_the_engine(
    function: AggregateFunction, form: str, values: tuple[float, ...]
) -> None:
    """The truth that the tests of noise compare with is what DuckDB's own function of that name says of plain rows."""
    nulls = 2
    # A second value, of which each row without a first one has one, and the last row with a first one has none.
    others = [round(math.sin(unit), 3) for unit in range(len(values) + nulls)]
    rows = [(unit, True, value, others[unit]) for unit, value in enumerate((*values, *(None,) * nulls))]
    if function.described.of_pairs:
        rows.append((len(rows), True, 1.0, None))
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE t (unit INTEGER, condition BOOLEAN, y DOUBLE, x DOUBLE)")
        plain.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(a, b, d, c) for a, b, c, d in rows])
        written = form.replace("(p)", "(0.5)").replace(", p)", ", 0.5)").replace("APPROX_QUANTILE", "QUANTILE_DISC")
        found = plain.execute(f"SELECT {written} FROM t").fetchone()
    if function.described.of_pairs:
        pairs = [(other, value) for value, other in zip(values, others, strict=False)]
        given = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    else:
        given = np.array(values, dtype=np.float64)
    truth = ESTIMATORS[function].truth(given, nulls=nulls)
    # A sum of nothing is NULL in SQL, and zero with noise here.
    expected = 0 if function is AggregateFunction.SUM and not values else found and found[0]
    if isinstance(expected, bool):
        expected = int(expected)
    if isinstance(expected, float) and math.isnan(expected):
        expected = None
    assert truth == (None if expected is None else pytest.approx(expected, rel=1e-9, abs=1e-9))


def test_identities_are_never_reused() -> None:
    """What releases store by is one text per aggregate, and those of version 0.2.0 are as they were."""
    stored = {function.value: function.name for function in AggregateFunction}
    assert len(stored) == len(AggregateFunction)
    assert (
        stored.items()
        >= {
            "rows": "ROWS",
            "values": "VALUES",
            "units": "UNITS",
            "sum": "SUM",
            "average": "AVERAGE",
            "variance_population": "VARIANCE_POPULATION",
            "variance_sample": "VARIANCE_SAMPLE",
            "deviation_population": "DEVIATION_POPULATION",
            "deviation_sample": "DEVIATION_SAMPLE",
        }.items()
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"degree": 0},
        {"degree": 5},
        {"second_degree": 1},
        {"symmetric": True},
        {"statistic": StatisticKind.SUM},
        {"names": ()},
        {"names": ("MAD",)},
        {"elsewhere": ("mad",)},
        {"hint": "MAD(x)"},
        {"elsewhere": ("x",), "hint": "MAD(x)"},
    ],
)
def test_a_description_that_cannot_be_is_refused(changes: dict[str, object]) -> None:
    """Moments have a degree that is proved, others none; names are lower case, others have a hint."""
    whole: dict[str, object] = {
        "stored": "x",
        "names": ("x",),
        "arguments": (),
        "statistic": StatisticKind.MOMENTS,
        "degree": 2,
        "result": ResultType.NUMBER,
        "meaning": "x",
    }
    Described(**whole)  # type: ignore[arg-type]
    with pytest.raises(AssertionError):
        Described(**{**whole, **changes})  # type: ignore[arg-type]
