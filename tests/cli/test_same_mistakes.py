"""HTTP and the command line are two ways to one administration: the same mistake has the same outcome."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from sqlalchemy import text

from accountant.account import Account, FilterKind, Limit
from accountant.connection import open_engine
from accountant.ledger import Ledger, utc_now
from mechanisms.randomness import SystemBits
from privacy.refusal import Finding
from server.administration import budget_refusals as of_budgets
from server.administration import profile_refusals as of_profiles
from server.administration import refusal as refused
from server.administration.budget_refusals import ChangedBudget
from server.administration.budgets import Budgets
from server.administration.profiles import Profiles
from server.administration.refusal import ActRefused, ChangedDataset, KeyUsed, Refusal
from server.administration.registered import RegisteredDatasets
from server.app import create_app
from server.build import open_catalogue
from server.cli.explaining import failure_of
from server.errors import problem_body
from server.home import Home
from server.jobs import JobPool
from server.journey.pace import Pace
from server.roles import Role
from server.routes.refusals import problem_of_act
from server.services import Services
from server.store.registry import Registry
from tests.cli.conftest import PEOPLE
from tests.cli.support import Ran, cli
from tests.server.fakes import Api, FakeJourney, check_words

LIMIT = {"epsilon": "5", "delta": "0.000001"}
SMALL = {"epsilon": "1", "delta": "0.000001"}
OPTIONS = ("--epsilon", "5", "--delta", "0.000001")


@dataclass
class Doors:
    """One home with both ways in: `api` over HTTP, `command` in a process beside it."""

    home: Path
    api: Api
    ledger: Ledger
    registry: Registry
    names: dict[str, str]

    def request(self, method: str, path: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
        """A request of the administrator."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        arguments: dict[str, Any] = {"headers": named} if body is None else {"headers": named, "json": body}
        return self.api.call(method, path.format(**self.names), who="admin", **arguments)

    def command(self, *arguments: str) -> Ran:
        """A command of the operator."""
        return cli(*(part.format(**self.names) for part in arguments), "--home", str(self.home))

    def state(self) -> Any:
        """Everything that an administrator can change."""
        return (
            [(account.id, account.limit, account.revision) for account in self.ledger.accounts()],
            self.registry.principals(count=500),
            [dataclasses.replace(key, last_used_day=None) for key in self.registry.keys(count=500)],
            [(version.name, version.policy_version, version.data_version) for version in self.registry.datasets()],
            self.registry.acts(count=500),
        )


def _open(home: Path, *, rooted: bool) -> Iterator[Doors]:
    settings = Home(home).settings()
    ledger = Ledger(settings.database(), instance="test", high_water=settings.high_water())
    registry = Registry(settings.database(), secret=settings.keys_secret(), clock=utc_now)
    for name, role in (("admin", "admin"), ("research", "analyst"), ("gone", "analyst"), ("idle", "analyst")):
        registry.create_principal(name, role, actor="test")
    registry.change_principal("gone", disabled=True, actor="test")
    key = registry.create_key("admin", label="test", days=1, actor="test").text
    old = {"name": "old", "policy_version": 1, "data_version": "d", "snapshot": "old/d.duckdb", "document": {}}
    registry.register_dataset(**old, actor="test")
    registry.remove_dataset("old", actor="test")
    catalogue = open_catalogue(settings, registry)
    jobs = JobPool(threads=1, queue=1)
    services = Services(
        settings=settings,
        registry=registry,
        ledger=ledger,
        catalogue=catalogue,
        journey=FakeJourney(ledger, catalogue),
        registrar=catalogue,
        jobs=jobs,
        profiles=Profiles(ledger, catalogue, Mock(), Mock(), SystemBits(), Pace()),
        resources=Mock(),
        monitors=Mock(),
        streams=Mock(),
        synthetic=Mock(),
        models=Mock(),
        statistics=Mock(),
        webhooks=Mock(),
        dashboards=Mock(),
        requests=Mock(),
        batches=Mock(),
    )
    with asyncio.Runner() as runner:
        doors = Doors(home, Api(create_app(settings, services=services), runner, {"admin": key}), ledger, registry, {})
        if rooted:
            for principal in (None, "research", "idle"):
                body = {"dataset": "people", "limit": LIMIT, "principal": principal}
                made = doors.request("POST", "/v1/budgets", body)
                assert made.status_code == 201, made.text
                doors.names[principal or "root"] = made.json()["id"]
            engine = open_engine(settings.database())
            with engine.connect() as connection:
                connection.execute(text("UPDATE accounts SET frozen = 1 WHERE principal = 'idle'"))
                connection.commit()
            engine.dispose()
        yield doors
        jobs.close(seconds=5)
        doors.api.close()
    registry.close()
    ledger.close()


def _write_files(home: Path) -> None:
    """Dataset files with one mistake each, in the home's folder of datasets."""
    folder = home / "datasets"
    folder.mkdir(exist_ok=True)
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "twice.csv").write_text("person_id,age,city,score\n1,2,A,0.5\n1,3,B,0.5\n")
    for name in ("people", "twice"):
        ran = cli("init", str(folder / f"{name}.csv"), "--unit", "person_id", "-o", str(folder / f"{name}.yaml"))
        assert ran.code == 0, ran.err
    lost = (folder / "people.yaml").read_text().replace("people.csv", "absent.csv")
    (folder / "lost.yaml").write_text(lost.replace("dataset: people", "dataset: lost"))


@pytest.fixture(scope="module")
def rooted(_made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """A home with a root, accounts of "research" and (frozen) of "idle", and a disabled principal "gone"."""
    home = tmp_path_factory.mktemp("rooted") / "home"
    shutil.copytree(_made_home, home)
    _write_files(home)
    yield from _open(home, rooted=True)


@pytest.fixture(scope="module")
def bare(_made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """The same without any budget."""
    home = tmp_path_factory.mktemp("bare") / "home"
    shutil.copytree(_made_home, home)
    yield from _open(home, rooted=False)


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[Refusal]:
    """Every refusal of the administration, in order."""
    seen: list[Refusal] = []
    original = ActRefused.__init__

    def remember(self: ActRefused, refusal: Refusal) -> None:
        seen.append(refusal)
        original(self, refusal)

    monkeypatch.setattr(ActRefused, "__init__", remember)
    return seen


@dataclass(frozen=True)
class Mistake:
    """One mistake, made both ways.

    `refusal` is what the administration says; `forms` names the ways that refuse it before, by the form of what was
    sent ("http": the model of the body, "command": the parser of options or of the dataset file).
    """

    request: tuple[str, str, dict[str, Any] | None]
    command: tuple[str, ...]
    status: int
    code: str
    exit: int
    refusal: str
    forms: tuple[str, ...] = ()
    rooted: bool = True


def _budget(
    change: dict[str, Any], options: tuple[str, ...], status: int, code: str, exit: int, refusal: str, **more: Any
) -> Mistake:
    body = {"dataset": "people", "limit": LIMIT, **change}
    return Mistake(("POST", "/v1/budgets", body), ("budget", "set", *options), status, code, exit, refusal, **more)


def _amounts(epsilon: str, delta: str, refusal: str, *forms: str, **change: Any) -> Mistake:
    """A new budget with a limit that is none."""
    options = ("--dataset", "people", f"--epsilon={epsilon}", f"--delta={delta}")
    kind = ("--filter", str(change["filter"])) if change else ()
    body = {**change, "limit": {"epsilon": epsilon, "delta": delta}}
    return _budget(body, (*options, *kind), 422, "invalid_request", 2, refusal, forms=forms, rooted=False)


def _reason(reason: str, status: int, code: str, *forms: str) -> Mistake:
    """A change of a limit for a reason that is none."""
    options = ("--dataset", "people", "--principal", "research", "--epsilon", "1", "--delta", "0.000001")
    return Mistake(
        ("PATCH", "/v1/budgets/{research}", {"limit": SMALL, "reason": reason}),
        ("budget", "set", *options, "--reason", reason),
        status,
        code,
        2,
        "UnsuitableLimit",
        forms,
    )


BOTH = ("http", "command")
_SHARES = {"gaussian": 60, "concentrated": 20, "groups": 20}
MISTAKES: dict[str, Mistake] = {
    "a dataset that never was": _budget(
        {"dataset": "peple"}, ("--dataset", "peple", *OPTIONS), 404, "not_found", 1, "NoDataset"
    ),
    "a dataset that is not served any more": _budget(
        {"dataset": "old"}, ("--dataset", "old", *OPTIONS), 404, "not_found", 1, "NoDataset"
    ),
    "a budget for nobody": _budget(
        {"principal": "nobody"},
        ("--dataset", "people", "--principal", "nobody", *OPTIONS),
        *(404, "not_found", 1, "NoPrincipal"),
    ),
    "a parent that is not there": _budget(
        {"principal": "gone", "parent": "b_0"},
        ("--dataset", "people", "--principal", "gone", "--parent", "b_0", *OPTIONS),
        *(404, "not_found", 1, "NoParent"),
    ),
    "an analyst before the root": _budget(
        {"principal": "research"},
        ("--dataset", "people", "--principal", "research", *OPTIONS),
        *(409, "conflict", 1, "NoRoot"),
        rooted=False,
    ),
    "a pure budget with a delta": _amounts("1", "0.001", "DeltaOfPure", filter="pure"),
    "a pure budget that divides a delta": _budget(
        {"filter": "pure", "limit": {"epsilon": "1", "delta": "0"}, "delta_shares": _SHARES},
        ("--dataset", "people", "--epsilon=1", "--filter=pure", "--delta-shares=60,20,20"),
        *(422, "invalid_request", 2, "SharesOfPure"),
        rooted=False,
    ),
    "shares of delta that are no whole": _budget(
        {"delta_shares": {**_SHARES, "groups": 21}},
        ("--dataset", "people", *OPTIONS, "--delta-shares=60,20,21"),
        *(422, "invalid_request", 2, ""),
        forms=BOTH,
        rooted=False,
    ),
    "an approximate budget without a delta": _amounts("1", "0", "DeltaNeeded"),
    "an epsilon of zero": _amounts("0", "0.001", "", *BOTH),
    "an epsilon below zero": _amounts("-1", "0.001", "", *BOTH),
    "an epsilon that is no number": _amounts("nan", "0.001", "", *BOTH),
    "an epsilon finer than the ledger": _amounts("1e-13", "0.001", "", *BOTH),
    "an epsilon beyond every limit": _amounts("1000001", "0.001", "", *BOTH),
    "a delta of one": _amounts("1", "1", "", *BOTH),
    "an unknown filter": _amounts("1", "0.001", "", *BOTH, filter="none"),
    "a blank reason": _reason("  ", 409, "conflict"),
    "a reason with a control character": _reason("a\u001b[2Jb", 422, "invalid_request", "http"),
    "a reason without end": _reason("x" * 501, 422, "invalid_request", "http"),
    "a frozen budget": Mistake(
        ("PATCH", "/v1/budgets/{idle}", {"limit": SMALL, "reason": "less"}),
        ("budget", "set", "--dataset", "people", "--account", "{idle}", "--epsilon", "1", "--delta", "0.000001",
         "--reason", "less"),
        *(409, "conflict", 1, "FrozenAccount"),
    ),
    "a key of a disabled principal": Mistake(
        ("POST", "/v1/keys", {"principal": "gone"}),
        ("key", "create", "gone"),
        *(409, "conflict", 1, "DisabledPrincipal"),
    ),
    "a label that cannot be printed": Mistake(
        ("POST", "/v1/keys", {"principal": "research", "label": "a\u200bb"}),
        ("key", "create", "research", "--label", "a\u200bb"),
        *(409, "conflict", 2, "UnsuitableKey"),
    ),
    "a label without end": Mistake(
        ("POST", "/v1/keys", {"principal": "research", "label": "x" * 101}),
        ("key", "create", "newcomer", "--label", "x" * 101),
        *(422, "invalid_request", 2, "UnsuitableKey", ("http",)),
    ),
    "a key for longer than a key lives": Mistake(
        ("POST", "/v1/keys", {"principal": "research", "days": 3651}),
        ("key", "create", "research", "--days", "3651"),
        *(422, "invalid_request", 2, "", BOTH),
    ),
    "a name that nobody may have": Mistake(
        ("POST", "/v1/principals", {"name": "Ana", "role": "analyst"}),
        ("key", "create", "Ana"),
        *(422, "invalid_request", 2, "UnsuitablePrincipal", ("http",)),
    ),
    "a role that nobody may have": Mistake(
        ("POST", "/v1/principals", {"name": "ana", "role": "king"}),
        ("key", "create", "ana", "--role", "king"),
        *(422, "invalid_request", 2, "", BOTH),
    ),
    "revoking a key that is not there": Mistake(
        ("DELETE", "/v1/keys/000000000000", None),
        ("key", "revoke", "000000000000"),
        *(404, "not_found", 1, "NoKey"),
    ),
    "removing a dataset that never was": Mistake(
        ("DELETE", "/v1/datasets/peple", None),
        ("dataset", "remove", "peple"),
        *(404, "not_found", 1, "NoDataset"),
    ),
    "removing a dataset twice": Mistake(
        ("DELETE", "/v1/datasets/old", None),
        ("dataset", "remove", "old"),
        *(404, "not_found", 1, "NoDataset"),
    ),
    "a profile of a dataset that never was": Mistake(
        ("POST", "/v1/datasets/peple/profile", {"epsilon": "0.1"}),
        ("dataset", "profile", "peple", "--epsilon", "0.1"),
        *(404, "not_found", 1, "NoDataset"),
    ),
    "a profile before the root": Mistake(
        ("POST", "/v1/datasets/people/profile", {"epsilon": "0.1"}),
        ("dataset", "profile", "people", "--epsilon", "0.1"),
        *(409, "conflict", 1, "RootNeeded"),
        rooted=False,
    ),
    "a profile for nothing": Mistake(
        ("POST", "/v1/datasets/people/profile", {"epsilon": "0"}),
        ("dataset", "profile", "people", "--epsilon", "0"),
        *(422, "invalid_request", 2, "", BOTH),
    ),
    "data that contradict the declarations": Mistake(
        ("POST", "/v1/datasets", {"path": "twice.yaml"}),
        ("dataset", "add", "{home}/datasets/twice.yaml"),
        *(422, "dataset_refused", 1, "FaultyDataset"),
    ),
    "data that are not there": Mistake(
        ("POST", "/v1/datasets", {"path": "lost.yaml"}),
        ("dataset", "add", "{home}/datasets/lost.yaml"),
        *(422, "dataset_refused", 1, "FaultyDataset", ("command",)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MISTAKES))
@pytest.mark.sparse(8)
def test_the_same_mistake_has_the_same_outcome(name: str, rooted: Doors, bare: Doors, refusals: list[Refusal]) -> None:
    """Both ways refuse it for the same reason, each in its words, and neither changes anything."""
    mistake = MISTAKES[name]
    doors = rooted if mistake.rooted else bare
    doors.names["home"] = str(doors.home)
    before = doors.state()
    method, path, body = mistake.request
    response = doors.request(method, path, body)
    over_http = list(refusals)
    refusals.clear()
    ran = doors.command(*mistake.command)
    by_command = list(refusals)
    assert (response.status_code, response.json()["code"]) == (mistake.status, mistake.code), response.text
    assert (ran.code, ran.out) == (mistake.exit, ""), ran
    assert doors.state() == before
    expected = [mistake.refusal]
    assert [type(refusal).__name__ for refusal in over_http] == ([] if "http" in mistake.forms else expected)
    assert [type(refusal).__name__ for refusal in by_command] == ([] if "command" in mistake.forms else expected)
    if not mistake.forms:
        assert over_http == by_command


def test_a_budget_that_somebody_else_changed_meanwhile(
    rooted: Doors, refusals: list[Refusal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP the tag of If-Match is not that of now; the command's limit changes after it was read."""
    stale = rooted.ledger.account(rooted.names["research"])
    path = "/v1/budgets/{research}"
    body = {"limit": {"epsilon": "3", "delta": "0.000001"}, "reason": "first"}
    tag = rooted.request("GET", path).headers["etag"]
    assert rooted.request("PATCH", path, body, If_Match=tag).status_code == 200
    before = rooted.state()
    body = {"limit": LIMIT, "reason": "second"}
    lost = rooted.request("PATCH", path, body, If_Match=tag)
    monkeypatch.setattr(Budgets, "_find", lambda self, request: stale)
    options = ("--dataset", "people", "--principal", "research", "--epsilon", "4", "--delta", "0.000001")
    ran = rooted.command("budget", "set", *options, "--reason", "second")
    assert (lost.status_code, lost.json()["code"], ran.code) == (412, "precondition_failed", 1)
    assert "its limit was changed since it was read" in ran.err
    assert refusals == [ChangedBudget(stale.id)] * 2
    assert rooted.state() == before


def test_a_dataset_that_somebody_else_replaced_meanwhile(
    rooted: Doors, refusals: list[Refusal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP the tag of If-Match is not that of now; the command's version is replaced after it was read."""
    before = rooted.state()
    lost = rooted.request("PUT", "/v1/datasets/people", {"path": "people.yaml"}, If_Match='"9-d"')
    monkeypatch.setattr(RegisteredDatasets, "tag", lambda self, name: "9-d")
    ran = rooted.command("dataset", "add", str(rooted.home / "datasets" / "people.yaml"))
    assert (lost.status_code, lost.json()["code"], ran.code) == (412, "precondition_failed", 1)
    assert "another version was attached" in ran.err
    assert refusals == [ChangedDataset("people")] * 2
    assert rooted.state() == before


@pytest.mark.slow
def test_a_key_for_idempotency_stands_for_one_request(rooted: Doors, refusals: list[Refusal]) -> None:
    """Under the same key the same request is carried out once, another one is refused, and a refusal gives it back."""
    body, other = {"principal": "research", "label": "a"}, {"principal": "research", "label": "b"}
    options = ("key", "create", "research", "--label")
    assert rooted.request("POST", "/v1/keys", {"principal": "gone"}, Idempotency_Key="k").status_code == 409
    assert rooted.command("key", "create", "gone", "--idempotency-key", "k").code == 1
    refusals.clear()
    first = rooted.request("POST", "/v1/keys", body, Idempotency_Key="k").json()
    made = rooted.command(*options, "a", "--idempotency-key", "k", "--json").json
    before = rooted.state()
    assert rooted.request("POST", "/v1/keys", body, Idempotency_Key="k").json() == {**first, "key": None}
    assert rooted.command(*options, "a", "--idempotency-key", "k", "--json").json == {**made, "key": None}
    assert made["key"].startswith("ngk_")
    again = rooted.request("POST", "/v1/keys", other, Idempotency_Key="k")
    ran = rooted.command(*options, "b", "--idempotency-key", "k")
    assert (again.status_code, again.json()["code"], ran.code) == (409, "idempotency_conflict", 2)
    assert refusals == [KeyUsed(), KeyUsed()]
    assert rooted.command(*options, "b", "--idempotency-key", "k k").code == 2
    assert rooted.request("POST", "/v1/keys", other, Idempotency_Key="k k").status_code == 422
    assert rooted.state() == before


@pytest.fixture
def fresh(home: Path) -> Iterator[Doors]:
    """One without any budget for a test that changes it."""
    yield from _open(home, rooted=False)


def test_both_ways_write_the_same_audit_line(fresh: Doors) -> None:
    """The same acts leave the same lines in the ledger and in the log of acts, but for who did it and identifiers."""

    def opened(number: int) -> dict[str, Any]:
        account = fresh.ledger.accounts()[number]
        (entry,) = fresh.ledger.entries(account.id)
        details = json.loads(entry.details)
        return {"kind": entry.kind, **{name: value for name, value in details.items() if name != "actor"}}

    start = len(fresh.registry.acts(count=500))
    fresh.request("POST", "/v1/budgets", {"dataset": "people", "limit": LIMIT})
    fresh.request("POST", "/v1/principals", {"name": "one", "role": "analyst"})
    made = fresh.request("POST", "/v1/keys", {"principal": "one"}).json()
    fresh.request("DELETE", f"/v1/keys/{made['id']}")
    parent = fresh.ledger.accounts()[0].id
    fresh.request("POST", "/v1/budgets", {"dataset": "people", "limit": LIMIT, "parent": parent})
    over_http = fresh.registry.acts(count=500)[start:]
    made = fresh.command("key", "create", "two", "--json").json
    fresh.command("key", "revoke", made["id"])
    fresh.command("budget", "set", "--dataset", "people", "--parent", parent, *OPTIONS)
    by_command = fresh.registry.acts(count=500)[start + len(over_http) :]
    assert [action for _, _, _, action, _ in over_http] == [action for _, _, _, action, _ in by_command]
    assert [action for _, _, _, action, _ in over_http] == ["principal_created", "key_created", "key_revoked"]
    assert {actor for _, _, actor, _, _ in over_http} == {"admin"}
    assert {actor.partition(":")[0] for _, _, actor, _, _ in by_command} == {"os"}
    assert opened(1) == opened(2)


ACCOUNT = Account.opened(
    id="b_1",
    dataset="people",
    parent=None,
    principal=None,
    name="root",
    limit=Limit(Fraction(1), Fraction(1, 10**6)),
    filter=FilterKind.APPROXIMATE,
    created=datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC),
)
EXAMPLES: tuple[Refusal, ...] = (
    refused.NoDataset("peple", ("people",)),
    refused.NoPrincipal("nobody"),
    refused.NoKey("000000000000"),
    of_budgets.NoAccount("b_0", "people"),
    of_budgets.NoParent("b_0", "people"),
    of_budgets.NoRoot("people", ACCOUNT.limit),
    of_budgets.SecondRoot("people"),
    of_budgets.SecondAccount("b_1"),
    of_budgets.AmbiguousAccount("people", "research", ("b_1", "b_2")),
    of_budgets.DeltaOfPure(),
    of_budgets.DeltaNeeded(given=False),
    of_budgets.FilterFixed(ACCOUNT),
    of_budgets.SharesFixed(ACCOUNT),
    of_budgets.SharesOfPure(),
    of_budgets.ReasonNeeded(ACCOUNT),
    of_budgets.FrozenAccount("b_1"),
    of_budgets.ChangedBudget("b_1"),
    of_budgets.UnsuitableBudget("people", "it is too deep"),
    of_budgets.UnsuitableLimit("b_1", "a reason has characters"),
    of_budgets.UnsuitableWindow("b_1", "the end is not after the start"),
    of_budgets.SmallWindow("b_1", Fraction(1, 10**9), Fraction(1, 10**4)),
    refused.NameInUse("research"),
    refused.OtherRole("research", role=Role.ANALYST, wanted=Role.ADMIN),
    refused.DisabledPrincipal("gone"),
    refused.EndedKey("k_1"),
    refused.LastAdmin(),
    refused.UnsuitablePrincipal("a name has letters"),
    refused.UnsuitableKey("a label has letters"),
    refused.FaultyDataset((Finding("dataset_refused", "a table is missing", "There is none.", ("Add it.",)),)),
    refused.ServedAlready("people", "1-d"),
    refused.ChangedDataset("people"),
    refused.OtherDatasetName(),
    refused.StoredVersion(),
    of_profiles.RootNeeded("people"),
    of_profiles.ProfiledAlready("people", "d1", "2026-03-01", "0.1"),
    of_profiles.ProfileRunning("people"),
    of_profiles.UnpricedProfile("people", (Finding("policy_forbids", "it is too much", "It is.", ("Ask for less.",)),)),
    of_profiles.UnaffordableProfile("people", "0.1", "0.01"),
    of_profiles.ProfileFailed("people", charged=True),
    refused.KeyUsed(),
    refused.OutcomeUnknown(),
)


@pytest.mark.parametrize("refusal", EXAMPLES, ids=lambda refusal: type(refusal).__name__)
def test_every_refusal_has_words_at_both_doors(refusal: Refusal) -> None:
    """What, why and what to do, over HTTP and at the terminal."""
    check_words(problem_body(problem_of_act(refusal), request_id="r"))
    failure = failure_of(refusal)
    assert failure.finding.what
    assert failure.finding.why
    assert failure.finding.instead
    assert failure.exit_code in (1, 2)


def test_the_examples_are_all_refusals() -> None:
    """A new refusal gets an example."""
    kinds = {
        kind
        for kind in (vars(refused) | vars(of_budgets) | vars(of_profiles)).values()
        if isinstance(kind, type) and issubclass(kind, Refusal)
    }
    assert {type(example) for example in EXAMPLES} == kinds - {Refusal, refused.Absent}
