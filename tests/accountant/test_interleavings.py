"""Ten thousand steps in an order that seeds choose: whatever happens when, the book agrees with the ledger.

At night two hundred thousand, and on PostgreSQL as many as on SQLite.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest.mock import patch

import pytest

from accountant.batch import Batch
from accountant.entry import Amounts
from accountant.filter import Sums
from accountant.rows import AccountState
from tests.accountant.interleavings import World


def run(url: str, *, seed: int, steps: int) -> World:
    """That many operations and a whole audit; the world, ended."""
    world = World(url, seed)
    try:
        while world.steps < steps:
            world.step()
        world.book.add_up(random.Random(seed))
        assert world.servers[0].ledger.audit().findings == ()
    finally:
        world.close()
    return world


NIGHT = [pytest.param(seed, 20_000, marks=pytest.mark.nightly) for seed in range(5, 15)]


@pytest.mark.parametrize(
    ("seed", "steps"), [(1, 1000), *(pytest.param(seed, 3000, marks=pytest.mark.slow) for seed in (2, 3, 4)), *NIGHT]
)
def test_any_order_on_sqlite(sqlite_url: str, seed: int, steps: int) -> None:
    """Requests, retries, ends, crashes, lost commits, clocks, edits: the invariants of `Book.read` hold after each."""
    world = run(sqlite_url, seed=seed, steps=steps)
    # A run that did not meet everything would show nothing.
    assert len(world.kinds) == 9
    assert world.book.locked
    assert {"settled", "failed_charged", "failed_void"} <= set(world.book.states.values())


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.parametrize(("seed", "steps"), [(1, 1200), *NIGHT])
def test_any_order_on_postgresql(postgresql_url: str, seed: int, steps: int) -> None:
    """The same on PostgreSQL."""
    run(postgresql_url, seed=seed, steps=steps)


def overspend(self: AccountState, charge: Sums, now: int) -> bool:
    """Asks everybody but the root."""
    return self.parent is None or bool(admits(self, charge, now))


admits = AccountState.admits


def lose(self: AccountState, amounts: Amounts) -> None:
    """Loses what a seventh of the entries move."""
    if self.entries % 7:
        add(self, amounts)


add = AccountState.add


def any_state(self: Batch, identifier: str, *, step: str) -> object:
    """Leads on from an end, too."""
    return self._queries[identifier]


@pytest.mark.parametrize(
    ("where", "name", "wrong", "message"),
    [
        (AccountState, "admits", overspend, "spent more than|the account does not cover this"),
        (AccountState, "add", lose, "not the sum of its entries"),
        (AccountState, "view", lambda self, now: None, "had not unlocked"),
        (Batch, "open_query", any_state, "ended twice|ended in two ways|an end after the end"),
    ],
    ids=["the root is not asked", "a charge is lost", "no window is asked", "an end after the end"],
)
def test_a_ledger_that_is_wrong_is_found(
    sqlite_url: str, where: type, name: str, wrong: Callable[..., object], message: str
) -> None:
    """The book is no copy of the ledger: it finds what is wrong within a few steps."""
    with patch.object(where, name, wrong), pytest.raises(AssertionError, match=message):
        run(sqlite_url, seed=3, steps=1000)
