"""Fitting models: charged in whole before the first row is read, in one slot, at a visible moment.

The text is read and judged as every question's; a reservation of one Gaussian event covers every measurement. Then rows
are read into one worker, which adds up what the fit asks for: only released numbers go back to it. The answer is stored
with the entry of the ledger. A process that dies leaves a reservation that fails charged, as a query's does.
"""

from __future__ import annotations

from dataclasses import dataclass

from accountant.request import StoredRelease
from engines.protocol import EngineLease
from mechanisms import release as releasing
from mechanisms.interval import two_sided_alpha
from mechanisms.private_descent import Descent, Fitted, HeldOut, regression
from mechanisms.released_table import ReleasedTable
from privacy.bounds import ValueBounds
from privacy.numbers import decimal_text
from privacy.release import BoundsNote, BoundsSource
from privacy.training import Wanted
from server import answer_rows
from server.admitted import InFlight, Settled
from server.journey.admission import Served
from server.journey.pace import VisibleRun
from server.models.answer import encoding_body, model_body, stored_answer
from server.models.chosen_bounds import BoundsStage, bounds_json
from server.models.quoting import Quoted, Quotes
from server.models.terms import TrainModel, model_terms
from server.resources.kinds import ResourceKind
from server.resources.offer import Offer
from server.resources.resources import Begun, Resources
from server.store.registry import Registry
from server.store.resources import MODELS, ResourceRow

__all__ = ["ModelPlan", "Models", "ToTrain"]

_UNITS_MAX = 2**40
"""Most units of a snapshot: what one adds, times that, bounds every sum."""


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A model that may be fitted, and what was asked."""

    request: TrainModel
    quoted: Quoted

    @property
    def offer(self) -> Offer:
        """Its charge."""
        return self.quoted.offer

    @property
    def terms(self) -> str:
        """What is kept of the request."""
        return model_terms(self.request)


ToTrain = Begun[ModelPlan, ResourceRow]
"""A model that is charged and has read no row."""


@dataclass(slots=True)
class Models:
    """The models of a server. Safe to use from many threads."""

    resources: Resources
    registry: Registry
    quotes: Quotes
    served: Served

    def estimate(self, request: TrainModel) -> dict[str, object]:
        """What a model would cost and measure. Reads no row, charges nothing. Errors: Refused."""
        quoted = self.quotes.quote(request)
        noise = quoted.noise
        moments = self.resources.pace.moments(quoted.work)
        return {
            "verdict": quoted.offer.verdict.value,
            "price": quoted.offer.price(),
            "columns": noise.width,
            "measurements": sum(times for _, times in noise.fitted_by) + (noise.tested_by is not None),
            "encoding": encoding_body(quoted.training.statement.features, known=False),
            "bounds": bounds_json(_open_notes(quoted)),
            "first_moment_seconds": round(moments.first, 3),
            "tick_seconds": round(moments.tick, 4),
        }

    def admit(self, request: TrainModel) -> Settled | InFlight | ToTrain:
        """Charges a model. Errors: Refused, and the ledger's; ExecutionFailed for an earlier request that failed."""
        return self.resources.charge(
            ResourceKind.MODEL,
            request,
            lambda: ModelPlan(request, self.quotes.quote(request)),
            store=lambda row, _: self.registry.add_resource(MODELS, row),
        )

    def complete(self, model: ToTrain) -> bytes:
        """Fits it: waits for a slot of the engine, and for a visible moment. Errors: ExecutionFailed."""
        fresh: list[StoredRelease] = []
        return self.resources.make(
            model,
            model.planned.quoted.work,
            lambda lease, visible: _Fit(self, model, lease, visible, fresh).body(),
            stored_answer,
            fresh,
        )


class _Fit:
    """One fit in its slot: what is asked of the worker, and what is released of it."""

    def __init__(
        self, models: Models, model: ToTrain, lease: EngineLease, visible: VisibleRun, fresh: list[StoredRelease]
    ) -> None:
        """`fresh` gets the histograms that are made for it."""
        self._models = models
        self._private = models.resources.private
        self._model = model
        self._quoted = model.planned.quoted
        self._lease = lease
        self._visible = visible
        self._count: float | None = None
        self.fresh = fresh

    def body(self) -> dict[str, object]:
        """The answer. Errors: ExecutionFailed."""
        model, request = self._model, self._model.planned.request
        quoted, notes = self._at_bounds()
        dataset, snapshot = quoted.dataset, self._models.served.snapshot(quoted.dataset)
        self._private.read_rows(snapshot, quoted.rows, timeout_seconds=self._seconds(), lease=self._lease)
        fitted = self._fitted()
        tested = None
        if quoted.noise.tested_by is not None:
            alpha = two_sided_alpha(request.confidence)
            tested = HeldOut.of(quoted.noise, self._released(quoted.noise.tested_by, fitted.sent()), alpha=alpha)
        answer = model_body(quoted, fitted, tested, confidence=request.confidence, count=self._count, notes=notes)
        return {
            "id": model.query_id,
            "method": request.method.value,
            "iterations": quoted.noise.iterations if quoted.noise.method.logistic else 1,
            **answer,
            "accounting": {
                "charged": [
                    {"budget": part.account, "epsilon": decimal_text(part.epsilon, places=12), "delta": "0"}
                    for part in model.charged
                    if part.account == quoted.path[0].id
                ],
                "own": quoted.offer.price()["own"],
            },
            "policy_version": dataset.policy_version,
            "data_version": dataset.data_version,
        }

    def _at_bounds(self) -> tuple[Quoted, tuple[BoundsNote, ...]]:
        """The model within bounds that histograms choose, where features have none. Errors: ExecutionFailed."""
        quoted, stage = self._quoted, self._quoted.stage
        if stage is None:
            return quoted, ()
        tables, sources = zip(*(self._histogram(stage, place) for place in range(len(stage.of.keys))), strict=True)
        choices = stage.chosen(tables, columns=quoted.noise.width, mu_squared=quoted.noise.mu_squared)
        wanted = {place: ValueBounds(choice.lower, choice.upper) for place, choice in choices.items()}
        quoted = self._models.quotes.at_bounds(quoted, self._model.planned.request.sql, wanted)
        return quoted, stage.notes(quoted.training.used, choices, sources)

    def _histogram(self, stage: BoundsStage, place: int) -> tuple[ReleasedTable, BoundsSource]:
        """A histogram of values: the stored one that serves, or a fresh one. Errors: ExecutionFailed."""
        model, models, request = self._model, self._models, self._model.planned.request
        described, stored = stage.of.histograms[place].bounded.described, model.reused.get(stage.of.keys[place])
        if stored is not None:
            return answer_rows.from_stored(stored.body, described.name, request.confidence), BoundsSource.STORED
        dataset, bits = self._quoted.dataset, models.resources.bits
        exact = self._private.run(
            models.served.snapshot(dataset),
            stage.of.statements[place],
            timeout_seconds=self._seconds(),
            lease=self._lease,
        )
        table = releasing.release(described, stage.calibration, exact, bits=bits, confidence=request.confidence)
        self.fresh.append(
            stage.release(
                place,
                table,
                principal=request.principal,
                dataset=dataset.name,
                query_id=model.query_id,
            )
        )
        return table, BoundsSource.CHOSEN

    def _fitted(self) -> Fitted:
        noise = self._quoted.noise
        if not noise.method.logistic:
            released = self._released(Wanted.PRODUCTS, ())
            # The square of the intercept, of rows that are not clipped: the units, and their rows as one.
            return regression(noise, released)
        (count,) = self._released(Wanted.COUNT, ())
        self._count = float(count)
        descent = Descent(noise, count, self._quoted.clip)
        for _ in range(noise.iterations):
            descent.step(self._released(Wanted.GRADIENT, descent.sent()))
        return descent.fitted()

    def _released(self, wanted: Wanted, weights: list[int] | tuple[()]) -> list[int]:
        """Sums over units with their noise."""
        noise = self._quoted.noise
        measurement = noise.measurement(wanted)
        exact = self._private.add_up(
            wanted,
            weights,
            sums=noise.sums(wanted),
            bound=int(measurement.statistic.sensitivity.linf) * _UNITS_MAX,
            timeout_seconds=self._seconds(),
            lease=self._lease,
        )
        return noise.released(wanted, exact, self._models.resources.bits)

    def _seconds(self) -> float:
        return self._visible.seconds_left(self._quoted.dataset.limits.timeout_seconds)


def _open_notes(quoted: Quoted) -> list[BoundsNote]:
    """The columns whose bounds are to be chosen, and which of their histograms are there."""
    stage = quoted.stage
    if stage is None:
        return []
    return [
        BoundsNote(*place, "", "", BoundsSource.STORED if key in quoted.served else BoundsSource.CHOSEN)
        for place, key in zip(stage.of.places, stage.of.keys, strict=True)
    ]
