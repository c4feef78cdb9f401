"""Services with real parts, one home per test session."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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
def analyst(services: Services) -> Callable[..., str]:
    """Makes a fresh principal with an account of its own and returns its name."""

    def make(**options: object) -> str:
        name = f"analyst{next(_NUMBERS)}"
        open_account(services.ledger, name, **options)  # type: ignore[arg-type]
        return name

    return make
