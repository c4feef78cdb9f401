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
import secrets
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fractions import Fraction

from accountant.account import Account
from accountant.errors import BudgetExhausted, LedgerError
from accountant.ledger import Ledger
from accountant.request import ReserveRequest, Reuse
from accountant.states import QueryStatus
from engines.protocol import StatementEngine
from mechanisms.comparing import Compared, compare
from mechanisms.randomness import BitSource
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.samplers.undecided import Magnitude
from mechanisms.sparse_vector import SparseRun, SparseVector
from privacy.norms import NormPower
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Refused
from privacy.values import Json
from server.answer import Journey
from server.errors import Problem
from server.floor import Floor
from server.journey.admission import Served
from server.journey.query import Prepared
from server.log import logger, where
from server.monitors.charging import charge_of, question_of_monitor, reservation
from server.monitors.estimating import estimated
from server.monitors.notices import notice_of
from server.monitors.recovery import Recovery, answer_of
from server.monitors.refusals import (
    UnderWay,
    above_most,
    answer_below_floor,
    below_floor,
    dataset_away,
    is_over,
    noise_unreachable,
    overtaken,
    stands,
)
from server.monitors.sealing import SecretState
from server.monitors.shape import CLOCK, compared_sum, require_terms, threshold_steps
from server.monitors.terms import Direction, Evaluated, EvaluateMonitor, OpenMonitor, Terms
from server.published import MONITOR
from server.sealing import Seal, SealBroken
from server.store.errors import UNAVAILABLE
from server.store.monitors import EvaluationRow, MonitorRow, NotBegun
from server.store.registry import Registry

__all__ = ["Evaluation", "Monitors", "version_of"]


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


def version_of(dataset: Dataset) -> str:
    """What an evaluation says it compared: versions of policy and data."""
    return f"{dataset.policy_version}:{dataset.data_version}"


@dataclass(slots=True)
class Monitors:
    """The monitors of a server. Safe to use from many threads."""

    ledger: Ledger
    registry: Registry
    journey: Journey
    served: Served
    private: StatementEngine
    bits: BitSource
    seal: Seal
    _left: list[EvaluationRow] = field(default_factory=list)

    # Opening

    def open(self, request: OpenMonitor) -> MonitorRow:
        """Charges a session and stores it. The same request under an idempotency key finds the same monitor.

        Errors: Refused; Problem; the ledger's (BudgetExhausted, IdempotencyConflict, ...). Nothing is charged then.
        """
        if request.idempotency_key is not None:
            earlier = self.ledger.earlier(request.principal, request.idempotency_key, request.body_hash)
            if earlier is not None:
                return self._opened(earlier.query_id)
        dataset, path, _, terms = self._priced(request)
        reserved = self.ledger.reserve(reservation(f"m_{secrets.token_hex(12)}", request, terms, path[0]))
        if not reserved.fresh:
            return self._opened(reserved.query_id)
        noise = NoisyThreshold.drawn(terms.threshold_scale, self.bits).noise
        state = SecretState(request.sql, str(request.threshold), noise.value, noise.length)
        row = MonitorRow(
            id=reserved.query_id,
            principal=request.principal,
            dataset=dataset.name,
            account=path[0].id,
            created="",
            terms=terms.to_json(),
            sealed=state.sealed(self.seal, monitor=reserved.query_id),
            left=terms.hits,
            background=terms.background,
        )
        try:
            row = self.registry.add_monitor(row)
            self.ledger.post(row.id, (), json.dumps({MONITOR: row.id}).encode())
        except Exception:
            # Charged and not opened: what became of the noise is unknown, so nothing is given back.
            self._fail(reserved.query_id)
            raise
        return row

    def estimate(self, request: OpenMonitor) -> dict[str, Json]:
        """What the monitor would cost, and how exact it would be. Reads no row, charges nothing. Errors: Refused."""
        _, path, prepared, terms = self._priced(request)
        return estimated(terms, path, self.journey.pace.moments(prepared.work))

    def _priced(self, request: OpenMonitor) -> tuple[Dataset, tuple[Account, ...], Prepared, Terms]:
        """Who would pay, what would be asked, and the session: all by text and declarations. Errors: Refused."""
        question = question_of_monitor(
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
        terms = self._terms(request, prepared, path[-1])
        self._require_worth(terms, dataset, path[-1])
        return dataset, tuple(path), prepared, terms

    def _opened(self, monitor_id: str) -> MonitorRow:
        """The monitor of an earlier request. Errors: Problem conflict while it is being opened, or if that failed."""
        row = self.registry.monitor(monitor_id)
        if row is None or not self._open(monitor_id):
            raise Problem(
                "conflict",
                what="the monitor of this Idempotency-Key is not open",
                why="It is being opened at this moment, or its opening failed after it was charged.",
                instead=("Send the request again in a moment.", "Open another one with a fresh key."),
            )
        return row

    def _terms(self, request: OpenMonitor, prepared: Prepared, root: Account) -> Terms:
        found = compared_sum(prepared)
        try:
            sparse = SparseVector.for_epsilon(
                request.epsilon,
                sensitivity=found.change,
                hits=request.hits,
                one_way=found.one_way,
                interactive=True,
            )
            answer = None
            if request.answer_epsilon is not None:
                answer = Terms.scale_of_answers(found.change, request.answer_epsilon)
            terms = Terms(
                direction=request.direction,
                epsilon=request.epsilon,
                hits=request.hits,
                evaluations=request.evaluations,
                stream=request.stream,
                change=found.change,
                step=found.step,
                one_way=found.one_way,
                upwards=found.upwards,
                threshold_scale=sparse.threshold_scale,
                query_scale=sparse.query_scale,
                answer_scale=answer,
                answer_epsilon=request.answer_epsilon,
                restores=self.ledger.restores(root.id),
                contribution=request.contribution,
                background=request.background,
            )
            # What the ledger and the sampler refuse is refused before anything is charged.
            terms.sparse.event().loss()
            if terms.numeric is not None:
                terms.numeric.answer_event().loss()
        except ValueError as error:
            raise Refused([noise_unreachable(str(error))]) from None
        return terms

    @staticmethod
    def _require_worth(terms: Terms, dataset: Dataset, root: Account) -> None:
        """Refuses a session that takes more than the policy lets one question take, or less than its looks are worth.

        They are looks at rows: how many of them a root affords is bounded by the floor, as for questions.
        """
        greatest = max(terms.epsilon, terms.answer_epsilon or Fraction(0))
        if greatest > dataset.limits.epsilon_max:
            raise Refused([above_most(dataset.limits.epsilon_max)])
        floor = Floor.of(dataset, root)
        if floor.missing(terms.sparse.event().loss(), runs=terms.evaluations) > 1:
            raise Refused([below_floor(terms, floor)])
        if terms.numeric is not None and floor.missing(terms.numeric.answer_event().loss()) > 1:
            raise Refused([answer_below_floor(floor)])

    # Evaluating

    def evaluate(self, row: MonitorRow, request: EvaluateMonitor) -> Evaluated:
        """Compares the sum of the data as they are now with the threshold; says again what was said of this version.

        Errors: Refused; Problem; ExecutionFailed, after which the evaluation is counted and nothing is said.
        """
        begun = self.begin(row, request)
        return begun if isinstance(begun, Evaluated) else self.complete(begun)

    def begin(self, row: MonitorRow, request: EvaluateMonitor, *, again: bool = True) -> Evaluated | Evaluation:
        """Reads and plans the question of an evaluation; reads no row and counts nothing.

        Errors: Refused; Problem; UnderWay while another one of the same version runs, which will say it.
        """
        terms = Terms.from_json(row.terms)
        dataset = self.served.get(row.dataset)
        if dataset is None:
            raise dataset_away()
        version = version_of(dataset)
        if not terms.stream:
            if request.sql is not None or request.threshold is not None:
                raise stands()
            known = self._known(row, version)
            if known is not None:
                return known
            if self.registry.under_way(row.id, version=version):
                raise UnderWay
        state = self._require_open(row, terms)
        sql = state.sql if request.sql is None else request.sql
        asked = question_of_monitor(
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
        row = self.registry.monitor(begun.row.id)
        assert row is not None, "monitors are never removed"
        terms, version = begun.terms, begun.version
        known = None if terms.stream else self._known(row, version)
        if known is not None:
            return known
        state = self._require_open(row, terms)
        self.ledger.check_writable()
        counted = self.registry.begin_evaluation(
            row.id,
            version=version,
            most=terms.evaluations,
            instance=self.ledger.instance,
            standing=not terms.stream,
            again=begun.again,
        )
        if isinstance(counted, NotBegun):
            raise is_over("its stated number of evaluations is used up") if counted is NotBegun.USED_UP else UnderWay()
        run = SparseRun(
            terms.sparse, NoisyThreshold(terms.threshold_scale, Magnitude(state.noise, state.length)), row.left
        )
        try:
            compared = self._compared(row, counted, begun, run)
            return self._said(row, counted, terms, state, run, compared)
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
            Recovery(self.ledger, self.registry).end([found] if found.instance == self.ledger.instance else [])
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
        root = self.ledger.path(row.account)[-1]
        if self.ledger.restores(root.id) != terms.restores:
            raise is_over("an older copy of the ledger was put back since, which may have forgotten its hits")
        if not self._open(row.id):
            raise is_over("its opening was not completed")
        try:
            return SecretState.opened(row.sealed, self.seal, monitor=row.id)
        except SealBroken:
            raise is_over("the server's key of monitors is another one than it was sealed with") from None

    def _compared(self, row: MonitorRow, counted: EvaluationRow, asked: Evaluation, run: SparseRun) -> Compared:
        """The comparison, at its visible moment. Errors: ExecutionFailed, at a visible moment too."""
        begun = self.journey.pace.clock()
        prepared, dataset, below = asked.prepared, asked.dataset, asked.terms.direction is Direction.BELOW
        (core,), (statement,) = prepared.described, prepared.statements
        with ExitStack() as slot:
            try:
                lease = slot.enter_context(self.private.lease(owner=row.principal))
            except ExecutionFailed:
                # No row was read, so no visible moment is needed.
                self._failed(row, counted)
                raise
            visible = self.journey.pace.visible(prepared.work, begun, self.bits)
            compared: Compared | None = None
            try:
                exact = self.private.run(
                    self.served.snapshot(dataset),
                    statement,
                    timeout_seconds=visible.seconds_left(dataset.limits.timeout_seconds),
                    lease=lease,
                )
                compared = compare(core, run, exact, threshold=asked.threshold, below=below, bits=self.bits)
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing of it may travel further
                failed = type(error).__name__
            visible.wait()
        if compared is None:
            logger().warning("evaluation_failed", query_id=row.id, exception=failed)
            self._failed(row, counted)
            raise ExecutionFailed
        return compared

    def _said(
        self,
        row: MonitorRow,
        counted: EvaluationRow,
        terms: Terms,
        state: SecretState,
        run: SparseRun,
        compared: Compared,
    ) -> Evaluated:
        """Makes an outcome durable, and then says it; a hit that is answered is charged and answered after that."""
        hit = compared.hit
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
            self.ledger.reserve(
                ReserveRequest(
                    query_id=query_id,
                    principal=row.principal,
                    account=row.account,
                    body_hash=hashlib.sha256(query_id.encode()).hexdigest(),
                    cores=(charge_of(query_id, numeric.answer_event()),),
                    reuse=Reuse.NONE,
                    description={MONITOR: row.id, "cores": [], "noise": "laplace"},
                )
            )
        except BudgetExhausted:
            return {"answer_refused": "budget_exhausted"}
        except LedgerError:
            return {"answer_refused": "unavailable"}
        answer = compared.answer(numeric, self.bits)
        deviation = numeric.answer_variance**0.5
        body: dict[str, object] = {
            "beyond": float(Fraction(answer) * terms.step),
            "beyond_standard_error": deviation * float(terms.step),
            "combined": float(numeric.combined(hit, answer) * terms.step),
            "query": query_id,
        }
        try:
            self.ledger.post(query_id, (), json.dumps({MONITOR: row.id, **body}).encode())
        except LedgerError as error:
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)
            return {"answer_refused": "unavailable"}
        return body

    # What is stored of it

    def _open(self, monitor_id: str) -> bool:
        """Whether the ledger has the opening of a monitor as settled."""
        record = self.ledger.query(monitor_id)
        return record is not None and record.state is QueryStatus.SETTLED

    def _fail(self, query_id: str) -> None:
        try:
            self.ledger.fail(query_id)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=query_id, exception=type(error).__name__)

    def question_of(self, row: MonitorRow) -> tuple[str, str] | None:
        """Text and threshold of a monitor, for its owner; None where its state cannot be read."""
        try:
            state = SecretState.opened(row.sealed, self.seal, monitor=row.id)
        except SealBroken:
            return None
        return state.sql, decimal_text(abs(Fraction(state.threshold)))
