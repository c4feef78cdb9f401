"""Batches with real parts, over HTTP: one charge, counts that add up, kept over restarts, refused clearly."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

from accountant.filter import FilterKind
from accountant.states import QueryStatus
from mechanisms import gateway
from mechanisms.measurement import Measurement
from privacy.refusal import ExecutionFailed
from server.free_answers import BURST_BYTES
from tests.journey.clinic import clinic_in
from tests.journey.real import journey_of
from tests.journey.test_monitors import Clinic

PEOPLE = "SELECT COUNT(*) FROM people"
BOUNDS = {"rows_per_unit": 4, "groups_per_unit": 4, "rows_per_unit_and_group": 4}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose data stay as they are, for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("batches")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


def send(clinic: Clinic, who: str, queries: Sequence[str], key: str = "", **options: Any) -> Any:
    """A batch at so high a price that every count is nearly the true one."""
    body = {"dataset": "clinic", "queries": list(queries), "spend": {"epsilon": "50"}, **options}
    return clinic.call(who, "POST", "/v1/batches", body, **({"Idempotency-Key": key} if key else {}))


def estimated(clinic: Clinic, who: str, queries: Sequence[str], **options: Any) -> Any:
    """What an estimate says of it."""
    body = {"dataset": "clinic", "queries": list(queries), "spend": {"epsilon": "1"}, **options}
    return clinic.call(who, "POST", "/v1/batches:estimate", body)


def truth(clinic: Clinic, queries: Sequence[str]) -> list[int]:
    """The true counts."""
    with duckdb.connect() as connection:
        for table in ("people", "visits"):
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM read_csv('{clinic.path.parent}/{table}.csv')")
        return [row[0] for query in queries for row in connection.execute(query).fetchall()]


def ages(count: int, seed: int) -> list[str]:
    """Random ranges of the age."""
    source = random.Random(seed)
    ranges = [sorted(source.choices(range(18, 90), k=2)) for _ in range(count)]
    return [f"{PEOPLE} WHERE age BETWEEN {low} AND {high}" for low, high in ranges]


STEPS = range(0, 45_000, 1_250)
HALVES = [
    *(f"{PEOPLE} WHERE salary >= {low} AND salary < {low + 1_250}" for low in STEPS),
    *(f"{PEOPLE} WHERE salary >= 0 AND salary < {low + 1_250}" for low in STEPS),
]
"""Parts, and the sums of the first of them: the first part twice."""
CROSSED = [
    PEOPLE,
    *(f"{PEOPLE} WHERE sex = '{sex}'" for sex in ("female", "male")),
    *(f"{PEOPLE} WHERE age >= {low} AND age < {low + 30}" for low in (0, 30, 60)),
    *(
        f"{PEOPLE} WHERE sex = '{sex}' AND age >= {low} AND age < {low + 30}"
        for sex in ("female", "male")
        for low in (0, 30, 60)
    ),
]
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "random ranges": (ages(60, seed=4), {}),
    "parts and wholes": (HALVES, {}),
    "two keys with totals": (CROSSED, {}),
    "texts": ([f"{PEOPLE} WHERE town = 'town{i}'" for i in range(7)], {}),
    "nested texts": (
        [
            *(f"{PEOPLE} WHERE town = 'town{i}'" for i in range(5)),
            f"{PEOPLE} WHERE town IN ('town0', 'town1', 'town2')",
            f"{PEOPLE} WHERE town IN ('town3', 'town4')",
            f"{PEOPLE} WHERE town IN ('town0', 'town1', 'town2', 'town3', 'town4')",
        ],
        {},
    ),
    "any conditions": (
        [
            f"{PEOPLE} WHERE age > 30 OR sex = 'male'",
            f"{PEOPLE} WHERE NOT (age < 50 AND town LIKE 'town1%')",
            f"{PEOPLE} WHERE 40 <= age AND salary <> 25000",
            PEOPLE,
        ],
        {},
    ),
    "the clock": ([f"{PEOPLE} WHERE age > EXTRACT(year FROM CURRENT_DATE) - {year}" for year in (1980, 1970)], {}),
    "several rows of a unit": (
        [f"SELECT COUNT(*) FROM visits WHERE ward = '{ward}'" for ward in "abcd"],
        {"contribution": BOUNDS},
    ),
    "a join": (
        [
            f"SELECT COUNT(*) FROM visits AS v JOIN people AS p ON v.person_id = p.person_id WHERE p.age < {age}"
            for age in (30, 40, 50)
        ],
        {"contribution": BOUNDS},
    ),
}


@pytest.mark.sparse(3)
@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_the_queries_by_themselves(shared: Clinic, name: str) -> None:
    """Shows that whatever way is taken, each count is within a few standard errors of the true one."""
    queries, options = CASES[name]
    who, _ = shared.somebody()
    made = send(shared, who, queries, **options)
    assert made.status_code == 201, made.text
    rows = made.json()["rows"]
    assert [row["sql"] for row in rows] == queries
    for row, true in zip(rows, truth(shared, queries), strict=True):
        # Whole numbers in place of estimates move a sum by less than two.
        assert abs(row["value"] - true) <= 6 * row["standard_error"] + 2, row
        assert row["low"] <= row["value"] <= row["high"]


def test_a_tree_is_chosen_for_ranges_and_parts_add_up(shared: Clinic) -> None:
    """Shows the strategy, its least error among those of the estimate, one release, and totals that are the sums of
    their parts, at a price at which independent noise would not add up."""
    who, account = shared.somebody()
    told = estimated(shared, who, HALVES, spend={"epsilon": "1"}).json()
    assert told["strategy"] == "tree"
    errors = {one["strategy"]: one["error"] for one in told["strategies"]}
    assert errors["tree"] == min(errors.values())
    assert all(one["price_ratio"] >= 1 for one in told["strategies"])
    assert shared.spent(account) == 0
    made = send(shared, who, HALVES, spend={"epsilon": "1"}).json()
    values = [row["value"] for row in made["rows"]]
    assert list(itertools.accumulate(values[: len(STEPS)])) == values[len(STEPS) :]
    assert len(made["releases"]) == 1
    expected = next(one for one in told["strategies"] if one["chosen"])["error"]
    different = {row["sql"]: row["standard_error"] for row in made["rows"][1:]}
    mean = sum(error**2 for error in different.values()) / len(different)
    assert mean**0.5 == pytest.approx(expected)


@pytest.mark.parametrize("few", [True, False])
def test_a_batch_says_what_its_bounds_leave_out(shared: Clinic, few: bool) -> None:
    """Shows in the batch's own answer, when it is made, read again and estimated, the sentences and warnings of the
    query that it is; and none where each unit has one row."""
    who, _ = shared.somebody()
    bounds = {"rows_per_unit": 2, "groups_per_unit": 2, "rows_per_unit_and_group": 2}
    queries = [f"SELECT COUNT(*) FROM visits WHERE ward = '{ward}'" for ward in "abcd"] if few else [PEOPLE]
    options = {"contribution": bounds} if few else {}
    made = send(shared, who, queries, **options).json()
    query = shared.call(who, "GET", f"/v1/queries/{made['id']}").json()
    assert made["cut"] == query["provenance"]["cut"]
    assert made["warnings"] == [{**one, "position": None} for one in query["warnings"]]
    assert ["2 rows" in one and "too low" in one for one in made["cut"]] == [True] * few
    assert shared.call(who, "GET", f"/v1/batches/{made['id']}").json() == made
    assert estimated(shared, who, queries, **options).json()["cut"] == made["cut"]


def test_equal_queries_have_one_answer_and_one_charge(shared: Clinic) -> None:
    """Shows that a count that is asked a hundred times costs what it costs once, and is the same number."""
    who, account = shared.somebody()
    made = send(shared, who, [PEOPLE, f"{PEOPLE} WHERE age > 40"] * 50, spend={"epsilon": "0.5"}).json()
    assert made["queries"] == 100
    assert len({row["value"] for row in made["rows"][::2]}) == 1
    assert shared.spent(account) <= Fraction(1, 2)
    assert estimated(shared, who, [PEOPLE] * 30).json()["different"] == 1


def test_disjoint_boxes_are_priced_as_one(shared: Clinic) -> None:
    """Shows boxes in two columns of which each has the noise of one count for the whole price."""
    who, _ = shared.somebody()
    boxes = [f"{PEOPLE} WHERE sex = 'female' AND age < 30", f"{PEOPLE} WHERE sex = 'male' AND age < 50"]
    told = estimated(shared, who, boxes).json()
    alone = estimated(shared, who, boxes[:1]).json()
    assert told["strategy"] == "disjoint"
    error = {one["strategy"]: one["error"] for one in told["strategies"]}
    assert error["disjoint"] == pytest.approx(alone["strategies"][0]["error"])
    assert error["one_by_one"] > 1.3 * error["disjoint"]


def test_a_batch_is_one_query_that_outlives_a_restart(tmp_path: Path) -> None:
    """Shows one charge for a batch and its retry, the same answers from other services of the same home, lists and
    addresses, and that nobody else sees it."""
    with clinic_in(tmp_path) as (services, path):
        clinic = Clinic(tmp_path, services, path)
        account = clinic.person("ann")
        clinic.person("bob")
        clinic.person("root", role="admin")
        made = send(clinic, "ann", HALVES, key="one", spend={"epsilon": "2"})
        spent = clinic.spent(account)
        assert 0 < spent <= 2
        again = send(clinic, "ann", HALVES, key="one", spend={"epsilon": "2"})
        assert again.json() == made.json()
        assert clinic.spent(account) == spent
        other = send(clinic, "ann", HALVES[:3], key="one", spend={"epsilon": "2"})
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
        batch = made.json()["id"]
        assert made.headers["location"] == f"/v1/batches/{batch}"
        # The same batch without a key: its release serves, so it is free.
        free = send(clinic, "ann", HALVES, spend={"epsilon": "2"}).json()
        assert [row["value"] for row in free["rows"]] == [row["value"] for row in made.json()["rows"]]
        assert clinic.spent(account) == spent
    with clinic_in(tmp_path) as (services, path):
        later = Clinic(tmp_path, services, path)
        later._keys = clinic._keys
        read = later.call("ann", "GET", f"/v1/batches/{batch}")
        assert read.json() == made.json()
        assert later.call("bob", "GET", f"/v1/batches/{batch}").status_code == 404
        seen = later.call("root", "GET", f"/v1/batches/{batch}").json()
        assert {row["sql"] for row in seen["rows"]} == {None}
        assert [row["value"] for row in seen["rows"]] == [row["value"] for row in made.json()["rows"]]
        listed = later.call("ann", "GET", "/v1/batches").json()["batches"]
        assert {one["id"] for one in listed} == {batch, free["id"]}
        assert later.call("bob", "GET", "/v1/batches").json()["batches"] == []
        assert later.call("bob", "GET", f"/v1/batches?after={batch}").status_code == 404
        assert services.ledger.audit().ok


REFUSED: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "no queries": ({"queries": []}, 422, "invalid_request", ""),
    "thousands": ({"queries": [PEOPLE] * 1_001}, 422, "invalid_request", ""),
    "no text": ({"queries": [""]}, 422, "invalid_request", ""),
    "no numbers": ({"queries": [7]}, 422, "invalid_request", ""),
    "another aggregate": ({"queries": [PEOPLE, "SELECT AVG(age) FROM people"]}, 422, "unsupported_sql", "query 2"),
    "groups": ({"queries": [f"{PEOPLE} GROUP BY sex"]}, 422, "unsupported_sql", "query 1"),
    "two counts": ({"queries": ["SELECT COUNT(*), COUNT(*) FROM people"]}, 422, "unsupported_sql", "query 1"),
    "other rows": ({"queries": [PEOPLE, "SELECT COUNT(*) FROM visits"]}, 422, "unsupported_sql", "query 2"),
    "inverted": ({"queries": [f"{PEOPLE} WHERE age BETWEEN 40 AND 30"]}, 422, "no_groups", "query 1"),
    "nothing in common": ({"queries": [f"{PEOPLE} WHERE age < 3 AND age > 5"]}, 422, "no_groups", "query 1"),
    "out of bounds": ({"queries": [f"{PEOPLE} WHERE age BETWEEN 140 AND 150"]}, 422, "no_groups", "query 1"),
    "no such key": ({"queries": [PEOPLE, f"{PEOPLE} WHERE sex = 'x'"]}, 422, "no_groups", "query 2"),
    "a parameter": ({"queries": [f"{PEOPLE} WHERE age > $age"]}, 422, "unsupported_sql", "query 1"),
    "no SQL": ({"queries": [PEOPLE, f"{PEOPLE} WHERE"]}, 400, "parse_error", "query 2"),
    "no column": ({"queries": [PEOPLE, f"{PEOPLE} WHERE nobody > 4"]}, 422, "unknown_column", "query 2"),
    "another dataset": ({"dataset": "elsewhere"}, 404, "unknown_dataset", ""),
    "no price": ({"spend": {"epsilon": "0"}}, 422, "invalid_request", ""),
    "a price below the floor": ({"spend": {"epsilon": "0.000001"}}, 403, "policy_forbids", "the asked spend"),
    "bounds to choose": (
        {"queries": ["SELECT COUNT(*) FROM visits"] * 2, "contribution": "auto"},
        422,
        "invalid_request",
        "",
    ),
    "a price above the policy's": ({"spend": {"epsilon": "1000"}}, 403, "policy_forbids", "the asked spend"),
    "too many pieces": (
        {"queries": [f"{PEOPLE} WHERE income < {step}.5" for step in range(200)]},
        422,
        "too_large",
        "",
    ),
}


@pytest.mark.sparse(4)
@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_which_query_and_leave_everything_as_it_was(shared: Clinic, name: str) -> None:
    """Shows the same refusal for a batch and for its estimate, nothing charged, and nothing stored."""
    body, status, code, named = REFUSED[name]
    who, account = shared.somebody()
    options = {"queries": [PEOPLE], **body}
    made, told = send(shared, who, **options), estimated(shared, who, **{"spend": {"epsilon": "50"}, **options})
    for answer in (made, told):
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert answer.json()["what"].startswith(named)
        assert answer.json()["charged"] is False
    assert shared.spent(account) == 0
    assert shared.call(who, "GET", "/v1/batches").json()["batches"] == []


def test_an_exhausted_budget_charges_nothing(shared: Clinic) -> None:
    """Shows 403 and an account as it was, also on a pure account, whose tree has Laplace noise."""
    who, account = shared.somebody(epsilon="3", kind=FilterKind.PURE)
    told = estimated(shared, who, ages(40, seed=5), spend={"epsilon": "2"}).json()
    assert told["noise"] == "laplace"
    assert send(shared, who, ages(40, seed=5), spend={"epsilon": "2"}).status_code == 201
    refused = send(shared, who, ages(40, seed=6), spend={"epsilon": "2"})
    assert (refused.status_code, refused.json()["code"]) == (403, "budget_exhausted")
    assert shared.spent(account) == 2


@pytest.mark.slow
def test_neighbours_differ_in_noise_alone(tmp_path: Path) -> None:
    """Shows the same estimate, status, way, errors, warnings and price with one person more, whom some ranges count."""
    with clinic_in(tmp_path) as (services, path):
        clinic = Clinic(tmp_path, services, path)
        worlds = []
        for who in ("ann", "bob"):
            account = clinic.person(who)
            told = estimated(clinic, who, HALVES).json()
            made = send(clinic, who, HALVES, spend={"epsilon": "1"}).json()
            rows = [{name: row[name] for name in ("number", "sql", "standard_error")} for row in made["rows"]]
            widths = [row["high"] - row["low"] for row in made["rows"]]
            for name in ("budget", "data_version"):
                told["price"].pop(name, None)
            told["price"].pop("parts")
            kept = {name: made[name] for name in ("status", "strategy", "warnings", "confidence", "queries")}
            worlds.append((told, kept, rows, widths, clinic.spent(account)))
            clinic.grow(1)
        assert worlds[0] == worlds[1]


def test_an_estimate_reads_no_row(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows an estimate of a server whose engine gives no slot at all."""
    who, account = shared.somebody()

    def none(*_: object, **__: object) -> None:
        raise AssertionError("an estimate asked the engine of rows")

    for name in ("lease", "run"):
        monkeypatch.setattr(type(journey_of(shared.services).running._private), name, none)
    assert estimated(shared, who, HALVES).json()["strategy"] == "tree"
    assert shared.spent(account) == 0


def test_what_fails_is_one_opaque_outcome_and_stays_charged(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows a failure after rows were read: 500 without a cause, the charge stays, and the batch says so."""
    who, account = shared.somebody()

    def broken(*_: object) -> None:
        raise ExecutionFailed

    monkeypatch.setattr(gateway, "perturb", broken)
    made = send(shared, who, HALVES, spend={"epsilon": "2"})
    assert (made.status_code, made.json()["code"]) == (500, "execution_failed")
    (batch,) = shared.call(who, "GET", "/v1/batches").json()["batches"]
    read = shared.call(who, "GET", f"/v1/batches/{batch['id']}").json()
    assert (read["status"], read["rows"]) == (QueryStatus.FAILED_CHARGED.value, None)
    assert shared.spent(account) > 0


def test_a_batch_that_cannot_be_stored_costs_nothing(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the charge is given back, because no engine has seen it, and that a retry under the key is told so."""
    who, account = shared.somebody()

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(type(shared.services.registry), "add_resource", full)
        assert send(shared, who, HALVES, key="full").status_code == 500
    assert shared.spent(account) == 0
    again = send(shared, who, HALVES, key="full")
    assert (again.status_code, again.json()["code"]) == (409, "query_void")
    assert send(shared, who, HALVES, key="another").status_code == 201


def test_what_a_repeated_batch_stores_counts_against_the_allowance(
    shared: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that texts and terms that are kept without a charge are bounded with free answers."""
    who, account = shared.somebody()
    assert send(shared, who, HALVES).status_code == 201
    spent, free = shared.spent(account), shared.services.journey.free
    before = free._now(who)
    assert send(shared, who, HALVES, key="once-more").status_code == 201
    assert before - free._now(who) > len(json.dumps(HALVES))
    free.take(who, 2 * BURST_BYTES)
    refused = send(shared, who, HALVES, key="too-much")
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert shared.spent(account) == spent


def test_everything_is_drawn_at_the_gateway_from_one_charge(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a tree is one measurement, and that what it costs is what was charged: no level is free."""
    who, account = shared.somebody(kind=FilterKind.PURE)
    drawn: list[Measurement] = []
    perturb = gateway.perturb
    monkeypatch.setattr(gateway, "perturb", lambda *given: (drawn.append(given[0]), perturb(*given))[1])
    assert send(shared, who, ages(60, seed=7), spend={"epsilon": "2"}).status_code == 201
    (measurement,) = drawn
    assert shared.spent(account) >= measurement.event().loss().pure
    assert "levels" in measurement.name


def test_a_unit_is_never_counted_in_fewer_cells_than_it_has_rows(shared: Clinic) -> None:
    """Shows that cells are no way where a unit would lose groups there, and why, and that it is answered otherwise."""
    who, _ = shared.somebody()
    wards = [f"SELECT COUNT(*) FROM visits WHERE ward = '{ward}'" for ward in "abcd"]
    told = estimated(shared, who, wards).json()
    assert told["strategy"] == "one_by_one"
    refused = {one["strategy"]: one["refused"] for one in told["strategies"]}
    assert refused["cells"][0]["code"] == "policy_forbids"
    assert estimated(shared, who, wards, contribution=BOUNDS).json()["strategy"] == "cells"
