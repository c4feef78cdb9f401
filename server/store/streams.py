"""What streams have beside other resources: the state of their sessions, turns to compare, and answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from server.store.resources import STREAMS, ResourceRows, StreamRow
from server.store.tables import resources, stream_answers, streams

__all__ = ["StreamRows", "Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of one process to compare, with as many queries as are `allowed`; without any it is none.

    `made` are the comparisons with these, which no other turn of the stream has.
    """

    stream: str
    instance: str
    made: int
    allowed: int


class StreamRows(ResourceRows):
    """The turns and answers of streams. Thread-safe; every method is one transaction."""

    def shared_streams(self, dataset: str) -> tuple[StreamRow, ...]:
        """The streams of a dataset that others may ask and that were not closed, the oldest first."""
        return self.resources_where(
            STREAMS, resources.c.dataset == dataset, streams.c.shared, resources.c.closed.is_(None)
        )

    def stream_answers(self, stream_id: str, keys: Sequence[str]) -> Mapping[str, str]:
        """The answers that are stored under some of these keys."""
        mine = select(stream_answers.c.key, stream_answers.c.detail).where(
            stream_answers.c.stream == stream_id, stream_answers.c.key.in_(keys)
        )
        with self._engine.connect() as connection:
            return {row.key: row.detail for row in connection.execute(mine).all()}

    def begin_comparisons(self, row: StreamRow, wanted: int, *, most: int, instance: str) -> Turn | None:
        """Counts comparisons before they read rows, `most` of all together, and takes the turn for this process.

        None, and nothing changed, while another turn is taken, or when the stream moved on since `row`.
        """
        with self._writing() as connection:
            # Writers of one stream follow one another: on PostgreSQL by this lock, on SQLite all do.
            mine = select(streams.c.made, streams.c.revision, streams.c.instance).where(streams.c.id == row.id)
            found = connection.execute(mine.with_for_update()).one()
            if found.instance is not None or found.revision != row.revision:
                connection.rollback()
                return None
            allowed = max(0, min(wanted, most - found.made))
            turn = Turn(row.id, instance, found.made + allowed, allowed)
            if allowed:
                taken = {"made": turn.made, "instance": instance}
                connection.execute(update(streams).where(streams.c.id == row.id).values(**taken))
            connection.commit()
        return turn

    def end_turn(self, turn: Turn) -> None:
        """Ends a turn that says nothing; one that is over stays as it is."""
        with self._writing() as connection:
            connection.execute(update(streams).where(*_of(turn)).values(instance=None))
            connection.commit()

    def comparing(self) -> frozenset[str]:
        """The processes that have turns of streams, by what is stored."""
        named = select(streams.c.instance).where(streams.c.instance.is_not(None)).distinct()
        with self._engine.connect() as connection:
            return frozenset(connection.execute(named).scalars())

    def end_turns_of(self, instances: Collection[str]) -> int:
        """Ends the turns of these processes, and returns how many there were."""
        with self._writing() as connection:
            theirs = streams.c.instance.in_(list(instances))
            ended = connection.execute(update(streams).where(theirs).values(instance=None)).rowcount
            connection.commit()
        return ended

    def end_comparisons(
        self, row: StreamRow, turn: Turn, answers: Mapping[str, str], *, sealed: bytes, left: int
    ) -> bool:
        """Stores answers with the state after them, and ends the turn.

        False, and nothing changed, when the stream moved on since `row`, or the turn was ended as one of a process
        that died. Answers that are not stored must not be shown.
        """
        with self._writing() as connection:
            changed = connection.execute(
                update(streams)
                .where(*_of(turn), streams.c.revision == row.revision)
                .values(sealed=sealed, left=left, revision=row.revision + 1, instance=None)
            )
            if changed.rowcount != 1:
                connection.rollback()
                return False
            values = [{"stream": row.id, "key": key, "detail": detail} for key, detail in answers.items()]
            try:
                connection.execute(insert(stream_answers), values)
            except IntegrityError:
                connection.rollback()
                return False
            connection.commit()
        return True

    def close_stream(self, stream_id: str, *, actor: str) -> None:
        """Ends a stream: its state and its answers are deleted, its terms stay."""
        with self._acting() as connection:
            if self._close(connection, stream_id):
                # Another revision, so that a turn that is under way stores nothing.
                emptied = {"frame": b"", "sealed": b"", "revision": streams.c.revision + 1}
                connection.execute(update(streams).where(streams.c.id == stream_id).values(**emptied))
                connection.execute(delete(stream_answers).where(stream_answers.c.stream == stream_id))
                self._log(connection, actor=actor, action="stream_close", subject=stream_id)
            self._commit(connection)


def _of(turn: Turn) -> tuple[ColumnElement[bool], ...]:
    """The stream, while the turn is that one."""
    return (streams.c.id == turn.stream, streams.c.instance == turn.instance, streams.c.made == turn.made)
