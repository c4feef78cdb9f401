"""Stopping somebody at once, and the way back: one act, in one transaction of the ledger and the registry.

Every account of the principal is frozen and every key of it suspended together, and the chain has an act that names
both. What waits to be started is voided by each server process within a second; what has started stays charged and
ends, for an early end would tell something about rows for nothing. Nobody can read it meanwhile: no key works.
"""

from __future__ import annotations

from dataclasses import dataclass

from accountant.ledger import Ledger
from server.administration.budgets import require_reason
from server.administration.refusal import ActRefused, LastAdmin, NoPrincipal, Refusal
from server.store.errors import NotStopped
from server.store.registry import Registry
from server.store.stops import StopRow

__all__ = ["GoesOn", "Stopped", "Stopping"]


@dataclass(frozen=True, slots=True)
class GoesOn(Refusal):
    """The principal is not stopped."""

    name: str

    what = '"{it.name}" is not stopped'
    why = "There is nothing to take back."
    instead = "GET /v1/principals/{it.name} says whether it is disabled."


@dataclass(frozen=True, slots=True)
class Stopped:
    """What an act did: the accounts that it froze, or that pay again."""

    principal: str
    accounts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stopping:
    """The acts that stop principals. Raises ActRefused, LedgerError."""

    ledger: Ledger
    registry: Registry

    def stop(self, name: str, *, actor: str, reason: str) -> Stopped:
        """Freezes every account of a principal and suspends its keys. Stopping twice changes nothing more.

        Refused: NoPrincipal, LastAdmin, UnsuitableLimit for a reason that is none.
        """
        require_reason(reason, name)
        if self.registry.principal(name) is None:
            raise ActRefused(NoPrincipal(name))
        beside = self.registry.stop(name, actor=actor, reason=reason)
        try:
            return Stopped(name, self.ledger.freeze(name, actor=actor, reason=reason, beside=beside))
        except NotStopped:
            raise ActRefused(LastAdmin()) from None

    def resume(self, name: str, *, actor: str, reason: str) -> Stopped:
        """Takes a stop back: what it froze pays again, and keys that it suspended work. Refused: as `stop`; GoesOn."""
        require_reason(reason, name)
        row = self.stopped(name)
        beside = self.registry.resume(row, actor=actor, reason=reason)
        try:
            again = self.ledger.unfreeze(name, row.accounts, actor=actor, reason=reason, beside=beside)
        except NotStopped:
            raise ActRefused(GoesOn(name)) from None
        return Stopped(name, again)

    def stopped(self, name: str) -> StopRow:
        """The stop of a principal. Refused: NoPrincipal, GoesOn."""
        if self.registry.principal(name) is None:
            raise ActRefused(NoPrincipal(name))
        found = self.registry.stopped(name)
        if not found:
            raise ActRefused(GoesOn(name))
        return found[0]
