"""Services with real parts and a small clinic, as an untrusted analyst meets them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server.services import Services
from tests.journey.fixtures import principals, services

__all__ = ["attacker", "services"]


@pytest.fixture
def attacker(services: Services) -> Callable[..., str]:
    """Makes a fresh principal with an account of its own and returns its name."""
    return principals(services, "attacker")
