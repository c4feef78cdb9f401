"""`noisegate dashboard`, against a server that answers what the test says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.support import refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

FILE = """
title: The clinic
envelope: {epsilon: 2, delta: 0.0000010}
tiles:
  - name: n
    title: People
    sql: SELECT COUNT(*) AS n FROM people
    spend: {epsilon: 0.50}
    schedule: {times: ["06:00"]}
"""
TILE: dict[str, Any] = {"name": "n", "title": "People\x1b[31m", "state": "exhausted", "as_of": "T", "refused": "x"}
SHOWN: dict[str, Any] = {
    "id": "d_1",
    "dataset": "d",
    "title": "The clinic",
    "paused": None,
    "envelope": {"remaining": {"epsilon": "0.5"}, "limit": {"epsilon": "2"}},
    "exhausted_on": "2026-12-01",
    "tiles": [TILE],
}
LINK = {"id": "k_1", "label": "hall", "created": "T", "expires": "2027", "revoked": None}


def test_a_dashboard_is_made_from_a_file_and_shown(stand: Stand, tmp_path: Path) -> None:
    """Amounts are sent as the decimals that were written; no control character is printed."""
    file = tmp_path / "clinic.yaml"
    file.write_text(FILE)
    stand.replies = [(201, SHOWN), (200, SHOWN), (200, SHOWN), (200, {"dashboards": [SHOWN]}), (202, SHOWN)]
    made = stand.ask("dashboard", "make", str(file), "--dataset", "d")
    assert made.code == 0, made.err
    for text in ("d_1  d  The clinic", "epsilon 0.5 of 2 left, lasts until 2026-12-01", "n  exhausted (x)  as of T"):
        assert text in made.out
    assert "\x1b" not in made.out
    method, path, _, body = stand.requests[0]
    assert (method, path, body["dataset"], body["envelope"]) == (
        "POST",
        "/v1/dashboards",
        "d",
        {"epsilon": "2", "delta": "0.0000010"},
    )
    assert body["tiles"][0]["spend"] == {"epsilon": "0.50"}
    stand.ask("dashboard", "change", "d_1", str(file))
    stand.ask("dashboard", "show", "d_1")
    assert "exhausted" in stand.ask("dashboard", "list").out
    stand.ask("dashboard", "refresh", "d_1", "n")
    assert [request[:2] for request in stand.requests[1:]] == [
        ("PUT", "/v1/dashboards/d_1"),
        ("GET", "/v1/dashboards/d_1"),
        ("GET", "/v1/dashboards?count=100"),
        ("POST", "/v1/dashboards/d_1/tiles/n:refresh"),
    ]
    assert "dataset" not in stand.requests[1][3]


def test_links_are_shown_once(stand: Stand) -> None:
    """Addresses of a new link, and links without them."""
    new = {**LINK, "token": "secret", "urls": {"n": "/v1/dashboards/d_1/tiles/n.csv?link=secret"}}
    gone = {**LINK, "revoked": "2026"}
    stand.replies = [(201, new), (200, {"links": [LINK]}), (200, gone), (200, SHOWN), (200, SHOWN), (200, SHOWN)]
    made = stand.ask("dashboard", "link", "d_1", "--label", "hall", "--days", "9")
    assert "/v1/dashboards/d_1/tiles/n.csv?link=secret" in made.out
    assert stand.requests[0][3] == {"label": "hall", "days": 9}
    assert stand.ask("dashboard", "links", "d_1").out == "k_1  until 2027  hall\n"
    assert "revoked 2026" in stand.ask("dashboard", "revoke", "d_1", "k_1").out
    for word in ("pause", "resume"):
        assert stand.ask("dashboard", word, "d_1").code == 0
    assert "removed" in stand.ask("dashboard", "remove", "d_1").out


def test_a_file_that_is_none_is_refused(stand: Stand, tmp_path: Path) -> None:
    """Nothing is sent."""
    for content in ("[1]", "{", "title: [", ""):
        file = tmp_path / "x.yaml"
        file.write_text(content)
        refused(stand.ask("dashboard", "make", str(file)), "could not read", code=2)
    refused(stand.ask("dashboard", "make", str(tmp_path / "absent")), "could not read", code=2)
    assert stand.requests == []
