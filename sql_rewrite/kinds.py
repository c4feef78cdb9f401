"""Kinds of words, where they are quick to look up.

A member of an enum takes several times longer to find than to compare, and a text is looked at word by word, by a
dozen rules. These are the same objects.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from sqlglot.tokenizer_core import TokenType

__all__ = ["Kind"]

Kind: Final[Any] = SimpleNamespace(**TokenType.__members__)
"""The members of sqlglot's TokenType, as attributes of a plain object."""
