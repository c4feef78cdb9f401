"""`noisegate stream`, against a server that answers what the test says."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.support import refused
from tests.cli.test_asking import Stand, stand

__all__ = ["stand"]

STREAM: dict[str, Any] = {
    "id": "st_1",
    "dataset": "d",
    "status": "settled",
    "comparing": True,
    "why": None,
    "epsilon": "1",
    "cells": 144,
    "tolerance": 80.0,
    "within": 203.1,
    "within_measured": 90.0,
    "wrong_updates": 0.5,
    "updates": 5,
    "updates_left": 4,
    "queries": 1000,
    "compared": 12,
    "contribution": {
        "rows_per_unit": 3,
        "groups_per_unit": 3,
        "rows_per_unit_and_group": 3,
        "source": "request",
        "larger": 6,
    },
    "cut": ["A unit counts with at most 3 rows.", "About 1 of 100 units has more."],
    "keys": [{"name": "age\x1b[31m", "type": "integer", "values": 72, "first": 18, "last": None}],
}


LEFT_OUT = (*STREAM["cut"], "--rows-per-unit 6 leaves out less", "do not show what the bounds leave out")


def test_a_stream_is_opened_and_shown(stand: Stand) -> None:
    """Columns by their declarations, ranges and steps become a request; no control character is printed."""
    stand.replies = [(201, STREAM)]
    columns = ("--column", "sex", "--column", "age:18..89", "--column", "day:2024-01-01..2024-12-31/7")
    ran = stand.ask("stream", "open", "people", *columns, "--epsilon", "1", "--dataset", "d", "--rows-per-unit", "3")
    assert ran.code == 0, ran.err
    for text in ("st_1  settled", "within 203.1", "4 of 5 updates left", "72 values, 18 to NULL", *LEFT_OUT):
        assert text in ran.out
    assert "\x1b" not in ran.out
    ((method, path, headers, body),) = stand.requests
    assert (method, path) == ("POST", "/v1/streams")
    assert len(headers["Idempotency-Key"]) >= 16
    assert body == {
        "dataset": "d",
        "table": "people",
        "columns": [
            {"name": "sex"},
            {"name": "age", "low": 18, "high": 89},
            {"name": "day", "low": "2024-01-01", "high": "2024-12-31", "step": 7},
        ],
        "epsilon": "1",
        "contribution": {"rows_per_unit": 3, "groups_per_unit": 3, "rows_per_unit_and_group": 3},
    }


def test_an_estimate_opens_nothing(stand: Stand) -> None:
    """The same body at another address, and the price."""
    stand.replies = [(200, {**STREAM, "price": {"epsilon": "0.5"}})]
    ran = stand.ask(
        "stream",
        "open",
        "people",
        "--column",
        "sex",
        "--epsilon",
        "1",
        "--dataset",
        "d",
        "--updates",
        "5",
        "--for-dataset",
        "--estimate",
    )
    assert ran.code == 0, ran.err
    assert "costs epsilon 0.5" in ran.out
    assert stand.requests[0][1] == "/v1/streams:estimate"
    assert (stand.requests[0][3]["updates"], stand.requests[0][3]["shared"]) == (5, True)


def test_a_stream_is_asked(stand: Stand) -> None:
    """Ranges that are closed and open, and values, become conditions; the answer says how it was found."""
    answer = {"value": 5213, "found": "not_compared", "within": None}
    told = {"answers": [answer], "comparing": False, "updates_left": 0, "compared": 9, "cut": STREAM["cut"]}
    stand.replies = [(200, told)]
    where = ("--where", "age:30..49", "--where", "year:..1999", "--where", "sex=female,other", "--where", "ok=true")
    ran = stand.ask("stream", "ask", "st_1", *where)
    assert ran.code == 0, ran.err
    assert "5213  nothing was compared, not compared" in ran.out
    assert STREAM["cut"][1] in ran.out
    ((method, path, _, body),) = stand.requests
    assert (method, path) == ("POST", "/v1/streams/st_1/queries")
    assert body["queries"][0]["where"] == [
        {"key": "age", "low": 30, "high": 49},
        {"key": "year", "high": 1999},
        {"key": "sex", "values": ["female", "other"]},
        {"key": "ok", "values": [True]},
    ]


def test_streams_are_listed_shown_and_closed(stand: Stand) -> None:
    """One line for each, of others too where they are everybody's; its terms; and the end."""
    other = {"id": "st_2", "principal": "ada", "comparing": False}
    datasets = {"datasets": [{"links": {"self": "/v1/datasets/d"}}]}
    described = {"name": "d", "streams": [other, {**other, "id": "st_1"}]}
    listed: list[tuple[int, Any]] = [(200, {"streams": [STREAM], "next": None}), (200, datasets), (200, described)]
    stand.replies = [*listed, (200, STREAM), (200, {**STREAM, "status": "closed"})]
    lines = stand.ask("stream", "list").out.splitlines()
    assert "4 of 5 updates left" in lines[0]
    assert lines[1:] == ["st_2  of ada, for everybody  d  not comparing any more"]
    assert "12 of 1000 compared" in stand.ask("stream", "show", "st_1").out
    assert "st_1  closed" in stand.ask("stream", "close", "st_1").out
    assert [one[:2] for one in stand.requests] == [
        ("GET", "/v1/streams?count=100"),
        ("GET", "/v1/datasets"),
        ("GET", "/v1/datasets/d"),
        ("GET", "/v1/streams/st_1"),
        ("DELETE", "/v1/streams/st_1"),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("open", "people", "--column", "age:18", "--epsilon", "1", "--dataset", "d"),
        ("open", "people", "--column", "age", "--epsilon", "0", "--dataset", "d"),
        ("ask", "st_1", "--where", "age"),
        ("ask", "st_1", "--where", "age:.."),
    ],
)
def test_what_cannot_be_read_is_wrong_usage(stand: Stand, words: tuple[str, ...]) -> None:
    """Columns and conditions of another form, and a price of nothing, send nothing."""
    refused(stand.ask("stream", *words), code=2)
    assert stand.requests == []
