"""Freezing accounts: an act of an administrator that stops somebody's spending at once, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from accountant.batch import Batch, Needs
from accountant.entry import canonical_json
from accountant.rows import AccountState
from accountant.states import EntryKind

__all__ = ["BesideFrozen", "Freeze", "Unfreeze"]

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
        taken = {(account.parent, account.dataset) for account in owned if not account.frozen}
        again = []
        for account in owned:
            # A principal has one account that pays below one parent, for each dataset.
            if account.frozen and account.id in self.accounts and (account.parent, account.dataset) not in taken:
                again.append(account)
                taken.add((account.parent, account.dataset))
        found = tuple(account.id for account in again)
        batch.write_beside(partial(self.beside, found))
        _record(batch, again, frozen=False, actor=self.actor, reason=self.reason)
        return found
