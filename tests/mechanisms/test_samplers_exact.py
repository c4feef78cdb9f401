"""Samplers against independent arithmetic on the same bits: the result is the rounding of the real number, always."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from mechanisms.randomness import Words
from mechanisms.samplers import gaussian, laplace, rounded_gaussian, rounded_laplace, undecided
from tests.mechanisms.support import ScriptedBits, SeededBits

SCALES = [
    Fraction(1, 2**20),
    Fraction(3, 8),
    Fraction(1),
    Fraction(10),
    Fraction(2**12),
    Fraction(2**60 + 1, 2**47),
    Fraction(2**30 + 1),
    Fraction(2**45),
]

MIDDLE = mpmath.mpf(1) / 2


def reference_laplace(scale: Fraction, word: int) -> mpmath.mpf:
    """The real draw, when every further bit string is 1000...: sign and -ln of the uniform."""
    uniform = (mpmath.mpf(word & (2**63 - 1)) + MIDDLE) / 2**63
    real = -mpmath.log(uniform) * scale.numerator / scale.denominator
    return -real if word >> 63 else real


def reference_gaussian(scale: Fraction, first: int, second: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The pair of real draws under the same further bits."""
    uniform = (mpmath.mpf(first >> 1) + MIDDLE) / 2**63
    turn = (mpmath.mpf(second - 2**64 if second >> 63 else second) + MIDDLE) / 2**63
    radius = mpmath.sqrt(-2 * mpmath.log(uniform)) * scale.numerator / scale.denominator
    return radius * mpmath.cospi(turn), radius * mpmath.sinpi(turn)


def agrees(real: mpmath.mpf, drawn: int) -> bool:
    """Whether the real rounds to what was drawn (the unread bits move it by less than 2^-60 of itself)."""
    return abs(real - drawn) <= MIDDLE + abs(real) * mpmath.mpf(2) ** -60


def edges(words: Words) -> Words:
    """The words, led by those at the ends of the ranges."""
    ends = [0, 1, 2, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**45, 2**45 - 1, 2**62, 2**62 - 1, 2**61 + 3]
    return np.concatenate([np.array(ends, dtype=np.uint64), words])


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_is_the_rounding_of_the_real(scale: Fraction) -> None:
    """Each of 1,500 draws equals the rounded real of the same bits, computed with 60 digits."""
    words = edges(SeededBits(7).words(1_500))
    drawn = rounded_laplace(scale=scale, count=words.size, bits=ScriptedBits(words))
    with mpmath.workdps(60):
        for word, value in zip(words.tolist(), drawn.tolist(), strict=True):
            if word & (2**63 - 1):  # a uniform of 63 zero bits is read further than this reference knows
                assert agrees(reference_laplace(scale, word), value)


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.sparse(4)
def test_gaussian_is_the_rounding_of_the_real(scale: Fraction) -> None:
    """Each of 1,500 pairs equals the rounded reals of the same bits, computed with 60 digits."""
    first, second = edges(SeededBits(8).words(1_500)), edges(SeededBits(9).words(1_500))[::-1]
    pairs = first.size
    drawn = rounded_gaussian(sigma=scale, count=2 * pairs, bits=ScriptedBits(np.concatenate([first, second])))
    with mpmath.workdps(60):
        for i in range(pairs):
            if int(first[i]) >> 1:
                cosine, sine = reference_gaussian(scale, int(first[i]), int(second[i]))
                assert agrees(cosine, int(drawn[i]))
                assert agrees(sine, int(drawn[pairs + i]))


@pytest.mark.parametrize("scale", [Fraction(1, 8), Fraction(1), Fraction(2**13), Fraction(2**20)], ids=str)
def test_both_paths_agree(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the margin so wide that every draw is finished exactly, the same bits give the same values."""
    words = SeededBits(10).words(4_000)
    fast = rounded_laplace(scale=scale, count=4_000, bits=ScriptedBits(words))
    fast_gaussian = rounded_gaussian(sigma=scale, count=4_000, bits=ScriptedBits(words))
    monkeypatch.setattr(laplace, "MARGIN", 1e9)
    monkeypatch.setattr(gaussian, "MARGIN", 1e9)
    assert fast.tolist() == rounded_laplace(scale=scale, count=4_000, bits=ScriptedBits(words)).tolist()
    assert fast_gaussian.tolist() == rounded_gaussian(sigma=scale, count=4_000, bits=ScriptedBits(words)).tolist()


def test_the_margin_is_honest() -> None:
    """The float magnitude is within 2^-40 of the scale, with room of a factor 16, on 4,000 draws and at the ends."""
    words = edges(SeededBits(11).words(4_000))
    uniform = (words & np.uint64(2**63 - 1)).astype(np.int64) * 2.0**-63
    words, uniform = words[uniform >= 2.0**-18], uniform[uniform >= 2.0**-18]
    floats = -np.log(uniform)
    with mpmath.workdps(40):
        worst = max(
            abs(mpmath.mpf(value) - abs(reference_laplace(Fraction(1), word)))
            for word, value in zip(words.tolist(), floats.tolist(), strict=True)
        )
    assert worst < laplace.MARGIN / 16


def test_the_gaussian_margin_is_honest() -> None:
    """The float normals are within 2^-40 of sigma, with room of a factor 8."""
    first, second = edges(SeededBits(12).words(4_000)), SeededBits(13).words(4_012)
    uniform = (first >> np.uint64(1)).astype(np.int64) * 2.0**-63
    decided = (uniform >= gaussian._LEAST) & (uniform <= gaussian._MOST)
    first, second, uniform = first[decided], second[decided], uniform[decided]
    angle = second.view(np.int64) * (np.pi * 2.0**-63)
    radius = np.sqrt(-2 * np.log(uniform))
    floats = np.stack([radius * np.cos(angle), radius * np.sin(angle)])
    worst = mpmath.mpf(0)
    with mpmath.workdps(40):
        for i in range(first.size):
            pair = reference_gaussian(Fraction(1), int(first[i]), int(second[i]))
            worst = max(worst, *(abs(mpmath.mpf(float(floats[j, i])) - pair[j]) for j in (0, 1)))
    assert worst < gaussian.MARGIN / 8


def test_a_uniform_of_zero_bits_is_read_on() -> None:
    """63 zero bits have no upper bound: further bits decide, and the result is large and finite."""
    words = np.zeros(3, dtype=np.uint64)
    bits = ScriptedBits(words, then=1)
    drawn = rounded_laplace(scale=Fraction(1), count=3, bits=bits)
    assert set(drawn.tolist()) == {round(127 * np.log(2))}
    assert bits.refinements >= 3


def test_the_sign_is_one_bit_of_its_own() -> None:
    """Flipping the top bit flips the sign and nothing else; zero has no sign."""
    words = SeededBits(14).words(5_000)
    flipped = words ^ np.uint64(2**63)
    drawn = rounded_laplace(scale=Fraction(3), count=5_000, bits=ScriptedBits(words))
    assert (-drawn).tolist() == rounded_laplace(scale=Fraction(3), count=5_000, bits=ScriptedBits(flipped)).tolist()
    assert (drawn[words >= 2**63] <= 0).all()


def test_a_pair_shares_its_further_bits() -> None:
    """An undecided pair takes two more words, one for the radius and one for the angle, not two for each normal."""
    # A uniform of 62 zero bits leaves both normals undecided.
    first, second = 2, 2**62 + 987654321
    bits = ScriptedBits(np.array([first, second], dtype=np.uint64))
    drawn = rounded_gaussian(sigma=Fraction(2**13), count=2, bits=bits).tolist()
    assert bits.refinements == 2
    with mpmath.workdps(60):
        cosine, sine = reference_gaussian(Fraction(2**13), first, second)
        assert agrees(cosine, drawn[0])
        assert agrees(sine, drawn[1])


@pytest.mark.parametrize(
    "count", [0, 1, 2, 3, laplace.BLOCK - 1, laplace.BLOCK, laplace.BLOCK + 1, 2 * laplace.BLOCK + 5]
)
def test_any_count_is_given(count: int) -> None:
    """Vectors of every length around the block size, int64, and the same values from the same bits."""
    for draw in (
        lambda: rounded_laplace(scale=Fraction(50), count=count, bits=SeededBits(17)),
        lambda: rounded_gaussian(sigma=Fraction(50), count=count, bits=SeededBits(17)),
    ):
        first, again = draw(), draw()
        assert (first.shape, first.dtype) == ((count,), np.int64)
        assert first.tolist() == again.tolist()
        assert count < 100 or len(set(first.tolist())) > 20


def test_the_largest_scale_keeps_its_size() -> None:
    """At 2^45 the mean magnitude is right within 7 sigma, so nothing wrapped around."""
    drawn = rounded_laplace(scale=Fraction(2**45), count=2_000, bits=SeededBits(31))
    assert abs(np.abs(drawn).mean() / 2.0**45 - 1) < 7 / np.sqrt(2_000)


@pytest.mark.parametrize(
    "scale", [Fraction(0), Fraction(-1), Fraction(1, 3), Fraction(2**46), Fraction(1, 2**201), 1.0, 1], ids=repr
)
def test_other_scales_are_refused(scale: Fraction) -> None:
    """Zero noise, negative, not dyadic, out of range and floats are refused: none of them has a loss that is known."""
    with pytest.raises(ValueError, match="scale"):
        rounded_laplace(scale=scale, count=1, bits=SeededBits(31))
    with pytest.raises(ValueError, match="scale"):
        rounded_gaussian(sigma=scale, count=1, bits=SeededBits(31))


def test_intervals_enclose() -> None:
    """Enclosures of -ln U, its root and the angle's cosine contain the reference and shrink with every refinement."""
    bits = SeededBits(18)
    magnitude, turn = undecided.Magnitude(int(bits.words(1)[0]) >> 1, 63), undecided.Turn(-(2**62) - 12345, 63)
    width = None
    for _ in range(4):
        places = magnitude.length + 64
        interval = magnitude.enclose(places)
        cosine, sine = turn.enclose(places)
        with mpmath.workdps(150):
            uniform = (mpmath.mpf(magnitude.value) + MIDDLE) / mpmath.mpf(2) ** magnitude.length
            angle = (mpmath.mpf(turn.value) + MIDDLE) / mpmath.mpf(2) ** turn.length
            assert interval.high is not None
            assert interval.low <= -mpmath.log(uniform) * mpmath.mpf(2) ** places <= interval.high
            assert cosine.low <= mpmath.cospi(angle) * mpmath.mpf(2) ** places <= cosine.high
            assert sine.low <= mpmath.sinpi(angle) * mpmath.mpf(2) ** places <= sine.high
        now = Fraction(interval.high - interval.low, 1 << places)
        assert width is None or now < width
        width = now
        magnitude.refine(bits)
        turn.refine(bits)
