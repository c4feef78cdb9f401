"""What textbooks print and what is true: the errors of docs/mechanisms.md that no other test names.

Each test shows the printed claim to fail, and that what is built here does not rest on it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from accountant.account import Limit
from accountant.simulation import Kind, Repeated, simulate
from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from privacy.composition import compose
from privacy.conversions import concentrated_rho, gaussian_mu_squared
from privacy.events import LaplaceEvent
from privacy.numbers import parse_decimal
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from tests.audit.smallest import audited, scene
from tests.mechanisms.test_choices import chosen_core, gumbel_law, measurement


def test_e9_a_histogram_is_no_worse_than_one_count() -> None:
    """E9: three counts that each move by 1 are said to move by 3 together; of disjoint groups one moves."""
    world = scene([{"k": "a"}, {"k": "b"}, {"k": None}])
    sql = "SELECT k, COUNT(*) FROM people GROUP BY k"
    (core,) = bound(lift(sql, world.dataset))
    (statistic,) = core.described.statistics
    assert (statistic.sensitivity.l1, statistic.sensitivity.l2_squared) == (1, 1)
    assert audited(world, sql, 0).tightest == {"units": Fraction(1)}


def test_e11_the_first_conversions_give_budget_away() -> None:
    """E11: rho + 2 sqrt(rho ln(1 / delta)) is valid and loose: at (1, 10^-6) it buys 0.0175, the exact form 0.0244."""
    log = math.log(10**6)
    first = (math.sqrt(log + 1) - math.sqrt(log)) ** 2  # where rho + 2 sqrt(rho log) is 1
    assert first == pytest.approx(0.01747, rel=1e-3)
    rho = concentrated_rho(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert float(rho) == pytest.approx(0.0243564, rel=1e-4)
    # For Gaussian noise nothing is converted at all: another 15 percent.
    exact = gaussian_mu_squared(epsilon=Fraction(1), delta=Fraction(1, 10**6)) / 2
    assert 1.1 < exact / rho < 1.2


def test_e13_a_score_counted_twice_has_twice_the_sensitivity() -> None:
    """E13: the score -2 |q - r| moves by 2 where q moves by 1, so its law at epsilon 1 is Laplace's of scale 2."""
    made = measurement(chosen_core(rows=2, one_way=False), NoiseFamily.LAPLACE, Fraction(1))
    assert made.scale == 4  # the sensitivity of 2, twice, since scores of one statistic move against each other
    places = range(-40, 41)
    law = gumbel_law([-2.0 * abs(place) for place in places], float(made.scale))
    of_laplace = [math.exp(-abs(place) / 2) for place in places]
    assert law == pytest.approx([weight / sum(of_laplace) for weight in of_laplace])


def test_e20_two_answers_that_are_averaged_cost_two() -> None:
    """E20: the average of two Laplace answers seems to cost less; its density is (1 + s) e^-s / 4, and it does not."""
    one = LaplaceEvent(l1_sensitivity=Fraction(1), scale=Fraction(1))
    assert compose((one, one)).pure == 2

    def loss(distance: float) -> float:
        """The loss at s of the sum of two answers, where the neighbour's sum is 2 lower."""
        return 2 + math.log((1 + distance) / (3 + distance))

    losses = [loss(distance) for distance in (0, 1, 10, 1000)]
    assert losses == sorted(losses)
    assert 1.99 < losses[-1] < 2


def test_e21_ten_times_ten_to_the_minus_five() -> None:
    """E21: a delta that is written 10e-5 is 10^-4, and the number of answers where bounds cross follows from it."""
    assert parse_decimal("10e-5", name="delta", maximum=Fraction(1), unit=Fraction(1, 10**20)) == Fraction(1, 10**4)
    for delta, crossing in ((Fraction(1, 10**4), 73.7), (Fraction(1, 10**5), 92.1)):
        counts = (math.floor(crossing), math.ceil(crossing))
        question = Repeated(Kind.PURE, Fraction(1, 10))
        found = {figure.way.name: figure for figure in simulate(question, Limit(Fraction(1), delta), counts)}
        printed, added = found["advanced_of_books"].epsilons, found["sum"].epsilons
        assert all(epsilon is not None for epsilon in (*printed, *added))
        assert printed[0] > added[0]  # type: ignore[operator]
        assert printed[1] < added[1]  # type: ignore[operator]


def test_e25_neighbours_are_tables_and_not_numbers() -> None:
    """E25: a mean whose noise is made for values that differ by 1 hides nobody; here a person is all of [0, 100]."""
    world = scene([{"x": 100}, {"x": 3}, {"x": 40}], bounds=("0", "100"))
    sql = "SELECT AVG(x) FROM people"
    (core,) = bound(lift(sql, world.dataset))
    (made,) = calibrate([core.described], Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0))).measurements
    # The sums are of x / 100 and 1 - x / 100: a person is 1 of them, and a step of 1 in x a hundredth.
    assert made.scale_of_sums * made.unit == 1
    assert {Fraction(1)} == set(audited(world, sql, 0).tightest.values())
