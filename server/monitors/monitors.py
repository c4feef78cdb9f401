"""Opening and evaluating monitors.

A monitor is one sparse vector session (mechanisms/sparse_vector.md). Opening it charges the session in whole, for a
stated number of hits; evaluations then cost nothing, however many of its stated number are made. An evaluation takes
the steps of a question: the plan is tried on empty twins, the statement runs in one slot until its visible moment, and
only then is anything written or reported. An outcome is durable before it is reported; one that another evaluation
overtook is thrown away unseen.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction

from accountant.errors import BudgetExhausted, LedgerError
from accountant.request import ReserveRequest, Reuse
from accountant.states import QueryStatus
from engines.protocol import EngineLease
from mechanisms.comparing import Compared, compare
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.samplers.undecided import Magnitude
from mechanisms.sparse_vector import SparseRun
from privacy.norms import NormPower
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Refused
from privacy.values import Json
from server.admitted import InFlight, Settled
from server.answer import Journey
from server.errors import Problem
from server.journey.admission import Served
from server.journey.pace import VisibleRun
from server.journey.query import Prepared
from server.log import logger, where
from server.monitors.estimating import estimated
from server.monitors.notices import notice_of
from server.monitors.recovery import Recovery, answer_of
from server.monitors.refusals import (
    UnderWay,
    dataset_away,
    is_over,
    overtaken,
    stands,
)
from server.monitors.sealing import SecretState
from server.monitors.session import session_of
from server.monitors.shape import CLOCK, compared_sum, require_terms, threshold_steps
from server.monitors.terms import Direction, Evaluated, EvaluateMonitor, OpenMonitor, Terms
from server.question import plain_question
from server.resources.kinds import ResourceKind
from server.resources.offer import Offer
from server.resources.resources import Begun, Resources, charge_of
from server.sealing import Seal, SealBroken
from server.store.errors import UNAVAILABLE
from server.store.monitors import EvaluationRow, NotBegun
from server.store.registry import Registry
from server.store.resources import MONITORS, MonitorRow, ResourceRow
from sql_rewrite.cost import Work

__all__ = ["Evaluation", "Monitors"]

_MONITOR = ResourceKind.MONITOR.value


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation that is planned and has read no row: of a monitor as it was, with the threshold in steps."""

    row: MonitorRow
    terms: Terms
    version: str
    prepared: Prepared
    dataset: Dataset
    threshold: int
    again: bool = True
    """Whether it is made where there was one of the same version already, which failed."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A monitor that may be opened, and what was asked; `work` is that of one evaluation."""

    request: OpenMonitor
    monitor: Terms
    offer: Offer
    work: Work

    @property
    def terms(self) -> str:
        """What is kept of the request."""
        return self.monitor.to_json()


@dataclass(slots=True)
class Monitors:
    """The monitors of a server. Safe to use from many threads."""

    resources: Resources
    registry: Registry
    journey: Journey
    served: Served
    seal: Seal
    _left: list[EvaluationRow] = field(default_factory=list)

    # Opening

    def open(self, request: OpenMonitor) -> Settled | InFlight:
        """Charges a session and stores it. The same request under an idempotency key finds the same monitor.

        Errors: Refused; Problem; the ledger's (BudgetExhausted, IdempotencyConflict, ...), and nothing is charged then;
        ExecutionFailed.
        """
        begun = self.resources.charge(ResourceKind.MONITOR, request, lambda: self._planned(request), store=self._stored)
        if not isinstance(begun, Begun):
            return begun
        monitor = begun.query_id
        return Settled(monitor, self.resources.settle(begun, lambda: json.dumps({_MONITOR: monitor}).encode()))

    def estimate(self, request: OpenMonitor) -> dict[str, Json]:
        """What the monitor would cost, and how exact it would be. Reads no row, charges nothing. Errors: Refused."""
        opening = self._planned(request)
        return estimated(opening.monitor, opening.offer, self.resources.pace.moments(opening.work))

    def _planned(self, request: OpenMonitor) -> Opening:
        """The session that a request asks for, on the accounts as they are now. Errors: Refused."""
        question = plain_question(
            principal=request.principal,
            dataset=request.dataset,
            sql=request.sql,
            account=request.account,
            contribution=request.contribution,
            body_hash=request.body_hash,
        )
        dataset, path = self.journey.admission.paying(question)
        if not request.stream and question.started is not None:
            raise Refused([CLOCK])
        prepared = self.journey.preparing.prepare(question, dataset, NormPower.L2)
        restores = self.resources.ledger.restores(path[-1].id)
        found = compared_sum(prepared, self.journey.sizes.profile(dataset))
        terms, offer = session_of(request, found, dataset, tuple(path), restores=restores)
        return Opening(request, terms, offer, prepared.work)

    def _stored(self, row: ResourceRow, opening: Opening) -> MonitorRow:
        """The monitor with fresh noise of its threshold, as it is kept."""
        request, terms = opening.request, opening.monitor
        noise = NoisyThreshold.drawn(terms.threshold_scale, self.resources.bits).noise
        state = SecretState(request.sql, str(request.threshold), noise.value, noise.length)
        sealed = state.sealed(self.seal, monitor=row.id)
        made = row.of(MonitorRow, sealed=sealed, left=terms.hits, background=terms.background)
        return self.registry.add_resource(MONITORS, made)

    # Evaluating

    def evaluate(self, row: MonitorRow, request: EvaluateMonitor) -> Evaluated:
        """Compares the sum of the data as they are now with the threshold; says again what was said of this version.

        Errors: Refused; Problem; ExecutionFailed, after which the evaluation is counted and nothing is said.
        """
        begun = self.begin(row, request)
        return begun if isinstance(begun, Evaluated) else self.complete(begun)

    def begin(self, row: MonitorRow, request: EvaluateMonitor, *, again: bool = True) -> Evaluated | Evaluation:
        """Reads and plans the question of an evaluation; reads no row and counts nothing.

        Errors: Refused; Problem; UnderWay while another one of the same version runs, which will say it, or any other
        one of a stream, whose evaluations follow one another.
        """
        terms = Terms.from_json(row.terms)
        dataset = self.served.get(row.dataset)
        if dataset is None:
            raise dataset_away()
        version = dataset.version
        if not terms.stream:
            if request.sql is not None or request.threshold is not None:
                raise stands()
            known = self._known(row, version)
            if known is not None:
                return known
        if self.registry.under_way(row.id, version=None if terms.stream else version):
            raise UnderWay(stream=terms.stream)
        state = self._require_open(row, terms)
        sql = state.sql if request.sql is None else request.sql
        asked = plain_question(
            principal=row.principal,
            dataset=row.dataset,
            sql=sql,
            account=row.account,
            contribution=terms.contribution,
            body_hash=hashlib.sha256(sql.encode()).hexdigest(),
        )
        prepared = self.journey.preparing.prepare(asked, dataset, NormPower.L2)
        found = compared_sum(prepared)
        require_terms(found, terms)
        limit = Fraction(state.threshold) if request.threshold is None else request.threshold
        steps = threshold_steps(limit, found, terms.direction)
        return Evaluation(row, terms, version, prepared, dataset, steps, again)

    def complete(self, begun: Evaluation) -> Evaluated:
        """Compares: waits for a slot of the engine, and for a visible moment. Errors: as `evaluate`."""
        # Read again: while this one waited for its turn, another one may have said it, or have had the last hit.
        row = self.registry.resource(MONITORS, begun.row.id)
        assert row is not None, "monitors are never removed"
        terms, version = begun.terms, begun.version
        known = None if terms.stream else self._known(row, version)
        if known is not None:
            return known
        state = self._require_open(row, terms)
        self.resources.ledger.check_writable()
        counted = self.registry.begin_evaluation(
            row.id,
            revision=row.revision,
            version=version,
            most=terms.evaluations,
            instance=self.resources.ledger.instance,
            standing=not terms.stream,
            again=begun.again,
        )
        if isinstance(counted, NotBegun):
            if counted is NotBegun.USED_UP:
                raise is_over("its stated number of evaluations is used up")
            raise UnderWay(stream=terms.stream)
        run = SparseRun(
            terms.sparse, NoisyThreshold(terms.threshold_scale, Magnitude(state.noise, state.length)), row.left
        )
        try:
            compared = self._compared(row, counted, begun, run)
            return self._said(row, counted, begun, state, run, compared)
        except (ExecutionFailed, Problem):
            raise
        except Exception as error:  # noqa: BLE001 - the database failed, most likely, and rows were read
            # What was stored of it is what is said of it.
            logger().error("evaluation_cut_off", query_id=row.id, exception=type(error).__name__, where=where(error))
            self._left.append(counted)
            with suppress(LedgerError, *UNAVAILABLE):
                self.end_left()
            raise ExecutionFailed from None

    def end_left(self) -> None:
        """Ends evaluations of this process that could not be ended when they failed. Errors: the database's."""
        for counted in tuple(self._left):
            found = self.registry.evaluation(counted.monitor, counted.number)
            Recovery(self.resources.ledger, self.registry).end(
                [found] if found.instance == self.resources.ledger.instance else []
            )
            with suppress(ValueError):
                # Another thread ended it at the same moment.
                self._left.remove(counted)

    def _known(self, row: MonitorRow, version: str) -> Evaluated | None:
        """What was said of this version of the data already; None where it was not evaluated, or failed.

        An evaluation that this one overtook has a later number, and said nothing.
        """
        last = self.registry.last_said(row.id)
        if last is None or last.version != version or last.outcome is None:
            return None
        return Evaluated(
            number=last.number,
            version=version,
            at=last.at,
            outcome=last.outcome,
            detail=json.loads(last.detail or "{}"),
            left=row.left,
            repeated=True,
        )

    def _require_open(self, row: MonitorRow, terms: Terms) -> SecretState:
        """The secret state of a monitor that may be evaluated. Errors: Problem."""
        if row.left < 1:
            raise is_over("its last hit was released")
        if row.closed is not None:
            raise is_over("its stated number of evaluations is used up, or its owner closed it")
        root = self.resources.ledger.path(row.account)[-1]
        if self.resources.ledger.restores(root.id) != terms.restores:
            raise is_over("an older copy of the ledger was put back since, which may have forgotten its hits")
        if not self._open(row.id):
            raise is_over("its opening was not completed")
        try:
            return SecretState.opened(row.sealed, self.seal, monitor=row.id)
        except SealBroken:
            raise is_over("the server's key of monitors is another one than it was sealed with") from None

    def _compared(self, row: MonitorRow, counted: EvaluationRow, asked: Evaluation, run: SparseRun) -> Compared:
        """The comparison, at its visible moment. Errors: ExecutionFailed, at a visible moment too."""
        prepared, dataset, below = asked.prepared, asked.dataset, asked.terms.direction is Direction.BELOW
        (core,), (statement,) = prepared.described, prepared.statements
        private, bits, started = self.resources.private, self.resources.bits, self.resources.pace.clock()

        def read(lease: EngineLease, visible: VisibleRun) -> Compared:
            seconds = visible.seconds_left(dataset.limits.timeout_seconds)
            exact = private.run(self.served.snapshot(dataset), statement, timeout_seconds=seconds, lease=lease)
            return compare(core, run, exact, threshold=asked.threshold, below=below, bits=bits)

        try:
            return self.resources.read(read, name=row.id, owner=row.principal, work=prepared.work, started=started)
        except ExecutionFailed:
            self._failed(row, counted)
            raise

    def _said(
        self,
        row: MonitorRow,
        counted: EvaluationRow,
        asked: Evaluation,
        state: SecretState,
        run: SparseRun,
        compared: Compared,
    ) -> Evaluated:
        """Makes an outcome durable, and then says it; a hit that is answered is charged and answered after that."""
        terms, hit = asked.terms, compared.hit
        outcome = "not_passed" if hit is None else "passed"
        noise = run.threshold.noise
        after = SecretState(state.sql, state.threshold, noise.value, noise.length)
        sealed = after.sealed(self.seal, monitor=row.id)
        detail: dict[str, object] = {}
        if hit is not None:
            # The gap is the distance beyond the threshold, at no cost.
            detail["gap"] = float(Fraction(hit.gap) * terms.step)
        answered = hit is not None and terms.numeric is not None
        number, text = counted.number, json.dumps(detail)
        notice = None if answered else notice_of(row, counted, outcome=outcome, detail=text, left=run.left)
        if not self.registry.end_evaluation(
            row, number, outcome=outcome, detail=text, sealed=sealed, left=run.left, notice=notice
        ):
            self._failed(row, counted)
            raise overtaken()
        if answered:
            detail |= self._answered(row, number, terms, compared)
            text = json.dumps(detail)
            notice = notice_of(row, counted, outcome=outcome, detail=text, left=run.left)
            self.registry.note_evaluation(row.id, number, outcome=outcome, detail=text, notice=notice)
        return Evaluated(
            number=number,
            version=counted.version,
            at=counted.at,
            outcome=outcome,
            detail=detail,
            left=run.left,
            repeated=False,
        )

    def _failed(self, row: MonitorRow, counted: EvaluationRow) -> None:
        """Ends an evaluation that says nothing."""
        notice = notice_of(row, counted, outcome="failed", detail=None)
        self.registry.note_evaluation(row.id, counted.number, outcome="failed", detail=None, notice=notice)

    def _answered(self, row: MonitorRow, number: int, terms: Terms, compared: Compared) -> dict[str, object]:
        """The answer to a hit, charged now: beyond the threshold by how much, by itself and with the gap."""
        numeric, hit = terms.numeric, compared.hit
        assert numeric is not None
        assert hit is not None
        query_id = answer_of(row.id, number)
        try:
            self.resources.ledger.reserve(
                ReserveRequest(
                    query_id=query_id,
                    principal=row.principal,
                    account=row.account,
                    body_hash=hashlib.sha256(query_id.encode()).hexdigest(),
                    cores=(charge_of(ResourceKind.MONITOR, query_id, (numeric.answer_event(),)),),
                    reuse=Reuse.NONE,
                    description={_MONITOR: row.id, "cores": [], "noise": "laplace"},
                )
            )
        except BudgetExhausted:
            return {"answer_refused": "budget_exhausted"}
        except LedgerError:
            return {"answer_refused": "unavailable"}
        answer = compared.answer(numeric, self.resources.bits)
        deviation = numeric.answer_variance**0.5
        body: dict[str, object] = {
            "beyond": float(Fraction(answer) * terms.step),
            "beyond_standard_error": deviation * float(terms.step),
            "combined": float(numeric.combined(hit, answer) * terms.step),
            "query": query_id,
        }
        try:
            self.resources.ledger.post(query_id, (), json.dumps({_MONITOR: row.id, **body}).encode())
        except LedgerError as error:
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)
            return {"answer_refused": "unavailable"}
        return body

    # What is stored of it

    def _open(self, monitor_id: str) -> bool:
        """Whether the ledger has the opening of a monitor as settled."""
        record = self.resources.ledger.query(monitor_id)
        return record is not None and record.state is QueryStatus.SETTLED

    def question_of(self, row: MonitorRow) -> tuple[str, str] | None:
        """Text and threshold of a monitor, for its owner; None where its state cannot be read."""
        try:
            state = SecretState.opened(row.sealed, self.seal, monitor=row.id)
        except SealBroken:
            return None
        return state.sql, decimal_text(abs(Fraction(state.threshold)))
