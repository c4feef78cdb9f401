"""Reading tiles: what a process knows of a dashboard for a quarter of a second, and bodies that it made before.

A thousand polls a second ask the database four times a second for each dashboard. What this process changes is seen by
it at once; what another one changed, after `FRESH_SECONDS` at most: a link that was revoked there opens so long.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from starlette.concurrency import run_in_threadpool

from accountant.request import QueryRecord
from privacy.values import Json
from server.dashboards import refusals
from server.dashboards.content import Body, Shown, history_body, shown_of, tile_body
from server.formats import JSON, Format
from server.formats.columnar import arrow_modules
from server.sealing import Seal, SealBroken
from server.store.dashboards import DashboardRow, LinkRow, TileRow
from server.store.registry import Registry

__all__ = ["FRESH_SECONDS", "Reader", "Seen"]

FRESH_SECONDS = 0.25
_DASHBOARDS, _ANSWERS = 1_024, 64
_ANSWER_MAX = 1 << 18
"""Largest answer, in bytes, whose table is kept; bodies of larger ones are."""

_BODIES_BYTES = 64 << 20
"""Most bytes of bodies that are kept. One that is larger is made for each poll."""

_LOOK_SECONDS = 0.5


class Answers(Protocol):
    """What has stored answers."""

    def query(self, query_id: str) -> QueryRecord | None:
        """The query of that identifier."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A dashboard with its tiles in order, its readers and its links, as they were a moment ago."""

    row: DashboardRow
    title: str | None
    tiles: Mapping[str, TileRow]
    titles: Mapping[str, str | None]
    readers: frozenset[str]
    links: Mapping[str, LinkRow]

    def __iter__(self) -> Iterator[TileRow]:
        return iter(self.tiles.values())


@dataclass(slots=True)
class Reader:
    """What one process reads tiles with. Safe to use from many threads."""

    registry: Registry
    answers: Answers
    seal: Seal
    _seen: OrderedDict[str, tuple[float, Seen | None]] = field(default_factory=OrderedDict)
    _shown: OrderedDict[str, Shown] = field(default_factory=OrderedDict)
    _bodies: OrderedDict[tuple[object, ...], Body] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def seen(self, dashboard: str) -> Seen | None:
        """The dashboard; None where there is none, or it is closed."""
        known = self._seen.get(dashboard)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        return await run_in_threadpool(self.look, dashboard)

    def look(self, dashboard: str) -> Seen | None:
        """The same, from the database. One thread asks while others wait, so that polls do not all ask at once."""
        with self._lock:
            known = self._seen.get(dashboard)
            if known is not None and known[0] > time.monotonic():
                return known[1]
            found = self._read(dashboard)
            self._seen[dashboard] = (time.monotonic() + FRESH_SECONDS, found)
            self._seen.move_to_end(dashboard)
            while len(self._seen) > _DASHBOARDS:
                self._seen.popitem(last=False)
        return found

    def forget(self, dashboard: str) -> None:
        """Reads a dashboard anew when it is asked for next."""
        with self._lock:
            self._seen.pop(dashboard, None)

    async def tile(self, dashboard: str, name: str, format_: Format) -> Body | None:
        """A tile in a format; None where it is not there. Never spends. Errors: Problem."""
        seen = await self.seen(dashboard)
        tile = None if seen is None else seen.tiles.get(name)
        if seen is None or tile is None:
            return None
        title, paused = seen.titles[name], seen.row.paused is not None
        key = (tile.id, tile.query, tile.as_of, tile.state, paused, title, format_.extension)
        known = self._bodies.get(key)
        return known if known is not None else await run_in_threadpool(self._made, key, seen, tile, format_)

    async def changed_tile(
        self,
        dashboard: str,
        name: str,
        format_: Format,
        *,
        after: str,
        seconds: float,
        stopping: Callable[[], bool],
    ) -> Body | None:
        """The same, once its ETag is another one than `after`, when so many seconds have passed, or at a shutdown."""
        until = time.monotonic() + seconds
        while True:
            body = await self.tile(dashboard, name, format_)
            left = until - time.monotonic()
            if body is None or body.etag != after or left <= 0 or stopping():
                return body
            await asyncio.sleep(min(_LOOK_SECONDS, left))

    def history(self, seen: Seen, tile: TileRow, format_: Format, *, count: int) -> Body:
        """The last refreshes of a tile that have an answer, the oldest first. Errors: Problem."""
        _require(format_)
        found = ((one.at, self._answer(one.query)) for one in self.registry.refreshes(tile.id, count=count))
        points = [(at, shown) for at, shown in found if shown is not None]
        if not points and format_ is not JSON:
            raise refusals.no_answer_yet()
        about: dict[str, Json] = {"dashboard": seen.row.id, "tile": tile.name, "title": seen.titles[tile.name]}
        return history_body(points, about, format_, headers={}, filename=f"{tile.name}-history")

    def _made(self, key: tuple[object, ...], seen: Seen, tile: TileRow, format_: Format) -> Body:
        shown = self._answer(tile.query)
        _require(format_)
        if shown is None and format_ is not JSON:
            raise refusals.no_answer_yet()
        paused = seen.row.paused is not None
        warnings: Sequence[Json] = [] if shown is None else list(shown.warnings)
        about: dict[str, Json] = {
            "dashboard": seen.row.id,
            "tile": tile.name,
            "title": seen.titles[tile.name],
            "state": tile.state,
            "paused": paused,
            "as_of": tile.as_of,
            "data_version": None if shown is None else shown.data_version,
            "confidence": None if shown is None else shown.confidence,
            "warnings": warnings,
        }
        headers = {"Noisegate-Tile-State": "paused" if paused else tile.state}
        if shown is not None:
            headers |= {
                "Noisegate-As-Of": tile.as_of or "",
                "Noisegate-Data-Version": shown.data_version,
                "Noisegate-Confidence": str(shown.confidence),
            }
        body = tile_body(shown, about, format_, headers=headers, filename=tile.name)
        with self._lock:
            if key not in self._bodies:
                self._bodies[key] = body
                self._bytes += len(body.content)
            while self._bytes > _BODIES_BYTES:
                self._bytes -= len(self._bodies.popitem(last=False)[1].content)
        return body

    def _answer(self, query: str | None) -> Shown | None:
        """The table of a stored answer; None where there is none any more."""
        if query is None:
            return None
        known = self._shown.get(query)
        if known is not None:
            return known
        record = self.answers.query(query)
        if record is None or record.answer is None:
            return None
        shown = shown_of(record.answer)
        if len(record.answer) > _ANSWER_MAX:
            return shown
        with self._lock:
            self._shown[query] = shown
            while len(self._shown) > _ANSWERS:
                self._shown.popitem(last=False)
        return shown

    def _read(self, dashboard: str) -> Seen | None:
        row = self.registry.dashboard(dashboard)
        if row is None or row.closed is not None:
            return None
        tiles, owner = self.registry.tiles(dashboard), self.registry.principal(row.principal)
        # Links are credentials of the owner's: they open nothing while the owner's keys do not.
        links = self.registry.links(dashboard) if owner is not None and owner.disabled is None else ()
        return Seen(
            row=row,
            title=self._title(row.sealed, row.id),
            tiles={tile.name: tile for tile in tiles},
            titles={tile.name: self._title(tile.sealed, tile.id) for tile in tiles},
            readers=frozenset(self.registry.readers(dashboard)),
            links={link.id: link for link in links},
        )

    def _title(self, sealed: bytes, identifier: str) -> str | None:
        try:
            return str(json.loads(self.seal.decrypted(sealed, bound_to=identifier))["title"])
        except SealBroken:
            return None


def _require(format_: Format) -> None:
    """Errors: Problem where the format needs a library that is not there."""
    if format_.needs_arrow and arrow_modules() is None:
        raise refusals.no_such_format()
