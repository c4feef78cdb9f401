"""One application per test, on a fresh SQLite ledger."""

from __future__ import annotations

import asyncio
import datetime
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest

from accountant.account import Account, FilterKind, Limit
from accountant.ledger import Ledger
from migrations.upgrade import upgrade
from server.administration.budget_requests import BudgetRequests
from server.administration.budgets import Budgets
from server.app import create_app
from server.dashboards.dashboards import Dashboards
from server.dashboards.links import Signer
from server.dashboards.reading import Reader
from server.jobs import JobPool
from server.sealing import DASHBOARDS, REQUESTS, Seal
from server.services import Check, Services
from server.settings import Settings, load_settings
from server.store.registry import Registry
from tests.clocks import Clock
from tests.server.fakes import (
    Api,
    FakeBatches,
    FakeCatalogue,
    FakeJourney,
    FakeModels,
    FakeMonitors,
    FakeProfiles,
    FakeRegistrar,
    FakeResources,
    FakeStatistics,
    FakeStreams,
    FakeSynthetic,
    FakeWebhooks,
    clinic,
)

SECRET = b"0123456789abcdef0123456789abcdef"
NOW = datetime.datetime(2026, 3, 1, 12, 0, tzinfo=datetime.UTC)


@dataclass
class World:
    """Everything of one test."""

    api: Api
    services: Services
    settings: Settings
    ledger: Ledger
    registry: Registry
    journey: FakeJourney
    catalogue: FakeCatalogue
    registrar: FakeRegistrar
    profiles: FakeProfiles
    clock: Clock[datetime.datetime]
    root: Account
    account: Account

    def spent(self) -> Fraction:
        """Epsilon that the analyst's account has spent, reservations included."""
        account = self.ledger.account(self.account.id)
        return account.limit.epsilon - account.remaining_epsilon()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty database to copy from."""
    path = tmp_path_factory.mktemp("migrated") / "ledger.sqlite"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def database(migrated: Path, tmp_path: Path) -> str:
    """The address of a fresh, migrated database."""
    path = tmp_path / "ledger.sqlite"
    shutil.copy(migrated, path)
    return f"sqlite:///{path}"


@pytest.fixture
def clock() -> Clock[datetime.datetime]:
    """The registry's clock."""
    return Clock(NOW)


@pytest.fixture
def registry(database: str, clock: Clock[datetime.datetime]) -> Iterator[Registry]:
    """A registry on a fresh database."""
    made = Registry(database, secret=SECRET, clock=clock)
    yield made
    made.close()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a home of its own."""
    return load_settings(home=tmp_path, failed_keys_per_minute=1000)


@dataclass(frozen=True)
class Populated:
    """A database with people and accounts to copy from."""

    path: Path
    keys: dict[str, str]
    root: str
    account: str


@pytest.fixture(scope="session")
def populated(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Populated:
    """One principal per role, two analysts, a root and an account for the first analyst."""
    path = tmp_path_factory.mktemp("populated") / "ledger.sqlite"
    shutil.copy(migrated, path)
    url = f"sqlite:///{path}"
    ledger = Ledger(url, instance="test")
    registry = Registry(url, secret=SECRET, clock=Clock(NOW))
    ids: list[str] = []
    for principal in (None, "analyst"):
        made = ledger.create_account(
            dataset="clinic",
            parent=ids[0] if ids else None,
            principal=principal,
            name=principal or "root",
            limit=Limit(Fraction(10), Fraction(1, 10**6)),
            filter=FilterKind.APPROXIMATE,
            actor="test",
        )
        ids.append(made.id)
    keys = {}
    for name in ("admin", "owner", "analyst", "other", "dashboard", "auditor"):
        registry.create_principal(name, "analyst" if name == "other" else name, actor="test")
        keys[name] = registry.create_key(name, label="test", days=30, actor="test").text
    registry.close()
    ledger.close()
    return Populated(path, keys, *ids)


@pytest.fixture
def world(populated: Populated, clock: Clock[datetime.datetime], settings: Settings, tmp_path: Path) -> Iterator[World]:
    """An application with fresh copies of everything."""
    path = tmp_path / "ledger.sqlite"
    shutil.copy(populated.path, path)
    database = f"sqlite:///{path}"
    ledger = Ledger(database, instance="test")
    registry = Registry(database, secret=SECRET, clock=clock)
    catalogue = FakeCatalogue(clinic())
    journey = FakeJourney(ledger, catalogue)
    registrar = FakeRegistrar(catalogue)
    profiles = FakeProfiles()
    jobs = JobPool(threads=2, queue=8)
    seal = Seal(SECRET, DASHBOARDS)
    services = Services(
        settings=settings,
        registry=registry,
        ledger=ledger,
        catalogue=catalogue,
        journey=journey,
        registrar=registrar,
        jobs=jobs,
        profiles=profiles,
        resources=FakeResources(),
        monitors=FakeMonitors(),
        webhooks=FakeWebhooks(),
        dashboards=Dashboards(
            ledger, registry, journey, seal, Signer.of(SECRET), clock, Reader(registry, ledger, seal)
        ),
        streams=FakeStreams(),
        synthetic=FakeSynthetic(),
        models=FakeModels(),
        statistics=FakeStatistics(),
        batches=FakeBatches(),
        requests=BudgetRequests(
            ledger,
            registry,
            Budgets(ledger, registry, lambda: [dataset.name for dataset in catalogue.all()]),
            Seal(SECRET, REQUESTS),
        ),
        checks=(Check("ledger", ledger.check_writable),),
    )
    with asyncio.Runner() as runner:
        api = Api(create_app(settings, services=services), runner, dict(populated.keys))
        yield World(
            api=api,
            services=services,
            settings=settings,
            ledger=ledger,
            registry=registry,
            journey=journey,
            catalogue=catalogue,
            registrar=registrar,
            profiles=profiles,
            clock=clock,
            root=ledger.account(populated.root),
            account=ledger.account(populated.account),
        )
        journey.gate.set()
        jobs.close(seconds=5)
        api.close()
    registry.close()
    ledger.close()


@pytest.fixture
def api(world: World) -> Api:
    """The client."""
    return world.api
