"""`noisegate batch`, against a server that answers what the test says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

QUERIES = ["SELECT COUNT(*) FROM people WHERE age < 30", "SELECT COUNT(*) FROM people WHERE age < 40"]
ROW: dict[str, Any] = {"standard_error": 2.0, "low": -4, "high": 7}
SETTLED: dict[str, Any] = {
    "id": "q_1",
    "status": "settled",
    "strategy": "tree",
    "rows": [
        {**ROW, "number": 1, "sql": QUERIES[0] + "\x1b[31m", "value": 3},
        {**ROW, "number": 2, "sql": QUERIES[1], "value": 12.5},
    ],
    "accounting": {"charged": [{"budget": "b_1", "epsilon": "0.25", "delta": "0"}]},
    "warnings": [],
    "cut": ["A unit counts with at most 5 rows."],
}
RUNNING = {**SETTLED, "status": "running", "rows": None}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two queries, with an empty line and a comment."""
    path = tmp_path / "ranges.sql"
    path.write_text(f"-- ages\n{QUERIES[0]};\n\n{QUERIES[1]}\n")
    return path


def test_a_batch_is_waited_for_and_shown(stand: Stand, file: Path) -> None:
    """Counts with their intervals and the price; no control character is printed."""
    stand.replies = [(202, RUNNING), (200, RUNNING), (200, SETTLED)]
    ran = stand.ask("batch", str(file), "--dataset", "d", "--epsilon", "0.5")
    assert ran.code == 0, ran.err
    for text in ("12.5  [-4, 7]", QUERIES[1], "tree, charged 0.25", *SETTLED["cut"], "The intervals do not show"):
        assert text in ran.out
    assert "\x1b" not in ran.out
    method, path, headers, body = stand.requests[0]
    assert (method, path) == ("POST", "/v1/batches")
    assert len(headers["Idempotency-Key"]) >= 16
    assert body == {"dataset": "d", "queries": QUERIES, "spend": {"epsilon": "0.5"}}
    assert [request[:2] for request in stand.requests[1:]] == [("GET", "/v1/batches/q_1")] * 2


def test_an_estimate_asks_nothing(stand: Stand, file: Path) -> None:
    """The same body at another address, and the ways with their errors."""
    way = {"strategy": "tree", "error": 1.25, "price_ratio": 1.0, "refused": []}
    none = {"strategy": "cells", "error": None, "price_ratio": None, "refused": [{"why": "Too many."}]}
    told = {
        "different": 2,
        "strategy": "tree",
        "price": {"epsilon": "0.5"},
        "strategies": [way, none],
        "cut": SETTLED["cut"],
    }
    stand.replies = [(200, told)]
    ran = stand.ask("batch", str(file), "--dataset", "d", "--own-epsilon", "0.5", "--estimate")
    assert "2 different queries: tree, epsilon 0.5" in ran.out
    assert "standard error 1.25" in ran.out
    assert "refused: Too many." in ran.out
    assert f"{SETTLED['cut'][0]}\nThe standard errors do not show" in ran.out
    assert [request[1] for request in stand.requests] == ["/v1/batches:estimate"]
    stand.replies = [(200, {**told, "price": {**told["price"], "epsilon": "0"}})]
    assert "tree, free: what is stored" in stand.ask("batch", str(file), "--dataset", "d", "--estimate").out


def test_a_batch_that_failed_is_a_failure(stand: Stand, file: Path) -> None:
    """Exit code and words for what was charged and is not there."""
    stand.replies = [(202, RUNNING), (200, {**RUNNING, "status": "failed_charged"})]
    ran = stand.ask("batch", str(file), "--dataset", "d")
    assert ran.code == 1
    assert "failed_charged" in ran.err


@pytest.mark.parametrize("options", [["--epsilon", "1", "--own-epsilon", "1"], ["--epsilon", "-1"]])
def test_prices_are_checked_before_anything_is_sent(stand: Stand, file: Path, options: list[str]) -> None:
    """No request for a price that is named twice or no amount."""
    refused(stand.ask("batch", str(file), "--dataset", "d", *options), code=2)
    assert stand.requests == []


def test_a_file_without_queries_is_refused(stand: Stand, tmp_path: Path) -> None:
    """No request for comments alone."""
    (tmp_path / "none.sql").write_text("-- nothing\n")
    refused(stand.ask("batch", str(tmp_path / "none.sql"), "--dataset", "d"), code=2)
    assert stand.requests == []
