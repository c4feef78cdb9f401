"""Upper and lower case, one character for one, as the engine has them."""

from __future__ import annotations

import unicodedata

__all__ = ["case_agrees", "lower_case", "upper_case"]


def _lower_character(character: str) -> str:
    folded = character.lower()
    # One code point becomes one: the dotted capital I is the only one whose full mapping has two.
    return folded if len(folded) == 1 else "i" if character == "\u0130" else character


def _upper_character(character: str) -> str:
    folded = character.upper()
    if len(folded) == 1:
        return folded
    if character == "\u00df":
        return "\u1e9e"
    titled = character.title()
    return titled if len(titled) == 1 else character


def lower_case(text: str) -> str:
    """The text with every character mapped to its one lower-case character."""
    return text.lower() if text.isascii() else "".join(map(_lower_character, text))


def upper_case(text: str) -> str:
    """The text with every character mapped to its one upper-case character."""
    return text.upper() if text.isascii() else "".join(map(_upper_character, text))


def case_agrees(text: str) -> bool:
    """Whether Python's Unicode tables know all characters; an engine with newer tables may map others."""
    return text.isascii() or all(unicodedata.category(character) != "Cn" for character in text)
