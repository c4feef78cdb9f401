"""Models of real data: the UCI Adult table, where its file is at hand (NOISEGATE_ADULT_CSV)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from accountant.account import FilterKind, Limit
from tests.journey.clinic import attach, services_of
from tests.journey.test_adult import ADULT, DATASET
from tests.journey.test_monitors import Clinic

pytestmark = [
    pytest.mark.adult,
    pytest.mark.slow,
    pytest.mark.skipif(not ADULT, reason="set NOISEGATE_ADULT_CSV to the path of the UCI Adult file with person_id"),
]

KEYS = {
    "workclass": "Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    "marital_status": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated "
    "Widowed",
    "occupation": "Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners "
    "Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support "
    "Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "sex": "Female Male",
}
NUMBERS = ("age", "education_num", "hours_per_week", "capital_gain", "capital_loss")
BOUNDS = {"age": (0, 125), "education_num": (1, 16), "hours_per_week": (0, 100), "capital_gain": (0, 20_000),
          "capital_loss": (0, 3_000)}  # fmt: skip
SQL = f"SELECT {', '.join([*NUMBERS, *KEYS])}, income = '>50K' AS label FROM people"


def described() -> str:
    """The dataset of the other tests with the columns of this model."""
    found = DATASET.replace("      occupation: {type: text}\n", "")
    more = "".join(
        f"      {name}: {{type: text, keys: [{', '.join(KEYS[name].split())}]}}\n"
        for name in ("marital_status", "occupation", "relationship")
    )
    more += "".join(
        f"      {name}: {{type: integer, bounds: [{BOUNDS[name][0]}, {BOUNDS[name][1]}]}}\n" for name in NUMBERS[3:]
    )
    more += "      income: {type: text, keys: ['<=50K', '>50K'], nullable: false}\n"
    return found.replace("policy:", f"{more}policy:")


@pytest.fixture(scope="module")
def adult(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """Adult, and an analyst with accounts whose delta is 1e-5."""
    home: Path = tmp_path_factory.mktemp("adult_models")
    source = home / "sources"
    source.mkdir()
    (source / "adult.csv").symlink_to(Path(ADULT).resolve())
    (source / "adult.yaml").write_text(described())
    with services_of(home) as services:
        attach(services, source / "adult.yaml")
        ledger = services.ledger
        root = ledger.create_account(
            dataset="adult", parent=None, principal=None, name="root",
            limit=Limit(Fraction(1000), Fraction(1, 10**5)), filter=FilterKind.APPROXIMATE, actor="test",
        )  # fmt: skip
        found = Clinic(home, services, source / "adult.yaml")
        found.person("ann", "owner")
        ledger.create_account(
            dataset="adult", parent=root.id, principal="ann", name="ann",
            limit=Limit(Fraction(100), Fraction(1, 10**5)), filter=FilterKind.APPROXIMATE, actor="test",
        )  # fmt: skip
        yield found


def fitted(adult: Clinic, **options: Any) -> dict[str, Any]:
    """A model at (1, 1e-5) in whole, or at another price."""
    body = {"dataset": "adult", "sql": SQL, "spend": {"own_epsilon": "1"}, "wait_ms": 30_000, **options}
    made = adult.call("ann", "POST", "/v1/models", body)
    assert made.status_code == 201, made.text
    model: dict[str, Any] = made.json()["model"]
    assert float(model["accounting"]["own"]["epsilon"]) <= float(body["spend"]["own_epsilon"])
    return model


def right(model: dict[str, Any]) -> float:
    """The share of all people whose income the formula of the answer calls right."""
    ((found,),) = duckdb.sql(
        f"SELECT AVG(((({model['predict']}) > 0.5) = (income = '>50K'))::INT) FROM read_csv('{ADULT}')"
    ).fetchall()
    return float(found)


@pytest.fixture(scope="module")
def plain() -> float:
    """The same share of logistic regression without noise, on the same columns, by Newton's method."""
    numbers = [
        f"(2.0 * LEAST({n}, {BOUNDS[n][1]}) - {sum(BOUNDS[n])}) / {BOUNDS[n][1] - BOUNDS[n][0]}" for n in NUMBERS
    ]
    keys = [f"COALESCE(({name} = '{key}')::INT, 0)" for name, listed in KEYS.items() for key in listed.split()]
    columns = ", ".join([*numbers, *keys, "(income = '>50K')::INT"])
    table = np.array(duckdb.sql(f"SELECT 1, {columns} FROM read_csv('{ADULT}')").fetchall(), dtype=np.float64)
    rows, label = table[:, :-1], table[:, -1]
    weights = np.zeros(rows.shape[1])
    for _ in range(25):
        chance = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (chance - label) + 1e-3 * weights
        curve = (rows.T * (chance * (1 - chance))) @ rows + 1e-3 * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    return float((((rows @ weights) > 0) == (label > 0.5)).mean())


@pytest.mark.parametrize("method", ["input_clipping", "gradient_clipping", "sufficient_statistics"])
def test_models_are_within_two_points_of_one_without_noise(adult: Clinic, plain: float, method: str) -> None:
    """Shows accuracy at (1, 1e-5) in whole, all figures of the held-out units included, and that these are honest."""
    assert 0.84 < plain < 0.86
    model = fitted(adult, method=method)
    found = right(model)
    print(f"{method}: {found:.4f}, without noise {plain:.4f}, held out {model['held_out']['accuracy']:.4f}")
    assert found > plain - 0.02
    # 3,256 people are held out: a sample of them is wrong by 0.6 points, five of these are allowed.
    assert abs(model["held_out"]["accuracy"] - found) < 5 * 0.0063


def test_the_textbooks_run_at_its_true_price(adult: Clinic) -> None:
    """Shows ten clipped gradients and a count at (0.314, 1e-5), where the textbook prints 0.78 for what it calls
    (1.1, 1e-4): the share of people that is called right, beside three in four who earn at most 50,000."""
    model = fitted(adult, method="gradient_clipping", iterations=10, held_out="0.2", spend={"own_epsilon": "0.314"})
    found = right(model)
    print(f"ten steps at (0.314, 1e-5): {found:.4f}")
    assert model["mechanisms"][1]["times"] == 10
    assert found > 0.65
