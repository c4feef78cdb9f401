"""Accounts: a limit, what has been spent of it, and what may still be asked."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from accountant.entry import from_micros
from accountant.filter import (
    DEFAULT_SHARES,
    NOTHING,
    Branch,
    Branches,
    DeltaShares,
    FilterKind,
    Limit,
    Sums,
    alive_branches,
    charges_left,
    fits,
    least_share,
    split_limit,
)
from accountant.window import View
from privacy.loss import Loss
from privacy.numbers import ATTO, PICO

__all__ = ["Account", "DeltaShares", "FilterKind", "Limit", "Shortage", "common_accounts", "tree_order"]


@dataclass(frozen=True, slots=True)
class Shortage:
    """One amount that a refused charge would exceed.

    `measure` is "pure", "mu_squared", "rho", "delta", or one of the sums of the mixed branch, "mixed_pure" and
    "mixed_mu_squared", in either of which a charge may be counted there. `asked` is None when the charge has no finite
    amount of it; `remaining` is None when earlier charges had none, so that nothing can be asked in this measure any
    more.
    """

    measure: str
    asked: Fraction | None
    remaining: Fraction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account of a dataset, as the ledger holds it at one moment.

    `spent` is everything admitted and not voided, reservations included; `reserved` is the part of it whose queries
    have not ended yet. `shares` says how the delta of every limit of it is divided. `greatest` holds the greatest
    epsilon and the greatest delta that its limit ever had (None: the limit of now), `revision` counts its limits, and
    a `frozen` account pays for nothing more, nor does one that `expires` from that moment on. `space` is the unit
    space: whom the account's whole tree protects, in whichever of its datasets. `branches` was fixed by the limit when
    it was set (`accountant.filter.split_limit`). `window` is what its window says at that moment, where it has one;
    `moment` is that moment in microseconds.
    """

    id: str
    dataset: str
    parent: str | None
    principal: str | None
    name: str
    limit: Limit
    filter: FilterKind
    shares: DeltaShares
    branches: Branches
    created: datetime.datetime
    greatest: Limit | None = None
    frozen: bool = False
    revision: int = 1
    spent: Sums = NOTHING
    reserved: Sums = NOTHING
    space: str = ""
    expires: datetime.datetime | None = None
    window: View | None = None
    moment: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        # In whole numbers: every question makes several accounts, and fractions are slow.
        epsilon, delta = self.limit.epsilon, self.limit.delta
        assert self.branches.pure * epsilon.denominator == epsilon.numerator * PICO.denominator, (
            "branches belong to another limit"
        )
        branches = self.branches
        taken = branches.delta + branches.gaussian_delta + branches.concentrated_delta + branches.mixed_delta
        assert taken * delta.denominator <= delta.numerator * ATTO.denominator, (
            "branches take more than the limit's delta"
        )

    @classmethod
    def opened(
        cls,
        *,
        id: str,
        dataset: str,
        parent: str | None,
        principal: str | None,
        name: str,
        limit: Limit,
        filter: FilterKind,
        shares: DeltaShares = DEFAULT_SHARES,
        created: datetime.datetime,
    ) -> Account:
        """A new account that has spent nothing. Raises ValueError when the limit does not suit the filter."""
        return cls(
            id=id,
            dataset=dataset,
            parent=parent,
            principal=principal,
            name=name,
            limit=limit,
            filter=filter,
            shares=shares,
            branches=split_limit(limit, filter, shares),
            created=created,
        )

    @property
    def read_at(self) -> datetime.datetime:
        """The moment of which it speaks, not before it was opened."""
        return max(self.created, from_micros(self.moment))

    @property
    def guarantee(self) -> Limit:
        """What everything charged here together is: the greatest limit that the account ever had (filter.md)."""
        return self.limit if self.greatest is None else self.greatest

    def admits(self, loss: Loss) -> bool:
        """Whether the charge may be spent now."""
        after = self.spent.add(loss, self.branches)
        return fits(after, self.branches) and (
            self.window is None or self.window.admits(after, self._placed(loss), self.branches)
        )

    def _placed(self, loss: Loss) -> Sums:
        return Sums.of(loss).placed(self.spent, self.branches)

    def alive_branches(self) -> tuple[Branch, ...]:
        """The branches that still count: a charge is admitted through one of them or not at all."""
        return alive_branches(self.spent, self.branches)

    def used_share(self) -> Fraction:
        """How much is used, from 0 to 1: the least used share over the branches that are alive, 1 when none is.

        A charge need not be possible in that branch: Gaussian noise never fits the pure one.
        """
        return Fraction(*least_share(self.spent, self.branches))

    def lifetime_epsilon(self) -> Fraction:
        """Nominal epsilon that is left of the limit: the unused share of its epsilon. Exact for a pure account."""
        return self.limit.epsilon * (1 - self.used_share())

    def remaining_epsilon(self) -> Fraction:
        """Nominal epsilon that may be spent now: what is left of the limit, and of it what the window lets through."""
        if self.window is None:
            return self.lifetime_epsilon()
        return min(self.lifetime_epsilon(), self.limit.epsilon * self.window.left(self.spent, self.branches))

    def cost(self, loss: Loss) -> Fraction:
        """Nominal epsilon that the charge takes from what remains: what the ledger would say it cost, now."""
        before, before_of = least_share(self.spent, self.branches)
        after, after_of = least_share(self.spent.add(loss, self.branches), self.branches)
        return self.limit.epsilon * Fraction(after * before_of - before * after_of, before_of * after_of)

    def lifetime_delta(self) -> Fraction:
        """Delta of the limit that is left for charges that have one (selection of partitions)."""
        return max(self.branches.delta - self.spent.delta, 0) * ATTO

    def remaining_delta(self) -> Fraction:
        """The same that may be spent now."""
        left = self.lifetime_delta()
        if self.window is None:
            return left
        budgets = self.window.budgets(self.branches)
        if budgets is None:
            return Fraction(0)
        return min(left, max(budgets.delta - self.window.compared(self.spent).delta, 0) * ATTO)

    def charges_left(self, loss: Loss) -> int:
        """How many charges of this loss would be admitted one after another now."""
        left = charges_left(Sums.of(loss), self.spent, self.branches)
        if self.window is None:
            return left
        budgets = self.window.budgets(self.branches)
        if budgets is None:
            return 0
        return min(left, charges_left(Sums.of(loss), self.window.compared(self.spent), budgets))

    def after(self, loss: Loss) -> Account:
        """The account as it would be with the charge, whether it is admitted or not."""
        window = None if self.window is None else self.window.after(self._placed(loss))
        return replace(self, spent=self.spent.add(loss, self.branches), window=window)

    def available_at(self, loss: Loss) -> int | None:
        """When a charge that the window refuses now would be admitted, if nothing else is charged until then.

        In microseconds. None where the window does not refuse it, and where the limit never admits it.
        """
        after, charge = self.spent.add(loss, self.branches), self._placed(loss)
        if self.window is None or not fits(after, self.branches) or self.admits(loss):
            return None
        return self.window.available(after, charge, self.branches)

    def explain_refusal(self, loss: Loss) -> tuple[Shortage, ...]:
        """The amounts that are short; empty exactly when the charge is admitted.

        A delta alone refuses a charge. The other measures refuse it only together, so all branches of the account are
        listed then: giving way in any one of them would be enough.
        """
        short = _shortages(self.spent.add(loss, self.branches), self.spent, Sums.of(loss), self.branches)
        if short or self.window is None or self.admits(loss):
            return short
        window = self.window
        budgets = window.budgets(self.branches)
        if budgets is None:
            return (Shortage(measure="pure", asked=_picos(Sums.of(loss).pure), remaining=Fraction(0)),)
        spent = window.compared(self.spent)
        return _shortages(spent.together(self._placed(loss)), spent, Sums.of(loss), budgets)


def _picos(amount: int | None) -> Fraction | None:
    return None if amount is None else amount * PICO


def _shortages(after: Sums, before: Sums, asked: Sums, branches: Branches) -> tuple[Shortage, ...]:
    """The amounts of budgets that a charge exceeds."""
    short = []
    if after.delta > branches.delta:
        left = max(branches.delta - before.delta, 0) * ATTO
        short.append(Shortage(measure="delta", asked=asked.delta * ATTO, remaining=left))
    if not alive_branches(after, branches):
        for measure, amount, spent, budget in (
            ("pure", asked.pure, before.pure, branches.pure),
            ("mu_squared", asked.mu_squared, before.mu_squared, branches.mu_squared),
            ("rho", asked.rho, before.rho, branches.rho),
            ("mixed_pure", asked.pure, before.mixed_pure, branches.mixed_pure),
            ("mixed_mu_squared", asked.mu_squared, before.mixed_mu_squared, branches.mixed_mu_squared),
        ):
            if budget is not None:
                left_of = None if spent is None else max(budget - spent, 0)
                short.append(Shortage(measure=measure, asked=_picos(amount), remaining=_picos(left_of)))
    return tuple(short)


def common_accounts(accounts: Iterable[Account], dataset: str) -> list[Account]:
    """Accounts from which an administrator pays for everybody who asks a dataset: its root, and groups.

    Among all `accounts` of its unit space, roots first: those of the dataset that are nobody's own, nor below one that
    is, and that do not end.
    """
    known: Mapping[str, Account] = {account.id: account for account in accounts}

    def common(account: Account | None) -> bool:
        if account is None or account.principal is not None or account.frozen or account.expires is not None:
            return False
        return account.parent is None or common(known.get(account.parent))

    return [account for account in known.values() if account.dataset == dataset and common(account)]


def tree_order(accounts: Iterable[Account]) -> list[Account]:
    """The accounts with each followed by those below it; one whose parent is not among them begins a tree."""
    known = {account.id: account for account in accounts}
    below: dict[str | None, list[Account]] = {}
    for account in known.values():
        below.setdefault(account.parent if account.parent in known else None, []).append(account)
    found: list[Account] = []
    waiting = below.get(None, [])[::-1]
    while waiting:
        found.append(waiting.pop())
        waiting += below.get(found[-1].id, [])[::-1]
    return found
