"""Intervals with the cut: beside those of the noise, for those who ask, and null with the reason elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from privacy.bounds import AskedContribution
from server.journey import wire_cut
from server.journey.column_cut import Cut
from server.services import Services
from tests.journey.norm_clinic import HEAVY, PEOPLE, auto_clinic
from tests.journey.test_norms import WARD, analyst, ask

ROWS = (PEOPLE - HEAVY) * 5 // 2 + HEAVY * 150


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services with the clinic whose bounds are chosen."""
    with auto_clinic(tmp_path_factory.mktemp("with")) as (services, _):
        yield services


def reasons(answer: dict[str, Any]) -> dict[int, str]:
    """Why columns have none."""
    return {one["column"]: one["why"] for one in answer["with_cut"]["reasons"]}


@pytest.mark.slow
def test_counts_are_widened_upwards_by_what_the_norm_cuts(clinic: Services) -> None:
    """Shows the ends: the lower one of the noise, and the upper one raised by the stated part and twice its error."""
    plain = ask(clinic, WARD, analyst(clinic), epsilon="3")
    assert "with_cut" not in plain
    answer = ask(clinic, WARD, analyst(clinic), epsilon="3", with_cut=True)
    (norm,) = answer["provenance"]["norms"]
    part = norm["cut"]["share"] + 2 * norm["cut"]["error"]
    for row in range(4):
        (_, low), (_, high) = (answer["with_cut"][end][row] for end in ("lows", "highs"))
        assert low == answer["lows"][row][1]
        assert high == pytest.approx(answer["highs"][row][1] + part / (1 - part) * answer["highs"][row][1], rel=1e-6)
    assert "without a promise" in answer["with_cut"]["words"]
    assert reasons(answer) == {}


@pytest.mark.slow
def test_the_truth_is_in_them_more_often(clinic: Services) -> None:
    """Shows what they are for: where the norm cuts much, the noise misses the truth, and these hold it."""
    noise = both = 0
    for _ in range(8):
        answer = ask(clinic, "SELECT COUNT(*) AS n FROM visits", analyst(clinic), epsilon="1", with_cut=True)
        noise += answer["lows"][0][0] <= ROWS <= answer["highs"][0][0]
        both += answer["with_cut"]["lows"][0][0] <= ROWS <= answer["with_cut"]["highs"][0][0]
    assert both >= noise
    assert both >= 5


@pytest.mark.slow
def test_sums_and_averages_have_both_sides_and_spreads_none(clinic: Services) -> None:
    """Shows that what is cut of a sum may have either sign, how far an average may move, and why others have none."""
    sql = (
        "SELECT ward, SUM(cost) AS s, AVG(cost) AS a, COUNT(*) * 2 AS twice, STDDEV(cost) AS d FROM visits "
        "GROUP BY ward"
    )
    answer = ask(clinic, sql, analyst(clinic), epsilon="10", with_cut=True)
    assert answer["with_cut"]["lows"][0][1] <= answer["lows"][0][1]
    assert answer["with_cut"]["highs"][0][1] >= answer["highs"][0][1]
    (cut,) = (norm["cut"] for norm in answer["provenance"]["norms"] if "AVG(cost)" in norm["columns"])
    part, low, high = cut["share"] + 2 * cut["error"], answer["lows"][0][2], answer["highs"][0][2]
    assert part > 0
    assert answer["with_cut"]["lows"][0][2] == pytest.approx(low * (1 - part))
    assert answer["with_cut"]["highs"][0][2] == pytest.approx(high + part * (1000 - high))
    why = reasons(answer)
    assert "computed" in why[3]
    assert "spread" in why[4]
    assert answer["with_cut"]["highs"][0][3:] == [None, None]


def test_a_sum_of_one_sign_is_moved_to_one_side() -> None:
    """Shows that what is missing of values above zero is above, of values below it below, and of both on both sides."""
    assert Cut(0.2, either=False).widened(80, 100) == pytest.approx((80, 125))
    assert Cut(0.2, either=False, negative=True).widened(-100, -80) == pytest.approx((-125, -80))
    assert Cut(0.2, either=True).widened(80, 100) == pytest.approx((55, 125))


@pytest.mark.slow
def test_sums_are_moved_as_their_sign_allows(clinic: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the range decides on which side a sum is moved, and the reason where half the whole may be missing."""
    sql = "SELECT SUM(cost) AS a, SUM(-cost) AS b, SUM(cost - 500) AS c FROM visits"
    sides = set()
    for epsilon in ("0.5", "2", "20"):
        answer = ask(clinic, sql, analyst(clinic), epsilon=epsilon, with_cut=True)
        why = reasons(answer)
        for place, moved in enumerate(((False, True), (True, False), (True, True))):
            if place in why:
                assert answer["with_cut"]["highs"][0][place] is None
                continue
            (low, high), (lowest, highest) = (
                (ends["lows"][0][place], ends["highs"][0][place]) for ends in (answer, answer["with_cut"])
            )
            assert (lowest < low, highest > high) in (moved, (False, False))
            assert highest - lowest <= high - low + 2 * max(abs(low), abs(high))
            sides.add((lowest < low, highest > high))
    assert {(False, True), (True, False)} <= sides
    monkeypatch.setattr(wire_cut, "cut_of", lambda *given: Cut(0.6, either=False))
    answer = ask(clinic, sql, analyst(clinic), epsilon="19", with_cut=True)
    assert answer["with_cut"]["highs"] == [[None] * 3]
    assert all("more than half" in why for why in reasons(answer).values())


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "10", "60"])
def test_computed_columns_are_warned_of_as_what_they_read(clinic: Services, epsilon: str) -> None:
    """Shows that a column is warned of where it reads a number of which more may be missing than half of its ±."""
    sql = (
        "SELECT ward, COUNT(*) AS n, COUNT(*) * 2 AS twice, COUNT(*) / SUM(COUNT(*)) OVER () AS part, "
        "LENGTH(ward) AS letters FROM visits GROUP BY ward"
    )
    answer = ask(clinic, sql, analyst(clinic), epsilon=epsilon)
    (norm,) = answer["provenance"]["norms"]
    said = [warning for warning in answer["warnings"] if warning["code"] == "contribution_cut"]
    if norm["cut"] is None:
        assert said
        return
    part = norm["cut"]["share"] + 2 * norm["cut"]["error"]
    ends = [(low[1], high[1]) for low, high in zip(answer["lows"], answer["highs"], strict=True)]
    beside = max(2 * max(abs(low), abs(high)) / (high - low) for low, high in ends)
    likely = part - norm["cut"]["error"]
    moved = max(part / (1 - part) * beside, 2 * likely / (1 - likely) * beside)
    notable = moved > 1 or norm["cut"]["share"] >= 0.05 or part >= 0.1
    named = {name: [one for one in said if f'"{name}"' in one["what"]] for name in ("twice", "part", "letters")}
    assert {name: bool(found) for name, found in named.items()} == {"twice": notable, "part": notable, "letters": False}
    if notable:
        assert "in proportion" in named["twice"][0]["why"]
        assert "quotient" in named["part"][0]["why"]


@pytest.mark.slow
def test_counts_that_were_asked_for(clinic: Services) -> None:
    """Shows that nobody knows what declared bounds cut, and that one row per unit is cut by nothing."""
    named = AskedContribution(rows_per_unit=10, groups_per_unit=4, rows_per_unit_and_group=5)
    answer = ask(clinic, WARD, analyst(clinic), epsilon="10", contribution=named, with_cut=True)
    assert "no histogram" in reasons(answer)[1]
    people = ask(clinic, "SELECT COUNT(*) AS n FROM people", analyst(clinic), epsilon="10", with_cut=True)
    assert people["with_cut"]["highs"] == people["highs"]


@pytest.mark.slow
def test_it_is_a_question_of_its_own_for_free(clinic: Services) -> None:
    """Shows that asking for it later finds the stored release: the same numbers, and these ends beside them."""
    who = analyst(clinic)
    plain = ask(clinic, WARD, who, epsilon="3")
    again = ask(clinic, WARD, who, epsilon="3", with_cut=True)
    assert again["rows"] == plain["rows"]
    assert again["accounting"]["charged"] == []
    assert again["with_cut"]["highs"]
    assert "with_cut" not in ask(clinic, WARD, who, epsilon="3")


@pytest.mark.slow
def test_what_is_not_stored_is_said(clinic: Services) -> None:
    """Shows the public sentence on rows that no answer has; nothing of it is counted."""
    answer = ask(clinic, WARD, analyst(clinic), epsilon="3")
    (cut,) = answer["provenance"]["cut"]
    assert "1,000 of visits" in cut
    people = ask(clinic, "SELECT COUNT(*) AS n FROM people", analyst(clinic), epsilon="3")
    assert people["provenance"]["cut"] == []


def test_what_is_cut_of_the_partners_of_a_join_is_not_known(clinic: Services) -> None:
    """Shows that the share of all rows is not stated of those with a partner, and that the advice has it."""
    sql = (
        "SELECT p.sex, COUNT(v.cost) AS n, COUNT(*) AS rows_ FROM people p "
        "LEFT JOIN visits v ON v.person_id = p.person_id AND v.ward = 'a' GROUP BY p.sex"
    )
    answer = ask(clinic, sql, analyst(clinic), epsilon="1", with_cut=True)
    (said,) = (one for one in answer["warnings"] if one["what"] == 'how much of "n" is missing is not known')
    assert "partner" in reasons(answer)[1]
    assert 2 not in reasons(answer)
    assert [row[1] for row in answer["with_cut"]["highs"]] == [None, None]
    own = said["instead"][0].partition(" has ")[0]
    assert own == "COUNT(v.cost) FILTER (WHERE v.cost IS NOT NULL)"
    pasted = ask(clinic, sql.replace("COUNT(v.cost)", own), analyst(clinic), epsilon="1", with_cut=True)
    assert any("cost" in norm["argument"] for norm in pasted["provenance"]["norms"])
    assert 1 not in reasons(pasted)
    assert not [one for one in pasted["warnings"] if "not known" in one["what"] and '"n"' in one["what"]]
