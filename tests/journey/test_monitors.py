"""Monitors with real parts, over HTTP: opened for a price, free to evaluate, kept over restarts, refused clearly."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.filter import Branch, FilterKind, alive_branches
from accountant.states import QueryStatus
from mechanisms import gateway
from mechanisms.measurement import Integers
from mechanisms.randomness import BitSource
from mechanisms.sparse_vector import Hit, SparseRun
from privacy.refusal import ExecutionFailed
from server.errors import Problem
from server.monitors.monitors import Evaluation, Monitors
from server.monitors.notices import notice_of
from server.monitors.sealing import SecretState
from server.monitors.terms import Evaluated, EvaluateMonitor
from server.sealing import BATCHES, MONITORS, Seal, SealBroken
from server.store.monitors import EvaluationRow, NotBegun
from tests.journey.clinic import PEOPLE, attach, clinic_in
from tests.journey.watched import COUNT, Clinic, restarted


@pytest.fixture
def clinic(tmp_path: Path) -> Iterator[Clinic]:
    """A clinic of its own."""
    with clinic_in(tmp_path) as (services, path):
        yield Clinic(tmp_path, services, path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose data stay as they are, for tests with analysts of their own."""
    home = tmp_path_factory.mktemp("watched")
    with clinic_in(home) as (services, path):
        yield Clinic(home, services, path)


def test_a_monitor_reports_when_a_count_passes_and_is_over_then(clinic: Clinic) -> None:
    """Shows a whole life: one charge, the same outcome for one version of the data, a hit when it grew, and the end;
    what is asked afterwards is refused and changes nothing."""
    account = clinic.person("ann")
    made = clinic.open("ann")
    assert made.status_code == 201, made.text
    monitor = made.json()["id"]
    assert made.headers["location"] == f"/v1/monitors/{monitor}"
    charged = clinic.spent(account)
    assert 0 < charged <= 2
    first = clinic.evaluate("ann", monitor).json()
    assert (first["outcome"], first["repeated"], first["number"]) == ("not_passed", False, 1)
    again = clinic.evaluate("ann", monitor).json()
    assert again == {**first, "repeated": True}
    clinic.grow(1_000)
    hit = clinic.evaluate("ann", monitor).json()
    assert (hit["outcome"], hit["hits_left"], hit["number"]) == ("passed", 0, 2)
    assert abs(hit["gap"] - 500) < 60
    assert hit["beyond"] is None
    assert clinic.evaluate("ann", monitor).json() == {**hit, "repeated": True}
    clinic.grow(1)
    over = clinic.evaluate("ann", monitor)
    assert (over.status_code, over.json()["code"]) == (409, "conflict")
    shown = clinic.call("ann", "GET", f"/v1/monitors/{monitor}").json()
    assert (shown["status"], shown["evaluations_made"], shown["hits_left"]) == ("closed", 2, 0)
    assert (shown["sql"], shown["threshold"]) == (COUNT, "3500")
    assert [found["number"] for found in shown["passed"]] == [2]
    assert clinic.spent(account) == charged
    assert clinic.services.ledger.audit().findings == ()


def test_opening_is_once_under_a_key(shared: Clinic) -> None:
    """Shows that a repeated request finds the same monitor and pays once, and that another body is refused."""
    ann, account = shared.somebody()
    first = shared.open(ann, key="one")
    charged = shared.spent(account)
    assert shared.open(ann, key="one").json() == first.json()
    assert shared.spent(account) == charged
    other = shared.open(ann, key="one", threshold="3501")
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    assert len(shared.call(ann, "GET", "/v1/monitors").json()["monitors"]) == 1


def test_a_monitor_survives_a_restart_and_its_noise_is_no_plain_text(clinic: Clinic) -> None:
    """Shows that the noise of the threshold is the same after a restart, is not in the database as it is, and that a
    server with another key, and a state that was moved, are refused."""
    clinic.person("ann")
    monitor = clinic.open("ann", evaluations=10).json()["id"]
    row = clinic.row(monitor)
    assert row is not None
    before = SecretState.opened(row.sealed, clinic.monitors.seal, monitor=monitor)
    with sqlite3.connect(clinic.services.settings.database().removeprefix("sqlite:///")) as database:
        dump = "\n".join(database.iterdump())
    assert monitor in dump
    for secret in (f"{before.noise:x}", str(before.noise), f"{before.noise:X}", "FROM people"):
        assert secret not in dump
    with restarted(clinic):
        found = clinic.row(monitor)
        assert found is not None
        assert SecretState.opened(found.sealed, clinic.monitors.seal, monitor=monitor).noise == before.noise
        assert clinic.evaluate("ann", monitor).json()["outcome"] == "not_passed"
        kept, clinic.monitors.seal = clinic.monitors.seal, Seal(b"another secret of this length....", MONITORS)
        clinic.grow(1)
        refused = clinic.evaluate("ann", monitor)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert clinic.call("ann", "GET", f"/v1/monitors/{monitor}").json()["sql"] is None
        clinic.monitors.seal = kept
        assert clinic.evaluate("ann", monitor).json()["outcome"] == "not_passed"


def test_a_sealed_state_belongs_to_its_monitor() -> None:
    """Shows that a state opens under its own name, purpose and key alone, and no two writings are alike."""
    seal, state = Seal(b"x" * 32, MONITORS), SecretState("SELECT 1", "5/2", 2**63 + 1, 64)
    sealed = state.sealed(seal, monitor="m_1")
    read = SecretState.opened(sealed, seal, monitor="m_1")
    assert (read.sql, read.threshold, read.noise, read.length) == ("SELECT 1", "5/2", 2**63 + 1, 64)
    assert sealed != state.sealed(seal, monitor="m_1")
    for other, name, text in (
        (seal, "m_2", sealed),
        (Seal(b"y" * 32, MONITORS), "m_1", sealed),
        (Seal(b"x" * 32, BATCHES), "m_1", sealed),
        (seal, "m_1", sealed[:-1]),
        (seal, "m_1", sealed[:20] + bytes([sealed[20] ^ 1]) + sealed[21:]),
    ):
        with pytest.raises(SealBroken):
            SecretState.opened(text, other, monitor=name)


@pytest.mark.slow
def test_hits_are_answered_for_a_charge_each(shared: Clinic) -> None:
    """Shows numbers of hits: charged when they are released and never before, and left out where nothing is left."""
    ann, account = shared.somebody(epsilon="4")
    made = shared.open(ann, threshold="100", hits=3, stream=True, answer_epsilon="1.5", epsilon="2").json()
    opened = shared.spent(account)
    hit = shared.evaluate(ann, made["id"]).json()
    assert hit["outcome"] == "passed"
    assert abs(hit["beyond"] - (PEOPLE - 100)) < 40
    assert abs(hit["combined"] - (PEOPLE - 100)) < 40
    assert shared.spent(account) > opened
    assert shared.call(ann, "GET", f"/v1/queries/{hit['query']}").status_code == 200
    unpaid = shared.evaluate(ann, made["id"]).json()
    assert (unpaid["outcome"], unpaid["answer_refused"], unpaid["beyond"]) == ("passed", "budget_exhausted", None)
    assert shared.services.ledger.audit().findings == ()


def test_a_stream_compares_other_questions_within_its_terms(shared: Clinic) -> None:
    """Shows questions one after the other in one session, and that one that a unit changes by more is refused."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann, stream=True, hits=2, threshold="1").json()["id"]
    told = [
        shared.evaluate(ann, monitor, sql=f"SELECT COUNT(*) FROM people WHERE age > {age}", threshold="1000").json()
        for age in (150, 88, 20)
    ]
    assert [one["outcome"] for one in told] == ["not_passed", "not_passed", "passed"]
    wider = shared.evaluate(ann, monitor, sql="SELECT COUNT(*) FROM visits", threshold="10")
    assert (wider.status_code, wider.json()["code"]) == (403, "policy_forbids")
    together = shared.evaluate(ann, monitor, sql="SELECT COUNT(DISTINCT ward) FROM visits", threshold="10")
    assert together.status_code == 403
    shown = shared.call(ann, "GET", f"/v1/monitors/{monitor}").json()
    assert (shown["evaluations_made"], shown["hits_left"]) == (3, 1)


def test_below_is_the_other_direction(shared: Clinic) -> None:
    """Shows a monitor that reports when a count is at most its threshold."""
    ann, _ = shared.somebody()
    for threshold, outcome in (("2000", "not_passed"), ("4000", "passed")):
        monitor = shared.open(ann, threshold=threshold, direction="below").json()["id"]
        assert shared.evaluate(ann, monitor).json()["outcome"] == outcome


def test_others_do_not_see_a_monitor(shared: Clinic) -> None:
    """Shows that it is not there for another analyst; overseers see its terms, without question, and use no hits."""
    ann, _ = shared.somebody()
    bob, _ = shared.somebody()
    shared.person("root", "admin")
    monitor = shared.open(ann).json()["id"]
    for method, path in (("GET", ""), ("POST", "/evaluations")):
        absent = shared.call(bob, method, f"/v1/monitors/{monitor}{path}", {} if path else None)
        assert (absent.status_code, absent.json()["code"]) == (404, "not_found")
    assert shared.call(bob, "GET", "/v1/monitors").json() == {"monitors": [], "next": None}
    assert shared.call(bob, "GET", f"/v1/monitors?after={monitor}").status_code == 404
    seen = shared.call("root", "GET", f"/v1/monitors/{monitor}").json()
    assert (seen["sql"], seen["threshold"], seen["principal"]) == (None, None, ann)
    assert shared.evaluate("root", monitor).status_code == 404


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"sql": "SELECT AVG(age) FROM people"}, "unsupported_sql"),
        ({"sql": "SELECT sex, COUNT(*) FROM people GROUP BY sex"}, "unsupported_sql"),
        ({"sql": "SELECT COUNT(*) * 2 FROM people"}, "unsupported_sql"),
        ({"sql": "SELECT COUNT(*), SUM(age) FROM people"}, "unsupported_sql"),
        ({"sql": "SELECT COUNT(*) FROM people WHERE CURRENT_DATE > DATE '2024-01-01'"}, "volatile_function"),
        ({"sql": "SELECT COUNT(*) FROM nowhere"}, "unknown_table"),
        ({"threshold": ""}, "invalid_request"),
        ({"threshold": "1e40"}, "invalid_request"),
        ({"threshold": "NaN"}, "invalid_request"),
        ({"threshold": 5}, "invalid_request"),
        ({"hits": 0}, "invalid_request"),
        ({"evaluations": 0}, "invalid_request"),
        ({"epsilon": "0.000000001", "evaluations": 100_000}, "policy_forbids"),
        ({"epsilon": "2", "answer_epsilon": "0.000000001"}, "policy_forbids"),
        ({"epsilon": "5000"}, "policy_forbids"),
        ({"budget": "nobody"}, "no_budget"),
        ({"dataset": "nowhere"}, "unknown_dataset"),
    ],
)
@pytest.mark.sparse(4)
def test_what_cannot_be_watched_is_refused_before_it_is_charged(
    shared: Clinic, options: dict[str, Any], code: str
) -> None:
    """Shows refusals of questions, thresholds, prices and numbers, with nothing charged and no monitor made."""
    who, account = shared.somebody()
    refused = shared.open(who, **options)
    assert refused.json()["code"] == code, refused.text
    assert shared.spent(account) == 0
    assert shared.call(who, "GET", "/v1/monitors").json()["monitors"] == []


def test_an_exhausted_budget_opens_nothing(shared: Clinic) -> None:
    """Shows 403 for a session that the account cannot pay in whole."""
    ann, account = shared.somebody(epsilon="1", kind=FilterKind.PURE)
    refused = shared.open(ann)
    assert (refused.status_code, refused.json()["code"]) == (403, "budget_exhausted")
    assert shared.spent(account) == 0
    assert shared.open(ann, epsilon="1").status_code == 201


def test_the_session_is_charged_before_a_row_is_read_and_closes_the_concentrated_branch(
    shared: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that opening needs no engine, and that from then on the account counts on the pure and Gaussian sums."""
    ann, account = shared.somebody()
    assert Branch.CONCENTRATED in _alive(shared, account)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(shared.monitors.resources.private, "run", refuse)
    assert shared.open(ann).status_code == 201
    assert _alive(shared, account) == (Branch.PURE, Branch.GAUSSIAN, Branch.MIXED)


def _alive(clinic: Clinic, account: str) -> tuple[Branch, ...]:
    found = clinic.services.ledger.account(account)
    return alive_branches(found.spent, found.branches)


def test_a_failed_evaluation_is_counted_and_says_nothing(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a failure shows at a visible moment as one opaque outcome, keeps the charge and the state, and that
    the same version may be evaluated again."""
    account = clinic.person("ann")
    monitor = clinic.open("ann", evaluations=2).json()["id"]
    charged, slept = clinic.spent(account), list[float]()
    pace = clinic.monitors.resources.pace
    monkeypatch.setattr(pace, "sleep", slept.append)

    def fail(*_: object, **__: object) -> None:
        raise ExecutionFailed

    with monkeypatch.context() as patch:
        patch.setattr(clinic.monitors.resources.private, "run", fail)
        failed = clinic.evaluate("ann", monitor)
    assert (failed.status_code, failed.json()["code"]) == (500, "execution_failed")
    assert len(slept) == 1
    last = clinic.call("ann", "GET", f"/v1/monitors/{monitor}").json()["last"]
    assert (last["outcome"], last["number"], last["gap"]) == ("failed", 1, None)
    assert clinic.evaluate("ann", monitor).json()["outcome"] == "not_passed"
    assert len(slept) == 2
    clinic.grow(1)
    assert clinic.evaluate("ann", monitor).status_code == 409, "the stated number of evaluations is used up"
    assert clinic.spent(account) == charged


def test_two_outcomes_at_once_are_never_one_hit_too_many(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that an evaluation that another one overtook is thrown away unseen: one hit, where two were found."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann, threshold="100", stream=True).json()["id"]
    row = shared.row(monitor)
    assert row is not None
    genuine = shared.monitors.registry.begin_evaluation
    others: list[Evaluated] = []

    def begin(monitor_id: str, **named: Any) -> EvaluationRow | NotBegun:
        begun = genuine(monitor_id, **named)
        assert not isinstance(begun, NotBegun)
        if begun.number == 1:  # taken for dead before it compares, so that another one begins and ends
            notice = notice_of(row, begun, outcome="failed", detail=None)
            shared.monitors.registry.note_evaluation(monitor, 1, outcome="failed", detail=None, notice=notice)
            others.append(shared.monitors.evaluate(row, EvaluateMonitor()))
        return begun

    monkeypatch.setattr(shared.monitors.registry, "begin_evaluation", begin)
    with pytest.raises(Problem) as caught:
        shared.monitors.evaluate(row, EvaluateMonitor())
    assert [one.outcome for one in others] == ["passed"]
    assert "overtaken" in caught.value.finding.what
    shown = shared.call(ann, "GET", f"/v1/monitors/{monitor}").json()
    assert [(one["number"], one["outcome"]) for one in shown["passed"]] == [(2, "passed")]


@pytest.mark.parametrize("stream", [False, True])
def test_what_waited_for_its_turn_reads_the_monitor_again(shared: Clinic, stream: bool) -> None:
    """Shows that an evaluation planned before another one ended counts nothing and reads no row after it: a standing
    question has its answer, and a monitor without hits is over."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann, threshold="100", stream=stream).json()["id"]
    row = shared.row(monitor)
    assert row is not None
    first, second = (shared.monitors.begin(row, EvaluateMonitor()) for _ in range(2))
    assert isinstance(first, Evaluation)
    assert isinstance(second, Evaluation)
    said = shared.monitors.complete(first)
    assert said.outcome == "passed"
    if stream:
        with pytest.raises(Problem) as caught:
            shared.monitors.complete(second)
        assert caught.value.finding.what == "the monitor is over"
    else:
        again = shared.monitors.complete(second)
        assert (again.number, again.outcome, again.repeated) == (said.number, said.outcome, True)
    assert [one.number for one in shared.services.registry.evaluations(monitor, count=9)] == [1]


def test_evaluations_hold_up_no_estimate(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that evaluations which wait for the engine leave the threads that read texts to others' estimates."""
    ann, _ = shared.somebody()
    bob, _ = shared.somebody()
    row = shared.row(shared.open(ann, stream=True).json()["id"])
    assert row is not None
    waiting, go = threading.Semaphore(0), threading.Event()
    genuine = Monitors.complete

    def complete(monitors: Monitors, begun: Evaluation) -> Evaluated:
        waiting.release()
        go.wait(20)
        return genuine(monitors, begun)

    monkeypatch.setattr(Monitors, "complete", complete)
    with ThreadPoolExecutor(6) as pool:
        try:
            evaluations = [pool.submit(shared.evaluate, ann, row.id) for _ in range(5)]
            assert waiting.acquire(timeout=20)
            estimate = shared.call(bob, "POST", "/v1/estimates", {"dataset": "clinic", "sql": COUNT})
            assert estimate.status_code == 200
            assert not any(one.done() for one in evaluations)
        finally:
            go.set()
        assert {one.result().status_code for one in evaluations} <= {200, 409}


def test_an_overtaken_evaluation_hides_nothing_of_what_was_said(shared: Clinic) -> None:
    """Shows that what was said of a version is said again, and not compared again, after an evaluation that failed."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann).json()["id"]
    row = shared.row(monitor)
    assert row is not None
    said = shared.monitors.evaluate(row, EvaluateMonitor())
    begun = shared.services.registry.begin_evaluation(
        monitor, revision=1, version=said.version, most=50, instance="i_1", standing=True
    )
    assert not isinstance(begun, NotBegun)
    assert begun.number == 2
    notice = notice_of(row, begun, outcome="failed", detail=None)
    shared.services.registry.note_evaluation(monitor, 2, outcome="failed", detail=None, notice=notice)
    again = shared.evaluate(ann, monitor).json()
    assert (again["number"], again["outcome"], again["repeated"]) == (said.number, said.outcome, True)


def test_every_comparison_has_the_noise_that_was_charged(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows by a recorder at the gateway: one true distance for each evaluation, under the scales of the event that the
    ledger has, with the threshold's noise kept from one to the next."""
    clinic.person("ann")
    seen: list[tuple[int, SparseRun, int]] = []
    genuine = gateway.compare

    def compare(run: SparseRun, distances: Integers, bits: BitSource) -> tuple[Hit, ...]:
        seen.append((int(distances[0]), run, run.threshold.noise.value >> (run.threshold.noise.length - 64)))
        return genuine(run, distances, bits)

    monkeypatch.setattr(gateway, "compare", compare)
    monitor = clinic.open("ann").json()["id"]
    clinic.evaluate("ann", monitor)
    clinic.evaluate("ann", monitor)
    clinic.grow(10)
    clinic.evaluate("ann", monitor)
    assert [distance for distance, _, _ in seen] == [PEOPLE - 3500, PEOPLE - 3490]
    assert seen[0][2] == seen[1][2]
    assert {run.mechanism.sensitivity for _, run, _ in seen} == {1}, "each of ten people moved the distance by one"
    (core,) = [
        entry
        for entry in clinic.services.ledger.entries(clinic.row(monitor).account)  # type: ignore[union-attr]
        if entry.query_id == monitor and '"sparse_session/1"' in entry.details
    ]
    event = seen[0][1].mechanism.event()
    for value in event.parameters().values():
        assert f'"{value}"' in core.details
    assert np.isclose(float(event.epsilon), 2)


def test_a_restored_ledger_ends_its_monitors(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that after an older copy was put back, which may have forgotten hits, monitors say nothing more."""
    clinic.person("ann")
    monitor = clinic.open("ann").json()["id"]
    ledger = clinic.services.ledger
    monkeypatch.setattr(ledger, "_behind", {"sequence": 1})
    ledger.acknowledge_restore(actor="root", reason="a disk failed")
    refused = clinic.evaluate("ann", monitor)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert clinic.open("ann").status_code == 201
    other = clinic.open("ann").json()["id"]
    assert clinic.evaluate("ann", other).json()["outcome"] == "not_passed"


def test_changed_declarations_do_not_widen_a_session(clinic: Clinic) -> None:
    """Shows that a monitor of rows is refused once a unit may have more of them than it was charged for."""
    clinic.person("ann")
    sql = "SELECT COUNT(*) FROM visits"
    monitor = clinic.open("ann", sql=sql, threshold="100000", epsilon="20").json()["id"]
    assert clinic.evaluate("ann", monitor).json()["outcome"] == "not_passed"
    text = clinic.path.read_text()
    clinic.path.write_text(text.replace("rows_per_unit: 20", "rows_per_unit: 40"))
    attach(clinic.services, clinic.path)
    refused = clinic.evaluate("ann", monitor)
    assert (refused.status_code, refused.json()["code"]) == (403, "policy_forbids")


def test_a_poll_waits_for_the_next_version(shared: Clinic) -> None:
    """Shows a long poll: it says the same when nothing came, and waits no longer than it was asked to."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann).json()["id"]
    first = shared.evaluate(ann, monitor, wait_ms=30_000).json()
    assert first["repeated"] is False
    waited = shared.evaluate(ann, monitor, wait_ms=300).json()
    assert waited == {**first, "repeated": True}


@pytest.mark.parametrize("noise", ["auto", "laplace", "gaussian"])
@pytest.mark.sparse(3)
def test_an_account_with_a_monitor_goes_on_asking(shared: Clinic, noise: str) -> None:
    """Shows estimates and answers of either noise, and of hidden groups, on an account whose sum of rho is closed."""
    ann, account = shared.somebody()
    monitor = shared.open(ann).json()["id"]
    for sql in (COUNT, "SELECT sex, AVG(age) FROM people GROUP BY sex"):
        body = {"dataset": "clinic", "sql": sql, "spend": {"epsilon": "3"}, "noise": noise}
        estimate = shared.call(ann, "POST", "/v1/estimates", body)
        assert estimate.status_code == 200, estimate.text
        answer = shared.call(ann, "POST", "/v1/queries", body)
        assert answer.status_code == 200, answer.text
        assert Fraction(answer.json()["accounting"]["charged"][0]["epsilon"]) <= 3
    hidden = {"dataset": "clinic", "sql": "SELECT town, COUNT(*) FROM people GROUP BY town", "noise": noise}
    assert shared.call(ann, "POST", "/v1/queries", hidden).status_code == 200
    shown = shared.call(ann, "GET", f"/v1/budgets/{account}")
    assert shown.status_code == 200
    assert shared.call(ann, "GET", f"/v1/budgets/{account}/entries").status_code == 200
    assert shared.evaluate(ann, monitor).json()["outcome"] == "not_passed"
    listed = shared.call(ann, "GET", "/v1/queries").json()["queries"]
    assert monitor in [one["id"] for one in listed]
    path = f"/v1/queries/{monitor}"
    assert shared.call(ann, "GET", path).json() == {"monitor": monitor}
    assert shared.call(ann, "GET", path, Accept="text/csv").status_code == 406


def test_a_stream_after_its_last_hit_is_refused_and_unharmed(shared: Clinic) -> None:
    """Shows a clear refusal of every further question of a stream, with its outcomes, its state and the ledger kept."""
    ann, account = shared.somebody()
    monitor = shared.open(ann, stream=True, threshold="10").json()["id"]
    assert shared.evaluate(ann, monitor).json()["outcome"] == "passed"
    before = (
        shared.spent(account),
        shared.row(monitor),
        len(_entries(shared, account)),
    )
    for body in ({}, {"sql": COUNT}, {"threshold": "1"}, {"sql": "nonsense"}):
        over = shared.evaluate(ann, monitor, **body)
        assert (over.status_code, over.json()["code"]) == (409, "conflict")
        assert over.json()["charged"] is False
    assert before == (
        shared.spent(account),
        shared.row(monitor),
        len(_entries(shared, account)),
    )
    assert shared.services.ledger.audit().findings == ()


def _entries(clinic: Clinic, account: str) -> list[object]:
    return list(clinic.services.ledger.entries(account))


def test_a_standing_monitor_takes_no_other_question(shared: Clinic) -> None:
    """Shows that the question of a monitor that is no stream cannot be exchanged."""
    ann, _ = shared.somebody()
    monitor = shared.open(ann).json()["id"]
    for body in ({"sql": COUNT}, {"threshold": "1"}):
        refused = shared.evaluate(ann, monitor, **body)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert shared.call(ann, "GET", f"/v1/monitors/{monitor}").json()["evaluations_made"] == 0


def test_an_opening_that_cannot_be_stored_is_given_back(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows a database that breaks after the charge: nothing was read or said, so the charge goes back."""
    ann, account = shared.somebody()

    def fail(*_: object) -> None:
        raise RuntimeError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(shared.services.registry, "add_resource", fail)
        broken = shared.open(ann, key="broken")
    assert broken.status_code == 500
    assert broken.json()["charged"] is True
    assert shared.spent(account) == 0
    again = shared.open(ann, key="broken")
    assert (again.status_code, again.json()["code"]) == (409, "query_void")
    assert shared.call(ann, "GET", "/v1/monitors").json()["monitors"] == []
    (record,) = shared.services.ledger.queries(ann, after=None, count=5)
    assert record.state is QueryStatus.FAILED_VOID
