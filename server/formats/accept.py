"""Which format the header Accept asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from server.errors import Problem
from server.formats.columnar import arrow_modules
from server.formats.known import FORMATS, Format, available

__all__ = ["negotiate", "rank"]


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
            arrow = await run_in_threadpool(arrow_modules) is not None
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
