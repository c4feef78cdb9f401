"""Choices of keys: the laws that are drawn, what they cost, and how far they miss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import chi2

from mechanisms.calibrate import calibrate
from mechanisms.families import NoiseFamily, Price
from mechanisms.measurement import Integers
from mechanisms.measurements.choices import ChoiceMeasurement, distance, kept_within
from mechanisms.release import release
from mechanisms.samplers import selection
from mechanisms.samplers.selection import Race, best
from privacy.composition import compose
from privacy.events.selection import bounded_range_loss
from privacy.exact import Exact
from privacy.policy import ColumnType
from privacy.statistic import Choice, CoreStatistics, KeyColumn, Keys
from tests.mechanisms.support import FALSE_ALARM, SeededBits, count
from tests.privacy.vectors import load
from tests.work import counting_calls

T = ColumnType
CONFIDENCE = Fraction(95, 100)
VECTORS = load("selection")


def chosen_core(
    cells: Sequence[str] = "abcde", *, rows: int = 1, number: int = 1, one_way: bool = True, least: bool = False
) -> CoreStatistics:
    """A core that releases the best of some public keys by their rows."""
    keys = Keys((KeyColumn("k", T.TEXT),), tuple((cell,) for cell in cells), groups_per_unit=len(cells))
    choice = Choice(count=number, within=(), least=least, parts_per_unit=1, one_way=one_way)
    return CoreStatistics("c", keys, (count(rows=rows),), (), choice=choice)


def measurement(core: CoreStatistics, family: NoiseFamily, amount: Fraction) -> ChoiceMeasurement:
    """The measurement of its score."""
    (made,) = calibrate([core], Price(family, amount, Fraction(0))).measurements
    assert isinstance(made, ChoiceMeasurement)
    return made


def gumbel_law(scores: Sequence[float], scale: float) -> list[float]:
    """The chances of the exponential mechanism."""
    weights = [math.exp((score - max(scores)) / scale) for score in scores]
    return [weight / sum(weights) for weight in weights]


def exponential_law(scores: Sequence[float], scale: float) -> list[float]:
    """The chances of permute-and-flip: a random order, in which each is taken with its chance."""
    coins = [math.exp((score - max(scores)) / scale) for score in scores]
    chances = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for place in order:
            chances[place] += left * coins[place] / len(orders)
            left *= 1 - coins[place]
    return chances


def test_the_laws_are_those_of_the_reference() -> None:
    """Shows the closed forms of this page against reference values."""
    small = VECTORS["small"]
    scores = small["scores"]
    assert gumbel_law(scores, 2) == pytest.approx(small["exponential"], rel=1e-12)
    assert gumbel_law(scores, 1) == pytest.approx(small["exponential_monotone"], rel=1e-12)
    assert exponential_law(scores, 2) == pytest.approx(small["permute_and_flip"], rel=1e-12)
    assert exponential_law(scores, 1) == pytest.approx(small["permute_and_flip_monotone"], rel=1e-12)


def fits(seen: Sequence[int], law: Sequence[float]) -> bool:
    """Whether counts fit a law, by chi-square; a false alarm is as rare as `FALSE_ALARM`."""
    total = sum(seen)
    cells = [(a, p * total) for a, p in zip(seen, law, strict=True)]
    large = [cell for cell in cells if cell[1] >= 10]
    rest = [sum(part) for part in zip(*(cell for cell in cells if cell[1] < 10), strict=True)]
    if rest and rest[1] >= 10:
        large.append((int(rest[0]), rest[1]))
    statistic = sum((a - e) ** 2 / e for a, e in large)
    return bool(chi2.sf(statistic, max(1, len(large) - 1)) > FALSE_ALARM)


@pytest.mark.sparse(4)
@pytest.mark.parametrize(("margin", "draws"), [(2.0**-28, 8_000), (0.3, 3_000)])
@pytest.mark.parametrize("race", Race)
def test_the_drawn_law_is_exact(race: Race, margin: float, draws: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows both laws, by floats and, with a wide margin, by intervals."""
    monkeypatch.setattr(selection, "MARGIN", margin)
    scores, bits = np.array([10, 9, 7, 0]), SeededBits(11)
    found = [best(scores, count=1, scale=Fraction(2), race=race, bits=bits)[0] for _ in range(draws)]
    law = gumbel_law if race is Race.GUMBEL else exponential_law
    seen = np.bincount(found, minlength=4).tolist()
    assert fits(seen, law(scores.tolist(), 2))
    assert not fits(seen, law(scores.tolist(), 1))


def test_intervals_and_floats_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the same bits give the same order whether floats or intervals decide it."""
    scores = np.array([5, 5, 4, 3, 5, 1])
    for race, seed in itertools.product(Race, range(40)):
        orders = []
        for margin in (2.0**-28, 60.0):
            monkeypatch.setattr(selection, "MARGIN", margin)
            orders.append(best(scores, count=6, scale=Fraction(3, 2), race=race, bits=SeededBits(seed)))
        assert orders[0] == orders[1]
        assert sorted(orders[0]) == list(range(6))


def test_one_noise_gives_the_order_of_several_draws() -> None:
    """Shows that the first two of Gumbel noise have the law of two draws without replacement."""
    scores, bits = [3, 2, 0], SeededBits(5)
    pairs = [
        tuple(best(np.array(scores), count=2, scale=Fraction(2), race=Race.GUMBEL, bits=bits)) for _ in range(8_000)
    ]
    law = gumbel_law(scores, 2)
    every = list(itertools.permutations(range(3), 2))
    expected = [law[a] * law[b] / (1 - law[a]) for a, b in every]
    assert fits([pairs.count(pair) for pair in every], expected)


def work_of(made: ChoiceMeasurement, scores: Integers, seed: int) -> int:
    """How many functions are called, of ours and of numpy's, until a choice of these bits is made."""
    bits = SeededBits(seed)
    return counting_calls(lambda: made.perturb(scores, bits))[1]


@pytest.mark.parametrize("family", NoiseFamily)
def test_a_choice_takes_the_same_steps_whatever_the_scores_are(
    family: NoiseFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that time cannot tell scores: as many calls, and few of them, for scores that are alike and that are not.

    Three draws among a thousand cells; where floats decide less, ties are compared by intervals, and that is seen.
    """
    made = measurement(chosen_core([str(one) for one in range(1_000)], number=3), family, Fraction(1))
    places = np.arange(1_000)
    shapes = (np.full(1_000, 50), places % 3, 10_000 // (places + 1), np.where(places == 7, 10**9, 0))
    matrices = [shape.astype(np.int64)[:, None] for shape in shapes]
    work_of(made, matrices[0], 0)
    certain = [seed for seed in range(12) if not unsure_bits(seed, 1_000 * 3)]
    assert len(certain) >= 8
    found = {work_of(made, matrix, seed) for matrix in matrices for seed in certain}
    assert len(found) == 1
    assert found.pop() < 400  # less than the cells: nothing is done cell by cell
    monkeypatch.setattr(selection, "MARGIN", 0.2)
    assert len({work_of(made, matrix, certain[0]) for matrix in matrices}) > 1


def unsure_bits(seed: int, count: int) -> bool:
    """Whether these bits ask for intervals by themselves, whatever the scores are: a uniform near 0 or 1."""
    uniform = SeededBits(seed).words(count).astype(np.float64) * 2.0**-64
    return bool(np.any((uniform < 2.0**-17) | (uniform > 1 - 2.0**-17)))


def test_huge_scores_neither_overflow_nor_lose_their_order() -> None:
    """Shows scores beyond 64 bits, equal ones far from zero, and noise far below one."""
    bits = SeededBits(2)
    huge = np.array([2**90, 2**90 + 2**60, -(2**90)], dtype=object)
    assert best(huge, count=3, scale=Fraction(1), race=Race.GUMBEL, bits=bits) == [1, 0, 2]
    near = np.array([2**58 + 1, 2**58])
    assert best(near, count=2, scale=Fraction(1, 2**100), race=Race.EXPONENTIAL, bits=bits) == [0, 1]
    found = [best(near, count=1, scale=Fraction(2**40), race=Race.GUMBEL, bits=bits)[0] for _ in range(2_000)]
    assert fits(np.bincount(found, minlength=2).tolist(), [0.5, 0.5])


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "4", "12"])
def test_the_bounded_range_loss_covers_its_worst_cases(epsilon: str) -> None:
    """Shows rho and mu of a range against every two-point law that attains it, and that both are nearly attained."""
    size = float(epsilon)
    loss = bounded_range_loss(Fraction(epsilon))
    assert loss.rho is not None
    assert loss.mu_squared is not None
    normal, least_rho, least_mu = NormalDist(), 0.0, 0.0
    for t in (size * place / 200 for place in range(1, 200)):
        p = (math.exp(size) - math.exp(t)) / math.expm1(size)
        q = p * math.exp(-t)
        p, q = max(p, q), min(p, q)
        least_mu = max(least_mu, normal.inv_cdf(p) - normal.inv_cdf(q))
        for a in (1.0001, 1.5, 2.0, 8.0):
            renyi = math.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)
            least_rho = max(least_rho, renyi / a)
            assert renyi / a <= float(loss.rho) * (1 + 1e-6) + 1e-13
    assert least_mu**2 <= float(loss.mu_squared) * (1 + 1e-6)
    assert least_mu**2 >= float(loss.mu_squared) * (1 - 1e-6)
    assert size > 1 or least_rho >= float(loss.rho) * 0.97


@pytest.mark.parametrize("one_way", [True, False])
@pytest.mark.parametrize("family", NoiseFamily)
def test_neighbours_differ_by_no_more_than_is_charged(family: NoiseFamily, one_way: bool) -> None:
    """Shows the chances of every key on neighbours against epsilon, and that half of the scale would not do."""
    core = chosen_core(rows=3, one_way=one_way)
    made = measurement(core, family, Fraction(1))
    law = gumbel_law if family is NoiseFamily.GAUSSIAN else exponential_law
    base = [20, 19, 16, 12, 3]
    moves: list[tuple[int, ...]] = [(3, 0, 0, 0, 0), (0, 3, 3, 3, 3), (3, 1, 2, 0, 3)]
    if not one_way:
        moves += [(3, -3, -3, -3, -3), (-3, 3, 3, 3, 3), (-2, 3, -3, 0, 1)]

    def worst(scale: float) -> float:
        """The greatest loss, in either direction, or range of losses."""
        found = 0.0
        for move in moves:
            before, after = law(base, scale), law([a + b for a, b in zip(base, move, strict=True)], scale)
            losses = [math.log(a / b) for a, b in zip(before, after, strict=True)]
            ranged = max(losses) - min(losses) if family is NoiseFamily.GAUSSIAN else 0.0
            found = max(found, ranged, *map(abs, losses))
        return found

    assert worst(float(made.scale)) <= float(made.epsilon) * (1 + 1e-9)
    assert worst(float(made.scale) / 2) > float(made.epsilon)
    if not one_way:
        # E3: the scale of monotone scores is not enough for those that move against each other.
        assert worst(float(made.scale) / 2) > float(made.epsilon) * 1.3


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("amount", ["0.000001", "0.01", "1", "30", "100000"])
@pytest.mark.parametrize("family", NoiseFamily)
def test_a_price_buys_what_it_pays_for(family: NoiseFamily, amount: str, number: int) -> None:
    """Shows that all draws together cost the price, and no more, in the family's own currency."""
    calibration = calibrate([chosen_core(number=number)], Price(family, Fraction(amount), Fraction(0)))
    loss = compose(calibration.events())
    paid = loss.pure if family is NoiseFamily.LAPLACE else loss.mu_squared
    assert paid is not None
    assert Fraction(amount) * Fraction(999_999, 1_000_000) <= paid <= Fraction(amount)
    assert loss.delta == 0


@pytest.mark.parametrize("family", NoiseFamily)
def test_a_choice_comes_in_its_order_and_without_numbers(family: NoiseFamily) -> None:
    """Shows the released table: keys as they were drawn, nothing else; missing groups have the score zero."""
    core = chosen_core(number=3)
    calibration = calibrate([core], Price(family, Fraction(10**6), Fraction(0)))
    exact = Exact(keys={"k": ["d", "a", "c"]}, sums={"n_0": [900, 100, 500]}, rows=3)
    table = release(core, calibration, exact, bits=SeededBits(1), confidence=CONFIDENCE)
    assert [(column.name, column.values) for column in table.columns] == [("k", ("d", "c", "a"))]
    assert (table.rows, table.sums, table.family) == (3, (), family)
    least = chosen_core(number=2, least=True)
    exact = Exact(keys={"k": list("abcde")}, sums={"n_0": [500, 900, 100, 300, 700]}, rows=5)
    table = release(
        least,
        calibrate([least], Price(family, Fraction(10**6), Fraction(0))),
        exact,
        bits=SeededBits(1),
        confidence=CONFIDENCE,
    )
    assert table.columns[0].values == ("c", "d")


def test_parts_are_chosen_by_themselves() -> None:
    """Shows one value for each group, where the groups lie between each other, and draws for those of a unit alone."""
    cells = tuple((value, group) for value in (1, 2, 3) for group in "xy" if (value, group) != (3, "y"))
    keys = Keys((KeyColumn("v", T.INTEGER), KeyColumn("g", T.TEXT)), cells, groups_per_unit=5)
    choice = Choice(count=1, within=("g",), least=False, parts_per_unit=2, one_way=True)
    core = CoreStatistics("c", keys, (count(rows=2),), (), choice=choice)
    assert choice.parts(keys) == [[0, 2, 4], [1, 3]]
    assert kept_within(choice, keys) == (3, 2)
    made = measurement(core, NoiseFamily.LAPLACE, Fraction(1))
    assert (made.draws, made.epsilon) == (2, Fraction(1, 2))
    calibration = calibrate([core], Price(NoiseFamily.LAPLACE, Fraction(10**6), Fraction(0)))
    exact = Exact(keys={"v": [1, 3, 2], "g": ["y", "x", "x"]}, sums={"n_0": [50, 90, 70]}, rows=3)
    table = release(core, calibration, exact, bits=SeededBits(4), confidence=CONFIDENCE)
    assert [column.values for column in table.columns] == [(3, 1), ("x", "y")]


@pytest.mark.parametrize("law", [gumbel_law, exponential_law])
def test_the_promised_distance_holds(law: object) -> None:
    """Shows the chance of a score beyond the promised distance, by the laws themselves, on flat and steep scores."""
    assert callable(law)
    for alpha in (0.3, 0.05, 0.001):
        promised = distance(scale=2.0, candidates=6, draws=1, alpha=alpha)
        for gap in (promised, promised + 3):
            scores = [30.0] + [30.0 - gap] * 5
            assert sum(law(scores, 2.0)[1:]) <= alpha
    # It is no promise that holds whatever is drawn: of five such candidates one may win.
    assert sum(law([30.0] + [30.0 - promised] * 5, 2.0)[1:]) >= 0.001 / 4
