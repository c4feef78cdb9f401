"""Dashboards as they are stored, on both databases: whose a refresh is, and what is stored of its end."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace

import pytest

from server.roles import Role
from server.store.dashboards import DashboardRow, LinkRow, RefreshEnd, TileRow
from server.store.errors import NotThere
from server.store.registry import Registry
from tests.clocks import Clock
from tests.server.conftest import NOW, SECRET

ROW = DashboardRow(id="d_1", principal="ann", dataset="clinic", account="b_1", sealed=b"\x00title")
TILE = TileRow(id="t_1", dashboard="d_1", name="n", place=0, sealed=b"\x00text", schedule="{}")
AT = "2026-03-01T06:00:00Z"
END = RefreshEnd(outcome="answered", handled=AT, version="1:d", query="q_1", digest="x", answered="1:d", charged="0.5")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    """A registry with a dashboard of one tile: every test runs on both databases."""
    made = Registry(request.getfixturevalue(f"{request.param}_url"), secret=SECRET, clock=Clock(NOW))
    for name in ("ann", "bob"):
        made.create_principal(name, "analyst", actor="test")
    assert made.add_dashboard(ROW, [TILE], ["wall"], most=2) is not None
    yield made
    made.close()


def claim(registry: Registry, tile: TileRow, *, due: str = "at x", seconds: int = 0) -> str | None:
    """Claims a refresh at a moment."""
    now = NOW + datetime.timedelta(seconds=seconds)
    return registry.claim_refresh(tile, due=due, at=AT, now=now, lease_seconds=60)


def test_a_refresh_is_one_process_at_a_time(registry: Registry) -> None:
    """A lease keeps others away, ends by itself, and one from a clock that was ahead is none; the key stays."""
    (tile,) = registry.tiles("d_1")
    first = claim(registry, tile)
    assert first is not None
    assert claim(registry, tile, seconds=59) is None
    # Whoever takes over goes on with the same refresh, and with no other one.
    assert claim(registry, tile, due="at y", seconds=61) is None
    second = claim(registry, tile, seconds=61)
    assert second is not None
    assert not registry.end_refresh(tile, first, END, at=AT)
    assert registry.end_refresh(tile, second, END, at=AT)
    assert not registry.end_refresh(tile, second, END, at=AT)
    (now,) = registry.tiles("d_1")
    assert (now.number, now.state, now.query, now.as_of, now.due, now.lease) == (1, "current", "q_1", AT, None, None)
    assert claim(registry, tile) is None, "the tile moved on"
    assert claim(registry, now, due="at z", seconds=3_600) is not None
    (ahead,) = registry.tiles("d_1")
    assert claim(registry, ahead, due="at z") is not None, "the clock that gave the lease was ahead"


def test_what_is_shown_changes_with_the_table_alone(registry: Registry) -> None:
    """The same table keeps query and moment; an end without an answer keeps all of it; each end is in the history."""
    later = "2026-03-02T06:00:00Z"
    ends = [
        (END, "q_1", AT, "current"),
        (replace(END, query="q_2"), "q_1", AT, "current"),
        (RefreshEnd(outcome="exhausted", handled=AT, version="1:e", code="budget_exhausted"), "q_1", AT, "exhausted"),
        (replace(END, query="q_3", digest="y", answered="1:e"), "q_3", later, "current"),
    ]
    for number, (end, query, as_of, state) in enumerate(ends):
        (tile,) = registry.tiles("d_1")
        claimed = claim(registry, tile, due=f"at {number}")
        assert claimed is not None
        assert registry.end_refresh(tile, claimed, end, at=AT if number == 0 else later)
        (now,) = registry.tiles("d_1")
        assert (now.query, now.as_of, now.state, now.wanted) == (query, as_of, state, None)
    found = registry.refreshes("t_1", count=9)
    assert [(row.number, row.outcome, row.query) for row in found] == [
        (1, "answered", "q_1"), (2, "answered", "q_1"), (3, "exhausted", None), (4, "answered", "q_3"),
    ]  # fmt: skip
    assert [row.number for row in registry.refreshes("t_1", count=2)] == [3, 4]


def test_which_tiles_stand(registry: Registry) -> None:
    """Paused and closed dashboards, removed tiles and owners who may not ask are left alone."""
    assert [one.tile.id for one in registry.standing_tiles()] == ["t_1"]
    registry.pause_dashboard("d_1", paused=True, actor="ann")
    assert registry.standing_tiles() == ()
    registry.pause_dashboard("d_1", paused=False, actor="ann")
    registry.change_principal("ann", disabled=True, actor="test")
    assert registry.standing_tiles() == ()
    registry.change_principal("ann", disabled=False, actor="test")
    registry.change_principal("ann", role=Role.AUDITOR, actor="test")
    assert registry.standing_tiles() == ()
    registry.change_principal("ann", role=Role.ANALYST, actor="test")
    other = replace(TILE, id="t_2", name="m")
    registry.replace_dashboard(ROW, removed=["t_1"], kept={}, added=[other], readers=[], actor="ann")
    assert [one.tile.id for one in registry.standing_tiles()] == ["t_2"]
    assert registry.readers("d_1") == ()
    registry.close_dashboard("d_1", actor="ann")
    assert registry.standing_tiles() == ()
    for act in (
        lambda: registry.close_dashboard("d_1", actor="ann"),
        lambda: registry.pause_dashboard("d_1", paused=True, actor="ann"),
        lambda: registry.replace_dashboard(ROW, removed=[], kept={}, added=[], readers=[], actor="ann"),
    ):
        with pytest.raises(NotThere):
            act()


def test_lists_and_limits(registry: Registry) -> None:
    """Dashboards by owner and by reader, and no more of them, or of links, than there may be."""
    assert registry.add_dashboard(replace(ROW, id="d_2"), [], [], most=2) is not None
    assert registry.add_dashboard(replace(ROW, id="d_3"), [], [], most=2) is None
    assert [row.id for row in registry.dashboards("ann", after=None, count=9)] == ["d_2", "d_1"]
    assert [row.id for row in registry.dashboards("ann", after="d_2", count=9)] == ["d_1"]
    assert registry.dashboards("bob", after=None, count=9) == ()
    assert [row.id for row in registry.dashboards("wall", reader="wall", after=None, count=9)] == ["d_1"]
    link = LinkRow(id="k_1", dashboard="d_1", label="hall", expires="2027-01-01T00:00:00Z")
    assert registry.add_link(link, most=1, actor="ann") is not None
    assert registry.add_link(replace(link, id="k_2"), most=1, actor="ann") is None
    with pytest.raises(NotThere):
        registry.revoke_link("d_2", "k_1", actor="ann")
    registry.revoke_link("d_1", "k_1", actor="ann")
    assert registry.add_link(replace(link, id="k_2"), most=1, actor="ann") is not None
    registry.close_dashboard("d_1", actor="ann")
    assert all(row.revoked is not None for row in registry.links("d_1"))
