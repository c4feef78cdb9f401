"""A table as CSV."""

from __future__ import annotations

import re

from privacy.values import Json
from server.formats.table import Table, as_text, sort_of

__all__ = ["to_csv", "unguarded"]


_GUARDED = re.compile(r"(\A|[;\t\r\n])(?=['\t\r\n]|[ \u00a0]*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_GUARDS = re.compile(r"(\A|[;\t\r\n])'")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+)?\Z")


def to_csv(table: Table) -> bytes:
    """The table as CSV (RFC 4180): UTF-8, CRLF, a header line, texts in quotes, NULL as an empty field.

    A text that a spreadsheet could take for a formula gets an apostrophe; `unguarded` takes it away again. Numbers
    stand as in the JSON, and are never guarded: no text is among them.
    """
    header = ",".join(_quoted(column.name) for column in table.columns)
    sorts = [sort_of(column.type) for column in table.columns]
    # The only field of a line: an empty line would be skipped by most readers, and a row lost.
    null = '""' if len(table.columns) == 1 else ""
    rows = zip(*(column.values for column in table.columns), strict=True)
    lines = (",".join(_field(value, sort, null) for value, sort in zip(row, sorts, strict=True)) for row in rows)
    return "".join(f"{line}\r\n" for line in (header, *lines)).encode()


def _field(value: Json, sort: str, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if sort in ("date", "timestamp") and isinstance(value, str) and _MOMENT.match(value):
        return value
    return _quoted(as_text(value) or "")


def _quoted(text: str) -> str:
    # Programs that split at semicolons or tabs do not see the quotes in the middle of a line, so what follows such a
    # separator is guarded like the beginning.
    return '"' + _GUARDED.sub(r"\1'", text).replace('"', '""') + '"'


def unguarded(text: str) -> str:
    """A text of the CSV as it was: without the apostrophe at the beginning and after `;`, tab and line ends.

    Texts that have an apostrophe there of their own were given a second one, so this is exact.
    """
    return _GUARDS.sub(r"\1", text)
