"""Names of datasets, tables and columns."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["IDENTIFIER", "MISREAD", "RESERVED", "column_name_for", "identifier_for", "is_identifier"]

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
"""A name: letters, digits and underscores, no digit first. Narrow on purpose: it never needs quotes in SQL."""

_WHOLE = re.compile(IDENTIFIER[:-1] + r"\Z", re.ASCII)


def is_identifier(text: str) -> bool:
    """Whether the text can be used as a name."""
    return _WHOLE.match(text) is not None


def identifier_for(text: str, *, otherwise: str = "name") -> str:
    """A usable name that resembles the text; `otherwise` where no letter or digit of it can be used."""
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    # The marks that NFKD takes off its letters belong to them; everything else between two words is a break.
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    cleaned = re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_") or otherwise
    return (cleaned if not cleaned[0].isdigit() else f"_{cleaned}")[:63]


def column_name_for(text: str) -> str:
    """A usable name for a column of a data file: the same where it can be written in SQL without quotes."""
    name = text if is_identifier(text) else identifier_for(text, otherwise="field")
    return f"{name[:62]}_" if name.lower() in RESERVED | MISREAD else name


_LETTERS = str.maketrans(
    dict(zip("ßẞæÆœŒøØłŁđĐðÐþÞı", "ss SS ae AE oe OE o O l L d D d D th Th i".split(), strict=True))
    | {"€": "EUR", "%": "percent"}
)
"""Letters that have no Latin letter inside them, and two signs that headers of tables are full of."""

RESERVED = frozenset(
    (
        "all alter analyse analyze and any array as asc asymmetric between both case cast check collate column "
        "constraint create cross cube default deferrable desc describe distinct do drop else end except false fetch "
        "for force foreign from glob grant group having ilike in initially inner insert install intersect into join "
        "lambda lateral leading like limit lock map not notnull null offset on only or order outer pivot pivot_longer "
        "pivot_wider placing positional primary qualify references returning revoke rollback rollup select show some "
        "summarize symmetric table tablesample then to trailing true union unique unpivot using variadic when where "
        "window with"
    ).split()
)
"""Keywords of SQL, which are names in quotes only."""

MISREAD = frozenset(
    (
        "anti asof at authorization binary by collation concurrently freeze full is isnull left natural overlaps right "
        "semi similar unpack verbose"
    ).split()
)
"""Keywords that dataset files may name a column by, but that the engine misreads somewhere without quotes."""
