"""Answers from stored releases of other questions: free where the sums say it at least as exactly, and only there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from server.journey import held, holding, running
from server.services import Services
from sql_rewrite import boxes, finer_groups
from sql_rewrite.frames import Frame
from tests.journey.clinic import question, stored

Analyst = Callable[..., str]

MOMENTS = "SELECT COUNT(*), AVG(age), VARIANCE(age) FROM people"
BY_BOTH = "SELECT sex, age < 40 AS young, COUNT(*), AVG(age), SUM(age) FROM people GROUP BY sex, young"
JOINED = "SELECT COUNT(*), AVG(v.cost) FROM visits v JOIN people p ON v.person_id = p.person_id"
ATOMS = "SELECT COUNT(*) FILTER (WHERE age < 50), COUNT(*) FILTER (WHERE age >= 50 AND age < 70) FROM people"
BY_SEX_ALONE = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
BY_SEX_AND_AGE = "SELECT sex, age < 40 AS young, COUNT(*) FROM people GROUP BY sex, young"
VISITED = "SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id = p.person_id"
BY_SEX = "SELECT sex, COUNT(*), AVG(salary) FROM people GROUP BY sex"


def asked(services: Services, sql: str, principal: str, **options: Any) -> dict[str, Any]:
    """The answer."""
    admitted = services.journey.admit(question(sql, principal, **options))
    return dict(json.loads(stored(admitted) or services.journey.complete(admitted)))


def is_free(answer: dict[str, Any]) -> bool:
    """Whether an answer was derived, for nothing."""
    assert answer["accounting"]["reused"] == (not answer["accounting"]["charged"])
    assert answer["accounting"]["reused"] == ("derived" in answer["provenance"])
    return bool(answer["accounting"]["reused"])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (MOMENTS, "SELECT STDDEV(age), VAR_POP(age) FROM people"),
        ("SELECT VARIANCE(age) FROM people", "SELECT AVG(age), STDDEV_POP(age), COUNT(age), COUNT(*) FROM people"),
        ("SELECT SUM(age), COUNT(*) FROM people", "SELECT AVG(age) FROM people"),
        ("SELECT COUNT(*) FROM people", "SELECT COUNT(DISTINCT person_id) FROM people"),
        (BY_SEX, "SELECT sex, SUM(salary), COUNT(salary) FROM people GROUP BY sex ORDER BY 2"),
        ("SELECT COUNT(*), AVG(cost) FROM visits", "SELECT AVG(cost) FROM visits"),
        ("SELECT AVG(cost), SUM(cost) FROM visits", "SELECT AVG(cost) FROM visits"),
        ("SELECT MEDIAN(age), COUNT(*) FROM people", "SELECT MEDIAN(age) FROM people"),
        (BY_BOTH, "SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex"),
        (BY_BOTH, "SELECT AVG(age) FROM people"),
        (BY_BOTH, "SELECT sex, AVG(age) FROM people WHERE sex <> 'male' GROUP BY sex"),
        (BY_BOTH, "SELECT SUM(age) FROM people WHERE sex IS NULL"),
        (BY_BOTH, "SELECT age < 40 AS young, COUNT(*) FROM people WHERE sex = 'male' GROUP BY young"),
        (f"{JOINED} GROUP BY p.sex", JOINED),
        (ATOMS, "SELECT COUNT(*) FROM people WHERE age <= 49"),
        (ATOMS, "SELECT COUNT(*) FROM people WHERE NOT age BETWEEN 50 AND 69"),
        ("SELECT age < 40 AS young, COUNT(*) FROM people GROUP BY young", "SELECT COUNT(*) FROM people WHERE age > 39"),
    ],
)
def test_what_stored_sums_determine_is_free(services: Services, analyst: Analyst, first: str, then: str) -> None:
    """Shows that the second question charges nothing, names the release, and leaves the account as it was.

    The second one asks for a little less, for a vector of more sums has more noise in each.
    """
    who = analyst()
    release = asked(services, first, who)["provenance"]["releases"]
    (before,) = services.ledger.accounts(dataset="clinic", principal=who)
    answer = asked(services, then, who, epsilon="0.05")
    assert is_free(answer)
    assert answer["provenance"]["releases"] == release
    assert [one["release"] for one in answer["provenance"]["derived"]] == [f"/v1/releases/{release[0]}"]
    assert services.ledger.accounts(dataset="clinic", principal=who) == [before]
    again = asked(services, then, who, epsilon="0.05")
    assert {**again, "id": "", "links": ""} == {**answer, "id": "", "links": ""}


def test_the_numbers_are_those_of_the_release(services: Services, analyst: Analyst) -> None:
    """Shows that shared columns have the same values and intervals, and that a sum is the product of count and mean."""
    who = analyst()
    count, mean, variance = asked(services, MOMENTS, who)["rows"][0]
    answer = asked(services, "SELECT COUNT(*), SUM(age), AVG(age), VARIANCE(age) FROM people", who, epsilon="0.5")
    assert is_free(answer)
    assert answer["rows"][0][0] == count
    assert answer["rows"][0][2:] == [mean, variance]
    assert answer["rows"][0][1] == pytest.approx(count * mean, rel=1e-3)
    ends = zip(answer["lows"][0], answer["rows"][0], answer["highs"][0], strict=True)
    assert all(low < value < high for low, value, high in ends)


TOTAL, MEN = "SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people WHERE sex = 'male'"
YOUNG = "SELECT age < 40 AS young, COUNT(*) FROM people GROUP BY young"
OTHERS = "SELECT COUNT(*) FROM people WHERE sex IS DISTINCT FROM 'male'"


@pytest.mark.parametrize(
    ("stored_ones", "then", "of", "error"),
    [
        ((TOTAL, MEN), OTHERS, {0: 1, 1: -1}, 2.0),  # a total less a part
        ((BY_SEX_ALONE, YOUNG), TOTAL, {}, 6 / 5),  # two marginals: of three groups and of two
        ((TOTAL, BY_SEX_ALONE), TOTAL, {}, 3 / 4),  # a total and its parts
        (
            (f"{TOTAL} WHERE age < 60", f"{TOTAL} WHERE age < 30"),
            f"{TOTAL} WHERE age BETWEEN 30 AND 59",
            {0: 1, 1: -1},
            2.0,
        ),
        ((TOTAL, f"{TOTAL} WHERE salary > 9.5"), f"{TOTAL} WHERE salary <= 9.5 OR salary IS NULL", {0: 1, 1: -1}, 2.0),
        ((MEN, f"{TOTAL} WHERE sex IN ('female', 'male')"), f"{TOTAL} WHERE sex = 'female'", {0: -1, 1: 1}, 2.0),
        ((BY_SEX_ALONE, BY_SEX_AND_AGE), BY_SEX_ALONE, {}, 2 / 3),  # the same groups twice, once in two halves each
        (
            (f"{VISITED} WHERE p.sex = 'male'", VISITED),
            f"{VISITED} WHERE p.sex <> 'male' OR p.sex IS NULL",
            {0: -1, 1: 1},
            2.0,
        ),
    ],
)
def test_several_releases_answer_together(
    services: Services, analyst: Analyst, stored_ones: tuple[str, ...], then: str, of: dict[int, int], error: float
) -> None:
    """Shows that releases from which only all of them together say it do so for nothing, and the error is exact.

    `error` is the variance in that of one number. The standard error is that of the least variance there is.
    """
    who = analyst()
    answers = [asked(services, text, who, epsilon="0.04") for text in stored_ones]
    one = answers[-1]["standard_errors"][0][-1]
    limit = Fraction(4, 100) / Fraction(round(1010 * error), 1000)
    answer = asked(services, then, who, epsilon=limit)
    assert is_free(answer)
    assert sorted(answer["provenance"]["releases"]) == sorted(
        release for each in answers for release in each["provenance"]["releases"]
    )
    assert len(answer["provenance"]["derived"]) == len(stored_ones)
    assert "not_narrower" not in {warning["code"] for warning in answer["warnings"]}
    row = answer["standard_errors"][0]
    assert row[-1] ** 2 == pytest.approx(error * one**2, rel=0.03)
    if of:
        assert answer["rows"][0][0] == sum(sign * answers[place]["rows"][0][0] for place, sign in of.items())
    again = asked(services, then, who, epsilon=limit)
    assert {**again, "id": "", "links": ""} == {**answer, "id": "", "links": ""}
    estimate: Any = services.journey.estimate(question(then, who, epsilon=limit))
    assert len(estimate["reusable"]) == len(stored_ones)
    assert not is_free(asked(services, then, who, epsilon=limit * Fraction(6, 5)))


@pytest.mark.parametrize("total_first", [True, False])
def test_releases_answer_together_whatever_their_own_questions_called_them(
    services: Services, analyst: Analyst, total_first: bool
) -> None:
    """A total that is the second thing which its question measured: this ended without an answer."""
    who = analyst()
    levels = "SELECT age // 20 AS band, COUNT(*) FROM people GROUP BY ROLLUP (age // 20)"
    for text in (levels, MEN) if total_first else (MEN, levels):
        asked(services, text, who, epsilon="0.4")
    answer = asked(services, OTHERS, who, epsilon="0.02")
    assert len(answer["provenance"]["derived"]) == 2
    assert [one["mechanism"] for one in answer["provenance"]["mechanisms"]] == ["gaussian_combined"]


def test_a_total_less_a_part_is_not_the_rest_of_units_with_rows_in_both(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that each would be held to its bounds by itself; a rule that forgets it takes the difference."""
    visits, who = "SELECT COUNT(*) FROM visits", analyst()
    for text in (visits, f"{visits} WHERE visit_id < 3000"):
        asked(services, text, who)
    assert not is_free(asked(services, f"{visits} WHERE visit_id >= 3000", who, epsilon="0.01"))
    monkeypatch.setattr(boxes, "steady_relations", lambda sources: {one.relation for one in sources})
    other = analyst()
    for text in (visits, f"{visits} WHERE visit_id < 3001"):
        asked(services, text, other)
    assert is_free(asked(services, f"{visits} WHERE visit_id >= 3001", other, epsilon="0.01"))


def test_releases_of_which_one_is_made_from_another_do_not_answer_together(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a release and one that was made of it are one look; a rule that forgets its noise joins them."""
    who = analyst()
    asked(services, BY_SEX_ALONE, who, epsilon="2")
    asked(services, BY_SEX_ALONE, who, epsilon="3")
    wish = {"epsilon": Fraction(13, 12)}
    assert not is_free(asked(services, f"{TOTAL} WHERE sex IS NOT NULL OR sex IS NULL", who, **wish))
    other = analyst()
    monkeypatch.setattr(holding, "_origins_of", lambda base: [])
    asked(services, BY_SEX_ALONE, other, epsilon="2")
    asked(services, BY_SEX_ALONE, other, epsilon="3")
    assert is_free(asked(services, TOTAL, other, **wish))


MUST_PAY = [
    (BY_BOTH, "SELECT AVG(age) FROM people WHERE age < 40", {}),  # the key is an expression of the column
    (BY_BOTH, "SELECT COUNT(*) FROM people WHERE salary > 100", {}),
    (BY_BOTH, "SELECT AVG(GREATEST(age, 20)) FROM people WHERE sex = 'male'", {}),
    ("SELECT town, COUNT(*), AVG(age) FROM people GROUP BY town", "SELECT COUNT(*) FROM people", {}),  # hidden groups
    ("SELECT cost < 50 AS low, COUNT(*) FROM visits GROUP BY low", "SELECT COUNT(*) FROM visits", {}),  # several groups
    ("SELECT cost < 50 AS low, COUNT(*) FROM visits GROUP BY low", "SELECT COUNT(*) FROM visits WHERE cost < 50", {}),
    ("SELECT sex, COUNT(DISTINCT age) FROM people GROUP BY sex", "SELECT COUNT(DISTINCT age) FROM people", {}),
    ("SELECT sex, MEDIAN(age) FROM people GROUP BY sex", "SELECT MEDIAN(age) FROM people", {}),
    ("SELECT sex, COUNT(*) FROM people WHERE age < 40 GROUP BY sex", "SELECT COUNT(*) FROM people", {}),
    ("SELECT COUNT(*), AVG(age) FROM people", "SELECT AVG(age) FROM people WHERE sex = 'male'", {}),
    (ATOMS, "SELECT COUNT(*) FROM people WHERE age < 51", {}),
    ("SELECT COUNT(*) FROM visits WHERE cost < 50", "SELECT COUNT(*) FROM visits WHERE cost >= 50", {}),
    ("SELECT COUNT(*), AVG(age) FROM people", "SELECT VARIANCE(age) FROM people", {}),
    ("SELECT COUNT(*), AVG(age) FROM people", "SELECT AVG(age + 1) FROM people", {}),
    ("SELECT COUNT(*), AVG(age) FROM people", "SELECT sex, AVG(age) FROM people GROUP BY sex", {}),
    ("SELECT COUNT(*), AVG(age) FROM people", "SELECT COUNT(*) FILTER (WHERE age > 50) FROM people", {}),
    ("SELECT AVG(GREATEST(10, age)) FROM people", "SELECT AVG(age) FROM people", {}),
    ("SELECT AVG(salary) FROM people", "SELECT COUNT(*) FROM people", {}),  # rows without a salary are not in it
    ("SELECT COUNT(*), AVG(cost) FROM visits", "SELECT SUM(cost) FROM visits", {}),  # scaled, and clipped
    ("SELECT SUM(cost), COUNT(*) FROM visits", "SELECT AVG(cost) FROM visits", {}),
    ("SELECT COUNT(*) FROM visits", "SELECT COUNT(DISTINCT person_id) FROM visits", {}),
    ("SELECT COUNT(DISTINCT person_id) FROM visits", "SELECT COUNT(*) FROM visits", {}),
    ("SELECT MEDIAN(age), COUNT(*) FROM people", "SELECT MEDIAN(salary) FROM people", {}),
    ("SELECT COUNT(DISTINCT age), COUNT(*) FROM people", "SELECT COUNT(age) FROM people WHERE age > 3", {}),
    (MOMENTS, "SELECT STDDEV(age) FROM people", {"reuse": "none"}),
    (MOMENTS, "SELECT STDDEV(age) FROM people", {"max_staleness_s": 3600}),
    (MOMENTS, "SELECT STDDEV(age) FROM people", {"epsilon": "3"}),  # more exact than what is stored
    (MOMENTS, "SELECT COUNT(*) FROM people", {"epsilon": "1"}),  # alone it would have less noise
]


def test_numbers_of_two_cores_are_not_derived(services: Services, analyst: Analyst) -> None:
    """Of men and of all, from the groups of one release, would have the same noise: their sum has more than is stated.

    Its standard error is that of two independent numbers, so each is measured.
    """
    who = analyst()
    asked(services, BY_SEX, who)
    men, everybody = "SELECT COUNT(*) FROM people WHERE sex = 'male'", "SELECT COUNT(*) FROM people"
    assert is_free(asked(services, men, who, epsilon="0.01"))
    assert is_free(asked(services, everybody, who, epsilon="0.01"))
    answer = asked(services, f"SELECT ({men}) + ({everybody}) AS n", who, epsilon="0.01")
    assert not is_free(answer)
    assert len(answer["provenance"]["releases"]) == 2


@pytest.mark.parametrize(("first", "then", "options"), MUST_PAY)
def test_what_they_do_not_determine_is_paid_for(
    services: Services, analyst: Analyst, first: str, then: str, options: dict[str, Any]
) -> None:
    """Shows that other rows, values, groups and bounds, and more exact answers, are measured anew."""
    who = analyst()
    asked(services, first, who)
    assert not is_free(asked(services, then, who, **{"epsilon": "0.1", **options}))


def test_a_condition_that_nobody_meets_is_measured(services: Services, analyst: Analyst) -> None:
    """With no release, one and several beside it: it is no other condition's number, and no estimate of nothing."""
    who = analyst()
    nobody = "SELECT COUNT(*) FROM people WHERE sex = 'nowhere'"
    for place, sql in enumerate(("sex = 'male'", "age < 40", "age > 60")):
        asked(services, f"SELECT COUNT(*) FROM people WHERE {sql}", who)
        assert not is_free(asked(services, nobody, who, epsilon=f"0.{place + 2}"))


def test_what_a_histogram_chose_is_for_its_own_question(services: Services, analyst: Analyst) -> None:
    """Shows that sums within bounds that a query chose are stored without a frame: its identity does not name them."""
    who = analyst()
    frames = {
        column: [
            services.ledger.release(release).frame is not None
            for release in asked(services, f"SELECT AVG({column}) FROM people", who)["provenance"]["releases"]
        ]
        for column in ("age", "income")
    }
    assert frames["age"] == [True]
    assert len(frames["income"]) > 1
    assert not any(frames["income"])


def test_sums_of_groups_add_up_exactly(services: Services, analyst: Analyst) -> None:
    """Shows that coarser groups are the sums of the released ones, with the error of as many draws."""
    who = analyst()
    cells = asked(services, "SELECT sex, age < 40 AS young, COUNT(*) FROM people GROUP BY sex, young", who)
    answer = asked(services, "SELECT sex, COUNT(*) FROM people GROUP BY sex", who, epsilon="0.25")
    assert is_free(answer)
    assert answer["provenance"]["derived"][0]["by"].startswith("noisy sums of groups")
    counts = {sex: sum(row[2] for row in cells["rows"] if row[0] == sex) for sex in ("female", "male", None)}
    assert {row[0]: row[1] for row in answer["rows"]} == counts
    (error,) = {row[1] for row in answer["standard_errors"]}
    assert error == pytest.approx(cells["standard_errors"][0][2] * 2**0.5)
    rest = asked(services, "SELECT COUNT(*) * 2.0 FROM people WHERE sex <> 'male'", who, epsilon="0.25")
    assert is_free(rest)
    assert rest["rows"] == [[2.0 * counts["female"]]]
    assert rest["standard_errors"][0][0] == pytest.approx(2 * error, rel=0.2)


def test_a_sharpened_histogram_answers_its_ranges(services: Services, analyst: Analyst) -> None:
    """A mean of releases serves sums of its groups: a spend by their standard error, a width by what it states."""
    who = analyst()
    by_sex = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    asked(services, by_sex, who, epsilon="0.002")
    better = asked(services, by_sex, who, epsilon="0.004")
    assert better["provenance"]["mechanisms"][0]["mechanism"] == "gaussian_combined"
    for text, groups in (("sex <> 'male'", 1), ("sex IS NOT NULL", 2)):
        answer = asked(
            services, f"SELECT COUNT(*) FROM people WHERE {text}", who, epsilon=Fraction(39, 10_000 * groups)
        )
        assert is_free(answer)
        assert answer["provenance"]["releases"] == better["provenance"]["releases"]
        assert answer["standard_errors"][0][0] == pytest.approx(better["standard_errors"][0][1] * groups**0.5, rel=0.05)
    for text, reach in (("sex <> 'female'", 4), ("sex IS NULL", 2)):  # an interval of one look, and one of every look
        width = Fraction(reach * math.ceil(10 * better["standard_errors"][0][1]), 10)
        options = {"epsilon": None, "half_width": width}
        answer = asked(services, f"SELECT COUNT(*) FROM people WHERE {text}", who, **options)
        assert is_free(answer) == (reach == 4)
    assert not is_free(asked(services, "SELECT COUNT(*) FROM people WHERE sex = 'male'", who, epsilon="0.005"))


def test_groups_of_units_with_several_do_not_add_up(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the case above is caught by its bounds alone: a rule that forgets them finds the finer groups."""
    who = analyst()
    for module in (finer_groups, holding, boxes):
        monkeypatch.setattr(module, "coarse_of", lambda bounded, dataset, where: "0" * 64)
    asked(services, "SELECT cost < 51 AS low, COUNT(*) FROM visits GROUP BY low", who)
    assert is_free(asked(services, "SELECT COUNT(*) FROM visits", who, epsilon="0.05"))


def test_a_frame_that_forgets_the_rows_is_noticed(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the cases above would fail if frames held no conditions: the planted bug serves one of them."""
    who = analyst()
    monkeypatch.setattr(held.Prepared, "frame", lambda prepared, core: Frame("0" * 64))
    asked(services, "SELECT COUNT(*), AVG(age) FROM people", who)
    assert is_free(asked(services, "SELECT AVG(age) FROM people WHERE sex = 'male'", who, epsilon="0.1"))


def test_others_pay_for_themselves(services: Services, analyst: Analyst) -> None:
    """Shows that somebody else's release is offered to nobody where the policy does not share it."""
    asked(services, MOMENTS, analyst())
    assert not is_free(asked(services, "SELECT STDDEV(age) FROM people", analyst(), epsilon="0.1"))


def test_a_report_says_when_a_less_exact_release_would_do(services: Services, analyst: Analyst) -> None:
    """Shows that the report names the release, its error, and a spend at which the question is free indeed."""
    who = analyst()
    release = asked(services, MOMENTS, who)["provenance"]["releases"][0]
    sql = "SELECT COUNT(*) FROM people"
    body = services.journey.estimate(question(sql, who, epsilon="1", report=True))
    assert body["verdict"] == "affordable"
    plan: Any = body["plan"]
    (said,) = [one["what"] for one in plan["alternatives"] if release in one["what"]]
    spend = said.split("a spend of ")[1].split(" ")[0]
    assert is_free(asked(services, sql, who, epsilon=spend))


def test_an_estimate_says_that_it_is_free(services: Services, analyst: Analyst) -> None:
    """Shows the verdict, the stored errors, and beside them what the same would cost if it were measured."""
    who = analyst()
    asked(services, MOMENTS, who)
    body = services.journey.estimate(question("SELECT STDDEV(age) FROM people", who, epsilon="0.2"))
    assert body["verdict"] == "free"
    assert len(body["reusable"]) == 1
    (column,) = body["columns"]
    assert Fraction(body["families"][0]["price"]["epsilon"]) > 0
    assert column["name"]


def test_a_better_release_without_what_it_holds_is_not_offered(
    services: Services, analyst: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that a release of an earlier version, which the ledger would serve for its key, makes no question fail."""
    who, then = analyst(), "SELECT STDDEV(age), VAR_POP(age) FROM people"
    asked(services, MOMENTS, who, epsilon="0.3")
    assert is_free(asked(services, then, who, epsilon="0.04"))
    monkeypatch.setattr(running, "for_others", lambda release, *_: release)
    asked(services, MOMENTS, who, reuse="none")
    assert not is_free(asked(services, then, who, epsilon="0.05"))
