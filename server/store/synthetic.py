"""Synthetic tables as they are stored: what was asked for, and later the report and the rows."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from server.store.tables import synthetic_tables
from server.store.transactions import Transactions

__all__ = ["NameTaken", "SyntheticRow", "SyntheticRows", "slot_of"]


class NameTaken(Exception):
    """Another table of this owner has the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticRow:
    """One synthetic table without its rows. `terms` and `report` are JSON; without a report it is not made yet."""

    id: str
    principal: str
    dataset: str
    account: str
    created: str
    name: str
    slot: str | None
    data_version: str
    terms: str
    report: str | None = None
    archived: str | None = None


def slot_of(dataset: str, principal: str, name: str) -> str:
    """What one table at a time may hold: a name of SQL, whose case does not matter, of one owner in a dataset."""
    return f"{dataset}/{principal}/{name.lower()}"


class SyntheticRows(Transactions):
    """The rows of synthetic tables. Thread-safe; every method is one transaction."""

    def add_synthetic(self, row: SyntheticRow) -> SyntheticRow:
        """Stores a new table that is to be made, with the moment of its creation. Errors: NameTaken."""
        values = {name: getattr(row, name) for name in _COLUMNS} | {"created": self._now()}
        with self._writing() as connection:
            try:
                connection.execute(insert(synthetic_tables).values(**values))
            except IntegrityError:
                connection.rollback()
                raise NameTaken from None
            self._log(connection, actor=row.principal, action="synthetic_make", subject=row.id)
            connection.commit()
        return SyntheticRow(**values)

    def fill_synthetic(self, table_id: str, *, report: str, content: bytes) -> None:
        """Stores what was made."""
        with self._writing() as connection:
            connection.execute(
                update(synthetic_tables).where(synthetic_tables.c.id == table_id).values(report=report, content=content)
            )
            connection.commit()

    def free_synthetic(self, table_id: str) -> None:
        """Gives the name of a table back that was not made."""
        with self._writing() as connection:
            connection.execute(update(synthetic_tables).where(synthetic_tables.c.id == table_id).values(slot=None))
            connection.commit()

    def archive_synthetic(self, table_id: str, *, actor: str) -> None:
        """Takes a table from those that questions read, and deletes its rows; its report stays."""
        with self._writing() as connection:
            changed = connection.execute(
                update(synthetic_tables)
                .where(synthetic_tables.c.id == table_id, synthetic_tables.c.archived.is_(None))
                .values(slot=None, content=None, archived=self._now())
            )
            if changed.rowcount:
                self._log(connection, actor=actor, action="synthetic_archive", subject=table_id)
            connection.commit()

    def synthetic(self, table_id: str) -> SyntheticRow | None:
        """The table of that identifier."""
        query = select(*_SELECTED).where(synthetic_tables.c.id == table_id)
        with self._engine.connect() as connection:
            found = connection.execute(query).one_or_none()
        return None if found is None else SyntheticRow(**found._mapping)

    def synthetic_in(self, slot: str) -> SyntheticRow | None:
        """The table that holds this name."""
        query = select(*_SELECTED).where(synthetic_tables.c.slot == slot)
        with self._engine.connect() as connection:
            found = connection.execute(query).one_or_none()
        return None if found is None else SyntheticRow(**found._mapping)

    def synthetic_content(self, table_id: str) -> bytes | None:
        """The rows of a table; None where it has none, or none any more."""
        query = select(synthetic_tables.c.content).where(synthetic_tables.c.id == table_id)
        with self._engine.connect() as connection:
            return connection.execute(query).scalar_one_or_none()

    def synthetic_filled(self) -> tuple[SyntheticRow, ...]:
        """Every table that has rows, the oldest first."""
        table = synthetic_tables
        query = select(*_SELECTED).where(table.c.report.is_not(None), table.c.archived.is_(None))
        with self._engine.connect() as connection:
            found = connection.execute(query.order_by(table.c.created, table.c.id)).all()
        return tuple(SyntheticRow(**row._mapping) for row in found)

    def synthetics(self, principal: str | None, *, after: str | None, count: int) -> tuple[SyntheticRow, ...]:
        """Tables of a principal, or of everybody, the newest first; `after` is the last one of the page before."""
        table = synthetic_tables
        query = select(*_SELECTED).order_by(table.c.created.desc(), table.c.id.desc()).limit(count)
        if principal is not None:
            query = query.where(table.c.principal == principal)
        with self._engine.connect() as connection:
            if after is not None:
                last = connection.execute(select(table.c.created).where(table.c.id == after)).scalar_one_or_none()
                earlier = (table.c.created == last) & (table.c.id < after)
                query = query.where((table.c.created < (last or "")) | earlier)
            found = connection.execute(query).all()
        return tuple(SyntheticRow(**row._mapping) for row in found)


_COLUMNS = (
    *("id", "principal", "dataset", "account", "created", "name", "slot"),
    *("data_version", "terms", "report", "archived"),
)
_SELECTED = tuple(synthetic_tables.c[name] for name in _COLUMNS)
