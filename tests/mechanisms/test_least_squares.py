"""One estimate from several releases: the least variance there is, its error exactly, and intervals that hold.

Planted, and caught: an interval of a single look, whose releases' scales were chosen by what was seen; and releases
that share noise, taken for independent.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from accountant.request import HeldRelease
from mechanisms.families import NoiseFamily
from mechanisms.held_sums import HeldSums
from mechanisms.interval import gaussian_two_sided
from mechanisms.least_squares import Term, estimated, joined, radius, weights_of
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.noisy_sums import NoisySums
from privacy.aggregate import AggregateFunction
from privacy.statistic import Estimate
from server.journey.joining import Piece, box_from_plain, box_to_plain, join
from sql_rewrite.boxes import Box, aligned, equations, rows_within
from tests.audit.recorder import FixedBits
from tests.mechanisms.test_summed import measured, true_sums

REPEATS = 10_000
ROOM = 5 * (0.95 * 0.05 / REPEATS) ** 0.5


def atoms(*given: str) -> list[frozenset[int]]:
    """Sums of atoms, each written as the digits of its atoms."""
    return [frozenset(map(int, one)) for one in given]


def test_the_length_of_normals_has_the_law_of_chi_squared() -> None:
    """Quantiles of printed tables; one draw has the interval of a single look."""
    squares = {1: 3.841, 2: 5.991, 3: 7.815, 4: 9.488, 16: 26.296, 63: 82.529, 64: 83.675}
    for draws, square in squares.items():
        assert radius(0.05, draws) ** 2 == pytest.approx(square, abs=1e-3)
    assert radius(0.05, 1) == pytest.approx(gaussian_two_sided(0.05), rel=1e-9)


def test_weights_are_those_of_least_squares() -> None:
    """Inverse variances of equals, ones of a difference, and between them for a total beside its parts."""
    equal = weights_of(atoms("0")[0], atoms("0", "0"), [1.0, 3.0])
    assert equal is not None
    assert [float(one) for one in equal] == pytest.approx([0.75, 0.25])
    difference = weights_of(atoms("1")[0], atoms("01", "0"), [1.0, 9.0])
    assert difference is not None
    assert max(abs(one - sign) for one, sign in zip(difference, (1, -1), strict=True)) <= Fraction(1, 2**120)
    found = weights_of(atoms("01")[0], atoms("01", "0", "1"), [1.0, 1.0, 1.0])
    assert found is not None
    assert [float(one) for one in found] == pytest.approx([2 / 3, 1 / 3, 1 / 3])
    assert weights_of(atoms("0")[0], atoms("01", "12"), [1.0, 1.0]) is None
    idle = weights_of(atoms("0")[0], atoms("0", "1"), [1.0, 1.0])
    assert idle is not None
    assert idle[1] == 0


def test_no_other_weights_have_less_variance() -> None:
    """Of 200 random designs: what is asked to 2^-120, and by Gauss and Markov less variance than random other ones."""
    source = np.random.default_rng(5)
    solved = 0
    for _ in range(200):
        sums = [frozenset(np.flatnonzero(source.random(5) < 0.5).tolist()) for _ in range(7)]
        sums = [one for one in sums if one]
        wanted = frozenset(np.flatnonzero(source.random(5) < 0.5).tolist())
        variances = np.exp(source.normal(0, 3, len(sums)))
        found = weights_of(wanted, sums, variances.tolist())
        design = np.array([[one in own for own in sums] for one in range(5)], dtype=float)
        target = np.array([one in wanted for one in range(5)], dtype=float)
        told = np.linalg.matrix_rank(np.column_stack([design, target])) == np.linalg.matrix_rank(design)
        assert (found is not None) == told
        if found is None:
            continue
        solved += 1
        for one in range(5):
            given = sum((weight for weight, own in zip(found, sums, strict=True) if one in own), Fraction(0))
            assert abs(given - (one in wanted)) <= Fraction(1, 2**119)
        least = sum(float(weight) ** 2 * variance for weight, variance in zip(found, variances, strict=True))
        _, values, rows = np.linalg.svd(design)
        free = rows[(values > 1e-9).sum() :]
        for _ in range(5):
            other = np.array([float(one) for one in found]) + source.normal(0, 1, len(free)) @ free
            assert (other**2 * variances).sum() >= least * (1 - 1e-6)
    assert solved > 100


def test_intervals_hold_whatever_scales_were_chosen() -> None:
    """Who waits for a large error, and then buys next to none beside it, catches intervals of a single look."""
    source = np.random.default_rng(11)
    first = source.standard_normal(REPEATS)
    scale = np.where(np.abs(first) > 1.2, 0.05, 4.0)
    error = np.abs(first - scale * source.standard_normal(REPEATS)) / np.sqrt(1 + scale**2)
    assert (error <= radius(0.05, 2)).mean() >= 0.95 - ROOM
    assert (error <= gaussian_two_sided(0.05)).mean() < 0.93


@pytest.mark.parametrize("degree", [0, 2])
def test_estimates_are_unbiased_and_their_errors_are_as_stated(degree: int) -> None:
    """A part asked of a total, another part and twice itself: 1,500 times, at three scales, one of them coarse."""
    repeats = 1_500
    values = np.random.default_rng(degree).integers(20, 90, 3_000).astype(np.int64)
    part = true_sums(degree, values)
    releases = [("01", "1/2"), ("1", "1/3"), ("0", "1/20"), ("0", "1/400")]
    noise, sums = dict[int, GaussianMeasurement](), []
    for place, (of, amount) in enumerate(releases):
        one = measured(NoiseFamily.GAUSSIAN, degree, Fraction(amount))
        assert isinstance(one, GaussianMeasurement)
        noise[place] = one
        exact = np.tile(part * (of != "1") + part // 2 * ("1" in of), (repeats, 1))
        sums.append(NoisySums(one, one.perturb(exact, FixedBits(place + 3)).sums, ()))
    weights = weights_of(
        atoms("0")[0], atoms(*(of for of, _ in releases)), [float(one.scale_of_sums) ** 2 for one in noise.values()]
    )
    assert weights is not None
    terms = [Term(place, 1, weight) for place, weight in enumerate(weights)]
    made = joined("s0", noise, terms)
    assert made is not None
    assert made.draws == 4
    rows = [[[row] for row in range(repeats)] for _ in terms]
    found = estimated(made, sums, terms, rows)
    function = AggregateFunction.DEVIATION_SAMPLE if degree else AggregateFunction.ROWS
    column = found.column(Estimate("a0", function, "s0", integer=not degree), 0.05)
    truth = float(values.std(ddof=1)) if degree else 3_000.0
    shown = np.array([value for value in column.values if value is not None], dtype=float)
    lows, highs = np.array(column.lows, dtype=float), np.array(column.highs, dtype=float)
    missed = ((lows > truth) | (highs < truth)).mean()
    assert missed <= 0.05 + 4 * (0.05 * 0.95 / repeats) ** 0.5
    if not degree:
        assert (highs - lows).min() / 2 >= radius(0.05, 4) * float(made.scale_of_sums)
    assert abs(shown.mean() - truth) <= 4 * shown.std() / repeats**0.5
    errors = np.median([error for error in column.standard_errors if error is not None])
    assert errors == pytest.approx(shown.std(), rel=0.1)
    assert float(made.scale_of_sums) < float(noise[2].scale_of_sums)


def test_every_draw_of_a_mean_is_one_more() -> None:
    """Each look at a release may have been chosen by what was seen; of too many nothing is stated."""
    one = measured(NoiseFamily.GAUSSIAN, 0, Fraction(1))
    assert isinstance(one, GaussianMeasurement)
    terms = [Term(place, 1, Fraction(1, 2)) for place in range(2)]
    mean = joined("s0", {0: one, 1: one}, terms)
    assert mean is not None
    for looks, draws in ((3, 4), (63, 64), (64, None)):
        found = joined("s1", {0: replace(mean, looks=looks), 1: one}, terms)
        assert (None if found is None else found.draws) == draws


def boxes(source: np.random.Generator, values: int, *, keys: bool) -> Box:
    """A random box of two places with so many values."""
    places, grouped = {}, []
    for name in ("a", "b"):
        kind = source.integers(0, 4 if keys else 2)
        out = source.random(values) < 0.3
        if kind == 0:
            continue
        blocks = np.arange(values) if kind == 2 else source.integers(0, 2, values) if kind == 3 else np.zeros(values)
        places[name] = tuple(int(-1 if gone else block) for gone, block in zip(out, blocks, strict=True))
        if kind > 1:
            grouped.append((name, values if kind == 2 else 2))
    return Box({name: own for name, own in places.items() if max(own) >= 0}, tuple(grouped))


def cells_of(box: Box, table: np.ndarray) -> list[int]:
    """What the cells of a box hold of a table of the finest ones."""
    sizes = [size for _, size in box.keys]
    found = np.zeros(sizes or [1], dtype=np.int64)
    for place, count in np.ndenumerate(table):
        at = {name: box.places.get(name, (0,) * len(table))[one] for name, one in zip("ab", place, strict=True)}
        if -1 not in at.values():
            found[tuple(at[name] for name, _ in box.keys) if box.keys else (0,)] += count
    return [int(one) for one in found.ravel()]


def test_what_boxes_say_is_true_of_random_tables() -> None:
    """Estimates from exact sums are exact, of 400 random boxes from three others; so are cells that are added up."""
    source = np.random.default_rng(23)
    together = within = 0
    for _ in range(400):
        values = int(source.integers(2, 6))
        table = source.integers(0, 50, (values, values))
        asked, others = boxes(source, values, keys=False), [boxes(source, values, keys=True) for _ in range(3)]
        if any(name not in one.places for one in others for name, _ in one.keys):
            continue
        assert [box_from_plain(box_to_plain(one)) for one in others] == others
        (truth,) = cells_of(asked, table)
        told = equations(asked, others)
        if told is not None:
            every = [(held, one) for held, own in zip(others, told.sums, strict=True) for one in own]
            weights = weights_of(told.wanted, [one.atoms for _, one in every], [float(one.cells) for _, one in every])
            if weights is not None:
                together += 1
                whole = Fraction(0)
                for weight, (held, one) in zip(weights, every, strict=True):
                    rows = one.rows([size for _, size in held.keys])
                    assert len(rows) == one.cells
                    whole += weight * sum(cells_of(held, table)[row] for row in rows)
                assert abs(whole - truth) < Fraction(1, 2**90)
        for held in others:
            rows = rows_within(asked, held)
            if rows is not None:
                within += 1
                assert sum(cells_of(held, table)[row] for row in rows[0]) == truth
    assert together > 20
    assert within > 20


def test_lines_are_the_same_whatever_constants_others_have() -> None:
    """Each whole number is in the block that it was in, of 100 random pairs of lines, and empty gaps are left out."""
    source = np.random.default_rng(31)
    for turn in range(100):
        boxes_of = []
        for _ in range(2):
            ends = tuple(sorted(set(source.integers(0, 9, source.integers(0, 4)).tolist())))
            blocks = tuple(source.integers(-1, 3, 2 * len(ends) + 1 + turn % 2).tolist())
            boxes_of.append(Box({"a": blocks}, (("a", 3),), {"a": ends}))
        every = sorted({end for box in boxes_of for end in box.lines["a"]})
        there = [(every or [0])[0] - 1, *(one for end in every for one in (end, end + 1))]
        numbers = list(dict.fromkeys(there))
        for before, after in zip(boxes_of, aligned(boxes_of), strict=True):
            ends, blocks = before.lines["a"], before.places["a"]
            expected = []
            for number in numbers:
                below = sum(end < number for end in ends)
                expected.append(blocks[2 * below + (number in ends)])
            assert after.places["a"] == (*expected, *blocks[2 * len(ends) + 1 :])


def piece(name: str, box: Box, scale: str, origins: frozenset[str] | None) -> Piece:
    """A stored count with a box."""
    one = measured(NoiseFamily.GAUSSIAN, 0, Fraction(scale))
    release = HeldRelease(id=name, core_key=name * 64, quality=Fraction(1), coarse=None, held="")
    return Piece(release, (HeldSums(one, frozenset(["rows:x"])),), box, origins)


def test_what_shares_noise_is_not_combined() -> None:
    """A release and one that was made from it would be taken for two looks: their mean errs more than it states."""
    whole = Box({}, ())
    apart = [piece("a", whole, "1", frozenset("a")), piece("b", whole, "1", frozenset("b"))]
    found = join(whole, ["rows:x"], apart)
    assert found is not None
    (sums,) = found.sums
    alone = apart[0].sums[0].measurement
    assert float(sums.measurement.scale_of_sums) == pytest.approx(float(alone.scale_of_sums) / 2**0.5)
    for origins in (frozenset("ab"), None):
        assert join(whole, ["rows:x"], [apart[0], replace(apart[1], origins=origins)]) is None
    of_pairs = replace(
        apart[1], sums=(HeldSums(measured(NoiseFamily.GAUSSIAN, 2, Fraction(1)), frozenset(["rows:x"])),)
    )
    assert join(whole, ["rows:x"], [apart[0], of_pairs]) is None  # sums of another kind
    # What a rule that forgets it would state of a release and its mean with a later one: too little.
    source = np.random.default_rng(2)
    first, later = source.standard_normal((2, REPEATS))
    mean = (first + later) / 2
    weights = weights_of(atoms("0")[0], atoms("0", "0"), [1.0, 0.5])
    assert weights is not None
    error = float(weights[0]) * first + float(weights[1]) * mean
    stated = (float(weights[0]) ** 2 + float(weights[1]) ** 2 * 0.5) ** 0.5
    assert error.std() > 1.2 * stated
