"""Notices of what nobody asked: a budget that is running out, and what an operator has to look at.

A look every few seconds compares what accounts have used with a few shares of their limits. Each share of each limit is
reported once, whichever process of the server sees it first: that it was is stored with the notices, in one
transaction. A notice is a function of the account and the share that was passed, so its receiver, the account's owner
or an administrator, learns nothing that a poll would not tell, and of no other account.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from accountant.account import Account
from accountant.ledger import Ledger
from engines.incidents import Incidents
from privacy.numbers import decimal_text
from server.administration.overview import Overview, owner_of
from server.rounds import Rounds
from server.store.outbox import Notice
from server.store.registry import Registry
from server.store.transactions import iso
from server.webhooks.events import EventType, event_body

__all__ = ["SHARES", "Noticing"]

SHARES = (50, 75, 90, 99)
"""Percents of a limit whose passing is reported."""

_SECONDS = 5.0


@dataclass(slots=True)
class Noticing:
    """What a server process notices. Each process looks; what one has told, no other one tells."""

    ledger: Ledger
    registry: Registry
    incidents: Incidents
    now: Callable[[], datetime.datetime]
    overview: Overview | None = None
    rounds: Rounds = field(init=False)
    _seen: dict[str, tuple[int, object]] = field(default_factory=dict)
    _counted: Mapping[str, int] = field(default_factory=dict)
    _day: datetime.date | None = None

    def __post_init__(self) -> None:
        self.rounds = Rounds("notices", self._looked, seconds=_SECONDS)

    async def _looked(self) -> None:
        await asyncio.to_thread(self.look)

    def look(self) -> None:
        """Tells what is to be told now. Errors: the database's."""
        self._look_for_incidents()
        accounts = {account.id: account for account in self.ledger.accounts()}
        for account in accounts.values():
            standing = (account.revision, account.spent)
            if self._seen.get(account.id) == standing:
                continue
            self._running_out(account, accounts)
            # Afterwards: what could not be told is looked at again.
            self._seen[account.id] = standing
        if self.overview is not None and self._day != (today := self.ledger.time().date()):
            self.overview.remember()
            self._day = today

    def _running_out(self, account: Account, accounts: Mapping[str, Account]) -> None:
        """Tells the greatest share that the account has passed; those below it are reported with it."""
        used = account.used_share() * 100
        passed = [share for share in SHARES if used >= share]
        if not passed:
            return
        share = decimal_text(Fraction(passed[-1], 100))
        limit = {"epsilon": decimal_text(account.limit.epsilon), "delta": decimal_text(account.limit.delta)}
        told = {"budget": account.id, "dataset": account.dataset, "share": share, "limit": limit}
        self._tell(
            account.id,
            # Of each limit anew: one that was raised can run out again.
            [f"{account.revision}/{one}" for one in reversed(passed)],
            EventType.BUDGET_RUNNING_OUT,
            told,
            owner=owner_of(account, accounts),
        )

    def _look_for_incidents(self) -> None:
        """Tells administrators, of each kind at most once in an hour."""
        counts = self.incidents.counts()
        kinds = [kind for kind, count in counts.items() if count > self._counted.get(kind, 0)]
        standing = {
            "ledger_behind": self.ledger.behind,
            "ledger_rejected": self.ledger.rejected is not None,
            "high_water_failed": self.ledger.high_water_failed,
        }
        hour = iso(self.now())[:13]
        for kind in (*kinds, *(name for name, there in standing.items() if there)):
            self._tell(f"incident/{kind}", [hour], EventType.INCIDENT, {"kind": kind}, owner=None)
        self._counted = dict(counts)

    def _tell(
        self, subject: str, occasions: list[str], kind: EventType, data: Mapping[str, object], *, owner: str | None
    ) -> None:
        body = event_body(kind, at=iso(self.now()), data=data)
        notice = Notice(principal=owner or "", event=kind, subject=subject, body=body)
        self.registry.tell_once(notice, occasions)
