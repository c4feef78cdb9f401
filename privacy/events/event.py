"""The protocol of privacy events, their stored form, and what the parameters of any of them may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import ClassVar, Protocol, Self, runtime_checkable

from privacy.loss import Loss
from privacy.values import Json

__all__ = [
    "EPSILON_MAX",
    "EPSILON_MIN",
    "Event",
    "fraction_from_text",
    "fraction_to_text",
    "read_fractions",
    "require_delta",
    "require_positive",
    "require_ratio",
]


@runtime_checkable
class Event(Protocol):
    """The stored fact that one measurement ran with published parameters.

    `kind` is "name/version": a meaning never changes, a new meaning is a new version. `parameters` maps names to
    exact fractions written as "numerator/denominator"; `from_parameters` reads them back to an equal event.
    """

    kind: ClassVar[str]

    def loss(self) -> Loss:
        """The event's privacy loss in every measure, never understated."""
        ...

    def parameters(self) -> dict[str, str]:
        """Published parameters; exact."""
        ...

    @classmethod
    def from_parameters(cls, parameters: Json) -> Self:
        """Reads `parameters()` back. Raises ValueError for anything else."""
        ...


def fraction_to_text(value: Fraction) -> str:
    """Exact text of a fraction: "numerator/denominator"."""
    return f"{value.numerator}/{value.denominator}"


def fraction_from_text(text: str) -> Fraction:
    """Reads `fraction_to_text` back. Raises ValueError for other text."""
    numerator, _, denominator = text.partition("/")
    value = Fraction(int(numerator), int(denominator))
    return value


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
