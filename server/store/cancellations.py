"""Wishes to cancel what waits in another process: one leaves a row, the other one looks, acts and removes it."""

from __future__ import annotations

import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from server.store.tables import cancellations
from server.store.transactions import Transactions, iso

__all__ = ["Cancellations"]

_KEPT = datetime.timedelta(hours=1)
"""After this long a wish is one that a process left unanswered when it ended."""


class Cancellations(Transactions):
    """The wishes of all processes."""

    def wish_cancelled(self, query: str, *, instance: str) -> None:
        """Asks the process of that instance to cancel a query; a second wish for one query is the first."""
        now = self._clock()
        with self._writing() as connection:
            connection.execute(delete(cancellations).where(cancellations.c.created < iso(now - _KEPT)))
            try:
                with connection.begin_nested():
                    connection.execute(insert(cancellations).values(query=query, instance=instance, created=iso(now)))
            except IntegrityError:
                pass
            connection.commit()

    def wished_cancelled(self, instance: str) -> list[str]:
        """The queries that an instance is to cancel."""
        wanted = select(cancellations.c.query).where(cancellations.c.instance == instance)
        with self._engine.connect() as connection:
            return sorted(connection.execute(wanted).scalars())

    def wish_waits(self, query: str) -> bool:
        """Whether nobody has looked at the wish yet."""
        with self._engine.connect() as connection:
            found = select(cancellations.c.query).where(cancellations.c.query == query)
            return connection.execute(found).one_or_none() is not None

    def forget_wish(self, query: str) -> None:
        """The wish was looked at."""
        with self._writing() as connection:
            connection.execute(delete(cancellations).where(cancellations.c.query == query))
            connection.commit()
