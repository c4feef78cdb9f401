"""The protocol of privacy events and their stored form."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar, Protocol, Self, runtime_checkable

from privacy.loss import Loss
from privacy.values import Json

__all__ = ["Event", "fraction_from_text", "fraction_to_text"]


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
