"""Data files by their first bytes. Never looks at values."""

from __future__ import annotations

from pathlib import Path

from engines.table_source import SourceFormat

__all__ = ["looks_like"]

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""How text in UTF-16 begins: it holds zero bytes, as other text does not."""


def looks_like(path: Path) -> tuple[SourceFormat, ...]:
    """Formats that the file's first and last bytes fit; empty for an empty file.

    Errors: OSError when it cannot be read.
    """
    with path.open("rb") as stream:
        head = stream.read(65_536)
        stream.seek(0, 2)
        size = stream.tell()
        stream.seek(max(0, size - 4))
        tail = stream.read(4)
    if head[:4] == b"PAR1" and tail == b"PAR1" and size >= 12:
        return ("parquet",)
    if head[8:12] == b"DUCK":
        return ("duckdb",)
    compressed = head[:2] == b"\x1f\x8b"
    if (
        compressed == path.name.lower().endswith(".gz")
        and size > 0
        and (compressed or head.startswith(_UTF16) or b"\0" not in head)
    ):
        return ("csv",)
    return ()
