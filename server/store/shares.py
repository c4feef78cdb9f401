"""What several processes of one server share: rates of principals, and how many queries are open.

On PostgreSQL any number of processes serve the same people. Their limits would be as many times as wide as there are
processes, were they counted in each; so they are counted in the database. SQLite serves one process, which counts in
memory, by the same arithmetic (server/limits.py).
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, case, func, select, text

from accountant.states import QueryStatus
from accountant.tables import queries
from server.store.transactions import Transactions

__all__ = ["OpenQueries", "Shares"]


class OpenQueries(NamedTuple):
    """How many queries are charged and have no answer yet: of a principal, and of a dataset."""

    of_principal: int
    of_dataset: int


# The database's clock, because those of several machines differ. `full_at` is when the bucket will be full: each token
# moves it on by the time that one takes to come back. Bounded above, for a clock that was set back.
_EMPTIER = "{least}({most}(rate_buckets.full_at, {now}), {now} + :whole) + :step"
_TAKE = f"""
INSERT INTO rate_buckets (name, full_at) VALUES (:name, {{now}} + :step)
ON CONFLICT (name) DO UPDATE SET full_at = {_EMPTIER} WHERE {_EMPTIER} <= {{now}} + :whole
RETURNING full_at
"""
_WAIT = f"SELECT {_EMPTIER} - {{now}} - :whole FROM rate_buckets WHERE name = :name"
_DRAIN = """
INSERT INTO rate_buckets (name, full_at) VALUES (:name, {now} + :step)
ON CONFLICT (name) DO UPDATE SET full_at = {most}(rate_buckets.full_at, {now}) + :step
"""
_FULL = "SELECT {most}(full_at - {now}, 0.0) FROM rate_buckets WHERE name = :name"
_WORDS = {
    "postgresql": {
        "now": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)",
        "most": "GREATEST",
        "least": "LEAST",
    },
    "sqlite": {"now": "((julianday('now') - 2440587.5) * 86400.0)", "most": "MAX", "least": "MIN"},
}

_OPEN = select(
    func.coalesce(func.sum(case((queries.c.principal == bindparam("principal"), 1), else_=0)), 0),
    func.coalesce(func.sum(case((queries.c.dataset == bindparam("dataset"), 1), else_=0)), 0),
).where(queries.c.state == QueryStatus.RESERVED.value)


class Shares(Transactions):
    """Rates and open queries of all processes that use the database."""

    @property
    def shared(self) -> bool:
        """Whether several processes may serve from this database."""
        return self._engine.dialect.name == "postgresql"

    def take_token(self, name: str, *, step: float, burst: int) -> float:
        """Takes a token of the bucket of that name; 0.0 when there was one, else the seconds until there will be one.

        A token comes back every `step` seconds, and `burst` are in a full bucket. Never more than those are taken, by
        however many processes: the row is locked while it is changed. Nothing waits for a disk on PostgreSQL, because
        the table is not logged: after a crash every bucket is full.
        """
        words = _WORDS[self._engine.dialect.name]
        whole = step * burst + 1e-6
        values = {"name": name, "step": step, "whole": whole}
        with self._writing() as connection:
            taken = connection.execute(text(_TAKE.format(**words)), values).first()
            wait = None if taken else connection.execute(text(_WAIT.format(**words)), values).scalar_one_or_none()
            connection.commit()
        return 0.0 if taken else max(0.001, wait or 0.0)

    def seconds_to_full(self, name: str) -> float:
        """Until the bucket of that name is full again; 0.0 where it is."""
        words = _WORDS[self._engine.dialect.name]
        with self._engine.connect() as connection:
            found = connection.execute(text(_FULL.format(**words)), {"name": name}).scalar_one_or_none()
        return float(found or 0.0)

    def drain(self, name: str, seconds: float) -> None:
        """Takes out of the bucket what comes back in so many seconds, also where less is left."""
        words = _WORDS[self._engine.dialect.name]
        with self._writing() as connection:
            connection.execute(text(_DRAIN.format(**words)), {"name": name, "step": seconds})
            connection.commit()

    def open_queries(self, principal: str, dataset: str) -> OpenQueries:
        """How many queries are open now. What ends a query shows at a visible moment, which rows do not decide."""
        with self._engine.connect() as connection:
            row = connection.execute(_OPEN, {"principal": principal, "dataset": dataset}).one()
        return OpenQueries(int(row[0]), int(row[1]))
