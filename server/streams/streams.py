"""Opening streams, and answering their queries.

A stream is charged in whole when it is opened (mechanisms/stream_synopsis.md): the noise of all cells, one sparse
vector session, and a stated number of updates. A query then costs nothing. One that was answered for the same version
of the data is answered again from what is stored; another one takes the steps of a question: the statement of all
cells, planned on empty twins, runs in one slot until its visible moment, and only then is anything written or reported.
What is stored is durable before it is reported. Requests of one stream follow one another: a turn is taken with the
count of its comparisons, and one that is over by the time it would store, because its process was taken for dead
(server/monitors/recovery.py, whose proof holds here word for word), is thrown away unseen.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from accountant.states import QueryStatus
from engines.protocol import EngineLease
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.streams.asking import Answer, Found, StreamState, answer_queries, not_compared
from mechanisms.streams.synopsis import Cells, Synopsis
from privacy.policy import Dataset, Sharing
from privacy.refusal import ExecutionFailed
from privacy.values import Json
from server.admitted import InFlight, Settled
from server.answer import Journey
from server.errors import Problem
from server.journey.admission import Served
from server.journey.pace import VisibleRun
from server.journey.query import Prepared
from server.log import logger, where
from server.resources.kinds import ResourceKind
from server.resources.resources import Begun, Resources
from server.sealing import Seal, SealBroken
from server.store.errors import UNAVAILABLE
from server.store.registry import Registry
from server.store.resources import STREAMS, ResourceRow, StreamRow
from server.store.streams import Turn
from server.streams.cells import cells_asked
from server.streams.estimating import estimated
from server.streams.opening import Planned, plan_stream, prepared_again
from server.streams.refusals import Comparing, dataset_away, is_over, nothing_known, overtaken
from server.streams.sealing import Frame, sealed_state, state_of
from server.streams.showing import beside_dataset
from server.streams.terms import AskStream, OpenStream, Terms, Told

__all__ = ["Queries", "Standing", "StreamQuestion", "Streams"]

_KEPT: Final = 256
"""Streams whose frames, and whose synopses, are kept once they are read."""


@dataclass(frozen=True, slots=True)
class Queries:
    """What somebody asks of a stream: the cells of each query, by what the stream is about and promises.

    `asker` keeps answers for one principal alone: of a shared stream a stored answer would say that somebody had asked.
    """

    terms: Terms
    frame: Frame
    cells: tuple[Cells, ...]
    asker: str | None

    def keys(self, version: str) -> list[str]:
        """Under which the answers about a version of the data are stored."""
        return [self.frame.key(cells, version, asker=self.asker) for cells in self.cells]


@dataclass(frozen=True, slots=True)
class StreamQuestion:
    """Queries that are planned and have read no row: of a stream as it was. `by` is who asks."""

    row: StreamRow
    queries: Queries
    by: str
    version: str
    prepared: Prepared
    dataset: Dataset


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a stream that is open compares queries with the data, and if not, why. It answers in either case."""

    comparing: bool
    why: str | None = None


@dataclass(slots=True)
class Streams:
    """The streams of a server. Safe to use from many threads."""

    resources: Resources
    registry: Registry
    journey: Journey
    served: Served
    seal: Seal
    _left: list[Turn] = field(default_factory=list)
    _frames: dict[str, Frame] = field(default_factory=dict)
    _synopses: dict[tuple[str, int], Synopsis] = field(default_factory=dict)

    # Opening

    def plan(self, request: OpenStream) -> Planned:
        """What a stream would be and cost. Reads no row and costs nothing. Errors: Refused, Problem."""
        return plan_stream(self.journey, request, restores=self.resources.ledger.restores, salt=secrets.token_hex(16))

    def estimate(self, request: OpenStream) -> dict[str, Json]:
        """What a stream would promise and cost, as it is shown. Reads no row and costs nothing. Errors: as `plan`."""
        planned = self.plan(request)
        return estimated(planned)

    def open(self, request: OpenStream) -> Settled | InFlight:
        """Charges a stream and stores it. The same request under an idempotency key finds the same stream.

        Errors: Refused; Problem; the ledger's (BudgetExhausted, IdempotencyConflict, ...), and nothing is charged then;
        ExecutionFailed.
        """
        begun = self.resources.charge(ResourceKind.STREAM, request, lambda: self.plan(request), store=self._stored)
        if not isinstance(begun, Begun):
            return begun
        stream = begun.query_id
        content = json.dumps({ResourceKind.STREAM.value: stream}).encode()
        return Settled(stream, self.resources.settle(begun, lambda: content))

    def _stored(self, row: ResourceRow, planned: Planned) -> StreamRow:
        """The stream with fresh noise of its threshold, as it is kept."""
        noise = planned.stream.noise
        threshold = NoisyThreshold.drawn(noise.threshold_scale, self.resources.bits)
        made = row.of(
            StreamRow,
            frame=planned.frame.sealed(self.seal, stream=row.id),
            sealed=sealed_state(StreamState(threshold, noise.updates, None), self.seal, stream=row.id),
            left=noise.updates,
            shared=planned.shared,
        )
        return self.registry.add_resource(STREAMS, made)

    # Asking

    def begin(self, row: StreamRow, asked: AskStream, *, by: str) -> tuple[Told, ...] | StreamQuestion:
        """The answers, where they are stored or nothing is compared any more; else the queries, planned.

        `by` is who asks: the owner, or of a shared stream anybody who may (`open_to`). Reads no row and counts nothing.
        Errors: Refused; Problem; Comparing while others of the stream have their turn.
        """
        self.end_left()
        terms = Terms.from_json(row.terms)
        frame = self._frame(row)
        cells = tuple(cells_asked(frame, query) for query in asked)
        queries = Queries(terms, frame, cells, by if row.shared else None)
        dataset = self.served.get(row.dataset)
        version = None if dataset is None else dataset.version
        known = self._known(row, queries, version)
        if known is not None:
            return known
        if dataset is None or version is None:
            raise dataset_away()
        prepared = prepared_again(self.journey, dataset, frame, terms, principal=row.principal, account=row.account)
        return StreamQuestion(row, queries, by, version, prepared, dataset)

    def complete(self, begun: StreamQuestion) -> tuple[Told, ...]:
        """Compares: waits for a slot of the engine, and for a visible moment.

        Errors: Problem; ExecutionFailed, after which the comparisons are counted and nothing is said.
        """
        # Read again: while these waited for their turn, others may have been answered.
        row, queries = self._again(begun.row.id), begun.queries
        known = self._known(row, queries, begun.version)
        if known is not None:
            return known
        self.resources.ledger.check_writable()
        fresh = self._fresh(row, begun)
        instance = self.resources.ledger.instance
        turn = self.registry.begin_comparisons(row, len(fresh), most=queries.terms.queries, instance=instance)
        if turn is None:
            raise Comparing
        if not turn.allowed:
            return self._without_rows(self._again(row.id), queries, begun.version)
        try:
            stored = self._compared(row, turn, begun, fresh)
        except Exception as error:
            self._left.append(turn)
            with suppress(*UNAVAILABLE):
                self.end_left()
            if isinstance(error, ExecutionFailed | Problem):
                raise
            # The database failed, most likely, and rows were read: there is one outcome, whatever it was.
            logger().error("comparison_cut_off", query_id=row.id, exception=type(error).__name__, where=where(error))
            raise ExecutionFailed from None
        return self._without_rows(self._again(row.id), queries, begun.version, fresh=frozenset(stored))

    def end_left(self) -> None:
        """Ends turns of this process that could not be ended when they failed. Errors: the database's."""
        for turn in tuple(self._left):
            self.registry.end_turn(turn)
            with suppress(ValueError):
                self._left.remove(turn)

    def _compared(
        self, row: StreamRow, turn: Turn, begun: StreamQuestion, fresh: Mapping[str, Cells]
    ) -> Mapping[str, str]:
        """Compares in a turn, which ends with what is stored. Errors: Problem; ExecutionFailed; the database's."""
        compared = dict(list(fresh.items())[: turn.allowed])
        state = self._state(row, begun.queries.terms)
        answers, after = self._answered(row, begun, state, tuple(compared.values()))
        stored = {
            key: _detail(answer, begun.version)
            for key, answer in zip(compared, answers, strict=True)
            if answer.found is not Found.NOT_COMPARED
        }
        sealed = sealed_state(after, self.seal, stream=row.id)
        if not self.registry.end_comparisons(row, turn, stored, sealed=sealed, left=after.left):
            raise overtaken()
        return stored

    def _fresh(self, row: StreamRow, begun: StreamQuestion) -> dict[str, Cells]:
        """The queries that are not stored for this version, each once, by their keys."""
        keys = begun.queries.keys(begun.version)
        stored = self.registry.stream_answers(row.id, keys)
        return {key: cells for key, cells in zip(keys, begun.queries.cells, strict=True) if key not in stored}

    def _known(self, row: StreamRow, queries: Queries, version: str | None) -> tuple[Told, ...] | None:
        """The answers where all are stored, or no query is compared any more; None where rows have to be read.

        Errors: Problem; Comparing where the turn that is taken may store them, or be the last one.
        """
        if row.closed is not None:
            raise is_over("it was closed")
        if self.standing(row, queries.terms).comparing or row.instance is not None:
            if version is None:
                return None
            keys = queries.keys(version)
            if len(self.registry.stream_answers(row.id, keys)) < len(set(keys)):
                if row.instance is not None:
                    raise Comparing
                return None
        return self._without_rows(row, queries, version)

    def _without_rows(
        self, row: StreamRow, queries: Queries, version: str | None, *, fresh: frozenset[str] = frozenset()
    ) -> tuple[Told, ...]:
        """What is stored of queries, and of the others what the synopsis says. `fresh` were stored just now."""
        at = self._synopsis(row, queries.terms).version if version is None else version
        keys = queries.keys(at)
        stored = self.registry.stream_answers(row.id, keys)
        told = []
        for key, cells in zip(keys, queries.cells, strict=True):
            if key in stored:
                told.append(_told(stored[key], repeated=key not in fresh))
                continue
            synopsis = self._synopsis(row, queries.terms)
            answer = not_compared(synopsis, cells)
            told.append(_told(_detail(answer, synopsis.version), repeated=False))
        return tuple(told)

    def _answered(
        self, row: StreamRow, begun: StreamQuestion, state: StreamState, queries: Sequence[Cells]
    ) -> tuple[list[Answer], StreamState]:
        """The comparisons, at their visible moment. Errors: ExecutionFailed, at a visible moment too."""
        prepared, dataset, terms = begun.prepared, begun.dataset, begun.queries.terms
        (core,), (statement,) = prepared.described, prepared.statements
        private, bits, started = self.resources.private, self.resources.bits, self.resources.pace.clock()

        def read(lease: EngineLease, visible: VisibleRun) -> tuple[list[Answer], StreamState]:
            seconds = visible.seconds_left(dataset.limits.timeout_seconds)
            exact = private.run(self.served.snapshot(dataset), statement, timeout_seconds=seconds, lease=lease)
            return answer_queries(
                core, terms.noise, state, exact, queries, tolerance=terms.tolerance, version=begun.version, bits=bits
            )

        return self.resources.read(read, name=row.id, owner=begun.by, work=prepared.work, started=started)

    # What is stored of it

    def standing(self, row: StreamRow, terms: Terms) -> Standing:
        """Whether a stream compares. A function of what was released, of the ledger and of its own counts."""
        if row.closed is not None:
            return Standing(comparing=False, why="it was closed")
        if row.left < 1:
            return Standing(comparing=False, why="its last update was made")
        if row.made >= terms.queries:
            return Standing(comparing=False, why="its stated number of compared queries is used up")
        root = self.resources.ledger.path(row.account)[-1]
        if self.resources.ledger.restores(root.id) != terms.restores:
            why = "an older copy of the ledger was put back since, which may have forgotten updates"
            return Standing(comparing=False, why=why)
        if not self._settled(row):
            return Standing(comparing=False, why="its opening was not completed")
        return Standing(comparing=True)

    def open_to(self, row: StreamRow, dataset: Dataset) -> bool:
        """Whether those who may ask the dataset may ask a stream of somebody else: as long as its policy shares."""
        return row.shared and row.dataset == dataset.name and dataset.limits.releases_shared is Sharing.FREE

    def beside(self, dataset: Dataset) -> list[dict[str, Json]]:
        """The streams that everybody who may ask the dataset may ask, the oldest first, as it describes them."""
        return [
            beside_dataset(row, self.frame_for(row), comparing=self.standing(row, Terms.from_json(row.terms)).comparing)
            for row in self.registry.shared_streams(dataset.name)
            if self.open_to(row, dataset) and self._settled(row)
        ]

    def close(self, row: StreamRow, *, actor: str) -> None:
        """Ends a stream: its secret state and its answers are deleted. What was charged stays charged."""
        self.registry.close_stream(row.id, actor=actor)
        self._frames.pop(row.id, None)

    def frame_for(self, row: StreamRow) -> Frame | None:
        """What a stream is about, for those who may ask it; None where it cannot be read, or is gone."""
        if row.closed is not None:
            return None
        try:
            return self._frame_of(row)
        except SealBroken:
            return None

    def _frame(self, row: StreamRow) -> Frame:
        """What a stream is about. Errors: Problem."""
        if row.closed is not None:
            raise is_over("it was closed")
        try:
            return self._frame_of(row)
        except SealBroken:
            raise is_over("the server's key of streams is another one than it was sealed with") from None

    def _frame_of(self, row: StreamRow) -> Frame:
        known = self._frames.get(row.id)
        if known is None:
            known = Frame.opened(row.frame, self.seal, stream=row.id)
            if len(self._frames) >= _KEPT:
                self._frames.clear()
            self._frames[row.id] = known
        return known

    def _state(self, row: StreamRow, terms: Terms) -> StreamState:
        """Where a stream stands. Errors: Problem."""
        try:
            return state_of(row.sealed, self.seal, stream=row.id, noise=terms.noise, left=row.left)
        except SealBroken:
            raise is_over("it was closed, or the server's key of streams is another one") from None

    def _synopsis(self, row: StreamRow, terms: Terms) -> Synopsis:
        """The synopsis of a stream, with what was computed of it before. Errors: Problem where there is none."""
        known = self._synopses.get((row.id, row.revision))
        if known is None:
            known = self._state(row, terms).synopsis
            if known is None:
                raise nothing_known()
            if len(self._synopses) >= _KEPT:
                self._synopses.clear()
            self._synopses[row.id, row.revision] = known
        return known

    def _settled(self, row: StreamRow) -> bool:
        """Whether the ledger has the opening of a stream as settled."""
        record = self.resources.ledger.query(row.id)
        return record is not None and record.state is QueryStatus.SETTLED

    def _again(self, stream_id: str) -> StreamRow:
        row = self.registry.resource(STREAMS, stream_id)
        assert row is not None, "streams are never removed"
        return row


def _detail(answer: Answer, version: str) -> str:
    return json.dumps([answer.found.value, answer.value, answer.standard_error, version])


def _told(detail: str, *, repeated: bool) -> Told:
    found, value, error, version = json.loads(detail)
    return Told(found=Found(found), value=value, standard_error=error, version=version, repeated=repeated)
