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

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from accountant.errors import LedgerError
from accountant.ledger import Ledger
from accountant.request import CoreCharge, Reserved, ReserveRequest, Reuse
from accountant.states import QueryStatus
from engines.protocol import StatementEngine
from mechanisms.randomness import BitSource
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.streams.asking import Answer, Found, StreamState, answer_queries, not_compared
from mechanisms.streams.synopsis import Cells, Synopsis
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed
from server.answer import Journey
from server.journey.admission import Served
from server.journey.agreed_price import at_agreed_price, moved
from server.journey.query import Prepared
from server.log import logger
from server.published import STREAM
from server.resources.offer import Offer
from server.sealing import Seal, SealBroken
from server.store.errors import UNAVAILABLE
from server.store.registry import Registry
from server.store.streams import StreamRow, Turn
from server.streams.cells import cells_asked
from server.streams.opening import Planned, plan_stream, prepared_again
from server.streams.refusals import Comparing, dataset_away, is_over, not_open, nothing_known, overtaken
from server.streams.sealing import Frame, sealed_state, state_of
from server.streams.terms import AskStream, OpenStream, Terms, Told

__all__ = ["Standing", "StreamQuestion", "Streams"]

_KEPT: Final = 256
"""Streams whose frames, and whose synopses, are kept once they are read."""


@dataclass(frozen=True, slots=True)
class StreamQuestion:
    """Queries that are planned and have read no row: of a stream as it was, with the cells that each asks for."""

    row: StreamRow
    terms: Terms
    frame: Frame
    version: str
    queries: tuple[Cells, ...]
    prepared: Prepared
    dataset: Dataset


@dataclass(frozen=True, slots=True)
class Standing:
    """What a stream can do: whether it compares, and if not, why."""

    status: str
    why: str | None


@dataclass(slots=True)
class Streams:
    """The streams of a server. Safe to use from many threads."""

    ledger: Ledger
    registry: Registry
    journey: Journey
    served: Served
    private: StatementEngine
    bits: BitSource
    seal: Seal
    _left: list[Turn] = field(default_factory=list)
    _frames: dict[str, Frame] = field(default_factory=dict)
    _synopses: dict[tuple[str, int], Synopsis] = field(default_factory=dict)

    # Opening

    def plan(self, request: OpenStream) -> Planned:
        """What a stream would be and cost. Reads no row and costs nothing. Errors: Refused, Problem."""
        return plan_stream(self.journey, request, restores=self.ledger.restores, salt=secrets.token_hex(16))

    def open(self, request: OpenStream) -> StreamRow:
        """Charges a stream and stores it. The same request under an idempotency key finds the same stream.

        Errors: Refused; Problem; the ledger's (BudgetExhausted, IdempotencyConflict, ...). Nothing is charged then.
        """
        if request.idempotency_key is not None:
            earlier = self.ledger.earlier(request.principal, request.idempotency_key, request.body_hash)
            if earlier is not None:
                return self._opened(earlier.query_id)
        stream = f"st_{secrets.token_hex(12)}"

        def attempt() -> tuple[Planned, Reserved]:
            planned = self.plan(request)
            return planned, self.ledger.reserve(_reservation(stream, request, planned.offer))

        planned, reserved = at_agreed_price(attempt, refused=lambda: moved("the stream"))
        if not reserved.fresh:
            return self._opened(reserved.query_id)
        noise = planned.terms.noise
        state = StreamState(NoisyThreshold.drawn(noise.threshold_scale, self.bits), noise.updates, None)
        row = StreamRow(
            id=stream,
            principal=request.principal,
            dataset=request.dataset,
            account=planned.offer.account.id,
            created="",
            terms=planned.terms.to_json(),
            frame=planned.frame.sealed(self.seal, stream=stream),
            sealed=sealed_state(state, self.seal, stream=stream),
            left=noise.updates,
        )
        try:
            row = self.registry.add_stream(row)
            self.ledger.post(stream, (), json.dumps({STREAM: stream}).encode())
        except Exception:
            # Charged and not opened: what became of the noise is unknown, so nothing is given back.
            self._fail(stream)
            raise
        return row

    def _opened(self, stream_id: str) -> StreamRow:
        """The stream of an earlier request. Errors: Problem while it is being opened, or if that failed."""
        row = self.registry.stream(stream_id)
        if row is None or not self._settled(stream_id):
            raise not_open()
        return row

    # Asking

    def begin(self, row: StreamRow, asked: AskStream) -> tuple[Told, ...] | StreamQuestion:
        """The answers, where they are stored or nothing is compared any more; else the queries, planned.

        Reads no row and counts nothing. Errors: Refused; Problem; Comparing while others of the stream have their turn.
        """
        self.end_left()
        terms = Terms.from_json(row.terms)
        frame = self._frame(row)
        queries = tuple(cells_asked(frame, query) for query in asked)
        dataset = self.served.get(row.dataset)
        version = None if dataset is None else dataset.version
        known = self._known(row, terms, frame, queries, version)
        if known is not None:
            return known
        if dataset is None or version is None:
            raise dataset_away()
        prepared = prepared_again(self.journey, dataset, frame, terms, principal=row.principal, account=row.account)
        return StreamQuestion(row, terms, frame, version, queries, prepared, dataset)

    def complete(self, begun: StreamQuestion) -> tuple[Told, ...]:
        """Compares: waits for a slot of the engine, and for a visible moment.

        Errors: Problem; ExecutionFailed, after which the comparisons are counted and nothing is said.
        """
        # Read again: while these waited for their turn, others may have been answered.
        row = self.registry.stream(begun.row.id)
        assert row is not None, "streams are never removed"
        known = self._known(row, begun.terms, begun.frame, begun.queries, begun.version)
        if known is not None:
            return known
        self.ledger.check_writable()
        fresh = self._fresh(row, begun)
        turn = self.registry.begin_comparisons(row, len(fresh), most=begun.terms.queries, instance=self.ledger.instance)
        if turn is None:
            raise Comparing
        if not turn.allowed:
            row = self._again(row.id)
            return self._without_rows(row, begun.terms, begun.frame, begun.queries, begun.version)
        try:
            stored = self._compared(row, turn, begun, fresh)
        except Exception:
            self._left.append(turn)
            with suppress(*UNAVAILABLE):
                self.end_left()
            raise
        return self._without_rows(
            self._again(row.id), begun.terms, begun.frame, begun.queries, begun.version, fresh=frozenset(stored)
        )

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
        state = self._state(row, begun.terms)
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
        keys = [begun.frame.key(cells, begun.version) for cells in begun.queries]
        stored = self.registry.stream_answers(row.id, keys)
        return {key: cells for key, cells in zip(keys, begun.queries, strict=True) if key not in stored}

    def _known(
        self, row: StreamRow, terms: Terms, frame: Frame, queries: Sequence[Cells], version: str | None
    ) -> tuple[Told, ...] | None:
        """The answers where all are stored, or no query is compared any more; None where rows have to be read.

        Errors: Problem; Comparing where the turn that is taken may store them, or be the last one.
        """
        standing = self.standing(row, terms)
        if standing.status == "closed":
            raise is_over("it was closed")
        if standing.status == "comparing" or row.instance is not None:
            if version is None:
                return None
            keys = [frame.key(cells, version) for cells in queries]
            if len(self.registry.stream_answers(row.id, keys)) < len(set(keys)):
                if row.instance is not None:
                    raise Comparing
                return None
        return self._without_rows(row, terms, frame, queries, version)

    def _without_rows(
        self,
        row: StreamRow,
        terms: Terms,
        frame: Frame,
        queries: Sequence[Cells],
        version: str | None,
        *,
        fresh: frozenset[str] = frozenset(),
    ) -> tuple[Told, ...]:
        """What is stored of queries, and of the others what the synopsis says. `fresh` were stored just now."""
        at = self._synopsis(row, terms).version if version is None else version
        keys = [frame.key(cells, at) for cells in queries]
        stored = self.registry.stream_answers(row.id, keys)
        told = []
        for key, cells in zip(keys, queries, strict=True):
            if key in stored:
                told.append(_told(stored[key], repeated=key not in fresh))
                continue
            synopsis = self._synopsis(row, terms)
            answer = not_compared(synopsis, cells)
            told.append(_told(_detail(answer, synopsis.version), repeated=False))
        return tuple(told)

    def _answered(
        self, row: StreamRow, begun: StreamQuestion, state: StreamState, queries: Sequence[Cells]
    ) -> tuple[list[Answer], StreamState]:
        """The comparisons, at their visible moment. Errors: ExecutionFailed, at a visible moment too."""
        clock = self.journey.pace.clock()
        prepared, dataset = begun.prepared, begun.dataset
        (core,), (statement,) = prepared.described, prepared.statements
        with ExitStack() as slot:
            # Without a lease no row was read, so no visible moment is needed.
            lease = slot.enter_context(self.private.lease(owner=row.principal))
            visible = self.journey.pace.visible(prepared.work, clock, self.bits)
            found: tuple[list[Answer], StreamState] | None = None
            try:
                exact = self.private.run(
                    self.served.snapshot(dataset),
                    statement,
                    timeout_seconds=visible.seconds_left(dataset.limits.timeout_seconds),
                    lease=lease,
                )
                found = answer_queries(
                    core,
                    begun.terms.noise,
                    state,
                    exact,
                    queries,
                    tolerance=begun.terms.tolerance,
                    version=begun.version,
                    bits=self.bits,
                )
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing of it may travel further
                failed = type(error).__name__
            visible.wait()
        if found is None:
            logger().warning("comparison_failed", query_id=row.id, exception=failed)
            raise ExecutionFailed
        return found

    # What is stored of it

    def standing(self, row: StreamRow, terms: Terms) -> Standing:
        """Whether a stream compares. A function of what was released, of the ledger and of its own counts."""
        if row.closed is not None:
            return Standing("closed", None)
        if row.left < 1:
            return Standing("not_comparing", "its last update was made")
        if row.made >= terms.queries:
            return Standing("not_comparing", "its stated number of compared queries is used up")
        root = self.ledger.path(row.account)[-1]
        if self.ledger.restores(root.id) != terms.restores:
            return Standing(
                "not_comparing", "an older copy of the ledger was put back since, which may have forgotten updates"
            )
        if not self._settled(row.id):
            return Standing("not_comparing", "its opening was not completed")
        return Standing("comparing", None)

    def close(self, row: StreamRow, *, actor: str) -> StreamRow:
        """Ends a stream: its secret state and its answers are deleted. What was charged stays charged."""
        self.registry.close_stream(row.id, actor=actor)
        self._frames.pop(row.id, None)
        return self._again(row.id)

    def frame_for(self, row: StreamRow) -> Frame | None:
        """What a stream is about, for its owner; None where it cannot be read, or is gone."""
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

    def _again(self, stream_id: str) -> StreamRow:
        row = self.registry.stream(stream_id)
        assert row is not None, "streams are never removed"
        return row

    def _settled(self, stream_id: str) -> bool:
        """Whether the ledger has the opening of a stream as settled."""
        record = self.ledger.query(stream_id)
        return record is not None and record.state is QueryStatus.SETTLED

    def _fail(self, stream_id: str) -> None:
        try:
            self.ledger.fail(stream_id)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=stream_id, exception=type(error).__name__)


def _reservation(stream: str, request: OpenStream, offer: Offer) -> ReserveRequest:
    """One charge for all of it, under a key that nothing else has: no stored release serves it."""
    key = hashlib.sha256(f"{STREAM} {stream}".encode()).hexdigest()
    charge = CoreCharge(core_key=key, quality=Fraction(1), events=offer.events, lent=False)
    return ReserveRequest(
        query_id=stream,
        principal=request.principal,
        account=offer.account.id,
        body_hash=request.body_hash,
        cores=(charge,),
        idempotency_key=request.idempotency_key,
        reuse=Reuse.NONE,
        most=offer.cost,
        description={STREAM: stream, "cores": [], "noise": offer.noise},
    )


def _detail(answer: Answer, version: str) -> str:
    return json.dumps([answer.found.value, answer.value, answer.standard_error, version])


def _told(detail: str, *, repeated: bool) -> Told:
    found, value, error, version = json.loads(detail)
    return Told(found=Found(found), value=value, standard_error=error, version=version, repeated=repeated)
