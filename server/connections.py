"""Connections: how many, for how long without a request, and which one gives way when there are too many.

A connection *waits* while the head of its next request is not complete: new, slow, or kept alive and idle. It is *busy*
from then until the response has left. A waiting connection serves only the client that holds it, so it gives way:

    too many of one address   the one of that address that has waited longest is closed
    too many in all           the one that has waited longest is closed
    all of them busy          the new one is in reserve: it gets health and readiness, and 503 for the rest
    the reserve is full       the one in reserve that has been there longest is closed

So nobody can keep others from being served by connections that ask for nothing, and an operator's probe is answered
even while every connection is busy. Heads have a limit of time and size, and so has the time of a client that does not
read.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from server.log import logger
from server.settings import CONNECTION_BACKLOG, Settings

__all__ = ["ConnectionLimits", "Connections", "LimitedProtocol", "limited_protocol"]

RESERVE = 32
"""Connections beyond the limit that get health and readiness."""

OTHER_FILES = 256
"""Descriptors for everything but connections: workers, the ledger, data, logs."""

_HEAD_BYTES_MAX = 65_536
_STALL_SECONDS = 30.0
_RESERVE_SECONDS = 2.0
_REPORT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one server process. Connections of `trusted` networks (proxies) have no limit per address."""

    total: int
    per_address: int
    header_seconds: float
    trusted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert self.total >= 1
        assert self.per_address >= 1
        assert self.header_seconds > 0


class Closable(Protocol):
    """A connection as the limits see it."""

    def give_way(self) -> None:
        """Closes it. It leaves the limits at once."""


class Connections:
    """Who is connected. For one event loop."""

    def __init__(self, limits: ConnectionLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds, for the log only."""
        self._limits = limits
        self._clock = clock
        self._trusted = [ipaddress.ip_network(one, strict=False) for one in limits.trusted if _is_network(one)]
        self._everybody = "*" in limits.trusted
        self._addresses: dict[Closable, str] = {}
        self._counts: Counter[str] = Counter()
        # In the order in which they began to wait.
        self._waiting: OrderedDict[Closable, None] = OrderedDict()
        self._reserve: OrderedDict[Closable, None] = OrderedDict()
        self._reported = -_REPORT_SECONDS

    @property
    def count(self) -> int:
        """Connections within the limits."""
        return len(self._addresses)

    @property
    def reserved(self) -> int:
        """Connections in reserve."""
        return len(self._reserve)

    def enter(self, connection: Closable, address: str) -> bool:
        """A new connection, which waits. Returns False when it is in reserve. Others, or itself, may be closed."""
        full = self._counts[address] >= self._limits.per_address and not self._is_trusted(address)
        if full:
            self._report("connections_of_one_address")
            if not self._close_first(one for one in self._waiting if self._addresses[one] == address):
                return self._enter_reserve(connection)
        if self.count >= self._limits.total:
            self._report("connections_full")
            if not self._close_first(self._waiting):
                return self._enter_reserve(connection)
        self._addresses[connection] = address
        self._counts[address] += 1
        self._waiting[connection] = None
        return True

    def busy(self, connection: Closable) -> None:
        """The head of a request has arrived."""
        self._waiting.pop(connection, None)

    def waits(self, connection: Closable) -> None:
        """The response has left."""
        if connection in self._addresses:
            self._waiting[connection] = None

    def leave(self, connection: Closable) -> None:
        """The connection has ended. The second time nothing happens."""
        self._waiting.pop(connection, None)
        self._reserve.pop(connection, None)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def _enter_reserve(self, connection: Closable) -> bool:
        if len(self._reserve) >= RESERVE:
            oldest, _ = self._reserve.popitem(last=False)
            oldest.give_way()
        self._reserve[connection] = None
        return False

    def _close_first(self, connections: Iterable[Closable]) -> bool:
        """Closes the first of some connections. Returns False when there is none."""
        oldest = next(iter(connections), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.give_way()
        return True

    def _is_trusted(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return self._everybody or any(parsed in network for network in self._trusted)

    def _report(self, event: str) -> None:
        """A line for the operator, at most once in a while. No address: that is for the proxy's log."""
        now = self._clock()
        if now - self._reported >= _REPORT_SECONDS:
            self._reported = now
            logger().warning(event)


class LimitedProtocol(HttpToolsProtocol):
    """One connection of the web server within the limits."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
    ) -> None:
        """For the web server."""
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._all = _connections_of(server_state, limits)
        self._in_reserve = False
        self._is_busy = False
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self._in_reserve = not self._all.enter(self, address)
        if self._in_reserve:
            self.app_state = {**self.app_state, "in_reserve": True}
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._all.leave(self)
        self._cancel_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        if not self._is_busy:
            if not self._head_bytes:
                self._expect_head()
            self._head_bytes += len(data)
        super().data_received(data)
        if not self._is_busy and self._head_bytes > _HEAD_BYTES_MAX:
            self.give_way()

    def on_headers_complete(self) -> None:
        """The head of a request has arrived."""
        self._is_busy = True
        self._head_bytes = 0
        self._all.busy(self)
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()
        if self._in_reserve and self.cycle is not None:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """A response has been written."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.pipeline:
            self._is_busy = False
            self._all.waits(self)
            # A connection that is kept alive is closed sooner; this is for a client that does not read the end.
            self._expect_head(after=self.timeout_keep_alive)

    def pause_writing(self) -> None:
        """The client does not read what is sent."""
        super().pause_writing()
        if self._stall_timer is None:
            self._stall_timer = self.loop.call_later(_STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def give_way(self) -> None:
        """Closes the connection at once, also when it is closing and its client does not read."""
        self._all.leave(self)
        self._cancel_timers()
        self._unset_keepalive_if_required()
        self.transport.abort()

    def _expect_head(self, *, after: float = 0.0) -> None:
        """Gives the next request's head its time."""
        if self._head_timer is not None:
            self._head_timer.cancel()
        seconds = self._limits.header_seconds
        if self._in_reserve:
            seconds = min(seconds, _RESERVE_SECONDS)
        self._head_timer = self.loop.call_later(after + seconds, self.give_way)

    def _cancel_timers(self) -> None:
        for timer in (self._head_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._stall_timer = None


_BY_SERVER: weakref.WeakKeyDictionary[ServerState, Connections] = weakref.WeakKeyDictionary()


def _connections_of(state: ServerState, limits: ConnectionLimits) -> Connections:
    """The connections of one running server."""
    known = _BY_SERVER.get(state)
    if known is None:
        known = _BY_SERVER[state] = Connections(limits)
    return known


def limited_protocol(settings: Settings) -> Callable[..., asyncio.Protocol]:
    """What the web server makes of each connection. Raises the process's limit of open files where that is needed."""
    wanted = settings.connections_max + RESERVE + CONNECTION_BACKLOG + OTHER_FILES
    room = _files_allowed(wanted) - (wanted - settings.connections_max)
    total = max(1, min(settings.connections_max, room))
    if total < settings.connections_max:
        logger().warning("connections_limited_by_open_files", count=total)
    limits = ConnectionLimits(
        total=total,
        per_address=min(settings.connections_per_address, total),
        header_seconds=settings.header_timeout_seconds,
        trusted=settings.trusted_proxies,
    )
    return partial(LimitedProtocol, limits=limits)


def _files_allowed(wanted: int) -> int:
    """How many files this process may open, after asking for as many as are wanted."""
    try:
        import resource
    except ImportError:  # not on this platform
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    new = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (new, hard))
    except (OSError, ValueError):
        return soft
    return new


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
