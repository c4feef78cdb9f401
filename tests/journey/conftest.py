"""Services with real parts, one home per test session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server.services import Services
from tests.journey.fixtures import own_noise, principals, services

__all__ = ["analyst", "own_noise", "services"]


@pytest.fixture(autouse=True)
def noise(own_noise: None) -> None:
    """Every test of the journey has noise that is the same in every run."""


@pytest.fixture
def analyst(services: Services) -> Callable[..., str]:
    """Makes a fresh principal with an account of its own and returns its name."""
    return principals(services, "analyst")
