"""Marginals of synthetic tables on neighbours: what one unit changes at the gateway, against the one charge for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms import gateway
from mechanisms.measurement import Integers, Measurement, Perturbed
from mechanisms.measurements.choices import ExponentialMechanism
from mechanisms.randomness import BitSource
from mechanisms.synthetic import counts
from mechanisms.synthetic.price import Synthesis
from mechanisms.synthetic.rounds import measured
from privacy.binned import BinnedColumn, Marginal
from privacy.events import Event, GaussianEvent, GaussianRangesEvent
from privacy.exact import Exact
from privacy.policy import Table
from sql_rewrite import marginals
from sql_rewrite.marginals import binned_column, binned_reason, lower_marginals
from tests.audit.generate import Scene, make_scene, owner_of
from tests.audit.harness import Store
from tests.audit.test_choices import world
from tests.audit.violation import Violation, require
from tests.mechanisms.support import SeededBits


@dataclass
class Replay:
    """Keeps what met noise on one data set, and says the same on its neighbour: what was released is then alike."""

    script: Sequence[tuple[Measurement, Integers, Perturbed]] | None = None
    seen: list[tuple[Measurement, Integers, Perturbed]] = field(default_factory=list)

    def perturb(self, measurement: Measurement, exact: Integers, bits: BitSource) -> Perturbed:
        """In place of the gateway's function."""
        said = measurement.perturb(exact, bits) if self.script is None else self.script[len(self.seen)][2]
        self.seen.append((measurement, exact.copy(), said))
        return said


def _run(store: Store, table: Table, columns: Sequence[BinnedColumn], price: Synthesis, replay: Replay) -> None:
    def counted(kept: Sequence[BinnedColumn], wanted: Sequence[Marginal]) -> Exact:
        return store.exact(lower_marginals(table, kept, wanted, rows_per_unit=price.rows))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway, "perturb", replay.perturb)
        measured(price, columns, counted, SeededBits(3))


def _rows_of(scene: Scene, name: str, unit: Any) -> int:
    return owner_of(scene, name).count(unit)


def _charged(event: Event) -> tuple[Fraction, Fraction]:
    """Squared L2 in units of the noise, and the sum of ranges."""
    if isinstance(event, GaussianRangesEvent):
        return event.l2_squared / event.variance, event.ranges_l1
    assert isinstance(event, GaussianEvent)
    return event.l2_squared / event.variance, Fraction(0)


def audited(
    scene: Scene, name: str, *, rows: int, mu_squared: Fraction = Fraction(4), neighbours: int | None = None
) -> float:
    """Compares the data with its neighbours without one unit. How much of the charge for noise was used at most."""
    table = scene.dataset.table(name)
    assert table is not None
    named = [column for column in table.columns if binned_reason(table, column) is None][:6]
    columns = [binned_column(table, column, bins=4) for column in named]
    price = Synthesis(len(columns), rows, mu_squared)
    l2_squared, ranges = _charged(price.event())
    every, used = frozenset(scene.units), 0.0
    with closing(Store(scene, every, seed=1)) as whole:
        first = Replay()
        _run(whole, table, columns, price, first)
    # Those with the most rows first.
    for unit in sorted(scene.units, key=lambda one: -_rows_of(scene, name, one))[:neighbours]:
        with closing(Store(scene, every - {unit}, seed=2)) as part:
            second = Replay(script=first.seen)
            _run(part, table, columns, price, second)
        require(len(first.seen) == len(second.seen), "neighbours are measured in different ways")
        total, range_total = Fraction(0), Fraction(0)
        for (measurement, one, _), (other_measurement, other, _) in zip(first.seen, second.seen, strict=True):
            require(measurement == other_measurement, "neighbours are measured in different ways")
            changes = [abs(int(change)) for change in (one - other).ravel().tolist()]
            if isinstance(measurement, ExponentialMechanism):
                require(max(changes) <= measurement.statistic.sensitivity.linf, "a score changed by more")
                range_total += 2 * Fraction(max(changes)) / measurement.scale
            else:
                squares = sum(change**2 for change in changes)
                require(squares <= measurement.statistic.sensitivity.l2_squared, "marginals changed by more")
                total += Fraction(squares) / measurement.scale_of_sums**2
        require(total <= l2_squared, "noise was charged too little")
        require(range_total <= ranges, "choices were charged too little")
        used = max(used, float(total / l2_squared))
    return used


@pytest.mark.sparse(3)
@pytest.mark.parametrize("rows", [1, 3, 50])
def test_one_unit_changes_all_marginals_by_no_more_than_is_charged(rows: int) -> None:
    """Shows the norm over all marginals, on units of 0, 1, 3, 5 and 50 rows with NULL and extremes; some attain it."""
    assert audited(world(), "visits", rows=rows) > (0.3 if rows < 50 else 0.05)


def test_one_row_is_one_unit() -> None:
    """Shows the same where each unit has one row, which attains the charge."""
    assert audited(world(), "people", rows=1) > 0.999


def test_pairs_and_triples_are_chosen_within_the_charge() -> None:
    """Shows the same where choices are made; a unit of which one row counts attains the charge for noise."""
    assert audited(_correlated(), "visits", rows=1, mu_squared=Fraction(10**6), neighbours=2) > 0.999


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_random_declarations(seed: int) -> None:
    """Shows the same for every table of random scenes, whatever types, keys and bounds their columns declare."""
    scene = make_scene(seed)
    for table in scene.dataset.tables:
        if table.protected and any(binned_reason(table, column) is None for column in table.columns):
            audited(scene, table.name, rows=1 if table.one_row else 2)


def forget_the_others(patch: pytest.MonkeyPatch) -> None:
    """Each marginal has the noise that it would have alone: the norm over all of them is forgotten."""
    genuine = Synthesis._sigma
    patch.setattr(Synthesis, "_sigma", lambda self, share, marginals: genuine(self, share, 1))


def charge_no_triples(patch: pytest.MonkeyPatch) -> None:
    """The last round is measured and not charged."""
    genuine = Synthesis.event

    def event(self: Synthesis) -> Event:
        found = genuine(self)
        assert isinstance(found, GaussianRangesEvent | GaussianEvent)
        return replace(found, l2_squared=found.l2_squared - self._shares[3] * self.mu_squared)

    patch.setattr(Synthesis, "event", event)


def score_by_squares(patch: pytest.MonkeyPatch) -> None:
    """A score of which one row changes more than one."""
    patch.setattr(counts, "_score", lambda exact, expected, sigma: int((exact**2).sum()))


def keep_more_rows(patch: pytest.MonkeyPatch) -> None:
    """One row more of a unit counts than is charged."""
    genuine = lower_marginals

    def more(*arguments: Any, rows_per_unit: int, **named: Any) -> Any:
        return genuine(*arguments, rows_per_unit=rows_per_unit + 1, **named)

    patch.setattr("tests.audit.test_synthetic.lower_marginals", more)


def count_all_rows(patch: pytest.MonkeyPatch) -> None:
    """The bound of rows is not in the statement."""
    patch.setattr(marginals, "Kept", lambda rows, alias, where, outputs: _KEPT(rows, alias, None, outputs))


_KEPT = marginals.Kept


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (forget_the_others, "charged too little"),
        (charge_no_triples, "charged too little"),
        (score_by_squares, "a score changed by more"),
        (keep_more_rows, "marginals changed by more"),
        (count_all_rows, "marginals changed by more"),
    ],
)
def test_planted_bugs_are_caught(plant: Callable[[pytest.MonkeyPatch], None], says: str) -> None:
    """Shows that the comparison of neighbours sees each way to charge too little."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        with pytest.raises(Violation, match=says):
            audited(_correlated(), "visits", rows=1, mu_squared=Fraction(10**6), neighbours=2)


def _correlated() -> Scene:
    """A scene of five columns of visits, of which pairs and triples are chosen."""
    return make_scene(11)


def test_the_noise_is_what_the_event_says() -> None:
    """Shows that rounds of any size cost no more than their part, and the whole no more than the price."""
    for columns in (1, 2, 3, 4, 9):
        for rows in (1, 7):
            price = Synthesis(columns, rows, Fraction(1, 3))
            assert (price.event().loss().mu_squared or 0) <= price.mu_squared
            shares = price._shares
            assert sum(shares) == 1
            assert rows**2 * columns / price.sigma_of_columns**2 <= shares[0] * price.mu_squared
            for count in range(1, price.pairs + 1):
                assert rows**2 * count / price.sigma_of_pairs(count) ** 2 <= shares[2] * price.mu_squared
            for count in range(1, price.triples + 1):
                assert rows**2 * count / price.sigma_of_triples(count) ** 2 <= shares[3] * price.mu_squared


def test_the_law_of_a_choice_is_that_of_the_exponential_mechanism() -> None:
    """Shows the frequencies of choices among four scores, by chi-squared at one in a million, and a twin that fails."""
    price = Synthesis(5, 2, Fraction(1))
    scale, bits, scores, runs = float(price.choice_scale), SeededBits(11), [0, 9, 5, -40], 4_000
    drawn = np.bincount([price.chosen(scores, bits) for _ in range(runs)], minlength=4)

    def distance(of: float) -> float:
        law = np.exp(np.array(scores) / of)
        expected = runs * law / law.sum()
        return float(((drawn - expected) ** 2 / expected).sum())

    assert distance(scale) < 30.7  # three degrees of freedom
    assert distance(scale * 0.6) > 30.7
