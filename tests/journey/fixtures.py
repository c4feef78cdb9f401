"""Fixtures that analysts of the journey and attackers share: services with real parts, and new principals."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mechanisms import gateway
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.randomness import BitSource, SystemBits, Words
from server.services import Services
from tests.audit.recorder import FixedBits
from tests.journey.clinic import clinic_in, open_account

__all__ = ["own_noise", "principals", "services"]

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Started services with the clinic attached."""
    with clinic_in(tmp_path_factory.mktemp("home")) as (started, _):
        yield started


@pytest.fixture
def own_noise(request: pytest.FixtureRequest) -> Iterator[None]:
    """The noise that is drawn in a test is its own, and the same in every run.

    What a test says of noisy numbers holds then, or does not: one histogram in 3,000 shows a bin of nobody as certain
    (mechanisms/value_bounds.md), and one interval of 95% in twenty misses. What noise is drawn is audited elsewhere,
    with fresh noise (`tests/break/test_two_worlds*.py`). What is drawn beside measurements (thresholds, synthetic rows,
    waiting) has bits of its own, so that a thread which waits takes none of theirs.
    """
    seed = zlib.crc32(request.node.name.encode())
    bits, others, genuine = FixedBits(seed), FixedBits(seed + 1), gateway.perturb

    def perturb(measurement: Measurement, exact_matrix: Integers, _: BitSource) -> Perturbed:
        return genuine(measurement, exact_matrix, bits)

    def words(_: SystemBits, count: int) -> Words:
        return others.words(count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway, "perturb", perturb)
        patch.setattr(SystemBits, "words", words)
        yield


def principals(services: Services, word: str) -> Callable[..., str]:
    """Makes a fresh principal with an account of its own (options as for `open_account`) and returns its name."""

    def make(**options: Any) -> str:
        name = f"{word}{next(_NUMBERS)}"
        open_account(services.ledger, name, **options)
        return name

    return make
