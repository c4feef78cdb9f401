"""A width without a stored histogram: two charges, said before the first one, and what happens between them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.account import FilterKind
from accountant.errors import BudgetExhausted
from accountant.request import Reuse
from accountant.states import QueryStatus
from privacy.composition import compose
from privacy.loss import Loss
from privacy.refusal import ExecutionFailed, Refused
from privacy.statement import Statement
from server.errors import SumsRefused
from server.floor import Floor
from server.journey.query import ToRun
from server.services import Services
from tests.journey.clinic import attach, question, services_of
from tests.journey.norm_clinic import HEAVY, PEOPLE, auto_clinic, write_auto_clinic
from tests.journey.test_norms import WARD, analyst, ask, foreseen, statements

ROWS = (PEOPLE - HEAVY) * 5 // 2 + HEAVY * 150
_PLACES = itertools.count()


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Services with the clinic whose bounds are chosen."""
    with auto_clinic(tmp_path_factory.mktemp("two")) as (services, _):
        yield services


def wish(width: int, **options: Any) -> dict[str, Any]:
    """A half width in place of a spend."""
    return {"epsilon": None, "half_width": Fraction(width), **options}


def shape() -> str:
    """A question whose histogram nobody bought yet."""
    return f"SELECT ward, COUNT(*) AS n FROM visits WHERE cost <> {1000 - next(_PLACES)} GROUP BY ward"


@pytest.mark.parametrize("kind", list(FilterKind))
def test_both_charges_are_said_before_and_after(clinic: Services, kind: FilterKind) -> None:
    """Shows an estimate that names both, an answer that lists both and keeps the width, and a ledger that has both."""
    who, sql = analyst(clinic, kind=kind), shape()
    before = foreseen(clinic, sql, who, **wish(400))
    (said,) = [one for one in before["warnings"] if one["code"] == "two_charges"]
    assert before["price"]["epsilon"] in said["why"]
    assert before["price"]["then_at_most"] == {"epsilon": "100"}
    assert [part["for"] for part in before["price"]["parts"]] == ["norm_histograms"]
    assert before["columns"][1]["half_width"] is None
    answer = ask(clinic, sql, who, **wish(400))
    assert answer["highs"][0][1] - answer["lows"][0][1] <= 802
    # Near the truth, less what the norm of the default spend cuts of the heavy units.
    assert 0.3 * ROWS < sum(row[1] for row in answer["rows"]) < 1.3 * ROWS
    parts = answer["accounting"]["parts"]
    assert [(part["for"], part["charge"]) for part in parts] == [("norm_histograms", 1), ("sums", 2)]
    assert parts[0]["epsilon"] == before["price"]["epsilon"]
    assert parts[0]["query"] == answer["id"] != parts[1]["query"]
    (charged,) = answer["accounting"]["charged"]
    total = sum(Decimal(part["epsilon"]) for part in parts)
    assert abs(total - Decimal(charged["epsilon"])) < Decimal("0.00001")
    assert not answer["accounting"]["reused"]
    assert len(answer["provenance"]["releases"]) == 2
    (norm,) = answer["provenance"]["norms"]
    assert norm["source"] == "chosen"
    (account,) = clinic.ledger.accounts(dataset="wards", principal=who)
    assert abs(Decimal(str(float(account.remaining_epsilon()))) + total - 1000) < Decimal("0.001")
    records = clinic.ledger.queries(who, after=None, count=10)
    assert {record.state for record in records} == {QueryStatus.SETTLED}
    assert {record.id for record in records} == {part["query"] for part in parts}
    assert clinic.ledger.audit().ok


def test_the_second_time_it_is_one_charge_and_then_none(clinic: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows what the first charge leaves behind: its histogram serves narrower widths, and the same one is free."""
    who, sql = analyst(clinic), shape()
    first = ask(clinic, sql, who, **wish(400))
    seen = statements(clinic, monkeypatch)
    again = ask(clinic, sql, who, **wish(400))
    assert again["accounting"]["charged"] == []
    assert again["rows"] == first["rows"]
    assert seen == []
    assert foreseen(clinic, sql, who, **wish(400))["verdict"] == "free"
    narrower = foreseen(clinic, sql, who, **wish(100))
    assert narrower["price"]["then_at_most"] is None
    assert not [one for one in narrower["warnings"] if one["code"] == "two_charges"]
    answer = ask(clinic, sql, who, **wish(100))
    assert len(seen) == 1
    assert [part["for"] for part in answer["accounting"]["parts"]] == ["sums"]
    assert answer["provenance"]["norms"][0]["norm"] == first["provenance"]["norms"][0]["norm"]


def test_a_width_that_costs_too_much_keeps_the_first_charge_alone(
    clinic: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the refusal between the charges: the sums are neither charged nor read, the histogram is stored."""
    who, sql = analyst(clinic), shape()
    seen = statements(clinic, monkeypatch)
    price = foreseen(clinic, sql, who, **wish(30, at_most=Fraction(1, 100)))["price"]
    assert price["then_at_most"] == {"epsilon": "0.01"}
    with pytest.raises(SumsRefused) as refused:
        ask(clinic, sql, who, **wish(30, at_most=Fraction(1, 100)))
    problem = refused.value.problem
    assert (problem.code, problem.charged) == ("accuracy_unreachable", True)
    assert "spend at most 0.01" in problem.finding.why
    assert "stored" in problem.finding.why
    assert len(seen) == 1
    (record,) = clinic.ledger.queries(who, after=None, count=10)
    assert record.state is QueryStatus.FAILED_CHARGED
    assert 0 <= float(price["epsilon"]) - float(record.charged[0].epsilon) < 2e-6  # what is spent is rounded up
    # Of a width that is surely affordable: the norm may have turned out large.
    assert foreseen(clinic, sql, who, **wish(400))["price"]["then_at_most"] is None
    with pytest.raises(Refused):
        ask(clinic, sql, who, **wish(30, at_most=Fraction(1, 100)))
    assert len(seen) == 1


def test_what_no_norm_makes_affordable_is_refused_before_any_charge(clinic: Services) -> None:
    """Shows that a width below the noise of the least norm, or of a column without one, costs nothing."""
    who = analyst(clinic)
    for sql, options in (
        (shape(), wish(1, at_most=Fraction(1, 1000))),
        ("SELECT AVG(cost) FROM visits", wish(5)),
    ):
        with pytest.raises(Refused) as refused:
            ask(clinic, sql, who, **options)
        assert refused.value.findings[0].code == "accuracy_unreachable"
        with pytest.raises(Refused):
            foreseen(clinic, sql, who, **options)
    assert clinic.ledger.queries(who, after=None, count=10) == []


def test_an_account_that_cannot_pay_the_second_charge(clinic: Services) -> None:
    """Shows the words where the sums cost more than is left: what was charged and what was not."""
    who, sql = analyst(clinic, epsilon="2"), shape()
    with pytest.raises(SumsRefused) as refused:
        ask(clinic, sql, who, **wish(3))
    assert refused.value.problem.code in ("budget_exhausted", "accuracy_unreachable")
    assert refused.value.problem.charged
    assert [record.state for record in clinic.ledger.queries(who, after=None, count=9)] == [QueryStatus.FAILED_CHARGED]
    poor = analyst(clinic, epsilon="0.0001")
    with pytest.raises((BudgetExhausted, Refused)):
        ask(clinic, shape(), poor, **wish(400))


def test_a_retry_is_charged_once_and_gets_the_same_bytes(clinic: Services) -> None:
    """Shows that the Idempotency-Key stands for both charges."""
    who = analyst(clinic)
    asked = question(shape(), who, dataset="wards", idempotency_key="k1", **wish(400))
    first = clinic.journey.admit(asked)
    assert isinstance(first, ToRun)
    answer = clinic.journey.complete(first)
    second: Any = clinic.journey.admit(asked)
    assert second.answer == answer
    assert len(clinic.ledger.queries(who, after=None, count=9)) == 2


def test_a_cancel_before_the_start_gives_the_first_charge_back(clinic: Services) -> None:
    """Shows that a query of two charges is voided like any other."""
    who = analyst(clinic)
    admitted = clinic.journey.admit(question(shape(), who, dataset="wards", **wish(400)))
    assert isinstance(admitted, ToRun)
    assert clinic.journey.cancel(admitted.query_id, who) is QueryStatus.FAILED_VOID
    with pytest.raises(ExecutionFailed) as failed:
        clinic.journey.complete(admitted)
    assert not failed.value.started
    (account,) = clinic.ledger.accounts(dataset="wards", principal=who)
    assert account.remaining_epsilon() == 1000


@pytest.mark.parametrize("place", [1, 2])
def test_a_failure_in_either_run_keeps_what_was_charged(
    clinic: Services, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """Shows one opaque outcome; after the second statement failed the histogram stays stored."""
    who, sql = analyst(clinic), shape()
    private: Any = clinic.journey.running._private  # type: ignore[attr-defined]
    run, seen = private.run, []

    def failing(*given: Any, **options: Any) -> Any:
        seen.append(1)
        if len(seen) == place:
            raise ExecutionFailed
        return run(*given, **options)

    monkeypatch.setattr(private, "run", failing)
    with pytest.raises(ExecutionFailed) as failed:
        ask(clinic, sql, who, **wish(400))
    assert failed.value.started
    assert not isinstance(failed.value, SumsRefused)
    monkeypatch.setattr(private, "run", run)
    states = [record.state for record in clinic.ledger.queries(who, after=None, count=9)]
    assert states == [QueryStatus.FAILED_CHARGED] * place
    known = foreseen(clinic, sql, who, **wish(400))["price"]["then_at_most"] is None
    assert known == (place == 2)


def test_a_first_charge_is_never_none(clinic: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows it where another question stored the histogram between price and reservation.

    A first query without a charge would be void when the second one fails, and say that nothing was charged.
    """
    who, sql = analyst(clinic), shape()
    admission: Any = clinic.journey.admission
    first_priced, private = admission._first_priced, clinic.journey.running._private  # type: ignore[attr-defined]

    def failing(*_: Any, **__: Any) -> Any:
        raise ExecutionFailed

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(admission, "_first_priced", first_priced)
        with monkeypatch.context() as other:
            other.setattr(admission, "second", failing)
            with pytest.raises(ExecutionFailed):
                ask(clinic, sql, who, **wish(400))
        return first_priced(*given)

    monkeypatch.setattr(admission, "_first_priced", meanwhile)
    admitted = clinic.journey.admit(question(sql, who, dataset="wards", **wish(400)))
    assert isinstance(admitted, ToRun)
    assert not admitted.asked.histograms_only
    assert admitted.paid.charged
    monkeypatch.setattr(private, "run", failing)
    with pytest.raises(ExecutionFailed) as failed:
        clinic.journey.complete(admitted)
    assert failed.value.started
    states = [record.state for record in clinic.ledger.queries(who, after=None, count=9)]
    assert states == [QueryStatus.FAILED_CHARGED] * 2


def test_no_lease_ends_with_tables_that_its_worker_would_die_with(
    clinic: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the histogram of a first charge keeps nothing for sums, which are read in another lease.

    A worker that has tables at the end of its lease is ended: a question would cost whoever comes next its start.
    """
    private: Any = clinic.journey.running._private  # type: ignore[attr-defined]
    run, last = private.run, {}

    def seen(snapshot: Path, statement: Statement, **options: Any) -> Any:
        last[id(options["lease"])] = options["lease"], statement.shared
        return run(snapshot, statement, **options)

    monkeypatch.setattr(private, "run", seen)
    ask(clinic, shape(), analyst(clinic), **wish(400))
    ask(clinic, shape(), analyst(clinic))
    assert len(last) == 3
    assert all(shared is None or not shared.kept for _, shared in last.values())


@pytest.mark.slow
def test_the_first_charge_takes_as_much_as_a_run_must(tmp_path: Path) -> None:
    """Shows the floor: where a share of the default spend would be below it, the histogram takes more."""
    path = write_auto_clinic(tmp_path / "sources")
    path.write_text(path.read_text().replace('epsilon_default: "1"', 'epsilon_default: "0.0001"'))
    with services_of(tmp_path) as services:
        attach(services, path)
        admitted = services.journey.admit(question(WARD, analyst(services), dataset="wards", **wish(4000)))
        assert isinstance(admitted, ToRun)
        (charge,) = admitted.asked.charges
        root = next(account for account in services.ledger.accounts(dataset="wards") if account.parent is None)
        dataset = services.catalogue.get("wards")
        assert dataset is not None
        loss = compose(charge.events)
        assert Floor.of(dataset, root).missing(loss) <= 1
        halved = Loss(pure=loss.pure, delta=loss.delta, rho=loss.rho, mu_squared=(loss.mu_squared or 0) / 4)
        assert Floor.of(dataset, root).missing(halved) > 1
        assert services.journey.complete(admitted)


@pytest.mark.slow
def test_what_the_first_charge_read_of_others_is_no_part_of_what_was_measured(tmp_path: Path) -> None:
    """Shows that an answer lists no parts where one of its charges was for reading what another analyst paid for."""
    with auto_clinic(tmp_path, shared="charged") as (services, _):
        ask(services, WARD, analyst(services), **wish(400))
        answer = ask(services, WARD, analyst(services), reuse=Reuse.ANY, **wish(400))
        assert len(answer["accounting"]["charged"]) == 1
        assert answer["accounting"]["parts"] == []


@pytest.mark.slow
def test_what_was_read_of_others_is_not_given_back_where_the_second_run_never_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The price of the second charge, which its void entry in the ledger shows, follows from the histogram."""
    with auto_clinic(tmp_path, shared="charged") as (services, _):
        ask(services, WARD, analyst(services), **wish(400))
        private: Any = services.journey.running._private  # type: ignore[attr-defined]

        def unstarted(**_: Any) -> Any:
            raise ExecutionFailed(started=False)

        who = analyst(services)
        monkeypatch.setattr(private, "lease", unstarted)
        with pytest.raises(ExecutionFailed) as failed:
            ask(services, WARD, who, reuse=Reuse.ANY, **wish(400))
        assert failed.value.started
        states = {record.state for record in services.ledger.queries(who, after=None, count=9)}
        assert states == {QueryStatus.FAILED_CHARGED, QueryStatus.FAILED_VOID}
