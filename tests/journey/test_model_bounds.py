"""Models whose features have no bounds, over HTTP: one charge, bounds in the answer, histograms that serve again."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from mechanisms import gateway
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.randomness import BitSource
from privacy.composition import compose
from privacy.refusal import ExecutionFailed
from server.resources.resources import Begun
from tests.journey.clinic import attach, clinic_in
from tests.journey.test_models import body, models_of, request_of, train
from tests.journey.test_monitors import Clinic

SQL = "SELECT income, sex, age >= 54 AS label FROM people"
"""An income is seven times the age, and nothing is declared of it."""


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("bounds")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


def test_bounds_are_chosen_in_the_same_charge(clinic: Clinic) -> None:
    """Shows the columns in the estimate, the bounds in the answer and in its formula, and the price that was said."""
    who, account = clinic.somebody(epsilon="100")
    estimate = clinic.call(who, "POST", "/v1/models:estimate", body(sql=SQL)).json()
    (told,) = estimate["bounds"]
    assert (told["column"], told["lower"], told["source"], told["share"]) == ("income", None, "chosen", "0.25")
    assert estimate["encoding"][0]["low"] is None
    assert estimate["price"]["own"]["epsilon"].startswith("2.99999") or estimate["price"]["own"]["epsilon"] == "3"
    model = train(clinic, who, sql=SQL).json()
    (charged,) = model["charged"]
    assert charged["epsilon"] == estimate["price"]["epsilon"]
    (used,) = model["model"]["bounds"]
    low, high = float(used["lower"]), float(used["upper"])
    assert low <= 300 < 600 <= high < 5_000
    assert (model["model"]["encoding"][0]["low"], model["model"]["encoding"][0]["high"]) == (low, high)
    assert used["certain"]
    assert model["model"]["held_out"]["accuracy"] > 0.85
    chances = duckdb.sql(
        f"SELECT {model['model']['predict']} FROM (VALUES (140, 'male'), (620, 'male')) AS t(income, sex)"
    )
    assert [row[0] > 0.5 for row in chances.fetchall()] == [False, True]
    # A second model finds the histogram, and so does an average; what somebody else asks pays for its own.
    cheaper = clinic.call(who, "POST", "/v1/models:estimate", body(sql=SQL)).json()
    assert (cheaper["bounds"][0]["source"], cheaper["bounds"][0]["share"]) == ("stored", "0")
    assert float(cheaper["price"]["epsilon"]) < float(charged["epsilon"])
    before = clinic.spent(account)
    again = train(clinic, who, sql=SQL, iterations=20).json()
    assert again["model"]["bounds"] == [{**used, "source": "stored", "share": "0"}]
    assert 0 < clinic.spent(account) - before <= Fraction(cheaper["price"]["epsilon"])
    asked = {"dataset": "clinic", "sql": "SELECT AVG(income) FROM people", "spend": {"own_epsilon": "1"}}
    average = clinic.call(who, "POST", "/v1/queries", {**asked, "noise": "gaussian", "wait_ms": 30_000}).json()
    assert average["provenance"]["value_bounds"][0]["source"] == "stored"
    other, _ = clinic.somebody(epsilon="100")
    assert clinic.call(other, "POST", "/v1/models:estimate", body(sql=SQL)).json()["bounds"][0]["source"] == "chosen"


def test_all_that_is_drawn_is_in_the_charge(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows every measurement at the gateway, the histogram before the model, and that together they cost the price."""
    seen: list[Measurement] = []
    genuine = gateway.perturb

    def recorded(measurement: Measurement, exact: Integers, bits: BitSource) -> Perturbed:
        seen.append(measurement)
        return genuine(measurement, exact, bits)

    monkeypatch.setattr(gateway, "perturb", recorded)
    who, _ = clinic.somebody(epsilon="100")
    asked = models_of(clinic).admit(request_of(clinic, who, sql=SQL, iterations=5))
    assert isinstance(asked, Begun)
    models_of(clinic).complete(asked)
    assert [one.statistic.name for one in seen] == ["s0", "count", *["gradient"] * 5, "outcomes"]
    drawn = compose(tuple(one.event() for one in seen[:-1])).mu_squared
    charged = asked.planned.offer.loss.mu_squared
    assert drawn is not None
    assert charged is not None
    assert charged * Fraction(999, 1000) <= drawn <= charged


def test_a_failure_keeps_the_whole_charge(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the reservation before the first row, and one opaque outcome where choosing bounds goes wrong."""
    who, account = clinic.somebody(epsilon="100")
    models = models_of(clinic)
    asked = models.admit(request_of(clinic, who, sql=SQL))
    assert isinstance(asked, Begun)
    charged = clinic.spent(account)
    assert charged > 0

    def broken(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(type(models.quotes), "at_bounds", broken)
    with pytest.raises(ExecutionFailed) as failed:
        models.complete(asked)
    assert failed.value.started
    assert clinic.spent(account) == charged


def test_a_policy_that_chooses_none(clinic: Clinic) -> None:
    """Shows the refusal of a feature without bounds where the policy lets no question choose some."""
    text = clinic.path.read_text()
    clinic.path.write_text(text.replace("policy: {", "policy: {automatic_bounds: false, "))
    attach(clinic.services, clinic.path)
    who, account = clinic.somebody(epsilon="100")
    told: dict[str, Any] = clinic.call(who, "POST", "/v1/models:estimate", body(sql=SQL)).json()
    assert told["code"] == "column_without_bounds"
    assert told["instead"][0] == "GREATEST(<lowest>, LEAST(income, <highest>)) AS income"
    assert clinic.spent(account) == 0
    clinic.path.write_text(text)
    attach(clinic.services, clinic.path)


def test_a_table_of_which_nothing_is_declared(clinic: Clinic) -> None:
    """Shows chosen bounds of features where a SUM would need none, since the norm of what a unit adds is chosen."""
    contribution = "contribution: {rows_per_unit: 20, groups_per_unit: 2, rows_per_unit_and_group: 10}"
    text = clinic.path.read_text().replace("automatic_bounds: false, ", "")
    assert contribution in text
    open_columns = text.replace(contribution, "contribution: auto").replace(", bounds: [0, 1000]}", "}")
    clinic.path.write_text(open_columns)
    attach(clinic.services, clinic.path)
    who, _ = clinic.somebody(epsilon="100")
    model = train(clinic, who, sql="SELECT cost, ward = 'a' AS first, cost >= 455 AS label FROM visits").json()["model"]
    (used,) = model["bounds"]
    assert used["column"] == "cost"
    assert float(used["lower"]) <= 100 < 800 <= float(used["upper"]) < 5_000
    assert model["held_out"]["accuracy"] > 0.8
