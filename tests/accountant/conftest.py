"""Ledgers to test on, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accountant import faults
from accountant.ledger import Ledger


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def url(request: pytest.FixtureRequest) -> str:
    """A migrated ledger: every test that takes it runs on both databases."""
    address: str = request.getfixturevalue(f"{request.param}_url")
    return address


@pytest.fixture
def open_ledger(url: str) -> Iterator[Callable[..., Ledger]]:
    """Opens ledgers at the address and closes them at the end."""
    opened: list[Ledger] = []

    def open_one(instance: str = "test", **settings: Any) -> Ledger:
        ledger = Ledger(url, instance=instance, **settings)
        opened.append(ledger)
        return ledger

    yield open_one
    for ledger in opened:
        ledger.close()


@pytest.fixture
def ledger(open_ledger: Callable[..., Ledger]) -> Ledger:
    """One open ledger."""
    return open_ledger()


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    """Takes fault handlers away after each test."""
    yield
    faults.install(None)
