"""Methods of addresses: HEAD wherever GET is, and every method that an address offers."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Scope, Send

__all__ = ["allowed_methods", "as_get", "without_body"]


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> tuple[str, ...]:
    """Every method that the address of a request offers, in alphabetical order; empty when there is no such address.

    One route serves one method: the framework names the methods of the first route that fits the address only.
    """
    methods: set[str] = set()
    for route in routes:
        if isinstance(route, APIRoute) and route.matches(scope)[0] is not Match.NONE:
            methods |= route.methods or set()
    if "GET" in methods:
        methods.add("HEAD")
    return tuple(sorted(methods))


def as_get(scope: Scope) -> Scope:
    """The request that a HEAD stands for: its answer has the same status and headers."""
    return {**scope, "method": "GET"}


def without_body(send: Send) -> Send:
    """Sends the start of a response, and an empty body in place of its own."""
    sent = False

    async def send_start(message: Message) -> None:
        nonlocal sent
        if message["type"] != "http.response.body":
            await send(message)
        elif not sent:
            sent = True
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return send_start
