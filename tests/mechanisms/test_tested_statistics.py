"""Quantiles and modes that are tested first: distances by brute force, exact laws between neighbours, bugs refuted."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from mechanisms import tested_statistics
from mechanisms.randomness import BitSource
from mechanisms.tested_statistics import FAR, ProposedQuantiles, StableMode, Term, Tested
from tests.mechanisms.support import SeededBits

Counts = npt.NDArray[np.int64]
PLACES = 4
MEDIAN = (Term(Fraction(1, 2), 1),)
QUARTILES = (Term(Fraction(3, 4), 1), Term(Fraction(1, 4), -1))
SLACK = 1e-9


def quantiles(*, width: int, terms: tuple[Term, ...] = MEDIAN, change: int = 1, **price: Fraction) -> ProposedQuantiles:
    """A proposal."""
    told = {"epsilon": Fraction(4), "delta": Fraction(1, 1000), **price}
    return ProposedQuantiles(change=change, terms=terms, width=width, **told)


def mode(*, change: int = 1, **price: Fraction) -> StableMode:
    """A most frequent value."""
    return StableMode(change=change, **{"epsilon": Fraction(4), "delta": Fraction(1, 1000), **price})


def neighbours(counts: Counts, change: int) -> Iterator[Counts]:
    """Every table with one unit more, of up to `change` rows wherever they are; and with that gone, where it fits."""
    for rows in range(1, change + 1):
        for added in itertools.combinations_with_replacement(range(counts.size), rows):
            unit = np.bincount(added, minlength=counts.size)
            yield counts + unit
            if (counts >= unit).all():
                yield counts - unit


def tables(most: int, places: int = PLACES) -> list[Counts]:
    """Every table of at most so many rows."""
    return [
        np.bincount(one, minlength=places).astype(np.int64)
        for rows in range(most + 1)
        for one in itertools.combinations_with_replacement(range(places), rows)
    ]


def true_distances(stable: Callable[[Counts], int], width: int, change: int, most: int) -> dict[tuple[int, ...], int]:
    """How many units until a neighbour may be further than the width, by search among all tables."""
    every = {tuple(one.tolist()): one for one in tables(most + change)}
    value = {key: stable(one) for key, one in every.items()}
    around = {
        key: [tuple(other.tolist()) for other in neighbours(one, change) if tuple(other.tolist()) in every]
        for key, one in every.items()
    }
    found = {key: 0 for key, near in around.items() if any(abs(value[key] - value[one]) > width for one in near)}
    edge = list(found)
    while edge:
        edge = [one for key in edge for one in around[key] if found.setdefault(one, found[key] + 1) == found[key] + 1]
        edge = [one for one in dict.fromkeys(edge) if found[one] == max(found.values())]
    return found


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("terms", "change"), [(MEDIAN, 1), (MEDIAN, 2), (QUARTILES, 1)])
def test_the_distance_is_never_above_that_of_its_definition(terms: tuple[Term, ...], change: int) -> None:
    """Shows a lower bound on every small table, one apart between neighbours, and stability from one on."""
    for width in (1, 2):
        proposal = quantiles(width=width, terms=terms, change=change)
        truth = true_distances(proposal.place, width, change, 5)
        for counts in tables(5):
            mine = proposal.distance(counts)
            assert mine <= truth.get(tuple(counts.tolist()), FAR), (counts, width)
            for other in neighbours(counts, change):
                assert abs(mine - proposal.distance(other)) <= 1
                assert mine == 0 or abs(proposal.place(counts) - proposal.place(other)) <= width


def test_the_distance_of_a_median_is_nearly_that_of_its_definition() -> None:
    """Shows that the bound is no idle one: it is at most one unit short where each has one row."""
    short = set()
    proposal = quantiles(width=1)
    truth = true_distances(proposal.place, 1, 1, 7)
    for counts in tables(6):
        exact = truth.get(tuple(counts.tolist()))
        if exact is not None and exact < 3:
            short.add(exact - proposal.distance(counts))
    assert short <= {0, 1}
    assert 0 in short


@pytest.mark.parametrize("change", [1, 2])
def test_a_lead_of_more_than_a_unit_is_stable(change: int) -> None:
    """Shows the distance of a mode one apart between neighbours, and the same value wherever it is above zero."""
    chosen = mode(change=change)
    for counts in tables(7, 3):
        mine = chosen.distance(counts)
        for other in neighbours(counts, change):
            assert abs(mine - chosen.distance(other)) <= 1
            assert mine == 0 or int(np.argmax(other)) == int(np.argmax(counts))


def law(one: Tested, counts: Counts, *, noise: bool = True, test: bool = True, off: int = 0) -> list[float]:
    """The chances of a refusal and of each answer; `off` reads the distance wrongly, without `noise` it is certain."""
    distance = one.distance(counts) + off
    passed = 1.0 if not test else one.passing(distance) if noise else float(distance > one.threshold)
    if isinstance(one, StableMode):
        chances = np.zeros(counts.size)
        chances[int(np.argmax(counts))] = 1
        return [1 - passed, *(passed * chances).tolist()]
    assert isinstance(one, ProposedQuantiles)
    centre, scale = one.place(counts), float(one.scale)

    def below(value: float) -> float:
        return math.exp(value / scale) / 2 if value < 0 else 1 - math.exp(-value / scale) / 2

    ends = [0.0, *(below(place - 0.5 - centre) for place in range(1, counts.size)), 1.0]
    return [1 - passed, *(passed * np.diff(ends)).tolist()]


def delta_of(one: Tested, sampled: list[Counts], law_of: Callable[[Counts], list[float]]) -> float:
    """The greatest delta at the price's epsilon between any two neighbours."""
    worst, epsilon = 0.0, math.exp(float(one.epsilon))
    for counts in sampled:
        mine = law_of(counts)
        for other in neighbours(counts, one.change):
            theirs = law_of(other)
            for first, second in ((mine, theirs), (theirs, mine)):
                pairs = zip(first, second, strict=True)
                worst = max(worst, sum(max(0.0, a - epsilon * b) for a, b in pairs))
    return worst


def far_apart(change: int) -> list[Counts]:
    """Tables at every distance around the threshold: two heaps, and what lies between them."""
    return [
        np.array([low, middle, 0, 0, high], dtype=np.int64)
        for low in range(0, 13 * change, 2 * change)
        for middle in (0, 13 * change)
        for high in (0, 4 * change)
    ]


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "one",
    [quantiles(width=1), quantiles(width=1, change=2), quantiles(width=1, terms=QUARTILES), mode(), mode(change=2)],
    ids=["median", "two rows", "quartiles", "mode", "mode of two rows"],
)
def test_the_law_keeps_epsilon_and_delta(one: Tested) -> None:
    """Shows the price over neighbours of all distances; what tests wrongly, or not at all, is refuted at it."""
    delta, sampled = float(one.delta), far_apart(one.change)
    assert delta_of(one, sampled, lambda counts: law(one, counts)) <= delta + SLACK
    # A test without noise; a distance that is five too large; none at all.
    assert delta_of(one, sampled, lambda counts: law(one, counts, noise=False)) > 0.4
    assert delta_of(one, sampled, lambda counts: law(one, counts, off=5)) > 10 * delta
    assert delta_of(one, sampled, lambda counts: law(one, counts, test=False)) > 0.4


def test_a_distance_that_is_off_by_one_is_seen() -> None:
    """Shows that the law is tight where it has to be: at distance zero the test passes with delta itself."""
    for one in (mode(), quantiles(width=1)):
        assert one.passing(0) == pytest.approx(float(one.delta), rel=1e-6)
        assert one.passing(1) > float(one.delta) * 1.5
        sampled = [np.array([5, 0, 0, 0, 0, 0, 0, 5])]
        assert delta_of(one, sampled, lambda counts, one=one: law(one, counts, off=1)) > float(one.delta) * 1.5


def test_a_proposal_after_looking_is_no_proposal() -> None:
    """Shows why the width is the request's: one that follows from the table passes for one neighbour alone."""

    def looked(counts: Counts) -> list[float]:
        narrow = next(
            proposal
            for width in range(1, 9)
            if (proposal := quantiles(width=width)).distance(counts) > 13 or width == 8
        )
        return law(narrow, counts)

    one = quantiles(width=1)
    near = [np.array([low, 0, 0, 0, 0, 0, 0, 20]) for low in range(30, 40)]
    assert delta_of(one, near, looked) > 10 * float(one.delta)


def test_answers_are_drawn_by_their_law() -> None:
    """Shows the released places against the exact law (five standard deviations of 1,500), and None where unstable."""
    counts = np.array([0, 0, 40, 30, 0, 0])
    one, bits = quantiles(width=1, epsilon=Fraction(2), delta=Fraction(1, 10**6)), SeededBits(31)
    found = [one.answer(counts, bits) for _ in range(1_500)]
    passed = sum(value is not None for value in found)
    expected = 1_500 * one.passing(one.distance(counts))
    assert abs(passed - expected) <= 5 * math.sqrt(1_500) / 2
    same = sum(value == one.place(counts) for value in found)
    chance = 1 - math.exp(-0.5 / float(one.scale))
    assert abs(same - passed * chance) <= 5 * math.sqrt(1_500) / 2
    assert all(one.answer(np.array([9, 0, 0, 0, 0, 9]), bits) is None for _ in range(50))


@pytest.mark.parametrize("short", [0, 1])
def test_a_black_box_of_a_mode(short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows from draws alone that where a neighbour answers otherwise an answer comes with delta at most (five standard
    deviations of 3,000 draws); and that a distance which is one too large is refuted by them."""
    if short:
        genuine = StableMode.distance
        monkeypatch.setattr(StableMode, "distance", lambda self, counts: genuine(self, counts) + 1)
    one = StableMode(change=1, epsilon=Fraction(3, 2), delta=Fraction(1, 20))
    here, there, bits = np.array([5, 5]), np.array([5, 6]), SeededBits(32)
    found = [one.answer(here, bits) for _ in range(3_000)].count(0)
    other = [one.answer(there, bits) for _ in range(300)].count(0)
    assert other == 0
    slack = 5 * math.sqrt(3_000 * 0.05 * 0.95)
    assert (found <= 3_000 * 0.05 + slack) == (not short)


def test_the_threshold_is_never_below_its_logarithm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows it above ln(1 / (2 delta)) in forty digits, and no pass where the noisy distance is not above it, in
    whole parts of a unit."""
    with decimal.localcontext(prec=40):
        for number in range(3, 60):
            one = mode(delta=Fraction(1, number**3))
            exact = (decimal.Decimal(number**3) / 2).ln()
            found = one.threshold * one.tested
            assert decimal.Decimal(found.numerator) / decimal.Decimal(found.denominator) > exact
    one, counts = mode(), np.array([9, 2])
    parts = math.ceil(one.threshold * 2**20) - one.distance(counts) * 2**20
    for more, passes in ((0, False), (1, True)):
        monkeypatch.setattr(tested_statistics, "rounded_laplace", lambda more=more, **_: np.array([parts + more]))
        assert one.passes(counts, SeededBits()) is passes


def test_both_noises_are_drawn_whichever_way_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows two draws for a table that passes and for one that does not: the time of a draw says nothing."""
    drawn: list[int] = []
    genuine = tested_statistics.rounded_laplace

    def counted(*, scale: Fraction, count: int, bits: BitSource) -> object:
        drawn.append(count)
        return genuine(scale=scale, count=count, bits=bits)

    monkeypatch.setattr(tested_statistics, "rounded_laplace", counted)
    one = quantiles(width=1, delta=Fraction(1, 10**6))
    assert one.answer(np.array([0, 900, 0]), SeededBits(33)) is not None
    assert one.answer(np.array([9, 0, 9]), SeededBits(34)) is None
    assert drawn == [1, 1, 1, 1]


@pytest.mark.parametrize("scale", [1, 2**20, 2**45, 2**57])
def test_large_counts_are_whole_numbers(scale: int) -> None:
    """Shows the same distances of counts in parts of rows, also beyond 64 bits."""
    counts = np.array([3, 9, 14, 2, 5], dtype=np.int64)
    for width in (1, 2):
        plain = quantiles(width=width, terms=QUARTILES).distance(counts)
        assert quantiles(width=width, terms=QUARTILES, change=scale).distance(counts * scale) == plain
    assert quantiles(width=8, terms=QUARTILES).distance(counts) == FAR
    assert mode(change=scale).distance(counts * scale) == 4


@pytest.mark.parametrize(
    ("options", "why"),
    [({"width": 0}, "a place"), ({"delta": Fraction(1, 2)}, "delta"), ({"epsilon": Fraction(0)}, "epsilon")],
)
def test_what_is_no_proposal(options: dict[str, Fraction], why: str) -> None:
    """Shows the refusals of the object itself."""
    with pytest.raises(ValueError, match=why):
        quantiles(**{"width": 1, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [1, 2, 4])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 10**-6), (Fraction(1, 2), 10**-8), (3, 10**-3)])
def test_the_leads_of_a_mode_are_those_of_its_law(change: int, epsilon: Fraction, delta: float) -> None:
    """Shows that the stated leads are tight on both sides: nineteen of twenty from one on and no row less, one of
    twenty up to the other and no row more; a lead of as many rows as people is less than was stated of people."""
    one = mode(change=change, epsilon=Fraction(epsilon), delta=Fraction(delta).limit_denominator(10**9))
    rarely, mostly = math.floor(one.distance_of(0.05)), math.ceil(one.distance_of(0.95))

    def chance(lead: int) -> float:
        return one.passing(one.distance(np.array([7, 7 + lead, 3])))

    most, least = one.lead_to(rarely), one.lead_from(mostly)
    assert chance(most) <= 0.05 < chance(most + 1)
    assert chance(least - 1) < 0.95 <= chance(least)
    assert chance(mostly) < 0.95


def test_drawn_leads_of_a_mode_pass_as_often_as_stated() -> None:
    """Shows at both stated leads, and between them, as many of 2,000 draws as the law says, within six standard
    deviations (2e-9 each)."""
    one, bits = mode(change=4, epsilon=Fraction(1, 2), delta=Fraction(1, 10**8)), SeededBits(35)
    for chance in (0.05, 0.5, 0.95):
        counts = np.array([90, 90 + one.lead_from(math.ceil(one.distance_of(chance)))])
        expected = one.passing(one.distance(counts))
        passed = sum(one.passes(counts, bits) for _ in range(2_000))
        assert abs(passed - 2_000 * expected) <= 6 * math.sqrt(2_000 * expected * (1 - expected))
