"""What an estimate says of half-widths is what the answer shows, and a wanted half-width is met."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from accountant.account import FilterKind
from privacy.refusal import Refused
from server.question import Question
from server.services import Services
from tests.journey.clinic import answer_to, question

Analyst = Callable[..., str]

REMAINDERS = "SELECT age % 7 AS k, COUNT(*) AS n FROM people GROUP BY k"
BOTH = "SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY sex"
LOW = "-1000000000"
"""Below every noisy number: a condition with it is one on noise, and leaves some rows to look at."""

SPEND = "0.1"
"""Little enough that half-widths are far above one, to which the ends of counts are rounded."""

SHAPES = [
    "SELECT COUNT(*) AS n FROM people",
    REMAINDERS,
    f"{REMAINDERS} ORDER BY n DESC LIMIT 3",
    f"{REMAINDERS} ORDER BY n DESC LIMIT 100",
    f"{REMAINDERS} ORDER BY n DESC LIMIT 3 OFFSET 1",
    f"{REMAINDERS} ORDER BY n DESC LIMIT 100 OFFSET 1",
    f"{REMAINDERS} ORDER BY k LIMIT 3",
    f"{REMAINDERS} HAVING COUNT(*) > {LOW}",
    f"{REMAINDERS} HAVING COUNT(*) > {LOW} ORDER BY n LIMIT 100",
    f"{REMAINDERS} QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*)) < 4",
    BOTH,
    f"{BOTH} HAVING COUNT(*) > {LOW}",
    f"{BOTH} ORDER BY s LIMIT 1",
    f"SELECT sex, SUM(salary) AS s FROM people GROUP BY sex HAVING SUM(salary) > {LOW}",
    f"SELECT sex, COUNT(DISTINCT person_id) AS n FROM people GROUP BY sex HAVING COUNT(DISTINCT person_id) > {LOW}",
    f"SELECT p.sex, COUNT(*) AS n, SUM(v.cost) AS c FROM visits v JOIN people p ON v.person_id = p.person_id "
    f"GROUP BY p.sex HAVING COUNT(*) > {LOW}",
    f"SELECT sex, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY sex HAVING AVG(age) > {LOW}",
    f"SELECT k, n FROM ({REMAINDERS}) WHERE n > {LOW}",
    f"SELECT * FROM ({REMAINDERS} ORDER BY n LIMIT 2) ORDER BY k",
    f"SELECT * FROM ({REMAINDERS} ORDER BY n LIMIT 100) ORDER BY n LIMIT 50",
    f"SELECT t.k, t.n, u.n AS m FROM ({REMAINDERS}) t JOIN ({REMAINDERS}) u ON t.k = u.k WHERE t.n > {LOW}",
    f"SELECT t.k, t.n, u.n AS m FROM ({REMAINDERS}) t CROSS JOIN ({BOTH}) u ORDER BY m LIMIT 4",
    f"SELECT t.k, t.n, u.n AS m FROM ({REMAINDERS}) t CROSS JOIN ({BOTH}) u ORDER BY m LIMIT 1000",
    f"SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION ALL {REMAINDERS} ORDER BY n LIMIT 3",
    "SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY sex UNION ALL "
    "SELECT sex AS k, SUM(age) AS n FROM people GROUP BY sex",
    f"SELECT DISTINCT k, n FROM ({REMAINDERS})",
    f"WITH t AS ({REMAINDERS}) SELECT k, n FROM t WHERE n > (SELECT MIN(n) FROM t)",
    f"SELECT k, MAX(n) AS n FROM ({REMAINDERS}) GROUP BY k HAVING MAX(n) > {LOW}",
]


def estimate_of(services: Services, asked: Question) -> dict[str, Any]:
    """The estimate of a question, read."""
    return dict(services.journey.estimate(asked))


def half_widths(answer: dict[str, Any], place: int) -> list[float | None]:
    """Half the width of the interval of each cell of a column."""
    return [
        None if low[place] is None else (high[place] - low[place]) / 2
        for low, high in zip(answer["lows"], answer["highs"], strict=True)
    ]


def compare(expected: dict[str, Any], answer: dict[str, Any]) -> int:
    """Asserts that released columns have the estimate's half-widths in the answer; how many were compared."""
    compared = 0
    for place, column in enumerate(expected["columns"]):
        shown = half_widths(answer, place)
        if column["kind"] != "released" or column["by_rows"]:
            continue
        if column["half_width"] is None:
            assert all(width is None for width in shown), (column, shown)
            assert column["half_width_reason"]["code"] in {reason["code"] for reason in answer["interval_reasons"]}
            continue
        assert column["half_width_reason"] is None
        assert None not in shown
        if column["standard_error"] is None:
            # A stored ratio: the estimate says the widest of all its groups, of which noise chose those shown.
            assert all(width <= column["half_width"] for width in shown if width is not None)
            continue
        widest = max(width for width in shown if width is not None)
        # The ends of whole numbers are whole, and so within one of the half-width of what they are computed from.
        assert abs(widest - column["half_width"]) <= 1 + 1e-9 * widest, (column, shown)
        compared += 1
    return compared


@pytest.mark.sparse(9)
@pytest.mark.parametrize("kind", [FilterKind.APPROXIMATE, FilterKind.PURE])
@pytest.mark.parametrize("sql", SHAPES)
def test_an_estimate_has_the_half_widths_of_the_answer(
    services: Services, analyst: Analyst, sql: str, kind: FilterKind
) -> None:
    """Before the answer, and again where its stored release serves."""
    who = analyst(kind=kind)
    asked = question(sql, who, epsilon=SPEND, confidence=Fraction(9, 10))
    fresh = estimate_of(services, asked)
    answer = answer_to(services, asked)
    assert answer["rows"]
    compare(fresh, answer)
    again = estimate_of(services, asked)
    assert again["verdict"] == "free"
    compare(again, answer)
    (chosen,) = (family for family in fresh["families"] if family["chosen"])
    of_family = {column["name"]: column["half_width"] for column in chosen["columns"]}
    assert of_family == {c["name"]: c["half_width"] for c in fresh["columns"] if c["kind"] != "key"}


@pytest.mark.slow
def test_the_shapes_have_half_widths_to_compare(services: Services, analyst: Analyst) -> None:
    """Shows that the comparison is one of numbers: nearly every shape has released columns with intervals."""
    compared = 0
    for sql in SHAPES:
        asked = question(sql, analyst(), epsilon=SPEND)
        compared += compare(estimate_of(services, asked), answer_to(services, asked)) > 0
    assert compared >= len(SHAPES) - 3


@pytest.mark.sparse(9)
@pytest.mark.parametrize("kind", [FilterKind.APPROXIMATE, FilterKind.PURE])
@pytest.mark.parametrize("sql", SHAPES)
def test_a_wanted_half_width_is_met(services: Services, analyst: Analyst, sql: str, kind: FilterKind) -> None:
    """In every cell of every released count and sum, however noise chooses the rows."""
    wanted = Fraction(20 if "SUM" not in sql else 20_000)
    asked = question(sql, analyst(kind=kind), epsilon=None, half_width=wanted)
    expected, answer = estimate_of(services, asked), answer_to(services, asked)
    compare(expected, answer)
    for place, column in enumerate(expected["columns"]):
        if column["kind"] == "released" and not column["by_rows"]:
            assert all(width is None or width <= wanted for width in half_widths(answer, place))


def test_a_limit_that_leaves_no_row_out_widens_nothing(services: Services, analyst: Analyst) -> None:
    """Eight public groups: LIMIT 8 shows all of them, LIMIT 7 lets noise choose."""
    who = analyst()
    cells = estimate_of(services, question(REMAINDERS, who))["contribution"][0]["cells"]
    plain, whole, less = (
        answer_to(services, question(f"{REMAINDERS}{tail}", who, epsilon=SPEND))
        for tail in ("", f" ORDER BY n LIMIT {cells}", f" ORDER BY n LIMIT {cells - 1}")
    )
    assert [answer["columns"][1]["interval"] for answer in (plain, whole, less)] == ["noise", "noise", "simultaneous"]
    assert half_widths(whole, 1) == half_widths(plain, 1)
    assert half_widths(less, 1)[0] > half_widths(plain, 1)[0]


def test_ratios_are_expected_with_the_intervals_of_all_rows(services: Services, analyst: Analyst) -> None:
    """Half-widths by group size are those of intervals that hold at once; standard errors stay as they are."""
    who, plain = analyst(), "SELECT sex, AVG(age) AS a FROM people GROUP BY sex"
    before, after = (estimate_of(services, question(sql, who)) for sql in (plain, f"{plain} HAVING AVG(age) > {LOW}"))
    for narrow, wide in (
        (before["columns"][1]["by_rows"], after["columns"][1]["by_rows"]),
        (before["curve"][0]["by_rows"]["AVG(age)"], after["curve"][0]["by_rows"]["AVG(age)"]),
        (before["families"][1]["columns"][0]["by_rows"], after["families"][1]["columns"][0]["by_rows"]),
    ):
        for one, other in zip(narrow, wide, strict=True):
            assert other["half_width"] > one["half_width"] * 1.1
            assert other["standard_error"] == one["standard_error"]


@pytest.mark.parametrize("tail", ["HAVING COUNT(*) > 10", "ORDER BY n DESC LIMIT 3", "ORDER BY n DESC LIMIT 1000"])
def test_hidden_groups_that_noise_chooses_have_no_width_before_the_answer(
    services: Services, analyst: Analyst, tail: str
) -> None:
    """The estimate says why; a wanted half-width is refused; the stored release then says the number of groups."""
    who, sql = analyst(), f"SELECT town, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY town {tail}"
    expected = estimate_of(services, question(sql, who, epsilon="5"))
    count, average = expected["columns"][1:]
    for column in (count, average):
        assert column["half_width"] is None
        assert column["half_width_reason"]["code"] == "cells_not_known"
        assert all(size["half_width"] is None for size in column["by_rows"])
    assert count["standard_error"] > 0
    for ask in (services.journey.estimate, services.journey.admit):
        with pytest.raises(Refused) as refused:
            ask(question(sql, who, epsilon=None, half_width=Fraction(50)))
        (finding,) = refused.value.findings
        assert finding.code == "accuracy_unreachable"
        assert "not known before the answer" in finding.why
    answer = answer_to(services, question(sql, who, epsilon="5"))
    stored = estimate_of(services, question(sql, who, epsilon="5"))["columns"][1]
    assert stored["stored"]
    assert stored["half_width"] >= max(width for width in half_widths(answer, 1) if width is not None)


def test_groups_left_out_as_empty_count_among_those_that_noise_chose_from(services: Services, analyst: Analyst) -> None:
    """With empty groups left out, the intervals of chosen rows hold for all public groups, as the estimate says."""
    sql = "SELECT age % 7 AS k, COUNT(*) AS n FROM people WHERE salary < 10000 GROUP BY k HAVING COUNT(*) > 1"
    asked = question(sql, analyst(), epsilon=SPEND, nonempty=True)
    expected = estimate_of(services, asked)
    answer = answer_to(services, asked)
    assert 0 < len(answer["rows"]) < expected["contribution"][0]["cells"] / 2
    assert compare(expected, answer) == 1
