"""Why what is charged once is refused, or says nothing: what several kinds say in the same words."""

from __future__ import annotations

from fractions import Fraction

from privacy.numbers import decimal_text
from privacy.refusal import Finding
from server.above_floor import Shortfall
from server.errors import Problem

__all__ = ["above_most", "below_floor", "dataset_away", "is_over", "no_noise", "not_planned", "other_relation"]


def above_most(thing: str, most: Fraction, *instead: str, field: str | None = None) -> Finding:
    """Why "a model", or another thing, above the policy's greatest price is refused."""
    return Finding(
        code="policy_forbids",
        what=f"{thing} at this price is refused",
        why=f"The dataset lets one question have an epsilon of {decimal_text(most)} at most, and {thing} is one.",
        instead=(f"name an epsilon of {decimal_text(most)} at most", *instead),
        field=field,
    )


def below_floor(thing: str, short: Shortfall, *, own: bool) -> Finding:
    """Why a price below the floor of one look is refused; `own`: it was named as that of the thing itself."""
    return Finding(
        code="policy_forbids",
        what=f"{thing} at this price is refused",
        why=f"It reads rows, and is worth the dataset's floor at least, epsilon {short.of_one} of the whole budget.",
        instead=(short.spend(own=own),),
    )


def no_noise(what: str, why: str, *instead: str, field: str | None = None) -> Finding:
    """Why noise cannot be drawn at a price."""
    return Finding(
        code="accuracy_unreachable",
        what=what,
        why=f"Its noise cannot be drawn at this price: {why}.",
        instead=instead or ("name another epsilon",),
        field=field,
    )


def not_planned(what: str, *instead: str) -> Finding:
    """Why statements that the engine cannot plan are refused before they are charged."""
    return Finding(
        code="cannot_be_planned",
        what=what,
        why="The engine cannot plan it on an empty copy of the tables. That is a fault of this server.",
        instead=(*instead, "tell the operator"),
    )


def other_relation(what: str, things: str, *instead: str) -> Finding:
    """Why a session over a sum is refused whose neighbours are not those of the proof."""
    return Finding(
        code="unsupported_sql",
        what=what,
        why=f"Its sensitivity is not about a unit that is added or removed, for which {things} are proved.",
        instead=instead,
    )


def is_over(thing: str, why: str, *, stays: str = "", again: str) -> Problem:
    """Why a session that is over says nothing more. `stays` is what does, `again` where another one is opened."""
    return Problem(
        "conflict",
        what=f"the {thing} is over",
        why=f"It says nothing more: {why}. {stays or 'Nothing was charged'}.",
        instead=(f"Open another one with POST {again}.",),
    )


def dataset_away(thing: str, *, again: str) -> Problem:
    """What a session says while its dataset is not served."""
    return Problem(
        "unavailable",
        what=f"the dataset of the {thing} is not served",
        why=f"It was removed, or cannot be read at the moment. The {thing} stays as it is.",
        instead=(again,),
        headers={"Retry-After": "60"},
    )
