"""Averages that were held to their range are said to be no answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest

from server.services import Services
from tests.journey.clinic import answer_to, attach, open_account, question, services_of

DATASET = """\
version: 2
dataset: few
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      kind: {type: text, keys: [none, some], nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
policy: {epsilon_default: "1", epsilon_max: "100", delta_per_query: "1e-8"}
"""


_NAMES = itertools.count()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Five hundred people of 40 to 59, all of one kind."""
    home = tmp_path_factory.mktemp("held")
    folder = home / "sources"
    folder.mkdir()
    rows = [f"{person},some,{40 + person % 20}\n" for person in range(500)]
    (folder / "people.csv").write_text("person_id,kind,age\n" + "".join(rows))
    path = folder / "few.yaml"
    path.write_text(DATASET)
    with services_of(home) as services:
        attach(services, path)
        yield services


def held(services: Services, call: str, place: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The answer, and its warnings of values that were held."""
    sql, who = f"SELECT kind, {call} AS x FROM people WHERE age <> {place} GROUP BY kind", f"ann{next(_NAMES)}"
    open_account(services.ledger, who, dataset="few")
    answer = answer_to(services, question(sql, who, dataset="few", epsilon="40", accept_noise=True))
    return answer, [one for one in answer["warnings"] if one["code"] in ("held_to_range", "nobody_seen")]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["AVG(age)", "STDDEV(age)", "VAR_POP(age)"])
def test_noise_alone_is_named(few: Services, call: str) -> None:
    """Nobody is of one kind: where that cell has a value, the warning counts it, and no other cell."""
    named = 0
    for place in range(8):
        answer, warnings = held(few, call, place)
        value, low, high = (answer[part][0][1] for part in ("rows", "lows", "highs"))
        whole = {"AVG(age)": 100, "STDDEV(age)": 100 * math.sqrt(0.5), "VAR_POP(age)": 2_500}[call]
        says_nothing = value is not None and (value == 0 or math.isclose(value, whole) or high - low >= 0.9 * whole)
        words = {"held_to_range": "may be noise alone", "nobody_seen": "may be that of nobody"}
        assert [one["what"] for one in warnings] == [
            f"1 of 2 values of {call} {words[one['code']]}" for one in warnings
        ]
        assert len(warnings) <= 1
        assert warnings or (value is not None and not says_nothing)
        named += bool(warnings)
    assert named >= 4  # each time with the chance of the confidence


def test_what_says_something_is_not_warned_of(few: Services) -> None:
    """A count is held to nothing, and an average of many is none of its ends."""
    sql = "SELECT COUNT(*), AVG(age) FROM people"
    open_account(few.ledger, "bob", dataset="few")
    answer = answer_to(few, question(sql, "bob", dataset="few", epsilon="90"))
    assert answer["warnings"] == []


@pytest.mark.parametrize("call", ["BOOL_OR(age > 41)", "BOOL_AND(age > 30)", "MEDIAN(GREATEST(age, 58))"])
def test_a_value_at_an_end_of_its_range_may_say_something(few: Services, call: str) -> None:
    """Rows that are there for certain make a truth value, and most values at a bound make a median of it."""
    who = f"eve{next(_NAMES)}"
    open_account(few.ledger, who, dataset="few")
    answer = answer_to(few, question(f"SELECT {call} AS x FROM people", who, dataset="few", epsilon="30"))
    assert answer["rows"][0][0] in (True, 58)
    assert not [one for one in answer["warnings"] if one["code"] == "held_to_range"]
