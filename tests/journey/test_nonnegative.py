"""Counts that are not negative: what is shown adds up, and intervals are those of the numbers before."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from privacy.refusal import Refused
from server.journey.nonnegative import _ends
from server.services import Services
from tests.journey.clinic import answer_to, question

BIN = "GREATEST(0, LEAST(140, age)) // 2"
CELLS = f"SELECT {BIN} AS bin, COUNT(*) AS n FROM people GROUP BY bin ORDER BY n DESC"
SHARE = f"SELECT bin, n, SUM(n) OVER (ORDER BY bin) AS below, n - 3 AS less FROM ({CELLS}) AS t"


def asked(services: Services, sql: str, who: str, **options: Any) -> dict[str, Any]:
    """An answer."""
    return answer_to(services, question(sql, who, epsilon="0.1", **options))


def test_counts_are_not_negative_and_add_up(services: Services, analyst: Callable[..., str]) -> None:
    """Shows one sum, intervals of the same rows in another order, and that it is free beside the plain answer."""
    who = analyst()
    plain = asked(services, CELLS, who)
    shown = asked(services, CELLS, who, nonnegative=True)
    assert shown["accounting"]["charged"] == []
    before, after = ({row[0]: row[1] for row in answer["rows"]} for answer in (plain, shown))
    assert min(before.values()) < 0 <= min(after.values())
    assert sum(before.values()) == sum(after.values())
    assert shown["adjusted"]["by"] == "nonnegative"
    assert shown["adjusted"]["columns"] == ["COUNT(*)"]
    assert "adjusted" not in plain
    ends = {row[0]: (lows[1], highs[1]) for row, lows, highs in _rows(plain)}
    for (name, number), lows, highs in _rows(shown):
        low, high = (max(0, end) for end in ends[name])
        assert (lows[1], highs[1]) == (min(low, number), max(high, number))

    assert _ends(7, -3.0, 5.0, cut=True) == (0, 7)

    first = asked(services, SHARE, who, nonnegative=True)
    numbers = {row[0]: row[1] for row in first["rows"]}
    assert all(row[2] == sum(numbers[one] for one in numbers if one <= row[0]) for row in first["rows"])
    assert all(
        low <= value <= high for row, lows, highs in _rows(first) for value, low, high in [(row[2], lows[2], highs[2])]
    )
    total = max(first["rows"])
    assert total[2] == sum(numbers.values())


def test_keys_may_be_texts(services: Services, analyst: Callable[..., str]) -> None:
    """Shows groups of a text, whose levels add up."""
    sql = f"SELECT sex, {BIN} AS bin, COUNT(*) AS n FROM people WHERE age > 98 GROUP BY ROLLUP (sex, bin)"
    numbers = {(row[0], row[1]): row[2] for row in asked(services, sql, analyst(), nonnegative=True)["rows"]}
    assert min(numbers.values()) == 0
    for sex in ("female", "male"):
        assert numbers[sex, None] == sum(n for (key, bin), n in numbers.items() if key == sex and bin is not None)


def _rows(answer: dict[str, Any]) -> list[tuple[list[Any], list[Any], list[Any]]]:
    return list(zip(answer["rows"], answer["lows"], answer["highs"], strict=True))


def test_rows_that_keys_do_not_name_have_no_interval(services: Services, analyst: Callable[..., str]) -> None:
    """Shows the reason where rows cannot be found again, and where noise chose them."""
    who = analyst()
    nameless = asked(services, f"SELECT n FROM ({CELLS}) AS t", who, nonnegative=True)
    assert {reason["code"] for reason in nameless["interval_reasons"]} == {"no_row_identity"}
    chosen = asked(services, f"SELECT bin, n FROM ({CELLS}) AS t WHERE n > 20", who, nonnegative=True)
    assert {reason["code"] for reason in chosen["interval_reasons"]} == {"chosen_by_noise"}


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        (f"SELECT {BIN} AS bin, SUM(age) AS s FROM people GROUP BY bin", {}),
        ("SELECT town, COUNT(*) AS n FROM people GROUP BY town", {}),
        ("SELECT sex, COUNT(*) AS n FROM people WHERE age > (SELECT AVG(age) FROM people) GROUP BY sex", {}),
        (CELLS, {"with_cut": True}),
        (CELLS, {"merge": Fraction(1, 10)}),
    ],
)
def test_what_has_no_such_counts_is_refused(
    services: Services, analyst: Callable[..., str], sql: str, options: dict[str, Any]
) -> None:
    """Shows the refusal of sums, hidden groups, stages, and of other options for what is shown."""
    with pytest.raises(Refused) as refused:
        asked(services, sql, analyst(), nonnegative=True, **options)
    assert [finding.field for finding in refused.value.findings] == ["nonnegative"]
