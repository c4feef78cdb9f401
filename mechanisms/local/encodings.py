"""The local encodings by name, and which one a question gets that names none."""

from __future__ import annotations

from fractions import Fraction

from mechanisms.local.direct import RandomisedResponse
from mechanisms.local.encoder import LocalEncoder
from mechanisms.local.hadamard import HadamardResponse
from mechanisms.local.subset import SubsetSelection
from mechanisms.local.unary import OptimisedUnary, Rappor

__all__ = ["ENCODINGS", "LARGE", "NUMBERS_MAX", "best_encoder", "encoder_of"]

ENCODINGS: tuple[type[LocalEncoder], ...] = (
    RandomisedResponse,
    HadamardResponse,
    SubsetSelection,
    OptimisedUnary,
    Rappor,
)
"""In the order of preference where variances are equal: the shortest reports first."""

LARGE = 64
"""Domains above this get a report of one number unless another is asked for: the others grow with the domain."""

NUMBERS_MAX = 4096
"""Most values of a domain whose reports name several."""

_ONE_NUMBER = (RandomisedResponse, HadamardResponse)


def encoder_of(name: str, *, size: int, epsilon: Fraction) -> LocalEncoder:
    """The encoder of that name.

    Errors: ValueError for a name that is not known, for limits of the encoder, and for reports that would be too long.
    """
    for kind in ENCODINGS:
        if kind.name == name:
            if kind not in _ONE_NUMBER and size > NUMBERS_MAX:
                raise ValueError(f"reports of {name} name many values: its domain has at most {NUMBERS_MAX}")
            return kind(size=size, epsilon=epsilon)
    raise ValueError(f"there is no local encoding {name}")


def best_encoder(*, size: int, epsilon: Fraction) -> LocalEncoder:
    """The encoder of least mean variance, of a uniform population; of large domains one whose report is a number.

    Depends on the size of the domain and on epsilon alone. Errors: ValueError for limits of the encoders.
    """
    kinds = _ONE_NUMBER if size > LARGE else ENCODINGS
    made = [kind(size=size, epsilon=epsilon) for kind in kinds]
    # Equal ones differ in the last digits of a float: the shorter report is taken.
    least = min(one.mean_variance() for one in made)
    return next(one for one in made if one.mean_variance() <= least * (1 + 1e-9))
