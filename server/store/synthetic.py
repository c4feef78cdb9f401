"""What synthetic tables have beside other resources: a name while they hold it, later the report and the rows."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError

from server.store.resources import SYNTHETICS, ResourceRows, SyntheticRow
from server.store.tables import resources, synthetic_tables

__all__ = ["NameTaken", "SyntheticRows", "slot_of"]


class NameTaken(Exception):
    """Another table of this owner has the name."""


def slot_of(dataset: str, principal: str, name: str) -> str:
    """What one table at a time may hold: a name of SQL, whose case does not matter, of one owner in a dataset."""
    return f"{dataset}/{principal}/{name.lower()}"


class SyntheticRows(ResourceRows):
    """The contents of synthetic tables. Thread-safe; every method is one transaction."""

    def add_synthetic(self, row: SyntheticRow) -> SyntheticRow:
        """Stores a new table that is to be made, with the moment of its creation. Errors: NameTaken."""
        try:
            return self.add_resource(SYNTHETICS, row)
        except IntegrityError:
            raise NameTaken from None

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

    def synthetic_in(self, slot: str) -> SyntheticRow | None:
        """The table that holds this name."""
        found = self.resources_where(SYNTHETICS, synthetic_tables.c.slot == slot)
        return found[0] if found else None

    def synthetic_content(self, table_id: str) -> bytes | None:
        """The rows of a table; None where it has none, or none any more."""
        query = select(synthetic_tables.c.content).where(synthetic_tables.c.id == table_id)
        with self._engine.connect() as connection:
            return connection.execute(query).scalar_one_or_none()

    def synthetic_filled(self) -> tuple[SyntheticRow, ...]:
        """Every table that has rows, the oldest first."""
        return self.resources_where(SYNTHETICS, synthetic_tables.c.report.is_not(None), resources.c.closed.is_(None))
