"""Names of datasets, tables and columns."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

__all__ = ["IDENTIFIER", "identifier_for", "is_identifier", "nearest"]

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
"""A name: letters, digits and underscores, no digit first. Narrow on purpose: it never needs quotes in SQL."""

_WHOLE = re.compile(IDENTIFIER[:-1] + r"\Z", re.ASCII)


def is_identifier(text: str) -> bool:
    """Whether the text can be used as a name."""
    return _WHOLE.match(text) is not None


def identifier_for(text: str) -> str:
    """A usable name that resembles the text."""
    cleaned = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_") or "name"
    return (cleaned if not cleaned[0].isdigit() else f"_{cleaned}")[:63]


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that a misspelt one most likely meant, or None."""
    folded = {item.lower(): item for item in known}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None
