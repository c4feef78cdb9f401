"""Streams that are opened for everybody, over HTTP: who pays, who asks, what one learns of what another one asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from accountant.errors import LedgerError
from server.streams.sealing import Frame
from server.streams.streams import Streams
from tests.journey.clinic import attach, services_of, write_files
from tests.journey.watched import Clinic

AGES: dict[str, Any] = {
    "dataset": "clinic",
    "table": "people",
    "columns": [{"name": "age", "low": 18, "high": 89}],
    "epsilon": "100",
    "updates": 2,
    "queries": 20,
    "shared": True,
}
WHOLE = {"where": []}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic whose policy lets everybody read what others paid for, with an administrator and an owner."""
    home = tmp_path_factory.mktemp("shared")
    path = write_files(home / "sources")
    path.write_text(path.read_text().replace("policy: {", "policy: {releases_shared: free, "))
    with services_of(home) as services:
        attach(services, path)
        clinic = Clinic(home, services, path)
        clinic.person("ada")
        clinic.person("root", role="admin")
        clinic.person("eve", role="owner")
        yield clinic


def opened(clinic: Clinic, who: str, **options: Any) -> httpx.Response:
    """Opens a stream of ages for everybody."""
    return clinic.call(who, "POST", "/v1/streams", {**AGES, **options})


def ask(clinic: Clinic, who: str, stream: str, *queries: dict[str, Any]) -> httpx.Response:
    """Queries of one."""
    return clinic.call(who, "POST", f"/v1/streams/{stream}/queries", {"queries": list(queries)})


def ages(low: int, high: int) -> dict[str, Any]:
    """One query."""
    return {"where": [{"key": "age", "low": low, "high": high}]}


def root_of(clinic: Clinic) -> str:
    """The dataset's root account."""
    return next(one.id for one in clinic.services.ledger.accounts(dataset="clinic") if one.parent is None)


def described(clinic: Clinic, who: str) -> list[dict[str, Any]]:
    """The streams beside the dataset, as somebody reads them."""
    found: list[dict[str, Any]] = clinic.call(who, "GET", "/v1/datasets/clinic").json()["streams"]
    return found


def test_the_root_pays_and_everybody_asks(shared: Clinic) -> None:
    """Shows one charge on the root, or on a group that is named, and free answers for people with a budget alone."""
    ann, account = shared.somebody()
    before = shared.spent(root_of(shared))
    estimate = shared.call("root", "POST", "/v1/streams:estimate", AGES).json()
    assert estimate["price"]["budget"] == root_of(shared)
    made = opened(shared, "root")
    assert made.status_code == 201, made.text
    stream = made.json()
    assert (stream["shared"], stream["budget"], stream["status"]) == (True, root_of(shared), "settled")
    assert shared.spent(root_of(shared)) - before > 0
    (beside,) = [one for one in described(shared, ann) if one["id"] == stream["id"]]
    assert beside["keys"] == [{"name": "age", "type": "integer", "values": 72, "first": 18, "last": 89}]
    assert (beside["principal"], beside["comparing"], beside["sql"]) == ("root", True, stream["sql"])
    told = ask(shared, ann, stream["id"], WHOLE).json()["answers"][0]
    assert (told["found"], told["repeated"]) == ("synopsis", False)
    assert shared.spent(account) == 0
    seen = shared.call(ann, "GET", f"/v1/streams/{stream['id']}").json()
    assert (seen["price"], seen["charged"], seen["keys"]) == (None, [], beside["keys"])
    shared.person("nan", role="owner")  # without a budget
    for method, path, body in (("GET", "", None), ("POST", "/queries", {"queries": [WHOLE]}), ("DELETE", "", None)):
        assert shared.call("nan", method, f"/v1/streams/{stream['id']}{path}", body).status_code == 404
    group = {"dataset": "clinic", "parent": root_of(shared), "limit": {"epsilon": "150", "delta": "0.000001"}}
    envelope = shared.call("root", "POST", "/v1/budgets", group).json()["id"]
    assert opened(shared, "root", budget=envelope).json()["budget"] == envelope
    assert opened(shared, "root", budget=envelope).json()["code"] == "budget_exhausted"
    assert opened(shared, "root", budget=account).json()["code"] == "no_budget"
    # A stream of an administrator's own is paid from an account of its own.
    for budget in (root_of(shared), envelope, None):
        assert opened(shared, "root", shared=False, budget=budget).json()["code"] == "unknown_dataset"


def test_nobody_learns_what_another_one_asked(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that a query is compared for each person as if nobody had asked it: one look at rows, one comparison, and
    no word that it was given before; and that a person's own repeat reads nothing."""
    ann, _ = shared.somebody()
    bob, _ = shared.somebody()
    stream = opened(shared, "root").json()["id"]
    streams, ran, leased = shared.services.streams, list[str](), list[str]()
    assert isinstance(streams, Streams)
    run, lease = streams.resources.private.run, streams.resources.private.lease

    def counted(snapshot: Any, statement: Any, **options: Any) -> Any:
        ran.append(statement.sql)
        return run(snapshot, statement, **options)

    def noted(*, owner: str) -> Any:
        leased.append(owner)
        return lease(owner=owner)

    monkeypatch.setattr(streams.resources.private, "run", counted)
    monkeypatch.setattr(streams.resources.private, "lease", noted)
    said = {}
    for number, who in enumerate((ann, bob), start=1):
        told = ask(shared, who, stream, ages(30, 49)).json()
        assert (told["compared"], told["answers"][0]["repeated"]) == (number, False)
        assert (len(ran), leased) == (number, [ann, bob][:number])
        said[who] = told["answers"][0]
    for who in (ann, bob):
        again = ask(shared, who, stream, ages(30, 49)).json()
        assert again["answers"] == [{**said[who], "repeated": True}]
        assert again["compared"] == 2
    assert len(set(ran)) == 1
    assert len(ran) == 2
    # Answers that are kept for all would say that another one had asked.
    genuine = Frame.key
    with monkeypatch.context() as planted:
        planted.setattr(Frame, "key", lambda frame, cells, version, *, asker: genuine(frame, cells, version, asker=""))
        ask(shared, ann, stream, ages(20, 29))
        leaked = ask(shared, bob, stream, ages(20, 29)).json()
    assert (leaked["answers"][0]["repeated"], leaked["compared"], len(ran)) == (True, 3, 3)


def test_owners_pay_from_their_own_account_and_analysts_open_none(shared: Clinic) -> None:
    """Shows who may open one for others, who may end it, and that the end is everybody's."""
    ann, account = shared.somebody()
    for path in ("/v1/streams", "/v1/streams:estimate"):
        refused = shared.call(ann, "POST", path, AGES)
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert shared.spent(account) == 0
    assert opened(shared, "eve").json()["code"] == "unknown_dataset", "she has no account yet"
    envelope = shared.call(
        "root",
        "POST",
        "/v1/budgets",
        {"dataset": "clinic", "principal": "eve", "limit": {"epsilon": "250", "delta": "0.000001"}},
    ).json()["id"]
    first, second = (opened(shared, "eve").json() for _ in range(2))
    assert (first["budget"], first["shared"]) == (envelope, True)
    assert opened(shared, "eve").json()["code"] == "budget_exhausted"
    assert ask(shared, ann, first["id"], WHOLE).status_code == 200
    assert shared.call(ann, "DELETE", first["links"]["self"]).status_code == 404
    assert shared.call("eve", "DELETE", first["links"]["self"]).json()["status"] == "closed"
    assert shared.call("root", "DELETE", second["links"]["self"]).json()["status"] == "closed"
    assert ask(shared, ann, first["id"], WHOLE).status_code == 409
    assert not {first["id"], second["id"]} & {one["id"] for one in described(shared, ann)}
    own = opened(shared, ann, shared=False).json()
    assert shared.call("root", "DELETE", own["links"]["self"]).status_code == 404
    assert ask(shared, "root", own["id"], WHOLE).status_code == 404


def test_the_policy_is_the_switch(shared: Clinic) -> None:
    """Shows that where the policy shares nothing for free any more, nobody but its owner sees one, and none is opened;
    and that it goes on where the policy shares again."""
    ann, _ = shared.somebody()
    stream = opened(shared, "root").json()["id"]
    text = shared.path.read_text()
    for way in ('"no"', "charged"):
        shared.path.write_text(text.replace("releases_shared: free", f"releases_shared: {way}"))
        attach(shared.services, shared.path)
        assert ask(shared, ann, stream, WHOLE).status_code == 404
        assert described(shared, ann) == []
        refused = opened(shared, "root").json()
        assert (refused["code"], refused["what"]) == ("policy_forbids", "a stream for others is refused")
    assert ask(shared, "root", stream, WHOLE).status_code == 200
    shared.path.write_text(text)
    attach(shared.services, shared.path)
    assert ask(shared, ann, stream, WHOLE).status_code == 200


def test_a_stream_whose_opening_failed_is_not_offered(shared: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the dataset's description has none that the ledger has not as settled."""
    ann, _ = shared.somebody()
    known = described(shared, ann)

    def fails(*given: object) -> None:
        raise LedgerError("it takes nothing")

    with monkeypatch.context() as patch:
        patch.setattr(shared.services.ledger, "post", fails)
        assert opened(shared, "root", epsilon="20").status_code == 500
    assert described(shared, ann) == known
    assert opened(shared, "root", epsilon="20").json()["id"] in [one["id"] for one in described(shared, ann)]
