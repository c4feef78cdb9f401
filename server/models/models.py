"""Fitting models: charged in whole before the first row is read, in one slot, at a visible moment.

The text is read and judged as every question's; a reservation of one Gaussian event covers every measurement. Then rows
are read into one worker, which adds up what the fit asks for: only released numbers go back to it. The answer is stored
with the entry of the ledger. A process that dies leaves a reservation that fails charged, as a query's does.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from fractions import Fraction

from accountant.account import Account
from accountant.errors import LedgerError
from accountant.ledger import Ledger
from accountant.request import Charged, CoreCharge, QueryRecord, Reserved, ReserveRequest, Reuse, StoredRelease
from accountant.states import QueryStatus
from engines.protocol import EngineLease, StatementEngine
from mechanisms import release as releasing
from mechanisms.interval import two_sided_alpha
from mechanisms.private_descent import Descent, Fitted, HeldOut, regression
from mechanisms.randomness import BitSource
from mechanisms.released_table import ReleasedTable
from privacy.bounds import ValueBounds
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed
from privacy.release import BoundsNote, BoundsSource
from privacy.training import Wanted
from server import answer_rows
from server.admitted import InFlight, Settled
from server.journey.admission import Served
from server.journey.agreed_price import at_agreed_price, moved
from server.journey.pace import Pace
from server.journey.visible import VisibleRun
from server.log import logger
from server.models.answer import encoding_body, model_body, stored_answer
from server.models.chosen_bounds import BoundsStage, bounds_json, reuse_of
from server.models.quoting import Quoted, Quotes
from server.models.terms import TrainModel, model_terms
from server.published import MODEL
from server.store.models import ModelRow
from server.store.registry import Registry

__all__ = ["Models", "ToTrain"]

_UNITS_MAX = 2**40
"""Most units of a snapshot: what one adds, times that, bounds every sum."""


@dataclass(frozen=True, slots=True)
class ToTrain:
    """A model that is charged and has read no row."""

    query_id: str
    request: TrainModel
    quoted: Quoted
    charged: tuple[Charged, ...]
    reused: Mapping[str, StoredRelease]
    """The stored histograms that serve, by what they ask."""
    started: float


@dataclass(slots=True)
class Models:
    """The models of a server. Safe to use from many threads."""

    ledger: Ledger
    registry: Registry
    quotes: Quotes
    served: Served
    private: StatementEngine
    bits: BitSource
    pace: Pace
    _waiting: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def estimate(self, request: TrainModel) -> dict[str, object]:
        """What a model would cost and measure. Reads no row, charges nothing. Errors: Refused."""
        quoted = self.quotes.quote(request)
        noise = quoted.noise
        moments = self.pace.moments(quoted.work)
        return {
            "verdict": "affordable" if all(account.admits(quoted.loss) for account in quoted.path) else "exhausted",
            "price": {
                "epsilon": decimal_text(quoted.cost, places=12),
                "own": {
                    "epsilon": decimal_text(quoted.own_epsilon, places=12),
                    "delta": decimal_text(quoted.path[0].limit.delta),
                },
            },
            "columns": noise.width,
            "measurements": sum(times for _, times in noise.fitted_by) + (noise.tested_by is not None),
            "encoding": encoding_body(quoted.training.statement.features, known=False),
            "bounds": bounds_json(_open_notes(quoted)),
            "first_moment_seconds": round(moments.first, 3),
            "tick_seconds": round(moments.tick, 4),
        }

    def admit(self, request: TrainModel) -> Settled | InFlight | ToTrain:
        """Charges a model. Errors: Refused, and the ledger's; ExecutionFailed for an earlier request that failed."""
        started = self.pace.clock()
        if request.idempotency_key is not None:
            earlier = self.ledger.earlier(request.principal, request.idempotency_key, request.body_hash)
            if earlier is not None:
                return _retried(earlier)
        model_id = f"t_{secrets.token_hex(12)}"
        quoted, reserved = at_agreed_price(
            lambda: self._reserved(model_id, request), refused=lambda: moved("the model")
        )
        if not reserved.fresh:
            return _retried(reserved)
        row = ModelRow(
            id=reserved.query_id,
            principal=request.principal,
            dataset=quoted.dataset.name,
            account=quoted.path[0].id,
            created="",
            terms=model_terms(request),
        )
        try:
            self.registry.add_model(row)
        except Exception:
            # No row was read, and nothing will be: the charge goes back.
            self._end(reserved.query_id, void=True)
            raise
        with self._lock:
            self._waiting[reserved.query_id] = request.principal
        return ToTrain(reserved.query_id, request, quoted, tuple(reserved.charged), reserved.reused, started)

    def _reserved(self, model_id: str, request: TrainModel) -> tuple[Quoted, Reserved]:
        """The price on the accounts as they are now, and its reservation. Errors: as of `admit`, and PriceMoved."""
        quoted = self.quotes.quote(request)
        return quoted, self.ledger.reserve(_reservation(model_id, request, quoted))

    def complete(self, model: ToTrain) -> bytes:
        """Fits it: waits for a slot of the engine, and for a visible moment. Errors: ExecutionFailed."""
        if not self._take(model.query_id):
            record = self.ledger.query(model.query_id)
            raise ExecutionFailed(started=record is None or record.state is not QueryStatus.FAILED_VOID)
        with ExitStack() as slot:
            lease: EngineLease | None = None
            with suppress(ExecutionFailed):
                lease = slot.enter_context(self.private.lease(owner=model.request.principal))
            if lease is None:
                # The engine closes, or cannot start a worker: no row was read.
                raise ExecutionFailed(started=not self._end(model.query_id, void=True))
            visible = self.pace.visible(model.quoted.work, model.started, self.bits)
            body: dict[str, object] | None = None
            fit = _Fit(self, model, lease, visible)
            try:
                body = fit.body()
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing of it may travel further
                failed = type(error).__name__
            visible.wait()
        if body is None:
            logger().warning("model_failed", query_id=model.query_id, exception=failed)
            self._end(model.query_id, void=False)
            raise ExecutionFailed
        try:
            content = stored_answer(body)
            self.ledger.post(model.query_id, fit.fresh, content)
        except Exception as error:  # noqa: BLE001 - rows were read: the charge stays, and there is one outcome
            logger().error("query_unsettled", query_id=model.query_id, exception=type(error).__name__)
            self._end(model.query_id, void=False)
            raise ExecutionFailed from None
        return content

    def cancel(self, row: ModelRow) -> QueryStatus | None:
        """Voids a model that did not begin to read rows. Returns its state afterwards."""
        if self._take(row.id):
            return QueryStatus.FAILED_VOID if self._end(row.id, void=True) else QueryStatus.RESERVED
        record = self.ledger.query(row.id)
        return None if record is None else record.state

    def abandon(self, model: ToTrain) -> None:
        """Voids a model whose turn never came."""
        if self._take(model.query_id):
            self._end(model.query_id, void=True)

    def record(self, row: ModelRow) -> QueryRecord | None:
        """What the ledger has of it: its state, its charge, its answer."""
        return self.ledger.query(row.id)

    def _take(self, model_id: str) -> bool:
        """Ends a model's waiting, for one caller only."""
        with self._lock:
            return self._waiting.pop(model_id, None) is not None

    def _end(self, model_id: str, *, void: bool) -> bool:
        """Ends it without an answer. Returns whether the ledger has that."""
        try:
            if void:
                self.ledger.void(model_id)
            else:
                self.ledger.fail(model_id)
        except LedgerError as error:
            # The reservation counts as spent until a restart ends it.
            logger().error("query_unsettled", query_id=model_id, exception=type(error).__name__)
            return False
        return True


class _Fit:
    """One fit in its slot: what is asked of the worker, and what is released of it."""

    def __init__(self, models: Models, model: ToTrain, lease: EngineLease, visible: VisibleRun) -> None:
        self._models = models
        self._model = model
        self._lease = lease
        self._visible = visible
        self._count: float | None = None
        self.fresh: list[StoredRelease] = []
        """The histograms that were made for it."""

    def body(self) -> dict[str, object]:
        """The answer. Errors: ExecutionFailed."""
        model, models = self._model, self._models
        quoted, notes = self._at_bounds()
        dataset = quoted.dataset
        models.private.read_rows(
            models.served.snapshot(dataset), quoted.rows, timeout_seconds=self._seconds(dataset), lease=self._lease
        )
        fitted = self._fitted()
        tested = None
        if quoted.noise.tested_by is not None:
            alpha = two_sided_alpha(model.request.confidence)
            tested = HeldOut.of(quoted.noise, self._released(quoted.noise.tested_by, fitted.sent()), alpha=alpha)
        answer = model_body(quoted, fitted, tested, confidence=model.request.confidence, count=self._count, notes=notes)
        return {
            "id": model.query_id,
            "method": model.request.method.value,
            "iterations": quoted.noise.iterations if quoted.noise.method.logistic else 1,
            **answer,
            "accounting": {
                "charged": [
                    {"budget": part.account, "epsilon": decimal_text(part.epsilon, places=12), "delta": "0"}
                    for part in model.charged
                    if part.account == quoted.path[0].id
                ],
                "own": {
                    "epsilon": decimal_text(quoted.own_epsilon, places=12),
                    "delta": decimal_text(quoted.path[0].limit.delta),
                },
            },
            "policy_version": dataset.policy_version,
            "data_version": dataset.data_version,
        }

    def _at_bounds(self) -> tuple[Quoted, tuple[BoundsNote, ...]]:
        """The model within bounds that histograms choose, where features have none. Errors: ExecutionFailed."""
        quoted, stage = self._model.quoted, self._model.quoted.stage
        if stage is None:
            return quoted, ()
        tables, sources = zip(*(self._histogram(stage, place) for place in range(len(stage.of.keys))), strict=True)
        choices = stage.chosen(tables, columns=quoted.noise.width, mu_squared=quoted.noise.mu_squared)
        wanted = {place: ValueBounds(choice.lower, choice.upper) for place, choice in choices.items()}
        quoted = self._models.quotes.at_bounds(quoted, self._model.request.sql, wanted)
        return quoted, stage.notes(quoted.training.used, choices, sources)

    def _histogram(self, stage: BoundsStage, place: int) -> tuple[ReleasedTable, BoundsSource]:
        """A histogram of values: the stored one that serves, or a fresh one. Errors: ExecutionFailed."""
        model, models, confidence = self._model, self._models, self._model.request.confidence
        described, stored = stage.of.histograms[place].bounded.described, model.reused.get(stage.of.keys[place])
        if stored is not None:
            return answer_rows.from_stored(stored.body, described.name, confidence), BoundsSource.STORED
        dataset = model.quoted.dataset
        exact = models.private.run(
            models.served.snapshot(dataset),
            stage.of.statements[place],
            timeout_seconds=self._seconds(dataset),
            lease=self._lease,
        )
        table = releasing.release(described, stage.calibration, exact, bits=models.bits, confidence=confidence)
        self.fresh.append(
            stage.release(
                place,
                table,
                principal=model.request.principal,
                dataset=dataset.name,
                query_id=model.query_id,
            )
        )
        return table, BoundsSource.CHOSEN

    def _fitted(self) -> Fitted:
        noise = self._model.quoted.noise
        if not noise.method.logistic:
            released = self._released(Wanted.PRODUCTS, ())
            # The square of the intercept, of rows that are not clipped: the units, and their rows as one.
            return regression(noise, released)
        (count,) = self._released(Wanted.COUNT, ())
        self._count = float(count)
        descent = Descent(noise, count, self._model.quoted.clip)
        for _ in range(noise.iterations):
            descent.step(self._released(Wanted.GRADIENT, descent.sent()))
        return descent.fitted()

    def _released(self, wanted: Wanted, weights: list[int] | tuple[()]) -> list[int]:
        """Sums over units with their noise."""
        models, noise, dataset = self._models, self._model.quoted.noise, self._model.quoted.dataset
        measurement = noise.measurement(wanted)
        exact = models.private.add_up(
            wanted,
            weights,
            sums=noise.sums(wanted),
            bound=int(measurement.statistic.sensitivity.linf) * _UNITS_MAX,
            timeout_seconds=self._seconds(dataset),
            lease=self._lease,
        )
        return noise.released(wanted, exact, models.bits)

    def _seconds(self, dataset: Dataset) -> float:
        return self._visible.seconds_left(dataset.limits.timeout_seconds)


def _open_notes(quoted: Quoted) -> list[BoundsNote]:
    """The columns whose bounds are to be chosen, and which of their histograms are there."""
    stage = quoted.stage
    if stage is None:
        return []
    return [
        BoundsNote(*place, "", "", BoundsSource.STORED if key in quoted.served else BoundsSource.CHOSEN)
        for place, key in zip(stage.of.places, stage.of.keys, strict=True)
    ]


def _retried(earlier: Reserved) -> Settled | InFlight:
    """An earlier request's model. Errors: ExecutionFailed for one that ended without an answer."""
    if earlier.answer is not None:
        return Settled(earlier.query_id, earlier.answer)
    if earlier.state is not QueryStatus.RESERVED:
        raise ExecutionFailed(started=earlier.state is not QueryStatus.FAILED_VOID and bool(earlier.charged))
    return InFlight(earlier.query_id)


def _reservation(model_id: str, request: TrainModel, quoted: Quoted) -> ReserveRequest:
    account: Account = quoted.path[0]
    stage = quoted.stage
    key = hashlib.sha256(f"{MODEL} {model_id}".encode()).hexdigest()
    return ReserveRequest(
        query_id=model_id,
        principal=request.principal,
        account=account.id,
        body_hash=request.body_hash,
        cores=(
            CoreCharge(core_key=key, quality=Fraction(1), events=(quoted.noise.event(),), lent=False),
            *(() if stage is None else stage.charges),
        ),
        idempotency_key=request.idempotency_key,
        reuse=Reuse.NONE if stage is None else reuse_of(quoted.dataset),
        most=quoted.cost,
        description={MODEL: model_id, "cores": [], "noise": "gaussian"},
    )
