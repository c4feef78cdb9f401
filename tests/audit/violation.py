"""What the audit raises when data and neighbour can be told apart by more than was declared."""

from __future__ import annotations

__all__ = ["Violation", "require"]


class Violation(AssertionError):
    """Two neighbours can be told apart by more than was declared, or an exact sum is not what it should be."""


def require(condition: bool, text: str) -> None:
    """An assertion that the shrinker can tell from a fault of the tests themselves."""
    if not condition:
        raise Violation(text)
