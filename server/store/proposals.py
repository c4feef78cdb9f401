"""Proposals of administrators, and their decision, which is made once."""

from __future__ import annotations

import dataclasses
import datetime
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, Row, insert, select, update

from accountant.beside import Beside
from server.roles import Role
from server.store.errors import ProposalDecided
from server.store.tables import principals, proposals
from server.store.transactions import Transactions, iso

__all__ = ["ProposalKind", "ProposalRow", "ProposalRows", "ProposalState"]


class ProposalKind(StrEnum):
    """What two administrators agree on."""

    ADJUST = "adjust"
    ACKNOWLEDGE = "acknowledge_restore"


class ProposalState(StrEnum):
    """Where a proposal is. Every state but the first one is final."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRow:
    """One proposal. `terms` is canonical JSON of what is to be done; `subject` an account, or "ledger"."""

    id: str
    kind: ProposalKind
    subject: str
    terms: str
    reason: str
    proposer: str
    expires: str = ""
    created: str = ""
    state: ProposalState = ProposalState.OPEN
    decided: str | None = None
    decider: str | None = None


_COLUMNS = tuple(field.name for field in dataclasses.fields(ProposalRow))


class ProposalRows(Transactions):
    """The rows of proposals. Thread-safe; every method is one transaction."""

    def administrators(self) -> tuple[str, ...]:
        """The names of enabled administrators."""
        enabled = (principals.c.role == Role.ADMIN.value) & principals.c.disabled.is_(None)
        with self._engine.connect() as connection:
            return tuple(connection.execute(select(principals.c.name).where(enabled).order_by("name")).scalars())

    def add_proposal(self, row: ProposalRow, *, days: int) -> ProposalRow:
        """Stores a new proposal, with the moment of its creation and that of its end."""
        now = self._clock()
        stored = dataclasses.replace(row, created=iso(now), expires=iso(now + datetime.timedelta(days=days)))
        values = {**dataclasses.asdict(stored), "kind": stored.kind.value, "state": stored.state.value}
        with self._acting() as connection:
            connection.execute(insert(proposals).values(**values))
            self._tell(connection, stored, actor=row.proposer, action=f"{row.kind.value}_proposed")
            self._commit(connection)
        return stored

    def proposal(self, proposal_id: str) -> ProposalRow | None:
        """The proposal of that identifier."""
        with self._engine.connect() as connection:
            found = connection.execute(select(proposals).where(proposals.c.id == proposal_id)).one_or_none()
        return None if found is None else _row(found)

    def proposals(self, *, state: str | None, after: str | None, count: int) -> tuple[ProposalRow, ...]:
        """Proposals, the newest first."""
        query = select(proposals)
        if state is not None:
            query = query.where(proposals.c.state == state)
        return tuple(map(_row, self._page(query, proposals, after=after, count=count)))

    def proposal_decision(self, row: ProposalRow) -> Beside:
        """Stores the decision that `row` has, in the transaction of what is done by it. Errors: ProposalDecided."""
        table = proposals

        def decide(connection: Connection) -> None:
            now = self._now()
            chosen = (table.c.id == row.id) & (table.c.state == ProposalState.OPEN.value) & (table.c.expires > now)
            values = {"state": row.state.value, "decided": now, "decider": row.decider}
            if connection.execute(update(table).where(chosen).values(**values)).rowcount != 1:
                raise ProposalDecided(row.id)
            self._tell(connection, row, actor=row.decider or "", action=f"{row.kind.value}_{row.state.value}")

        return decide

    def decide_proposal(self, row: ProposalRow) -> None:
        """Stores a decision by which nothing else is done. Errors: ProposalDecided."""
        with self._acting() as connection:
            self.proposal_decision(row)(connection)
            self._commit(connection)

    def _tell(self, connection: Connection, row: ProposalRow, *, actor: str, action: str) -> None:
        told = {"proposal": row.id, "reason": row.reason}
        rows = {"proposals": [row.id]}
        self._log(connection, actor=actor, action=action, subject=row.subject, details=told, rows=rows)


def _row(found: Row[tuple[object, ...]]) -> ProposalRow:
    values = {name: getattr(found, name) for name in _COLUMNS}
    return ProposalRow(**{**values, "kind": ProposalKind(found.kind), "state": ProposalState(found.state)})
