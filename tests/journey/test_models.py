"""Models with real parts, over HTTP: charged once before a row is read, fitted, kept over restarts, refused clearly."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from accountant.errors import LedgerUnavailable
from accountant.filter import FilterKind
from accountant.states import QueryStatus
from privacy.refusal import ExecutionFailed, Refused
from privacy.unit import Neighbouring
from server.admitted import InFlight, Settled
from server.app import create_app
from server.models import quoting
from server.models.models import Models
from server.models.terms import TrainModel
from server.resources.resources import Begun
from server.routes.models import _asked
from server.wire.model_requests import ModelBody
from tests.journey import watched
from tests.journey.clinic import clinic_in, services_of
from tests.journey.watched import Clinic, restarted

SQL = "SELECT age, sex, age >= 54 AS label FROM people"
"""In the clinic's data the label follows from the age, and half of the people have it."""


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    """A clinic of its own."""
    with clinic_in(tmp_path) as (services, path):
        yield Clinic(tmp_path, services, path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic for tests with analysts of their own."""
    with clinic_in(tmp_path_factory.mktemp("models")) as (services, path):
        yield Clinic(path, services, path)


def body(**options: Any) -> dict[str, Any]:
    """A model of the clinic, with more than enough to be exact."""
    return {
        "dataset": "clinic",
        "sql": SQL,
        "spend": {"own_epsilon": "3"},
        "iterations": 40,
        "wait_ms": 30_000,
        "held_out": "0.2",
        **options,
    }


def train(clinic: Clinic, who: str, key: str = "", **options: Any) -> httpx.Response:
    """Asks for one."""
    return clinic.call(who, "POST", "/v1/models", body(**options), **({"Idempotency-Key": key} if key else {}))


def request_of(clinic: Clinic, who: str, **options: Any) -> TrainModel:
    """The same, as the models read it."""

    class Caller:
        name = who

    raw = body(**options)
    return _asked(Caller(), ModelBody.model_validate(raw), raw, key=None)  # type: ignore[arg-type]


def models_of(clinic: Clinic) -> Models:
    assert isinstance(clinic.services.models, Models)
    return clinic.services.models


def test_a_model_is_charged_once_fitted_and_read_again(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows a whole life: the estimate's price is what is charged, the weights predict, a retry finds the same model,
    and after a restart it reads the same."""
    account = clinic.person("ann", epsilon="20")
    estimate = clinic.call("ann", "POST", "/v1/models:estimate", body()).json()
    assert estimate["verdict"] == "affordable"
    assert (estimate["columns"], estimate["measurements"]) == (5, 42)
    assert clinic.spent(account) == 0
    made = train(clinic, "ann", key="one")
    assert made.status_code == 201, made.text
    shown = made.json()
    assert made.headers["location"] == f"/v1/models/{shown['id']}"
    assert shown["status"] == "settled"
    (charged,) = shown["charged"]
    assert charged["epsilon"] == estimate["price"]["epsilon"]
    assert 0 < clinic.spent(account) <= Fraction(charged["epsilon"])
    model = shown["model"]
    assert [weight["key"] for weight in model["weights"]] == [None, "female", "male", None][:4]
    assert model["weights"][0]["low"] > 0
    assert abs(model["units"] - 2_400) < 200
    assert model["held_out"]["accuracy"] > 0.8
    assert abs(sum(model["held_out"]["confusion"].values()) - 600) < 120
    chances = duckdb.sql(
        f"SELECT {model['predict']} FROM (VALUES (20, 'male'), (89, 'female'), (NULL, NULL)) AS t(age, sex)"
    ).fetchall()
    assert chances[0][0] < 0.3
    assert chances[1][0] > 0.7
    before = clinic.spent(account)
    again = train(clinic, "ann", key="one")
    assert (again.status_code, again.json()) == (201, shown)
    assert train(clinic, "ann", key="one", iterations=41).status_code == 409
    assert clinic.spent(account) == before
    with monkeypatch.context() as admitting:
        # Between its charge and its row a request under the same key is told to come again, and not that it is unknown.
        admitting.setattr(type(clinic.services.registry), "resource", lambda *_: None)
        admitting.setattr("server.routes.resources.ADMITTED_SECONDS", 0.1)
        early = train(clinic, "ann", key="one", wait_ms=0)
        assert (early.status_code, early.json()["code"]) == (409, "conflict")
    with restarted(clinic):
        assert clinic.call("ann", "GET", f"/v1/models/{shown['id']}").json() == shown
        (listed,) = clinic.call("ann", "GET", "/v1/models").json()["models"]
        assert listed == {**shown, "model": None}
        paid = clinic.call("ann", "GET", f"/v1/queries/{shown['id']}")
        assert paid.json() == model
        csv = clinic.call("ann", "GET", f"/v1/queries/{shown['id']}", Accept="text/csv")
        assert csv.status_code == 406


@pytest.mark.sparse(2)
@pytest.mark.parametrize("method", ["gradient_clipping", "sufficient_statistics"])
def test_the_other_methods_predict_as_well(shared: Clinic, method: str) -> None:
    """Shows each method, on rows of which a unit has several: their weights point the same way."""
    who, _ = shared.somebody(epsilon="100")
    sql = "SELECT age, cost, age >= 54 AS label FROM visits JOIN people USING (person_id)"
    model = train(shared, who, method=method, sql=sql).json()["model"]
    assert model["weights"][0]["low"] > 0
    assert model["held_out"]["accuracy"] > 0.7
    assert "several_rows" in {warning["code"] for warning in model["warnings"]}


@pytest.mark.sparse(2)
@pytest.mark.parametrize("method", ["input_clipping", "gradient_clipping"])
def test_chances_are_those_of_rows_where_units_have_several(shared: Clinic, method: str) -> None:
    """Shows that a model of what the feature says nothing about gives about the share of rows with the label, which
    is the same for units of one row and of four."""
    who, _ = shared.somebody(epsilon="100")
    sql = "SELECT age, visit_id % 7 = 0 AS label FROM visits JOIN people USING (person_id)"
    model = train(shared, who, method=method, sql=sql).json()["model"]
    assert 1 / (1 + math.exp(-model["intercept"]["weight"])) == pytest.approx(1 / 7, abs=0.05)


def test_a_number_is_predicted_by_sufficient_statistics(shared: Clinic) -> None:
    """Shows the explained variance of a numeric label, and the value that the formula gives."""
    who, _ = shared.somebody(epsilon="100")
    model = train(shared, who, method="sufficient_statistics", sql="SELECT age, salary AS label FROM people").json()[
        "model"
    ]
    assert model["held_out"]["explained_variance"] > 0.8
    assert model["label"]["high"] >= 100_000
    ((value,),) = duckdb.sql(f"SELECT {model['predict']} FROM (VALUES (40)) AS t(age)").fetchall()
    assert abs(value - 20_000) < 5_000


REFUSED = [
    ("unsupported_sql", {"sql": "SELECT age, salary AS label FROM people"}),
    ("unsupported_sql", {"sql": "SELECT age, salary / 100000 AS label FROM people"}),
    ("unsupported_sql", {"sql": "SELECT age, 1 AS label FROM people"}),
    ("unsupported_sql", {"sql": "SELECT 7 AS seven, age > 50 AS label FROM people"}),
    ("unsupported_sql", {"sql": "SELECT age FROM people"}),
    ("unsupported_sql", {"sql": "SELECT age, town, age > 50 AS label FROM people"}),
    ("unsupported_sql", {"sql": "SELECT age, age > 50 AS label FROM people ORDER BY age LIMIT 10"}),
    ("column_without_bounds", {"sql": "SELECT CAST(town AS DOUBLE) AS t, age > 50 AS label FROM people"}),
    ("group_by_unit", {"sql": "SELECT person_id, age > 50 AS label FROM people"}),
    ("unknown_column", {"sql": "SELECT ages, age > 50 AS label FROM people"}),
    ("unknown_dataset", {"dataset": "absent"}),
    ("policy_forbids", {"spend": {"epsilon": "101"}}),
    ("policy_forbids", {"spend": {"epsilon": "0.000001"}}),
    ("too_large", {"method": "sufficient_statistics", "sql": "WIDE"}),
    ("too_large", {"sql": "WIDER"}),
]


@pytest.mark.sparse(4)
@pytest.mark.parametrize(("code", "options"), REFUSED)
def test_what_cannot_be_fitted_is_refused_before_it_is_charged(
    shared: Clinic, code: str, options: dict[str, Any]
) -> None:
    """Shows a refusal by text and declarations, the same in an estimate, and an account that is as before."""
    columns = {"WIDE": 100, "WIDER": 257}.get(options.get("sql", ""))
    if columns is not None:
        listed = ", ".join(f"age > {n} / 10 AS c{n}" for n in range(columns))
        options = {**options, "sql": f"SELECT {listed}, age > 50 AS label FROM people"}
    who, account = shared.somebody(epsilon="200")
    for path in ("/v1/models", "/v1/models:estimate"):
        told = shared.call(who, "POST", path, body(**options))
        problem = told.json()
        assert (problem["code"], problem["charged"]) == (code, False), told.text
        assert problem["findings"][0]["instead"] or code in ("unknown_column", "group_by_unit")
    assert shared.spent(account) == 0
    assert shared.call(who, "GET", "/v1/models").json()["models"] == []


def test_rows_that_a_worker_could_not_hold_are_refused_before_they_are_charged(
    shared: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows by a worker of hardly any room that the declared number of rows, and nothing else, decides; and that it is
    told how many rows there is room for."""
    who, account = shared.somebody(epsilon="200")
    models = shared.services.models
    assert isinstance(models, Models)
    assert models.quotes.rows_bytes_max == shared.services.settings.engine_memory_mb << 20
    monkeypatch.setattr(models, "quotes", replace(models.quotes, rows_bytes_max=1 << 20))
    for path in ("/v1/models", "/v1/models:estimate"):
        told = shared.call(who, "POST", path, body()).json()
        assert (told["code"], told["charged"]) == ("too_large", False)
        assert "about 50,000 are declared" in told["why"]
    assert shared.spent(account) == 0


def test_a_feature_without_bounds_is_told_how_to_have_some(shared: Clinic) -> None:
    """Shows a suggestion that can be pasted, with numbers in its places."""
    who, _ = shared.somebody(epsilon="200")
    sql = "SELECT people.income * 1e16 AS more, age > 50 AS label FROM people"
    (first, *_) = shared.call(who, "POST", "/v1/models:estimate", body(sql=sql)).json()["instead"]
    assert first == "GREATEST(<lowest>, LEAST(people.income * 1e16, <highest>)) AS more"
    pasted = sql.replace("people.income * 1e16 AS more", first.replace("<lowest>", "0").replace("<highest>", "9"))
    assert shared.call(who, "POST", "/v1/models:estimate", body(sql=pasted)).status_code == 200


def test_an_exhausted_budget_is_refused_and_a_pure_account_cannot_pay(shared: Clinic) -> None:
    """Shows 403 without a charge, and a model that is not listed."""
    who, account = shared.somebody(epsilon="0.5")
    told = train(shared, who)
    assert told.status_code == 403, told.text
    assert told.json()["code"] == "budget_exhausted"
    assert shared.spent(account) == 0
    who, account = shared.somebody(kind=FilterKind.PURE)
    assert train(shared, who).json()["code"] == "policy_forbids"
    assert shared.spent(account) == 0


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("sql", "warns"),
    [
        ("SELECT age, salary > 99999 AS label FROM people", "one_class"),
        ("SELECT age, sex, age > 50 AS label FROM people WHERE salary > 99999", "held_out_within_noise"),
        ("SELECT age, NULLIF(age, age) > 3 AS label FROM people", "held_out_within_noise"),
        ("SELECT NULLIF(age, age) AS nothing, age > 50 AS label FROM people", "intervals_of_noise"),
    ],
)
def test_rows_that_say_nothing_have_an_honest_answer(shared: Clinic, sql: str, warns: str) -> None:
    """Shows labels of one class, no rows, labels that are NULL, features that are: an answer with its warning, at the
    same price as any other."""
    who, _ = shared.somebody(epsilon="100")
    made = train(shared, who, sql=sql)
    assert made.status_code == 201, made.text
    shown = made.json()
    assert warns in {warning["code"] for warning in shown["model"]["warnings"]}
    usual = train(shared, who, sql=SQL.replace("sex, ", "")).json()
    assert usual["charged"] != []
    if "sex" not in sql:
        assert [part["epsilon"] for part in usual["charged"]] == [part["epsilon"] for part in shown["charged"]]


@pytest.mark.sparse(2)
@pytest.mark.parametrize("step", ["read_rows", "add_up"])
def test_a_failure_is_opaque_and_stays_charged(shared: Clinic, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Shows one outcome for whatever goes wrong once rows may have been read, and the entry that stays."""
    who, account = shared.somebody(epsilon="100")

    def broken(*_: Any, **__: Any) -> Any:
        raise ExecutionFailed

    monkeypatch.setattr(models_of(shared).resources.private, step, broken)
    told = train(shared, who, key="broken")
    assert told.json()["code"] == "execution_failed"
    assert told.json()["charged"]
    assert shared.spent(account) > 0
    (listed,) = shared.call(who, "GET", "/v1/models").json()["models"]
    assert (listed["status"], listed["model"]) == ("failed_charged", None)
    assert train(shared, who, key="broken").json()["code"] == "execution_failed"
    assert len(shared.call(who, "GET", "/v1/models").json()["models"]) == 1


def test_outcomes_of_models_are_counted(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the metrics of queries after a fit, its retry and one that fails."""
    who, _ = shared.somebody(epsilon="100")
    apps: list[Any] = []

    def made(*arguments: Any, **options: Any) -> Any:
        apps[:] = apps or [create_app(*arguments, **options)]
        return apps[0]

    monkeypatch.setattr(watched, "create_app", made)
    before = shared.services.jobs.ended
    assert [train(shared, who, key="one").status_code for _ in range(2)] == [201, 201]
    monkeypatch.setattr(models_of(shared).resources.private, "add_up", None)
    assert train(shared, who).json()["code"] == "execution_failed"
    ended = {state: count - before.get(state, 0) for state, count in shared.services.jobs.ended.items()}
    assert {state: count for state, count in ended.items() if count} == {"settled": 1, "failed_charged": 1}
    assert 'noisegate_queries_total{outcome="stored"} 1.0' in apps[0].state.metrics.render().decode()


def test_an_answer_that_cannot_be_stored_is_the_same_failure(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a ledger which fails at the last step leaves a model failed and charged, and not one that runs on."""
    who, account = shared.somebody(epsilon="100")
    with monkeypatch.context() as patched:

        def broken(*_: Any, **__: Any) -> Any:
            raise LedgerUnavailable

        patched.setattr(models_of(shared).resources.ledger, "post", broken)
        assert train(shared, who).json()["code"] == "execution_failed"
    (listed,) = shared.call(who, "GET", "/v1/models").json()["models"]
    assert (listed["status"], listed["model"]) == ("failed_charged", None)
    assert shared.spent(account) > 0


def test_a_model_that_waits_is_voided_and_one_that_runs_is_not(shared: Clinic) -> None:
    """Shows cancelling before the first row is read, and that a model which was voided is never fitted."""
    who, account = shared.somebody(epsilon="100")
    models = models_of(shared)
    waiting = models.admit(request_of(shared, who))
    assert isinstance(waiting, Begun)
    assert shared.spent(account) > 0
    told = shared.call(who, "POST", f"/v1/models/{waiting.query_id}:cancel").json()
    assert told == {"id": waiting.query_id, "status": "failed_void", "charged": False}
    assert shared.spent(account) == 0
    with pytest.raises(ExecutionFailed) as failed:
        models.complete(waiting)
    assert not failed.value.started
    done = train(shared, who).json()
    told = shared.call(who, "POST", f"/v1/models/{done['id']}:cancel").json()
    assert (told["status"], told["charged"]) == ("settled", True)
    other, _ = shared.somebody()
    assert shared.call(other, "GET", f"/v1/models/{done['id']}").status_code == 404
    assert shared.call(other, "POST", f"/v1/models/{done['id']}:cancel").status_code == 404


def test_a_model_of_a_process_that_died_fails_charged(tmp_path: Path) -> None:
    """Shows a reservation without its process: under way until it ends, charged and failed after the next start."""
    with clinic_in(tmp_path) as (services, path):
        clinic = Clinic(tmp_path, services, path)
        account = clinic.person("ann", epsilon="100")
        left = models_of(clinic).admit(request_of(clinic, "ann"))
        assert isinstance(left, Begun)
        running = clinic.call("ann", "GET", f"/v1/models/{left.query_id}").json()
        assert (running["status"], running["model"]) == ("running", None)
        spent = clinic.spent(account)
    with services_of(tmp_path) as services:
        clinic.services = services
        told = clinic.call("ann", "GET", f"/v1/models/{left.query_id}").json()
        assert (told["status"], told["model"]) == ("failed_charged", None)
        assert clinic.spent(account) == spent > 0
        record = services.ledger.query(left.query_id)
        assert record is not None
        assert record.state is QueryStatus.FAILED_CHARGED


def test_units_that_are_replaced_are_refused(shared: Clinic) -> None:
    """Shows that the relation of a dataset is asked for: sums change by no more where units come and go alone."""
    who, account = shared.somebody(epsilon="100")
    dataset, path = shared.services.catalogue.get("clinic"), tuple(shared.services.ledger.path(account))
    assert dataset is not None
    request = request_of(shared, who)
    noise, stage = quoting._noise(request, dataset, path, 3, classes=True, histograms=None)
    assert noise.mu_squared > 0
    assert stage is None
    replaced = replace(dataset, neighbouring=Neighbouring.REPLACE_ONE)
    with pytest.raises(Refused) as refused:
        quoting._noise(request, replaced, path, 3, classes=True, histograms=None)
    assert "added and removed" in refused.value.findings[0].why


def test_the_text_of_a_model_is_kept_nowhere(clinic: Clinic) -> None:
    """Shows that a constant of the text is in no file of the home once the model is there."""
    clinic.person("ann", epsilon="100")
    made = train(clinic, "ann", sql="SELECT age, age > 31.4159265 AS label FROM people WHERE town <> 'CANARY4711'")
    assert made.status_code == 201, made.text
    assert "CANARY4711" not in made.text
    for file in clinic.home.rglob("*"):
        if file.is_file() and "sources" not in file.parts:
            assert b"CANARY4711" not in file.read_bytes(), file


def test_admission_finds_what_ran_before(shared: Clinic) -> None:
    """Shows the two outcomes of a retry beside a fit: under way, and settled."""
    who, _ = shared.somebody(epsilon="100")
    models, request = models_of(shared), request_of(shared, who)
    keyed = TrainModel(**{name: getattr(request, name) for name in TrainModel.__slots__} | {"idempotency_key": "twice"})
    first = models.admit(keyed)
    assert isinstance(first, Begun)
    assert models.admit(keyed) == InFlight(first.query_id)
    content = models.complete(first)
    assert models.admit(keyed) == Settled(first.query_id, content)
    assert json.loads(content)["id"] == first.query_id
