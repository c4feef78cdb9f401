"""What a published profile advises about a dataset file."""

from __future__ import annotations

from typing import Any

import pytest

from server import profile_types
from server.datasets import load_text
from server.datasets.profiled import profile_advice
from server.wire import dataset_answers as answers

FILE = """\
version: 2
dataset: shop
unit: {table: people, key: id}
tables:
  people:
    source: {file: people.csv}
    key: id
    columns:
      id: {type: integer}
      age: {type: integer, bounds: AGE}
      spent: {type: number SPENT}
  orders:
    source: {file: orders.csv}
    references: {id: people.id}
    contribution: {rows_per_unit: ROWS, groups_per_unit: 4, rows_per_unit_and_group: 2}
    columns:
      id: {type: integer}
      shop: {type: text, keys: [a, b]}
"""


def _quantiles(*levels: tuple[float, Any, Any]) -> list[dict[str, Any]]:
    return [{"level": level, "value": low, "low": low, "high": high} for level, low, high in levels]


def _column(name: str, **more: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("null", "quantiles", "keys", "groups_per_unit", "months_per_unit"))
    return {"name": name, **empty, **more}


AGE = _column("age", quantiles=_quantiles((0.05, 18, 20), (0.95, 78, 80)))
SPENT = _column("spent", quantiles=_quantiles((0.05, -12.5, 0.0), (0.95, 800.0, 1_234.5)))
SHOP = _column("shop", keys=[], groups_per_unit=_quantiles((0.9, 1, 2), (0.99, 2, 2)))
PROFILE: dict[str, Any] = {
    "data_version": "abc",
    "tables": [
        {"name": "people", "rows_per_unit": None, "columns": [AGE, SPENT]},
        {"name": "orders", "rows_per_unit": _quantiles((0.9, 20, 24), (0.99, 60, 64)), "columns": [SHOP]},
    ],
}


def _advice(*, age: str = "[0, 100]", spent: str = ", bounds: [-20, 1500]", rows: str = "40") -> list[str]:
    text = FILE.replace("AGE", age).replace(" SPENT", spent).replace("ROWS", rows)
    return profile_advice(PROFILE, load_text(text))


def test_a_file_that_suits_the_data_is_left_alone() -> None:
    """Bounds near the quantiles, rows that most units stay within."""
    assert _advice() == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spent": ""}, ("people.spent", "bounds: [-13, 1300]")),
        ({"age": "[0, 1000]"}, ("people.age", "bounds: [18, 80]", "more noise")),
        ({"rows": "5"}, ("orders", "99 % at most 64", "is cut", "rows_per_unit: 64")),
        ({"rows": "400"}, ("orders", "more noise", "rows_per_unit: 64")),
    ],
)
def test_what_does_not_suit_is_said(change: dict[str, str], words: tuple[str, ...]) -> None:
    """One line each, below the one that says where it is from."""
    head, line = _advice(**change)
    assert "data version abc" in head
    assert all(word in line for word in words), line


def test_bounds_that_questions_choose_need_no_advice() -> None:
    """Under auto nothing is declared that could be too small."""
    text = FILE.replace("AGE", "[0, 100]").replace(" SPENT", ", bounds: [-20, 1500]")
    auto = text.replace("{rows_per_unit: ROWS, groups_per_unit: 4, rows_per_unit_and_group: 2}", "auto")
    assert profile_advice(PROFILE, load_text(auto)) == []


def test_without_a_file_everything_is_said() -> None:
    """For a proposal, which declares nothing yet."""
    text = "\n".join(profile_advice(PROFILE))
    for word in ("people.age", "people.spent", "rows_per_unit: 64", "groups_per_unit: 2"):
        assert word in text


def test_the_types_of_a_profile_are_those_of_the_answer() -> None:
    """What advises from a profile reads it by the members that the route promises."""
    pairs = {
        profile_types.NoisyNumber: answers.RangeAnswer,
        profile_types.Quantile: answers.QuantileAnswer,
        profile_types.CountQuantile: answers.QuantileAnswer,
        profile_types.KeySize: answers.KeySizeAnswer,
        profile_types.ColumnProfile: answers.ProfiledColumnAnswer,
        profile_types.TableProfile: answers.ProfiledTableAnswer,
    }
    for read, sent in pairs.items():
        assert read.__annotations__.keys() == sent.model_fields.keys()
    assert profile_types.Profile.__annotations__.keys() <= answers.ProfileAnswer.model_fields.keys()
