"""Trees that grow, lend, end, join and spend in an order that a seed chooses; two other programs add them up."""

from __future__ import annotations

import contextlib
import datetime
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from accountant.account import Account, FilterKind
from accountant.errors import LedgerError
from accountant.ledger import Ledger
from tests.accountant.exported import exported
from tests.accountant.making import core, gaussian, laplace, limit, request
from tests.accountant.test_spaces import verified

DATASETS = ("people", "visits", "copy", "extract")
PEOPLE = ("ana", "ben", "cas")


class Forest:
    """A ledger and what a seed does to it. What the ledger refuses changes nothing, which the end shows."""

    def __init__(self, ledger: Ledger, moments: list[datetime.datetime], seed: int) -> None:
        self.ledger, self.moments, self.chance = ledger, moments, random.Random(seed)
        self.done: Counter[str] = Counter()
        self.number = 0
        self.open: list[str] = []

    def step(self) -> None:
        """One thing that happens, or is refused."""
        kinds = (self._spend, self._spend, self._spend, self._grow, self._lend, self._end, self._edit, self._join)
        what = self.chance.choice((*kinds, self._finish, self._finish, self._clock))
        with contextlib.suppress(LedgerError, ValueError):
            what()
            self.done[what.__name__] += 1

    def _any(self) -> Account:
        # By name: identifiers are drawn, and would change what a seed does.
        return self.chance.choice(sorted(self.ledger.accounts(), key=lambda account: account.name))

    def _create(self, dataset: str, **more: Any) -> None:
        self.number += 1
        epsilon = self.chance.choice(("0.2", "0.6", "1", "3"))
        self.ledger.create_account(
            dataset=dataset, name=f"n{self.number}", limit=limit(epsilon, "1e-6"), filter=FilterKind.APPROXIMATE,
            actor="admin", **more,
        )  # fmt: skip

    def _grow(self) -> None:
        """A root, a group or somebody's account, of a dataset of the space or of any."""
        dataset = self.chance.choice(DATASETS)
        if self.chance.random() < 0.2:
            self._create(dataset, parent=None, principal=None)
            return
        parent = self._any()
        principal = self.chance.choice((None, *PEOPLE))
        of = self.chance.choice((parent.dataset, dataset))
        self._create(of, parent=parent.id, principal=principal, space=parent.space)

    def _lend(self) -> None:
        """An envelope below any account, for some days."""
        parent = self._any()
        expires = self.ledger.time() + datetime.timedelta(days=self.chance.choice((1, 3)))
        principal = self.chance.choice(PEOPLE)
        self._create(parent.dataset, parent=parent.id, principal=principal, space=parent.space, expires=expires)

    def _end(self) -> None:
        self.ledger.end(self._any().id, actor="admin", reason="enough")

    def _edit(self) -> None:
        """Another limit, or somebody is stopped or goes on."""
        person = self.chance.choice(PEOPLE)
        own = [account.id for account in self.ledger.accounts(principal=person)]
        choice = self.chance.random()
        if choice < 0.1:
            self.ledger.freeze(person, actor="admin", reason="stop", beside=lambda *_: None)
        elif choice < 0.5:
            self.ledger.unfreeze(person, own, actor="admin", reason="go on", beside=lambda *_: None)
        else:
            wanted = limit(self.chance.choice(("0.5", "1", "3")), "1e-6")
            self.ledger.change_limit(self._any().id, wanted, actor="admin", reason="another phase")

    def _join(self) -> None:
        """Any dataset declares any unit space: mostly refused, and then nothing moves."""
        space = self.chance.choice((*DATASETS, "all"))
        assert self.ledger.join_space(self.chance.choice(DATASETS), space, actor="admin", reason="declared") or True

    def _spend(self) -> None:
        """Some account pays for Laplace or Gaussian noise."""
        account = self._any()
        self.number += 1
        event = laplace("0.05") if self.chance.random() < 0.5 else gaussian("0.001")
        asked = request(account, core(f"c{self.number}", event), principal=account.principal or "admin")
        self.open.append(self.ledger.reserve(asked).query_id)

    def _finish(self) -> None:
        """An open query ends, charged or given back."""
        if self.open:
            query = self.open.pop(self.chance.randrange(len(self.open)))
            (self.ledger.fail if self.chance.random() < 0.7 else self.ledger.void)(query)

    def _clock(self) -> None:
        """The machine's clock goes on, or back."""
        self.moments.append(self.moments[-1] + datetime.timedelta(hours=self.chance.choice((-5, 7, 30))))


def grown(open_ledger: Callable[..., Ledger], seed: int, steps: int) -> Forest:
    """A forest after so many steps; at every fiftieth the audit agrees, and no account has more than it may."""
    moments = [datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)]
    forest = Forest(open_ledger(clock=lambda: moments[-1]), moments, seed)
    for dataset in DATASETS[:2]:
        forest._create(dataset, parent=None, principal=None)
    for step in range(steps):
        forest.step()
        if step % 50 == 49:
            assert forest.ledger.audit().findings == ()
    assert forest.ledger.audit().findings == ()
    assert verified(exported(forest.ledger)) == set()
    accounts = {account.id: account for account in forest.ledger.accounts()}
    roots = [account for account in accounts.values() if account.parent is None]
    assert len({account.space for account in roots}) == len(roots), "a space has two roots"
    assert all(accounts[one.parent].space == one.space for one in accounts.values() if one.parent is not None)
    assert max(len(forest.ledger.path(name)) for name in accounts) <= 8
    return forest


@pytest.mark.parametrize("seed", [8, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(10, 40))])
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_forest_agrees_with_its_entries(open_ledger: Callable[..., Ledger], seed: int) -> None:
    """Whatever was lent, ended, joined and refused in between."""
    forest = grown(open_ledger, seed, 200)
    assert {"_spend", "_grow", "_lend", "_end", "_edit", "_join", "_finish", "_clock"} <= forest.done.keys()
    every = [entry for one in forest.ledger.accounts() for entry in forest.ledger.entries(one.id, count=500)]
    actions = "".join(entry.details for entry in every if entry.kind == "adjust")
    # A run that did not meet everything would show nothing.
    assert seed != 8 or all(f'"action":"{name}"' in actions for name in ("join", "space", "end", "freeze", "limit"))
