"""What keeps a stream, or a monitor, to what it was charged for: each guard by a case that nothing else refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from accountant.errors import LedgerError
from privacy.bounds import AskedContribution
from privacy.norms import NormPower
from privacy.refusal import Refused
from privacy.statistic import CoreStatistics
from privacy.unit import Neighbouring
from server.journey.query import Prepared
from server.monitors.shape import compared_sum
from server.question import plain_question
from server.streams.cells import sums_of
from tests.journey.clinic import DATASET, attach, clinic_in
from tests.journey.watched import Clinic

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
SALARIES = "SELECT CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS a, SUM(salary) FROM people GROUP BY a"
VISITS = "SELECT CASE WHEN cost < 100 THEN 'low' ELSE 'high' END AS c, COUNT(*) FROM visits GROUP BY c"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic with analysts of the tests' own."""
    home = tmp_path_factory.mktemp("guards")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


def opened(clinic: Clinic, who: str, sql: str) -> str:
    """A stream of the cells of a text."""
    body = {"dataset": "clinic", "sql": sql, "epsilon": "20", "updates": 2, "queries": 20}
    made = clinic.call(who, "POST", "/v1/streams", body)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def ask(clinic: Clinic, who: str, stream: str) -> Any:
    """The sum of all cells."""
    return clinic.call(who, "POST", f"/v1/streams/{stream}/queries", {"queries": [{"where": []}]})


def prepared(clinic: Clinic, sql: str, contribution: AskedContribution | None = None) -> Prepared:
    """A text as the journey prepares it."""
    dataset = clinic.services.catalogue.get("clinic")
    assert dataset is not None
    asked = plain_question(
        principal="ann", dataset="clinic", sql=sql, account=None, contribution=contribution, body_hash="0" * 64
    )
    found = clinic.services.journey.preparing.prepare(asked, dataset, NormPower.L1)  # type: ignore[attr-defined]
    assert isinstance(found, Prepared)
    return found


def of_replacing(found: Prepared) -> Prepared:
    """The same with sensitivities about a unit whose rows are replaced."""
    (core,) = found.cores
    described: CoreStatistics = core.described
    (one,) = described.statistics
    other = replace(one, sensitivity=replace(one.sensitivity, relation=Neighbouring.REPLACE_ONE))
    return replace(found, cores=(replace(core, described=replace(described, statistics=(other,))),))


@pytest.mark.parametrize(
    ("check", "sql"), [(sums_of, VISITS), (compared_sum, "SELECT COUNT(*) FROM visits")], ids=["stream", "monitor"]
)
def test_chosen_norms_and_other_relations_are_refused_in_their_own_words(
    clinic: Clinic, check: Callable[[Prepared], object], sql: str
) -> None:
    """Shows that a sum whose bound would be chosen from the data is refused as that, and so is one whose sensitivity is
    about another relation than the one that sessions are proved for."""
    chosen = prepared(clinic, sql, AskedContribution(automatic=True))
    assert any(chosen.histograms)
    with pytest.raises(Refused) as refused:
        check(chosen)
    assert "chosen from the data" in refused.value.findings[0].why
    bounded = AskedContribution(rows_per_unit=4, groups_per_unit=4, rows_per_unit_and_group=4)
    plain = prepared(clinic, sql, bounded)
    check(plain)
    with pytest.raises(Refused) as refused:
        check(of_replacing(plain))
    assert "added or removed" in refused.value.findings[0].why


def test_cells_of_other_declarations_are_not_compared(clinic: Clinic) -> None:
    """Shows that a stream whose groups stand in another order by now, or whose units are worth another step, compares
    nothing: its answers would be of other cells, or in another unit."""
    ann, _ = clinic.somebody()
    groups, steps = opened(clinic, ann, BY_SEX), opened(clinic, ann, SALARIES)
    clinic.path.write_text(DATASET.replace("[female, male]", "[male, female]").replace("100000]", "50000]"))
    attach(clinic.services, clinic.path)
    try:
        for stream in (groups, steps):
            told = ask(clinic, ann, stream)
            assert (told.status_code, told.json()["code"]) == (403, "policy_forbids"), told.text
            assert clinic.call(ann, "GET", f"/v1/streams/{stream}").json()["compared"] == 0
    finally:
        clinic.path.write_text(DATASET)
        attach(clinic.services, clinic.path)
    assert ask(clinic, ann, groups).status_code == 200


def test_a_ledger_that_takes_nothing_lets_nothing_be_compared(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that while the ledger is behind its mark no query of a stream reads a row or is counted: what was charged
    for it may be among the entries that are lost."""
    ann, _ = clinic.somebody()
    stream = opened(clinic, ann, BY_SEX)
    monkeypatch.setattr(clinic.services.ledger, "_behind", {"sequence": 1})
    refused = ask(clinic, ann, stream)
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable"), refused.text
    monkeypatch.undo()
    assert clinic.call(ann, "GET", f"/v1/streams/{stream}").json()["compared"] == 0
    assert ask(clinic, ann, stream).status_code == 200


_MONITOR = {"sql": "SELECT COUNT(*) FROM people", "threshold": "1", "epsilon": "20", "hits": 1, "evaluations": 5}


@pytest.mark.parametrize(
    ("path", "body", "asked", "below"),
    [
        ("streams", {"sql": BY_SEX, "epsilon": "20", "queries": 20}, {"queries": [{"where": []}]}, "queries"),
        ("monitors", _MONITOR, {}, "evaluations"),
    ],
)
def test_a_session_whose_opening_is_not_settled_reads_nothing(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], asked: Any, below: str
) -> None:
    """Shows that where the ledger has no charge that stands, whatever else is stored of it, no row is compared."""
    ann, _ = clinic.somebody()
    private = clinic.services.streams.resources.private  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setattr(clinic.services.ledger, "post", _fails)
        failed = clinic.call(ann, "POST", f"/v1/{path}", {"dataset": "clinic", **body})
    assert failed.status_code == 500, failed.text
    (found,) = clinic.call(ann, "GET", f"/v1/{path}").json()[path]
    assert found["status"] == "failed_charged"
    monkeypatch.setattr(private, "lease", _fails)
    refused = clinic.call(ann, "POST", f"/v1/{path}/{found['id']}/{below}", asked)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict"), refused.text


def _fails(*given: object, **named: object) -> None:
    raise LedgerError("it takes nothing")
