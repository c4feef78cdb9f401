"""The step that gives an account a window, another one, or none: an audited act like a change of its limit."""

from __future__ import annotations

from dataclasses import dataclass

from accountant.account import Account
from accountant.batch import Batch, Needs
from accountant.beside import Beside
from accountant.entry import canonical_json
from accountant.errors import AccountChanged, AccountFrozen
from accountant.states import EntryKind
from accountant.window import WindowWish
from privacy.values import Json

__all__ = ["ChangeWindow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeWindow:
    """Sets an account's window from now on, or takes it away (`wish` None). What was spent stays spent."""

    account: str
    wish: WindowWish | None
    actor: str
    reason: str
    expected: int | None = None
    beside: Beside | None = None
    name: str = "change_window"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """The account."""
        needs.accounts.add(self.account)

    def apply(self, batch: Batch) -> Account:
        """Sets the rule, which begins at the ledger's own time."""
        state = batch.account(self.account)
        if self.expected is not None and state.revision != self.expected:
            raise AccountChanged(state.id, revision=state.revision)
        if state.frozen:
            raise AccountFrozen(state.id)
        window = None if self.wish is None else self.wish.at(batch.now)
        if window == state.window:
            raise ValueError("the account has this window" if window is not None else "the account has no window")
        if window is not None:
            window.check(state.limit, state.filter, state.shares)
        details: dict[str, Json] = {
            "action": "window",
            "actor": self.actor,
            "from": None if state.window is None else state.window.json(),
            "reason": self.reason,
            "to": None if window is None else window.json(),
        }
        if self.wish is not None and self.wish.acknowledge is not None:
            details["acknowledge"] = self.wish.acknowledge
        batch.write_beside(self.beside)
        batch.set_window(state, window)
        batch.add_entry(state, EntryKind.ADJUST, query_id=None, details=canonical_json(details))
        return state.account(batch.now)
