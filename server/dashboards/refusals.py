"""Why a dashboard is not made, changed or read."""

from __future__ import annotations

from accountant.account import Account
from privacy.numbers import decimal_text
from server.dashboards.links import LinkFault
from server.dashboards.terms import Envelope, TileWish
from server.errors import Problem

__all__ = [
    "link_refused",
    "no_answer_yet",
    "no_such_format",
    "too_expensive",
    "too_large",
    "too_many",
    "too_many_links",
    "two_credentials",
    "unsuitable",
]


def too_large(envelope: Envelope, above: Account) -> Problem:
    """An envelope beyond the account above it."""
    delta = "" if envelope.delta is None else f" and delta {decimal_text(envelope.delta)}"
    return Problem(
        "policy_forbids",
        what=f"an envelope of epsilon {decimal_text(envelope.epsilon)}{delta} is refused",
        why=f"Your budget has the limit epsilon {decimal_text(above.limit.epsilon)} and delta "
        f"{decimal_text(above.limit.delta)}, and an envelope lies within it.",
        instead=("Ask for a smaller envelope.", "GET /v1/budgets shows your budget."),
    )


def too_expensive(tile: TileWish, envelope: Envelope) -> Problem:
    """A tile of which not one refresh is affordable."""
    return Problem(
        "policy_forbids",
        what=f'the spend of tile "{tile.name}" is refused',
        why=f"One refresh would cost more than the whole envelope of epsilon {decimal_text(envelope.epsilon)}.",
        instead=("Ask for a smaller spend, or for a larger envelope.",),
    )


def unsuitable(why: str) -> Problem:
    """An envelope that the ledger does not open."""
    return Problem(
        "policy_forbids",
        what="the envelope is refused",
        why=f"{why[:1].upper()}{why[1:]}.",
        instead=("Ask for another envelope.",),
    )


def too_many(most: int) -> Problem:
    """More dashboards than a principal may have."""
    return Problem(
        "conflict",
        what="you have too many dashboards",
        why=f"A principal has at most {most}.",
        instead=("Remove one: DELETE /v1/dashboards/{dashboard_id}",),
    )


def too_many_links(most: int) -> Problem:
    """More links than a dashboard may have."""
    return Problem(
        "conflict",
        what="the dashboard has too many links",
        why=f"It has at most {most} that were not revoked.",
        instead=("Revoke one: DELETE /v1/dashboards/{dashboard_id}/links/{link_id}",),
    )


def no_answer_yet() -> Problem:
    """A tile without a table, in a format that is nothing but a table."""
    return Problem(
        "unavailable",
        what="the tile has no answer yet",
        why="Its first refresh is not done, or ended without one. Nothing was charged by this request.",
        instead=("Ask again later.", "The tile as JSON, without an extension, says its state."),
        headers={"Retry-After": "5"},
    )


def no_such_format() -> Problem:
    """A format that this server cannot send."""
    return Problem(
        "not_acceptable",
        what="the tile is not sent in this format",
        why="This server lacks an optional library for it.",
        instead=("Ask for .json or .csv.", "Ask the operator to install noisegate[arrow]."),
    )


def two_credentials() -> Problem:
    """A request with a key and a link."""
    return Problem(
        "unauthenticated",
        what="the request has a link and an API key",
        why="It may be one of them: which one counts should be no guess.",
        instead=("Leave the header Authorization away, or the parameter link.",),
    )


def link_refused(fault: LinkFault) -> Problem:
    """A link that opens nothing. Never repeats its token."""
    why = {
        LinkFault.INVALID: "It is not one of this server for this dashboard, or it was mistyped.",
        LinkFault.EXPIRED: "It has expired.",
        LinkFault.REVOKED: "It was revoked.",
    }[fault]
    return Problem(
        "unauthenticated",
        what="the link is not accepted",
        why=why,
        instead=("Ask the dashboard's owner for a new link.",),
    )
