"""An administrator's questions about all accounts: this month, what runs out, what is left."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import pytest

from accountant.account import Account, FilterKind, Limit
from accountant.ledger import Ledger
from accountant.request import CoreCharge, ReserveRequest
from server.administration.overview import Overview
from server.store.registry import Registry
from tests.accountant.making import laplace
from tests.clocks import Clock
from tests.server.conftest import SECRET, World
from tests.server.fakes import clinic, query

BEGIN = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


@dataclass
class Team:
    """Two accounts below a root, whose days the test counts."""

    ledger: Ledger
    registry: Registry
    clock: Clock[datetime.datetime]
    overview: Overview
    accounts: dict[str, Account]
    asked: int = 0

    def spend(self, who: str, epsilon: str) -> None:
        """A charge of so much."""
        self.asked += 1
        amount = Fraction(epsilon)
        core = CoreCharge(core_key=f"{self.asked:064}", quality=amount, events=(laplace(epsilon),))
        wanted = ReserveRequest(
            query_id=f"q_{self.asked}",
            principal=who,
            account=self.accounts[who].id,
            body_hash="0" * 64,
            cores=(core,),
            reuse="none",
        )
        self.ledger.fail(self.ledger.reserve(wanted).query_id)

    def after(self, days: float) -> None:
        """Moves the clock to so many days after the beginning."""
        self.clock.now = BEGIN + datetime.timedelta(days=days)

    def spent(self, month: str | None = None) -> dict[str, str]:
        """What everybody spent."""
        begin = None if month is None else datetime.date.fromisoformat(f"{month}-01")
        rows = self.overview.spending(begin)["budgets"]
        assert isinstance(rows, list)
        return {row["name"]: row["epsilon"] for row in rows}


@pytest.fixture
def team(database: str) -> Iterator[Team]:
    """A team whose clocks are the test's."""
    clock = Clock(BEGIN)
    ledger = Ledger(database, instance="test", clock=clock, lease_seconds=10_000_000.0)
    registry = Registry(database, secret=SECRET, clock=clock)
    accounts: dict[str, Account] = {}
    for name in ("root", "ann", "bob"):
        accounts[name] = ledger.create_account(
            dataset="clinic",
            parent=accounts["root"].id if accounts else None,
            principal=name if accounts else None,
            name=name,
            limit=Limit(Fraction(10 if accounts else 12), Fraction(0)),
            filter=FilterKind.PURE,
            actor="test",
        )
    overview = Overview(ledger, registry, {"clinic": clinic()}.get)
    yield Team(ledger, registry, clock, overview, accounts)
    registry.close()
    ledger.close()


def test_who_spent_what_in_which_month(team: Team) -> None:
    """Of each month what was charged in it, whoever asks when; a month that is over stays as it was."""
    team.after(10)
    team.spend("ann", "2")
    assert team.spent() == {"ann": "2", "bob": "0", "root": "2"}
    team.after(31)
    team.spend("ann", "0.5")
    team.after(35)
    team.spend("bob", "1")
    assert team.spent() == {"ann": "0.5", "bob": "1", "root": "1.5"}
    assert team.spent("2026-03") == {"ann": "2", "bob": "0", "root": "2"}
    assert team.spent("2026-02") == {"ann": "0", "bob": "0", "root": "0"}
    team.after(70)
    team.spend("ann", "1")
    assert team.spent("2026-04") == {"ann": "0.5", "bob": "1", "root": "1.5"}


def test_days_that_are_remembered_change_nothing(team: Team) -> None:
    """The same with and without days that were remembered in between, and entries before them are not read again."""
    for day in range(1, 60, 7):
        team.after(day)
        team.spend("ann", "0.25")
        if day % 2:
            team.overview.remember()
    expected = {"ann": "1", "bob": "0", "root": "1"}
    assert team.spent("2026-04") == expected
    with team.registry._engine.begin() as connection:
        known = connection.exec_driver_sql("SELECT COUNT(*) FROM account_days WHERE day = '2026-04-01'").scalar_one()
        connection.exec_driver_sql("DELETE FROM account_days")
    assert known == 3
    assert team.spent("2026-04") == expected


def test_what_runs_out_and_when(team: Team) -> None:
    """Half of the limit in ten days is the other half in ten more; what nobody spends does not run out."""
    team.after(10)
    team.spend("ann", "5")
    out = team.overview.running_out(within_days=12)["budgets"]
    assert isinstance(out, list)
    # The root has 7 of 12 left.
    assert [(row["name"], row["projected"]) for row in out] == [("ann", "2026-03-21")]
    assert out[0]["pace"]["share_per_day"] == "0.05"
    every = team.overview.running_out(within_days=3000)["budgets"]
    assert isinstance(every, list)
    assert [row["name"] for row in every] == ["ann", "root"]
    team.after(60)
    assert team.overview.running_out(within_days=3000)["budgets"] == []
    team.spend("ann", "4.5")
    nearly = team.overview.running_out(within_days=1)["budgets"]
    assert isinstance(nearly, list)
    assert [(row["name"], row["used_share"]) for row in nearly if row["name"] == "ann"] == [("ann", "0.95")]


def test_what_could_still_be_asked(team: Team) -> None:
    """Counts at the default spend, and no more than the root lets through; a frozen account asks nothing."""

    def left() -> dict[str, int]:
        rows = team.overview.questions_left()["budgets"]
        assert isinstance(rows, list)
        return {row["name"]: row["questions_left"]["laplace"] for row in rows}

    assert left() == {"ann": 100, "bob": 100}
    team.spend("ann", "9")
    assert left() == {"ann": 10, "bob": 30}
    team.ledger.freeze("bob", actor="admin", reason="test", beside=lambda *_: None)
    assert left() == {"ann": 10}


def test_overseers_ask_over_http(world: World) -> None:
    """With what was spent now; nobody else may, and months have a form."""
    world.ledger._clock = Clock(datetime.datetime.now(datetime.UTC))  # else a month may begin meanwhile
    world.api.post("/v1/queries", json=query())
    spending = world.api.get("/v1/team/spending", who="auditor").json()
    assert {row["budget"]: row["share"] for row in spending["budgets"]} == {
        world.account.id: "0.05",
        world.root.id: "0.05",
    }
    left = world.api.get("/v1/team/questions-left?dataset=clinic", who="admin").json()["budgets"]
    assert [row["principal"] for row in left] == ["analyst"]
    assert left[0]["questions_left"]["gaussian"] > 0
    assert world.api.get("/v1/team/running-out", who="admin").json()["within_days"] == 30
    assert world.api.get("/v1/team/spending?month=2026-13", who="admin").status_code == 422
    assert world.api.get("/v1/team/spending", who="analyst").status_code == 403
