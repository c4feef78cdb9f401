"""Budget requests over HTTP: asked for by one, decided by another, once, and seen by nobody else."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from accountant.errors import LedgerUnavailable
from server.administration.budget_requests import Decide
from server.administration.refusal import ActRefused
from server.roles import Role
from server.scopes import Scope
from server.store.budget_requests import RequestState
from server.store.webhooks import WebhookRow
from tests.server.conftest import World
from tests.server.fakes import SECRET_LITERAL, query

PATH = "/v1/budget-requests"
MORE = {"epsilon": "12", "delta": "0.000001"}
ASKED = {"dataset": "clinic", "reason": "a report", "limit": MORE}


def asked(world: World, who: str = "analyst", **body: Any) -> dict[str, Any]:
    """A request that was made."""
    response = world.api.post(PATH, json={**ASKED, **body}, who=who)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


def decide(world: World, made: Mapping[str, Any], state: str, who: str = "admin", **more: Any) -> Any:
    """PATCH."""
    return world.api.call("PATCH", made["links"]["self"], json={"state": state, **more}, who=who)


def too_dear(world: World, *, own: str = "0.5") -> None:
    """Estimates say that a question costs more than is left, of which the own account lacks `own`."""
    price = {"budget": world.account.id, "epsilon": "1.5", "delta": "0.0000002"}
    left = {"epsilon": str(1.5 - float(own)), "delta": "0.00000015"}
    world.journey.estimated = {"verdict": "rejected_budget", "price": price, "remaining": left}


def hook(world: World, principal: str, *events: str) -> None:
    """A webhook of somebody for these events."""
    row = WebhookRow(
        id=f"w_{principal}", principal=principal, host="h", events=json.dumps(events), subjects=None, sealed=b"s"
    )
    assert world.registry.add_webhook(row, most=9) is not None


def sent(world: World, principal: str) -> list[dict[str, Any]]:
    """The bodies that wait for somebody's webhook."""
    with world.registry._engine.connect() as connection:
        text = f"SELECT body FROM webhook_deliveries WHERE webhook = 'w_{principal}' ORDER BY sequence"
        return [json.loads(body) for (body,) in connection.exec_driver_sql(text)]


def test_what_a_question_lacks_is_asked_for_and_given(world: World) -> None:
    """The estimate is kept with it; its limit is the one that lacks nothing; the entry names the request."""
    too_dear(world)
    hook(world, "admin", "request.waiting")
    hook(world, "analyst", "request.decided", "request.waiting")
    question = {**query(), "sql": f"SELECT COUNT(*) FROM patients WHERE sex = '{SECRET_LITERAL}'"}
    made = asked(world, question=question, limit=None)
    assert made["estimate"]["missing"] == {"epsilon": "0.5", "delta": "0.00000005"}
    # 5e-8 of the 15 % that show groups.
    assert made["limit"] == {"epsilon": "10.5", "delta": "0.00000134"}
    assert (made["question"]["sql"], made["budget"]) == (question["sql"], world.account.id)
    (waiting,) = sent(world, "admin")
    assert waiting["data"]["missing"] == made["estimate"]["missing"]
    with world.registry._engine.connect() as connection:
        dump = str(connection.exec_driver_sql("SELECT * FROM budget_requests").all()) + json.dumps(waiting)
    assert SECRET_LITERAL not in dump
    assert "a report" not in dump
    done = decide(world, made, "approved", reason="agreed")
    assert (done.status_code, done.json()["decision"]["by"]) == (200, "admin")
    account = world.ledger.account(world.account.id)
    assert [str(account.limit.epsilon), account.revision] == ["21/2", 2]
    told = json.loads(world.ledger.entries(account.id)[-1].details)
    assert (told["request"], told["actor"], told["reason"]) == (made["id"], "admin", "agreed")
    ((decided,), waits) = sent(world, "analyst"), len(sent(world, "admin"))
    assert (decided["type"], decided["data"]["state"], waits) == ("request.decided", "approved", 1)
    assert world.ledger.audit().ok


def test_a_budget_is_opened_where_there_is_none_and_nothing_is_said_of_datasets(world: World) -> None:
    """Who has no budget learns the same of a dataset that is there and of one that is not."""
    there, absent = asked(world, "other", question=query()), asked(world, "other", dataset="absent")
    assert there["question"] is not None
    for made in (there, absent):
        assert (made["budget"], made["estimate"], made["state"]) == (None, None, "open")
    given = decide(world, there, "approved").json()
    account = world.ledger.account(given["budget"])
    assert (account.principal, account.parent, str(account.limit.epsilon)) == ("other", world.root.id, "12")
    assert decide(world, absent, "approved").status_code == 404
    assert world.api.get(absent["links"]["self"], who="other").json()["state"] == "open"


def test_foreign_requests_are_not_there(world: World) -> None:
    """An owner sees those of the datasets of which it has a budget; others see their own; nobody decides their own."""
    made = asked(world)
    for who, seen in (("other", 404), ("owner", 404), ("auditor", 200), ("analyst", 200), ("dashboard", 403)):
        assert world.api.get(made["links"]["self"], who=who).status_code == seen, who
        listed = world.api.get(PATH, who=who)
        assert len(listed.json().get("requests", ())) == int(seen == 200), who
    assert decide(world, made, "approved", "other").status_code == 404
    assert decide(world, made, "approved", "analyst").status_code == 403
    assert decide(world, made, "withdrawn").status_code == 403
    assert world.api.get(f"{PATH}?after={made['id']}", who="other").status_code == 404
    decide(world, asked(world, "owner"), "approved")
    assert decide(world, made, "rejected", "owner").status_code == 422, "a rejection has a reason"
    done = decide(world, made, "rejected", "owner", reason="too much")
    assert done.json()["state"] == "rejected"
    shown = world.api.get(made["links"]["self"], who="analyst").json()["decision"]
    assert (shown["by"], shown["reason"]) == ("owner", "too much")
    assert world.ledger.account(world.account.id).revision == 1


def test_colleagues_learn_nothing_of_each_others_requests(world: World) -> None:
    """Who has a budget of the dataset and is no owner sees none and is told of none; nor is an owner of other data."""

    def opened(who: str) -> None:
        """Somebody has a budget of the dataset."""
        mine = {"parent": world.root.id, "principal": who, "name": who, "actor": "test"}
        world.ledger.create_account(dataset="clinic", limit=world.account.limit, filter=world.account.filter, **mine)

    def told() -> list[int]:
        """How many notices everybody got."""
        return [len(sent(world, who)) for who in ("admin", "owner", "other", "analyst")]

    opened("other")
    for who in ("admin", "owner", "other", "analyst"):
        hook(world, who, "request.waiting")
    made = asked(world)
    assert world.api.get(made["links"]["self"], who="other").status_code == 404
    assert world.api.get(PATH, who="other").json()["requests"] == []
    assert decide(world, made, "approved", "other").status_code == 404
    assert told() == [1, 0, 0, 0]
    opened("owner")
    asked(world)
    assert told() == [2, 1, 0, 0]
    asked(world, "owner")
    assert told() == [3, 1, 0, 0], "nobody decides their own"
    world.registry.change_principal("owner", disabled=True, actor="test")
    asked(world)
    assert told() == [4, 1, 0, 0]


def test_a_request_is_decided_once(world: World) -> None:
    """A second decision is 409, or 412 with the tag that was read, and changes nothing."""
    made = asked(world)
    tag = world.api.get(made["links"]["self"], who="admin").headers["etag"]
    assert decide(world, made, "withdrawn", "analyst").status_code == 200
    assert decide(world, made, "approved").status_code == 409
    headers = {"If-Match": tag}
    again = world.api.call("PATCH", made["links"]["self"], json={"state": "approved"}, who="admin", headers=headers)
    assert again.status_code == 412
    assert world.ledger.account(world.account.id).revision == 1


def test_what_is_lent_to_an_owner_lets_it_decide_nothing(world: World) -> None:
    """An analyst who lends to the owner of other data gets nobody who approves: it sees none and is told of none."""
    day = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=30)).date().isoformat()
    lent = {"principal": "owner", "limit": {"epsilon": "1", "delta": "0.0000001"}, "expires": day}
    assert world.api.post(f"/v1/budgets/{world.account.id}:lend", json=lent).status_code == 201
    hook(world, "owner", "request.waiting")
    made = asked(world)
    assert sent(world, "owner") == []
    assert world.api.get(PATH, who="owner").json()["requests"] == []
    assert decide(world, made, "approved", "owner").status_code == 404


def test_a_key_for_asking_decides_nothing(world: World) -> None:
    """Approving and rejecting need the scope of administrators; withdrawing what one asked for does not."""
    made = asked(world)
    for who in ("admin", "owner", "analyst"):
        world.api.keys[f"{who} asks"] = world.registry.create_key(
            who, label="x", days=1, actor="test", scopes=(Scope.READ, Scope.ASK)
        ).text
    for who in ("admin", "owner"):
        for state in ("approved", "rejected"):
            found = decide(world, made, state, f"{who} asks", reason="no")
            assert (found.status_code, found.json()["code"]) in {(403, "missing_scope"), (404, "not_found")}, who
    assert decide(world, made, "approved", "admin asks").status_code == 403
    assert decide(world, made, "withdrawn", "analyst asks").json()["state"] == "withdrawn"


def test_of_administrators_who_decide_at_once_one_does(world: World) -> None:
    """All have read the request as open: one entry, one decision, and the limit is the winner's."""
    made = asked(world)
    row = world.registry.request(made["id"])
    assert row is not None
    outcomes: list[str] = []

    def work(number: int) -> None:
        state = RequestState.APPROVED if number % 2 else RequestState.REJECTED
        try:
            outcomes.append(
                world.services.requests.decide(
                    row, Decide(state=state, actor=f"admin{number}", role=Role.ADMIN, reason="so")
                ).state
            )
        except ActRefused as refused:
            outcomes.append(refused.refusal.code)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("conflict") == 5
    now, account = world.registry.request(made["id"]), world.ledger.account(world.account.id)
    assert now is not None
    assert account.revision == (2 if now.state is RequestState.APPROVED else 1)


def test_who_comes_second_meets_the_decision_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An approval that finds the limit changed by another approval says that the request was decided."""
    made = asked(world)
    row = world.registry.request(made["id"])
    assert row is not None
    budgets = type(world.services.requests.budgets)
    change = budgets.change

    def beaten(self: Any, *args: Any, **more: Any) -> Any:
        monkeypatch.setattr(budgets, "change", change)
        assert decide(world, made, "approved").status_code == 200
        return change(self, *args, **more)

    monkeypatch.setattr(budgets, "change", beaten)
    with pytest.raises(ActRefused) as refused:
        world.services.requests.decide(row, Decide(state=RequestState.APPROVED, actor="root", role=Role.ADMIN))
    assert refused.value.refusal.code == "conflict"


def test_neither_side_of_an_approval_is_there_without_the_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin that decides in a transaction of its own leaves a request approved whose limit never changed."""
    made = asked(world)
    row = world.registry.request(made["id"])
    assert row is not None

    def unreachable(*_: object, **given: Any) -> None:
        if "twin" in told:
            with world.registry._writing() as connection:
                given["beside"](connection)
                connection.commit()
        raise LedgerUnavailable("away")

    wanted = Decide(state=RequestState.APPROVED, actor="admin", role=Role.ADMIN)
    states, told = [], set[str]()
    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(world.ledger, "change_limit", unreachable)
            with pytest.raises(LedgerUnavailable):
                world.services.requests.decide(row, wanted)
        found = world.registry.request(made["id"])
        assert found is not None
        states.append(found.state.value)
        told.add("twin")
    assert states == ["open", "approved"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"limit": {"epsilon": "10", "delta": "0.000001"}}, 409),
        ({"limit": None}, 422),
        ({"limit": {"epsilon": "0", "delta": "0"}}, 422),
        ({"budget": "b_absent"}, 404),
        ({"reason": ""}, 422),
        ({"question": {"dataset": "school", "sql": "SELECT 1"}}, 422),
        ({"state": "approved"}, 422),
    ],
)
def test_requests_that_make_no_sense_are_refused(world: World, body: dict[str, Any], status: int) -> None:
    """No limit, less than there is, somebody else's budget: nothing is stored."""
    assert world.api.post(PATH, json={**ASKED, **body}).status_code == status
    assert world.api.get(PATH).json()["requests"] == []


def test_what_was_lent_is_not_asked_for(world: World) -> None:
    """An envelope is its lender's: no request changes it, and what it lacks is not what the own account lacks."""
    lent = world.ledger.create_account(
        dataset="clinic",
        parent=world.root.id,
        principal="other",
        name="lent",
        limit=world.account.limit,
        filter=world.account.filter,
        actor="test",
        expires=world.ledger.time() + datetime.timedelta(days=1),
    )
    too_dear(world)
    world.journey.estimated["price"]["budget"] = lent.id
    body = {**ASKED, "question": query(), "limit": None}
    assert world.api.post(PATH, json={**body, "budget": lent.id}, who="other").status_code == 404
    assert world.api.post(PATH, json=body, who="other").status_code == 422
    assert asked(world, "other", question=query())["budget"] is None


def test_what_others_spent_is_no_reason_for_a_request(world: World) -> None:
    """Where an account above is short, the own one lacks nothing, and no number of the other is shown."""
    too_dear(world, own="0")
    price = world.journey.estimated["price"]
    world.journey.estimated["price"] = {**price, "delta": "0"}
    refused = world.api.post(PATH, json={**ASKED, "limit": None, "question": query()})
    assert (refused.status_code, "share with others" in refused.json()["why"]) == (409, True)


def test_a_window_is_no_reason_for_a_greater_limit(world: World) -> None:
    """What the window alone keeps back is not asked for as a limit, of which it would open a part; a named limit is."""
    window = {"window": {"kind": "yearly", "slices": 20}, "reason": "a part each year"}
    path = f"/v1/budgets/{world.account.id}"
    assert world.api.call("PATCH", path, json=window, who="admin").status_code == 200
    too_dear(world, own="1")
    refused = world.api.post(PATH, json={**ASKED, "limit": None, "question": query()})
    assert (refused.status_code, "window" in refused.json()["what"]) == (409, True), refused.text
    assert asked(world)["limit"] == MORE


def test_an_approval_lowers_no_limit_unnoticed(world: World) -> None:
    """Raised meanwhile: refused, and the request stays open; with a limit of its own it is given."""
    made = asked(world)
    more = {"limit": {"epsilon": "20", "delta": "0.000001"}, "reason": "other"}
    world.api.call("PATCH", f"/v1/budgets/{world.account.id}", json=more, who="admin")
    assert decide(world, made, "approved").status_code == 409
    assert decide(world, made, "approved", limit={"epsilon": "15", "delta": "0.000001"}).status_code == 200
    assert str(world.ledger.account(world.account.id).limit.epsilon) == "15"


def test_open_requests_of_one_principal_are_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Withdrawn ones do not count."""
    monkeypatch.setattr("server.administration.budget_requests.REQUESTS_MAX", 2)
    first = asked(world)
    asked(world)
    assert world.api.post(PATH, json=ASKED).status_code == 409
    decide(world, first, "withdrawn", "analyst")
    asked(world)
