"""`noisegate statistic list` and `ask`, against a server that answers what the test says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import cli, refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

MODE_TEST = {"lead_rarely_to": 124, "lead_mostly_from": 165}
TEST = {"epsilon": "0.5", "threshold": 35.5, "passes_rarely_below": 31, "passes_mostly_from": 41}
ANSWER: dict[str, Any] = {
    "id": "q_1",
    "statistic": "typical_age",
    "outcome": "answered",
    "value": 54.0,
    "interval": [41.0, 67.0],
    "accounting": {"charged": [{"budget": "b_1", "epsilon": "0.25", "delta": "0"}]},
}
ASKED = ("statistic", "ask", "typical_age", "--dataset", "d", "--own-epsilon", "1")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ANSWER, "typical_age: 54  [41, 67]"),
        ({**ANSWER, "outcome": "no_answer", "value": None, "interval": None}, "typical_age: no answer"),
        ({**ANSWER, "value": "A\x1b[31m", "interval": None}, "typical_age: A"),
    ],
)
def test_an_outcome_is_shown(stand: Stand, answer: dict[str, Any], words: str) -> None:
    """A value with its interval, no answer, a most frequent value; no key unless one is given, so a repeat is free."""
    stand.replies = [(202, {"id": "q_1", "status": "running"}), (200, answer)]
    ran = stand.ask(*ASKED, "--width", "2")
    assert ran.code == 0, ran.err
    assert words in ran.out
    assert "charged 0.25 of the account; q_1" in ran.out
    assert "\x1b" not in ran.out
    method, path, headers, body = stand.requests[0]
    assert (method, path, "Idempotency-Key" in headers) == ("POST", "/v1/statistics", False)
    assert body == {"dataset": "d", "statistic": "typical_age", "width": "2", "spend": {"own_epsilon": "1"}}
    assert stand.requests[1][:2] == ("GET", "/v1/queries/q_1")


def test_an_outcome_that_is_stored_says_that_it_cost_nothing(stand: Stand) -> None:
    """The words of a repeat, and no price."""
    stand.replies = [(200, {**ANSWER, "accounting": {"charged": [], "reused": True}})]
    ran = stand.ask(*ASKED, "--width", "2")
    assert "charged nothing: the same question was asked before" in ran.out


def test_an_estimate_asks_nothing(stand: Stand) -> None:
    """What it costs, whichever way the test ends, and from how many people on it mostly passes."""
    answer = {
        "verdict": "affordable",
        "price": {"epsilon": "0.1", "own": {"epsilon": "1", "delta": "0.000001"}},
        "test": TEST,
        "half_width": 13.5,
        "width": "2",
    }
    stand.replies = [(200, answer)]
    ran = stand.ask(*ASKED, "--width", "2", "--estimate")
    assert "affordable: epsilon 0.1 of the account, whichever way the test ends" in ran.out
    assert "mostly where 41 people" in ran.out
    assert "within 13.5, for a proposal of 2" in ran.out
    assert [request[1] for request in stand.requests] == ["/v1/statistics:estimate"]


def test_those_that_are_registered_are_listed(stand: Stand) -> None:
    """Name, kind, least proposal and text; and that there is none."""
    one = {"name": "typical_age", "kind": "quantiles", "step": 1.0, "sql": "SELECT MEDIAN(age) FROM people"}
    stand.replies = [(200, {"statistics": [one]}), (200, {"statistics": []})]
    ran = stand.ask("statistic", "list", "--dataset", "d")
    assert "typical_age" in ran.out
    assert "SELECT MEDIAN(age) FROM people" in ran.out
    assert "No statistic is registered for you." in stand.ask("statistic", "list", "--dataset", "d").out


def test_a_price_is_named_once(stand: Stand) -> None:
    """Nothing is asked without one."""
    refused(stand.ask(*ASKED, "--epsilon", "1"), "not named once", code=2)
    assert stand.requests == []


def test_a_statistic_without_a_distance_is_found_when_the_file_is_checked(people: Path, tmp_path: Path) -> None:
    """Where in the file it is, why it is none, and what is one."""
    file = tmp_path / "people.yaml"
    assert cli("init", str(people), "--unit", "person_id", "-o", str(file)).code == 0
    registered = 'statistics:\n  number: {sql: "SELECT COUNT(*) FROM people"}\n'
    file.write_text(file.read_text() + registered)
    ran = cli("dataset", "check", str(file))
    assert ran.code == 1
    assert 'statistic "number" cannot be registered' in ran.out
    assert "no proposal can be tested" in ran.out
    assert "SELECT MODE(sex) FROM people" in ran.out


def test_statistics_that_wait_for_keys_are_named_when_the_file_is_checked(tmp_path: Path) -> None:
    """Where keys are those of a public table, whose rows are read when the file is attached."""
    (tmp_path / "people.csv").write_text("id,town\n1,a\n")
    (tmp_path / "towns.csv").write_text("town\na\n")
    file = tmp_path / "people.yaml"
    file.write_text("""\
version: 2
dataset: people
unit: {table: people, key: id}
tables:
  people:
    source: {file: people.csv}
    key: id
    columns: {id: {type: integer}, town: {type: text, keys: {table: towns, column: town}}}
  towns: {public: true, source: {file: towns.csv}, key: town, columns: {town: {type: text}}}
statistics:
  number: {sql: "SELECT COUNT(*) FROM people"}
""")
    ran = cli("dataset", "check", str(file))
    assert ran.code == 0, ran
    assert "Its statistics are checked then too" in ran.out


def test_the_lead_of_a_mode_is_named(stand: Stand) -> None:
    """Rows of lead, which people can compare with counts, in place of people."""
    price = {"epsilon": "0.1", "own": {"epsilon": "1", "delta": "0.000001"}}
    answer = {"verdict": "affordable", "price": price, "test": {**TEST, **MODE_TEST}, "half_width": None, "width": None}
    stand.replies = [(200, answer)]
    ran = stand.ask(*ASKED, "--estimate")
    assert (
        "19 of 20 cases from a lead of 165 rows over the second value on, and in 1 of 20 at most up to 124" in ran.out
    )
