"""Synthetic tables with real parts, over HTTP: charged once, free to query, kept over restarts, refused clearly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.filter import FilterKind
from accountant.states import QueryStatus
from mechanisms import gateway
from privacy.refusal import ExecutionFailed
from server.resources.resources import Resources
from server.synthetic import making
from tests.journey.clinic import attach, clinic_in, services_of
from tests.journey.watched import Clinic, restarted

BODY: dict[str, Any] = {"dataset": "clinic", "table": "people", "name": "drawn_people", "epsilon": "2"}


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    """A clinic of its own."""
    with clinic_in(tmp_path) as (services, path):
        yield Clinic(tmp_path, services, path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("drawn")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


def make(clinic: Clinic, who: str, key: str = "", **options: Any) -> Any:
    """Makes a table of people; far more is paid than needed to be sure of every number."""
    return clinic.call(who, "POST", "/v1/synthetic", {**BODY, **options}, **({"Idempotency-Key": key} if key else {}))


def ask(clinic: Clinic, who: str, sql: str) -> Any:
    """A question of an analyst, answered."""
    return clinic.call(who, "POST", "/v1/queries", {"dataset": "clinic", "sql": sql, "wait_ms": 20_000})


def test_a_table_is_charged_once_and_free_to_query(clinic: Clinic) -> None:
    """Shows a table from its estimate to its deletion, over a restart and another version of the data."""
    who, account = clinic.somebody(epsilon="10")
    estimate = clinic.call(who, "POST", "/v1/synthetic:estimate", BODY).json()
    assert [one["name"] for one in estimate["columns"]] == ["age", "sex", "salary", "income"]
    assert {one["name"] for one in estimate["left_out"]} == {"person_id", "town"}
    assert clinic.spent(account) == 0
    made = make(clinic, who, "k1")
    assert made.status_code == 201, made.text
    body = made.json()
    assert body["status"] == "settled"
    assert body["rows"] == pytest.approx(3000, abs=60)
    spent = clinic.spent(account)
    assert Fraction(0) < spent <= Fraction(2)
    # The same request is the same table.
    assert make(clinic, who, "k1").json() == body
    assert make(clinic, who, "k1", epsilon="1").status_code == 409
    sql = "SELECT sex, COUNT(*) AS n, AVG(age) AS age, MAX(salary) AS most FROM drawn_people GROUP BY sex ORDER BY sex"
    answer = ask(clinic, who, sql)
    assert answer.status_code == 200, answer.text
    rows = answer.json()["rows"]
    # Nobody reads these for numbers of people by mistake.
    (warned,) = answer.json()["warnings"]
    assert (warned["code"], body["id"] in warned["instead"][0]) == ("synthetic_rows", True)
    # Ages are uniform from 18 to 89, and a salary is five hundred times the age.
    assert [row[0] for row in rows][:2] == ["female", "male"]
    assert all(row[2] == pytest.approx(53.5, abs=3) and row[3] <= 100_000 for row in rows[:2])
    assert clinic.spent(account) == spent
    charged = [entry for entry in clinic.services.ledger.queries(who) if entry.charged]
    assert [entry.id for entry in charged] == [body["id"]]
    clinic.grow(500)
    with restarted(clinic) as again:
        assert ask(again, who, sql).json()["rows"] == rows
        assert again.call(who, "GET", f"/v1/synthetic/{body['id']}").json() == body
        assert [one["id"] for one in again.call(who, "GET", "/v1/synthetic").json()["synthetic"]] == [body["id"]]
        gone = again.call(who, "DELETE", f"/v1/synthetic/{body['id']}").json()
        assert (gone["status"], gone["measured"]) == ("closed", body["measured"])
        refused = ask(again, who, "SELECT COUNT(*) FROM drawn_people")
        assert (refused.status_code, refused.json()["code"]) == (422, "unknown_table")
        assert again.spent(account) == spent


def test_a_correlation_and_several_rows_of_a_unit(shared: Clinic) -> None:
    """Shows that what two columns have together is there, and a table of which people have several rows."""
    who, _ = shared.somebody(epsilon="100")
    assert make(shared, who, epsilon="20").status_code == 201
    (row,) = ask(shared, who, "SELECT AVG(salary / age) AS r FROM drawn_people WHERE age > 40").json()["rows"]
    assert row[0] == pytest.approx(500, abs=60)
    made = make(shared, who, table="visits", name="drawn_visits", epsilon="20", rows_per_unit=4).json()
    assert [one["name"] for one in made["columns"]] == ["cost"]
    assert made["rows"] == pytest.approx(7500, abs=300)
    half = make(shared, who, table="visits", name="fewer_visits", epsilon="20", rows_per_unit=2).json()
    assert half["rows"] == pytest.approx(5250, abs=300)


def test_others_neither_read_a_table_nor_learn_of_it(shared: Clinic) -> None:
    """Shows that names are each analyst's own, and that a table stands beside no row about people."""
    mine, _ = shared.somebody(epsilon="10")
    theirs, _ = shared.somebody(epsilon="10")
    made = make(shared, mine, name="mine").json()
    assert ask(shared, theirs, "SELECT COUNT(*) FROM mine").json()["code"] == "unknown_table"
    for who, there in (mine, True), (theirs, False):
        tables = shared.call(who, "GET", "/v1/datasets/clinic").json()["tables"]
        assert ("mine" in [table["name"] for table in tables]) is there
        read = shared.call(who, "GET", "/v1/datasets/clinic/tables/mine")
        assert read.status_code == (200 if there else 404)
    assert shared.call(theirs, "GET", f"/v1/synthetic/{made['id']}").status_code == 404
    assert shared.call(theirs, "DELETE", f"/v1/synthetic/{made['id']}").status_code == 404
    assert shared.call(theirs, "GET", "/v1/synthetic").json()["synthetic"] == []
    assert make(shared, theirs, name="mine").status_code == 201
    taken = make(shared, mine, name="MINE")
    assert (taken.status_code, taken.json()["code"], taken.json()["charged"]) == (409, "conflict", False)
    beside = ask(shared, mine, "SELECT COUNT(*) FROM people JOIN mine ON people.age = mine.age")
    assert (beside.status_code, beside.json()["charged"]) == (422, False)


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"columns": []}, 422, "column_without_bounds"),
    ({"columns": [{"name": "town"}]}, 422, "column_without_bounds"),
    ({"columns": [{"name": "person_id"}]}, 422, "column_without_bounds"),
    ({"columns": [{"name": "nobody"}]}, 422, "unknown_column"),
    ({"columns": [{"name": "age"}, {"name": "AGE"}]}, 422, "unknown_column"),
    ({"columns": [{"name": f"c{place}"} for place in range(3000)]}, 422, "too_large"),
    ({"columns": [{"name": "sex", "bins": 4}]}, 422, "unsupported_type"),
    ({"columns": [{"name": "income", "low": "5", "high": "1"}]}, 422, "unsupported_type"),
    ({"table": "wards"}, 422, "unknown_table"),
    ({"name": "people"}, 409, "conflict"),
    ({"name": "a b"}, 422, "unsupported_sql"),
    ({"rows_per_unit": 2}, 403, "policy_forbids"),
    ({"epsilon": "101"}, 403, "policy_forbids"),
    ({"epsilon": "0.000000000001"}, 422, "accuracy_unreachable"),
    ({"epsilon": "0.00001"}, 403, "policy_forbids"),
    ({"epsilon": "11"}, 403, "budget_exhausted"),
    ({"dataset": "elsewhere"}, 404, "unknown_dataset"),
]


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("options", "status", "code"), REFUSED)
def test_what_cannot_be_made_is_refused_and_costs_nothing(
    shared: Clinic, options: dict[str, Any], status: int, code: str
) -> None:
    """Shows a clear refusal before anything is charged, and a name that stays free."""
    who, account = shared.somebody(epsilon="10")
    refused = make(shared, who, **options)
    assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text
    assert refused.json()["charged"] is False
    if "person_id" in str(options):
        assert refused.json()["instead"] == ["leave the column out"]  # keys of its own would not help
    assert shared.spent(account) == 0
    assert shared.call(who, "GET", "/v1/synthetic").json()["synthetic"] == []


def test_an_account_without_a_delta_is_refused(shared: Clinic) -> None:
    """Shows that Gaussian noise is not promised in pure epsilon."""
    who, account = shared.somebody(epsilon="10", kind=FilterKind.PURE)
    refused = make(shared, who)
    assert (refused.status_code, refused.json()["code"]) == (403, "policy_forbids"), refused.text
    assert shared.spent(account) == 0


def test_a_failure_after_rows_were_read_is_opaque_and_charged(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows one outcome for whatever fails once rows were touched, in the third round or while the table is drawn."""
    who, account = clinic.somebody(epsilon="10")

    def fails(*_: Any, **__: Any) -> Any:
        raise ValueError("a true value: 4711")

    outcomes = []
    for where, name in (gateway, "perturb"), (making, "values_of"):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, fails)
            failed = make(clinic, who)
        outcomes.append({**failed.json(), "request_id": None})
        assert failed.status_code == 500
        assert "4711" not in failed.text
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0]["code"], outcomes[0]["charged"]) == ("execution_failed", True)
    assert clinic.spent(account) > Fraction(3)
    states = [record.state for record in clinic.services.ledger.queries(who)]
    assert states == [QueryStatus.FAILED_CHARGED] * 2
    # The name is free again, and what failed says so.
    listed = clinic.call(who, "GET", "/v1/synthetic").json()["synthetic"]
    assert [one["status"] for one in listed] == ["failed_charged", "failed_charged"]
    assert make(clinic, who).status_code == 201


@pytest.mark.slow
def test_a_process_that_ends_while_rows_are_read_leaves_a_charge_and_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that such a table is under way until the ledger ends it, then failed, charged, and its name free."""
    with clinic_in(tmp_path) as (services, path):
        clinic = Clinic(tmp_path, services, path)
        who, account = clinic.somebody(epsilon="10")
        with monkeypatch.context() as patch:
            patch.setattr(making.Synthetics, "_forget", lambda *_: None)
            patch.setattr(Resources, "end", lambda *_, **__: True)
            patch.setattr(making, "measured", lambda *_: {}["as if it ended here"])
            assert make(clinic, who).status_code == 500
        (under_way,) = clinic.call(who, "GET", "/v1/synthetic").json()["synthetic"]
        assert under_way["status"] == "running"
        assert make(clinic, who).status_code == 409
        assert clinic.call(who, "DELETE", f"/v1/synthetic/{under_way['id']}").status_code == 409
    with services_of(tmp_path) as services:
        clinic.services = services
        assert clinic.call(who, "GET", f"/v1/synthetic/{under_way['id']}").json()["status"] == "failed_charged"
        spent = clinic.spent(account)
        assert spent > 0
        assert make(clinic, who).status_code == 201
        assert clinic.spent(account) > spent


def test_a_slot_that_never_came_is_given_back(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that where no row was read nothing is charged, and the name is free."""
    who, account = clinic.somebody(epsilon="10")
    synthetic = clinic.services.synthetic
    assert isinstance(synthetic, making.Synthetics)

    def away(**_: Any) -> Any:
        raise ExecutionFailed(started=False)

    with monkeypatch.context() as patch:
        patch.setattr(synthetic.resources.private, "lease", away)
        assert make(clinic, who).json()["charged"] is False
    assert clinic.spent(account) == 0
    assert make(clinic, who).status_code == 201


@pytest.mark.slow
def test_a_table_that_cannot_be_noted_is_given_back(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a registry which fails before any row is read costs nothing, and leaves nothing that runs."""
    who, account = clinic.somebody(epsilon="10")

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError

    monkeypatch.setattr(clinic.services.registry, "add_synthetic", broken)
    assert make(clinic, who).status_code >= 500
    assert clinic.spent(account) == 0


def test_the_charge_is_there_before_the_first_row(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the ledger has the whole charge when the first statement runs, and one event for all of it."""
    who, account = clinic.somebody(epsilon="10")
    synthetic = clinic.services.synthetic
    assert isinstance(synthetic, making.Synthetics)
    genuine, spent = synthetic.resources.private.run, []

    def run(*arguments: Any, **named: Any) -> Any:
        spent.append(clinic.spent(account))
        return genuine(*arguments, **named)

    monkeypatch.setattr(synthetic.resources.private, "run", run)
    body = make(clinic, who).json()
    assert len(spent) >= 2
    assert set(spent) == {clinic.spent(account)}
    record = clinic.services.ledger.query(body["id"])
    assert record is not None
    assert json.loads(record.answer or b"") == {"synthetic": body["id"]}


@pytest.mark.slow
def test_a_shared_table_is_everybodys(tmp_path: Path) -> None:
    """Shows that where releases are shared for free, whoever may ask reads it, and only its owner deletes it."""
    with clinic_in(tmp_path) as (services, path):
        clinic = Clinic(tmp_path, services, path)
        path.write_text(path.read_text().replace("policy: {", "policy: {releases_shared: free, "))
        attach(services, path)
        mine, _ = clinic.somebody(epsilon="10")
        theirs, account = clinic.somebody(epsilon="10")
        made = make(clinic, mine).json()
        assert ask(clinic, theirs, "SELECT COUNT(*) AS n FROM drawn_people").json()["rows"] == [[made["rows"]]]
        assert clinic.spent(account) == 0
        assert clinic.call(theirs, "GET", f"/v1/synthetic/{made['id']}").json() == {
            **made,
            "price": None,
            "charged": [],
        }
        assert clinic.call(theirs, "DELETE", f"/v1/synthetic/{made['id']}").status_code == 404
    with services_of(tmp_path) as services:
        assert services.catalogue.get("clinic") is not None
