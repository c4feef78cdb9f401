"""Kinds of tokens, where they are quick to look up.

A member of an enum takes several times longer to find than to compare, and a text is looked at token by token, by a
dozen rules. These are the same objects.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

__all__ = ["VALUES", "Kind"]

if TYPE_CHECKING:
    Kind = TokenType
else:
    Kind = SimpleNamespace(**TokenType.__members__)

VALUES = frozenset((Kind.VAR, Kind.IDENTIFIER, Kind.NUMBER, Kind.STRING))
"""Names, numbers and strings."""
