"""What a spend buys on an account with a history: the greatest amount of a family that costs no more than was asked.

The nominal amount of a spend is the share of a budget that it names. What the ledger deducts is the fall of the
remainder, which is the unused share of the branch used least (accountant/account.py). The two differ where a charge
takes more of that branch than of the one in which it is counted, or closes it: then less than the nominal amount is
bought.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from accountant.account import Account
from mechanisms.amounts import amount_at, index_up
from privacy.loss import ZERO_LOSS, Loss

__all__ = ["affordable_amount"]

_INTERPOLATIONS = 12
"""Steps of the search that follow the costs seen so far; later ones halve."""


def affordable_amount(
    by_core: Callable[[Fraction], Sequence[Loss]],
    *,
    nominal: Fraction,
    asked: Fraction,
    power: int,
    leaf: Account,
    covered: Callable[[Sequence[Loss]], bool],
) -> Fraction | None:
    """The nominal amount, or the greatest smaller one of the grid whose cost on the account is at most `asked`.

    `by_core` returns the losses of an amount, which grows with this `power` of one over the scale of the noise;
    `covered` says whether an answer may cost as little as these. None when no amount that may be bought costs so
    little. Where more is asked for than remains it is the nominal amount, which the ledger refuses: a smaller answer
    would empty the account unasked.
    Requires: the cost never falls with the amount (no measure of its loss does).
    Errors: ValueError when there is no noise for the nominal amount.
    """

    def cost(losses: Sequence[Loss]) -> Fraction | None:
        """What the account would be charged, None when it does not admit it."""
        loss = sum(losses, ZERO_LOSS)
        return leaf.cost(loss) if leaf.admits(loss) else None

    def within(cost: Fraction | None) -> bool:
        return cost is not None and cost <= asked

    def place(amount: Fraction) -> float:
        """Most losses grow with the square of one over the scale, so costs are nearly straight lines over it."""
        return math.pow(amount, 2 / power)

    last, last_cost = nominal, cost(by_core(nominal))
    if within(last_cost) or asked > leaf.remaining_epsilon():
        return nominal
    before, before_cost = Fraction(0), Fraction(0) if last_cost is not None else None
    # The amount numbered `low` is not too much, the one numbered `high` is.
    low, high, steps, found = 0, index_up(nominal), 0, None
    while high - low > 1:
        middle = (low + high) // 2
        if steps < _INTERPOLATIONS and last_cost is not None and before_cost is not None and last_cost != before_cost:
            part = float((asked - last_cost) / (before_cost - last_cost))
            guess = math.pow(max(place(last) + part * (place(before) - place(last)), 0.0), power / 2)
            middle = min(max(index_up(Fraction(guess)) - 1, low + 1), high - 1)
        steps += 1
        amount = amount_at(middle)
        try:
            losses = by_core(amount)
        except ValueError:  # less than any noise in range
            low = middle
            continue
        before, before_cost = last, last_cost
        last, last_cost = amount, cost(losses)
        if within(last_cost):
            low, found = middle, amount
        elif covered(losses):
            high = middle
        else:
            return None
    return found
