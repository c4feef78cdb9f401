"""Error bars of levels that are measured together: parents are sums of noisy children that share their noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from engines.shell import ShellEngine
from mechanisms.measurements.levels import GaussianLevels, LaplaceLevels
from tests.journey.fixtures import own_noise
from tests.kept_workers import kept_workers
from tests.server.test_derived import answer, core, counted, hits, least_covered
from tests.thinned import slow_ones

__all__ = ["own_noise"]

pytestmark = pytest.mark.usefixtures("own_noise")  # simulated intervals are those of every run

GROUPS = 40
RELEASES = 8
ROLLUP = "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)"


@pytest.fixture(scope="module")
def shell() -> Iterator[ShellEngine]:
    """One worker for all tests."""
    with kept_workers():
        engine = ShellEngine(workers=1)
    with closing(engine):
        yield engine


@pytest.mark.parametrize("price", slow_ones(["laplace"], ["laplace", "gaussian"]))
def test_levels_add_up_and_are_covered(shell: ShellEngine, price: str) -> None:
    """Groups, their total and a difference of groups: the total is the exact sum, and nearer than independent noise.

    Cells of one release are nearly independent; a total is one trial in each release.
    """
    described = replace(core(GROUPS), levels=((0,), ()))
    held, totals, apart, errors = 0, 0, 0, []
    for seed in range(RELEASES):
        table = counted(described, [100] * GROUPS, price, seed=seed, confidence="0.9")
        told = answer(shell, ROLLUP, [table], "0.9")
        numbers = {row[0]: row[1] for row in told.rows}
        place = [row[0] for row in told.rows].index(None)
        assert numbers[None] == sum(number for name, number in numbers.items() if name is not None)
        low, high = told.lows[place][1], told.highs[place][1]
        totals += low <= 100 * GROUPS <= high
        held += hits(told, 1, lambda row: 100.0 * (GROUPS if row[0] is None else 1))[0]
        difference = (
            "SELECT n - LAG(n) OVER (ORDER BY sex) AS d FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"
        )
        moved = answer(shell, difference, [table], "0.9")
        apart += sum(
            low[0] is None or low[0] <= 0 <= high[0] for low, high in zip(moved.lows, moved.highs, strict=True)
        )
        errors.append(told.standard_errors[place][1])
        (sums,) = table.sums or ()
        assert isinstance(sums.measurement, LaplaceLevels | GaussianLevels)
        wanted = math.sqrt(sums.measurement.noise_variance() * sums.measurement.lattice.variance_of(()))
        assert errors[-1] == pytest.approx(wanted)
        own = told.standard_errors[1 - min(place, 1)][1]
        assert errors[-1] < 0.4 * math.sqrt(GROUPS) * own
    assert totals >= least_covered(RELEASES, "0.9")
    assert held >= least_covered((GROUPS + 1) * RELEASES, "0.9")
    assert apart >= least_covered(GROUPS * RELEASES // 2, "0.9") * 2 - GROUPS


def test_shares_of_a_total_are_simulated_with_the_noise_of_all_levels(shell: ShellEngine) -> None:
    """A quotient of a group and its total has an interval of simulated noise, gathered as the estimates are."""
    described = replace(core(GROUPS), levels=((0,), ()))
    table = counted(described, [100] * GROUPS, "gaussian", seed=3)
    told = answer(
        shell,
        "SELECT sex, n / SUM(n) OVER () AS share FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)",
        [table],
    )
    assert told.methods == (None, "simulated")
    assert hits(told, 1, lambda row: 1 / GROUPS)[0] >= least_covered(GROUPS // 2, "0.95") * 2 - 2


def test_a_row_that_is_in_no_branch_has_no_error(shell: ShellEngine) -> None:
    """Shows the NULL of an outer join over UNION ALL of releases, beside the cells that have intervals."""
    tables = [counted(core(2, name=name), [100, 200], "laplace", seed=6) for name in ("c0", "c1", "c2")]
    one, other = (f"SELECT {key}, COUNT(*) AS m FROM people GROUP BY {key}" for key in ("smoker", "education"))
    branches = f"SELECT 'g0000' AS sex, m FROM ({one}) UNION ALL SELECT 'x' AS sex, m FROM ({other})"
    told = answer(shell, f"SELECT t.sex, u.m FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t "
                  f"LEFT JOIN ({branches}) AS u ON u.sex = t.sex", tables)  # fmt: skip
    missing = [row[1] is None for row in told.rows]
    assert any(missing)
    assert not all(missing)
    assert [low[1] is None for low in told.lows] == missing
