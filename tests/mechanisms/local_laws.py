"""Exact laws of local encoders: every path of their draws is followed, with its probability as a fraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.local import direct, hadamard, subset, unary
from mechanisms.local.draws import Flags, Places
from mechanisms.local.encoder import LocalEncoder, Report
from mechanisms.randomness import BitSource, Words

__all__ = ["Paths", "drawn_law", "greatest_ratio", "stated_law"]

Law = dict[Report, Fraction]


class Paths:
    """Makes the choices of one path, then of the next, until all were made."""

    def __init__(self) -> None:
        self.choices: list[int] = []
        self.options: list[int] = []
        self.probability = Fraction(1)
        self.at = 0

    def choose(self, probabilities: list[Fraction]) -> int:
        """The next choice of this path."""
        if self.at == len(self.choices):
            self.choices.append(0)
            self.options.append(len(probabilities))
        chosen = self.choices[self.at]
        self.at += 1
        self.probability *= probabilities[chosen]
        return chosen

    def below(self, bound: int) -> int:
        """Uniform below the bound."""
        return self.choose([Fraction(1, bound)] * bound)

    def happens(self, probability: Fraction) -> bool:
        """True with that probability."""
        return self.choose([1 - probability, probability]) == 1

    def each(self, run: Callable[[], Report]) -> Iterator[tuple[Report, Fraction]]:
        """The outcome and the probability of every path."""
        while True:
            self.at, self.probability = 0, Fraction(1)
            outcome = run()
            yield outcome, self.probability
            while self.choices and self.choices[-1] == self.options[-1] - 1:
                self.choices.pop()
                self.options.pop()
            if not self.choices:
                return
            self.choices[-1] += 1


class _NoBits:
    def words(self, count: int) -> Words:
        raise AssertionError("a draw went past the two primitives")


def drawn_law(encoder: LocalEncoder, value: int, monkeypatch: pytest.MonkeyPatch) -> Law:
    """The law of `encoder.encode`: its draws are replaced by every path of them."""
    paths = Paths()

    def uniform_below(bound: int, count: int, bits: BitSource) -> Places:
        return np.array([paths.below(bound) for _ in range(count)], dtype=np.int64)

    def happen(probability: Fraction, count: int, bits: BitSource) -> Flags:
        return np.array([paths.happens(probability) for _ in range(count)], dtype=np.bool_)

    law: Law = {}
    with monkeypatch.context() as patch:
        for module in (direct, hadamard, subset, unary):
            patch.setattr(module, "uniform_below", uniform_below, raising=module is not unary)
            patch.setattr(module, "happen", happen)
        for report, probability in paths.each(lambda: encoder.encode(np.array([value]), _NoBits())[0]):
            law[report] = law.get(report, Fraction(0)) + probability
    return law


def stated_law(encoder: LocalEncoder, value: int) -> Law:
    """The law that `encoder.probability` states."""
    return {report: encoder.probability(report, value) for report in encoder.reports()}


def greatest_ratio(laws: list[Law]) -> Fraction | None:
    """The greatest ratio of the probabilities of a report under two values; None where it has no bound."""
    reports = set().union(*laws)
    found = Fraction(1)
    for report in reports:
        chances = [law.get(report, Fraction(0)) for law in laws]
        if max(chances) > 0:
            if min(chances) == 0:
                return None
            found = max(found, max(chances) / min(chances))
    return found
