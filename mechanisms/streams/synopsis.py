"""The synopsis of a stream: what its measurements say of every cell together, by least squares. ../stream_synopsis.md.

All of it is a function of released numbers. Cells are never cut at zero: that would lean upwards where nobody is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mechanisms.interval import Floats
from mechanisms.streams.price import PIECES_MAX

__all__ = ["Cells", "Measured", "Synopsis", "labels_of", "mask_of", "runs_of"]

Cells = npt.NDArray[np.bool_]
"""Which cells a query is the sum of, in the order of the domain."""

Runs = tuple[tuple[int, int], ...]
"""Cells from one up to before another, several times."""


def runs_of(cells: Cells) -> Runs:
    """The runs of cells that are asked for."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]]).astype(np.int8))).tolist()
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def mask_of(runs: Sequence[Sequence[int]], count: int) -> Cells:
    """The cells of runs."""
    cells = np.zeros(count, dtype=np.bool_)
    for low, high in runs:
        cells[low:high] = True
    return cells


def labels_of(cells: Cells) -> npt.NDArray[np.intp]:
    """The piece that each cell is in: 0 for the query itself, and what is outside in parts of about one size.

    Each cell is in one piece, so all of them cost what one costs.
    """
    outside = np.flatnonzero(~cells)
    parts = min(PIECES_MAX - 1, len(outside))
    labels = np.zeros(len(cells), dtype=np.intp)
    if parts:
        labels[outside] = 1 + np.arange(len(outside)) * parts // len(outside)
    return labels


@dataclass(frozen=True, slots=True)
class Measured:
    """An update: of which query, and the noisy sums of its pieces."""

    runs: Runs
    values: tuple[int, ...]


@dataclass(slots=True, repr=False)
class Synopsis:
    """Cells with their noise, and the updates since. Variances are those of the noise, in squared units.

    Has no readable repr: updates say what was asked. `version` is that of the data which were measured last. `drift` is
    0 while that is the version of the cells; after it is how much of its own size a cell is taken to have changed, as a
    variance to each unit of it.
    """

    version: str
    base: Floats
    cell_variance: float
    piece_variance: float
    drift: float = 0.0
    updates: tuple[Measured, ...] = ()
    _known: tuple[Floats, Floats, Floats] | None = field(default=None, compare=False, repr=False)

    def total(self, cells: Cells) -> float:
        """What it says of a query."""
        return float(self._solved()[0][cells].sum())

    def standard_error(self, cells: Cells) -> float | None:
        """By the law of the noise; None once the data have moved on from those that were measured cell by cell."""
        if self.drift:
            return None
        _, sums, inverse = self._solved()
        spread = self.cell_variance * cells.sum()
        if self.updates:
            seen = self.cell_variance * (sums @ cells)
            spread -= seen @ inverse @ seen
        return math.sqrt(max(float(spread), 0.0))

    def updated(self, update: Measured, *, version: str, size: float) -> Synopsis:
        """The synopsis with one more update. `size` is the distance that was found, of data of a newer version."""
        if version == self.version and not self.drift:
            return Synopsis(
                version, self.base, self.cell_variance, self.piece_variance, updates=(*self.updates, update)
            )
        same = version == self.version
        base = self.base if same else self._solved()[0]
        inside = float(self._sizes(base)[mask_of(update.runs, len(base))].sum())
        drift = max(self.drift if same else 0.0, size**2 / inside)
        updates = (*self.updates, update) if same else (update,)
        return Synopsis(version, base, self.cell_variance, self.piece_variance, drift, updates)

    def _solved(self) -> tuple[Floats, Floats, Floats]:
        """Cells by generalised least squares; the sums that were measured (pieces x cells); the inverse of their
        covariance."""
        if self._known is not None:
            return self._known
        count = len(self.base)
        if not self.updates:
            self._known = self.base, np.zeros((0, count)), np.zeros((0, 0))
            return self._known
        labels = [labels_of(mask_of(one.runs, count)) for one in self.updates]
        sums = np.concatenate(
            [np.arange(len(one.values))[:, None] == of for one, of in zip(self.updates, labels, strict=True)]
        ).astype(np.float64)
        spread = self.cell_variance + self.drift * self._sizes(self.base)
        covariance = (sums * spread) @ sums.T
        covariance[np.diag_indices(len(sums))] += self.piece_variance
        inverse: Floats = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        told = np.concatenate([np.array(one.values, dtype=np.float64) for one in self.updates])
        found: Floats = self.base + spread * (sums.T @ (inverse @ (told - sums @ self.base)))
        self._known = found, sums, inverse
        return self._known

    def _sizes(self, base: Floats) -> Floats:
        """How large cells are taken to be: at least as their noise, so that none is taken to stay empty."""
        sizes: Floats = np.maximum(base, math.sqrt(self.cell_variance))
        return sizes

    def to_plain(self) -> dict[str, object]:
        """As it is stored."""
        return {
            "version": self.version,
            "base": self.base.tolist(),
            "cell_variance": self.cell_variance,
            "piece_variance": self.piece_variance,
            "drift": self.drift,
            "updates": [{"runs": one.runs, "values": one.values} for one in self.updates],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, object]) -> Synopsis:
        """Reads `to_plain` back."""
        version, base, updates = plain["version"], plain["base"], plain["updates"]
        assert isinstance(version, str)
        assert isinstance(base, list)
        assert isinstance(updates, list)
        cell, piece, drift = (float(str(plain[name])) for name in ("cell_variance", "piece_variance", "drift"))
        measured = tuple(
            Measured(tuple((low, high) for low, high in one["runs"]), tuple(one["values"])) for one in updates
        )
        return cls(version, np.array(base, dtype=np.float64), cell, piece, drift, measured)
