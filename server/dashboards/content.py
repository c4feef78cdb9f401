"""What a reader of a tile sees: a stored answer as a table under the query's own names, each value with its interval.

Claim. Body, size, ETag and headers of a tile, and the moments at which they change, are a function of the tile's text,
public metadata, the schedule, and what the ledger has released and decided.

Proof. A body is made from the stored answer of one query, which is released, the moment of the schedule at which it
came to be shown, the title, and the state of the tile. The state is what the ledger decided (exhausted), what follows
from the text, declarations and accounts (refused), or the one opaque outcome of a query that ended without an answer,
which comes at the same visible moment whatever the rows were. Bodies change when a refresh ends, which is at the
visible moment of its query, or when somebody pauses or changes the dashboard. A refresh that finds the data unchanged
makes no query, and one that is answered from a stored release makes the same table: its ETag stays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privacy.values import Json
from server.formats import FORMATS, JSON, Column, Format, Table, answer_table
from server.formats.table import free_name

__all__ = ["TILE_HEADERS", "Body", "Shown", "digest_of", "format_of", "history_body", "shown_of", "tile_body"]

_EDGES = ("low", "high")
_BY_EXTENSION = {format_.extension: format_ for format_ in FORMATS}


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as a tile shows it: its columns, each number followed by its ends, and what is said beside them."""

    columns: tuple[Column, ...]
    data_version: str
    confidence: float
    warnings: tuple[str, ...]

    @property
    def rows(self) -> list[dict[str, Json]]:
        """Its rows as objects."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in zip(*(c.values for c in self.columns), strict=True)]


@dataclass(frozen=True, slots=True)
class Body:
    """A representation: bytes, their Content-Type, a strong ETag and headers."""

    content: bytes
    media_type: str
    etag: str
    headers: Mapping[str, str]


TILE_HEADERS: Mapping[str, str] = {
    "Noisegate-Tile-State": "The tile's state, as the JSON has it; `paused` while its dashboard is.",
    "Noisegate-As-Of": "The moment of the schedule from which on these numbers are shown.",
    "Noisegate-Data-Version": "The version of the data that they are about.",
    "Noisegate-Confidence": "Chance with which each interval from x_low to x_high covers.",
}
"""Headers of tiles, with their meaning."""


def format_of(name: str) -> tuple[str, Format | None]:
    """A tile's name and the format that its extension names, None without one; the whole text for an unknown one."""
    stem, dot, extension = name.rpartition(".")
    known = _BY_EXTENSION.get(extension) if dot else None
    return (name, None) if known is None else (stem, known)


def shown_of(answer: bytes) -> Shown:
    """The table of a stored answer."""
    table = answer_table(answer)
    own = [column for column in table.columns if column.kind not in ("standard_error", *_EDGES)]
    ends = {(column.of, column.kind): column for column in table.columns if column.kind in _EDGES}
    columns = []
    for column in own:
        columns.append(column)
        columns += [ends[column.of, kind] for kind in _EDGES if (column.of, kind) in ends]
    body = json.loads(answer)
    return Shown(
        columns=tuple(columns),
        data_version=str(body["provenance"]["data_version"]),
        confidence=float(body["confidence"]),
        warnings=tuple(dict.fromkeys(warning["code"] for warning in body.get("warnings", ()))),
    )


def digest_of(shown: Shown) -> str:
    """The identity of a table: two refreshes with the same one show the same."""
    columns = [[column.name, column.kind, column.type, list(column.values)] for column in shown.columns]
    said: Json = [columns, shown.data_version, shown.confidence, list(shown.warnings)]
    return hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()


def tile_body(
    shown: Shown | None, about: Mapping[str, Json], format_: Format, *, headers: Mapping[str, str], filename: str
) -> Body:
    """A tile in a format. `about` is what the JSON says beside the table. A table is there for all but JSON."""
    if format_ is JSON:
        rows: list[dict[str, Json]] = [] if shown is None else shown.rows
        said = {**about, "columns": [] if shown is None else _described(shown.columns), "rows": rows}
        return _body(_json(said), JSON, headers)
    assert shown is not None, "there is a table"
    return _written(Table(shown.columns, about, {}), format_, headers, filename)


def history_body(
    points: Sequence[tuple[str, Shown]],
    about: Mapping[str, Json],
    format_: Format,
    *,
    headers: Mapping[str, str],
    filename: str,
) -> Body:
    """Tables one after the other, each row with its moment and the version of the data."""
    columns = _joined(points)
    if format_ is JSON:
        names = [column.name for column in columns]
        rows = [dict(zip(names, row, strict=True)) for row in zip(*(c.values for c in columns), strict=True)]
        return _body(_json({**about, "columns": _described(columns), "rows": rows}), JSON, headers)
    return _written(Table(columns, about, {}), format_, headers, filename)


def _joined(points: Sequence[tuple[str, Shown]]) -> tuple[Column, ...]:
    """The columns of the newest table, with the rows of all of them, behind a moment and a version."""
    newest = points[-1][1].columns if points else ()
    taken = {column.name.casefold() for column in newest}
    at, version = (name if name not in taken else free_name(name, taken) for name in ("at", "data_version"))
    moments: list[Json] = []
    versions: list[Json] = []
    values: dict[str, list[Json]] = {column.name: [] for column in newest}
    for moment, shown in points:
        count = len(shown.columns[0].values) if shown.columns else 0
        known = {column.name: column.values for column in shown.columns}
        moments += [moment] * count
        versions += [shown.data_version] * count
        for name, column in values.items():
            column += known.get(name, (None,) * count)
    return (
        Column(at, "key", -1, "VARCHAR", tuple(moments)),
        Column(version, "key", -1, "VARCHAR", tuple(versions)),
        *(Column(one.name, one.kind, one.of, one.type, tuple(values[one.name])) for one in newest),
    )


def _described(columns: Sequence[Column]) -> list[Json]:
    return [{"name": column.name, "type": column.type, "kind": column.kind} for column in columns]


def _json(value: Mapping[str, Json]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _written(table: Table, format_: Format, headers: Mapping[str, str], filename: str) -> Body:
    assert format_.write is not None
    named = {**headers, "Content-Disposition": f'attachment; filename="{filename}.{format_.extension}"'}
    return _body(format_.write(table), format_, named)


def _body(content: bytes, format_: Format, headers: Mapping[str, str]) -> Body:
    return Body(content, format_.sent, f'"{hashlib.sha256(content).hexdigest()[:40]}"', headers)
