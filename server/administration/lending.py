"""Lending: people give a part of their own budget to somebody else, until a moment, and take it back at any time.

What is lent is an envelope: an account below the lender's own, with an end. Whatever is charged through it is charged
to the lender's account and to all above it as well, so it needs nobody's permission and raises nobody's limit. It is a
cap and sets nothing aside: lender and borrower take what is there, first come, first served, so at its end nothing has
to be given back. It lets nobody into a dataset: who has no budget of the dataset cannot pay from it.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account, FilterKind, Limit
from accountant.errors import AccountExpired, AccountFrozen, HasHistory, UnknownAccount
from accountant.ledger import Ledger
from server.administration.budget_refusals import FrozenAccount, NoAccount, UnsuitableBudget
from server.administration.budgets import require_reason
from server.administration.lending_refusals import (
    AboveRemainder,
    EndsTooLate,
    NoLoan,
    NotLendable,
    StaysForGood,
    TooManyLoans,
)
from server.administration.refusal import ActRefused

__all__ = ["DAYS_MAX", "LOANS_EVER", "LOANS_MAX", "LendBudget", "Lending"]

LOANS_MAX = 100
"""Most envelopes below one account that have not ended."""

LOANS_EVER = 1_000
"""Most envelopes that one account ever has: each of them is kept for good."""

DAYS_MAX = 366
"""Longest time for which something is lent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LendBudget:
    """A part of an account that somebody else may spend until `expires`.

    `principal` is None for what is nobody's own, such as a dashboard of the lender: that alone may never end. Of a pure
    account `delta` is None or 0.
    """

    account: str
    principal: str | None
    epsilon: Fraction
    delta: Fraction | None
    expires: datetime.datetime | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Lending:
    """The acts of lenders. Every act raises ActRefused, or the ledger's own errors when it cannot be reached."""

    ledger: Ledger

    def lend(self, request: LendBudget, *, actor: str) -> Account:
        """Opens an envelope below an account, with the account's filter and its division of delta.

        Requires: the actor may see the account. Nothing is said about the borrower: whether there is such a person, and
        what they may ask, is not the lender's to know.
        Refused: NoAccount, NotLendable, FrozenAccount, AboveRemainder, EndsTooLate, TooManyLoans, UnsuitableBudget.
        """
        try:
            lender, *above = self.ledger.path(request.account)
        except UnknownAccount:
            raise ActRefused(NoAccount(request.account)) from None
        if lender.principal is None:
            raise ActRefused(NotLendable(lender.id))
        limit = self._limit(request, lender)
        now = self.ledger.time()
        self._check_end(request, [lender, *above], now)
        lent = [one for one in self.ledger.below(lender.id) if one.expires is not None]
        if len(lent) >= LOANS_EVER or sum(now < (one.expires or now) for one in lent) >= LOANS_MAX:
            raise ActRefused(TooManyLoans(lender.id, LOANS_MAX, LOANS_EVER))
        try:
            return self.ledger.create_account(
                dataset=lender.dataset,
                parent=lender.id,
                principal=request.principal,
                name=request.name or (f"lent to {request.principal}" if request.principal else "envelope"),
                limit=limit,
                filter=lender.filter,
                shares=lender.shares,
                space=lender.space,
                expires=request.expires,
                actor=actor,
            )
        except (AccountFrozen, AccountExpired) as ended:
            raise ActRefused(FrozenAccount(ended.account)) from None
        except ValueError as error:
            raise ActRefused(UnsuitableBudget(lender.dataset, str(error))) from None

    def recall(self, account: str, *, actor: str, reason: str) -> Account:
        """Ends an envelope now; what it spent stays spent. One that has ended stays as it is.

        Refused: NoAccount, NoLoan for an account that was not lent, StaysForGood, UnsuitableLimit for its reason.
        """
        require_reason(reason, account)
        try:
            found = self.ledger.account(account)
            if found.expires is None and found.principal is not None:
                raise ActRefused(NoLoan(account))
            return self.ledger.end(account, actor=actor, reason=reason)
        except UnknownAccount:
            raise ActRefused(NoAccount(account)) from None
        except HasHistory:
            raise ActRefused(StaysForGood(account)) from None

    def _limit(self, request: LendBudget, lender: Account) -> Limit:
        """What is lent: no more than the lender has left of it. Refused: AboveRemainder, UnsuitableBudget."""
        delta = request.delta or Fraction(0)
        if (lender.filter is FilterKind.PURE) != (delta == 0):
            why = "a pure account has no delta" if delta else "what is lent of this account needs a delta"
            raise ActRefused(UnsuitableBudget(lender.dataset, why))
        left = max(lender.remaining_epsilon(), Fraction(0))
        if request.epsilon > left or delta > lender.limit.delta:
            raise ActRefused(AboveRemainder(lender.id, left, lender.limit.delta))
        try:
            return Limit(request.epsilon, delta)
        except ValueError as error:
            raise ActRefused(UnsuitableBudget(lender.dataset, str(error))) from None

    def _check_end(self, request: LendBudget, path: list[Account], now: datetime.datetime) -> None:
        """Refused: EndsTooLate, for an end that is missing, over, or after that of an account above."""
        if request.expires is None:
            if request.principal is not None:
                raise ActRefused(EndsTooLate("what is lent to somebody has an end"))
            return
        if request.expires <= now:
            raise ActRefused(EndsTooLate("the moment has passed"))
        if request.expires > now + datetime.timedelta(days=DAYS_MAX):
            raise ActRefused(EndsTooLate(f"it is more than {DAYS_MAX} days away"))
        if any(one.expires is not None and one.expires < request.expires for one in path):
            raise ActRefused(EndsTooLate("the account that lends ends before"))
