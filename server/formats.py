"""Formats of results: which one `Accept` asks for, and an answer's or a release's table in it.

JSON is what is stored and what is sent by default. CSV, Arrow and Parquet are made from those stored bytes, so every
format tells the same numbers, and asking again in another format spends nothing.

    the answer's columns, in order | for every released or derived column x: x_standard_error, x_low, x_high
    sex, n                         | n_standard_error, n_low, n_high

What the table does not hold (identifiers, price, what remains) is in `Noisegate-...` headers and, as the JSON has it,
in the Arrow schema's metadata under `noisegate`. pyarrow is an optional library: it is imported here, nowhere else,
and only when somebody asks for a format that needs it.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool

from server.errors import Problem

__all__ = [
    "FORMATS",
    "JSON",
    "RESULT_HEADERS",
    "Column",
    "Format",
    "Representation",
    "Table",
    "answer_table",
    "available",
    "negotiate",
    "rank",
    "release_table",
    "represent",
    "to_csv",
    "unguarded",
]


@dataclass(frozen=True, slots=True)
class Format:
    """A media type that results are sent as. `write` is None for JSON, which is sent as it is stored."""

    media_type: str
    sent: str
    extension: str
    needs_arrow: bool
    write: Callable[[Table], bytes] | None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table that is sent.

    `name` is unique in the table, also when case is ignored. `kind` is key, released, derived, standard_error, low or
    high; `of` is the place in the JSON's columns of the column that it is or describes. `type` is the JSON's type.
    """

    name: str
    kind: str
    of: int
    type: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A result as columns of equal length. `about` is the rest of the JSON; `headers` are those of the response."""

    columns: tuple[Column, ...]
    about: Mapping[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Representation:
    """What is sent: the bytes, their Content-Type, and headers of this format."""

    content: bytes
    media_type: str
    headers: Mapping[str, str]


# What is asked for


class _Range(NamedTuple):
    """One part of an Accept header."""

    type: str
    subtype: str
    parameters: Mapping[str, str]
    quality: int  # thousandths


_ACCEPT_LENGTH_MAX = 4_096
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 -- a grammar's word
_MEDIA = re.compile(rf"({_TOKEN})/({_TOKEN})\Z")
_PARAMETER = re.compile(rf'({_TOKEN})=(?:({_TOKEN})|"((?:\\.|[^"\\])*)")\Z', re.DOTALL)
_QUALITY = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\Z")
_PARTS = re.compile(r'(?:[^",]|"(?:\\.|[^"\\])*"?)+', re.DOTALL)
_PIECES = re.compile(r'(?:[^";]|"(?:\\.|[^"\\])*"?)+', re.DOTALL)
_SENT_PARAMETERS = {"charset": ("utf-8", "utf8"), "header": ("present",)}
"""Parameters that decide whether we can serve; others (profiles, versions) do not change what is sent."""


def rank(accept: Sequence[str]) -> tuple[Format, ...]:
    """The formats that the values of the Accept headers allow, best first.

    Order: quality, then how exactly the type was named, then the order of `FORMATS` (JSON first). No header, or an
    empty one, allows everything. A part that is not well formed allows nothing; `q=0` forbids.
    """
    text = ",".join(accept)
    if not text.strip(" \t,"):
        return FORMATS
    if len(text) > _ACCEPT_LENGTH_MAX:
        return ()
    ranges = [parsed for part in _PARTS.findall(text) if (parsed := _range(part)) is not None]
    ranked = []
    for place, format_ in enumerate(FORMATS):
        # The most exact range that names the format decides, whatever a wider one says (RFC 9110, 12.5.1).
        exactness, quality = max(
            ((exactness, r.quality) for r in ranges if (exactness := _exactness(r, format_)) is not None),
            default=(0, 0),
        )
        if quality > 0:
            ranked.append((-quality, -exactness, place, format_))
    return tuple(format_ for *_, format_ in sorted(ranked, key=lambda entry: entry[:3]))


def _range(part: str) -> _Range | None:
    media, *pieces = (piece.strip(" \t") for piece in _PIECES.findall(part) or [""])
    match = _MEDIA.match(media)
    if match is None or (match[1] == "*" and match[2] != "*"):
        return None
    parameters: dict[str, str] = {}
    quality = "1"
    for piece in pieces:
        if not piece:
            continue
        parameter = _PARAMETER.match(piece)
        if parameter is None:
            return None
        name = parameter[1].lower()
        value = parameter[2] if parameter[3] is None else re.sub(r"\\(.)", r"\1", parameter[3], flags=re.DOTALL)
        if name == "q":
            quality = value
            break  # what follows extends the header, not the type
        parameters[name] = value.lower()
    if _QUALITY.match(quality) is None:
        return None
    return _Range(match[1].lower(), match[2].lower(), parameters, round(float(quality) * 1000))


def _exactness(asked: _Range, format_: Format) -> int | None:
    """How exactly a range names a format: 2 the type itself, 1 its kind, 0 anything; None when it does not."""
    if any(asked.parameters.get(name, values[0]) not in values for name, values in _SENT_PARAMETERS.items()):
        return None
    type_, _, subtype = format_.media_type.partition("/")
    if (asked.type, asked.subtype) == (type_, subtype):
        return 2
    if (asked.type, asked.subtype) == (type_, "*"):
        return 1
    return 0 if asked.type == "*" else None


async def negotiate(accept: Sequence[str]) -> Format:
    """The format to send. Called before anything is charged. Errors: Problem not_acceptable."""
    ranked = rank(accept)
    arrow = False
    for format_ in ranked:
        if format_.needs_arrow and not arrow:
            # The import takes a third of a second the first time.
            arrow = await run_in_threadpool(_arrow) is not None
        if arrow or not format_.needs_arrow:
            return format_
    offered = tuple(format_.media_type for format_ in FORMATS if arrow or not format_.needs_arrow)
    if ranked:
        raise Problem(
            "not_acceptable",
            what="Arrow and Parquet are not offered by this server",
            why="They need a library that is not installed here. Nothing was charged.",
            instead=(
                "Send Accept: application/json or text/csv.",
                'Ask the operator to install the extra "arrow": ./noisegate setup --extra arrow.',
            ),
            extra={"available": list(offered)},
        )
    raise Problem(
        "not_acceptable",
        what="the header Accept is not accepted",
        why="It names no format in which results are sent. Nothing was charged.",
        instead=("Leave it out for JSON.", f"Name one of {', '.join(f.media_type for f in FORMATS)}."),
        extra={"available": [entry["media_type"] for entry in await run_in_threadpool(available) if entry["on"]]},
    )


def available() -> list[dict[str, Any]]:
    """The formats, for capabilities: media type, whether it is on, and what to install when it is not. Blocks."""
    return [
        {
            "media_type": format_.media_type,
            "on": not format_.needs_arrow or _arrow() is not None,
            "needs": "noisegate[arrow]" if format_.needs_arrow else None,
        }
        for format_ in FORMATS
    ]


# The table


def answer_table(content: bytes) -> Table:
    """The table of a stored answer."""
    body = json.loads(content)
    columns = []
    for place, column in enumerate(body["columns"]):
        edges = (body["standard_errors"], body["lows"], body["highs"])
        columns.append(
            _Source(
                column["name"],
                column["kind"],
                column["type"],
                tuple(row[place] for row in body["rows"]),
                tuple(tuple(row[place] for row in part) for part in edges),
            )
        )
    accounting, provenance = body["accounting"], body["provenance"]
    headers = {
        "Noisegate-Query": body["id"],
        "Noisegate-Confidence": str(body["confidence"]),
        **_price(accounting, body.get("links", {}).get("budget"), free=not provenance["releases"]),
        "Noisegate-Remaining-Epsilon": accounting["remaining"]["epsilon"],
        "Noisegate-Remaining-Delta": accounting["remaining"]["delta"],
        "Noisegate-Reused": "true" if accounting["reused"] else "false",
        "Noisegate-Releases": ", ".join(provenance["releases"]),
    }
    if "own" in accounting:  # answers of the first version have none
        headers["Noisegate-Share"] = accounting["share"]
        headers["Noisegate-Own-Epsilon"] = accounting["own"]["epsilon"]
        headers["Noisegate-Own-Delta"] = accounting["own"]["delta"]
    if warnings := [warning["code"] for warning in body.get("warnings", ())]:
        headers["Noisegate-Warnings"] = ", ".join(dict.fromkeys(warnings))
    tabular = ("columns", "rows", "standard_errors", "lows", "highs")
    return Table(_arranged(columns), {name: body[name] for name in body if name not in tabular}, headers)


def release_table(content: bytes) -> Table:
    """The table of a stored release, from the JSON of GET /v1/releases/{id}."""
    body = json.loads(content)
    release = body["release"]
    count = release["rows"]
    columns = []
    for column in release["columns"]:
        edges = (column["standard_errors"], column["lows"], column["highs"])
        columns.append(
            _Source(
                column["name"],
                column["role"],
                _LANGUAGE_TYPES[column["type"]],
                tuple(column["values"]),
                # Keys have none, and their lists are empty.
                tuple(tuple(part) if part else (None,) * count for part in edges),
            )
        )
    headers = {
        "Noisegate-Release": body["id"],
        "Noisegate-Confidence": str(float(Fraction(release["confidence"]))),
    }
    if body["query"] is not None:
        headers["Noisegate-Query"] = body["query"]
    # The noisy sums repeat the table in other words, and more of them.
    rest = {name: release[name] for name in release if name not in ("columns", "rows", "statistics")}
    return Table(_arranged(columns), {**body, "release": rest}, headers)


_LANGUAGE_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}

RESULT_HEADERS: Mapping[str, str] = {
    "Noisegate-Query": "Identifier of the query. This and the headers below come with every format but JSON.",
    "Noisegate-Release": "Identifier of the release.",
    "Noisegate-Releases": "Identifiers of the releases that the answer was made from.",
    "Noisegate-Confidence": "Chance with which each interval from x_low to x_high covers.",
    "Noisegate-Budget": "The account that paid.",
    "Noisegate-Charged-Epsilon": "What that account was charged; 0 when stored releases answered.",
    "Noisegate-Charged-Delta": "What that account was charged.",
    "Noisegate-Remaining-Epsilon": "What remained when the answer was stored.",
    "Noisegate-Remaining-Delta": "What remained when the answer was stored.",
    "Noisegate-Share": "The part of the paying account's limit of epsilon that the answer took, from 0 to 1.",
    "Noisegate-Own-Epsilon": "What the answer promises by itself, at Noisegate-Own-Delta. Must not be added up.",
    "Noisegate-Own-Delta": "The delta of Noisegate-Own-Epsilon.",
    "Noisegate-Reused": "true when stored releases answered and nothing was charged.",
    "Noisegate-Warnings": "Codes of the answer's warnings, where it has any; the JSON has their words.",
}
"""Headers of results that are not JSON, with their meaning. They repeat what the JSON says, in its digits."""


def _price(accounting: Mapping[str, Any], budget_address: str | None, *, free: bool) -> dict[str, str]:
    """Headers of the charge on the account that the query was asked from, when the JSON tells it.

    `free` is whether the answer was made without any release.
    """
    charged = {part["budget"]: part for part in accounting["charged"]}
    budget = budget_address.rpartition("/")[2] if budget_address else next(iter(charged), None)
    headers = {} if budget is None else {"Noisegate-Budget": budget}
    if budget in charged:
        part = charged[budget]
        headers |= {"Noisegate-Charged-Epsilon": part["epsilon"], "Noisegate-Charged-Delta": part["delta"]}
    elif accounting["reused"] or free:
        headers |= {"Noisegate-Charged-Epsilon": "0", "Noisegate-Charged-Delta": "0"}
    return headers


class _Source(NamedTuple):
    name: str
    kind: str
    type: str
    values: tuple[Any, ...]
    edges: tuple[tuple[Any, ...], ...]  # standard errors, lows, highs


def _arranged(sources: Sequence[_Source]) -> tuple[Column, ...]:
    """The answer's columns, then the errors of each released or derived one, under names that are all different.

    The answer's own names come first, so that an error column never takes the name that the analyst chose.
    """
    taken: set[str] = set()
    names: list[str | None] = []
    for source in sources:
        first = source.name.casefold() not in taken
        taken.add(source.name.casefold())
        names.append(source.name if first else None)
    own = [_free(source.name, taken) if name is None else name for source, name in zip(sources, names, strict=True)]
    columns = [
        Column(name, source.kind, place, source.type, tuple(_finite(value) for value in source.values))
        for place, (name, source) in enumerate(zip(own, sources, strict=True))
    ]
    for place, (name, source) in enumerate(zip(own, sources, strict=True)):
        if source.kind == "key":
            continue
        for kind, values in zip(("standard_error", "low", "high"), source.edges, strict=True):
            wanted = f"{name}_{kind}"
            unique = _free(wanted, taken) if wanted.casefold() in taken else wanted
            taken.add(unique.casefold())
            columns.append(Column(unique, kind, place, "DOUBLE", tuple(_finite(value) for value in values)))
    return tuple(columns)


def _free(name: str, taken: set[str]) -> str:
    """The name with the first number that makes it new, counted from 2; it is taken afterwards."""
    number = 2
    while f"{name}_{number}".casefold() in taken:
        number += 1
    taken.add(f"{name}_{number}".casefold())
    return f"{name}_{number}"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def represent(format_: Format, content: bytes, read: Callable[[bytes], Table], *, filename: str) -> Representation:
    """Stored JSON in the asked format; `read` is answer_table or release_table. A pure function of its arguments."""
    if format_.write is None:
        return Representation(content, format_.sent, {})
    table = read(content)
    # A browser saves it under a name instead of showing it in a page of this origin.
    headers = {**table.headers, "Content-Disposition": f'attachment; filename="{filename}.{format_.extension}"'}
    return Representation(format_.write(table), format_.sent, headers)


# Types

_WHOLE = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"))
_WIDE = frozenset(("UBIGINT", "HUGEINT", "UHUGEINT"))
_TIMESTAMPS = frozenset(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"))
_DECIMAL = re.compile(r"DECIMAL\([0-9]{1,2},([0-9]{1,2})\)\Z")
_DECIMAL_DIGITS = 38


def _sort(type_: str) -> str:
    """What sort of values a type of the JSON has; "text" for all that have no type of their own in every format."""
    if type_ in _WHOLE:
        return "whole"
    if type_ in _WIDE:
        return "wide"
    if type_ in ("DOUBLE", "FLOAT"):
        return "number"
    decimal = _DECIMAL.match(type_)
    if decimal is not None:
        return "wide" if int(decimal[1]) == 0 else "number"
    if type_ in _TIMESTAMPS:
        return "timestamp"
    return {"BOOLEAN": "boolean", "DATE": "date"}.get(type_, "text")


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# CSV

_GUARDED = re.compile(r"(\A|[;\t\r\n])(?=['\t\r\n]|[ \u00a0]*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_GUARDS = re.compile(r"(\A|[;\t\r\n])'")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+)?\Z")


def to_csv(table: Table) -> bytes:
    """The table as CSV (RFC 4180): UTF-8, CRLF, a header line, texts in quotes, NULL as an empty field.

    A text that a spreadsheet could take for a formula gets an apostrophe; `unguarded` takes it away again. Numbers
    stand as in the JSON, and are never guarded: no text is among them.
    """
    header = ",".join(_quoted(column.name) for column in table.columns)
    sorts = [_sort(column.type) for column in table.columns]
    # The only field of a line: an empty line would be skipped by most readers, and a row lost.
    null = '""' if len(table.columns) == 1 else ""
    rows = zip(*(column.values for column in table.columns), strict=True)
    lines = (",".join(_field(value, sort, null) for value, sort in zip(row, sorts, strict=True)) for row in rows)
    return "".join(f"{line}\r\n" for line in (header, *lines)).encode()


def _field(value: Any, sort: str, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if sort in ("date", "timestamp") and isinstance(value, str) and _MOMENT.match(value):
        return value
    return _quoted(_as_text(value) or "")


def _quoted(text: str) -> str:
    # Programs that split at semicolons or tabs do not see the quotes in the middle of a line, so what follows such a
    # separator is guarded like the beginning.
    return '"' + _GUARDED.sub(r"\1'", text).replace('"', '""') + '"'


def unguarded(text: str) -> str:
    """A text of the CSV as it was: without the apostrophe at the beginning and after `;`, tab and line ends.

    Texts that have an apostrophe there of their own were given a second one, so this is exact.
    """
    return _GUARDS.sub(r"\1", text)


# Arrow and Parquet


class _Arrow(NamedTuple):
    base: Any
    ipc: Any
    parquet: Any


@functools.cache
def _arrow() -> _Arrow | None:
    """The modules of pyarrow, or None when it is not installed."""
    try:
        return _Arrow(*(importlib.import_module(name) for name in ("pyarrow", "pyarrow.ipc", "pyarrow.parquet")))
    except ImportError:
        return None


def _arrow_table(table: Table) -> tuple[_Arrow, Any]:
    arrow = _arrow()
    assert arrow is not None, "the format is chosen before it is written"
    arrays, fields = [], []
    for column in table.columns:
        array = _array(arrow.base, column)
        about = {"kind": column.kind, "column": str(column.of), "type": column.type}
        arrays.append(array)
        fields.append(
            arrow.base.field(
                column.name, array.type, metadata={f"noisegate.{name}": text for name, text in about.items()}
            )
        )
    about_text = json.dumps(table.about, separators=(",", ":"), ensure_ascii=False)
    schema = arrow.base.schema(fields, metadata={"noisegate": about_text})
    return arrow, arrow.base.Table.from_arrays(arrays, schema=schema)


def _array(base: Any, column: Column) -> Any:
    """The values in the Arrow type of their column; as text when one of them does not fit, so that none is lost."""
    values = column.values
    if column.kind in ("low", "high"):
        return base.array([_outward(value, up=column.kind == "high") for value in values], base.float64())
    sort = _sort(column.type)
    if sort in ("whole", "wide") and _all(values, int):
        largest = max((abs(value) for value in values if value is not None), default=0)
        if sort == "whole" and largest < 2**63:
            return base.array(values, base.int64())
        if largest < 10**_DECIMAL_DIGITS:
            numbers = [None if value is None else Decimal(value) for value in values]
            return base.array(numbers, base.decimal128(_DECIMAL_DIGITS, 0))
    if sort == "number" and _all(values, int, float):
        numbers_or_none = _numbers(values)
        if numbers_or_none is not None:
            return base.array(numbers_or_none, base.float64())
    if sort == "boolean" and all(value is None or isinstance(value, bool) for value in values):
        return base.array(values, base.bool_())
    if sort in ("date", "timestamp"):
        moments = _moments(values, datetime.date if sort == "date" else datetime.datetime)
        if moments is not None:
            return base.array(moments, base.date32() if sort == "date" else base.timestamp("us"))
    return base.array([_as_text(value) for value in values], base.string())


def _all(values: Iterable[Any], *types: type) -> bool:
    return all(value is None or (isinstance(value, types) and not isinstance(value, bool)) for value in values)


def _numbers(values: Sequence[Any]) -> list[float | None] | None:
    try:
        return [None if value is None else float(value) for value in values]
    except OverflowError:
        return None


def _moments(values: Sequence[Any], type_: type[datetime.date]) -> list[Any] | None:
    """Dates or times of ISO texts; None when one of them would not come back as the same text."""
    moments: list[Any] = []
    for value in values:
        try:
            moment = None if value is None else type_.fromisoformat(value)
        except (TypeError, ValueError):
            return None
        if moment is not None and (moment.isoformat() != value or getattr(moment, "tzinfo", None) is not None):
            return None
        moments.append(moment)
    return moments


def _outward(value: float | int | None, *, up: bool) -> float | None:
    """The end of an interval as a binary number: exact up to 2^53, beyond it never further inside."""
    if value is None or isinstance(value, float):
        return value
    try:
        near = float(value)
    except OverflowError:
        largest = math.nextafter(math.inf, 0)
        return (math.inf if up else largest) if value > 0 else (-largest if up else -math.inf)
    inside = near < value if up else near > value
    return math.nextafter(near, math.inf if up else -math.inf) if inside else near


def _to_arrow_stream(table: Table) -> bytes:
    arrow, made = _arrow_table(table)
    sink = arrow.base.BufferOutputStream()
    with arrow.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


def _to_arrow_file(table: Table) -> bytes:
    arrow, made = _arrow_table(table)
    sink = arrow.base.BufferOutputStream()
    with arrow.ipc.new_file(sink, made.schema) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


def _to_parquet(table: Table) -> bytes:
    arrow, made = _arrow_table(table)
    sink = arrow.base.BufferOutputStream()
    arrow.parquet.write_table(made, sink)
    return bytes(sink.getvalue())


JSON = Format("application/json", "application/json", "json", needs_arrow=False, write=None)
_CSV = Format("text/csv", "text/csv; charset=utf-8; header=present", "csv", needs_arrow=False, write=to_csv)
_STREAM, _FILE, _PARQUET = (
    Format(media_type, media_type, extension, needs_arrow=True, write=write)
    for media_type, extension, write in (
        ("application/vnd.apache.arrow.stream", "arrows", _to_arrow_stream),
        ("application/vnd.apache.arrow.file", "arrow", _to_arrow_file),
        ("application/vnd.apache.parquet", "parquet", _to_parquet),
    )
)
FORMATS: tuple[Format, ...] = (JSON, _CSV, _STREAM, _FILE, _PARQUET)
"""Every format, in the order in which they are preferred when `Accept` does not prefer."""
