"""Error bars of computed cells: they hold as often as they say over fresh releases, or say why there are none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from engines.shell import ShellColumn, ShellEngine, ShellTable
from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.release import release
from mechanisms.released_table import ReleasedTable
from privacy.aggregate import AggregateFunction
from privacy.exact import Exact
from privacy.policy import ColumnType
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys
from server.answer_rows import AnswerRows, assemble
from server.derived.cells import NoInterval
from sql_rewrite.lift import lift
from sql_rewrite.released import ROW
from tests.journey.fixtures import own_noise
from tests.kept_workers import kept_workers
from tests.mechanisms.support import SeededBits, count, moments, units
from tests.sql_rewrite.datasets import CLINIC

__all__ = ["own_noise"]

pytestmark = pytest.mark.usefixtures("own_noise")  # simulated intervals are those of every run

LEVELS = ("0.9", "0.95", "0.99", "0.999", "0.9999")
PRICES = {
    "laplace": Price(NoiseFamily.LAPLACE, Fraction(1), Fraction(0)),
    "gaussian": Price(NoiseFamily.GAUSSIAN, Fraction(1, 4), Fraction(0)),
}
TRIALS = 30
"""Releases of tests whose cells are covered all together or not at all."""

BY_TOWN = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
"""The block below the shells: a core c0 with the key k0 and the count a0, whose public keys the tests choose."""
BY_HIDDEN = "SELECT education AS sex, COUNT(*) AS n FROM people GROUP BY education"
"""A LIMIT may leave out some of these groups: their number is not declared, and tables here have more than two."""


@pytest.fixture(scope="module")
def shell() -> Iterator[ShellEngine]:
    """One worker for all tests."""
    with kept_workers():
        engine = ShellEngine(workers=1)
    with closing(engine):
        yield engine


def core(cells: int, *, name: str = "c0", selected: bool = False) -> CoreStatistics:
    """A core of counts over the keys g0000, g0001, ...: public, or shown above a threshold."""
    statistic = units("s0") if selected else count("s0")
    domain = None if selected else tuple((key(i),) for i in range(cells))
    keys = Keys((KeyColumn("k0", ColumnType.TEXT),), domain, 1, "s0" if selected else None)
    return CoreStatistics(name, keys, (statistic,), (Estimate("a0", AggregateFunction.ROWS, "s0", integer=True),))


def key(number: int) -> str:
    return f"g{number:04}"


def counted(
    described: CoreStatistics, counts: Sequence[int], price: str, *, seed: int, confidence: str = "0.95"
) -> ReleasedTable:
    """A fresh release of these true counts."""
    exact = Exact(keys={"k0": [key(i) for i in range(len(counts))]}, sums={"s0_0": list(counts)}, rows=len(counts))
    amount = PRICES[price]
    if described.keys.selection is not None:
        amount = Price(NoiseFamily.GAUSSIAN, Fraction(1, 4), Fraction(1, 10**6))
    calibration = calibrate([described], amount)
    return release(described, calibration, exact, bits=SeededBits(seed), confidence=Fraction(confidence))


def by_two_keys() -> ReleasedTable:
    """A fresh release of counts by two keys, the second of which has the values of the first."""
    statistic = count("s0")
    columns = (KeyColumn("k0", ColumnType.TEXT), KeyColumn("k1", ColumnType.TEXT))
    cells = [(key(i), key(j)) for i in range(2) for j in range(2)]
    described = CoreStatistics(
        "c1",
        Keys(columns, tuple(cells), 1, None),
        (statistic,),
        (Estimate("a0", AggregateFunction.ROWS, "s0", integer=True),),
    )
    exact = Exact(
        keys={"k0": [one for one, _ in cells], "k1": [two for _, two in cells]}, sums={"s0_0": [500] * 4}, rows=4
    )
    calibration = calibrate([described], PRICES["laplace"])
    return release(described, calibration, exact, bits=SeededBits(8), confidence=Fraction("0.95"))


def answer(
    shell: ShellEngine, sql: str, tables: Sequence[ReleasedTable], confidence: str = "0.95", engine: Any = None
) -> AnswerRows:
    """What the shell of a query says over released tables in the place of its cores."""
    plan = lift(sql, CLINIC)
    assert len(plan.cores) == len(tables)
    described = [
        ShellTable(
            table.name,
            (*(ShellColumn(c.name, c.type) for c in table.columns), ShellColumn(ROW, ColumnType.INTEGER)),
        )
        for table in tables
    ]
    return assemble(
        plan.shell,
        None if plan.shell.trivial else shell.check(described, plan.shell.sql),
        tables,
        shell=engine or shell,
        confidence=Fraction(confidence),
        timeout_seconds=60,
        owner="analyst",
    )


def least_covered(trials: int, level: str) -> int:
    """The least number of hits that a right interval has but once in a million times (binomial)."""
    miss = float(1 - Fraction(level))
    misses, total, term = 0, 0.0, (1 - miss) ** trials
    while True:
        total += term
        if total > 1 - 1e-6:
            return trials - misses
        misses += 1
        term *= (trials - misses + 1) / misses * miss / (1 - miss)


def hits(told: AnswerRows, place: int, truth: Callable[[Sequence[Any]], float]) -> tuple[int, int]:
    """How many cells of a column hold their truth, and how many there are; all of them have an interval."""
    found = 0
    for row, low, high in zip(told.rows, told.lows, told.highs, strict=True):
        assert low[place] is not None, told.reasons
        hair = 1e-9 * max(1.0, abs(truth(row)))
        found += low[place] - hair <= truth(row) <= high[place] + hair
    return found, len(told.rows)


@pytest.mark.sparse(5)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("price", PRICES)
def test_a_doubled_count_does_not_cover_less_than_it_says(shell: ShellEngine, price: str, level: str) -> None:
    """`n * 2.0` over 1,000 groups covered 0.96 at 0.99, 0.999 and 0.9999: forty draws have no such quantiles."""
    sql = f"SELECT sex, n * 2.0 AS m, ROUND(n / 10.0, 1) AS tenth FROM ({BY_TOWN})"
    covered, trials, rounded = 0, 0, 0
    for seed in range(4):
        table = counted(core(1000), [100] * 1000, price, seed=seed, confidence=level)
        told = answer(shell, sql, [table], level)
        found, count_ = hits(told, 1, lambda row: 200.0)
        covered, trials, rounded = covered + found, trials + count_, rounded + hits(told, 2, lambda row: 10.0)[0]
        assert told.methods == (None, "mapped", "mapped")
        errors = [row[1] for row in told.standard_errors]
        assert errors == pytest.approx([2 * table.columns[1].standard_errors[0]] * 1000)
    assert covered >= least_covered(trials, level)
    assert rounded >= least_covered(trials, level)
    # Nor much more than it says: whole numbers cover a little more often.
    assert covered / trials < 1 - 0.4 * float(1 - Fraction(level)) or level in LEVELS[2:]


@pytest.mark.sparse(10)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("price", PRICES)
def test_sums_of_cells_cover_at_every_confidence(shell: ShellEngine, price: str, level: str) -> None:
    """Running sums, differences from the mean and totals of 60 cells: weights are asked for, their law is exact."""
    sql = (
        "SELECT sex, SUM(n) OVER (ORDER BY sex) AS running, n - AVG(n) OVER () AS apart, SUM(n) OVER () / 60.0 AS mean "
        f"FROM ({BY_TOWN})"
    )
    covered = [0, 0, 0]
    trials = 0
    for seed in range(12):
        table = counted(core(60), [100] * 60, price, seed=seed, confidence=level)
        told = answer(shell, sql, [table], level)
        assert told.methods == (None, "linear", "linear", "linear")
        trials += 60
        places = {key(i): i for i in range(60)}
        covered[0] += hits(told, 1, lambda row, places=places: 100.0 * (places[row[0]] + 1))[0]
        covered[1] += hits(told, 2, lambda row: 0.0)[0]
        covered[2] += hits(told, 3, lambda row: 100.0)[0]
        error = table.columns[1].standard_errors[0]
        assert error is not None
        assert told.standard_errors[0][3] == pytest.approx(error / math.sqrt(60))
    assert covered[1] >= least_covered(trials, level)
    # Running sums of one release move together: twelve releases are twelve trials, of which each may miss.
    assert covered[0] >= 60 * least_covered(12, level)
    assert covered[2] >= 60 * least_covered(12, level)


@pytest.mark.slow
@pytest.mark.sparse(3)
@pytest.mark.parametrize("level", ["0.9", "0.99", "0.9999"])
def test_a_total_of_too_many_cells_for_weights_covers(shell: ShellEngine, level: str) -> None:
    """The sum of 1,000 counts: simulated spread times the quantile of the law, at every confidence."""
    covered = 0
    for seed in range(30):
        table = counted(core(1000), [100] * 1000, "gaussian", seed=seed, confidence=level)
        told = answer(shell, f"SELECT SUM(n) AS total FROM ({BY_TOWN})", [table], level)
        assert told.methods == ("simulated",)
        covered += hits(told, 0, lambda row: 100_000.0)[0]
    assert covered >= least_covered(30, level)


@pytest.mark.slow
def test_the_greatest_of_noisy_counts_does_not_lean_outwards(shell: ShellEngine) -> None:
    """MAX, MIN and MEDIAN of 50 equal counts: simulated intervals lay above the truth (and below it) each time."""
    covered = [0, 0, 0]
    releases = TRIALS
    for seed in range(releases):
        table = counted(core(50), [100] * 50, "laplace", seed=seed)
        told = answer(shell, f"SELECT MAX(n) AS m, MIN(n) AS l, MEDIAN(n) AS d FROM ({BY_TOWN})", [table])
        assert told.methods == ("bounds", "bounds", "bounds")
        for place in range(3):
            covered[place] += hits(told, place, lambda row: 100.0)[0]
    assert min(covered) >= least_covered(releases, "0.95")


@pytest.mark.slow
@pytest.mark.sparse(3)
@pytest.mark.parametrize("apart", [0, 1, 4])
def test_the_greatest_of_different_counts_is_covered(shell: ShellEngine, apart: int) -> None:
    """Counts that lie apart by less or more than their noise: the one-sided end of MAX holds as well."""
    counts = [100 + apart * i for i in range(20)]
    covered = 0
    for seed in range(TRIALS):
        table = counted(core(20), counts, "gaussian", seed=seed)
        told = answer(shell, f"SELECT MAX(n) AS m FROM ({BY_TOWN})", [table])
        covered += hits(told, 0, lambda row: float(max(counts)))[0]
    assert covered >= least_covered(TRIALS, "0.95")


@pytest.mark.sparse(2)
@pytest.mark.parametrize("clause", ["ORDER BY n DESC LIMIT 3", "QUALIFY RANK() OVER (ORDER BY n DESC) <= 3"])
def test_the_first_rows_by_a_noisy_count_do_not_lean_outwards(shell: ShellEngine, clause: str) -> None:
    """The three greatest of 100 equal counts, as they are and doubled: all shown intervals hold in 95 % of releases."""
    held = 0
    releases = TRIALS
    for seed in range(releases):
        table = counted(core(100), [100] * 100, "laplace", seed=seed)
        told = answer(shell, f"SELECT sex, n, n * 2 AS m FROM ({BY_HIDDEN}) {clause}", [table])
        assert told.methods == (None, "simultaneous", "mapped")
        found = hits(told, 1, lambda row: 100.0)
        held += found == hits(told, 2, lambda row: 200.0) == (len(told.rows),) * 2
    assert held >= least_covered(releases, "0.95")


def test_rows_that_no_noisy_number_chose_keep_their_intervals(shell: ShellEngine) -> None:
    """A limit in the order of keys, or a condition on keys, chooses nothing by noise."""
    table = counted(core(100), [100] * 100, "laplace", seed=5)
    for clause in ("ORDER BY sex LIMIT 3", "WHERE sex < 'g0003'", "ORDER BY n DESC"):
        told = answer(shell, f"SELECT sex, n FROM ({BY_TOWN}) {clause}", [table])
        assert told.methods == (None, "noise")
        assert told.highs[0][1] - told.rows[0][1] < 5


@pytest.mark.slow
def test_ranks_hold_under_ties(shell: ShellEngine) -> None:
    """Twelve counts of which some are equal: the interval of every rank holds its true rank in 95 % of releases.

    Simulated ranks of equal counts never were all the first. Two far apart have one rank each, at any confidence.
    """
    counts = [100, 100, 100, 100, 103, 103, 106, 120, 120, 140, 140, 141]
    truth = {key(i): 1 + sum(other > one for other in counts) for i, one in enumerate(counts)}
    sql = f"SELECT sex, RANK() OVER (ORDER BY n DESC) AS place FROM ({BY_TOWN})"
    held = 0
    for seed in range(TRIALS):
        told = answer(shell, sql, [counted(core(12), counts, "gaussian", seed=seed)])
        assert told.methods == (None, "bounds")
        held += hits(told, 1, lambda row: truth[row[0]]) == (12, 12)
    assert held >= least_covered(TRIALS, "0.95")
    far = counted(core(2), [5000, 1000], "gaussian", seed=1, confidence="0.9999")
    told = answer(shell, sql, [far], "0.9999")
    assert {(row[0], low[1], high[1]) for row, low, high in zip(told.rows, told.lows, told.highs, strict=True)} == {
        (key(0), 1, 1),
        (key(1), 2, 2),
    }


def test_groups_that_were_left_out_count_among_those_that_might_be_shown(shell: ShellEngine) -> None:
    """Sums of numbers of several rows were as narrow as if the empty groups had never been there."""
    pairs = f"SELECT a.n - b.n AS v FROM ({BY_TOWN}) AS a JOIN ({BY_TOWN}) AS b ON a.sex <> b.sex WHERE a.n > 5"
    table = counted(core(2), [199, 52], "laplace", seed=7)
    widths = []
    for cells in (None, 2, 50, 1000):
        answered = answer(shell, pairs, [replace(table, cells=cells)])
        low, high = answered.lows[0][0], answered.highs[0][0]
        assert low is not None
        assert high is not None
        widths.append(high - low)
    assert widths[0] == widths[1] < widths[2] < widths[3]


@pytest.mark.parametrize("price", ["laplace", "gaussian", "dear"])
def test_whole_numbers_have_no_ends_between_whole_numbers(
    shell: ShellEngine, monkeypatch: pytest.MonkeyPatch, price: str
) -> None:
    """A count of 199 less one of 2 was 197, and at most 197.000000000001."""
    monkeypatch.setitem(PRICES, "dear", Price(NoiseFamily.LAPLACE, Fraction(10_000), Fraction(0)))
    for sql in (
        f"SELECT SUM(n) - 2 AS v FROM ({BY_TOWN}) AS t",
        f"SELECT sex, n - SUM(n) OVER () AS v FROM ({BY_TOWN}) AS t",
        f"SELECT SUM(CASE WHEN sex = 'g0000' THEN n ELSE -n END) AS v FROM ({BY_TOWN}) AS t",
    ):
        answered = answer(shell, sql, [counted(core(2), [199, 2], price, seed=7)])
        for row, low, high in zip(answered.rows, answered.lows, answered.highs, strict=True):
            value, least, greatest = row[-1], low[-1], high[-1]
            assert isinstance(value, int)
            assert least is not None
            assert greatest is not None
            assert least == int(least) <= value <= int(greatest) == greatest
            # Each of two rounded numbers is at most a half from the number that was drawn.
            assert greatest - least <= 2 or price != "dear"
    # Half of a count is no whole number, and neither is its error.
    halved = answer(shell, f"SELECT SUM(n) / 2 AS v FROM ({BY_TOWN}) AS t", [counted(core(2), [199, 2], price, seed=7)])
    assert halved.highs[0][0] != int(halved.highs[0][0] or 0) or price == "dear"


@pytest.mark.parametrize(
    "aggregate", ["COUNT(*)", "SUM(n)", "MAX(n)", "MAX(sex)", "COUNT(*) * 2", "(SELECT SUM(n) FROM h)"]
)
def test_what_is_counted_over_hidden_groups_has_no_interval(shell: ShellEngine, aggregate: str) -> None:
    """`COUNT(*)` over thresholded groups said 34 [34, 34] where 42 is true: the groups below are not known."""
    table = counted(core(30, selected=True), [10] * 15 + [200] * 15, "gaussian", seed=3)
    sql = f"WITH h AS (SELECT education AS sex, COUNT(*) AS n FROM people GROUP BY education) SELECT {aggregate} FROM h"
    told = answer(shell, sql, [table])
    assert 10 < table.rows < 30
    assert {low[0] for low in told.lows} == {None}
    assert [(reason.code, reason.rows) for reason in told.reasons] == [("groups_not_shown", None)]


def test_functions_of_a_selected_count_know_that_it_was_shown(shell: ShellEngine) -> None:
    """Twice the count of a group just below the threshold is covered as often as it says, given that it is shown."""
    described = core(3000, selected=True)
    measurement = calibrate([described], Price(NoiseFamily.GAUSSIAN, Fraction(1, 4), Fraction(1, 10**6))).measurement(
        "c0", "s0"
    )
    n = measurement.threshold - 4  # type: ignore[attr-defined]
    sql = "SELECT education, COUNT(*) * 2 AS m FROM people GROUP BY education"
    told = answer(shell, sql, [counted(described, [n] * 3000, "gaussian", seed=4)])
    found, trials = hits(told, 1, lambda row: 2.0 * n)
    assert trials > 50
    assert found >= least_covered(trials, "0.95")


def test_union_all_keeps_the_intervals_of_its_cells(shell: ShellEngine) -> None:
    """UNION ALL of two private counts lost both; a computed branch beside a released one has its own."""
    first = counted(core(2), [1000, 2000], "laplace", seed=6)
    second = counted(core(3, name="c1"), [10, 20, 30], "laplace", seed=7)
    other = "SELECT smoker, COUNT(*) FROM people GROUP BY smoker"
    told = answer(shell, f"({BY_TOWN}) UNION ALL (SELECT CAST(smoker AS VARCHAR), n FROM ({other}) t(smoker, n))", [
        first, second,
    ])  # fmt: skip
    wanted = {
        (value, low, high)
        for table in (first, second)
        for value, low, high in zip(table.columns[1].values, table.columns[1].lows, table.columns[1].highs, strict=True)
    }
    assert wanted == {(r[1], low[1], high[1]) for r, low, high in zip(told.rows, told.lows, told.highs, strict=True)}
    assert told.methods[1] == "noise"
    mixed = answer(shell, f"SELECT n AS v FROM ({BY_TOWN}) UNION ALL SELECT n * 10 FROM ({other}) t(smoker, n)", [
        first, second,
    ])  # fmt: skip
    assert not mixed.reasons
    widths = sorted(high[0] - low[0] for low, high in zip(mixed.lows, mixed.highs, strict=True))
    assert widths == pytest.approx([widths[0]] * 2 + [10 * widths[0]] * 3)
    both = f"SELECT n AS v FROM ({BY_TOWN}) UNION ALL SELECT n FROM ({other}) t(s, n)"
    summed = answer(shell, f"SELECT SUM(v) FROM ({both})", [first, second])
    assert summed.methods == ("linear",)
    assert hits(summed, 0, lambda row: 3060.0) == (1, 1)


@pytest.mark.parametrize("shown", ["sex", "a.sex", "b.sex"])
def test_a_column_of_using_leaves_computed_columns_their_intervals(shell: ShellEngine, shown: str) -> None:
    """Simulated joins have ON in place of USING: the column without its relation was ambiguous there."""
    tables = [counted(core(2, name=name), [1000, 2000], "laplace", seed=6) for name in ("c0", "c1", "c2")]
    others = f"({BY_TOWN}) a JOIN (SELECT sex, smoker, COUNT(*) AS m FROM people GROUP BY sex, smoker) b USING (sex)"
    tables[1] = by_two_keys()
    told = answer(shell, f"SELECT {shown}, n / m AS part FROM {others}", tables[:2])
    assert told.methods[1] == "simulated"
    assert all(low[1] is not None for low in told.lows)
    chain = f"{others} LEFT JOIN (SELECT smoker, COUNT(*) AS o FROM people GROUP BY smoker) c USING (smoker)"
    told = answer(shell, f"SELECT {shown}, smoker, n / m + o AS part FROM {chain} WHERE sex <> 'x'", tables)
    assert told.rows
    assert all(low[2] is not None for low in told.lows), told.reasons


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"SELECT n FROM ({BY_TOWN}) UNION SELECT n + 1 FROM ({BY_TOWN})", "no_row_identity"),
        (f"SELECT DISTINCT n * 2 FROM ({BY_TOWN})", "no_row_identity"),
        (f"SELECT SUM(n) FROM (SELECT n FROM ({BY_HIDDEN}) ORDER BY n DESC LIMIT 2)", "chosen_by_noise"),
        (f"SELECT SUM(n) FROM (SELECT n FROM ({BY_TOWN}) WHERE n > 100)", "chosen_by_noise"),
        (f"SELECT COUNT_IF(n > 100) FROM ({BY_TOWN})", "not_linear"),
        (f"SELECT COUNT(*) FILTER (WHERE n > 100) FROM ({BY_TOWN})", "chosen_by_noise"),
        (f"SELECT STDDEV(n) FROM ({BY_TOWN})", "not_linear"),
        (f"SELECT SUM(n * n) FROM ({BY_TOWN})", "not_linear"),
        (f"SELECT ABS(n - 100) FROM ({BY_TOWN})", "not_linear"),
        (f"SELECT n / MAX(n) OVER () FROM ({BY_TOWN})", "not_linear"),
        (f"SELECT n / SUM(n) OVER () FROM ({BY_TOWN}) WHERE n > 1", "chosen_by_noise"),
        (f"SELECT CAST(n AS VARCHAR) FROM ({BY_TOWN})", "not_a_number"),
        (
            f"SELECT CASE WHEN EXISTS (SELECT 1 FROM ({BY_TOWN}) u WHERE u.n > 1) THEN 1 ELSE 0 END FROM ({BY_TOWN})",
            "chosen_by_noise",
        ),
    ],
)
def test_what_simulation_cannot_know_has_a_reason_instead_of_an_interval(
    shell: ShellEngine, sql: str, code: str
) -> None:
    """Null with the reason: every code has its sentence."""
    told = answer(shell, sql, [counted(core(4), [100, 110, 120, 130], "laplace", seed=8)])
    assert told.rows
    assert {low[-1] for low in told.lows} == {None}
    assert {reason.code for reason in told.reasons} == {code}
    assert NoInterval(code).said


@pytest.mark.slow
def test_a_share_has_an_interval_as_far_as_its_draws_reach(shell: ShellEngine) -> None:
    """A quotient is simulated: it covers at 95 and 99 %, and says at 99.99 % that the draws do not reach it."""
    counts = [300, 200, 400, 100]
    sql = f"SELECT sex, n / SUM(n) OVER () AS share FROM ({BY_TOWN})"
    truth = {key(i): one / 1000 for i, one in enumerate(counts)}
    for level in ("0.95", "0.99"):
        covered = trials = 0
        for seed in range(24):
            told = answer(shell, sql, [counted(core(4), counts, "laplace", seed=seed, confidence=level)], level)
            assert told.methods == (None, "simulated")
            found, cells = hits(told, 1, lambda row: truth[row[0]])
            covered, trials = covered + found, trials + cells
        assert covered >= least_covered(trials // 3, level) * 3 - 6
    many = counted(core(200), [100] * 200, "laplace", seed=9, confidence="0.9999")
    told = answer(shell, sql, [many], "0.9999")
    assert {reason.code for reason in told.reasons} == {"too_few_draws"}


@pytest.mark.slow
def test_an_error_bar_costs_a_bounded_number_of_rows(shell: ShellEngine) -> None:
    """Whatever the confidence, bounds and simulation together read at most 80,000 rows beside the answer's own."""
    read: list[int] = []

    class Counting:
        def run(self, tables: Sequence[ShellTable], *arguments: Any, **named: Any) -> Any:
            read.append(sum(len(table.columns[0].values) for table in tables))
            return shell.run(tables, *arguments, **named)

    sql = (
        "SELECT sex, n * 2.0, RANK() OVER (ORDER BY n), SUM(n) OVER (ORDER BY sex), n / SUM(n) OVER (), "
        f"MAX(n) OVER () FROM ({BY_TOWN})"
    )
    for cells in (1, 30, 130, 1000, 30_000):
        for level in ("0.95", "0.9999"):
            read.clear()
            table = counted(core(cells), [100] * cells, "laplace", seed=10, confidence=level)
            told = answer(shell, sql, [table], level, engine=Counting())
            assert sum(read) - cells <= 80_000 + 4 * cells
            for place in range(1, 6):
                known = {reason.column for reason in told.reasons}
                assert place in known or told.lows[0][place] is not None
            assert np.all([cell is None or math.isfinite(cell) for row in told.lows for cell in row])


def test_an_average_through_the_shell_has_its_own_interval(shell: ShellEngine) -> None:
    """`AVG(age) / 12` is one released number: its ends, divided. At 99.99 % too, and where there is no row at all."""
    described = CoreStatistics(
        "c0",
        Keys((KeyColumn("k0", ColumnType.TEXT),), ((key(0),), (key(1),)), 1),
        (moments("s0", degree=1),),
        (Estimate("a0", AggregateFunction.AVERAGE, "s0"),),
    )
    exact = Exact(keys={"k0": [key(0)]}, sums={"s0_0": [60_000], "s0_1": [40_000]}, rows=1)
    calibration = calibrate([described], PRICES["laplace"])
    table = release(described, calibration, exact, bits=SeededBits(11), confidence=Fraction("0.9999"))
    told = answer(shell, "SELECT sex, AVG(age) / 12 AS m FROM people GROUP BY sex", [table], "0.9999")
    column = table.columns[1]
    for row in range(2):
        assert told.lows[row][1] == pytest.approx(float(column.lows[row] or 0) / 12)
        assert told.highs[row][1] == pytest.approx(float(column.highs[row] or 0) / 12)


def test_a_percentile_within_a_group_has_the_interval_of_the_median(shell: ShellEngine) -> None:
    """PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n) is MEDIAN(n): it was simulated like a function of one row."""
    table = counted(core(6), [100, 200, 300, 400, 500, 600], "laplace", seed=12)
    sql = f"SELECT MEDIAN(n) AS m, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n) AS p FROM ({BY_TOWN})"
    told = answer(shell, sql, [table])
    ((median, percentile),) = told.rows
    assert median == percentile
    ((low, other_low),), ((high, other_high),) = told.lows, told.highs
    assert (low, high) == (other_low, other_high)
    assert low < median < high
    hidden = counted(core(6, selected=True), [1000, 2000, 3000, 4000, 5000, 6000], "gaussian", seed=12)
    told = answer(shell, sql, [hidden])
    assert told.lows == [[None, None]]
