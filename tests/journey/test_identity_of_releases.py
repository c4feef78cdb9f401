"""An answer that was paid for is not sold again because something else of the policy was edited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.services import Services
from tests.journey.clinic import DATASET, answer_to, attach, clinic_in, open_account, question

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
MEAN = "SELECT AVG(cost) AS cost FROM visits"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[tuple[Services, Path]]:
    """Services of a home of its own, because its policy is edited."""
    with clinic_in(tmp_path) as (services, path):
        open_account(services.ledger, "anna")
        yield services, path


def asked(services: Services, sql: str, **options: Any) -> dict[str, Any]:
    """The answer to a question of anna's."""
    return answer_to(services, question(sql, "anna", **options))


def edited(services: Services, path: Path, before: str, after: str) -> None:
    """Attaches the dataset with one text of its file replaced."""
    assert before in DATASET
    path.write_text(DATASET.replace(before, after))
    attach(services, path)


@pytest.mark.slow
@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("income: {type: number}", "income: {type: number, description: Before tax.}"),
        ("income: {type: number}", "income: {type: number, bounds: [0, 10]}"),
        ('epsilon_max: "100"', 'epsilon_max: "50"'),
    ],
)
def test_an_edit_elsewhere_does_not_sell_the_same_answer_again(
    home: tuple[Services, Path], before: str, after: str
) -> None:
    """A description, a column that was not read and a limit of one query leave stored answers free."""
    services, path = home
    first = {sql: asked(services, sql) for sql in (COUNT, MEAN)}
    edited(services, path, before, after)
    for sql, before_it in first.items():
        assert services.journey.estimate(question(sql, "anna"))["verdict"] == "free"
        again = asked(services, sql)
        assert again["provenance"]["policy_version"] == before_it["provenance"]["policy_version"] + 1
        assert again["accounting"]["charged"] == []
        assert again["rows"] == before_it["rows"]


@pytest.mark.slow
@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("sql", "before", "after"),
    [
        (MEAN, "cost: {type: number, bounds: [0, 1000]}", "cost: {type: number, bounds: [0, 900]}"),
        (MEAN, "rows_per_unit: 20", "rows_per_unit: 19"),
        (COUNT, "keys: [female, male]", "keys: [female, male, other]"),
    ],
)
def test_an_edit_of_what_was_read_is_another_question(
    home: tuple[Services, Path], sql: str, before: str, after: str
) -> None:
    """Bounds, contribution and keys of what the plan read give the numbers another meaning."""
    services, path = home
    first = asked(services, sql)
    edited(services, path, before, after)
    assert services.journey.estimate(question(sql, "anna"))["verdict"] == "affordable"
    assert asked(services, sql)["provenance"]["releases"] != first["provenance"]["releases"]


@pytest.mark.slow
def test_an_estimate_shows_the_error_of_the_stored_release(home: tuple[Services, Path]) -> None:
    """Whoever asked at epsilon 4 and now asks at 1 gets the better release: the estimate says how exact that one is."""
    services, _ = home
    for sql in (COUNT, MEAN):
        new = services.journey.estimate(question(sql, "anna", epsilon="1"))
        assert not any(column["stored"] for column in new["columns"])
        told = asked(services, sql, epsilon="4")
        shown = services.journey.estimate(question(sql, "anna", epsilon="1"))
        assert shown["verdict"] == "free"
        (column,) = [c for c in shown["columns"] if c["kind"] == "released"]
        errors = [row[-1] for row in told["standard_errors"]]
        assert column["stored"]
        assert column["standard_error"] == pytest.approx(max(errors))
        assert column["by_rows"] == []
