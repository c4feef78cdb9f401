"""Replies to administrators under an Idempotency-Key: claimed before the act, kept after it.

A claim without a reply is an act whose outcome is not known: it may be under way, or its process died. It is never done
again under that key, so an act happens at most once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from server.store.tables import replies

__all__ = ["KEPT_DAYS", "ClaimedAlready", "OtherRequest", "Reply", "claim", "drop", "keep"]

KEPT_DAYS = 30
"""How long a reply is kept at least."""


class OtherRequest(Exception):
    """The key was used before for another request."""


class ClaimedAlready(Exception):
    """The request was begun before, and its outcome is not known."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What was answered: status, the headers that belong to it, and the body's text."""

    status: int
    headers: Mapping[str, str]
    body: str


def claim(
    connection: Connection, principal: str, key: str, *, request_hash: str, now: str, forget_before: str
) -> Reply | None:
    """Claims the key for a request, or returns the reply that there is. Commits.

    Errors: OtherRequest; ClaimedAlready.
    """
    connection.execute(delete(replies).where(replies.c.created < forget_before))
    row = {"principal": principal, "idempotency_key": key, "request_hash": request_hash, "created": now}
    try:
        with connection.begin_nested():
            connection.execute(insert(replies).values(**row))
    except IntegrityError:
        pass
    else:
        connection.commit()
        return None
    mine = (replies.c.principal == principal, replies.c.idempotency_key == key)
    found = connection.execute(select(replies).where(*mine)).one()
    connection.commit()
    if found.request_hash != request_hash:
        raise OtherRequest
    if found.status is None:
        raise ClaimedAlready
    return Reply(found.status, json.loads(found.headers), found.body)


def keep(connection: Connection, principal: str, key: str, reply: Reply) -> None:
    """Keeps the reply to a claimed request. Commits."""
    mine = (replies.c.principal == principal, replies.c.idempotency_key == key)
    values = {"status": reply.status, "headers": json.dumps(dict(reply.headers)), "body": reply.body}
    connection.execute(update(replies).where(*mine).values(**values))
    connection.commit()


def drop(connection: Connection, principal: str, key: str) -> None:
    """Gives a claim back: nothing was done under it. Commits."""
    mine = (replies.c.principal == principal, replies.c.idempotency_key == key, replies.c.status.is_(None))
    connection.execute(delete(replies).where(*mine))
    connection.commit()
