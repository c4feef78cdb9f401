"""What a model would be fitted to, for which noise and in which time: text, declarations and balances, and no row."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.account import Account
from accountant.filter import EPSILON_MAX
from accountant.request import Reuse, StoredRelease
from engines.encoding import DesignRows
from engines.memory import design_row_bytes
from engines.protocol import TwinPlanner
from engines.shell import PlanFailed
from engines.texts import AskedText, TextRefused
from mechanisms.families import FAMILIES, NoiseFamily
from mechanisms.private_descent import Method, ModelNoise
from privacy.bounds import ValueBounds
from privacy.composition import compose
from privacy.events.gaussian import gaussian_loss
from privacy.loss import Loss
from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from privacy.training import (
    CLIPPED_UNITS,
    HELD_PLACES,
    PRODUCT_COLUMNS_MAX,
    ROW_UNITS,
    Clipping,
    greatest_norm,
    width_of,
)
from privacy.unit import Neighbouring
from server.above_floor import BelowFloor, above_floor, require_worth
from server.floor import Floor
from server.journey.admission import Admission
from server.journey.reuse import Stored
from server.models import refusals
from server.models.chosen_bounds import BoundsStage, Histograms, histograms_of, left_for_model, reuse_of
from server.models.terms import TrainModel
from server.question import Question, plain_question
from server.resources.offer import Offer
from server.spends import affordable_amount, cost_on
from sql_rewrite.automatic_bounds import Place
from sql_rewrite.cost import ROWS_ASSUMED, SAFETY, UNIT_NANOSECONDS_MAX, Work, check_work
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.foreign import foreign_text
from sql_rewrite.training import Training, lift_training

__all__ = ["Quoted", "Quotes"]

_CELL_NANOSECONDS = {Clipping.INPUTS: 3.0, Clipping.GRADIENTS: 40.0}
"""Of one entry of an encoded row in one iteration, measured: products of doubles, and divisions of integers."""

_PART_NANOSECONDS = {Clipping.INPUTS: 30.0, Clipping.GRADIENTS: 0.0}
"""Of taking one number of a row by its part of the unit: a residual in each iteration, or each entry once."""

_CHUNK_NANOSECONDS = 50_000.0
"""Of one more part of the rows, which one unit more may begin."""

_ROUND_NANOSECONDS = 2_000_000.0
"""Of one round trip to the worker with its noise."""

_LIFT_NANOSECONDS = 50_000_000.0
"""Of choosing bounds, and of writing the rows anew within them."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """A model that may be fitted: its rows, its noise and its price."""

    dataset: Dataset
    path: tuple[Account, ...]
    training: Training
    noise: ModelNoise
    rows: DesignRows
    work: Work
    clip: Fraction
    """The norm to which gradients are held, of those of rows; of inputs, that of rows of the greatest norm."""
    clip_norm: Fraction
    """The norm to which rows are scaled, of entries between -1 and 1."""
    started: datetime.datetime | None
    """What CURRENT_DATE and NOW() say in its text."""
    stage: BoundsStage | None
    """The histograms by which it chooses bounds; None where all features have some."""
    served: Mapping[str, StoredRelease]
    """Stored histograms that serve for free, by what they ask."""

    @property
    def offer(self) -> Offer:
        """Its charge: one event of the model, and beside it the histograms by which it chooses bounds."""
        stage = self.stage
        return Offer(
            dataset=self.dataset,
            path=self.path,
            events=(self.noise.event(),),
            noise="gaussian",
            beside=() if stage is None else stage.charges,
            fresh=() if stage is None else stage.events(self.served),
            reuse=Reuse.NONE if stage is None else reuse_of(self.dataset),
        )


@dataclass(frozen=True, slots=True)
class Quotes:
    """Makes quotes. Safe to use from many threads."""

    admission: Admission
    twins: TwinPlanner
    dialect: Dialect
    stored: Stored
    rows_bytes_max: int
    """What a worker has for the rows of a model."""

    def quote(self, request: TrainModel) -> Quoted:
        """The model as it would be fitted now. Errors: Refused; ExecutionFailed where the text cannot be judged."""
        asked = _question(request)
        dataset, path = self.admission.paying(asked)
        training = lift_training(request.sql, dataset, self.dialect, started=asked.started)
        histograms = histograms_of(training, dataset, self.dialect)
        self._judge(request.sql, training, histograms, dataset, owner=request.principal)
        _check_label(request.method, training)
        statement = training.statement
        width = width_of(statement.features)
        if not request.method.logistic and width > PRODUCT_COLUMNS_MAX:
            raise Refused([refusals.too_wide(width, PRODUCT_COLUMNS_MAX)])
        noise, stage = _noise(request, dataset, path, width, classes=_two_classes(training), histograms=histograms)
        rows = expected_rows(training)
        row_bytes = design_row_bytes(columns=len(statement.rows.keys), width=width)
        if rows * row_bytes > self.rows_bytes_max:
            raise Refused([refusals.too_many_rows(rows, row_bytes, self.rows_bytes_max)])
        served: Mapping[str, StoredRelease] = {}
        if stage is not None:
            served = self.stored.serving(stage.charges, reuse_of(dataset), request.principal, path[0])
        work = _work(request, training, histograms, width, self.dialect)
        expected = (work.row_nanoseconds + work.plan_nanoseconds) * 1e-9
        if expected > dataset.limits.timeout_seconds:
            raise Refused([refusals.too_long(expected, dataset.limits.timeout_seconds)])
        clipping, most = request.method.clipping, greatest_norm(statement.features)
        clip = max(1, int(request.clip * (most if clipping is Clipping.INPUTS else CLIPPED_UNITS)))
        return Quoted(
            dataset=dataset,
            path=path,
            training=training,
            noise=noise,
            rows=DesignRows(statement, noise.held, clipping, clip),
            work=work,
            clip=Fraction(clip, most if clipping is Clipping.INPUTS else CLIPPED_UNITS),
            clip_norm=Fraction(clip if clipping is Clipping.INPUTS else most, ROW_UNITS),
            started=asked.started,
            stage=stage,
            served=served,
        )

    def at_bounds(self, quoted: Quoted, sql: str, chosen: Mapping[Place, ValueBounds]) -> Quoted:
        """The model within chosen bounds: other rows, and the same noise, norms and price."""
        training = lift_training(sql, quoted.dataset, self.dialect, started=quoted.started, chosen=chosen)
        assert width_of(training.statement.features) == quoted.noise.width
        return replace(quoted, training=training, rows=replace(quoted.rows, statement=training.statement))

    def _judge(
        self, sql: str, training: Training, histograms: Histograms | None, dataset: Dataset, *, owner: str
    ) -> None:
        """Refuses a text that is not DuckDB's dialect, and rows that the engine cannot plan."""
        try:
            statements = [training.statement.rows, *(() if histograms is None else histograms.statements)]
            self.twins.plan(dataset, statements, text=AskedText(sql, {}), owner=owner)
        except TextRefused as refused:
            raise foreign_text(sql, refused.step, refused.place) from None
        except PlanFailed:
            raise Refused([_NOT_PLANNED]) from None


def _question(request: TrainModel) -> Question:
    """The request as the journey looks for who pays."""
    return plain_question(
        principal=request.principal,
        dataset=request.dataset,
        sql=request.sql,
        account=request.account,
        confidence=request.confidence,
        body_hash=request.body_hash,
    )


def _two_classes(training: Training) -> bool:
    return training.label_whole and training.statement.label.ends == (Fraction(0), Fraction(1))


def _check_label(method: Method, training: Training) -> None:
    """Refuses a label that is no condition, by declarations alone, where a condition is predicted."""
    low, high = training.statement.label.ends
    if method.logistic and (low, high) != (Fraction(0), Fraction(1)):
        raise Refused([refusals.not_a_class(low, high)])
    if method.logistic and not training.label_whole:
        raise Refused([refusals.not_two_values()])


def _noise(
    request: TrainModel,
    dataset: Dataset,
    path: tuple[Account, ...],
    width: int,
    *,
    classes: bool,
    histograms: Histograms | None,
) -> tuple[ModelNoise, BoundsStage | None]:
    """The measurements that the price buys, and histograms beside them where bounds are chosen.

    Errors: Refused for a price that cannot be asked or paid.
    """
    currency = FAMILIES[NoiseFamily.GAUSSIAN].currency
    own, most = request.own_epsilon is not None, dataset.limits.epsilon_max
    if not currency.pays(path[0]):
        raise Refused([refusals.unpaid(currency.unpaid or "this account cannot pay for it")])
    if dataset.neighbouring is not Neighbouring.ADD_REMOVE:
        # Sums of units that are replaced change by twice as much, and a unit could change its part.
        raise Refused([refusals.no_noise("its sensitivities hold where units are added and removed")])
    asked = request.own_epsilon if own else request.epsilon
    assert asked is not None
    return above_floor(
        lambda epsilon: _at_price(request, epsilon, dataset, path, width, classes=classes, histograms=histograms),
        asked,
        most=EPSILON_MAX if own else most,
        loss=lambda made: _whole(*made),
        path=path,
        refused=lambda short: refusals.below_floor(short, own=own),
    )


def _at_price(
    request: TrainModel,
    asked: Fraction,
    dataset: Dataset,
    path: tuple[Account, ...],
    width: int,
    *,
    classes: bool,
    histograms: Histograms | None,
) -> tuple[ModelNoise, BoundsStage | None]:
    """The same at one price, in the epsilon that the request names. Errors: Refused; BelowFloor."""
    leaf, floor, most = path[0], Floor.of(dataset, path[-1]), dataset.limits.epsilon_max
    currency = FAMILIES[NoiseFamily.GAUSSIAN].currency
    if request.own_epsilon is None and asked > most:
        raise Refused([refusals.above_most(most)])
    try:
        if request.own_epsilon is not None:
            amount = currency.own_amount(asked, delta=leaf.limit.delta)
        else:
            bought = affordable_amount(
                lambda part: [_loss(part)],
                nominal=currency.nominal_amount(asked, leaf),
                asked=asked,
                power=currency.power,
                leaf=leaf,
                covered=lambda losses: all(floor.missing(loss) <= 1 for loss in losses),
            )
            if bought is None:
                raise BelowFloor(floor, None)
            amount = bought
        noise = ModelNoise(
            method=request.method,
            width=width,
            mu_squared=left_for_model(amount, histograms),
            iterations=request.iterations,
            held=int(request.held_out * HELD_PLACES),
            classes=classes,
        )
        stage = None if histograms is None else histograms.priced(amount)
        whole = _whole(noise, stage)
    except ValueError as error:
        raise Refused([refusals.no_noise(str(error))]) from None
    require_worth(floor, noise.event().loss())
    if cost_on(leaf, whole) > most:
        raise Refused([refusals.above_most(most)])
    return noise, stage


def _whole(noise: ModelNoise, stage: BoundsStage | None) -> Loss:
    """What a model costs with its histograms, if none of them is stored."""
    return noise.event().loss() if stage is None else compose((noise.event(), *stage.events({})))


def _loss(mu_squared: Fraction) -> Loss:
    return gaussian_loss(mu_squared=mu_squared, delta=Fraction(0))


def _work(request: TrainModel, training: Training, histograms: Histograms | None, width: int, dialect: Dialect) -> Work:
    """What reading the rows costs, and every round of sums over them. Errors: Refused (too_large)."""
    first = () if histograms is None else tuple(one.bounded for one in histograms.histograms)
    reading = check_work((training.bounded, *first), dialect.costs)
    logistic = request.method.logistic
    rounds = request.iterations if logistic else 1
    cells = width if logistic else width * width
    each = _CELL_NANOSECONDS[request.method.clipping]
    # Encoding the rows, and testing: two rounds more, of an expensive cell.
    of_row = rounds * (each * cells + _PART_NANOSECONDS[request.method.clipping] * (1 if logistic else width))
    of_row += 2 * _CELL_NANOSECONDS[Clipping.GRADIENTS] * width
    of_unit = training.rows_of_unit * of_row + (rounds + 3) * _CHUNK_NANOSECONDS
    unit = reading.unit_nanoseconds + SAFETY * of_unit
    if unit > UNIT_NANOSECONDS_MAX:
        raise Refused([_unit_too_long(unit)])
    return replace(
        reading,
        unit_nanoseconds=unit,
        row_nanoseconds=reading.row_nanoseconds + expected_rows(training) * of_row,
        plan_nanoseconds=reading.plan_nanoseconds
        + (rounds + 3 + len(first)) * _ROUND_NANOSECONDS
        + (_LIFT_NANOSECONDS if first else 0.0),
    )


def expected_rows(training: Training) -> int:
    """About how many rows a model has, as far as everybody knows."""
    return training.bounded.core.sources[0].table.rows_expected or ROWS_ASSUMED


def _unit_too_long(nanoseconds: float) -> Finding:
    return Finding(
        code="too_large",
        what="the model is refused",
        why=f"The rows of one person may take {round(nanoseconds / 1e6):,} ms over all iterations, which would show "
        f"whether they are there; {UNIT_NANOSECONDS_MAX // 1_000_000} ms are allowed.",
        instead=(
            "ask for fewer iterations, or fewer features",
            "ask an administrator to declare a smaller rows_stored_per_unit",
        ),
    )


_NOT_PLANNED = Finding(
    code="cannot_be_planned",
    what="the model is refused",
    why="The engine cannot plan its rows on an empty copy of the tables. That is a fault of this server.",
    instead=("write the expressions in another way", "tell the operator"),
)
