"""Services with real parts, one home per test session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server.services import Services
from tests.journey.fixtures import principals, services

__all__ = ["analyst", "services"]


@pytest.fixture
def analyst(services: Services) -> Callable[..., str]:
    """Makes a fresh principal with an account of its own and returns its name."""
    return principals(services, "analyst")
