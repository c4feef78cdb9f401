"""A stored histogram of norms serves only questions about the rows, groups and data that it is of; planted bugs.

Questions of one analyst follow each other. Whatever histogram an answer names is compared with the exact histogram of
the question that was asked, on the data that it was asked of: the noise is small, so one of other rows is noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privacy.policy import Dataset
from privacy.statistic import Keys
from server.answer_rows import from_stored
from server.journey import preparing
from server.journey.query import Prepared
from server.services import Services
from sql_rewrite.bound import BoundedCore
from sql_rewrite.contribution import NormedContribution
from tests.journey.clinic import attach, open_account, question
from tests.journey.norm_clinic import auto_clinic, write_auto_clinic

WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
JOINED = "SELECT p.sex, COUNT(*) AS n FROM visits v JOIN people p ON v.person_id = p.person_id GROUP BY p.sex"
QUESTIONS = [
    WARD,
    WARD.replace("COUNT(*)", "AVG(cost)"),
    WARD.replace(" GROUP", " WHERE cost > 450 GROUP"),
    WARD.replace(" GROUP", " WHERE cost > 451 GROUP"),
    WARD.replace("AS n", "FILTER (WHERE cost > 450) AS n, SUM(cost) AS s"),
    WARD.replace("AS n", "FILTER (WHERE cost < 50) AS n, SUM(cost) AS s"),
    "SELECT COUNT(*) AS n FROM visits",
    JOINED,
    JOINED.replace("p.sex, ", "v.ward, ").replace("BY p.sex", "BY v.ward"),
    JOINED.replace("p.sex, ", "v.ward, ").replace("GROUP BY p.sex", "WHERE p.sex = 'female' GROUP BY v.ward"),
    "SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward",
    "SELECT ward, SUM(-cost) AS s FROM visits GROUP BY ward",
    "SELECT ward, SUM(1000 - cost) AS s FROM visits GROUP BY ward",
    "SELECT ward, SUM(cost * 4) AS s FROM visits GROUP BY ward",
    "SELECT ward, COUNT(DISTINCT person_id) AS u FROM visits GROUP BY ward",
    "SELECT town, COUNT(*) AS n FROM visits GROUP BY town",
]
FAR = 8
"""Standard deviations."""

_NAMES = iter(range(1_000))


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services with the clinic whose bounds are chosen."""
    with auto_clinic(tmp_path_factory.mktemp("serve")) as (services, _):
        yield services


def misfits(services: Services, sql: str, who: str) -> tuple[list[str], int]:
    """Histograms of an answer that are not of its question and its data, and how many it names."""
    journey: Any = services.journey
    admitted = journey.admit(question(sql, who, dataset="wards", epsilon="40"))
    journey.complete(admitted)
    prepared: Prepared = admitted.asked.prepared
    family = admitted.asked.priced.family
    snapshot = journey.running._served.snapshot(services.catalogue.get("wards"))
    keys = {histogram.release_key(family): histogram for histogram in prepared.histograms if histogram is not None}
    made = services.ledger.releases_of(admitted.query_id)
    used = {release.core_key: release for release in (*made, *admitted.paid.reused.values())}
    wrong, named = [], 0
    for key, histogram in keys.items():
        named += 1
        table = from_stored(used[key].body, "c", Fraction(95, 100))
        bins = next(column.values for column in table.columns if column.name == "bin")
        exact = journey.running._private.run(snapshot, histogram.statement, timeout_seconds=30)
        columns, sums, _ = exact.reveal()
        for told in table.sums or ():
            name = told.measurement.statistic.name
            counts = dict(zip(columns["bin"], sums[f"{name}_0"], strict=True))
            deviation = float(told.measurement.variance()) ** 0.5 * told.measurement.grid
            off = max(
                abs(float(value) * told.measurement.grid - int(counts.get(place, 0))) / deviation
                for place, value in zip(bins, told.values[:, 0].tolist(), strict=True)
            )
            if off > FAR:
                wrong.append(f"{sql}: {name} is {off:.0f} standard deviations off")
    return wrong, named


def asked_in_turn(services: Services) -> Iterator[tuple[list[str], int]]:
    """What is wrong with the histograms of each question of a new analyst, and how many were looked at."""
    services.journey.preparing.forget()  # type: ignore[attr-defined]
    who = f"serve{next(_NAMES)}"
    open_account(services.ledger, who, dataset="wards")
    for sql in QUESTIONS:
        yield misfits(services, sql, who)


@pytest.mark.slow
def test_no_question_reads_the_histogram_of_another(clinic: Services) -> None:
    """Other filters, groups, joins, arguments and steps have histograms of their own; equal shapes share one."""
    for wrong, looked in asked_in_turn(clinic):
        assert not wrong
        assert looked == 1


def without_the_condition(core: BoundedCore) -> BoundedCore:
    """The identity forgets WHERE."""
    return replace(core, core=replace(core.core, where=None))


def without_the_filter(core: BoundedCore) -> BoundedCore:
    """The identity forgets FILTER."""
    return replace(core, norms=tuple(replace(item, filter=None) for item in core.norms))


def without_the_groups(core: BoundedCore) -> BoundedCore:
    """The identity forgets the groups, and in how many of them a unit may be."""
    assert isinstance(core.contribution, NormedContribution)
    described = replace(core.described, keys=Keys(columns=(), domain=((),), groups_per_unit=1))
    contribution = replace(core.contribution, cells=1)
    return replace(core, core=replace(core.core, keys=()), described=described, contribution=contribution, domains=())


def without_the_argument(core: BoundedCore) -> BoundedCore:
    """The identity forgets what a SUM adds up."""
    return replace(core, norms=tuple(replace(item, argument=None) for item in core.norms))


FORGOTTEN = [without_the_condition, without_the_filter, without_the_groups, without_the_argument]


@pytest.mark.slow
@pytest.mark.parametrize("forgets", FORGOTTEN, ids=lambda forgets: forgets.__name__)
def test_an_identity_that_forgets_a_part_is_noticed(
    clinic: Services, monkeypatch: pytest.MonkeyPatch, forgets: Callable[[BoundedCore], BoundedCore]
) -> None:
    """One deliberate bug per part: a histogram of other rows serves, and the comparison says so."""
    right = preparing.norm_key
    monkeypatch.setattr(preparing, "norm_key", lambda core, dataset: right(forgets(core), dataset))
    assert any(wrong for wrong, _ in asked_in_turn(clinic))


@pytest.mark.slow
def test_an_identity_that_forgets_the_data_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where new data are attached: with the genuine identity their histogram is made anew."""
    right = preparing.norm_key

    def forgetful(core: BoundedCore, dataset: Dataset) -> str:
        return right(core, replace(dataset, data_version="any"))

    with auto_clinic(tmp_path) as (services, _):
        open_account(services.ledger, "new", dataset="wards")
        assert misfits(services, WARD, "new") == ([], 1)
        attach(services, write_auto_clinic(tmp_path / "sources", extra=5, people=500))
        assert misfits(services, WARD, "new") == ([], 1)
        monkeypatch.setattr(preparing, "norm_key", forgetful)
        services.journey.preparing.forget()  # type: ignore[attr-defined]
        assert misfits(services, WARD.replace("COUNT(*)", "AVG(cost)"), "new") == ([], 1)
        attach(services, write_auto_clinic(tmp_path / "sources", extra=6, people=900))
        assert misfits(services, WARD.replace("COUNT(*)", "VARIANCE(cost)"), "new")[0]
