"""Collectors on SQLite and PostgreSQL: a token is used once, whoever comes at the same time; no count is lost."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from fractions import Fraction

import pytest
from sqlalchemy import Connection

from server.store import collectors as storing
from server.store.collectors import StoredCollector, token_digest
from server.store.errors import CollectorClosed, NotThere, TokenRefused, TooManyTokens
from server.store.registry import Registry
from tests.clocks import Clock
from tests.server.conftest import NOW, SECRET

COLLECTOR = StoredCollector(
    id="c_1",
    question="Do you smoke?",
    domain=("yes", "no", "ümläut 😀"),
    missing=None,
    encoding="randomised_response",
    epsilon=Fraction(3, 2),
    account="b_1",
    created="",
    actor="test",
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database(request: pytest.FixtureRequest) -> str:
    """The address of a fresh, migrated database: every test runs on both."""
    address: str = request.getfixturevalue(f"{request.param}_url")
    return address


@pytest.fixture
def clock() -> Clock[datetime.datetime]:
    """The registry's clock."""
    return Clock(NOW)


@pytest.fixture
def registry(database: str, clock: Clock[datetime.datetime]) -> Iterator[Registry]:
    """A registry with a collector and a hundred tokens."""
    made = Registry(database, secret=SECRET, clock=clock)
    made.add_collector(COLLECTOR)
    made.add_tokens("c_1", digests(100), actor="test")
    yield made
    made.close()


def digests(count: int) -> list[str]:
    return [token_digest("c_1", f"ngt_{number}") for number in range(count)]


def test_what_was_opened_is_read_back(registry: Registry) -> None:
    """Every field, exactly; in the list too."""
    found = registry.collector("c_1")
    assert found is not None
    assert (found.domain, found.epsilon, found.missing) == (COLLECTOR.domain, COLLECTOR.epsilon, None)
    assert (found.tokens, found.reports, found.closed) == (100, 0, None)
    assert registry.collectors() == (found,)
    assert registry.collectors(after="c_1") == ()
    assert registry.collector("c_2") is None
    assert [act[3] for act in registry.acts()] == ["collector_opened", "collector_tokens"]


def test_reports_add_up(registry: Registry) -> None:
    """Counts of several requests; a report of no number, as unary encodings make, is counted too."""
    registry.accept_reports("c_1", digests(2), {0: 1, 2: 1})
    registry.accept_reports("c_1", digests(4)[2:], {2: 2})
    registry.accept_reports("c_1", digests(5)[4:], {})
    found, counts = registry.collector_tally("c_1")
    assert (found.reports, counts) == (5, {0: 1, 2: 3})


def test_a_refused_request_changes_nothing(registry: Registry) -> None:
    """The first wrong token is named, and those before it stay unused."""
    registry.accept_reports("c_1", digests(1), {0: 1})
    for wrong, place, used in (
        ([digests(3)[1], digests(3)[2], digests(1)[0]], 2, True),
        ([digests(2)[1], digests(2)[1]], 1, True),
        ([digests(2)[1], token_digest("c_2", "ngt_7")], 1, False),
    ):
        with pytest.raises(TokenRefused) as refused:
            registry.accept_reports("c_1", wrong, {1: 3})
        assert (refused.value.place, refused.value.used) == (place, used)
    found, counts = registry.collector_tally("c_1")
    assert (found.reports, counts) == (1, {0: 1})
    registry.accept_reports("c_1", digests(3)[1:], {1: 2})


def test_wrong_tokens_take_no_lock_on_the_database(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may send them, and the ledger writes to the same database."""

    def never() -> Connection:
        raise AssertionError("a writing transaction was opened")

    monkeypatch.setattr(registry, "_writing", never)
    with pytest.raises(TokenRefused):
        registry.accept_reports("c_1", [token_digest("c_1", "invented")], {0: 1})


def test_one_token_counts_once_among_many_at_the_same_time(registry: Registry) -> None:
    """Eight senders, each with the same twenty tokens in its own order: every token is counted once."""
    accepted = []

    def run(start: int) -> None:
        for number in range(20):
            digest = digests(20)[(number * 7 + start) % 20]
            try:
                registry.accept_reports("c_1", [digest], {start % 3: 1})
            except TokenRefused as refused:
                assert refused.used
            else:
                accepted.append(digest)

    threads = [threading.Thread(target=run, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found, counts = registry.collector_tally("c_1")
    assert sorted(accepted) == sorted(digests(20))
    assert found.reports == sum(counts.values()) == 20


def test_a_closed_collector_is_closed_for_reports_and_tokens(registry: Registry) -> None:
    """Closing keeps its first moment."""
    closed = registry.close_collector("c_1", actor="test")
    assert closed.closed is not None
    with pytest.raises(CollectorClosed):
        registry.accept_reports("c_1", digests(1), {0: 1})
    with pytest.raises(CollectorClosed):
        registry.add_tokens("c_1", [token_digest("c_1", "more")], actor="test")
    assert registry.close_collector("c_1", actor="test") == closed
    assert [act[3] for act in registry.acts()].count("collector_closed") == 1


def test_what_is_not_there(registry: Registry) -> None:
    """Each act on a collector that does not exist."""
    for act in (
        lambda: registry.accept_reports("c_2", digests(1), {0: 1}),
        lambda: registry.add_tokens("c_2", digests(1), actor="test"),
        lambda: registry.close_collector("c_2", actor="test"),
        lambda: registry.collector_tally("c_2"),
    ):
        with pytest.raises(NotThere):
            act()


def test_tokens_have_a_limit(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it none of a request is made."""
    monkeypatch.setattr(storing, "TOKENS_MAX", 101)
    with pytest.raises(TooManyTokens):
        registry.add_tokens("c_1", [token_digest("c_1", "a"), token_digest("c_1", "b")], actor="test")
    assert registry.add_tokens("c_1", [token_digest("c_1", "a")], actor="test").tokens == 101
