"""What a spend buys on an account with a history: the greatest amount of a family that costs no more than was asked.

The nominal amount of a spend is the share of a budget that it names. What the ledger deducts is the fall of the
remainder, which is the unused share of the branch used least (accountant/account.py). The two differ where a charge
takes more of that branch than of the one in which it is counted, or closes it: then less than the nominal amount is
bought.

The loss of an amount is slow to compute, so few amounts are tried. A cost of at most `asked` means that one branch,
with the charge, is used no more than the share that may be used afterwards: the charge is within the *room* of a
branch. In each measure a loss is nearly a power of the amount, so a curve through the logarithms of the last tries
leads close to the amount that fills a room. Curves only choose what is tried; the account decides about each try.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from accountant.account import Account
from accountant.filter import Sums
from mechanisms.amounts import amount_at, index_up
from privacy.loss import ZERO_LOSS, Loss

__all__ = ["affordable_amount", "cost_on", "rooms"]

_GUESSES = 16
"""Steps of the search that follow curves; later ones halve."""


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
    Requires: the cost never falls with the amount (no measure of its loss does), on which its delta does not depend.
    Errors: ValueError when there is no noise for the nominal amount.
    """

    def within(loss: Loss) -> bool:
        return leaf.admits(loss) and leaf.cost(loss) <= asked

    loss = sum(by_core(nominal), ZERO_LOSS)
    if within(loss) or asked > leaf.remaining_epsilon():
        return nominal
    curves = _Curves(rooms(leaf, asked), power)
    curves.tried(nominal, loss)
    if loss.delta > leaf.remaining_delta() or curves.guess() is None:
        return None  # however small it is
    # The amount numbered `low` is not too much, the one numbered `high` is.
    low, high, steps, stride, found = 0, index_up(nominal), 0, 1, None
    while high - low > 1:
        middle = (low + high) // 2
        guess = curves.guess() if steps < _GUESSES else None
        if guess is not None:
            middle = index_up(guess) - 1
            if not low < middle < high:
                # A curve leads to what is known: the sought amount is next to it, or a few steps away.
                middle = min(low + stride, high - 1) if middle <= low else max(high - stride, low + 1)
                stride *= 8
        steps += 1
        amount = amount_at(middle)
        try:
            losses = by_core(amount)
        except ValueError:  # less than any noise in range
            low = middle
            continue
        loss = sum(losses, ZERO_LOSS)
        curves.tried(amount, loss)
        if within(loss):
            low, found = middle, amount
        elif covered(losses):
            high = middle
        else:
            return None
    return found


def rooms(leaf: Account, asked: Fraction) -> dict[str, float]:
    """What a charge may take of each measure, in picos, so that some branch is used no more than may be used then."""
    share = min(leaf.used_share() + asked / leaf.limit.epsilon, Fraction(1))
    spent, branches = leaf.spent, leaf.branches
    found = {
        measure: float(share * budget - amount)
        for measure, amount, budget in (
            ("pure", spent.pure, branches.pure),
            ("mu_squared", spent.mu_squared, branches.mu_squared),
            ("rho", spent.rho, branches.rho),
        )
        if amount is not None and budget is not None
    }
    for measure, room in _mixed_rooms(leaf, share).items():
        found[measure] = max(room, found.get(measure, 0.0))
    return {measure: room for measure, room in found.items() if room >= 1}


def _mixed_rooms(leaf: Account, share: Fraction) -> dict[str, float]:
    """The same of the mixed branch, of which both sums together may be used to this share."""
    spent, whole, noise = leaf.spent, leaf.branches.mixed_pure, leaf.branches.mixed_mu_squared
    if whole is None or noise is None or spent.mixed_pure is None or spent.mixed_mu_squared is None:
        return {}
    if spent.mixed_pure > whole or spent.mixed_mu_squared > noise:
        return {}
    rest = leaf.branches.pure - whole
    room = share * leaf.branches.pure - spent.mixed_pure - Fraction(rest * spent.mixed_mu_squared, noise)
    # Half a unit more: an amount of the grid may fill a sum exactly, and should be what a curve leads to.
    return {
        "pure": min(float(room), float(whole - spent.mixed_pure)) + 0.5,
        "mu_squared": min(float(room * noise / rest), float(noise - spent.mixed_mu_squared)) + 0.5,
    }


class _Curves:
    """For each measure the amounts and charges that were tried last, as logarithms, and the curve through them."""

    def __init__(self, rooms: Mapping[str, float], power: int) -> None:
        self._rooms = rooms
        self._power = power
        self._points: dict[str, list[tuple[float, float]]] = {}

    def tried(self, amount: Fraction, loss: Loss) -> None:
        """An amount and what it takes."""
        sums = Sums.of(loss)
        for measure in self._rooms:
            charge = getattr(sums, measure)
            if charge:
                points = self._points.setdefault(measure, [])
                point = math.log(amount), math.log(charge)
                # Charges are rounded to units: those of near amounts may be equal, or far apart.
                points[:] = [known for known in points if abs(known[1] - point[1]) * charge > 10_000][-2:]
                points.append(point)

    def guess(self) -> Fraction | None:
        """The amount that fills the roomiest branch; None where no branch has room."""
        found = [self._filling(measure, points) for measure, points in self._points.items()]
        return Fraction(math.exp(min(max(found), 700.0))) if found else None

    def _filling(self, measure: str, points: list[tuple[float, float]]) -> float:
        """The logarithm of the amount, by Lagrange's polynomial through at most three points."""
        room = math.log(self._rooms[measure])
        if len(points) == 1:
            ((at, charge),) = points
            return at + (room - charge) * self._power / (1 if measure == "pure" else 2)
        total = 0.0
        for at, charge in points:
            others = [other for _, other in points if other != charge]
            total += at * math.prod((room - other) / (charge - other) for other in others)
        return total


def cost_on(account: Account, loss: Loss) -> Fraction:
    """What the ledger would say that a loss costs on this account, also of a loss that no longer fits.

    The remainder cannot fall below zero, so of a loss that does not fit the difference of remainders would show what
    is left as its price. Such a loss has the price that it has on an account of this limit that spent nothing.
    """
    if account.admits(loss):
        return account.cost(loss)
    unspent = Account.opened(
        id=account.id,
        dataset=account.dataset,
        parent=account.parent,
        principal=account.principal,
        name=account.name,
        limit=account.limit,
        filter=account.filter,
        shares=account.shares,
        created=account.created,
    )
    return max(account.cost(loss), unspent.cost(loss))
