"""What goes with a step of the ledger into other tables of its database, in the same transaction.

An act of an administrator has two sides: the entry that changes an account, and what the registry keeps of it, such as
the state of a request or a notice that is to be sent. Written together, neither is ever there without the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from privacy.values import Json

__all__ = ["Agreed", "Beside"]

Beside = Callable[[Connection], None]
"""Writes rows, once the step has checked all that it checks and before it changes anything.

A LedgerError or ValueError refuses the step, and nothing of it is left. It is called again when a batch is repeated,
and under the ledger's lock: it reads and writes rows of this connection, none of them the ledger's, and is quick.
"""


@dataclass(frozen=True, slots=True)
class Agreed:
    """What two administrators agreed on: the proposal and who made it; the entry's actor is who confirmed it.

    `sole` says that there was no other administrator, and that the confirmation was given on the server's machine.
    """

    proposal: str
    proposer: str
    sole: bool
    beside: Beside

    def told(self) -> dict[str, Json]:
        """As an entry keeps it."""
        return {"proposal": self.proposal, "proposed_by": self.proposer, "sole": self.sole}
