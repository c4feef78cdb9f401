"""The measurements of a synthetic table, price and noise in one object: ../synthetic_marginals.md.

Three groups of marginals get Gaussian noise: of one column each, of pairs that are chosen, of triples that are chosen.
A group's noise is the least with which its part of mu squared covers the whole group, so that one number, the norm of a
unit over all marginals in units of their noise, is charged for all of them before the first row is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mechanisms import gateway
from mechanisms.measurement import Integers, integers, root_up
from mechanisms.measurements.choices import ExponentialMechanism
from mechanisms.measurements.gaussian import GaussianMeasurement
from mechanisms.randomness import BitSource
from mechanisms.samplers.undecided import require_scale
from privacy.events import Event, GaussianEvent, GaussianRangesEvent
from privacy.events.laplace import HALF_PI_UP
from privacy.policy import ColumnType
from privacy.statistic import Choice, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from privacy.unit import Neighbouring

__all__ = ["SELECTED_FROM", "Synthesis"]

SELECTED_FROM = 4
"""Columns from which on pairs and triples are chosen; of fewer all of them are measured that the model has."""

_SHARES = {
    1: (Fraction(1), Fraction(0), Fraction(0), Fraction(0)),
    2: (Fraction(3, 10), Fraction(0), Fraction(7, 10), Fraction(0)),
    3: (Fraction(2, 10), Fraction(0), Fraction(3, 10), Fraction(5, 10)),
}
_SHARES_SELECTED = (Fraction(20, 100), Fraction(10, 100), Fraction(40, 100), Fraction(30, 100))
"""Parts of the price: columns, choices, pairs, triples."""

_CORE = "synthetic"


@dataclass(frozen=True, slots=True)
class Synthesis:
    """The price of a synthetic table, and all noise of it.

    `columns` is how many columns it has, `rows` how many rows of a unit count in each marginal, and `mu_squared` the
    most that everything together may cost. ValueError when noise would be out of range.
    """

    columns: int
    rows: int
    mu_squared: Fraction

    def __post_init__(self) -> None:
        assert self.columns >= 1
        assert self.rows >= 1
        require_scale(self.sigma_of_columns)
        for count in (1, self.pairs) if self.pairs else ():
            require_scale(self.sigma_of_pairs(count))
        for count in (1, self.triples) if self.triples else ():
            require_scale(self.sigma_of_triples(count))
        if self.draws:
            require_scale(self.choice_scale)

    # How much there is of each

    @property
    def selects(self) -> bool:
        """Whether pairs and triples are chosen."""
        return self.columns >= SELECTED_FROM

    @property
    def pairs(self) -> int:
        """The most pairs that are measured: those of a tree."""
        return self.columns - 1

    @property
    def triples(self) -> int:
        """The most triples that are measured: one for each column but the first two."""
        return max(0, self.columns - 2)

    @property
    def draws(self) -> int:
        """The most choices: one for each pair and each triple."""
        return self.pairs + self.triples if self.selects else 0

    @property
    def _shares(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        return _SHARES_SELECTED if self.selects else _SHARES[self.columns]

    # Noise

    @property
    def sigma_of_columns(self) -> Fraction:
        """The noise of every cell of the marginals of one column."""
        return self._sigma(self._shares[0], self.columns)

    def sigma_of_pairs(self, count: int) -> Fraction:
        """The noise of every cell where so many pairs are measured."""
        assert 1 <= count <= self.pairs
        return self._sigma(self._shares[2], count)

    def sigma_of_triples(self, count: int) -> Fraction:
        """The noise of every cell where so many triples are measured."""
        assert 1 <= count <= self.triples
        return self._sigma(self._shares[3], count)

    def _sigma(self, share: Fraction, marginals: int) -> Fraction:
        """A unit changes one marginal by `rows` at most in L2, and m of them by the root of m times that."""
        return root_up(self.rows**2 * marginals / (share * self.mu_squared))

    @property
    def choice_scale(self) -> Fraction:
        """The scale of the noise of every choice: its range is twice the change of a score, over the scale."""
        return root_up(self.rows**2 * HALF_PI_UP * self.draws / (self._shares[1] * self.mu_squared))

    # Price

    def event(self) -> Event:
        """What all of it costs: noise on one vector, whose entries are in units of their noise, and the choices.

        Ensures: `loss().mu_squared` is at most `mu_squared`.
        """
        noise = (1 - self._shares[1]) * self.mu_squared
        if not self.draws:
            return GaussianEvent(l2_squared=noise, variance=Fraction(1))
        each = 2 * self.rows / self.choice_scale
        return GaussianRangesEvent(
            l2_squared=noise,
            variance=Fraction(1),
            ranges_l1=self.draws * each,
            ranges_l2_squared=self.draws * each**2,
        )

    # Measuring

    def measured(self, exact: Integers, *, marginals: int, sigma: Fraction, bits: BitSource) -> Integers:
        """The noisy cells of so many marginals, one below the other."""
        change = Fraction(self.rows)
        statistic = Statistic(
            name="c0",
            kind=StatisticKind.COUNT,
            sensitivity=Sensitivity(
                relation=Neighbouring.ADD_REMOVE,
                l0=self.rows * marginals,
                l1=change * marginals,
                l2_squared=change**2 * marginals,
                linf=change,
            ),
            argument="rows, one cell of each marginal",
        )
        measurement = GaussianMeasurement(core=_CORE, statistic=statistic, share=Fraction(1), sigma=sigma)
        return gateway.perturb(measurement, exact.reshape(-1, 1), bits).sums[:, 0]

    def chosen(self, scores: list[int], bits: BitSource) -> int:
        """The place of one of the scores, by the exponential mechanism. A unit changes each by `rows` at most."""
        count, change = len(scores), Fraction(self.rows)
        statistic = Statistic(
            name="c0",
            kind=StatisticKind.COUNT,
            sensitivity=Sensitivity(
                relation=Neighbouring.ADD_REMOVE,
                l0=count,
                l1=change * count,
                l2_squared=change**2 * count,
                linf=change,
            ),
            argument="distance of a marginal from what is known of it",
        )
        measurement = ExponentialMechanism(
            core=_CORE,
            statistic=statistic,
            share=Fraction(1, self.draws),
            scale=self.choice_scale,
            choice=Choice(count=1, within=(), least=False, parts_per_unit=1, one_way=False),
            keys=Keys(
                columns=(KeyColumn("k0", ColumnType.INTEGER),),
                domain=tuple((place,) for place in range(count)),
                groups_per_unit=count,
            ),
        )
        found = gateway.perturb(measurement, integers(scores).reshape(-1, 1), bits).chosen
        assert found is not None
        return found[0]
