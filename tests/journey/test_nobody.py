"""Over HTTP: averages, spreads and sums of nobody do not look like answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from server.services import Services
from tests.journey.clinic import attach, open_account, services_of
from tests.journey.test_http import Api

PEOPLE = 800

DATASET = """\
version: 2
dataset: registry
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: people.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      kind: {type: text, keys: [none, some], nullable: false}
      age: {type: integer, bounds: [0, 100], nullable: false}
      nothing: {type: number}
      income: {type: number}
policy: {epsilon_default: "1", epsilon_max: "100", delta_per_query: "1e-8", releases_shared: "no"}
"""

CONFIDENCE = "0.9999"
"""So that each of these tests fails by chance once in ten thousand times."""

_NAMES = itertools.count()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Services]]:
    """People of one kind whose column `nothing` is NULL; nobody of the other kind."""
    home = tmp_path_factory.mktemp("nobody")
    folder = home / "sources"
    folder.mkdir()
    rows = [f"{person},some,{20 + person % 60},,{1000 + person}\n" for person in range(PEOPLE)]
    (folder / "people.csv").write_text("person_id,kind,age,nothing,income\n" + "".join(rows))
    path = folder / "registry.yaml"
    path.write_text(DATASET)
    with services_of(home) as services:
        attach(services, path)
        yield Api(services), services


def ask(served: tuple[Api, Services], sql: str, who: str = "", **options: Any) -> dict[str, Any]:
    """The answer to a new analyst, or to one who has asked before."""
    api, services = served
    if not who:
        who = f"analyst{next(_NAMES)}"
        api.key(who, "analyst")
        open_account(services.ledger, who, dataset="registry")
    body = {
        "dataset": "registry",
        "sql": sql,
        "spend": {"epsilon": "4"},
        "accuracy": {"confidence": CONFIDENCE},
        "wait_ms": 30000,
    }
    answer = api.call(who, "POST", "/v1/queries", {**body, **options})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def seen(answer: dict[str, Any]) -> list[str]:
    """What the warnings of nobody name."""
    return [one["what"] for one in answer["warnings"] if one["code"] == "nobody_seen"]


@pytest.mark.parametrize("call", ["AVG(nothing)", "SUM(nothing)", "STDDEV(nothing)", "AVG(nothing * 2 + 1)"])
def test_what_is_all_null_is_null(served: tuple[Api, Services], call: str) -> None:
    """Forbids a number within bounds that are a guess; also in what is computed from it."""
    answer = ask(served, f"SELECT {call} AS x FROM people")
    assert answer["rows"] == [[None]]
    assert answer["standard_errors"] == [[None]]
    assert seen(answer) == [f"the value of {call} is null"]
    assert "bounds_uncertain" in [one["code"] for one in answer["warnings"]]
    computed = ask(served, f"SELECT {call} * 2 AS x, COUNT(*) AS n FROM people")
    assert computed["rows"][0][0] is None
    assert abs(computed["rows"][0][1] - PEOPLE) < 30


@pytest.mark.slow
@pytest.mark.parametrize("call", ["AVG(nothing)", "SUM(nothing)"])
def test_groups_of_what_is_all_null(served: tuple[Api, Services], call: str) -> None:
    """Each group is null, and the warning counts them."""
    answer = ask(served, f"SELECT kind, {call} AS x FROM people GROUP BY kind")
    assert answer["rows"] == [["none", None], ["some", None]]
    assert seen(answer) == [f"2 of 2 values of {call} are null"]


def test_a_stored_answer_is_null_again(served: tuple[Api, Services]) -> None:
    """Shows that nothing but released numbers decides: the stored release, in other words, gives the same."""
    api, services = served
    api.key("again", "analyst")
    open_account(services.ledger, "again", dataset="registry")
    first = ask(served, "SELECT SUM(nothing) AS x FROM people", "again")
    other = ask(served, "SELECT SUM(nothing) AS y FROM people", "again")
    assert other["accounting"]["charged"] == []
    assert first["rows"] == other["rows"] == [[None]]
    assert first["lows"] == other["lows"]


@pytest.mark.parametrize("column", ["age", "income"])
def test_a_filter_that_no_row_passes(served: tuple[Api, Services], column: str) -> None:
    """Bounds that are declared, or chosen for certain: null or a value, with a warning."""
    answer = ask(served, f"SELECT AVG({column}) AS x, SUM({column}) AS s FROM people WHERE income < 0")
    assert seen(answer) == [f"the value of AVG({column}) may be that of nobody"]
    assert answer["lows"][0][1] <= 0 <= answer["highs"][0][1]
    assert answer["rows"][0][1] is not None


def test_an_empty_group_is_counted(served: tuple[Api, Services]) -> None:
    """The group of nobody, and not the other one."""
    answer = ask(served, "SELECT kind, AVG(age) AS x FROM people GROUP BY kind")
    assert seen(answer) == ["1 of 2 values of AVG(age) may be that of nobody"]
    assert abs(answer["rows"][1][1] - 49.5) < 20


def test_what_is_there_is_no_guess(served: tuple[Api, Services]) -> None:
    """Forbids the warning, and null, where the histogram shows people."""
    answer = ask(served, "SELECT AVG(income) AS a, SUM(income) AS s, COUNT(nothing) AS n FROM people")
    assert seen(answer) == []
    assert abs(answer["rows"][0][0] - 1400) < 300
    assert abs(answer["rows"][0][2]) < 50
