"""Releases that another analyst paid for: read for a charge, for nothing, or not at all, as the policy says."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from server.services import Services
from tests.journey.clinic import DATASET, attach, clinic_in, open_account
from tests.journey.test_http import Api

SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


class Shared:
    """A home whose policy shares releases in one way, with analysts on equal accounts."""

    def __init__(self, services: Services, path: Path) -> None:
        self.services = services
        self._path = path
        self.api = Api(services)
        self.api.key("admin", "admin")
        for name, epsilon in (("anna", "5"), ("ben", "5"), ("small", "0.001")):
            self.api.key(name, "analyst")
            open_account(services.ledger, name, epsilon=epsilon)

    def policy(self, way: str, epsilon_min: str = "0.000000000001") -> None:
        """Attaches the dataset with this way of sharing."""
        self._path.write_text(
            DATASET.replace("policy: {", f'policy: {{epsilon_min: "{epsilon_min}", releases_shared: {way}, ')
        )
        attach(self.services, self._path)

    def ask(self, who: str, epsilon: str = "0.5", **options: Any) -> Any:
        """An answer over HTTP."""
        body = {"dataset": "clinic", "sql": SQL, "spend": {"epsilon": epsilon}, **options}
        return self.api.call(who, "POST", "/v1/queries", body)

    def spent(self, who: str) -> Fraction:
        """The share that is used of an analyst's account, or of the root."""
        name = None if who == "root" else who
        accounts = self.services.ledger.accounts(dataset="clinic")
        return next(account for account in accounts if account.principal == name).used_share()


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    """The home."""
    with clinic_in(tmp_path) as (services, path):
        yield Shared(services, path)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "free"), [("free", True), ("charged", False), ("no", False)])
def test_other_questions_are_answered_from_what_is_shared_for_free(shared: Shared, way: str, free: bool) -> None:
    """The total of somebody else's groups is free where releases are, and is measured anew elsewhere; one's own is."""
    shared.policy(way)
    shared.ask("anna")
    total = {"sql": "SELECT COUNT(*) FROM people", "epsilon": "0.1"}
    assert shared.ask("anna", **total).json()["accounting"]["reused"]
    before = shared.spent("ben")
    answer = shared.ask("ben", **total).json()
    assert answer["accounting"]["reused"] == free
    assert ("derived" in answer["provenance"]) == free
    assert (shared.spent("ben") == before) == free
    if way == "charged":
        # Who has paid for reading the groups has their total for free.
        assert shared.ask("ben", reuse="any").json()["accounting"]["reused"]
        other = {"sql": "SELECT COUNT(*) FROM people WHERE sex = 'male'", "epsilon": "0.1"}
        assert shared.ask("ben", **other).json()["provenance"]["derived"]


@pytest.mark.slow
def test_charged_debits_the_reader_and_shows_it(shared: Shared) -> None:
    """The same numbers, charged to the reader's account and not to the root again; the next reading is free."""
    shared.policy("charged")
    first = shared.ask("anna").json()
    root = shared.spent("root")
    read = shared.ask("ben").json()
    assert read["rows"] == first["rows"]
    assert read["provenance"]["releases"] == first["provenance"]["releases"]
    (charged,) = read["accounting"]["charged"]
    assert charged["epsilon"] == first["accounting"]["charged"][0]["epsilon"]
    assert read["accounting"]["reused"]
    assert read["accounting"]["saved"]["epsilon"] == "0"
    assert shared.spent("root") == root
    assert shared.spent("ben") == shared.spent("anna") > 0
    again = shared.ask("ben").json()
    assert (again["accounting"]["charged"], again["rows"]) == ([], first["rows"])
    estimate = shared.api.call(
        "ben", "POST", "/v1/estimates", {"dataset": "clinic", "sql": SQL, "spend": {"epsilon": "0.5"}}
    )
    assert estimate.json()["verdict"] == "free"
    assert shared.services.ledger.audit().findings == ()


@pytest.mark.slow
def test_charged_releases_are_read_by_those_who_paid(shared: Shared) -> None:
    """GET /v1/releases shows one to the payer and to who was charged for it, and is 404 for the others."""
    shared.policy("charged")
    (address,) = shared.ask("anna").json()["links"]["releases"]
    assert shared.api.call("anna", "GET", address).status_code == 200
    assert shared.api.call("ben", "GET", address).status_code == 404
    shared.ask("ben")
    assert shared.api.call("ben", "GET", address).json()["query"] is None
    assert shared.api.call("small", "GET", address).status_code == 404


@pytest.mark.slow
def test_what_was_read_does_not_open_the_floor(shared: Shared) -> None:
    """Forbids fresh runs below the floor: a wish for young releases is not served by those of others that were read.

    They let a spend of a millionth pass the floor, and then nothing served it but a look at the rows, time after time.
    """
    shared.policy("charged", epsilon_min="0.01")
    shared.ask("anna")
    assert shared.ask("ben").json()["accounting"]["reused"]
    root = shared.spent("root")
    for epsilon in ("0.000001", "0.000002"):
        asked = shared.ask("ben", epsilon=epsilon, max_staleness_s=3600)
        assert (asked.status_code, asked.json()["code"]) == (403, "policy_forbids"), asked.text
    assert shared.ask("ben", epsilon="0.000001").json()["accounting"]["charged"] == []
    assert shared.spent("root") == root


@pytest.mark.slow
def test_a_limit_of_a_thousandth_reads_no_epsilon_one_release_for_nothing(shared: Shared) -> None:
    """With `charged` a small limit bounds what is read; with `free` it does not, and the budget says whose does."""
    shared.policy("charged")
    told = shared.ask("anna", epsilon="1").json()
    (address,) = told["links"]["releases"]
    assert shared.ask("small", epsilon="1").status_code == 403
    small = shared.ask("small", epsilon="0.001").json()
    assert small["status"] == "settled", small
    assert small["provenance"]["releases"] != told["provenance"]["releases"]
    assert shared.spent("small") == 1

    def guess(who: str) -> str:
        return str(shared.api.call(who, "GET", "/v1/budgets").json()["budgets"][0]["membership_guess"])

    assert guess("small") == "0.5003"
    shared.policy("free")
    assert shared.api.call("small", "GET", address).status_code == 200
    assert shared.ask("small", epsilon="1").json()["rows"] == told["rows"]
    assert guess("small") == "1"
    shared.policy("no")
    assert guess("small") == "0.5003"


@pytest.mark.slow
@pytest.mark.sparse(6)
@pytest.mark.parametrize("way", ["no", "'no'", "false", "charged", "free", "true"])
def test_every_spelling_says_what_it_means(shared: Shared, way: str) -> None:
    """YAML's false is no, true of older files is free; metadata and capabilities say what that means."""
    shared.policy(way)
    limits = shared.api.call("anna", "GET", "/v1/datasets/clinic").json()["limits"]
    meant = {"false": "no", "'no'": "no", "true": "free"}.get(way, way)
    assert limits["releases_shared"] == meant
    said = shared.api.call("anna", "GET", "/v1/capabilities").json()["releases_shared"]
    assert said[meant] == limits["releases_shared_means"]
    assert "does not bound what the person reads" in said["free"]


@pytest.mark.slow
def test_a_laplace_answer_does_not_keep_anybody_from_reading_a_gaussian_release(shared: Shared) -> None:
    """With `free` a better release is read for nothing, whatever noise the reader bought for another question."""
    shared.policy("free")
    first = shared.ask("anna", epsilon="0.1").json()
    bought = {"sql": "SELECT COUNT(*) AS n FROM people", "noise": "laplace"}
    other = shared.ask("ben", epsilon="0.1", **bought).json()
    assert other["provenance"]["noise"] == "laplace"
    read = shared.ask("ben", epsilon="0.1").json()
    assert (read["accounting"]["charged"], read["rows"]) == ([], first["rows"])
