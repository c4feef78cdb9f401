"""Checks that all kinds of events share: what a parameter may be, and how it is read back from storage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from privacy.events.event import fraction_from_text
from privacy.values import Json

__all__ = ["EPSILON_MAX", "EPSILON_MIN", "read_fractions", "require_delta", "require_positive", "require_ratio"]

EPSILON_MAX = Fraction(10**6)
"""Beyond this an event promises nothing: it is taken for a typo and refused."""

EPSILON_MIN = Fraction(1, 10**30)
"""Below this the noise is absurd (and would make numbers of unbounded length)."""

_TEXT = re.compile(r"[1-9]\d{0,1200}/[1-9]\d{0,1200}\Z", re.ASCII)
_BITS = 4000


def require_positive(value: Fraction, *, name: str) -> None:
    """Refuses what is not an exact positive number of sensible length. Raises TypeError or ValueError."""
    if not isinstance(value, Fraction):
        raise TypeError(f"{name} must be a Fraction")
    if value <= 0:
        raise ValueError(f"{name} must be greater than zero")
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _BITS:
        raise ValueError(f"{name} has too many digits")


def require_delta(value: Fraction) -> None:
    """Refuses a delta that is not inside (0, 1). Raises TypeError or ValueError."""
    require_positive(value, name="delta")
    if value >= 1:
        raise ValueError("delta must be less than one")


def require_ratio(value: Fraction, *, name: str, lowest: Fraction, highest: Fraction) -> None:
    """Refuses a sensitivity over noise that is outside the range in which the loss is meaningful: ValueError."""
    if not lowest <= value <= highest:
        raise ValueError(f"{name} is outside the range of losses that may be charged")


def read_fractions(parameters: Json, names: tuple[str, ...]) -> tuple[Fraction, ...]:
    """Stored parameters in the order of `names`. Raises ValueError when one is missing, unknown or no fraction."""
    if not isinstance(parameters, Mapping) or set(parameters) != set(names):
        raise ValueError("parameters do not belong to this kind of privacy event")
    values = []
    for name in names:
        text = parameters[name]
        if not isinstance(text, str) or _TEXT.match(text) is None:
            raise ValueError(f'{name} must be stored as "numerator/denominator"')
        values.append(fraction_from_text(text))
    return tuple(values)
