"""If-Match: a change that is made only to the state that its author has read (RFC 9110, section 13.1.1)."""

from __future__ import annotations

from fastapi import Request

from server.errors import Problem

__all__ = ["ANY", "if_match"]

ANY = "*"
"""The tag that fits everything that exists."""


def if_match(request: Request) -> str | None:
    """The strong tag of the header If-Match without its quotes, `ANY` for *, None without the header.

    Errors: Problem invalid_request for several tags and for weak ones: a change replaces one state.
    """
    values = request.headers.getlist("if-match")
    if not values:
        return None
    text = values[0].strip()
    if len(values) == 1 and text == ANY:
        return ANY
    tag = text[1:-1]
    if len(values) > 1 or len(text) < 3 or not (text[0] == text[-1] == '"') or '"' in tag:
        raise Problem(
            "invalid_request",
            what="the header If-Match is not accepted",
            why="It is one strong tag in double quotes, or *.",
            instead=("Send the ETag of the GET at the same address as it is.",),
        )
    return tag
