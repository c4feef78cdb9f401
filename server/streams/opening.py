"""What a stream would be and cost: from its text, declarations and the request, without looking at rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.streams.price import StreamNoise
from privacy.composition import compose
from privacy.norms import NormPower
from privacy.policy import Dataset, Sharing
from privacy.refusal import Refused
from privacy.statistic import Statistic
from server.above_floor import above_floor, require_worth
from server.answer import Journey
from server.floor import Floor
from server.journey.query import Prepared
from server.question import Question, plain_question
from server.resources.offer import Offer
from server.streams.cells import frame_of, groups_of, step_of, sums_of
from server.streams.counted import counted_of
from server.streams.refusals import (
    BEYOND_TERMS,
    CLOCK,
    above_most,
    below_floor,
    noise_unreachable,
    shared_refused,
    tolerance_unreachable,
    unknown_table,
)
from server.streams.sealing import Frame
from server.streams.terms import OpenStream, Terms
from sql_rewrite.stream_text import StreamText, stream_text

__all__ = ["Planned", "plan_stream", "prepared_again"]


@dataclass(frozen=True, slots=True)
class Planned:
    """A stream that may be opened: its terms, what it is about, and its price on the accounts of that moment."""

    stream: Terms
    frame: Frame
    offer: Offer
    shared: bool

    @property
    def terms(self) -> str:
        """What is kept of the request."""
        return self.stream.to_json()


def plan_stream(journey: Journey, request: OpenStream, *, restores: Callable[[str], int], salt: str) -> Planned:
    """The stream that a request asks for; plans its statement on empty tables. Errors: Refused, Problem.

    `restores` is how often the ledger of a root had been restored.
    """

    def question(sql: str) -> Question:
        return plain_question(
            principal=request.principal,
            dataset=request.dataset,
            sql=sql,
            account=request.account,
            contribution=request.contribution,
            body_hash=request.body_hash,
        )

    # A stranger learns nothing of the dataset, not even that it exists.
    if request.shared and request.administers:
        dataset, path = journey.admission.granting(request.dataset, request.account)
    else:
        dataset, path = journey.admission.paying(question(request.sql or ""))
    if request.shared and dataset.limits.releases_shared is not Sharing.FREE:
        raise Refused([shared_refused(dataset.limits.releases_shared)])
    text = _text(request, dataset)
    asked = question(text if isinstance(text, str) else text.sql)
    if asked.started is not None:
        raise Refused([CLOCK])
    prepared = journey.preparing.prepare(asked, dataset, NormPower.L1)
    profile = journey.sizes.profile(dataset)
    statistic = sums_of(prepared, profile)
    frame = replace(frame_of(prepared, text, salt=salt), counted=counted_of(prepared, request.contribution, profile))
    cells = sum(bool(keys) for keys in frame.domain)
    most, floor, restored = dataset.limits.epsilon_max, Floor.of(dataset, path[-1]), restores(path[-1].id)

    def at(epsilon: Fraction) -> Planned:
        terms = _terms(replace(request, epsilon=epsilon), statistic, cells=cells, restores=restored)
        offer = Offer(dataset=dataset, path=tuple(path), events=terms.noise.events(), noise="sparse_vector")
        if epsilon > most:
            raise Refused([above_most(most)])
        require_worth(floor, offer.loss, looks=terms.queries)
        return Planned(terms, frame, offer, request.shared)

    return above_floor(
        at,
        request.epsilon,
        most=most,
        loss=lambda planned: planned.offer.loss,
        path=path,
        refused=lambda short: below_floor(request.queries, short),
    )


def _text(request: OpenStream, dataset: Dataset) -> StreamText | str:
    """The text that counts the cells. Errors: Refused."""
    if request.sql is not None:
        return request.sql
    name = request.table or ""
    table = dataset.table(name)
    if table is None or not table.protected:
        raise Refused([unknown_table(name, [one.name for one in dataset.tables if one.protected])])
    return stream_text(table, request.columns)


def _terms(request: OpenStream, statistic: Statistic, *, cells: int, restores: int) -> Terms:
    step = step_of(statistic)
    try:
        noise = StreamNoise.for_epsilon(request.epsilon, change=statistic.sensitivity.l1, updates=request.updates)
        # What the ledger refuses is refused before anything is charged.
        compose(noise.events())
    except ValueError as error:
        raise Refused([noise_unreachable(str(error))]) from None
    if request.tolerance is None:
        tolerance = noise.usual_tolerance(queries=request.queries, cells=cells)
    else:
        tolerance = math.ceil(request.tolerance / step)
        if noise.wrong_updates(tolerance=tolerance, queries=request.queries) > request.updates / 2:
            raise Refused([tolerance_unreachable(_least_tolerance(noise, request) * step)])
    return Terms(
        epsilon=request.epsilon,
        queries=request.queries,
        tolerance=tolerance,
        step=step,
        cells=cells,
        noise=noise,
        restores=restores,
        contribution=request.contribution,
    )


def _least_tolerance(noise: StreamNoise, request: OpenStream) -> int:
    wrong = noise.wrong_updates(tolerance=0, queries=request.queries)
    return math.ceil(float(noise.query_scale) * math.log(2 * wrong / request.updates))


def prepared_again(
    journey: Journey, dataset: Dataset, frame: Frame, terms: Terms, *, principal: str, account: str
) -> Prepared:
    """The statement of a stream's cells, as declarations are now. Errors: Refused where they are beyond its terms."""
    asked = plain_question(
        principal=principal,
        dataset=dataset.name,
        sql=frame.sql,
        account=account,
        contribution=terms.contribution,
        body_hash="0" * 64,
    )
    prepared = journey.preparing.prepare(asked, dataset, NormPower.L1)
    statistic = sums_of(prepared)
    same = groups_of(prepared) == frame.groups and step_of(statistic) == terms.step
    if not same or statistic.sensitivity.l1 > terms.noise.change:
        raise Refused([BEYOND_TERMS])
    return prepared
