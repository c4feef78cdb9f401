"""What messages to people share: the name that was most likely meant, and text that is cut to a length."""

from __future__ import annotations

import difflib
from collections.abc import Collection

__all__ = ["nearest", "shortened"]

_NEAR = 0.75
"""How alike two names must be for one to be taken for a typo of the other: one letter of four, two of seven."""


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that a misspelt one most likely means, upper and lower case aside, or None.

    Requires: `known` are public names; they are shown to whoever sent `name`.
    """
    folded = {item.lower(): item for item in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=_NEAR)
    return folded[found[0]] if found else None


def shortened(text: str, length: int = 60) -> str:
    """The text, or its beginning and three dots where it has more than `length` characters."""
    return text if len(text) <= length else text[: length - 3] + "..."
