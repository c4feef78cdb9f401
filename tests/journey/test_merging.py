"""Groups that would be noise are merged: one price known before, rows that say what they stand for, refusals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from privacy.refusal import Refused
from server.services import Services
from server.wire.requests import QueryBody, SharpenBody
from tests.journey.clinic import answer_to, question

AGE = "GREATEST(0, LEAST(99, age))"
BY_AGE = f"SELECT {AGE} AS a, COUNT(*) AS n FROM people GROUP BY {AGE} ORDER BY a DESC"
TENTH = Fraction(1, 10)


def asked(services: Services, sql: str, who: str, merge: Fraction | None = TENTH, **options: Any) -> dict[str, Any]:
    """An answer whose groups are merged."""
    return answer_to(services, question(sql, who, epsilon="0.5", merge=merge, **options))


def test_small_groups_are_rows_of_several(services: Services, analyst: Callable[..., str]) -> None:
    """Shows the price of an estimate, merged rows in the order of the answer, their intervals, and what is free."""
    one, other = analyst(), analyst()
    estimate = services.journey.estimate(question(BY_AGE, one, epsilon="0.5", merge=TENTH))
    assert estimate["merging"]["key"] == "a"
    assert estimate["merging"]["levels"][:2] == ["2 values", "4 values"]
    answer = asked(services, BY_AGE, one)
    assert [charge["epsilon"] for charge in answer["accounting"]["charged"]] == [estimate["price"]["epsilon"]]
    merged = answer["merged"]
    assert merged["intervals_at_once"] == estimate["merging"]["intervals_at_once"]
    assert merged["by"] == "COUNT(*)"
    assert "groups_merged" in [warning["code"] for warning in answer["warnings"]]
    assert 1 < len(answer["rows"]) < 100
    assert [column["interval"] for column in answer["columns"]] == [None, "simultaneous"]
    assert [row[0] for row in answer["rows"]] == sorted((row[0] for row in answer["rows"]), reverse=True)
    covered = []
    ranges = {row["row"]: (row["from"], row["to"]) for row in merged["rows"]}
    for place, (first, number) in enumerate(answer["rows"]):
        low, high = ranges.get(place, (first, first))
        assert low == first
        covered += range(low, high + 1)
        half = answer["highs"][place][1] - number
        assert (half > number * TENTH) == (place in merged["unmet"])
    assert sorted(covered) == list(range(100))
    assert sum(row[1] for row in answer["rows"]) == pytest.approx(3_000, abs=60)
    again = asked(services, BY_AGE, one)
    assert again["accounting"]["charged"] == []
    assert again["merged"] == merged
    # Another part is another answer of the same release, and the plain question is one of its own.
    finer = asked(services, BY_AGE, one, Fraction(1, 2))
    assert finer["accounting"]["charged"] == []
    assert len(finer["rows"]) > len(answer["rows"])
    plain = asked(services, BY_AGE, other, None)
    assert "merged" not in plain
    served = asked(services, BY_AGE, other)
    assert served["accounting"]["charged"] == []
    assert sum(row[1] for row in served["rows"]) == sum(row[1] for row in plain["rows"])


def test_small_texts_are_the_others(services: Services, analyst: Callable[..., str]) -> None:
    """Shows a rest of texts within the other key, and sums beside the counts that decide."""
    sql = (
        "SELECT CASE WHEN age < 2 THEN 'other' WHEN age < 4 THEN 'young' WHEN age < 50 THEN 'middle' ELSE 'old' END "
        "AS kind, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY kind"
    )
    answer = asked(services, sql, analyst())
    (row,) = answer["merged"]["rows"]
    assert answer["rows"][row["row"]][0] == "(other)"
    assert {"other", "young"} <= set(row["values"])
    assert answer["standard_errors"][row["row"]][1] is None
    assert all(low <= cell[1] <= high for cell, low, high in _cells(answer, 1))


def _cells(answer: dict[str, Any], place: int) -> list[tuple[list[Any], float, float]]:
    both = zip(answer["rows"], answer["lows"], answer["highs"], strict=True)
    return [(row, lows[place], highs[place]) for row, lows, highs in both]


@pytest.mark.parametrize(
    "sql",
    [
        BY_AGE + " LIMIT 5",
        f"SELECT {AGE} AS a, COUNT(*) * 2 AS n FROM people GROUP BY {AGE}",
        f"SELECT {AGE} AS a, AVG(age) AS n FROM people GROUP BY {AGE}",
        f"SELECT {AGE} AS a, COUNT(*) AS n FROM people GROUP BY {AGE} HAVING COUNT(*) > 5",
        "SELECT town, COUNT(*) AS n FROM people GROUP BY town",
        "SELECT COUNT(*) AS n FROM people",
        "SELECT age > 5 AS grown, COUNT(*) AS n FROM people GROUP BY grown",
        "SELECT GREATEST(0, LEAST(200, age)) AS a, sex, COUNT(*) AS n FROM people GROUP BY a, sex",
        "SELECT sex, SUM(income) AS n FROM people GROUP BY sex",
    ],
)
def test_what_cannot_be_merged_is_refused(services: Services, analyst: Callable[..., str], sql: str) -> None:
    """Shows the refusal before any price: LIMIT, arithmetic, averages, HAVING, hidden groups, no key that is fit, 603
    groups, and bounds that the data would choose.
    """
    with pytest.raises(Refused) as refused:
        asked(services, sql, analyst())
    (finding,) = refused.value.findings
    assert (finding.code, finding.field) == ("accuracy_unreachable", "accuracy.merge")


def test_the_accuracy_of_merged_rows_sets_no_price() -> None:
    """Shows which wishes a request may have beside it: a spend, and no half width or greatest price."""
    asked = {"dataset": "clinic", "sql": BY_AGE}
    merge = {"relative": "0.1", "merge": True}
    assert QueryBody.model_validate({**asked, "accuracy": merge, "spend": {"epsilon": "0.5"}}).accuracy is not None
    for accuracy in ({"merge": True}, {**merge, "at_most": "1"}, {**merge, "half_width": "5"}):
        with pytest.raises(ValidationError):
            QueryBody.model_validate({**asked, "accuracy": accuracy})
    with pytest.raises(ValidationError):
        QueryBody.model_validate({**asked, "accuracy": {"relative": "0.1"}, "spend": {"epsilon": "0.5"}})
    with pytest.raises(ValidationError):
        SharpenBody.model_validate({"accuracy": merge})
