"""Pricing and reserving until both see one account: nothing is charged above the price that was computed.

What a spend takes of an account depends on what the account paid for before. Where it pays for something else between
price and reservation, the ledger refuses to charge more (PriceMoved), and the attempt is made again from its price on.
Everything that is charged at the price of an account goes through here: queries, profiles, models, synthetic tables.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from accountant.errors import PriceMoved
from server.errors import Problem

__all__ = ["PRICINGS_MAX", "at_agreed_price", "moved"]

PRICINGS_MAX = 20
"""Most attempts: each one that fails was overtaken by a charge of somebody else."""

T = TypeVar("T")


def at_agreed_price(attempt: Callable[[], T], *, refused: Callable[[], Exception]) -> T:
    """What `attempt` returns, which prices and then reserves; made again while the price moves in between.

    Errors: those of `attempt`, but PriceMoved; `refused()` when the price moved in every attempt.
    """
    for _ in range(PRICINGS_MAX):
        with contextlib.suppress(PriceMoved):
            return attempt()
    raise refused()


def moved(thing: str) -> Problem:
    """The refusal of what had another price each time that it was to be reserved, such as "the query"."""
    return Problem(
        "conflict",
        what=f"{thing} could not be priced",
        why="The account paid for other queries again and again in between, and each changed the price.",
        instead=("Send the request again.", "Send fewer requests with different kinds of noise at once."),
        headers={"Retry-After": "1"},
    )
