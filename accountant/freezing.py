"""Freezing accounts, which stops somebody's spending at once and has a way back; and ending one, which has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from accountant.account import Account
from accountant.batch import Batch, Needs
from accountant.entry import ZERO, canonical_json
from accountant.errors import HasHistory
from accountant.rows import AccountState
from accountant.states import EntryKind
from privacy.values import Json

__all__ = ["BesideFrozen", "End", "Freeze", "Unfreeze"]

BesideFrozen = Callable[[Sequence[str], Connection], None]
"""As `Beside`, after the accounts that are frozen, or pay again, by this step."""


def _record(batch: Batch, accounts: Sequence[AccountState], *, frozen: bool, actor: str, reason: str) -> None:
    details = canonical_json({"action": "freeze" if frozen else "unfreeze", "actor": actor, "reason": reason})
    for account in accounts:
        batch.set_frozen(account, frozen=frozen)
        batch.add_entry(account, EntryKind.ADJUST, query_id=None, details=details)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """Freezes every account of a principal that pays, those too that are opened before this step is decided."""

    principal: str
    actor: str
    reason: str
    beside: BesideFrozen
    name: str = "freeze"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """The principal's accounts."""
        needs.owned.add(self.principal)

    def apply(self, batch: Batch) -> tuple[str, ...]:
        """The accounts that were frozen now."""
        paying = [account for account in batch.owned(self.principal) if not account.frozen]
        found = tuple(account.id for account in paying)
        batch.write_beside(partial(self.beside, found))
        _record(batch, paying, frozen=True, actor=self.actor, reason=self.reason)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfreeze:
    """Lets accounts of a principal pay again, those of them that are frozen and of which there is no other by now."""

    principal: str
    accounts: tuple[str, ...]
    actor: str
    reason: str
    beside: BesideFrozen
    name: str = "unfreeze"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """The principal's accounts."""
        needs.owned.add(self.principal)

    def apply(self, batch: Batch) -> tuple[str, ...]:
        """The accounts that pay again."""
        owned = batch.owned(self.principal)
        taken = {_place(account) for account in owned if not account.frozen and account.expires is None}
        again = []
        for account in owned:
            # A principal has one account of a dataset that pays below one parent, and any number that end.
            if account.frozen and account.id in self.accounts and (account.expires or _place(account) not in taken):
                again.append(account)
                taken |= set() if account.expires is not None else {_place(account)}
        found = tuple(account.id for account in again)
        batch.write_beside(partial(self.beside, found))
        _record(batch, again, frozen=False, actor=self.actor, reason=self.reason)
        return found


def _place(account: AccountState) -> tuple[str | None, str]:
    return account.parent, account.dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Lets an account pay for nothing from now on, for good: an envelope, or one that was never charged.

    What it spent stays spent. One that has ended before stays as it is.
    """

    account: str
    actor: str
    reason: str
    name: str = "end"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """The account."""
        needs.accounts.add(self.account)

    def apply(self, batch: Batch) -> Account:
        """Its end is now. Errors: UnknownAccount; HasHistory for an account that would take what it spent with it."""
        state = batch.account(self.account)
        if state.parent is None or (state.expires is None and state.principal is not None and state.spent != ZERO):
            raise HasHistory(state.id)
        if state.expires is not None and state.expires <= batch.now:
            return state.account(batch.now)
        details: dict[str, Json] = {"action": "end", "actor": self.actor, "expires": batch.now, "reason": self.reason}
        batch.end_account(state)
        batch.add_entry(state, EntryKind.ADJUST, query_id=None, details=canonical_json(details))
        return state.account(batch.now)
