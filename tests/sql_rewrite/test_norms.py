"""Cores whose units are scaled to norms: which norms there are, their histograms, and the same core at chosen norms."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from privacy.bounds import AskedContribution, AutomaticContribution, ContributionBound, ValueBounds
from privacy.norms import BINS, NORM_GRAIN, NORM_MAX, NormOf, NormPower
from privacy.policy import ROWS_STORED_MOST, Dataset, Table
from privacy.refusal import Refused
from privacy.statistic import StatisticKind
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.contribution import WEIGHED_GROUPS_MOST, WEIGHED_LONG_MOST, Contribution, NormedContribution
from sql_rewrite.cost import work_of
from sql_rewrite.kept_totals import kept_totals, total_of
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.normed import PARTS_LEAST, PARTS_MOST, WEIGHT_PARTS, parts_at
from sql_rewrite.norms import at_norms, lower_norms, norm_core, norm_key
from sql_rewrite.plan_key import core_key
from sql_rewrite.statement_columns import UNITS_MAX
from sql_rewrite.stored_norms import known_norms
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC

REGIONS = "FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY 1"
SEXES = "FROM visits v JOIN people p USING (person_id) GROUP BY 1"


def core(sql: str, power: NormPower = NormPower.L2, dataset: Dataset = AUTOMATIC) -> BoundedCore:
    """The only core of a query."""
    (found,) = bound(lift(sql, dataset), power=power)
    return found


def chosen(bounded: BoundedCore, norm: Fraction) -> BoundedCore:
    """The core with all its norms at one number."""
    return at_norms(bounded, {item.norm.name: norm for item in bounded.norms})


@pytest.mark.parametrize(
    ("sql", "norms"),
    [
        ("SELECT COUNT(*) AS n, COUNT(cost) AS c, AVG(cost) AS a, STDDEV(cost) AS s FROM visits", ["rows"]),
        ("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits", ["rows", "sum"]),
        ("SELECT COUNT(DISTINCT person_id) AS n FROM visits", []),
        (f"SELECT p.sex, COUNT(DISTINCT v.person_id) AS n {SEXES}", []),
        (f"SELECT h.region, COUNT(DISTINCT v.person_id) AS n {REGIONS}", ["units"]),
        (f"SELECT h.region, COUNT(*) AS n, AVG(v.cost) FILTER (WHERE v.cost > 5) AS m {REGIONS}", ["rows", "rows"]),
        (
            f"SELECT h.region, SUM(v.visit_id) AS s, SUM(v.cost) AS t, AVG(v.cost) AS a {REGIONS}",
            ["rows", "sum", "sum"],
        ),
    ],
)
def test_which_norms_a_core_has(sql: str, norms: list[str]) -> None:
    """One for the rows under each filter, for the units under each, and for each sum; none where each counts once."""
    found = core(sql)
    assert isinstance(found.contribution, NormedContribution)
    assert sorted(item.norm.of.value for item in found.norms) == norms
    assert found.described.norms == tuple(item.norm for item in found.norms)
    histogram = norm_core(found)
    if not norms:
        assert histogram is None
        return
    assert histogram is not None
    assert histogram.name == f"{found.described.name}.norms"
    assert histogram.keys.domain == tuple((place,) for place in range(BINS))
    for statistic, item in zip(histogram.statistics, found.norms, strict=True):
        s = statistic.sensitivity
        assert (statistic.name, s.l0, s.l1, s.l2_squared, s.linf) == (item.norm.name, 1, 1, 1, 1)
    assert [one.name for one in lower_norms(found).sums] == [f"{item.norm.name}_0" for item in found.norms]


HIDDEN = "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT person_id) AS u FROM visits GROUP BY ward"


def keeping(rows: int) -> Dataset:
    """The dataset where a snapshot keeps so many visits of a person."""
    tables = [
        replace(table, rows_stored_per_unit=rows) if table.name == "visits" else table for table in AUTOMATIC.tables
    ]
    return replace(AUTOMATIC, tables=tuple(tables))


@pytest.mark.parametrize(
    "found",
    [
        core("SELECT COUNT(*) AS n FROM people"),
        core(HIDDEN, NormPower.L1),
        core(HIDDEN, dataset=keeping(WEIGHED_LONG_MOST + 1)),
    ],
    ids=["one row", "laplace", "many groups"],
)
def test_units_of_one_row_and_groups_that_cannot_be_weighed_are_counted(found: BoundedCore) -> None:
    """There is nothing to scale where each unit has one row; hidden groups need Gaussian noise, and not too many."""
    assert isinstance(found.contribution, Contribution)
    assert found.norms == ()
    assert norm_core(found) is None
    assert chosen(found, Fraction(3)) is found


def test_hidden_groups_are_selected_by_weights() -> None:
    """Of norm 1 over as many groups as a unit can have, whatever norms are chosen for the sums."""
    found = core(HIDDEN, dataset=keeping(WEIGHED_GROUPS_MOST))
    assert isinstance(found.contribution, NormedContribution)
    keys, by_name = found.described.keys, {item.statistic.name: item.statistic for item in found.statistics}
    assert keys.selection is not None
    selection = by_name[keys.selection]
    s, whole = selection.sensitivity, 2**WEIGHT_PARTS
    assert (selection.kind, selection.norm) == (StatisticKind.WEIGHTS, None)
    assert (keys.domain, keys.groups_per_unit, s.l0) == (None, WEIGHED_GROUPS_MOST, WEIGHED_GROUPS_MOST)
    assert (s.linf, s.l2_squared) == (whole, whole**2)
    assert s.l1**2 >= whole**2 * WEIGHED_GROUPS_MOST
    assert {item.norm.of for item in found.norms} == {NormOf.ROWS, NormOf.UNITS}
    later = {item.statistic.name: item.statistic for item in chosen(found, Fraction(30)).statistics}
    assert later[keys.selection] == selection
    assert "dense_rank" not in lower(found).sql
    assert '"s"' in lower_norms(found).sql


def test_a_sum_of_whole_numbers_needs_no_bounds() -> None:
    """Under a norm it has a range of its own; numbers that are not whole need bounds for their steps."""
    assert core("SELECT SUM(visit_id) AS s FROM visits").norms[0].norm.step == 1
    with pytest.raises(Refused):
        core("SELECT SUM(visit_id) AS s FROM visits", dataset=CLINIC)
    with pytest.raises(Refused):
        core("SELECT AVG(visit_id) AS s FROM visits")


@pytest.mark.parametrize("power", NormPower)
@pytest.mark.parametrize("norm", [NORM_GRAIN, Fraction(1), Fraction(7, 3), Fraction(123_456_789), Fraction(NORM_MAX)])
def test_sensitivities_follow_the_norm(power: NormPower, norm: Fraction) -> None:
    """The norm, in units of a row, is the sensitivity; sums of all units stay within 128 bits, in the statement too."""
    sql = (
        f"SELECT h.region, COUNT(*) AS n, SUM(v.visit_id) AS s, AVG(v.cost) AS a, VARIANCE(v.cost) FILTER (WHERE "
        f"v.cost > 1) AS v, COUNT(DISTINCT v.person_id) AS u {REGIONS}"
    )
    tables = tuple(replace(t, rows_stored_per_unit=ROWS_STORED_MOST) for t in AUTOMATIC.tables)
    found = chosen(core(sql, power, replace(AUTOMATIC, tables=tables)), norm)
    assert isinstance(found.contribution, NormedContribution)
    for item in found.statistics:
        s, encoding = item.statistic.sensitivity, item.statistic.encoding
        assert item.statistic.norm is not None
        assert encoding is not None
        used = found.contribution.norm(item.statistic.norm)
        size = 2**item.parts * (item.row_encoding.highest**item.statistic.degree if item.row_encoding else 1)
        size = size if item.statistic.degree else 2**item.parts
        assert PARTS_LEAST <= item.parts <= PARTS_MOST
        assert s.linf == used * size
        assert s.l2_squared == s.linf**2
        assert s.l1 == s.linf if power is NormPower.L1 else s.linf <= s.l1 <= s.linf * 2
        assert s.l0 == 3 * item.statistic.coordinates
        assert UNITS_MAX * s.linf < 2**127
    assert all(0 < one.bound < 2**127 for one in lower(found).sums)


def test_norms_are_rounded_up_and_held_to_what_a_unit_can_have() -> None:
    """A norm beyond what declarations allow would only add noise."""
    rows = chosen(core("SELECT COUNT(*) AS n FROM visits"), Fraction(NORM_MAX))
    assert isinstance(rows.contribution, NormedContribution)
    assert rows.contribution.norm("n0") == 1_000
    units = chosen(core(f"SELECT h.region, COUNT(DISTINCT v.person_id) AS n {REGIONS}"), Fraction(100))
    assert isinstance(units.contribution, NormedContribution)
    assert 3 <= units.contribution.norm("n0") ** 2 < Fraction(3_01, 100)
    fine = chosen(core("SELECT COUNT(*) AS n FROM visits"), Fraction(1, 3))
    assert isinstance(fine.contribution, NormedContribution)
    assert fine.contribution.norm("n0") == 1366 * NORM_GRAIN


@pytest.mark.parametrize("norm", [Fraction(0), Fraction(-1), Fraction(NORM_MAX) + 1])
def test_a_norm_out_of_range_is_an_error(norm: Fraction) -> None:
    """Nothing is scaled to nothing, and no histogram reaches beyond its last bin."""
    with pytest.raises(ValueError, match="norm"):
        chosen(core("SELECT COUNT(*) AS n FROM visits"), norm)
    with pytest.raises(KeyError):
        at_norms(core("SELECT COUNT(*) AS n FROM visits"), {})


def test_binary_places_of_factors() -> None:
    """Even, 64 bits where twenty places fit them, and never too few for a step of a norm."""
    assert parts_at(Fraction(1), 1) == 30
    assert parts_at(Fraction(2**40), 1) == 22
    assert parts_at(Fraction(32), 2**30) == 26
    assert parts_at(Fraction(32), 2**44) == 30
    assert parts_at(Fraction(2**30), 2**44) == 12


def test_identities_of_histograms_are_of_norms_and_not_of_aggregates() -> None:
    """Equal shapes find one histogram; other rows, cells, filters or powers have another."""

    def key(sql: str, power: NormPower = NormPower.L2, dataset: Dataset = AUTOMATIC) -> str:
        return norm_key(core(sql, power, dataset), dataset)

    mine = key(f"SELECT h.region, COUNT(*) AS n {REGIONS}")
    assert mine == key(f"SELECT h.region, AVG(v.cost) AS a, COUNT(*) AS n {REGIONS}")
    assert mine == key(f"SELECT h.region, COUNT(v.ward) AS n {REGIONS}")
    others = [
        key(f"SELECT h.region, COUNT(*) AS n {REGIONS}", NormPower.L1),
        key(f"SELECT h.region, COUNT(*) FILTER (WHERE v.cost > 3) AS n, COUNT(*) FILTER (WHERE v.cost > 4) {REGIONS}"),
        key(
            "SELECT h.region, COUNT(*) AS n FROM visits v JOIN hospitals h USING (hospital_id) WHERE v.cost > 3 "
            "GROUP BY 1"
        ),
        key(f"SELECT h.region, SUM(v.cost) AS n {REGIONS}"),
        key("SELECT COUNT(*) AS n FROM visits"),
        key(f"SELECT h.region, COUNT(*) AS n {REGIONS}", dataset=replace(AUTOMATIC, data_version="v2")),
    ]
    assert len({mine, *others}) == 1 + len(others)


def test_identities_of_cores_are_of_nominal_norms() -> None:
    """Whatever norm is chosen, the same question finds what is stored; the power and the way of bounding are inside."""
    sql = f"SELECT h.region, COUNT(*) AS n {REGIONS}"
    keys = [core_key(core(sql, power), AUTOMATIC) for power in NormPower] + [
        core_key(core(sql, dataset=CLINIC), CLINIC)
    ]
    assert len(set(keys)) == len(keys)
    with pytest.raises(AssertionError):
        core_key(chosen(core(sql), Fraction(2)), AUTOMATIC)


def test_what_a_request_may_ask() -> None:
    """Automatic bounds where counts are declared, counts where bounds are automatic, and nothing at all."""
    declared, automatic = ContributionBound(40, 4, 15), AutomaticContribution(ContributionBound(40, 4, 15))
    assert AskedContribution(automatic=True).over(declared) == automatic
    assert AskedContribution(automatic=True).over(automatic) == automatic
    assert AskedContribution(rows_per_unit=10).over(automatic) == ContributionBound(10, 4, 10)
    assert AskedContribution().over(automatic) == automatic
    assert AskedContribution().over(declared) == declared
    asked = AUTOMATIC.bounded_by(AskedContribution(groups_per_unit=3))
    assert isinstance(core(f"SELECT h.region, COUNT(*) AS n {REGIONS}", dataset=asked).contribution, Contribution)
    chosen_by = CLINIC.bounded_by(AskedContribution(automatic=True))
    assert core("SELECT COUNT(*) AS n FROM visits", dataset=chosen_by).norms[0].norm.of is NormOf.ROWS
    assert [t.rows_stored for t in chosen_by.tables] == [t.rows_stored for t in CLINIC.tables]


def test_a_sum_has_a_statistic_of_its_own() -> None:
    """Whatever stands beside it: the same estimand always."""
    kinds = {
        text: [item.statistic.kind for item in core(f"SELECT {text} FROM visits").statistics]
        for text in ("SUM(cost)", "SUM(cost), COUNT(*)", "SUM(cost), AVG(cost)", "SUM(cost), STDDEV(cost), COUNT(*)")
    }
    assert all(found.count(StatisticKind.SUM) == 1 for found in kinds.values())
    assert kinds["SUM(cost), STDDEV(cost), COUNT(*)"] == [StatisticKind.MOMENTS, StatisticKind.SUM]


def test_norms_that_a_snapshot_keeps_change_no_identity_and_save_work() -> None:
    """The same question over a snapshot that keeps norms is the same plan, read by another statement."""
    tables = tuple(replace(one, stored_norms=()) if not one.one_row else one for one in AUTOMATIC.tables)
    kept = replace(AUTOMATIC, tables=tables)
    for sql, known in (
        ("SELECT COUNT(*) AS n, AVG(cost) AS a FROM visits", True),
        ("SELECT COUNT(*) AS n FROM visits WHERE cost > 5", False),
        ("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits", False),
        (f"SELECT h.region, COUNT(*) AS n {REGIONS}", False),
    ):
        plain, other = chosen(core(sql), Fraction(7)), chosen(core(sql, dataset=kept), Fraction(7))
        assert core_key(core(sql), AUTOMATIC) == core_key(core(sql, dataset=kept), kept)
        assert (lower(plain) != lower(other)) is known
        assert ('GROUP BY "u"' not in lower(other).sql) is known
        if known:
            before, after = work_of([plain], first=[plain]), work_of([other], first=[other])
            assert after.unit_nanoseconds < before.unit_nanoseconds
            assert after.row_nanoseconds < before.row_nanoseconds
            assert '"unit$first"' in lower_norms(other).sql


def test_norms_in_tables_of_units_change_no_identity_and_save_work() -> None:
    """Histograms read units and not rows, and sums do where each is of norms: of all rows, without groups."""
    tables = tuple(replace(one, stored_norms=()) if not one.one_row else one for one in AUTOMATIC.tables)
    beside = replace(AUTOMATIC, tables=tables)
    own = replace(beside, tables=tuple(replace(one, stored_units=one.stored_norms is not None) for one in tables))
    for sql, of_units in (
        ("SELECT COUNT(*) AS n FROM visits", True),
        ("SELECT AVG(cost) AS a FROM visits", False),
        ("SELECT COUNT(*) AS n, AVG(cost) AS a, VARIANCE(cost) AS v FROM visits", False),
    ):
        rows, units = chosen(core(sql, dataset=beside), Fraction(7)), chosen(core(sql, dataset=own), Fraction(7))
        assert core_key(core(sql, dataset=beside), beside) == core_key(core(sql, dataset=own), own)
        assert ('"visits$sizes"' in lower(units).sql) is of_units
        assert '"visits$sizes"' in lower_norms(units).sql
        assert "$sizes" not in lower(rows).sql + lower_norms(rows).sql
        before, after = work_of([rows], first=[rows]), work_of([units], first=[units])
        assert after.unit_nanoseconds <= before.unit_nanoseconds
        assert after.row_nanoseconds < before.row_nanoseconds
    units = "SELECT COUNT(DISTINCT person_id) AS n FROM visits"
    assert '"visits$units"' in lower(core(units, dataset=own)).sql
    assert "$units" not in lower(core(units + " WHERE cost > 5", dataset=own)).sql
    median = "SELECT MEDIAN(cost) AS m FROM visits"
    assert lower(core(median, dataset=own)) == lower(core(median, dataset=beside))
    assert work_of([core(median, dataset=own)]) == work_of([core(median, dataset=beside)])


def test_totals_that_a_snapshot_keeps_are_those_of_the_same_values() -> None:
    """A sum of the stored column in its bounds is known, whatever stands beside it; every other one is not."""
    bounded = AUTOMATIC.bounded_by(AskedContribution(automatic=True))
    tables = tuple(replace(one, stored_norms=()) if not one.one_row else one for one in bounded.tables)
    plain = replace(bounded, tables=tables)
    totals = kept_totals(plain)
    assert totals
    kept = replace(plain, tables=tuple(replace(one, stored_totals=totals.get(one.name, ())) for one in tables))
    for sql, known in (
        ("SELECT SUM(cost) AS s FROM visits", True),
        ("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits", True),
        ("SELECT SUM(cost) FILTER (WHERE cost > 5) AS s FROM visits", False),
        ("SELECT SUM(LEAST(cost, 5)) AS s FROM visits", False),
        ("SELECT SUM(cost) AS s FROM visits WHERE cost > 5", False),
    ):
        before, after = core(sql, dataset=plain), core(sql, dataset=kept)
        assert core_key(before, plain) == core_key(after, kept)
        assert (known_norms(after) is not None) is known
        assert known_norms(before) is None
    filtered = core("SELECT SUM(cost) AS s FROM visits WHERE cost > 5", dataset=kept)
    (source,) = filtered.core.sources
    earlier = replace(filtered.core, sources=(replace(source, only=filtered.core.where),), where=None)
    assert known_norms(replace(filtered, core=earlier)) is None, "a condition before joins leaves rows out too"
    narrower = replace(
        kept, tables=tuple(_with_bounds(one, "cost", ValueBounds(Fraction(0), Fraction(7))) for one in kept.tables)
    )
    assert known_norms(core("SELECT SUM(cost) AS s FROM visits", dataset=narrower)) is None


def test_totals_of_values_below_zero_are_not_kept() -> None:
    """Shows that a total of such values, which is less than the sum of their sizes, is neither kept nor taken."""
    bounded = AUTOMATIC.bounded_by(AskedContribution(automatic=True))
    for least, kept in ((Fraction(0), True), (Fraction(-1), False)):
        bounds = ValueBounds(least, Fraction(7))
        dataset = replace(bounded, tables=tuple(_with_bounds(one, "cost", bounds) for one in bounded.tables))
        totals = [total for listed in kept_totals(dataset).values() for total in listed if not total.values]
        assert ("cost" in {total.column for total in totals}) is kept
        (norm,) = core("SELECT SUM(cost) AS s FROM visits", dataset=dataset).norms
        assert (total_of(norm.argument, norm.encoding, 100) is not None) is kept


def _with_bounds(table: Table, name: str, bounds: ValueBounds) -> Table:
    columns = [replace(one, bounds=bounds) if one.name == name else one for one in table.columns]
    return replace(table, columns=tuple(columns))
