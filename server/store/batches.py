"""Batches as they are stored: how each is answered, and its texts, encrypted. What they cost is in the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert, select

from server.store.tables import batches
from server.store.transactions import Transactions

__all__ = ["BatchRow", "BatchRows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """One batch, under the identifier of its query. `terms` is JSON that overseers may read; `sealed` has the texts."""

    id: str
    principal: str
    dataset: str
    created: str
    terms: str
    sealed: bytes


_COLUMNS = ("id", "principal", "dataset", "created", "terms", "sealed")


class BatchRows(Transactions):
    """The rows of batches. Thread-safe; every method is one transaction."""

    def add_batch(self, row: BatchRow) -> BatchRow:
        """Stores a new batch, with the moment of its creation."""
        values = {name: getattr(row, name) for name in _COLUMNS} | {"created": self._now()}
        with self._writing() as connection:
            connection.execute(insert(batches).values(**values))
            connection.commit()
        return BatchRow(**values)

    def batch(self, batch_id: str) -> BatchRow | None:
        """The batch of that identifier."""
        with self._engine.connect() as connection:
            found = connection.execute(select(batches).where(batches.c.id == batch_id)).one_or_none()
        return None if found is None else BatchRow(**{name: getattr(found, name) for name in _COLUMNS})

    def batches(self, principal: str | None, *, after: str | None, count: int) -> tuple[BatchRow, ...]:
        """Batches of a principal, or of everybody, the newest first; `after` is the last one of the page before."""
        query = select(batches).order_by(batches.c.created.desc(), batches.c.id.desc()).limit(count)
        if principal is not None:
            query = query.where(batches.c.principal == principal)
        with self._engine.connect() as connection:
            if after is not None:
                last = connection.execute(select(batches.c.created).where(batches.c.id == after)).scalar_one_or_none()
                earlier = (batches.c.created == last) & (batches.c.id < after)
                query = query.where((batches.c.created < (last or "")) | earlier)
            found = connection.execute(query).all()
        return tuple(BatchRow(**{name: getattr(row, name) for name in _COLUMNS}) for row in found)
