"""What goes with a step of the ledger into other tables of its database, in the same transaction.

An act of an administrator has two sides: the entry that changes an account, and what the registry keeps of it, such as
the state of a request or a notice that is to be sent. Written together, neither is ever there without the other.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

__all__ = ["Beside"]

Beside = Callable[[Connection], None]
"""Writes rows, once the step has checked all that it checks and before it changes anything.

A LedgerError or ValueError refuses the step, and nothing of it is left. It is called again when a batch is repeated,
and under the ledger's lock: it reads and writes rows of this connection, none of them the ledger's, and is quick.
"""
