"""What monitors have beside other resources: the state of their sessions, and a row for each evaluation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto

from sqlalchemy import Connection, Row, func, insert, select, update

from server.store.outbox import Notice, Outbox
from server.store.resources import MONITORS, MonitorRow, ResourceRows
from server.store.tables import monitor_evaluations, monitors, principals, resources

__all__ = ["EvaluationRow", "MonitorRows", "NotBegun"]


class NotBegun(Enum):
    """Why no evaluation was begun; none was counted."""

    USED_UP = auto()
    """There were as many as were stated."""

    UNDER_WAY = auto()
    """Another one has its turn at this moment, or has had it since the monitor was read."""

    MADE = auto()
    """There was one of this version already, whatever came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """One evaluation: `outcome` is "passed", "not_passed" or "failed", None while it runs.

    `instance` is the process that has it under way, by the ledger's name for it; None once it is over. A hit that is
    to be answered has its outcome before that.
    """

    monitor: str
    number: int
    version: str
    at: str
    outcome: str | None
    detail: str | None
    instance: str | None = None


class MonitorRows(ResourceRows, Outbox):
    """The evaluations of monitors. Thread-safe; every method is one transaction."""

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
        """The last evaluation of a monitor that said something, and all of it; None before the first one."""
        table = monitor_evaluations
        said = select(table).where(
            table.c.monitor == monitor_id,
            table.c.outcome.in_(("passed", "not_passed")),
            table.c.instance.is_(None),
        )
        with self._engine.connect() as connection:
            found = connection.execute(said.order_by(table.c.number.desc()).limit(1)).one_or_none()
        return None if found is None else _evaluation(found)

    def under_way(self, monitor_id: str, *, version: str | None) -> bool:
        """Whether an evaluation of this version, or with None of any, is under way, by what is stored."""
        with self._engine.connect() as connection:
            return self._is_under_way(connection, monitor_id, version)

    def evaluations_of(self, instances: Collection[str]) -> tuple[EvaluationRow, ...]:
        """What these processes have under way."""
        table = monitor_evaluations
        mine = select(table).where(table.c.instance.in_(list(instances)))
        with self._engine.connect() as connection:
            return tuple(_evaluation(row) for row in connection.execute(mine.order_by(table.c.monitor, table.c.number)))

    def evaluating(self) -> frozenset[str]:
        """The processes that have evaluations under way, by what is stored."""
        named = select(monitor_evaluations.c.instance).where(monitor_evaluations.c.instance.is_not(None)).distinct()
        with self._engine.connect() as connection:
            return frozenset(connection.execute(named).scalars())

    def watched_datasets(self) -> tuple[str, ...]:
        """The datasets with monitors that the server evaluates by itself, in order."""
        found = select(resources.c.dataset).join(monitors, monitors.c.id == resources.c.id)
        open_ones = found.where(monitors.c.background, resources.c.closed.is_(None)).distinct()
        with self._engine.connect() as connection:
            return tuple(sorted(connection.execute(open_ones).scalars()))

    def unevaluated(self, dataset: str, *, version: str) -> tuple[MonitorRow, ...]:
        """The monitors of a dataset that the server is to evaluate on this version, the oldest first.

        Those of principals who are disabled rest.
        """
        table = monitor_evaluations
        made = select(table.c.number).where(table.c.monitor == monitors.c.id, table.c.version == version)
        resting = select(principals.c.name).where(
            principals.c.name == resources.c.principal, principals.c.disabled.is_not(None)
        )
        return self.resources_where(
            MONITORS,
            resources.c.dataset == dataset,
            resources.c.closed.is_(None),
            monitors.c.background,
            ~resting.exists(),
            ~made.exists(),
        )

    def hits(self, monitor_id: str) -> tuple[EvaluationRow, ...]:
        """The evaluations of a monitor that passed, the first one first."""
        table = monitor_evaluations
        mine = select(table).where(table.c.monitor == monitor_id, table.c.outcome == "passed").order_by(table.c.number)
        with self._engine.connect() as connection:
            return tuple(_evaluation(row) for row in connection.execute(mine).all())

    def begin_evaluation(
        self,
        monitor_id: str,
        *,
        revision: int,
        version: str,
        most: int,
        instance: str,
        standing: bool,
        again: bool = True,
    ) -> EvaluationRow | NotBegun:
        """Counts an evaluation before it reads rows, and returns it; there are `most` at the most.

        The last one closes the monitor. `instance` is this process. `revision` is that of the state it will go on
        from: it is not begun where another one has had an outcome since, which would only throw its own away.
        A `standing` question has one evaluation of a version under way at a time, a stream has one at all; without
        `again` there is one of a version at all, whatever came of it.
        """
        table = monitor_evaluations
        with self._writing() as connection:
            # Writers of one monitor follow one another: on PostgreSQL by this lock, on SQLite all do.
            mine = select(monitors.c.revision).where(monitors.c.id == monitor_id).with_for_update()
            moved = connection.execute(mine).scalar_one() != revision
            if moved or self._is_under_way(connection, monitor_id, version if standing else None):
                connection.rollback()
                return NotBegun.UNDER_WAY
            same = select(table.c.number).where(table.c.monitor == monitor_id, table.c.version == version).limit(1)
            if not again and connection.execute(same).one_or_none() is not None:
                connection.rollback()
                return NotBegun.MADE
            counted = select(func.max(table.c.number)).where(table.c.monitor == monitor_id)
            number = (connection.execute(counted).scalar_one_or_none() or 0) + 1
            if number > most:
                connection.rollback()
                return NotBegun.USED_UP
            at = self._now()
            values = {"monitor": monitor_id, "number": number, "version": version, "at": at, "instance": instance}
            connection.execute(insert(table).values(**values))
            if number == most:
                self._close(connection, monitor_id)
            connection.commit()
        return EvaluationRow(
            monitor=monitor_id, number=number, version=version, at=at, outcome=None, detail=None, instance=instance
        )

    def end_evaluation(
        self,
        row: MonitorRow,
        number: int,
        *,
        outcome: str,
        detail: str | None,
        sealed: bytes,
        left: int,
        notice: Notice | None,
    ) -> bool:
        """Stores an outcome with the state after it. False, and nothing changed, when the monitor moved on since `row`,
        or the evaluation was ended as one of a process that died.

        An outcome that is not stored must not be shown. The last hit closes the monitor.
        `notice` goes to webhooks with it; without one the evaluation
        stays under way, and its answer follows by `note_evaluation`.
        """
        with self._writing() as connection:
            changed = connection.execute(
                update(monitors)
                .where(monitors.c.id == row.id, monitors.c.revision == row.revision)
                .values(sealed=sealed, left=left, revision=row.revision + 1)
            )
            if changed.rowcount != 1 or not self._set_outcome(
                connection, row.id, number, outcome=outcome, detail=detail, over=notice is not None
            ):
                connection.rollback()
                return False
            if left < 1:
                self._close(connection, row.id)
            if notice is not None:
                self._send(connection, notice)
            connection.commit()
        return True

    def note_evaluation(
        self, monitor_id: str, number: int, *, outcome: str, detail: str | None, notice: Notice
    ) -> bool:
        """Ends an evaluation beside the monitor's state: with a failure, or with the answer to a hit.

        `notice` goes to webhooks with it. False, and nothing changed, for one that is over.
        """
        with self._writing() as connection:
            noted = self._set_outcome(connection, monitor_id, number, outcome=outcome, detail=detail, over=True)
            if noted:
                self._send(connection, notice)
            connection.commit()
        return noted

    @staticmethod
    def _is_under_way(connection: Connection, monitor_id: str, version: str | None) -> bool:
        table = monitor_evaluations
        running = select(table.c.number).where(table.c.monitor == monitor_id, table.c.instance.is_not(None))
        if version is not None:
            running = running.where(table.c.version == version)
        return connection.execute(running.limit(1)).one_or_none() is not None

    @staticmethod
    def _set_outcome(
        connection: Connection, monitor_id: str, number: int, *, outcome: str, detail: str | None, over: bool
    ) -> bool:
        """Sets the outcome of an evaluation that is under way; of a hit, whose outcome stays, what is said of it."""
        table = monitor_evaluations
        changed = connection.execute(
            update(table)
            .where(
                table.c.monitor == monitor_id,
                table.c.number == number,
                table.c.instance.is_not(None),
                (table.c.outcome.is_(None)) | (table.c.outcome == outcome),
            )
            .values(outcome=outcome, detail=detail, **({"instance": None} if over else {}))
        )
        return changed.rowcount == 1


def _evaluation(row: Row[tuple[object, ...]]) -> EvaluationRow:
    names = ("monitor", "number", "version", "at", "outcome", "detail", "instance")
    return EvaluationRow(**{name: getattr(row, name) for name in names})
