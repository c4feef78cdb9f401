"""Running sums: measured by a tree where that errs less, with the errors that the tree has, and stored as such."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privacy.refusal import Refused
from server.services import Services
from tests.journey.clinic import answer_to, question

BIN = "GREATEST(20, LEAST(69, age))"
BELOW = f"SELECT {BIN} AS bin, SUM(COUNT(*)) OVER (ORDER BY {BIN}) AS below FROM people GROUP BY {BIN} ORDER BY bin"
CELLS = f"SELECT {BIN} AS bin, COUNT(*) AS n FROM people GROUP BY {BIN} ORDER BY bin"


def column(answer: dict[str, Any], part: str, place: int) -> list[float]:
    """A column of the rows, or of what is said of them."""
    return [row[place] for row in answer[part]]


def strategies(answer: dict[str, Any]) -> list[str | None]:
    """The strategy of each mechanism."""
    return [one.get("strategy", {}).get("name") for one in answer["provenance"]["mechanisms"]]


def test_running_sums_are_measured_by_a_tree(services: Services, analyst: Callable[..., str]) -> None:
    """Shows less error at the same price, what estimate and answer say of it, and which release serves what."""
    one, other = analyst(), analyst()
    estimate = services.journey.estimate(question(BELOW, one, epsilon="0.5"))
    (said,) = estimate["statistics"]
    tree = answer_to(services, question(BELOW, one, epsilon="0.5"))
    assert strategies(tree) == ["tree"]
    assert said["strategy"] == tree["provenance"]["mechanisms"][0]["strategy"]
    assert said["strategy"]["levels"][0]["nodes"] == 64
    assert [charge["epsilon"] for charge in tree["accounting"]["charged"]] == ["0.5"]

    cells = answer_to(services, question(CELLS, other, epsilon="0.5"))
    assert strategies(cells) == [None]
    flat = answer_to(services, question(BELOW, other, epsilon="0.5"))
    assert flat["accounting"]["charged"] == []
    errors, alone = (np.array(column(answer, "standard_errors", 1)) for answer in (tree, flat))
    assert (alone**2).mean() > 4.5 * (errors**2).mean()
    assert said["running_sums"]["standard_error"] == pytest.approx(np.sqrt((errors**2).mean()), rel=0.02)
    assert said["running_sums"]["of_groups_alone"] == pytest.approx(np.sqrt((alone**2).mean()), rel=0.02)
    assert {cell["interval"] for cell in tree["columns"]} == {None, "linear"}
    assert tree["lows"][-1][1] <= 3_000 <= tree["highs"][-1][1]

    again = answer_to(services, question(f"SELECT bin, below / 2 AS half FROM ({BELOW}) AS t", one, epsilon="0.5"))
    assert again["accounting"]["charged"] == []
    assert column(again, "rows", 1) == [below / 2 for below in column(tree, "rows", 1)]
    # Single groups are worse off in a tree for sums, so that is none for them.
    assert answer_to(services, question(CELLS, one, epsilon="0.5"))["accounting"]["charged"]


def test_a_tree_is_bought_whole(services: Services, analyst: Callable[..., str]) -> None:
    """Shows that no precision is added to a tree: a better one costs its whole price."""
    who = analyst()
    for epsilon in ("0.3", "0.5"):
        answer = answer_to(services, question(BELOW, who, epsilon=epsilon))
        assert [charge["epsilon"] for charge in answer["accounting"]["charged"]] == [epsilon]
        assert strategies(answer) == ["tree"]
        assert answer["accounting"]["sharpened"] is None
    with pytest.raises(Refused) as refused:
        answer_to(services, question(BELOW, who, epsilon="0.8", sharpens=True))
    assert [finding.code for finding in refused.value.findings] == ["not_sharpened"]


def test_a_width_that_is_asked_for_is_that_of_single_groups(services: Services, analyst: Callable[..., str]) -> None:
    """Shows that a tree is for what is spent: a width is promised of the groups themselves."""
    wide = services.journey.estimate(question(BELOW, analyst(), epsilon=None, half_width=Fraction(40)))
    assert all("strategy" not in one for one in wide["statistics"])
