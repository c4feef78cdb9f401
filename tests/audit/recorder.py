"""The recorder: stands in for `mechanisms.gateway.perturb` and keeps what every mechanism call was given.

It lives in tests only. Nothing that can be configured reaches it: it replaces an attribute for one `with` block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pytest

from mechanisms import gateway
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.randomness import BitSource, Words
from privacy.events import Event

__all__ = ["Call", "FixedBits", "Recorder", "recorded"]


class FixedBits:
    """The same words for the same seed: lets two sides draw the same noise."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def words(self, count: int) -> Words:
        """The next `count` words."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


@dataclass(frozen=True)
class Call:
    """One call of the gateway: the measurement, the true matrix as Python integers, and the genuine noisy result."""

    measurement: Measurement
    exact: tuple[tuple[int, ...], ...]
    seed: int
    noisy: tuple[tuple[int, ...], ...]
    kept: tuple[bool, ...] | None

    @property
    def statistic(self) -> str:
        """The statistic's name."""
        return self.measurement.statistic.name

    @property
    def event(self) -> Event:
        """The price that the measurement says it has."""
        return self.measurement.event()


@dataclass
class Recorder:
    """The calls of one `with` block in order.

    `noise` False answers with the true sums (in units of the grid), True with genuine noise from fixed bits. A
    selection always keeps every group that exists, so that the other statistics of hidden groups are seen too; what
    it would have kept is in the call.
    """

    noise: bool
    seed: int = 0
    calls: list[Call] = field(default_factory=list)

    def perturb(self, measurement: Measurement, exact_matrix: Integers, bits: BitSource) -> Perturbed:
        """In place of the gateway's function."""
        assert exact_matrix.ndim == 2
        assert exact_matrix.shape[1] == measurement.statistic.summed
        seed = self.seed * 1_000 + len(self.calls)
        genuine = measurement.perturb(exact_matrix, FixedBits(seed))
        self.calls.append(
            Call(
                measurement=measurement,
                exact=_rows(exact_matrix),
                seed=seed,
                noisy=_rows(genuine.values),
                kept=None if genuine.kept is None else tuple(bool(k) for k in genuine.kept.tolist()),
            )
        )
        values = genuine.values
        if not self.noise:
            whole = [
                [(int(x) + measurement.grid // 2) // measurement.grid for x in row] for row in exact_matrix.tolist()
            ]
            small = all(abs(x) < 2**59 for row in whole for x in row)
            values = np.array(whole, dtype=np.int64 if small else object).reshape(exact_matrix.shape)
            tree = measurement.statistic.tree
            if measurement.statistic.drawn is not None and tree is not None and genuine.values is not None:
                values = np.concatenate([values[:, : tree.nodes], genuine.values[:, tree.nodes :]], axis=1)
        kept = None if genuine.kept is None else np.ones(len(exact_matrix), dtype=np.bool_)
        return Perturbed(values, kept)


def _rows(matrix: Integers) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(value) for value in row) for row in matrix.tolist())


@contextmanager
def recorded(*, noise: bool = False, seed: int = 0) -> Iterator[Recorder]:
    """Patches the gateway for the block and gives the recorder."""
    recorder = Recorder(noise=noise, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway, "perturb", recorder.perturb)
        yield recorder
