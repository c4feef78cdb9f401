"""Monitors as they are stored: their terms, their sealed state, and a row for each evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Row, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from server.store.tables import monitor_evaluations, monitors
from server.store.transactions import Transactions

__all__ = ["EvaluationRow", "MonitorRow", "MonitorRows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorRow:
    """One monitor. `terms` is JSON that its owner and overseers may read; `sealed` is secret state, encrypted."""

    id: str
    principal: str
    dataset: str
    account: str
    created: str
    terms: str
    sealed: bytes
    left: int
    """Hits that are left."""
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """One evaluation: `outcome` is "passed", "not_passed" or "failed", None while it runs or when its process died."""

    monitor: str
    number: int
    version: str
    at: str
    outcome: str | None
    detail: str | None


class MonitorRows(Transactions):
    """The rows of monitors. Thread-safe; every method is one transaction."""

    def add_monitor(self, row: MonitorRow) -> MonitorRow:
        """Stores a new monitor, with the moment of its creation."""
        values = {name: getattr(row, name) for name in _COLUMNS} | {"created": self._now()}
        with self._writing() as connection:
            connection.execute(insert(monitors).values(**values))
            self._log(connection, actor=row.principal, action="monitor_open", subject=row.id)
            connection.commit()
        return MonitorRow(**values)

    def monitor(self, monitor_id: str) -> MonitorRow | None:
        """The monitor of that identifier."""
        with self._engine.connect() as connection:
            found = connection.execute(select(monitors).where(monitors.c.id == monitor_id)).one_or_none()
        return None if found is None else MonitorRow(**{name: getattr(found, name) for name in _COLUMNS})

    def monitors(self, principal: str | None, *, after: str | None, count: int) -> tuple[MonitorRow, ...]:
        """Monitors of a principal, or of everybody, the newest first; `after` is the last one of the page before."""
        query = select(monitors).order_by(monitors.c.created.desc(), monitors.c.id.desc()).limit(count)
        if principal is not None:
            query = query.where(monitors.c.principal == principal)
        with self._engine.connect() as connection:
            if after is not None:
                last = connection.execute(select(monitors.c.created).where(monitors.c.id == after)).scalar_one_or_none()
                earlier = (monitors.c.created == last) & (monitors.c.id < after)
                query = query.where((monitors.c.created < (last or "")) | earlier)
            found = connection.execute(query).all()
        return tuple(MonitorRow(**{name: getattr(row, name) for name in _COLUMNS}) for row in found)

    def evaluations(self, monitor_id: str, *, count: int) -> tuple[EvaluationRow, ...]:
        """The last evaluations of a monitor, the newest first."""
        mine = select(monitor_evaluations).where(monitor_evaluations.c.monitor == monitor_id)
        with self._engine.connect() as connection:
            found = connection.execute(mine.order_by(monitor_evaluations.c.number.desc()).limit(count)).all()
        return tuple(_evaluation(row) for row in found)

    def evaluation(self, monitor_id: str, number: int) -> EvaluationRow:
        """The evaluation of that number, which was begun."""
        table = monitor_evaluations
        mine = select(table).where(table.c.monitor == monitor_id, table.c.number == number)
        with self._engine.connect() as connection:
            return _evaluation(connection.execute(mine).one())

    def last_said(self, monitor_id: str) -> EvaluationRow | None:
        """The last evaluation of a monitor that said something; None before the first one."""
        table = monitor_evaluations
        said = select(table).where(table.c.monitor == monitor_id, table.c.outcome.in_(("passed", "not_passed")))
        with self._engine.connect() as connection:
            found = connection.execute(said.order_by(table.c.number.desc()).limit(1)).one_or_none()
        return None if found is None else _evaluation(found)

    def hits(self, monitor_id: str) -> tuple[EvaluationRow, ...]:
        """The evaluations of a monitor that passed, the first one first."""
        table = monitor_evaluations
        mine = select(table).where(table.c.monitor == monitor_id, table.c.outcome == "passed").order_by(table.c.number)
        with self._engine.connect() as connection:
            return tuple(_evaluation(row) for row in connection.execute(mine).all())

    def begin_evaluation(self, monitor_id: str, *, version: str, most: int) -> int | None:
        """Counts an evaluation before it reads rows, and returns its number; None when there were `most` already."""
        table = monitor_evaluations
        with self._writing() as connection:
            counted = select(func.max(table.c.number)).where(table.c.monitor == monitor_id)
            number = (connection.execute(counted).scalar_one_or_none() or 0) + 1
            if number > most:
                connection.rollback()
                return None
            values = {"monitor": monitor_id, "number": number, "version": version, "at": self._now()}
            try:
                connection.execute(insert(table).values(**values))
            except IntegrityError:
                connection.rollback()
                return self.begin_evaluation(monitor_id, version=version, most=most)
            connection.commit()
        return number

    def end_evaluation(
        self, row: MonitorRow, number: int, *, outcome: str, detail: str | None, sealed: bytes, left: int
    ) -> bool:
        """Stores an outcome with the state after it. False, and nothing changed, when the monitor moved on since `row`.

        An outcome that is not stored must not be shown.
        """
        with self._writing() as connection:
            changed = connection.execute(
                update(monitors)
                .where(monitors.c.id == row.id, monitors.c.revision == row.revision)
                .values(sealed=sealed, left=left, revision=row.revision + 1)
            )
            if changed.rowcount != 1:
                connection.rollback()
                return False
            self._set_outcome(connection, row.id, number, outcome=outcome, detail=detail)
            connection.commit()
        return True

    def note_evaluation(self, monitor_id: str, number: int, *, outcome: str, detail: str | None) -> None:
        """Stores what became of an evaluation beside the monitor's state: a failure, or the answer to a hit."""
        with self._writing() as connection:
            self._set_outcome(connection, monitor_id, number, outcome=outcome, detail=detail)
            connection.commit()

    @staticmethod
    def _set_outcome(connection: Connection, monitor_id: str, number: int, *, outcome: str, detail: str | None) -> None:
        table = monitor_evaluations
        connection.execute(
            update(table)
            .where(table.c.monitor == monitor_id, table.c.number == number)
            .values(outcome=outcome, detail=detail)
        )


_COLUMNS = ("id", "principal", "dataset", "account", "created", "terms", "sealed", "left", "revision")


def _evaluation(row: Row[tuple[object, ...]]) -> EvaluationRow:
    names = ("monitor", "number", "version", "at", "outcome", "detail")
    return EvaluationRow(**{name: getattr(row, name) for name in names})
