"""Whatever fails once rows were read is one outcome: on every resource, at every statement, for every cause.

Status, headers, body and the ledger's entries are compared with one another, not with words that are written here; and
so is what decides the visible moment.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accountant.errors import LedgerUnavailable
from engines.protocol import StatementEngine
from mechanisms import gateway
from privacy.refusal import ExecutionFailed, Finding, Refused
from server.journey.pace import Pace, VisibleRun
from server.resources.resources import Resources
from sql_rewrite.cost import Work
from tests.journey.clinic import attach, clinic_in
from tests.journey.watched import COUNT, Clinic

STATISTICS = 'statistics: {typical_age: {sql: "SELECT MEDIAN(age) FROM people"}}\n'
OPENED: dict[str, dict[str, Any]] = {
    "monitors": {"sql": COUNT, "threshold": "3500", "epsilon": "2", "evaluations": 50},
    "streams": {"table": "people", "columns": [{"name": "sex"}], "epsilon": "2", "queries": 50},
}
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "queries": ("/v1/queries", {"sql": COUNT, "spend": {"epsilon": "1"}, "reuse": "none"}),
    "batches": (
        "/v1/batches",
        {"queries": [COUNT, f"{COUNT} WHERE age < 30"], "spend": {"epsilon": "1"}, "reuse": "none"},
    ),
    "models": (
        "/v1/models",
        {"sql": "SELECT age, age >= 54 AS label FROM people", "spend": {"own_epsilon": "1"}, "iterations": 2},
    ),
    "synthetic": ("/v1/synthetic", {"table": "people", "epsilon": "2"}),
    "statistics": ("/v1/statistics", {"statistic": "typical_age", "width": "5", "spend": {"own_epsilon": "2"}}),
    "monitors": ("/v1/monitors/{}/evaluations", {}),
    "streams": ("/v1/streams/{}/queries", {"queries": [{"where": []}]}),
}
"""What reads rows, by kind: of what is opened first, each question of it."""

SECRET = "the income of somebody is 70123"
Cause = Callable[[], Exception]
AT_FIRST: list[Cause] = [ExecutionFailed, MemoryError, lambda: ValueError(SECRET), lambda: LedgerUnavailable(SECRET)]
AT_LAST: list[Cause] = [
    lambda: ExecutionFailed(started=False),
    lambda: Refused([Finding(code="too_large", what=SECRET, why=SECRET)]),
]
"""The engine says that a statement was not sent where one before it had failed: rows were read all the same."""

STORED = {"monitors": ("registry", "end_evaluation"), "streams": ("registry", "end_comparisons")}
"""Where an answer is kept before it is said: in the ledger, if nowhere else."""

_NAMES = itertools.count()


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic with a registered statistic."""
    home = tmp_path_factory.mktemp("failures")
    with clinic_in(home) as (services, path):
        path.write_text(path.read_text() + STATISTICS)
        attach(services, path)
        yield Clinic(home, services, path)


class Watched:
    """The engine with its calls counted, one of which may fail; the work that moments follow from, and the waits."""

    def __init__(self, engine: StatementEngine, patch: pytest.MonkeyPatch) -> None:
        self.calls = self.waits = 0
        self.fails: dict[int, Cause] = {}
        self.works: list[Work] = []
        for step in ("run", "read_rows", "add_up"):
            patch.setattr(engine, step, self._counted(getattr(engine, step)))
        genuine = Pace.visible

        def visible(pace: Pace, work: Work, *given: Any) -> Any:
            self.works.append(work)
            return genuine(pace, work, *given)

        patch.setattr(Pace, "visible", visible)
        waited = VisibleRun.wait

        def wait(run: VisibleRun) -> None:
            self.waits += 1
            waited(run)

        patch.setattr(VisibleRun, "wait", wait)

    def _counted(self, genuine: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self.calls += 1
            found = genuine(*given, **named)
            if self.calls in self.fails:
                raise self.fails[self.calls]()
            return found

        return call


def outcome(clinic: Clinic, watched: Watched, kind: str, who: str, account: str, opened: str) -> tuple[Any, ...]:
    """Everything that a caller can see of one question, and what the ledger has of it, without names and times."""
    path, body = ASKED[kind]
    named = {"name": f"drawn_{next(_NAMES)}"} if kind == "synthetic" else {}
    waits = {} if kind in OPENED else {"dataset": "clinic", "wait_ms": 30_000}
    watched.calls, watched.waits, watched.works = 0, 0, []
    before = clinic.spent(account)
    key = f"key-{next(_NAMES)}"
    told = clinic.call(who, "POST", path.format(opened), {**body, **waits, **named}, **{"Idempotency-Key": key})
    headers = {name: value for name, value in told.headers.items() if name not in ("x-request-id", "date")}
    for name in ("location", "content-location"):
        headers.pop(name, None)
    shown = {name: value for name, value in told.json().items() if name not in ("request_id", "id")}
    entries = [entry for entry in clinic.services.ledger.entries(account) if entry.query_id is not None]
    last = [(entry.kind, entry.query_id is None) for entry in entries][-2:]
    return told.status_code, headers, shown, clinic.spent(account) - before, last, watched.works, watched.waits > 0


@pytest.mark.sparse(2)
@pytest.mark.parametrize("kind", ASKED)
def test_what_fails_after_rows_were_read_is_one_outcome(
    clinic: Clinic, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows, for the first and the last statement, for noise, and for the storing of what was found, the same status,
    headers, body, charge and entries, and the same moments; and nothing of the cause."""
    who, account = clinic.somebody(epsilon="500")
    assert isinstance(clinic.services.resources, Resources)
    watched = Watched(clinic.services.resources.private, monkeypatch)
    opened = ""
    if kind in OPENED:
        opened = clinic.call(who, "POST", f"/v1/{kind}", {"dataset": "clinic", **OPENED[kind]}).json()["id"]
    found = []
    if kind not in OPENED:
        assert outcome(clinic, watched, kind, who, account, opened)[0] in (200, 201)
    causes = [(1, cause) for cause in AT_FIRST]
    if watched.calls > 1:
        causes += [(watched.calls, cause) for cause in AT_LAST]
    # Each model costs a worker, which ends with its rows.
    for place, cause in causes[2:-1] if kind == "models" else causes:
        watched.fails = {place: cause}
        found.append(outcome(clinic, watched, kind, who, account, opened))
    watched.fails = {}

    def broken(*_: object, **__: object) -> Any:
        raise ZeroDivisionError(SECRET)

    keeper, step = STORED.get(kind, ("ledger", "post"))
    with monkeypatch.context() as patch:
        patch.setattr(getattr(clinic.services, keeper), step, broken)
        found.append(outcome(clinic, watched, kind, who, account, opened))
    # The last ones, for what some of them do not stop is answered, and said again.
    for step in ("perturb", "compare", "test"):
        with monkeypatch.context() as patch:
            patch.setattr(gateway, step, broken)
            told = outcome(clinic, watched, kind, who, account, opened)
            if told[0] not in (200, 201):
                found.append(told)
    first = found[0]
    assert (first[0], first[2]["code"], first[2]["charged"]) == (500, "execution_failed", True)
    assert first[-1], "it shows at a visible moment"
    assert [other for other in found if other != first] == []
    assert SECRET not in str(found)


@pytest.mark.parametrize("kind", ASKED)
def test_what_nobody_foresaw_counts_as_charged(clinic: Clinic, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows, of each route that charges, that where a reservation ends as no code expects nobody is told it cost
    nothing: what the ledger has by then is not known."""
    who, _ = clinic.somebody()
    path, body = (f"/v1/{kind}", OPENED[kind]) if kind in OPENED else ASKED[kind]
    named = {"name": f"drawn_{next(_NAMES)}"} if kind == "synthetic" else {}

    def broken(*_: object, **__: object) -> Any:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(clinic.services.ledger, "reserve", broken)
    told = clinic.call(who, "POST", path, {"dataset": "clinic", **body, **named})
    assert (told.status_code, told.json()["code"], told.json()["charged"]) == (500, "internal_error", True), told.text
