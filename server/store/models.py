"""Models as they are stored beside the ledger, which has their states, charges and answers."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert, select

from server.store.tables import models
from server.store.transactions import Transactions

__all__ = ["ModelRow", "ModelRows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One model. `terms` is JSON that its owner and overseers may read; the text of its rows is not kept."""

    id: str
    principal: str
    dataset: str
    account: str
    created: str
    terms: str


class ModelRows(Transactions):
    """The rows of models. Thread-safe; every method is one transaction."""

    def add_model(self, row: ModelRow) -> ModelRow:
        """Stores a new model, with the moment of its creation."""
        values = {name: getattr(row, name) for name in _COLUMNS} | {"created": self._now()}
        with self._writing() as connection:
            connection.execute(insert(models).values(**values))
            self._log(connection, actor=row.principal, action="model_train", subject=row.id)
            connection.commit()
        return ModelRow(**values)

    def model(self, model_id: str) -> ModelRow | None:
        """The model of that identifier."""
        with self._engine.connect() as connection:
            found = connection.execute(select(models).where(models.c.id == model_id)).one_or_none()
        return None if found is None else ModelRow(**{name: getattr(found, name) for name in _COLUMNS})

    def models(self, principal: str | None, *, after: str | None, count: int) -> tuple[ModelRow, ...]:
        """Models of a principal, or of everybody, the newest first; `after` is the last one of the page before."""
        query = select(models).order_by(models.c.created.desc(), models.c.id.desc()).limit(count)
        if principal is not None:
            query = query.where(models.c.principal == principal)
        with self._engine.connect() as connection:
            if after is not None:
                last = connection.execute(select(models.c.created).where(models.c.id == after)).scalar_one_or_none()
                earlier = (models.c.created == last) & (models.c.id < after)
                query = query.where((models.c.created < (last or "")) | earlier)
            found = connection.execute(query).all()
        return tuple(ModelRow(**{name: getattr(row, name) for name in _COLUMNS}) for row in found)


_COLUMNS = ("id", "principal", "dataset", "account", "created", "terms")
