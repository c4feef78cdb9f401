"""Refusals below the floor that name what is accepted in their place: the least price, found by asking it.

Sessions, models, synthetic tables and statistics each have a price of their own kind, which the floor (server/floor.py)
judges after it is known. So that a refusal names a number that is accepted, the request is priced again with other
amounts, by the code that refused it. Nothing but declarations, the price and the account is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from accountant.account import Account
from privacy.loss import Loss
from privacy.numbers import decimal_text
from privacy.refusal import Finding, Refused
from server.floor import Floor
from server.least_spend import four_digits

__all__ = ["LARGER", "BelowFloor", "Shortfall", "above_floor", "require_worth"]

LARGER = "ask an administrator for a larger budget, or for a smaller epsilon_min"
"""What helps where no price is accepted."""

_FASTER = 16

T = TypeVar("T")


class BelowFloor(Exception):
    """A price is worth less than the looks at rows that it pays for.

    `looks` is how many it is worth, None where it buys no noise of which that could be said.
    """

    def __init__(self, floor: Floor, looks: int | None) -> None:
        self.floor = floor
        self.looks = looks
        super().__init__("the price is below the floor")


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What a refusal says: the floor of one look, how many looks the price is worth, and the least one accepted."""

    floor: Floor
    looks: int | None
    least: Fraction | None

    @property
    def of_one(self) -> str:
        """The floor of one look, as epsilon of the whole budget."""
        return decimal_text(self.floor.epsilon)

    @property
    def worth(self) -> str:
        """A sentence: how many looks the price is worth."""
        return "" if self.looks is None else f" This epsilon is worth {self.looks} of them."

    def greater(self, field: str) -> str:
        """What is accepted in place of the price: a field of a request's body, and the option of a command."""
        if self.least is None:
            return LARGER
        least, option = decimal_text(self.least), f"--{field.replace('_', '-')}"
        return f'"{field}": "{least}", or {option} {least}'

    def spend(self, *, own: bool) -> str:
        """The same of a request that names its price as a spend."""
        if self.least is None:
            return LARGER
        field, least = "own_epsilon" if own else "epsilon", decimal_text(self.least)
        return f'"spend": {{"{field}": "{least}"}}, or --{field.replace("_", "-")} {least}'


def require_worth(floor: Floor, loss: Loss, *, looks: int = 1) -> None:
    """Nothing where a price is worth so many looks at rows. Errors: BelowFloor."""
    if floor.missing(loss, runs=looks) > 1:
        raise BelowFloor(floor, floor.looks(loss))


def above_floor(
    attempt: Callable[[Fraction], T],
    asked: Fraction,
    *,
    most: Fraction,
    loss: Callable[[T], Loss],
    path: Sequence[Account],
    refused: Callable[[Shortfall], Finding],
) -> T:
    """What `attempt` makes of the asked epsilon; where that is below the floor, a refusal with the least that is not.

    `attempt` raises BelowFloor, or Refused for anything else; `most` is the greatest epsilon that is tried. A price,
    the `loss` of what is made, that an account of the path cannot pay is not named.
    Requires: whoever is above the floor at an epsilon is so at every greater one.
    Errors: Refused.
    """
    try:
        return attempt(asked)
    except BelowFloor as below:
        least = _least(attempt, asked, most=most, loss=loss, path=path)
        raise Refused([refused(Shortfall(below.floor, below.looks, least))]) from None


def _least(
    attempt: Callable[[Fraction], T],
    asked: Fraction,
    *,
    most: Fraction,
    loss: Callable[[T], Loss],
    path: Sequence[Account],
) -> Fraction | None:
    """The least epsilon of four digits above `asked` that is accepted and can be paid; None where there is none."""

    def above(epsilon: Fraction) -> bool:
        try:
            attempt(epsilon)
        except BelowFloor:
            return False
        except Refused:
            return True
        return True

    low, high = asked, four_digits(asked * _FASTER)
    while not above(min(high, most)):
        if high >= most:
            return None
        low, high = high, four_digits(high * _FASTER)
    high = min(high, most)
    while (middle := four_digits((low + high) / 2)) < high:
        if above(middle):
            high = middle
        else:
            low = middle
    try:
        whole = loss(attempt(high))
    except Refused:
        return None
    return high if all(account.admits(whole) for account in path) else None
