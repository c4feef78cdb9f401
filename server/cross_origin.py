"""Dashboards in pages of other origins: tiles are readable there where the operator allows the origin.

An origin is compared as a whole with the list of `cors_origins`; none is allowed by a pattern, and credentials of a
browser (cookies) are never asked for: this server has none. Nothing but GET of tiles is opened, so a page of an allowed
origin can do no more than read what its user's key or link reads.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["ORIGIN", "CrossOrigin"]

ORIGIN = re.compile(r"https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?\Z", re.ASCII)
"""What an origin looks like: scheme, host and port, in small letters, without a path."""

_TILES = re.compile(r"/v1/dashboards/[^/]+/tiles/[^/]+(/history)?\Z")
_PREFLIGHT = (
    (b"access-control-allow-methods", b"GET"),
    (b"access-control-allow-headers", b"authorization, if-none-match, accept"),
    (b"access-control-max-age", b"600"),
)
_EXPOSED = (
    b"access-control-expose-headers",
    b"etag, noisegate-tile-state, noisegate-as-of, noisegate-data-version, noisegate-confidence, x-request-id",
)


class CrossOrigin:
    """Around the routes: adds what browsers ask for to tiles, for allowed origins."""

    def __init__(self, app: ASGIApp, *, origins: Collection[str]) -> None:
        self._app = app
        self._origins = frozenset(origin.encode() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._origins or _TILES.match(scope["path"]) is None:
            await self._app(scope, receive, send)
            return
        asked = [value for name, value in scope["headers"] if name == b"origin"]
        allowed = len(asked) == 1 and asked[0] in self._origins
        if allowed and scope["method"] == "OPTIONS":
            headers = [(b"access-control-allow-origin", asked[0]), (b"vary", b"Origin"), *_PREFLIGHT]
            await send({"type": "http.response.start", "status": 204, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                # In either case, so that a cache keeps no answer for an origin that is not allowed.
                message["headers"] = [*message["headers"], (b"vary", b"Origin")]
                if allowed:
                    message["headers"] += [(b"access-control-allow-origin", asked[0]), _EXPOSED]
            await send(message)

        await self._app(scope, receive, send_named)
