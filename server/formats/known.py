"""The formats that results are sent in, and a result in one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from privacy.values import Json
from server.formats.columnar import arrow_modules, to_arrow_file, to_arrow_stream, to_parquet
from server.formats.delimited import to_csv
from server.formats.table import Table

__all__ = ["FORMATS", "JSON", "Format", "Representation", "available", "represent"]


@dataclass(frozen=True, slots=True)
class Format:
    """A media type that results are sent as. `write` is None for JSON, which is sent as it is stored."""

    media_type: str
    sent: str
    extension: str
    needs_arrow: bool
    write: Callable[[Table], bytes] | None


@dataclass(frozen=True, slots=True)
class Representation:
    """What is sent: the bytes, their Content-Type, and headers of this format."""

    content: bytes
    media_type: str
    headers: Mapping[str, str]


def represent(format_: Format, content: bytes, read: Callable[[bytes], Table], *, filename: str) -> Representation:
    """Stored JSON in the asked format; `read` is answer_table or release_table. A pure function of its arguments."""
    if format_.write is None:
        return Representation(content, format_.sent, {})
    table = read(content)
    # A browser saves it under a name instead of showing it in a page of this origin.
    headers = {**table.headers, "Content-Disposition": f'attachment; filename="{filename}.{format_.extension}"'}
    return Representation(format_.write(table), format_.sent, headers)


def available() -> list[dict[str, Json]]:
    """The formats, for capabilities: media type, whether it is on, and what to install when it is not. Blocks."""
    return [
        {
            "media_type": format_.media_type,
            "on": not format_.needs_arrow or arrow_modules() is not None,
            "needs": "noisegate[arrow]" if format_.needs_arrow else None,
        }
        for format_ in FORMATS
    ]


JSON = Format("application/json", "application/json", "json", needs_arrow=False, write=None)
_CSV = Format("text/csv", "text/csv; charset=utf-8; header=present", "csv", needs_arrow=False, write=to_csv)
_STREAM, _FILE, _PARQUET = (
    Format(media_type, media_type, extension, needs_arrow=True, write=write)
    for media_type, extension, write in (
        ("application/vnd.apache.arrow.stream", "arrows", to_arrow_stream),
        ("application/vnd.apache.arrow.file", "arrow", to_arrow_file),
        ("application/vnd.apache.parquet", "parquet", to_parquet),
    )
)
FORMATS: tuple[Format, ...] = (JSON, _CSV, _STREAM, _FILE, _PARQUET)
"""Every format, in the order in which they are preferred when `Accept` does not prefer."""
