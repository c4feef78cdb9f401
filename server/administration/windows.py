"""Windows of budgets: when how much of a limit may be spent. The ledger records who set one, and why."""

from __future__ import annotations

from dataclasses import dataclass

from accountant.account import Account
from accountant.errors import AccountChanged, AccountFrozen, UnknownAccount
from accountant.window import WindowWish
from server.administration.budget_refusals import (
    ChangedBudget,
    FrozenAccount,
    NoAccount,
    UnsuitableWindow,
)
from server.administration.budgets import ANY, Budgets, budget_tag, require_reason
from server.administration.refusal import ActRefused
from server.administration.window_worth import require_worth

__all__ = ["ChangeWindow", "Windows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeWindow:
    """Another window for an account, or none. `expected` is as in `ChangeBudget`."""

    account: str
    wish: WindowWish | None
    reason: str
    expected: str | None = None


@dataclass(frozen=True, slots=True)
class Windows:
    """The act on windows of accounts."""

    budgets: Budgets

    def change(self, request: ChangeWindow, *, actor: str) -> Account:
        """Sets the window with an adjustment that names actor and reason. What was spent stays spent.

        Refused: NoAccount, ChangedBudget, FrozenAccount, UnsuitableWindow, SmallWindow, UnsuitableLimit for the reason.
        """
        ledger = self.budgets.ledger
        try:
            path = ledger.path(request.account)
        except UnknownAccount:
            raise ActRefused(NoAccount(request.account)) from None
        account, root = path[0], path[-1]
        require_reason(request.reason, account.id)
        unconditional = request.expected in (None, ANY)
        if not unconditional and request.expected != budget_tag(account):
            raise ActRefused(ChangedBudget(account.id))
        try:
            if request.wish is not None:
                require_worth(request.wish, account, root, ledger=ledger, registry=self.budgets.registry)
            return ledger.change_window(
                account.id,
                request.wish,
                actor=actor,
                reason=request.reason,
                expected=None if unconditional else account.revision,
            )
        except AccountChanged:
            raise ActRefused(ChangedBudget(account.id)) from None
        except AccountFrozen:
            raise ActRefused(FrozenAccount(account.id)) from None
        except ValueError as error:
            raise ActRefused(UnsuitableWindow(account.id, str(error))) from None
