"""The session of a monitor: the noise that its price buys, and whether it is worth its looks at rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from accountant.account import Account
from mechanisms.comparing import Comparable
from mechanisms.sparse_vector import SparseVector
from privacy.composition import compose
from privacy.loss import Loss
from privacy.policy import Dataset
from privacy.refusal import Refused
from server.above_floor import above_floor, require_worth
from server.floor import Floor
from server.monitors.refusals import above_most, answer_below_floor, below_floor, noise_unreachable
from server.monitors.terms import OpenMonitor, Terms
from server.resources.offer import Offer

__all__ = ["session_of"]


def session_of(
    request: OpenMonitor, found: Comparable, dataset: Dataset, path: tuple[Account, ...], *, restores: int
) -> tuple[Terms, Offer]:
    """The terms of the session that a request asks for, and its charge.

    Its evaluations are looks at rows: how many of them a root affords is bounded by the floor, as for questions.
    Errors: Refused where its noise cannot be drawn, and where it takes more than the policy lets one question take, or
    less than its evaluations, or its answers, are worth.
    """
    most, floor = dataset.limits.epsilon_max, Floor.of(dataset, path[-1])

    def at(epsilon: Fraction) -> tuple[Terms, Offer]:
        terms = _terms(replace(request, epsilon=epsilon), found, restores=restores)
        offer = Offer(dataset=dataset, path=path, events=(terms.sparse.event(),), noise="sparse_vector")
        if max(epsilon, request.answer_epsilon or Fraction(0)) > most:
            raise Refused([above_most(most)])
        require_worth(floor, offer.loss, looks=request.evaluations)
        return terms, offer

    def answered(epsilon: Fraction) -> Loss:
        terms = _terms(replace(request, answer_epsilon=epsilon), found, restores=restores)
        assert terms.numeric is not None
        if epsilon > most:
            raise Refused([above_most(most)])
        require_worth(floor, terms.numeric.answer_event().loss())
        return compose((terms.sparse.event(), terms.numeric.answer_event()))

    session = above_floor(
        at,
        request.epsilon,
        most=most,
        loss=lambda made: made[1].loss,
        path=path,
        refused=lambda short: below_floor(request.evaluations, short),
    )
    if request.answer_epsilon is not None:
        above_floor(
            answered,
            request.answer_epsilon,
            most=most,
            loss=lambda first: first,
            path=path,
            refused=answer_below_floor,
        )
    return session


def _terms(request: OpenMonitor, found: Comparable, *, restores: int) -> Terms:
    """The terms at the prices of a request. Errors: Refused."""
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
            restores=restores,
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
