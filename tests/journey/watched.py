"""A clinic whose people grow by versions, with monitors over HTTP and services that can be restarted."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx

from server.app import create_app
from server.monitors.monitors import Monitors
from server.services import Services
from server.store.resources import MONITORS, MonitorRow
from tests.journey.clinic import PEOPLE, attach, open_account, services_of

__all__ = ["COUNT", "Clinic", "restarted"]

_NUMBERS = itertools.count()
COUNT = "SELECT COUNT(*) FROM people"


class Clinic:
    """A clinic with services that can be restarted, and whose people grow by versions."""

    def __init__(self, home: Path, services: Services, path: Path) -> None:
        self.home = home
        self.services = services
        self.path = path
        self._keys: dict[str, str] = {}
        self._people = PEOPLE

    def person(self, name: str, role: str = "analyst", **account: Any) -> str:
        """A principal with a key, and an account where it asks; returns the account."""
        self.services.registry.create_principal(name, role, actor="test")
        self._keys[name] = self.services.registry.create_key(name, label="test", days=1, actor="test").text
        return open_account(self.services.ledger, name, **account) if role == "analyst" else ""

    def key(self, who: str) -> str:
        """The API key of a principal."""
        return self._keys[who]

    def somebody(self, **account: Any) -> tuple[str, str]:
        """A fresh analyst, and its account."""
        name = f"analyst{next(_NUMBERS)}"
        return name, self.person(name, **account)

    def call(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=create_app(self.services.settings, services=self.services))
            async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
                return await client.request(
                    method, path, json=body, headers={"Authorization": f"Bearer {self._keys[who]}", **headers}
                )

        return asyncio.run(send())

    def open(self, who: str, key: str = "", **options: Any) -> httpx.Response:
        """Opens a monitor of all people, with far more than enough to be sure of every outcome."""
        body = {"dataset": "clinic", "sql": COUNT, "threshold": "3500", "epsilon": "2", "evaluations": 50, **options}
        return self.call(who, "POST", "/v1/monitors", body, **({"Idempotency-Key": key} if key else {}))

    def evaluate(self, who: str, monitor: str, **body: Any) -> httpx.Response:
        """Evaluates one."""
        return self.call(who, "POST", f"/v1/monitors/{monitor}/evaluations", body)

    def grow(self, more: int) -> None:
        """Another version of the data, with more people."""
        with (self.path.parent / "people.csv").open("a", newline="") as file:
            for person in range(self._people, self._people + more):
                file.write(f"{person},40,female,town1,20000,280\r\n")
        self._people += more
        attach(self.services, self.path)

    def row(self, monitor: str) -> MonitorRow | None:
        """A monitor as it is stored."""
        return self.services.registry.resource(MONITORS, monitor)

    @property
    def monitors(self) -> Monitors:
        assert isinstance(self.services.monitors, Monitors)
        return self.services.monitors

    def spent(self, account: str) -> Fraction:
        """Epsilon that an account has spent."""
        found = self.services.ledger.account(account)
        return found.limit.epsilon - found.remaining_epsilon()


@contextmanager
def restarted(clinic: Clinic) -> Iterator[Clinic]:
    """The same home with services of another start."""
    with services_of(clinic.home) as services:
        earlier, clinic.services = clinic.services, services
        yield clinic
        clinic.services = earlier
