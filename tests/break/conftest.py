"""Services with real parts and a small clinic, as an untrusted analyst meets them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accountant.account import FilterKind
from server.services import Services
from tests.journey.clinic import open_account, services_of, write_files

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Started services with the clinic attached."""
    home: Path = tmp_path_factory.mktemp("home")
    path = write_files(home / "sources")
    with services_of(home) as started:
        started.registrar.attach_path(path, actor="test")  # type: ignore[attr-defined]
        yield started


@pytest.fixture
def attacker(services: Services) -> Callable[..., str]:
    """Makes a fresh principal with an account of its own and returns its name."""

    def make(*, kind: FilterKind = FilterKind.APPROXIMATE) -> str:
        name = f"attacker{next(_NUMBERS)}"
        open_account(services.ledger, name, kind=kind)
        return name

    return make
