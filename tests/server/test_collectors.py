"""Local collection over HTTP: opened and charged once, reports under tokens, estimates, and what is refused."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import text

from accountant.connection import open_engine
from mechanisms.local.encodings import ENCODINGS, encoder_of
from privacy.events.approximate import LocalReportEvent
from server.jobs import JobPool
from server.limits import RateLimit
from server.routes.collectors import _EXAMPLE, _LAW
from server.store.collectors import token_digest
from server.store.registry import Registry
from tests.server.conftest import SECRET, World

ROOT = Path(__file__).resolve().parents[2]
QUESTION = {"question": "Do you smoke?", "domain": ["yes", "no"], "epsilon": "1"}


def client() -> ModuleType:
    """The client that people copy."""
    spec = importlib.util.spec_from_file_location("local_encoder", ROOT / "clients" / "local_encoder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLIENT = client()


def test_the_documented_law_is_that_of_its_epsilon() -> None:
    """Shows of the example in the API's documentation that a client which checks the law would accept it."""
    made = encoder_of("randomised_response", size=3, epsilon=Fraction(str(_EXAMPLE["epsilon"])))
    assert made.law() == _LAW
    assert CLIENT.epsilon_of(_LAW) <= float(str(_EXAMPLE["epsilon"]))


def opened(world: World, **changes: Any) -> dict[str, Any]:
    """A new collector."""
    answer = world.api.post("/v1/collectors", json={**QUESTION, **changes}, who="admin")
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def tokens(world: World, collector: dict[str, Any], count: int) -> list[str]:
    """New tokens."""
    answer = world.api.post(f"/v1/collectors/{collector['id']}/tokens", json={"count": count}, who="admin")
    assert answer.status_code == 201, answer.text
    made: list[str] = answer.json()["tokens"]
    return made


def send(world: World, collector: dict[str, Any], reports: list[tuple[str, list[int]]]) -> Any:
    """Reports of people without a key."""
    body = {"reports": [{"token": token, "report": report} for token, report in reports]}
    return world.api.post(f"/v1/collectors/{collector['id']}/reports", json=body, who=None)


def state(world: World) -> list[list[tuple[object, ...]]]:
    """What is stored of collectors, and the ledger's entries."""
    engine = open_engine(f"sqlite:///{world.settings.home / 'ledger.sqlite'}")
    with engine.connect() as connection:
        found = [
            [tuple(row) for row in connection.execute(text(f"SELECT * FROM {name} ORDER BY 1, 2, 3"))]
            for name in ("collectors", "collector_tokens", "collector_tallies", "entries")
        ]
    engine.dispose()
    return found


def test_from_the_question_to_its_estimates(world: World) -> None:
    """Opened, charged, answered by people through the client, estimated near the truth, closed."""
    collector = opened(world)
    assert (collector["status"], collector["encoding"], collector["size"]) == ("settled", "randomised_response", 3)
    asked = world.api.get(f"/v1/collectors/{collector['id']}/question", who=None).json()
    assert asked["domain"] == ["yes", "no", "(no answer)"]
    assert CLIENT.epsilon_of(asked["law"]) == pytest.approx(1.0)
    truth = [0] * 300 + [1] * 600 + [2] * 100
    made = tokens(world, collector, len(truth))
    reports = [(token, CLIENT.encode(asked["law"], value)) for token, value in zip(made, truth, strict=True)]
    for start in range(0, len(reports), 250):
        answer = send(world, collector, reports[start : start + 250])
        assert (answer.status_code, answer.json()) == (200, {"accepted": 250})
    address = f"/v1/collectors/{collector['id']}/estimates"
    estimates = world.api.get(f"{address}?postprocess=none", who="analyst").json()
    assert (estimates["reports"], estimates["status"], estimates["postprocess"]) == (1000, "settled", "none")
    for row, share in zip(estimates["rows"], (0.3, 0.6, 0.1), strict=True):
        # Six standard errors: 2e-9 each.
        assert abs(row["raw_share"] - share) <= 6 * row["standard_error"]
        assert row["low"] <= row["high"]
    assert sum(row["share"] for row in world.api.get(address).json()["rows"]) == pytest.approx(1)
    closed = world.api.call("DELETE", f"/v1/collectors/{collector['id']}", who="admin").json()
    assert closed["status"] == "closed"
    assert closed["reports"] == 1000
    again = world.api.call("DELETE", f"/v1/collectors/{collector['id']}", who="admin").json()
    assert again["closed"] == closed["closed"]
    assert world.api.get(address).status_code == 200


def test_opening_charges_one_event_to_a_root_of_its_own(world: World) -> None:
    """The whole limit of the new root, and nothing anywhere else; the event is the encoder's."""
    before = world.ledger.account(world.root.id).remaining_epsilon()
    collector = opened(world, epsilon="1.5")
    account = world.ledger.account(collector["budget"])
    assert (account.parent, account.dataset) == (None, f"collector:{collector['id']}")
    assert account.remaining_epsilon() == 0
    assert account.limit.epsilon == Fraction(3, 2)
    assert world.ledger.account(world.root.id).remaining_epsilon() == before
    engine = open_engine(f"sqlite:///{world.settings.home / 'ledger.sqlite'}")
    with engine.connect() as connection:
        (cores,) = connection.execute(text("SELECT cores FROM queries")).scalars()
    engine.dispose()
    assert LocalReportEvent.kind in cores
    shown = world.api.get(f"/v1/budgets/{account.id}", who="admin").json()
    assert shown["used_share"] == "1"
    entries = world.api.get(f"/v1/budgets/{account.id}/entries", who="auditor").json()["entries"]
    assert [entry["kind"] for entry in entries] == ["grant", "reserve", "post"]


def test_reports_and_estimates_cost_nothing_more(world: World) -> None:
    """The charge is that of opening: the ledger's entries stay as they are."""
    collector = opened(world)
    entries = state(world)[3]
    (token,) = tokens(world, collector, 1)
    assert send(world, collector, [(token, [0])]).status_code == 200
    world.api.get(f"/v1/collectors/{collector['id']}/estimates")
    world.api.call("DELETE", f"/v1/collectors/{collector['id']}", who="admin")
    assert state(world)[3] == entries


def test_opening_under_an_idempotency_key_is_done_once(world: World) -> None:
    """One collector and one charge; another body under the same key is refused."""
    headers = {"Idempotency-Key": "open-1"}
    first = world.api.post("/v1/collectors", json=QUESTION, who="admin", headers=headers)
    again = world.api.post("/v1/collectors", json=QUESTION, who="admin", headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert len(world.api.get("/v1/collectors").json()["collectors"]) == 1
    assert sum(one.dataset.startswith("collector:") for one in world.ledger.accounts()) == 1
    other = world.api.post("/v1/collectors", json={**QUESTION, "epsilon": "2"}, who="admin", headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


def test_tokens_are_shown_once_and_stored_as_hashes(world: World) -> None:
    """Not in the database, not in the answer that is kept for a retry."""
    collector = opened(world)
    headers = {"Idempotency-Key": "tokens-1"}
    address = f"/v1/collectors/{collector['id']}/tokens"
    first = world.api.post(address, json={"count": 3}, who="admin", headers=headers).json()["tokens"]
    again = world.api.post(address, json={"count": 3}, who="admin", headers=headers).json()
    assert len(set(first)) == 3
    assert again["tokens"] is None
    stored = state(world)
    assert {row[1] for row in stored[1]} == {token_digest(collector["id"], token) for token in first}
    raw = (world.settings.home / "ledger.sqlite").read_bytes()
    assert not any(token.encode() in raw for token in first)


def test_a_replayed_token_changes_nothing(world: World) -> None:
    """Used before, twice in one request, of another collector, or invented: the whole request is refused."""
    collector, other = opened(world), opened(world)
    one, two = tokens(world, collector, 2)
    (foreign,) = tokens(world, other, 1)
    assert send(world, collector, [(one, [0])]).status_code == 200
    before = state(world)
    for reports in (
        [(one, [0])],
        [(two, [1]), (one, [0])],
        [(two, [1]), (two, [1])],
        [(two, [1]), (foreign, [0])],
        [("ngt_" + "A" * 32, [0])],
    ):
        refused = send(world, collector, reports)
        assert (refused.status_code, refused.json()["code"], refused.json()["charged"]) == (403, "token_refused", False)
        assert state(world) == before
    assert "used before" in send(world, collector, [(one, [0])]).json()["why"]
    assert "not a token" in send(world, collector, [(foreign, [0])]).json()["why"]
    assert send(world, collector, [(two, [1])]).status_code == 200


@pytest.mark.parametrize(
    ("encoding", "wrong"),
    [
        ("randomised_response", [[], [8], [0, 1]]),
        ("hadamard", [[], [7 * 8], [0, 1]]),
        ("subset_selection", [[], [1], [1, 0, 2], [0, 0, 1], [0, 1, 8]]),
        ("optimised_unary", [[8], [1, 1], [1, 0]]),
        ("rappor", [[8], [1, 1], [1, 0]]),
    ],
)
def test_reports_outside_the_encoding_are_refused(world: World, encoding: str, wrong: list[list[int]]) -> None:
    """Out of range, of the wrong length, repeated or not in order: nothing is counted and the token still works."""
    collector = opened(world, domain=list("abcdefg"), encoding=encoding)
    law = world.api.get(f"/v1/collectors/{collector['id']}/question", who=None).json()["law"]
    one, two = tokens(world, collector, 2)
    before = state(world)
    right = CLIENT.encode(law, 3)
    for report in wrong:
        refused = send(world, collector, [(one, right), (two, report)])
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request"), refused.text
        assert "report 1" in refused.json()["what"]
        assert state(world) == before
    assert send(world, collector, [(one, right), (two, CLIENT.encode(law, 0))]).status_code == 200


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reports": []},
        {"reports": [{"token": "ngk_x", "report": [0]}]},
        {"reports": [{"token": "ngt_" + "A" * 32}]},
        {"reports": [{"token": "ngt_" + "A" * 32, "report": ["0"]}]},
        {"reports": [{"token": "ngt_" + "A" * 32, "report": [0.5]}]},
        {"reports": [{"token": "ngt_" + "A" * 32, "report": [-1]}]},
        {"reports": [{"token": "ngt_" + "A" * 32, "report": [True]}]},
        {"reports": [{"token": "ngt_" + "A" * 32, "report": [0], "value": "yes"}]},
    ],
)
def test_malformed_reports_are_refused(world: World, body: dict[str, Any]) -> None:
    """A field with the true value is refused like every field that is not known."""
    collector = opened(world)
    before = state(world)
    refused = world.api.post(f"/v1/collectors/{collector['id']}/reports", json=body, who=None)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    assert state(world) == before


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"domain": []}, "1"),
        ({"domain": ["yes"], "missing": False}, "between 2 and"),
        ({"domain": ["yes", "yes"]}, "the same"),
        ({"domain": ["Yes", "yes "]}, "spaces"),
        ({"domain": ["Yes", "yes"]}, "differ in case"),
        ({"domain": ["\ufb01t", "fit"]}, "form"),
        ({"domain": ["yes", ""]}, "1 to 200"),
        ({"domain": ["yes", "x" * 201]}, "1 to 200"),
        ({"domain": ["yes", "a\nb"]}, "control"),
        ({"domain": [str(i) for i in range(100_000)]}, "between 2 and"),
        ({"domain": [str(i) for i in range(5000)], "encoding": "rappor"}, "at most 4096"),
        ({"question": " "}, "question"),
        ({"epsilon": "0.001"}, "at least 0.01"),
        ({"epsilon": "17"}, "at most 16"),
        ({"encoding": "hadamart"}, "optimised_unary"),
        ({"epsilon": 1}, "decimal"),
        ({"epsilon": "0"}, "epsilon"),
    ],
)
def test_questions_that_cannot_be_asked(world: World, changes: dict[str, Any], says: str) -> None:
    """Empty, huge and repeated domains, and what no encoder can do: nothing is opened, nothing is charged."""
    before = state(world)
    refused = world.api.post("/v1/collectors", json={**QUESTION, **changes}, who="admin")
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["charged"]) == (422, "invalid_request", False), problem
    assert says in str(problem) or says == "1"
    assert problem["instead"]
    assert state(world) == before


def test_every_encoding_can_be_asked_for(world: World) -> None:
    """The words of the API are the names of the encoders, and the client knows all of them."""
    for kind in ENCODINGS:
        collector = opened(world, encoding=kind.name)
        law = world.api.get(f"/v1/collectors/{collector['id']}/question", who=None).json()["law"]
        (token,) = tokens(world, collector, 1)
        assert send(world, collector, [(token, CLIENT.encode(law, 2))]).status_code == 200


def test_a_closed_collector_takes_nothing_more(world: World) -> None:
    """Neither reports nor tokens, and no token is used."""
    collector = opened(world)
    (token,) = tokens(world, collector, 1)
    world.api.call("DELETE", f"/v1/collectors/{collector['id']}", who="admin")
    before = state(world)
    for refused in (
        send(world, collector, [(token, [0])]),
        world.api.post(f"/v1/collectors/{collector['id']}/tokens", json={"count": 1}, who="admin"),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert state(world) == before


def test_no_answer_is_a_value_unless_it_is_left_out(world: World) -> None:
    """E26: who gives no answer reports like everybody else."""
    assert opened(world)["missing"] == "(no answer)"
    without = opened(world, missing=False)
    assert (without["missing"], without["size"]) == (None, 2)
    listed = opened(world, domain=["yes", "no", "(no answer)"])
    assert listed["size"] == 3


def test_estimates_of_no_reports_are_refused(world: World) -> None:
    """A share of nothing has no value."""
    refused = world.api.get(f"/v1/collectors/{opened(world)['id']}/estimates")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


def test_collectors_survive_a_restart(world: World) -> None:
    """Another process on the same database has the same collector, counts and used tokens."""
    collector = opened(world, domain=[str(place) for place in range(200)])
    one, _ = tokens(world, collector, 2)
    send(world, collector, [(one, [7])])
    again = Registry(f"sqlite:///{world.settings.home / 'ledger.sqlite'}", secret=SECRET, clock=world.clock)
    found, counts = again.collector_tally(collector["id"])
    again.close()
    assert (found.encoding, found.reports, found.tokens, counts) == ("hadamard", 1, 2, {7: 1})
    assert len(found.domain) == 201


def test_lists_are_paged(world: World) -> None:
    """The newest first, by identifiers where they were opened in one second; nothing follows one that is not there."""
    made = sorted((opened(world)["id"] for _ in range(3)), reverse=True)
    first = world.api.get("/v1/collectors?count=2").json()
    then = world.api.get(f"/v1/collectors?count=2&after={first['next']}").json()
    assert [one["id"] for one in (*first["collectors"], *then["collectors"])] == made
    assert then["next"] is None
    assert world.api.get("/v1/collectors?after=c_none").status_code == 404


def test_estimates_as_csv_are_a_table(world: World) -> None:
    """One line for each value; the opening is among the queries, an answer without a table."""
    collector = opened(world)
    (token,) = tokens(world, collector, 1)
    send(world, collector, [(token, [1])])
    address = f"/v1/collectors/{collector['id']}/estimates"
    lines = world.api.get(f"{address}?postprocess=none", headers={"Accept": "text/csv"}).text.splitlines()
    assert lines[0] == '"value","share","raw_share","standard_error","low","high"'
    assert [line.split(",")[0] for line in lines[1:]] == ['"yes"', '"no"', '"(no answer)"']
    (query,) = world.api.get("/v1/queries", who="admin").json()["queries"]
    opening = world.api.get(f"/v1/queries/{query['id']}", who="admin").json()
    assert opening["provenance"]["collector"] == collector["id"]
    assert opening["accounting"]["charged"] == [{"budget": collector["budget"], "epsilon": "1", "delta": "0"}]
    assert world.api.get(f"/v1/queries/{query['id']}", who="admin", headers={"Accept": "text/csv"}).status_code == 200


def test_wrong_tokens_are_limited(world: World) -> None:
    """As wrong keys are: guessing is slow as well as hopeless."""
    collector = opened(world)
    world.api.app.state.limits.failed_keys = RateLimit(per_minute=3, burst=3, clock=lambda: 0.0)
    codes = [send(world, collector, [("ngt_" + "A" * 32, [0])]).json()["code"] for _ in range(6)]
    assert codes == ["token_refused"] * 3 + ["rate_limited"] * 3


@pytest.mark.parametrize("confidence", ["0.4", "0.0", "1", "x"])
def test_confidences_that_make_no_sense(world: World, confidence: str) -> None:
    """From 0.5, below 1."""
    collector = opened(world)
    refused = world.api.get(f"/v1/collectors/{collector['id']}/estimates?confidence={confidence}")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


def test_people_without_a_key_take_turns_as_one_caller(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that questions, reports and estimates are computed in turn with estimates of queries. Each took a thread of
    the server, without a key and without a limit, and large domains made everybody wait for as many as were sent."""
    collector, seen = opened(world), []
    (token,) = tokens(world, collector, 1)
    genuine = JobPool.call

    async def call(pool: JobPool, function: Any, *, owner: str = "") -> Any:
        seen.append(owner)
        return await genuine(pool, function, owner=owner)

    monkeypatch.setattr(JobPool, "call", call)
    assert world.api.get(f"/v1/collectors/{collector['id']}/question", who=None).status_code == 200
    assert send(world, collector, [(token, [1])]).status_code == 200
    assert seen == ["", ""]
    assert world.api.get(f"/v1/collectors/{collector['id']}/estimates", who="analyst").status_code == 200
    assert seen == ["", "", "analyst"]
