"""What a registered statistic would cost and promise: text, declarations and balances, and no row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account
from accountant.filter import EPSILON_MAX
from engines.protocol import TwinPlanner
from engines.shell import PlanFailed
from engines.texts import AskedText, TextRefused
from mechanisms.measurement import plain_text
from mechanisms.tested_statistics import ProposedQuantiles, StableMode, Term, Tested
from privacy.currency import PURE
from privacy.events.approximate import approximate_loss
from privacy.policy import Dataset, OwnStatistic
from privacy.refusal import Refused
from privacy.unit import Neighbouring
from server.above_floor import BelowFloor, above_floor, require_worth
from server.floor import Floor
from server.journey.admission import Admission
from server.question import Question, plain_question
from server.resources.offer import Offer
from server.spends import affordable_amount, cost_on
from server.statistics import refusals
from server.statistics.terms import AskStatistic
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.foreign import foreign_text
from sql_rewrite.own_statistics import OwnForm, OwnKind, lift_statistic

__all__ = ["Quoted", "StatisticQuotes", "allowed"]


@dataclass(frozen=True, slots=True)
class Quoted:
    """A statistic that may be asked: its counts, its test and its price."""

    dataset: Dataset
    own: OwnStatistic
    form: OwnForm
    tested: Tested
    path: tuple[Account, ...]

    @property
    def offer(self) -> Offer:
        """Its charge, whichever way the test ends."""
        return Offer(dataset=self.dataset, path=self.path, events=(self.tested.event(),), noise="laplace")


def allowed(dataset: Dataset, *, trusted: bool) -> tuple[OwnStatistic, ...]:
    """The registered statistics that a caller may ask."""
    return tuple(one for one in dataset.statistics if trusted or one.analysts)


@dataclass(frozen=True, slots=True)
class StatisticQuotes:
    """Makes quotes. Safe to use from many threads."""

    admission: Admission
    twins: TwinPlanner
    dialect: Dialect

    def quote(self, request: AskStatistic) -> Quoted:
        """The statistic as it would be asked now. Errors: Refused; ExecutionFailed where its text cannot be judged."""
        dataset, path = self.admission.paying(_question(request))
        own = dataset.statistic(request.statistic)
        known = allowed(dataset, trusted=request.trusted)
        if own is None or own not in known:
            raise Refused([refusals.unknown(request.statistic, [one.name for one in known])])
        form = lift_statistic(own, dataset, self.dialect)
        self._judge(own, form, dataset, owner=request.principal)
        width = _width(form, request.width)
        return Quoted(dataset, own, form, _tested(request, dataset, path, form, width), path)

    def _judge(self, own: OwnStatistic, form: OwnForm, dataset: Dataset, *, owner: str) -> None:
        """Refuses a text that is not DuckDB's dialect, and counts that the engine cannot plan."""
        try:
            self.twins.plan(dataset, [form.statement], text=AskedText(own.sql, {}), owner=owner)
        except TextRefused as refused:
            raise foreign_text(own.sql, refused.step, refused.place) from None
        except PlanFailed:
            raise Refused([refusals.not_planned()]) from None


def _width(form: OwnForm, asked: Fraction | None) -> int:
    """The proposal in whole places, rounded down; nothing of a mode. Errors: Refused."""
    if form.kind is OwnKind.MODE:
        if asked is not None:
            raise Refused([refusals.width_asked("a most frequent value", needed=False, example="")])
        return 0
    low, high = form.range
    if asked is None:
        example = plain_text(max(form.step, (high - low) / 100))
        raise Refused([refusals.width_asked("quantiles", needed=True, example=example)])
    width = math.floor(asked / form.step)
    if width < 1 or asked >= high - low:
        raise Refused([refusals.width_range(form.step, high - low)])
    return width


def _tested(request: AskStatistic, dataset: Dataset, path: tuple[Account, ...], form: OwnForm, width: int) -> Tested:
    """The test and the noise that the price buys. Errors: Refused for a price that cannot be asked or paid."""
    delta, own = dataset.limits.delta_per_query, request.own_epsilon is not None
    if dataset.neighbouring is not Neighbouring.ADD_REMOVE:
        raise Refused([refusals.no_noise("its distances hold where units are added and removed")])
    if not delta:
        raise Refused([refusals.no_delta("the policy gives a question none")])
    if any(account.limit.delta <= 0 for account in path):
        raise Refused([refusals.no_delta("this account, or one above it, has none")])
    asked = request.own_epsilon if own else request.epsilon
    assert asked is not None
    return above_floor(
        lambda epsilon: _at_price(epsilon, dataset, path, form, width, own=own),
        asked,
        most=EPSILON_MAX if own else dataset.limits.epsilon_max,
        loss=lambda tested: tested.event().loss(),
        path=path,
        refused=lambda short: refusals.below_floor(short, own=own),
    )


def _at_price(
    asked: Fraction, dataset: Dataset, path: tuple[Account, ...], form: OwnForm, width: int, *, own: bool
) -> Tested:
    """The test at one price, `own` that of the outcome itself. Errors: Refused; BelowFloor."""
    leaf, floor = path[0], Floor.of(dataset, path[-1])
    most, delta = dataset.limits.epsilon_max, dataset.limits.delta_per_query
    if not own and asked > most:
        raise Refused([refusals.above_most(most)])
    try:
        epsilon: Fraction | None = asked
        if not own:
            epsilon = affordable_amount(
                lambda part: [approximate_loss(part, delta)],
                nominal=PURE.nominal_amount(asked, leaf),
                asked=asked,
                power=PURE.power,
                leaf=leaf,
                covered=lambda losses: all(floor.missing(loss) <= 1 for loss in losses),
            )
        if epsilon is None:
            raise BelowFloor(floor, None)
        tested = _of(form, epsilon, delta, width)
        loss = tested.event().loss()
    except ValueError as error:
        raise Refused([refusals.no_noise(str(error))]) from None
    require_worth(floor, loss)
    if cost_on(leaf, loss) > most:
        raise Refused([refusals.above_most(most)])
    return tested


def _of(form: OwnForm, epsilon: Fraction, delta: Fraction, width: int) -> Tested:
    if form.kind is OwnKind.MODE:
        return StableMode(epsilon=epsilon, delta=delta, change=form.change)
    terms = tuple(Term(fraction, sign) for fraction, sign in form.terms)
    return ProposedQuantiles(epsilon=epsilon, delta=delta, change=form.change, terms=terms, width=width)


def _question(request: AskStatistic) -> Question:
    """The request as the journey looks for who pays."""
    return plain_question(
        principal=request.principal,
        dataset=request.dataset,
        sql="",
        account=request.account,
        confidence=request.confidence,
        body_hash=request.body_hash,
    )
