"""Untidy data over HTTP with nothing declared but the unit: clear refusals or honest answers, and nothing lost."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from server.services import Services
from tests.journey.clinic import attach, open_account, services_of
from tests.journey.test_http import Api

DATASET = """\
version: 2
dataset: bare
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
  visits:
    source: {file: visits.csv}
    references: {person_id: people.person_id}
    contribution: auto
    columns:
      person_id: {type: integer, nullable: false}
      nothing: {type: number}
      same: {type: integer}
      single: {type: number}
      huge: {type: number}
      endless: {type: number}
      tiny: {type: number}
policy: {epsilon_default: "1", epsilon_max: "100", delta_per_query: "1e-8"}
"""
PEOPLE = 1_000
COLUMNS = ["nothing", "same", "single", "huge", "endless", "tiny"]
TRUTH = {"same": 42.0, "tiny": 1e-9}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Services, Api]]:
    """The application with a dataset of odd columns, and an analyst."""
    home = tmp_path_factory.mktemp("untidy")
    write(home / "sources")
    with services_of(home) as services:
        attach(services, home / "sources" / "bare.yaml")
        api = Api(services)
        api.key("ann", "analyst")
        open_account(services.ledger, "ann", dataset="bare", epsilon="1000")
        yield services, api


def write(folder: Path) -> None:
    """Values that are missing, equal, one person's alone, beyond the grid on both sides, infinite, and tiny."""
    folder.mkdir(parents=True)
    source = random.Random(1)
    with (folder / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["person_id"], *([person] for person in range(PEOPLE))])
    with (folder / "visits.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["person_id", *COLUMNS])
        for person in range(PEOPLE):
            for _ in range(1 + source.randrange(4)):
                alone = 10**6 if person == 7 else ""
                endless = "inf" if person % 2 else 2.5
                rows.writerow([person, "", 42, alone, 10**17 * (1 if person % 2 else -1), endless, 1e-9])
    (folder / "bare.yaml").write_text(DATASET)


def asked(api: Api, sql: str, path: str = "/v1/queries", **options: Any) -> tuple[int, dict[str, Any]]:
    """Status and body."""
    wish = {} if "accuracy" in options else {"spend": {"epsilon": "20"}}
    sent = api.call("ann", "POST", path, {"dataset": "bare", "sql": sql, "wait_ms": 30_000, **wish, **options})
    return sent.status_code, dict(json.loads(sent.content))


@pytest.mark.sparse(9)
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("call", ["AVG", "SUM", "STDDEV", "COUNT"])
def test_every_column_is_answered_or_warned_of(served: tuple[Services, Api], column: str, call: str) -> None:
    """Shows an answer of each: finite, its value within its interval, and a word where it says nothing."""
    _, api = served
    status, answer = asked(api, f"SELECT {call}({column}) AS x FROM visits", with_cut=True)
    assert status == 200, answer
    (value,), (low,), (high,) = answer["rows"][0], answer["lows"][0], answer["highs"][0]
    assert low is None or low <= high
    assert value is None or low is None or low <= value <= high
    codes = {warning["code"] for warning in answer["warnings"]}
    if call in ("AVG", "SUM", "STDDEV"):
        (told,) = answer["provenance"]["value_bounds"] or [None]
        if told is not None:
            assert (told["cut"] is None) == (told["cut_reason"] is not None)
            assert ("bounds_uncertain" in codes) == (not told["certain"])
            if column == "huge":
                assert told["cut"]["share"] > 0.9
        if call == "AVG" and column in ("nothing", "single"):
            # Nobody, or too few: nothing, or a value that is warned of.
            assert value is None or codes & {"bounds_uncertain", "held_to_range"}
        if call == "AVG" and column in TRUTH:
            assert low - 1e-6 <= TRUTH[column] <= high + 1e-6


def test_no_units_at_all(served: tuple[Services, Api]) -> None:
    """Shows a histogram of nobody: nothing about the cut is claimed, and the interval holds zero."""
    _, api = served
    for call in ("COUNT(*)", "SUM(same)"):
        status, answer = asked(api, f"SELECT {call} AS x FROM visits WHERE same < 0")
        assert status == 200
        assert (
            answer["lows"][0][0] <= 0 <= answer["highs"][0][0]
            or abs(answer["rows"][0][0]) < 6 * answer["standard_errors"][0][0]
        )
        for norm in answer["provenance"]["norms"]:
            assert norm["cut"] is None or norm["cut"]["share"] + 2 * norm["cut"]["error"] >= 0


@pytest.mark.sparse(4)
@pytest.mark.parametrize("bound", [0, -1, 2**41, 2**62, 1.5, "4"])
@pytest.mark.parametrize("name", ["rows_per_unit", "groups_per_unit", "rows_per_unit_and_group"])
def test_bounds_that_are_none_are_refused(served: tuple[Services, Api], name: str, bound: object) -> None:
    """Shows zero, negative and enormous bounds: refused with the field, and nothing is charged."""
    services, api = served
    (before,) = services.ledger.accounts(dataset="bare", principal="ann")
    for path in ("/v1/queries", "/v1/estimates"):
        status, problem = asked(api, "SELECT COUNT(*) FROM visits", path, contribution={name: bound})
        assert status == 422, problem
        assert problem["charged"] is False
        assert name in json.dumps(problem)
        assert problem["instead"]
    (after,) = services.ledger.accounts(dataset="bare", principal="ann")
    assert after.spent == before.spent


def test_a_width_over_http_in_two_charges(served: tuple[Services, Api]) -> None:
    """Shows both ends of two charges over HTTP: the answer, and the refusal that says what stays."""
    _, api = served
    sql = "SELECT SUM(same) AS x FROM visits WHERE same > 1"
    status, answer = asked(api, sql, accuracy={"half_width": "20000"})
    assert status == 200, answer
    parts = answer["accounting"]["parts"]
    assert {part["charge"] for part in parts} == {1, 2}
    (charged,) = answer["accounting"]["charged"]
    assert abs(sum(Decimal(part["epsilon"]) for part in parts) - Decimal(charged["epsilon"])) < Decimal("0.00001")
    assert answer["highs"][0][0] - answer["lows"][0][0] <= 40_002
    status, problem = asked(api, sql.replace("> 1", "> 2"), accuracy={"half_width": "100", "at_most": "0.001"})
    assert (status, problem["code"]) == (422, "accuracy_unreachable")
    if problem["charged"]:
        assert "stored" in problem["why"]
