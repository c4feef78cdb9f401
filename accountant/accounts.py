"""Opening accounts and changing what they may spend: the steps of administrators and of people who lend."""

from __future__ import annotations

import datetime
import secrets
from abc import abstractmethod
from collections.abc import Collection
from typing import TypeVar

from accountant.account import Account, DeltaShares, FilterKind, Limit
from accountant.beside import Agreed, Beside
from accountant.entry import to_micros
from accountant.filter import DEFAULT_SHARES
from accountant.freezing import BesideFrozen, End, Freeze, Unfreeze
from accountant.operation import Operation
from accountant.operations import ChangeLimit, CreateAccount
from accountant.reads import Reads
from accountant.request import storable
from accountant.spaces import JoinSpace
from accountant.tables import accounts
from accountant.window import WindowWish
from accountant.window_step import ChangeWindow

__all__ = ["Accounts", "new_account_id", "require_text"]

Written = TypeVar("Written")

TEXT_MAX = 1000
"""Longest name, actor or reason."""


class Accounts(Reads):
    """What is written about accounts. Errors: LedgerUnavailable, LedgerBehind and LedgerRejected, for every call."""

    @abstractmethod
    def _write(self, operation: Operation[Written]) -> Written:
        """Carries out one step in a transaction of its own."""

    def create_account(
        self,
        *,
        dataset: str,
        parent: str | None,
        principal: str | None,
        name: str,
        limit: Limit,
        filter: FilterKind,
        actor: str,
        shares: DeltaShares = DEFAULT_SHARES,
        id: str | None = None,
        request: str | None = None,
        beside: Beside | None = None,
        space: str | None = None,
        expires: datetime.datetime | None = None,
        window: WindowWish | None = None,
    ) -> Account:
        """Opens an account and writes its grant. A unit space has one root (`parent` None), which every charge reaches.

        `shares` divides the delta of every limit that it will have; a pure account has none to divide. `space` is the
        dataset's own name where it is None; named, an account may hang below one of another dataset of that space. An
        account with `expires` pays for nothing from that moment on. `id` is a fresh one of `new_account_id`, `request`
        the budget request that it was opened for, and `beside` writes what goes with it into other tables. `window`
        says when how much of the limit may be spent (window.md).
        Errors: ValueError for a second root, a parent of another dataset or space, a dataset that was opened in another
        space, too deep a tree, an empty name, or a limit that does not suit the filter; UnknownAccount, AccountFrozen
        and AccountExpired for the parent; AccountExists when the principal has an account of this dataset below this
        parent that is not frozen.
        """
        for text in (dataset, name, actor, *(() if space is None else (space,))):
            require_text(text)
        return self._write(
            CreateAccount(
                id=new_account_id() if id is None else id,
                dataset=dataset,
                parent=parent,
                principal=principal,
                account_name=name,
                limit=limit,
                filter=filter,
                shares=shares,
                actor=actor,
                request=request,
                beside=beside,
                space=space,
                expires=None if expires is None else to_micros(expires),
                window=window,
            )
        )

    def seen_by(self, principal: str, *, dataset: str | None = None) -> list[Account]:
        """The accounts of a principal, of that dataset where one is given, and all that hang below them."""
        found = {account.id: account for account in self.accounts(dataset=dataset, principal=principal)}
        frontier = list(found)
        while frontier:
            with self._read() as connection:
                under = self._accounts(connection, accounts.c.parent.in_(frontier))
            frontier = [account.id for account in under if account.id not in found]
            found.update((account.id, account) for account in under)
        return list(found.values())

    def below(self, account: str) -> list[Account]:
        """The accounts right below one, those that have ended too."""
        with self._read() as connection:
            return self._accounts(connection, accounts.c.parent == account)

    def end(self, account: str, *, actor: str, reason: str) -> Account:
        """Ends an envelope, or an account that was never charged, now and for good. What it spent stays spent.

        Errors: UnknownAccount; HasHistory for a root and for somebody's own account that was charged; ValueError for an
        empty text.
        """
        require_text(actor)
        require_text(reason)
        return self._write(End(account=account, actor=actor, reason=reason))

    def join_space(self, dataset: str, space: str, *, actor: str, reason: str) -> bool:
        """Moves a dataset with all that was spent on it to another unit space; whether there was anything to move.

        Where that space has a root, the dataset's goes below it, and the upper one is debited with what the lower one
        has spent and takes the stricter limit (spaces.md). Errors: SpacesNotJoined; ValueError for an empty text.
        """
        for text in (dataset, space, actor, reason):
            require_text(text)
        return self._write(JoinSpace(dataset=dataset, space=space, actor=actor, reason=reason))

    def change_limit(
        self,
        account: str,
        limit: Limit,
        *,
        actor: str,
        reason: str,
        expected: int | None = None,
        request: str | None = None,
        beside: Beside | None = None,
        agreed: Agreed | None = None,
    ) -> Account:
        """Raises or lowers a limit, with an `adjust` entry; the budgets of the branches follow from the new limit.

        What was spent stays. An account that has spent more than a lowered limit admits nothing. The guarantee of an
        account is that of its greatest epsilon and its greatest delta ever, because each branch's budget grows with
        both (README.md of this room). `expected` is the revision that the caller has seen; `request` and `beside` are
        as for `create_account`; `agreed` is the proposal that `actor` confirms, which ends with the change.
        Errors: UnknownAccount;
        AccountChanged when the revision is another one, AccountFrozen; ValueError for an unsuitable limit or an empty
        reason.
        """
        require_text(actor)
        require_text(reason)
        return self._write(
            ChangeLimit(
                account=account,
                limit=limit,
                actor=actor,
                reason=reason,
                expected=expected,
                request=request,
                beside=beside,
                agreed=agreed,
            )
        )

    def change_window(
        self, account: str, wish: WindowWish | None, *, actor: str, reason: str, expected: int | None = None
    ) -> Account:
        """Gives an account a window from the ledger's time on, another one, or none, with an `adjust` entry.

        What was spent stays, and the limit bounds everything as before (window.md). Errors: as `change_limit`;
        ValueError for a window that is reversed, empty, not acknowledged, or the one that there is.
        """
        require_text(actor)
        require_text(reason)
        step = ChangeWindow(account=account, wish=wish, actor=actor, reason=reason, expected=expected)
        return self._write(step)

    def freeze(self, principal: str, *, actor: str, reason: str, beside: BesideFrozen) -> tuple[str, ...]:
        """Freezes every account of a principal, each with an `adjust` entry, and returns those that it froze now.

        What is reserved stays reserved. `beside` writes, in the same transaction, what goes with the act into other
        tables. Errors: those of `beside`; ValueError for an empty text.
        """
        require_text(actor)
        require_text(reason)
        return self._write(Freeze(principal=principal, actor=actor, reason=reason, beside=beside))

    def unfreeze(
        self, principal: str, accounts: Collection[str], *, actor: str, reason: str, beside: BesideFrozen
    ) -> tuple[str, ...]:
        """Lets these accounts of a principal pay again, but for those that another one replaced. As `freeze`."""
        require_text(actor)
        require_text(reason)
        again = tuple(sorted(accounts))
        return self._write(Unfreeze(principal=principal, accounts=again, actor=actor, reason=reason, beside=beside))


def require_text(text: str) -> None:
    """Errors: ValueError for an empty or overlong text, or one with NUL."""
    if not isinstance(text, str) or not text.strip() or len(text) > TEXT_MAX or not storable(text):
        raise ValueError(f"a name, an actor or a reason has between 1 and {TEXT_MAX} characters and no NUL")


def new_account_id() -> str:
    """A fresh identifier of an account."""
    return f"b_{secrets.token_hex(10)}"
