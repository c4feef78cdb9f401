"""The sparse vector technique: the laws that are drawn, what they cost, and how far comparisons and answers are off."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mechanisms.randomness import Words
from mechanisms.samplers import threshold
from mechanisms.samplers.selection import Race, best
from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.samplers.undecided import Magnitude
from mechanisms.sparse_vector import Hit, NumericSparse, SparseVector, optimal_split
from privacy.events import SparseSessionEvent, SparseVectorEvent
from privacy.numbers import dyadic_up
from tests.mechanisms.support import FALSE_ALARM, SeededBits
from tests.mechanisms.test_choices import fits
from tests.privacy.vectors import exact, load

VECTORS = load("sparse_vector")
Floats = npt.NDArray[np.float64]
Survival = Callable[[Floats], Floats]


def exponential(scale: float) -> Survival:
    """P(N > t) of one-sided exponential noise."""
    return lambda t: np.exp(-np.maximum(t, 0) / scale)


def laplace(scale: float) -> Survival:
    """P(N > t) of Laplace noise."""
    return lambda t: np.where(t > 0, np.exp(-np.abs(t) / scale) / 2, 1 - np.exp(-np.abs(t) / scale) / 2)


def threshold_masses(scale: float, *, two_sided: bool = False, step: float = 0.002) -> tuple[Floats, Floats]:
    """Points of the threshold's noise, the middles of small cells, and the exact masses of the cells."""
    ends = np.arange(-35 if two_sided else 0, 35, step) * scale
    masses = -np.diff((laplace if two_sided else exponential)(scale)(ends))
    return (ends[:-1] + ends[1:]) / 2, masses


def first_law(distances: Sequence[float], masses: tuple[Floats, Floats], noise: Survival) -> list[float]:
    """The chances that each place is the first above the threshold, and last that none is."""
    points, left = masses[0], masses[1].copy()
    law = []
    for distance in distances:
        above = noise(points - distance)
        law.append(float((left * above).sum()))
        left = left * (1 - above)
    return [*law, float(left.sum())]


def plain(
    *, first: Fraction, later: Fraction, hits: int = 1, one_way: bool = True, sensitivity: int = 1
) -> SparseVector:
    """Comparisons of stated scales."""
    return SparseVector(
        sensitivity=Fraction(sensitivity),
        hits=hits,
        one_way=one_way,
        interactive=False,
        threshold_scale=first,
        query_scale=later,
    )


def test_the_law_of_the_textbook_is_that_of_the_reference() -> None:
    """Shows the quadrature of this page against reference values, with Laplace noise: "none" is an outcome (E14)."""
    age = VECTORS["age"]
    for row in age["laws"]:
        masses = threshold_masses(row["threshold_scale"], two_sided=True)
        law = first_law(age["scores"], masses, laplace(row["query_scale"]))
        names = [*map(str, age["places"]), "none"]
        for name, chance in zip(names, law, strict=True):
            assert chance == pytest.approx(row["law"].get(name, 0), rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(("margin", "draws"), [(2.0**-28, 8_000), (60.0, 1_000)])
def test_the_drawn_law_is_exact(margin: float, draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the law of the first hit on the ages of Adult, by floats and by intervals; and that it is not Laplace's."""
    monkeypatch.setattr(threshold, "MARGIN", margin)
    scores = np.array(VECTORS["age"]["scores"])[12:]
    sparse, bits = plain(first=Fraction(20), later=Fraction(40)), SeededBits(3)
    assert sparse.correction == 20
    found = [sparse.first_above(scores, bits) for _ in range(draws)]
    seen = [found.count(place) for place in [*range(len(scores)), None]]
    assert sum(seen) == draws
    assert seen[-1] > 0, "a run that finds nothing says None"
    law = first_law((scores - 20).tolist(), threshold_masses(20), exponential(40))
    assert fits(seen, law)
    wrong = first_law(scores.tolist(), threshold_masses(20, two_sided=True), laplace(40))
    assert draws < 8_000 or not fits(seen, wrong)


def test_one_threshold_serves_all_hits_of_a_run() -> None:
    """Shows the joint law of scores that are asked one after the other: with a threshold drawn anew it is another."""
    sparse, bits = plain(first=Fraction(8), later=Fraction(2), hits=3), SeededBits(5)
    runs = []
    for _ in range(3_000):
        run = sparse.start(bits)
        runs.append(tuple(len(run.ask(np.array([value]), bits)) for value in (0, 1, -1)))
    points, weights = threshold_masses(8)
    chances = [exponential(2)(points - (value - sparse.correction)) for value in (0, 1, -1)]
    every = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]

    def joint(pattern: tuple[int, ...]) -> Floats:
        return np.prod([p if hit else 1 - p for hit, p in zip(pattern, chances, strict=True)], axis=0)

    seen = [runs.count(pattern) for pattern in every]
    assert fits(seen, [float((weights * joint(pattern)).sum()) for pattern in every])
    alone = [float((weights * p).sum()) for p in chances]
    anew = [math.prod(p if hit else 1 - p for hit, p in zip(q, alone, strict=True)) for q in every]
    assert not fits(seen, anew)


def test_the_law_of_gaps_is_exact() -> None:
    """Shows the noisy distance that comes with a hit: the rounding of the real that was compared."""
    sparse, bits = plain(first=Fraction(2), later=Fraction(3)), SeededBits(7)
    distance = 2
    gaps = []
    for _ in range(6_000):
        hits = sparse.start(bits).ask(np.array([distance]), bits)
        gaps.append(hits[0].gap if hits else -1)
    points, weights = threshold_masses(2)
    reach = points - (distance - sparse.correction)
    survival = exponential(3)
    law = [float((weights * (1 - survival(reach))).sum())]
    for gap in range(60):
        low = reach if gap == 0 else reach + gap - 0.5
        law.append(float((weights * (survival(low) - survival(reach + gap + 0.5))).sum()))
    assert fits([gaps.count(value) for value in range(-1, 60)], law)
    assert max(gaps) < 60


def test_floats_and_intervals_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the same bits decide alike both ways, and that refining keeps what was known of the threshold."""
    distances = np.array([3, -2, 0, 5, -9])
    for seed in range(40):
        outcomes = []
        for margin in (2.0**-28, 80.0):
            monkeypatch.setattr(threshold, "MARGIN", margin)
            bits = SeededBits(seed)
            noisy = NoisyThreshold.drawn(Fraction(5, 2), bits)
            first = noisy.noise.value
            outcomes.append(noisy.compare(distances, scale=Fraction(3), bits=bits).above.tolist())
            assert noisy.noise.value >> (noisy.noise.length - 64) == first
        assert outcomes[0] == outcomes[1]


def test_a_gap_agrees_with_its_comparison_on_near_ties() -> None:
    """Shows that a hit that took more bits to decide is rounded from the same bits: its gap is never below zero."""
    scale, outcomes = Fraction(2**20), []
    for seed in range(200):
        # 64 bits that are all zero leave both noises without an upper end.
        tied = NoisyThreshold(scale, Magnitude(0, 64))
        bits = _ZeroFirst(seed)
        compared = tied.compare(np.array([0]), scale=scale, bits=bits)
        assert tied.noise.length > 64, "64 equal bits decide nothing"
        above = bool(compared.above[0])
        outcomes.append(above)
        gap = compared.gap(0, bits)
        assert gap >= 0 if above else gap <= 0
    assert 50 < sum(outcomes) < 150


class _ZeroFirst(SeededBits):
    """A first word of zeros, and then uniform ones."""

    def words(self, count: int) -> Words:
        given = super().words(count)
        if not self.__dict__.get("begun"):
            self.__dict__["begun"] = True
            given[0] = 0
        return given


def test_huge_distances_are_decided() -> None:
    """Shows distances beyond 64 bits, and scales far below one."""
    bits = SeededBits(1)
    noisy = NoisyThreshold.drawn(Fraction(1, 2**100), bits)
    huge = np.array([2**90, -(2**90), 1, -1], dtype=object)
    assert noisy.compare(huge, scale=Fraction(1, 2**100), bits=bits).above.tolist() == [True, False, True, False]
    with pytest.raises(ValueError, match="outside the range"):
        NoisyThreshold.drawn(Fraction(2**46), bits)


@pytest.mark.parametrize("row", VECTORS["allocation"], ids=lambda row: f"{row['eps']}-{row['c']}-{row['monotone']}")
@pytest.mark.sparse(4)
def test_the_split_is_the_published_one(row: dict[str, Any]) -> None:
    """Shows scales against the reference, and half of the variance with one-sided noise at the same price."""
    epsilon = exact(row["eps"])
    sparse = SparseVector.for_epsilon(
        epsilon, sensitivity=Fraction(1), hits=row["c"], one_way=row["monotone"], interactive=False
    )
    assert float(sparse.threshold_scale) == pytest.approx(row["scale_threshold"], rel=1e-12)
    assert float(sparse.query_scale) == pytest.approx(row["scale_query"], rel=1e-12)
    assert math.sqrt(2 * sparse.gap_variance - 1 / 6) == pytest.approx(row["sd_compare_optimal"], rel=1e-9)
    assert row["sd_compare_optimal"] < row["sd_compare_dwork_roth_alg2"]
    pure = sparse.event().loss().pure
    assert pure is not None
    assert epsilon * (1 - Fraction(1, 10**12)) < pure <= epsilon


def test_the_split_is_the_best_one() -> None:
    """Shows that no other part for the threshold gives a comparison less variance."""
    for hits, one_way in ((1, True), (1, False), (25, True), (100, False)):
        best = optimal_split(hits=hits, one_way=one_way)
        made = [
            SparseVector.for_epsilon(
                Fraction(1), sensitivity=Fraction(1), hits=hits, one_way=one_way, interactive=False, split=best * part
            ).gap_variance
            for part in (Fraction(1), Fraction(9, 10), Fraction(11, 10))
        ]
        assert made[0] < min(made[1:])


def test_what_stays_open_has_no_rho() -> None:
    """Shows both events of the same scales: one epsilon, one mu squared, and rho for what is released at once alone."""
    made = [
        SparseVector.for_epsilon(
            Fraction(1), sensitivity=Fraction(3), hits=4, one_way=False, interactive=interactive
        ).event()
        for interactive in (False, True)
    ]
    assert [type(event) for event in made] == [SparseVectorEvent, SparseSessionEvent]
    at_once, session = (event.loss() for event in made)
    assert (at_once.pure, at_once.mu_squared) == (session.pure, session.mu_squared)
    assert at_once.rho is not None
    assert at_once.rho <= Fraction(1, 2)
    assert session.rho is None


@pytest.mark.parametrize("row", VECTORS["zipf"]["rates"], ids=lambda row: f"{row['eps']}-{row['c']}")
@pytest.mark.sparse(3)
def test_false_negatives_on_zipf(row: dict[str, Any]) -> None:
    """Shows the rate of missed items on the benchmark of Lyu, Su and Li: that of the best reference, within chance."""
    hits, runs = row["c"], 100
    harmonic = sum(1 / rank for rank in range(1, 10_001))
    scores = np.array([round(10**6 / rank / harmonic) for rank in range(1, 10_001)])
    distances = 2 * scores - int(scores[hits - 1] + scores[hits])  # in halves of a record
    sparse = SparseVector.for_epsilon(
        exact(row["eps"]), sensitivity=Fraction(2), hits=hits, one_way=True, interactive=False
    )
    bits, orders = SeededBits(hits), np.random.default_rng(hits)
    missed = []
    for _ in range(runs):
        order = orders.permutation(10_000)
        found = sparse.start(bits).ask(distances[order], bits)
        missed.append(1 - sum(int(order[hit.place]) < hits for hit in found) / hits)
    rate, spread = float(np.mean(missed)), max(float(np.std(missed)), 0.01)
    chance = -NormalDist().inv_cdf(FALSE_ALARM) * spread * math.sqrt(2 / runs)
    assert rate <= row["exponential_split"] + chance
    assert rate >= row["exponential_split"] - chance, "the reference is met, not beaten: the noise is not too small"
    assert rate <= row["laplace_split"] + chance
    assert row["laplace_textbook"] < 0.1 or rate < row["laplace_textbook"] + chance


@pytest.mark.parametrize("row", VECTORS["zipf"]["rates"], ids=lambda row: f"{row['eps']}-{row['c']}")
@pytest.mark.sparse(3)
def test_one_draw_of_gumbel_noise_beside_it(row: dict[str, Any]) -> None:
    """Shows the rate of the best items by one noise on all of them, which needs all scores at once: the reference's,
    and never above that of a run."""
    hits, runs = row["c"], 40
    harmonic = sum(1 / rank for rank in range(1, 10_001))
    scores = np.array([round(10**6 / rank / harmonic) for rank in range(1, 10_001)])
    scale, bits = dyadic_up(hits / exact(row["eps"]), bits=96), SeededBits(hits)
    missed = [
        1 - sum(place < hits for place in best(scores, count=hits, scale=scale, race=Race.GUMBEL, bits=bits)) / hits
        for _ in range(runs)
    ]
    spread = max(float(np.std(missed)), 0.01)
    reach = -NormalDist().inv_cdf(FALSE_ALARM) * spread * math.sqrt(1 / runs + 1 / 100)
    assert abs(float(np.mean(missed)) - row["gumbel"]) <= reach
    assert row["gumbel"] <= row["exponential_split"]


def test_a_run_ends_with_its_last_hit() -> None:
    """Shows that nothing is said after the last hit, and that asking further is refused and changes nothing."""
    sparse, bits = plain(first=Fraction(1), later=Fraction(1), hits=2), SeededBits(1)
    run = sparse.start(bits)
    assert [hit.place for hit in run.ask(np.array([10**6, -(10**6), 10**6, 10**6]), bits)] == [0, 2]
    for _ in range(2):
        with pytest.raises(ValueError, match="last hit"):
            run.ask(np.array([10**6]), bits)
        assert run.left == 0


@pytest.mark.parametrize("hits", [0, -1, 10**6 + 1])
def test_absurd_numbers_of_hits_are_refused(hits: int) -> None:
    """Shows ValueError for a run that has no hit, or more than an event stands for."""
    with pytest.raises(ValueError, match="between 1 and a million"):
        SparseVector.for_epsilon(Fraction(1), sensitivity=Fraction(1), hits=hits, one_way=True, interactive=False)


def numeric(epsilon: str = "1", *, hits: int = 1, answers: Fraction = Fraction(1, 9)) -> NumericSparse:
    """Comparisons and answers of scores that move in both directions, which is what the published bound is for."""
    return NumericSparse.for_epsilon(
        Fraction(epsilon), answers=answers, sensitivity=Fraction(1), hits=hits, one_way=False, interactive=False
    )


@pytest.mark.parametrize("row", VECTORS["accuracy"], ids=lambda row: f"{row['k']}-{row['c']}-{row['eps']}")
@pytest.mark.sparse(4)
def test_accuracy_is_better_than_the_published_bound(row: dict[str, Any]) -> None:
    """Shows Theorem 3.28 as printed, and our bound below it at the same price; the form with delta is worse (E18)."""
    k, c, epsilon, beta = row["k"], row["c"], row["eps"], row["beta"]
    printed = 9 * c * (math.log(k) + math.log(4 * c / beta)) / epsilon
    assert printed == pytest.approx(row["alpha_delta0"], rel=1e-12)
    assert numeric(str(epsilon), hits=c).accuracy(queries=k, beta=beta) < printed
    with_delta = (math.log(k) + math.log(4 * c / beta)) * math.sqrt(c * math.log(2e6)) * (math.sqrt(512) + 1) / epsilon
    assert with_delta == pytest.approx(row["alpha_delta_1e-6"], rel=1e-9)
    assert (with_delta < printed) == (c >= 100)


def test_accuracy_holds_and_grows_with_the_number_of_queries() -> None:
    """Shows in runs that no comparison or answer is off by more, that half of the bound fails, and E16: it grows with
    the logarithm of the number of queries, while the price stays."""
    made, bits, k, beta = numeric(hits=3), SeededBits(4), 50, 0.1
    alpha = made.accuracy(queries=k, beta=beta)
    distances = np.linspace(-40, 40, k).astype(np.int64)
    runs, failures, sharper = 2_000, 0, 0
    for _ in range(runs):
        run = made.sparse.start(bits)
        hits = run.ask(distances, bits)
        places = {hit.place for hit in hits}
        asked = k if run.left else max(places) + 1
        off = [distances[p] if p not in places else -distances[p] for p in range(asked)]
        off += [abs(made.answer(int(distances[p]), bits) - distances[p]) for p in places]
        failures += max(off) > alpha
        sharper += max(off) > alpha / 3
    assert failures / runs <= beta + -NormalDist().inv_cdf(FALSE_ALARM) * math.sqrt(beta / runs)
    assert sharper / runs > beta, "a third of the bound would not hold"
    further = made.sparse.accuracy(queries=k * 1_000, beta=beta) - made.sparse.accuracy(queries=k, beta=beta)
    assert further == pytest.approx(float(made.sparse.query_scale) * math.log(1_000), rel=1e-9)


def test_shares_never_add_up_to_more() -> None:
    """Shows E17: comparisons and all answers together cost what was asked for, where the printed shares sum to more."""
    for hits in (1, 5, 100):
        made = numeric("2", hits=hits)
        pure, answer = made.sparse.event().loss().pure, made.answer_event().loss().pure
        assert pure is not None
        assert answer is not None
        assert Fraction(2) * (1 - Fraction(1, 10**12)) < pure + hits * answer <= 2
    root = math.sqrt(512)
    assert root / (root + 1) + 1 / root == pytest.approx(VECTORS["shares"]["split_sums"]["deltapos_seed"])
    for row in VECTORS["shares"]["deltapos_vs_delta0"]:
        ratio = math.sqrt(row["c"] * math.log(2 / row["delta"])) * (root + 1) / (9 * row["c"])
        assert ratio == pytest.approx(row["ratio_deltapos_over_delta0"])


@pytest.mark.slow
def test_gap_and_answer_together_are_better_than_either() -> None:
    """Shows that a far hit has no bias and the stated variances: of its gap, of its answer, and least of both."""
    made, bits, distance, runs = numeric(hits=2, answers=Fraction(1, 2)), SeededBits(6), 10**4, 5_000
    first, second, both = [], [], []
    for _ in range(runs):
        (hit,) = made.sparse.start(bits).ask(np.array([distance]), bits)
        answer = made.answer(distance, bits)
        first.append(hit.gap - distance)
        second.append(answer - distance)
        both.append(float(made.combined(hit, answer)) - distance)
    reach = -NormalDist().inv_cdf(FALSE_ALARM)
    expected = (made.sparse.gap_variance, made.answer_variance, made.combined_variance)
    for errors, variance in zip((first, second, both), expected, strict=True):
        # The correction is rounded: half of a unit of bias at most.
        assert abs(np.mean(errors)) < 0.51 + reach * math.sqrt(variance / runs)
        # The fourth moment of exponential noise is at most 9 times the squared variance.
        assert abs(np.var(errors) / variance - 1) < reach * math.sqrt(8 / runs)
    assert expected[2] < min(expected[:2])
    assert made.combined(Hit(0, 7), 7) == 7


@pytest.mark.parametrize("answers", ["0", "1", "-1"])
def test_absurd_shares_are_refused(answers: str) -> None:
    """Shows ValueError for answers that take nothing, or everything."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        numeric(answers=Fraction(answers))


def test_scores_are_arguments() -> None:
    """Shows E15: a run knows no table of its own, so other scores give other hits."""
    sparse = plain(first=Fraction(1, 1024), later=Fraction(1, 1024), hits=2)
    assert sparse.first_above(np.array([-5, 5, 5]), SeededBits(1)) == 1
    assert sparse.first_above(np.array([-5, -5, 5]), SeededBits(1)) == 2
    assert sparse.first_above(np.array([-5, -5, -5]), SeededBits(1)) is None


def test_differences_of_one_clipped_answer_have_no_signal() -> None:
    """Shows E19: the range of one statistic is not found by comparing it clipped at growing bounds, as each difference
    moves by one while the noise is a hundred; over the answers of blocks, each of which counts, it is found."""
    bounds, blocks = range(0, 200, 10), 500
    answers = np.random.default_rng(3).normal(95, 8, blocks)
    sparse, bits = plain(first=Fraction(20), later=Fraction(20)), SeededBits(8)

    def found(counted: float) -> list[int]:
        scores = np.array([-round(counted * float(np.mean(answers > bound))) for bound in bounds])
        places = [sparse.first_above(scores + 20, bits) for _ in range(400)]
        return [len(bounds) if place is None else place for place in places]

    near = [8 <= place <= 13 for place in found(blocks)]
    assert np.mean(near) > 0.8
    lost = [8 <= place <= 13 for place in found(1)]
    assert np.mean(lost) < 0.3
