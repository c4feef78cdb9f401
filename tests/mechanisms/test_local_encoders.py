"""Local encoders: their exact laws, their price, and bugs that the audit of laws must see."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from mpmath import iv

from mechanisms.local import hadamard, unary
from mechanisms.local.direct import RandomisedResponse
from mechanisms.local.draws import Places, happen, uniform_below
from mechanisms.local.encoder import LocalEncoder
from mechanisms.local.encodings import ENCODINGS, best_encoder, encoder_of
from mechanisms.local.hadamard import HadamardResponse, transform
from mechanisms.local.ratio import ratio_below
from mechanisms.local.subset import SubsetSelection
from mechanisms.local.unary import OptimisedUnary, Rappor
from mechanisms.randomness import Words
from tests.mechanisms.local_laws import drawn_law, greatest_ratio, stated_law
from tests.mechanisms.support import SeededBits

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "ldp_parameters.json").read_text())["vectors"]
EPSILONS = ("0.01", "0.5", "1", "1.5", "3", "16")


def small() -> list[LocalEncoder]:
    """Every encoder at small domains and several epsilons; the printed Hadamard Response too."""
    made: list[LocalEncoder] = []
    for epsilon in map(Fraction, EPSILONS):
        for size in (2, 3, 4, 6):
            made += [kind(size=size, epsilon=epsilon) for kind in ENCODINGS]
            made.append(HadamardResponse(size=size, epsilon=epsilon, printed=True))
    return made


def says(encoder: LocalEncoder) -> str:
    return f"{encoder.name} of {encoder.size} at {encoder.epsilon}"


def violations(encoder: LocalEncoder, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the audit finds: the drawn law of every value against what is stated and charged."""
    laws = [drawn_law(encoder, value, monkeypatch) for value in range(encoder.size)]
    found = []
    if any({r: p for r, p in stated_law(encoder, v).items() if p} != law for v, law in enumerate(laws)):
        found.append("drawn otherwise than stated")
    ratio = greatest_ratio(laws)
    # Upper ends of e^epsilon never decide here: the ratio is below by up to 2^-32.
    iv.dps = 60
    epsilon = iv.mpf(encoder.epsilon.numerator) / encoder.epsilon.denominator
    if ratio is None or iv.mpf(ratio.numerator) / ratio.denominator > iv.exp(epsilon).a:
        found.append("costs more than epsilon")
    if ratio != encoder.worst_ratio:
        found.append("another ratio than stated")
    return found


@pytest.mark.sparse(3)
@pytest.mark.parametrize("name", [kind.name for kind in ENCODINGS])
def test_every_encoder_has_exactly_the_law_and_the_ratio_it_states(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All inputs, all reports: the probabilities are fractions, and the greatest ratio is attained."""
    for encoder in small():
        if encoder.name == name:
            assert violations(encoder, monkeypatch) == [], says(encoder)


def test_the_ratio_is_next_below_the_exponential() -> None:
    """At most e^epsilon, and above it with one more step of 2^-32."""
    iv.dps = 60
    for epsilon in (*map(Fraction, EPSILONS), Fraction(1, 3), Fraction(7, 10)):
        ratio = ratio_below(epsilon)
        exact = iv.exp(iv.mpf(epsilon.numerator) / epsilon.denominator)
        assert iv.mpf(ratio.numerator) / ratio.denominator <= exact.a
        above = ratio + Fraction(1, 2**32)
        assert iv.mpf(above.numerator) / above.denominator > exact.b
        assert ratio > 1


def test_the_event_is_the_charge() -> None:
    """Pure epsilon, exact."""
    assert HadamardResponse(size=1000, epsilon=Fraction(3, 2)).event().loss().pure == Fraction(3, 2)


def test_the_coins_of_the_textbook() -> None:
    """Truth by a coin, or another coin: three times as likely, so ln 3; flipping with 0.75 and 0.25 is ln 9."""
    ratio = Fraction(3)
    assert ratio / (ratio + 1) == Fraction(3, 4)
    encoder = RandomisedResponse(size=2, epsilon=Fraction(109861228866810969, 10**17))
    assert float(encoder.own) == pytest.approx(0.75, abs=1e-9)
    bits = Rappor(size=2, epsilon=Fraction(219722457733621938, 10**17))
    assert (float(bits.own), float(bits.other)) == pytest.approx((0.75, 0.25), abs=1e-9)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda one: f"k{one['k']}-eps{one['eps']:.2g}")
def test_probabilities_are_those_of_the_literature(vector: dict[str, dict[str, float]]) -> None:
    """k-RR, symmetric and optimised unary encoding, subset selection, and the layout of Hadamard Response."""
    size, epsilon = int(vector["k"]), Fraction(vector["eps"])  # type: ignore[call-overload,arg-type]
    if not Fraction(1, 100) <= epsilon <= 16:
        pytest.skip("outside the limits of epsilon")
    for kind, key in ((RandomisedResponse, "krr"), (Rappor, "sue_rappor"), (OptimisedUnary, "oue")):
        encoder = kind(size=size, epsilon=epsilon)
        assert float(encoder.own) == pytest.approx(vector[key]["p"], rel=1e-8)
        assert float(encoder.other) == pytest.approx(vector[key]["q"], rel=1e-8)
        assert encoder._line()[0] == pytest.approx(vector[key]["var_n"], rel=1e-6)
    chosen = SubsetSelection(size=size, epsilon=epsilon)
    assert chosen.chosen == vector["subset"]["d"]
    assert float(chosen.own) == pytest.approx(vector["subset"]["p_true"], rel=1e-8)
    assert float(chosen.other) == pytest.approx(vector["subset"]["p_other"], rel=1e-8)
    ours = HadamardResponse(size=size, epsilon=epsilon)
    assert (ours.order, ours.blocks, ours.tally_size) == (
        vector["hr"]["b"],
        vector["hr"]["blocks_used"],
        vector["hr"]["K"],
    )
    assert float(ours.inside) == pytest.approx(vector["hr"]["p_in"], rel=1e-8)
    assert HadamardResponse(size=size, epsilon=epsilon, printed=True).tally_size == vector["hr"]["K_paper"]


def test_a_report_of_hadamard_takes_log_k_and_two_bits() -> None:
    """Not k + 2, as a seed prints; and K may be 2k in the printed layout (E24)."""
    for size in (2, 3, 7, 100, 1000, 1023, 1024, 10_000):
        for epsilon in (Fraction(1, 2), Fraction(2), Fraction(10)):
            printed = HadamardResponse(size=size, epsilon=epsilon, printed=True)
            assert printed.report_bits <= math.ceil(math.log2(size)) + 2
            assert HadamardResponse(size=size, epsilon=epsilon).report_bits <= printed.report_bits
    assert HadamardResponse(size=2, epsilon=Fraction(1, 2), printed=True).tally_size == 4


def test_the_transform_is_that_of_the_definition() -> None:
    """Entry j is the sum of entries i with the sign of the bits in common."""
    matrix = np.arange(16.0).reshape(2, 8) ** 2
    signs = np.array([[(-1) ** (i & j).bit_count() for i in range(8)] for j in range(8)])
    assert np.array_equal(transform(matrix), matrix @ signs.T)


class _Fixed:
    """A source that returns given words in order."""

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def words(self, count: int) -> Words:
        taken, self._words = self._words[:count], self._words[count:]
        return np.array(taken, dtype=np.uint64)


def test_uniform_integers_are_drawn_without_a_remainder() -> None:
    """Each leading part of a word is one integer; what is not below the bound is drawn again."""
    for bound in (1, 2, 3, 5, 8, 13):
        width = max((bound - 1).bit_length(), 1)
        words = [part << (64 - width) for part in range(1 << width)]
        kept = words[:bound]
        drawn = uniform_below(bound, bound, _Fixed(kept))
        assert sorted(drawn.tolist()) == list(range(bound))
    # 3 of 4: the fourth word is replaced by the next one.
    assert uniform_below(3, 2, _Fixed([3 << 62, 1 << 62, 2 << 62])).tolist() == [2, 1]


class _Bytes:
    """A source of given bytes, a list for each request."""

    def __init__(self, *requests: list[int]) -> None:
        self._requests = list(requests)

    def words(self, count: int) -> Words:
        taken = self._requests.pop(0)
        assert count == -(-len(taken) // 8)
        return np.frombuffer(bytes(taken).ljust(8 * count, b"\0"), dtype=np.uint64).copy()


@pytest.mark.parametrize(
    "probability", [Fraction(3, 8), Fraction(1, 3), Fraction(5, 2**20 + 7), Fraction(2**40, 2**40 + 1)]
)
def test_an_event_has_its_probability(probability: Fraction) -> None:
    """Of all bytes as many make it happen as the whole part of 256 p says, and the next one decides one event about
    what is left of p, by the same rule: exact to the last byte that is followed."""
    (left, denominator), every = probability.as_integer_ratio(), list(range(256))
    fixed, chance = list[int](), Fraction(0)
    for depth in range(1, 4):
        byte, left = divmod(256 * left, denominator)
        chance += Fraction(byte, 256**depth)
        assert chance <= probability < chance + Fraction(1, 256**depth) or left == 0
        # Every byte at this depth, after one that left the question open at each depth before.
        # The one that is open after it is decided by the least byte or the greatest.
        most = 256 * left // denominator == 255
        requests = [*([one] * 256 for one in fixed), every, [0 if most else 255]]
        found = happen(probability, 256, _Bytes(*requests))
        assert found.tolist() == [one < byte or (one == byte and most) for one in every]
        if not left:
            break
        fixed.append(byte)
    assert chance == probability or left


def test_events_at_the_ends() -> None:
    """What is certain takes no bits, and a byte that is all that is left is enough."""
    assert happen(Fraction(1), 3, _Bytes()).all()
    assert not happen(Fraction(0), 3, _Bytes()).any()
    assert happen(Fraction(1, 2), 3, _Bytes([127, 128, 0])).tolist() == [True, False, True]
    assert happen(Fraction(1, 3), 3, _Bytes([85, 84, 85], [84, 85], [86])).tolist() == [True, True, False]


@pytest.mark.parametrize("kind", [Rappor, OptimisedUnary])
def test_unary_tallies_count_every_report_once(kind: type[Rappor | OptimisedUnary]) -> None:
    """Shows that the same bits give the tally of the same reports, also of more than a byte can count."""
    encoder, values = kind(size=3, epsilon=Fraction(1)), np.arange(1_000) % 3
    reports = encoder.encode(values, SeededBits(5))
    assert encoder.simulate(values, SeededBits(5)).tolist() == encoder.tally(reports).tolist()


def test_simulated_tallies_follow_the_stated_law() -> None:
    """100,000 reports of one value: every count within six standard deviations (2e-9 each)."""
    reports = 100_000
    for kind in ENCODINGS:
        encoder, bits = kind(size=5, epsilon=Fraction(1)), SeededBits(31)
        tally = encoder.simulate(np.full(reports, 3, dtype=np.int64), bits)
        again = encoder.tally(encoder.encode(np.full(1000, 3, dtype=np.int64), bits))
        chances = np.zeros(encoder.tally_size)
        for report in encoder.reports():
            for number in (report,) if isinstance(report, int) else report:
                chances[number] += float(encoder.probability(report, 3))
        for found, count in ((tally, reports), (again, 1000)):
            assert np.all(np.abs(found - count * chances) <= 6 * np.sqrt(count * chances * (1 - chances)) + 1e-9)


def test_what_is_a_report_is_exactly_what_can_be_drawn() -> None:
    """Every report of the law is accepted, and near misses are not."""
    for encoder in small():
        for report in encoder.reports():
            assert encoder.is_report((report,) if isinstance(report, int) else report)
    for kind in ENCODINGS:
        encoder = kind(size=6, epsilon=Fraction(1))
        for numbers in ((-1,), (encoder.report_max + 1,), (1, 1), (2, 1), (0, 1, 2, 3, 4, 5, 6)):
            assert not encoder.is_report(numbers), (says(encoder), numbers)
    assert not SubsetSelection(size=6, epsilon=Fraction(1)).is_report((1, 2, 3))
    assert not HadamardResponse(size=6, epsilon=Fraction(1)).is_report(())
    assert OptimisedUnary(size=6, epsilon=Fraction(1)).is_report(())


@pytest.mark.parametrize(("size", "epsilon"), [(1, "1"), (2**20 + 1, "1"), (2, "0"), (2, "0.009"), (2, "17")])
def test_limits(size: int, epsilon: str) -> None:
    """Domains of one value, huge ones, and an epsilon that says nothing or everything are refused."""
    for kind in ENCODINGS:
        with pytest.raises(ValueError, match="local encoder"):
            kind(size=size, epsilon=Fraction(epsilon))


def test_an_encoding_is_chosen_by_variance() -> None:
    """Two values: randomised response. Small domains: least variance. Large ones: Hadamard, k-RR at large epsilon."""
    chosen = {
        (size, epsilon): best_encoder(size=size, epsilon=Fraction(epsilon)).name
        for size in (2, 14, 1000, 100_000)
        for epsilon in ("0.5", "1", "5", "10")
    }
    assert chosen[2, "1"] == "randomised_response"
    assert chosen[14, "1"] == "subset_selection"
    assert {chosen[1000, one] for one in ("0.5", "1", "5")} == {"hadamard"}
    assert chosen[1000, "10"] == "randomised_response"
    assert {chosen[100_000, one] for one in ("0.5", "1", "5")} == {"hadamard"}
    # The rule of the literature between k-RR and optimised unary encoding: below k = 3 e^eps + 2.
    for size in range(3, 60):
        for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
            direct = RandomisedResponse(size=size, epsilon=epsilon)._line()[0]
            bits = OptimisedUnary(size=size, epsilon=epsilon)._line()[0]
            assert (direct < bits) == (size < 3 * math.exp(epsilon) + 2)


def test_an_encoding_of_long_reports_is_refused_for_large_domains() -> None:
    """A report of one bit for each of a million values helps nobody."""
    with pytest.raises(ValueError, match="at most 4096"):
        encoder_of("rappor", size=4097, epsilon=Fraction(1))
    with pytest.raises(ValueError, match="no local encoding"):
        encoder_of("hadamart", size=10, epsilon=Fraction(1))


# Bugs that were made elsewhere, or nearly here


def _biased_flip(monkeypatch: pytest.MonkeyPatch) -> LocalEncoder:
    """The other bits are flipped too rarely: p = 3/4 with the q of the optimised encoding."""
    monkeypatch.setattr(OptimisedUnary, "own", property(lambda self: Fraction(3, 4)))
    return OptimisedUnary(size=4, epsilon=Fraction(1))


def _whole_epsilon_per_bit(monkeypatch: pytest.MonkeyPatch) -> LocalEncoder:
    """Symmetric bits with e^epsilon instead of e^(epsilon/2): twice the price."""
    monkeypatch.setattr(Rappor, "weight_ratio", property(lambda self: ratio_below(self.epsilon)))
    return Rappor(size=3, epsilon=Fraction(1))


def _rounded_up(monkeypatch: pytest.MonkeyPatch) -> LocalEncoder:
    """The ratio is rounded to the nearest multiple above."""
    above = ratio_below(Fraction(1)) + Fraction(1, 2**32)
    monkeypatch.setattr("mechanisms.local.direct.ratio_below", lambda epsilon: above)
    return RandomisedResponse(size=3, epsilon=Fraction(1))


def _own_value_never_left_out(monkeypatch: pytest.MonkeyPatch) -> LocalEncoder:
    """The other values of a set are drawn as if the own one were always in: no set is without it."""
    monkeypatch.setattr(SubsetSelection, "own", property(lambda self: Fraction(1)))
    return SubsetSelection(size=4, epsilon=Fraction(1))


def _even_columns(monkeypatch: pytest.MonkeyPatch) -> LocalEncoder:
    """Columns outside are drawn from the whole block, those of the value among them: another law than stated."""
    original = hadamard._columns

    def all_odd(index: Places, row: Places, *, odd: Places) -> Places:
        return original(index, row, odd=np.ones_like(odd))

    monkeypatch.setattr(hadamard, "_columns", all_odd)
    return HadamardResponse(size=6, epsilon=Fraction(1))


def _untouched_bits(monkeypatch: pytest.MonkeyPatch) -> LocalEncoder:
    """Only the bit of the value is randomised: the others are zero and show which one it is."""
    monkeypatch.setattr(OptimisedUnary, "other", property(lambda self: Fraction(0)))
    monkeypatch.setattr(OptimisedUnary, "worst_ratio", property(lambda self: ratio_below(self.epsilon)))
    return OptimisedUnary(size=3, epsilon=Fraction(1))


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (_biased_flip, "costs more than epsilon"),
        (_whole_epsilon_per_bit, "costs more than epsilon"),
        (_rounded_up, "costs more than epsilon"),
        (_own_value_never_left_out, "costs more than epsilon"),
        (_even_columns, "drawn otherwise than stated"),
        (_untouched_bits, "costs more than epsilon"),
    ],
)
def test_planted_bugs_are_caught(
    plant: Callable[[pytest.MonkeyPatch], LocalEncoder], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit of laws sees each, and says so."""
    assert says in violations(plant(monkeypatch), monkeypatch)


def test_the_audit_replaces_every_draw() -> None:
    """A primitive that the audit did not replace would have asked for bits; the modules draw by these two alone."""
    assert hadamard.happen is happen
    assert unary.happen is happen
