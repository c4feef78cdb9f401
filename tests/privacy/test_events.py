"""One suite for every kind of privacy event."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.composition import compose
from privacy.events import (
    KINDS,
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    GaussianFollowedEvent,
    GaussianRangesEvent,
    GaussianThresholdEvent,
    LaplaceEvent,
    LaplaceFollowedEvent,
    LaplaceRangesEvent,
    PermuteAndFlipEvent,
    SparseSessionEvent,
    SparseVectorEvent,
    TruncatedGeometricEvent,
    event_from_json,
    event_to_json,
)
from privacy.events.approximate import ApproximateEvent, DiscreteLaplaceEvent, LocalReportEvent
from privacy.events.laplace import LaplaceThresholdEvent
from privacy.loss import ZERO_LOSS, Loss

_POSITIVE = st.fractions(min_value=Fraction(1, 100), max_value=Fraction(100), max_denominator=10**6)
_DELTA = st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(1, 2), max_denominator=10**15)


@dataclasses.dataclass(frozen=True)
class Case:
    """One kind of event: an event, any of them, and the parameters that make the loss grow and fall."""

    sample: Any
    events: st.SearchStrategy[Any]
    grows: tuple[str, ...]
    falls: tuple[str, ...]


CASES = (
    Case(
        LaplaceEvent(l1_sensitivity=Fraction(3), scale=Fraction(7)),
        st.builds(LaplaceEvent, l1_sensitivity=_POSITIVE, scale=_POSITIVE),
        grows=("l1_sensitivity",),
        falls=("scale",),
    ),
    Case(
        GaussianEvent(l2_squared=Fraction(3), variance=Fraction(7)),
        st.builds(GaussianEvent, l2_squared=_POSITIVE, variance=_POSITIVE),
        grows=("l2_squared",),
        falls=("variance",),
    ),
    Case(
        TruncatedGeometricEvent(epsilon=Fraction(1, 3), delta=Fraction(1, 10**6)),
        st.builds(TruncatedGeometricEvent, epsilon=_POSITIVE, delta=_DELTA),
        grows=("epsilon", "delta"),
        falls=(),
    ),
    Case(
        ApproximateEvent(epsilon=Fraction(1, 3), delta=Fraction(1, 10**6)),
        st.builds(ApproximateEvent, epsilon=_POSITIVE, delta=_DELTA),
        grows=("epsilon", "delta"),
        falls=(),
    ),
    Case(
        LaplaceThresholdEvent(l1_sensitivity=Fraction(3), scale=Fraction(7), delta=Fraction(1, 10**6)),
        st.builds(LaplaceThresholdEvent, l1_sensitivity=_POSITIVE, scale=_POSITIVE, delta=_DELTA),
        grows=("l1_sensitivity", "delta"),
        falls=("scale",),
    ),
    Case(
        DiscreteLaplaceEvent(l1_sensitivity=Fraction(3), scale=Fraction(7)),
        st.builds(DiscreteLaplaceEvent, l1_sensitivity=_POSITIVE, scale=_POSITIVE),
        grows=("l1_sensitivity",),
        falls=("scale",),
    ),
    *(
        Case(
            kind(**noise, epsilon=Fraction(1, 3), count=Fraction(2)),
            st.builds(
                kind,
                **dict.fromkeys(noise, _POSITIVE),
                epsilon=_POSITIVE,
                count=st.integers(min_value=1, max_value=5).map(Fraction),
            ),
            grows=(next(iter(noise)), "epsilon"),
            falls=(list(noise)[1],),
        )
        for kind, noise in (
            (LaplaceFollowedEvent, {"l1_sensitivity": Fraction(3), "scale": Fraction(7)}),
            (GaussianFollowedEvent, {"l2_squared": Fraction(3), "variance": Fraction(7)}),
        )
    ),
    Case(
        LocalReportEvent(epsilon=Fraction(1, 3)),
        st.builds(LocalReportEvent, epsilon=_POSITIVE),
        grows=("epsilon",),
        falls=(),
    ),
    Case(
        GaussianThresholdEvent(l2_squared=Fraction(3), variance=Fraction(7), delta=Fraction(1, 10**6)),
        st.builds(GaussianThresholdEvent, l2_squared=_POSITIVE, variance=_POSITIVE, delta=_DELTA),
        grows=("l2_squared", "delta"),
        falls=("variance",),
    ),
    *(
        Case(
            kind(epsilon=Fraction(1, 3), draws=Fraction(2)),
            st.builds(kind, epsilon=_POSITIVE, draws=st.integers(min_value=1, max_value=50).map(Fraction)),
            grows=("epsilon",),
            falls=(),
        )
        for kind in (BoundedRangeEvent, PermuteAndFlipEvent)
    ),
    *(
        Case(
            kind(**noise, ranges_l1=Fraction(3), ranges_l2_squared=Fraction(4)),
            st.builds(
                kind,
                **dict.fromkeys(noise, _POSITIVE),
                ranges_l1=st.fractions(min_value=Fraction(21), max_value=Fraction(100), max_denominator=10**6),
                ranges_l2_squared=_POSITIVE,
            ),
            grows=(next(iter(noise)), "ranges_l2_squared", *(["ranges_l1"] if kind is LaplaceRangesEvent else [])),
            falls=(list(noise)[1],),
        )
        for kind, noise in (
            (LaplaceRangesEvent, {"l1_sensitivity": Fraction(3), "scale": Fraction(7)}),
            (GaussianRangesEvent, {"l2_squared": Fraction(3), "variance": Fraction(7)}),
        )
    ),
    *(
        Case(
            kind(
                sensitivity=Fraction(3),
                threshold_scale=Fraction(7),
                query_scale=Fraction(5),
                moves=Fraction(1),
                hits=Fraction(2),
            ),
            st.builds(
                kind,
                sensitivity=_POSITIVE,
                threshold_scale=_POSITIVE,
                query_scale=_POSITIVE,
                moves=st.sampled_from([Fraction(1), Fraction(2)]),
                hits=st.integers(min_value=1, max_value=50).map(Fraction),
            ),
            grows=("sensitivity",),
            falls=("threshold_scale", "query_scale"),
        )
        for kind in (SparseVectorEvent, SparseSessionEvent)
    ),
)
EVENTS = st.one_of([case.events for case in CASES])
SAMPLES: dict[type[Any], Any] = {type(case.sample): case.sample for case in CASES}
GROWS = {type(case.sample): case.grows for case in CASES}
FALLS = {type(case.sample): case.falls for case in CASES}


def measures(loss: Loss) -> list[float | Fraction]:
    """Every measure of a loss in one list; None is infinity."""
    values = (loss.pure, loss.delta, loss.rho, loss.mu_squared)
    return [math.inf if value is None else value for value in values]


def test_every_kind_has_a_sample() -> None:
    """Shows that a new kind cannot be registered without entering this suite."""
    assert set(KINDS) == set(SAMPLES)
    assert len(CASES) == len(SAMPLES)
    assert len({kind.kind for kind in KINDS}) == len(KINDS)


@given(event=EVENTS, count=st.integers(min_value=1, max_value=30))
@settings(max_examples=60, deadline=None)
def test_n_fold_equals_a_list_of_n(event: Event, count: int) -> None:
    """Shows that one event composed n times costs exactly what a list of n equal events costs."""
    assert event.loss().times(count) == compose([event] * count)


@given(events=st.lists(EVENTS, max_size=5), data=st.data())
@settings(max_examples=40, deadline=None)
def test_order_does_not_matter(events: list[Event], data: st.DataObject) -> None:
    """Shows that composition neither depends on order nor on grouping."""
    shuffled = data.draw(st.permutations(events))
    cut = data.draw(st.integers(min_value=0, max_value=len(events)))
    assert compose(events) == compose(shuffled)
    assert compose(events) == compose(events[:cut]) + compose(events[cut:])


def test_nothing_costs_nothing() -> None:
    """Shows that no events lose nothing, and that a missing measure stays missing in every sum."""
    assert compose([]) == ZERO_LOSS
    assert compose([SAMPLES[LaplaceEvent], SAMPLES[GaussianEvent], SAMPLES[LaplaceEvent]]).pure is None


@given(event=EVENTS)
@settings(max_examples=100, deadline=None)
def test_json_out_and_in(event: Event) -> None:
    """Shows that the stored form gives back an equal event with an equal loss, through JSON text."""
    stored = json.loads(json.dumps(event_to_json(event)))
    assert event == event_from_json(stored)
    assert event.loss() == event_from_json(stored).loss()
    assert isinstance(event, Event)


@given(event=EVENTS, factor=st.fractions(min_value=Fraction(101, 100), max_value=Fraction(4), max_denominator=100))
@settings(max_examples=100, deadline=None)
def test_loss_is_monotone(event: Any, factor: Fraction) -> None:
    """Shows that no measure falls when sensitivity, epsilon or delta grow, or when noise shrinks."""
    before = measures(event.loss())
    for name in GROWS[type(event)]:
        value = getattr(event, name)
        grown = (1 + value) / 2 if name == "delta" else value * factor
        after = measures(dataclasses.replace(event, **{name: grown}).loss())
        assert all(left <= right for left, right in zip(before, after, strict=True)), name
        assert before != after, name
    for name in FALLS[type(event)]:
        after = measures(dataclasses.replace(event, **{name: getattr(event, name) * factor}).loss())
        assert all(left >= right for left, right in zip(before, after, strict=True)), name
        assert before != after, name


@pytest.mark.slow
@given(event=EVENTS)
@settings(max_examples=60, deadline=None)
def test_measures_agree_with_each_other(event: Event) -> None:
    """Shows the inequalities that hold between measures of any event."""
    loss = event.loss()
    slack = 1 + Fraction(1, 10**20)  # each measure is rounded up on its own
    assert loss.mu_squared is not None
    if isinstance(event, SparseSessionEvent):
        assert loss.rho is None, "what stays open beside others is never paid in rho"
        return
    assert loss.rho is not None
    assert loss.rho <= loss.mu_squared / 2 * slack, "the Gaussian that dominates an event has at least its rho"
    if loss.pure is not None:
        assert loss.rho <= loss.pure**2 / 2


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(-1), Fraction(10**400), Fraction(1, 10**400)])
def test_absurd_parameters_are_refused(kind: type[Any], wrong: Fraction) -> None:
    """Shows that zero (infinite loss), negative, huge and vanishing parameters raise ValueError, one at a time."""
    sample = SAMPLES[kind]
    for field in dataclasses.fields(kind):
        if field.name == "delta" and 0 < wrong < 1:
            continue  # a tiny delta is no absurdity
        with pytest.raises(ValueError, match=r"greater than zero|less than one|outside the range"):
            dataclasses.replace(sample, **{field.name: wrong})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize("wrong", [0.5, math.nan, math.inf, 1, "1/2", None])
def test_only_fractions_are_parameters(kind: type[Any], wrong: object) -> None:
    """Shows that floats (with NaN and infinity), integers and text are not taken for exact amounts."""
    for field in dataclasses.fields(kind):
        with pytest.raises(TypeError, match="must be a Fraction"):
            dataclasses.replace(SAMPLES[kind], **{field.name: wrong})


@pytest.mark.parametrize("kind", [TruncatedGeometricEvent, GaussianThresholdEvent])
def test_delta_is_below_one(kind: type[Any]) -> None:
    """Shows that an event may not leak for certain."""
    with pytest.raises(ValueError, match="less than one"):
        dataclasses.replace(SAMPLES[kind], delta=Fraction(1))


def test_numbers_of_unbounded_length_are_refused() -> None:
    """Shows that a moderate value with millions of digits cannot make the ledger slow."""
    with pytest.raises(ValueError, match="too many digits"):
        LaplaceEvent(l1_sensitivity=Fraction(10**2000 + 1, 10**2000), scale=Fraction(1))


@pytest.mark.parametrize(
    "text",
    ["", "1", "0/1", "-1/2", "1/0", "1/-2", "1.5/2", " 1/2", "1/2\n", "1_0/3", "٣/٤", "nan/1", 0.5, None, [1, 2]],
)
def test_damaged_storage_is_refused(text: object) -> None:
    """Shows that text which is not a plain positive fraction raises ValueError when an event is read back."""
    for kind in KINDS:
        stored = event_to_json(SAMPLES[kind])
        for name in stored["parameters"]:
            with pytest.raises(ValueError, match="must be stored as"):
                event_from_json({"kind": kind.kind, "parameters": {**stored["parameters"], name: text}})


def test_foreign_storage_is_refused() -> None:
    """Shows that unknown kinds and missing, additional or other kinds' parameters raise ValueError."""
    laplace = event_to_json(SAMPLES[LaplaceEvent])
    gaussian = event_to_json(SAMPLES[GaussianEvent])
    for stored in (
        {"kind": "laplace/2", "parameters": laplace["parameters"]},
        {"kind": "laplace/1", "parameters": gaussian["parameters"]},
        {"kind": "laplace/1", "parameters": {"scale": "1/1"}},
        {"kind": "laplace/1", "parameters": {**laplace["parameters"], "delta": "1/2"}},
        {"kind": "laplace/1", "parameters": [["scale", "1/1"]]},
    ):
        with pytest.raises(ValueError, match=r"unknown kind|do not belong"):
            event_from_json(stored)
