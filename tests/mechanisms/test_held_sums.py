"""Which sums of a stored release are as exact as fresh ones: steps of values, and what selected its groups."""

from __future__ import annotations

from fractions import Fraction

import pytest

from mechanisms.families import FAMILIES, NoiseFamily
from mechanisms.held_sums import HeldSums, Wanted, answered
from mechanisms.measurement import Measurement
from mechanisms.measurements.gaussian_threshold import GaussianThresholdMeasurement
from privacy.aggregate import AggregateFunction
from privacy.statistic import Estimate
from tests.mechanisms.support import moments, units


def _moments(step: Fraction) -> Measurement:
    statistic = moments(degree=1, width=int(100 / step), step=step)
    return FAMILIES[NoiseFamily.LAPLACE].measurement("c0", statistic, share=Fraction(1), amount=Fraction(1))


@pytest.mark.parametrize(
    ("stored", "asked", "whole", "serves"),
    [("1", "1/1000", False, False), ("1", "1/1000", True, True), ("1/1000", "1", False, True)],
)
def test_values_are_rounded_no_coarser_than_anew(stored: str, asked: str, whole: bool, serves: bool) -> None:
    """Shows that sums of values in coarser steps serve whole numbers only, on which the steps lie."""
    estimate = Estimate("a0", AggregateFunction.AVERAGE, "m", integer=False)
    wanted = Wanted("moments:x", AggregateFunction.AVERAGE, estimate, _moments(Fraction(asked)), whole=whole)
    held = HeldSums(_moments(Fraction(stored)), frozenset({"moments:x"}))
    assert (answered([held], [wanted], (), exact=False) is not None) is serves


def _selecting(delta: str, sigma: int = 10) -> Measurement:
    return GaussianThresholdMeasurement(
        core="c0",
        statistic=units(),
        share=Fraction(1),
        grid=Fraction(1),
        sigma=Fraction(sigma),
        delta=Fraction(delta),
        groups_per_unit=1,
    )


def test_groups_were_selected_with_no_less_delta_and_no_more_noise() -> None:
    """Shows that a release whose threshold was higher, or noisier, than a fresh one's is not taken for it."""
    fresh = _selecting("1e-8")
    for held, serves in ((fresh, True), (_selecting("1e-7"), True), (_selecting("1e-9"), False)):
        assert (answered([HeldSums(held, frozenset())], [], (), selection=fresh) is not None) is serves
    assert answered([HeldSums(_selecting("1e-8", sigma=20), frozenset())], [], (), selection=fresh) is None
