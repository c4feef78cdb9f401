"""The populations of Acharya, Sun and Zhang 2019, and the error of one decoding in summed absolute differences."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.local.draws import Places
from mechanisms.local.encoder import LocalEncoder
from mechanisms.local.estimates import estimate
from mechanisms.local.postprocess import Postprocess
from mechanisms.local.unary import UnaryEncoder
from mechanisms.randomness import BitSource

__all__ = ["POPULATIONS", "errors_of", "population"]

POPULATIONS = ("Geometric", "Zipf", "Two_steps", "Uniform")


def population(name: str, size: int) -> npt.NDArray[np.float64]:
    """Shares: geometric with 0.8, Zipf with exponent 1, half of the values three times as frequent, or all alike."""
    places = np.arange(size)
    weights = {
        "Geometric": 0.8**places,
        "Zipf": 1 / (places + 1.0),
        "Two_steps": np.where(places < size // 2, 1.0, 3.0),
        "Uniform": np.ones(size),
    }[name]
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


def tally_of(encoder: LocalEncoder, values: Places, bits: BitSource, generator: np.random.Generator) -> Places:
    """A tally of the law; of unary encodings by its counts, which are independent sums, to save 10^8 bits a run."""
    if not isinstance(encoder, UnaryEncoder):
        return encoder.simulate(values, bits)
    counts = np.bincount(values, minlength=encoder.size)
    kept = generator.binomial(counts, float(encoder.own))
    tally: Places = kept + generator.binomial(values.size - counts, float(encoder.other))
    return tally


def errors_of(
    encoder: LocalEncoder,
    shares: npt.NDArray[np.float64],
    reports: int,
    ways: tuple[Postprocess, ...],
    bits: BitSource,
    generator: np.random.Generator,
) -> list[float]:
    """The error of one run under each way of post-processing."""
    values = generator.choice(encoder.size, size=reports, p=shares)
    tally = tally_of(encoder, values, bits, generator)
    return [float(np.abs(estimate(encoder, tally, reports, way=way).shares - shares).sum()) for way in ways]


def exact(epsilon: float) -> Fraction:
    """The epsilon of a table as a fraction."""
    return Fraction(str(epsilon))
