"""Services with real parts and a small clinic, as an untrusted analyst meets them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from server.services import Services
from tests.journey.fixtures import own_noise, principals, services

__all__ = ["attacker", "own_noise", "services"]

FRESH = {
    "test_attacks",
    "test_intervals_over_http",
    "test_two_worlds",
    "test_two_worlds_of_norms",
    "test_two_worlds_of_sharing",
    "test_two_worlds_of_stages",
}
"""Modules that audit the noise which is drawn; each states how rarely it accuses a server that keeps its promise."""


@pytest.fixture(autouse=True)
def noise(request: pytest.FixtureRequest) -> None:
    """Other tests have noise that is the same in every run."""
    if request.path.stem not in FRESH:
        request.getfixturevalue("own_noise")


@pytest.fixture
def attacker(services: Services) -> Callable[..., str]:
    """Makes a fresh principal with an account of its own and returns its name."""
    return principals(services, "attacker")
