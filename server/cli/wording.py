"""Advice of a server, which speaks of routes, headers and fields, in the words of the command line."""

from __future__ import annotations

import re

__all__ = ["as_commands"]

_COMMANDS = {
    "GET /v1/budgets": "noisegate budget show",
    "GET /v1/capabilities": "docs/sql.md",
    "GET /v1/datasets": "noisegate datasets",
    "GET /v1/datasets/{dataset}": "noisegate describe DATASET",
    "GET /v1/datasets/{name}": "noisegate describe DATASET",
    "POST /v1/estimates": "noisegate estimate",
    "POST /v1/queries": "noisegate query",
}
"""What shows on a command line what a route shows. Advice about other routes is left out there."""

_ROUTE = re.compile(r"\b(?:GET|HEAD|POST|PUT|PATCH|DELETE) /v1[\w/{}.]*(?<!\.)")

_REWRITTEN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        # Advice that names both ways keeps the one that is of use here.
        (r'^"\w+": .+?(?: in the request)?, or (?=--)', ""),
        (r'"\w+": [^()]+ \(or (--[^()]+)\)', r"\1"),
        (r" on a command line\b", ""),
        (r'\b[A-Z]+ /v1\S* \(or "(noisegate [a-z ]+)"\)', r"\1"),
        (r"\b[A-Z]+ /v1\S*, or (?:on the server: )?(?=noisegate )", ""),
        (r"^Check the address and the identifier;.*", "See what there is: noisegate datasets"),
        (r"^Send the header Authorization:.*", "Set NOISEGATE_KEY, or use --key-file FILE."),
        (r"^Send a smaller body\..*", "Ask a shorter statement."),
        (r"^Wait for the seconds of the header Retry-After\b.*", "Wait a moment, then ask again."),
        (r"^Try again after the seconds of the header Retry-After\.", "Try again in a moment."),
        (r"^Send the query again with a new Idempotency-Key\.", "Ask again."),
        (r"^Send the same body with\b", "Ask again with"),
        (r"\bIdempotency-Key\b", "--idempotency-key"),
        (r"\bthe field budget\b", "--budget"),
        (r"^See /docs\b.*", "See the options with --help."),
    )
)


def as_commands(advice: str) -> str:
    """A line of a server's advice with commands and options in place of routes and fields.

    Empty where it speaks of a route that no command of this program asks.
    """
    for pattern, words in _REWRITTEN:
        advice = pattern.sub(words, advice)
    if any(route not in _COMMANDS for route in _ROUTE.findall(advice)):
        return ""
    return _ROUTE.sub(lambda match: _COMMANDS[match[0]], advice)
