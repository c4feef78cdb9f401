"""The report of a plan: what it promises is what a question is then charged, and what its text says is its fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from privacy.bounds import AskedContribution
from server.question import Question
from server.services import Services
from tests.journey.clinic import question, told
from tests.journey.real import journey_of

Analyst = Callable[..., str]

GROUPED = "SELECT sex, COUNT(*) AS n, AVG(age) AS mean FROM people WHERE age > 30 GROUP BY sex ORDER BY n"
SEVERAL = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"


def reported(services: Services, asked: Question) -> dict[str, Any]:
    """The estimate of a question with its report."""
    found: dict[str, Any] = dict(services.journey.estimate(replace(asked, report=True)))
    return found


def test_the_report_is_beside_the_estimate(services: Services, analyst: Analyst) -> None:
    """Shows that asking for the report changes nothing else, and that it is absent unless it is asked for."""
    who = analyst()
    plain = services.journey.estimate(question(GROUPED, who))
    with_report = reported(services, question(GROUPED, who))
    assert "plan" not in plain
    report = with_report.pop("plan")
    assert with_report == plain
    assert set(report) == {"nodes", "stages", "bounds", "statistics", "alternatives", "quantiles", "curve", "text"}


def test_no_rows_are_read_for_it(services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the engine that reads rows takes no part, and that nothing is charged."""

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("rows are read")

    who = analyst()
    monkeypatch.setattr(journey_of(services).running._private, "run", fail)
    before = reported(services, question(SEVERAL, who))["remaining"]
    assert reported(services, question(SEVERAL, who))["remaining"] == before


def test_nodes_bounds_and_noise_are_named_with_where_they_come_from(services: Services, analyst: Analyst) -> None:
    """Shows the tree with its facts, bounds of the dataset and of the request, and sensitivity times noise."""
    who = analyst()
    report = reported(services, question(SEVERAL, who))["plan"]
    assert report["nodes"]["kind"] == "aggregate"
    (scan,) = report["nodes"]["inputs"]
    assert (scan["kind"], scan["text"], scan["unit"]) == ("scan", "visits", "people.person_id")
    assert scan["unique"] == ["visit_id"]
    assert {"of": "cost", "lower": "0", "upper": "1000"} in scan["ranges"]
    sources = {bound["of"]: (bound["value"], bound["source"]) for bound in report["bounds"]}
    assert sources["rows_per_unit"] == (20, "declared")
    assert sources["cost"] == (["0.0", "1000.0"], "declared")
    assert sum(Fraction(one["share"]) for one in report["statistics"]) == 1
    selection, sums = report["statistics"]
    assert selection["selects_groups"]
    assert set(sums["answers"]) == {"COUNT(*)", "SUM(cost)"}
    assert float(sums["sensitivity"]["l2"]) ** 2 == pytest.approx(200)
    asked = replace(question(SEVERAL, who), contribution=AskedContribution(rows_per_unit=3))
    named = {one["of"]: one for one in reported(services, asked)["plan"]["bounds"]}
    assert (named["rows_per_unit"]["value"], named["rows_per_unit"]["source"]) == (3, "request")
    assert named["groups_per_unit"]["source"] == "declared"


@pytest.mark.slow
def test_a_question_of_the_curve_costs_what_the_curve_says(services: Services, analyst: Analyst) -> None:
    """Shows both directions: spends have the widths that the estimate of that spend has, widths have their price."""
    who = analyst(epsilon="100")
    curve = reported(services, question(GROUPED, who))["plan"]["curve"]
    assert len(curve["by_epsilon"]) >= 10
    assert len(curve["by_half_width"]) >= 4
    spends = [Fraction(point["epsilon"]) for point in curve["by_epsilon"]]
    widths = [point["columns"][0]["half_width"] for point in curve["by_epsilon"]]
    assert spends == sorted(spends)
    assert widths == sorted(widths, reverse=True)
    for point in curve["by_half_width"][::3]:
        priced = services.journey.estimate(
            question(GROUPED, who, epsilon=None, half_width=Fraction(point["half_width"]))
        )
        assert priced["price"]["epsilon"] == point["epsilon"]  # type: ignore[index]
    for point in curve["by_epsilon"][::4]:
        at = services.journey.estimate(question(GROUPED, who, epsilon=point["epsilon"]))
        assert at["columns"][1]["half_width"] == point["columns"][0]["half_width"]  # type: ignore[index]


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex",
        "SELECT COUNT(DISTINCT ward) FROM visits",
        "SELECT ward, SUM(cost), AVG(cost) FROM visits GROUP BY ward",
        "SELECT STDDEV(cost), COUNT(*) FROM visits",
        "SELECT SUM(cost) FROM visits WHERE cost BETWEEN 1 AND 50",
        "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
    ],
)
def test_curves_fall(services: Services, analyst: Analyst, sql: str) -> None:
    """Shows both directions for sums and counts, also where the greatest spend leaves a half width of zero."""
    curve = reported(services, question(sql, analyst(epsilon="100")))["plan"]["curve"]
    assert curve["reason"] is None
    for direction in ("by_epsilon", "by_half_width"):
        points = sorted(curve[direction], key=lambda point: Fraction(point["epsilon"]))
        assert len(points) >= 3
        for place in range(len(points[0]["columns"])):
            widths = [point["columns"][place]["half_width"] for point in points]
            assert widths == sorted(widths, reverse=True)
    for point in curve["by_half_width"]:
        known = [one["half_width"] for one in point["columns"] if one["in_a_group_of_rows"] is None]
        assert max(known) <= float(point["half_width"])


def test_every_cheaper_form_is_cheaper(services: Services, analyst: Analyst) -> None:
    """Shows that each form, asked as it is named, has the price that is named, and widths no wider than before."""
    who = analyst()
    for sql, form, shorter in (
        (SEVERAL, "without SUM(cost)", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"),
        (
            "SELECT town, SUM(age) AS n, SUM(salary) FROM people GROUP BY town",
            "without town in GROUP BY",
            "SELECT SUM(age) AS n, SUM(salary) FROM people",
        ),
    ):
        whole = reported(services, question(sql, who))
        forms = {one["what"]: one for one in whole["plan"]["alternatives"]}
        widest = max(column["half_width"] for column in whole["columns"][1:])
        if "SUM" not in shorter:
            widest = whole["columns"][1]["half_width"]
        width = Fraction(widest) * Fraction(1_000_001, 1_000_000) // Fraction(1, 10**12) * Fraction(1, 10**12)
        asked = services.journey.estimate(question(shorter, who, epsilon=None, half_width=width))
        cost = float(asked["price"]["epsilon"])  # type: ignore[index]
        assert float(forms[form]["epsilon"]) == pytest.approx(cost, rel=1e-4)
        for one in forms.values():
            assert Fraction(one["epsilon"]) < Fraction(whole["price"]["epsilon"])


def test_a_stored_answer_is_named_with_the_accuracy_at_which_it_serves(services: Services, analyst: Analyst) -> None:
    """Shows that the request which the report names is answered for free."""
    who, sql = analyst(), "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    told(services.journey, question(sql, who, epsilon=Fraction(1, 20)))
    report = reported(services, question(sql, who, epsilon=Fraction(1, 2)))["plan"]
    (stored,) = [form for form in report["alternatives"] if form["kind"] == "stored_release"]
    width = Fraction(stored["accuracy"]["half_width"])
    assert services.journey.estimate(question(sql, who, epsilon=None, half_width=width))["verdict"] == "free"


@pytest.mark.parametrize(
    "sql",
    [
        GROUPED,
        SEVERAL,
        "SELECT AVG(income) FROM people",
        "SELECT AVG(n) FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id)",
        "SELECT sex, MEDIAN(age) FROM people GROUP BY sex",
        "SELECT 1 AS one",
        "SELECT a.n / b.n AS part FROM (SELECT COUNT(*) AS n FROM people) a, (SELECT COUNT(*) AS n FROM visits) b",
    ],
)
def test_the_text_fits_on_a_screen(services: Services, analyst: Analyst, sql: str) -> None:
    """Shows that the text has the verdict first, and at most fifty lines of at most two hundred characters."""
    asked = question(sql, analyst())
    if "income" in sql:
        asked = replace(asked, sql="SELECT AVG(GREATEST(0, LEAST(income, 1000))) FROM people")
    text = reported(services, asked)["plan"]["text"]
    assert text.startswith("It would be answered")
    lines = text.split("\n")
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 200
