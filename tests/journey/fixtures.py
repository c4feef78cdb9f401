"""Fixtures that analysts of the journey and attackers share: services with real parts, and new principals."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from server.services import Services
from tests.journey.clinic import clinic_in, open_account

__all__ = ["principals", "services"]

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Started services with the clinic attached."""
    with clinic_in(tmp_path_factory.mktemp("home")) as (started, _):
        yield started


def principals(services: Services, word: str) -> Callable[..., str]:
    """Makes a fresh principal with an account of its own (options as for `open_account`) and returns its name."""

    def make(**options: Any) -> str:
        name = f"{word}{next(_NUMBERS)}"
        open_account(services.ledger, name, **options)
        return name

    return make
