"""`noisegate synthetic make`, `list`, `show` and `delete`, against a server that answers what the test says."""

from __future__ import annotations

from typing import Any

from tests.cli.support import refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

TABLE: dict[str, Any] = {
    "id": "s_1",
    "status": "settled",
    "dataset": "d",
    "name": "drawn",
    "table": "people",
    "epsilon": "1",
    "rows": 3000,
    "measured": [{"columns": ["age", "s\x1b[31mx"], "cells": 64, "standard_error": 9.0, "expected_error": 0.0123}],
    "warnings": ["Beware."],
}


def test_a_table_is_made_and_its_report_shown(stand: Stand) -> None:
    """Rows, expected errors and warnings; the body and the key that were sent; no control character is printed."""
    stand.replies = [(201, TABLE)]
    ran = stand.ask("synthetic", "make", "people", "drawn", "--dataset", "d", "--epsilon", "1", "--column", "age")
    assert ran.code == 0, ran.err
    for text in ("3,000 rows in place of those of people", "expected error 1.2%, 64 cells", "warning: Beware."):
        assert text in ran.out
    assert "\x1b" not in ran.out
    method, path, headers, body = stand.requests[0]
    assert (method, path) == ("POST", "/v1/synthetic")
    assert len(headers["Idempotency-Key"]) >= 16
    assert body == {"dataset": "d", "table": "people", "name": "drawn", "epsilon": "1", "columns": [{"name": "age"}]}


def test_an_estimate_makes_nothing(stand: Stand) -> None:
    """The same body at another address, and what it says."""
    answer = {
        "price": {"epsilon": "0.9"},
        "columns": [{"name": "age", "type": "integer", "bins": 33}],
        "left_out": [{"name": "town", "why": "it is a text"}],
        "measured_at_most": [{"of": "pairs", "marginals": 3, "standard_error": 12.34}],
    }
    stand.replies = [(200, answer)]
    ran = stand.ask("synthetic", "make", "people", "drawn", "--dataset", "d", "--epsilon", "1", "--estimate")
    for text in ("epsilon 0.9", "age  integer  33 bins", "without town: it is a text", "standard error 12.3"):
        assert text in ran.out
    assert [request[1] for request in stand.requests] == ["/v1/synthetic:estimate"]


def test_tables_are_listed_read_and_deleted(stand: Stand) -> None:
    """A line for each; one that is deleted says so. A price that is none is not sent."""
    gone = {**TABLE, "status": "closed"}
    stand.replies = [(200, {"synthetic": [TABLE], "next": None}), (200, TABLE), (200, gone)]
    assert "s_1  settled  d.drawn" in stand.ask("synthetic", "list").out
    assert "expected error 1.2%" in stand.ask("synthetic", "show", "s_1").out
    assert "s_1  closed" in stand.ask("synthetic", "delete", "s_1").out
    assert [request[:2] for request in stand.requests[1:]] == [
        ("GET", "/v1/synthetic/s_1"),
        ("DELETE", "/v1/synthetic/s_1"),
    ]
    refused(stand.ask("synthetic", "make", "people", "drawn", "--dataset", "d", "--epsilon", "-1"), code=2)
