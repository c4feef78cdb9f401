"""What is true of `CBRT` where the recipe of docs/recipes/scalar_function.md was followed; run in a copy.

The name keeps it out of a run over this checkout, which has no such function.
"""

from __future__ import annotations

import csv
import math
import statistics
from pathlib import Path

import pytest

import sql_rewrite.functions
from privacy.refusal import Refused
from server.matrix import sql_matrix
from sql_rewrite.bound import bound
from sql_rewrite.cost import check_work
from sql_rewrite.dialects import DIALECTS
from sql_rewrite.functions import REGISTRY
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.journey.clinic import answer_to, attach, open_account, question, services_of, write_files
from tests.journey.fixtures import own_noise
from tests.sql_rewrite.datasets import CLINIC

__all__ = ["own_noise"]

QUERY = "SELECT AVG(CBRT(age)) AS c FROM people"


def test_the_copy_is_what_is_tested() -> None:
    """The rooms are those of the copy, in which the recipe was followed."""
    assert Path(sql_rewrite.functions.__file__).is_relative_to(Path.cwd())


@pytest.mark.usefixtures("own_noise")
def test_a_question_is_answered_with_the_truth(tmp_path: Path) -> None:
    """At the largest spend the answer is the mean of the cube roots, to a hundredth of itself."""
    path = write_files(tmp_path / "sources")
    with (tmp_path / "sources" / "people.csv").open(newline="") as file:
        truth = statistics.fmean(math.cbrt(float(row["age"])) for row in csv.DictReader(file))
    with services_of(tmp_path) as services:
        attach(services, path)
        open_account(services.ledger, "anna")
        answer = answer_to(services, question(QUERY, "anna", epsilon="100"))
    ((value,),), ((low,),), ((high,),) = answer["rows"], answer["lows"], answer["highs"]
    assert abs(value - truth) < truth / 100
    assert low <= truth <= high


def test_its_range_bounds_the_sum() -> None:
    """The cube root of an age follows the bounds of the age, so that the query needs none."""
    (core,) = bound(lift(QUERY, CLINIC))
    (statistic,) = core.described.statistics
    assert "cbrt(" in lower(core).sql
    assert statistic.encoding is not None
    ages = CLINIC.table("people").column("age").bounds
    assert ages is not None
    least, most = (statistic.encoding.offset + statistic.encoding.step * end for end in (0, statistic.encoding.highest))
    assert math.isclose(least, math.cbrt(ages.lower), abs_tol=0.001)
    assert math.isclose(most, math.cbrt(ages.upper), rel_tol=0.001)


def test_it_has_a_cost_of_its_own() -> None:
    """Shows that it is priced by its description, in every dialect, and not as an operator that nobody measured."""
    described = REGISTRY["cbrt"].cost
    assert described is not None
    for dialect in DIALECTS.values():
        assert dialect.costs.cost_of("cbrt", described) is described
    plain = check_work(bound(lift("SELECT AVG(age) FROM people", CLINIC)))
    assert check_work(bound(lift(QUERY, CLINIC))).unit_nanoseconds > plain.unit_nanoseconds


def test_it_is_announced() -> None:
    """The capabilities list it."""
    assert "cbrt" in sql_matrix()["functions"]


@pytest.mark.parametrize(
    ("call", "code"),
    [("CBRT(education)", "unsupported_type"), ("CBRT(age, 2)", "parse_error"), ("CBRT()", "parse_error")],
)
def test_other_arguments_are_refused(call: str, code: str) -> None:
    """A text, a second argument and none are refused."""
    with pytest.raises(Refused) as refused:
        lift(f"SELECT AVG({call}) FROM people", CLINIC)
    assert {finding.code for finding in refused.value.findings} == {code}
