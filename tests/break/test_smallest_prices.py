"""Prices next to nothing, and failures of the engine: neither gives an answer, a refund or a hint for less."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import pytest

from accountant.account import FilterKind
from engines.pool import WorkerLease
from engines.process import Failure
from server.app import create_app
from server.services import Services
from tests.journey.clinic import open_account
from tests.server.fakes import Api


@contextmanager
def client(services: Services, name: str) -> Iterator[Api]:
    """A client of a principal, called "analyst"."""
    services.registry.create_principal(name, role="analyst", actor="test")
    key = services.registry.create_key(name, label="", days=1, actor="test").text
    with asyncio.Runner() as runner:
        api = Api(create_app(services.settings, services=services), runner, {"analyst": key})
        yield api
        api.close()


def spent(services: Services, name: str) -> Fraction:
    """What the principal's account says is gone."""
    (account,) = services.ledger.accounts(dataset="clinic", principal=name)
    return account.limit.epsilon - account.remaining_epsilon()


def ask(api: Api, epsilon: Any, sql: str = "SELECT COUNT(*) AS n FROM people", **more: Any) -> Any:
    """One question with fresh noise."""
    body = {"dataset": "clinic", "sql": sql, "spend": {"epsilon": epsilon}, "reuse": "none", **more}
    return api.post("/v1/queries", json=body)


@pytest.mark.parametrize(
    "epsilon", ["0", "0.0", "-0", "1e-13", "0.0000000000001", "1e-400", "-1e-12", "1e-12.5", "NaN", "Infinity", "", 0]
)
def test_prices_below_the_smallest_are_refused(
    services: Services, attacker: Callable[..., str], epsilon: str | int
) -> None:
    """Nothing, less than a millionth of a millionth, or no number: refused before anything is charged or drawn."""
    name = attacker(kind=FilterKind.PURE)
    with client(services, name) as api:
        refused = ask(api, epsilon)
        assert refused.status_code == 422
        assert refused.json()["charged"] is False
        assert api.get("/v1/queries").json()["queries"] == []
    assert spent(services, name) == 0


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM people",
        "SELECT AVG(age) AS a, COUNT(*) AS n FROM people",
        "SELECT STDDEV(salary) AS d, SUM(age) AS s FROM people",
    ],
)
def test_many_smallest_prices_add_up_to_what_was_told(services: Services, sql: str) -> None:
    """The least price is charged in full every time: ten of them exhaust a budget of ten, and none gets through."""
    name = f"miser{len(sql)}"
    open_account(services.ledger, f"rich{len(sql)}", epsilon="100", kind=FilterKind.PURE)
    with client(services, f"rich{len(sql)}") as api:
        body = {"dataset": "clinic", "sql": sql}
        least = api.post("/v1/estimates", json=body).json()["price"]["least"]["epsilon"]
    open_account(services.ledger, name, epsilon=str(float(least) * 10)[:12], kind=FilterKind.PURE)
    told = Fraction(0)
    with client(services, name) as api:
        for _ in range(10):
            answer = ask(api, least, sql)
            if answer.status_code != 200:
                break
            (charged,) = answer.json()["accounting"]["charged"]
            assert Fraction(charged["epsilon"]) > 0
            told += Fraction(charged["epsilon"])
            assert spent(services, name) <= told
        exhausted = ask(api, least, sql)
        assert (exhausted.status_code, exhausted.json()["code"]) == (403, "budget_exhausted")
        assert exhausted.json()["charged"] is False
    assert Fraction(least) * 9 <= spent(services, name) <= Fraction(least) * 10


_IDS = re.compile(r"q_[0-9a-f]+|req_[0-9A-Za-z]+|[0-9a-f]{16,}")


def test_every_failure_of_the_engine_is_the_same_and_charged(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Out of memory, out of time, nonsense or a refusal of the engine: one body, one charge, no word about which."""
    pool = services.journey.running._private._pool
    lease = pool.lease

    def broken(owner: str, failure: Failure) -> WorkerLease:
        found = lease(owner=owner)
        assert isinstance(found, WorkerLease)
        monkeypatch.setattr(found, "call", lambda *_, **__: failure)
        return found

    bodies = set()
    for failure in (Failure.TIMEOUT, Failure.CRASHED, Failure.GARBLED, Failure.REFUSED, Failure.INVALID):
        name = attacker(kind=FilterKind.PURE)
        monkeypatch.setattr(pool, "lease", lambda *, owner, failure=failure: broken(owner, failure))
        with client(services, name) as api:
            failed = ask(api, "1")
        assert failed.json()["charged"] is True
        assert spent(services, name) == 1
        bodies.add((failed.status_code, _IDS.sub("*", failed.text)))
    assert len(bodies) == 1
    ((status, body),) = bodies
    assert status == 500
    assert not [failure.value for failure in Failure if failure.value in body]
