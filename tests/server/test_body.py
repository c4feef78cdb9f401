"""Bodies: strict JSON, limits, and messages that repeat nothing of what was sent."""

from __future__ import annotations

import json

import httpx
import pytest

from server.body import canonical_hash, parse_json
from server.errors import Problem
from tests.server.conftest import World
from tests.server.fakes import SECRET_LITERAL, query

JSON = {"Content-Type": "application/json"}


def send(world: World, content: bytes | str, **headers: str) -> httpx.Response:
    """POST /v1/queries with these bytes."""
    return world.api.post("/v1/queries", content=content, headers={**JSON, **headers})


def nested(depth: int) -> bytes:
    """An object with lists in it, `depth` brackets deep."""
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"{} {}",
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1e400}',
        b'{"a":9223372036854775808}',
        b'{"a":-9223372036854775809}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":0.' + b"1" * 5000 + b"}",
        b'{"a":"\\u0000"}',
        b'{"\\u0000":1}',
        b'{"a":"\\ud800"}',
        b'{"a":["\\udc00x"]}',
        b'{"a":"\xff"}',
        b"\xef\xbb\xbf{}",
        '{"a":1}'.encode("utf-16"),
        b'{"a":"\n"}',
        b"{'a':1}",
        b'{"a":01}',
        b'{"a":1,}',
        nested(33),
        b"[" * 60_000,
        b'{"a":' * 10_000,
    ],
)
def test_anything_but_one_strict_object_is_refused(raw: bytes) -> None:
    """Duplicate keys, NaN, huge numbers, deep nesting, other encodings, NUL and half surrogates are refused."""
    with pytest.raises(Problem) as caught:
        parse_json(raw)
    assert caught.value.code == "invalid_json"


def test_ordinary_objects_are_read() -> None:
    """Nesting up to 32, brackets inside of strings, pairs of surrogates and 64-bit numbers are fine."""
    assert parse_json(nested(32)) is not None
    assert parse_json(b'{"a":"[[[[\\"{{{{","b":"\\ud83d\\ude00"}') == {"a": '[[[["{{{{', "b": "\U0001f600"}
    assert parse_json(b'{"a":9223372036854775807,"b":-9223372036854775808,"c":1.5e3}') == {
        "a": 2**63 - 1,
        "b": -(2**63),
        "c": 1500.0,
    }


def test_the_hash_of_a_body_is_of_its_meaning() -> None:
    """Layout and order of keys do not change the hash; every value does."""
    assert canonical_hash({"a": 1, "b": [True]}) == canonical_hash({"b": [True], "a": 1})
    assert canonical_hash({"a": 1}) != canonical_hash({"a": True})
    assert canonical_hash({"a": "1"}) != canonical_hash({"a": 1})


def test_bodies_beyond_64_kib_are_413(world: World) -> None:
    """65,536 bytes are read, one more is refused, with and without a declared length."""
    filler = json.dumps(query("SELECT 1 -- "))
    exact = filler.replace("-- ", "-- " + "x" * (65_536 - len(filler)))
    assert len(exact) == 65_536
    assert send(world, exact).status_code == 200
    for response in (
        send(world, exact + " "),
        send(world, b"{}", **{"Content-Length": "999999999999999999"}),
        world.api.post("/v1/queries", content=iter_bytes(exact.encode() + b" "), headers=JSON),
    ):
        assert response.status_code == 413
        assert (response.json()["code"], response.json()["charged"]) == ("body_too_large", False)


async def iter_bytes(raw: bytes):  # type: ignore[no-untyped-def]
    """The bytes in chunks, without a length."""
    for start in range(0, len(raw), 10_000):
        yield raw[start : start + 10_000]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/jsonx"},
        {"Content-Type": ""},
        {"Content-Encoding": "gzip"},
    ],
)
def test_other_media_types_are_415(world: World, headers: dict[str, str]) -> None:
    """Only uncompressed application/json in UTF-8 is read."""
    response = send(world, json.dumps(query()), **headers)
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    "change",
    [
        {"sql": None},
        {"sql": ""},
        {"sql": ["SELECT 1"]},
        {"dataset": 7},
        {"principal": "admin"},
        {"role": "admin"},
        {"is_admin": True},
        {SECRET_LITERAL: 1},
        {"parameters": {"1a": 1}},
        {"parameters": {SECRET_LITERAL: 1}},
        {"parameters": {"a": [SECRET_LITERAL]}},
        {"parameters": {"a": {"b": SECRET_LITERAL}}},
        {"parameters": {f"p{i}": i for i in range(101)}},
        {"reuse": SECRET_LITERAL},
        {"wait_ms": 30_001},
        {"wait_ms": -1},
        {"wait_ms": "10"},
        {"wait_ms": True},
        {"wait_ms": 1.5},
        {"max_staleness_s": -1},
        {"budget": "../x"},
        {"spend": {"epsilon": "0.5", "delta": "0"}},
        {"spend": {}},
        {"spend": "0.5"},
        {"accuracy": {"half_width": "5"}},
        {"accuracy": {"relative": "0"}, "spend": None},
        {"accuracy": {"relative": "1.5"}, "spend": None},
        {"accuracy": {"relative": "0.1", "half_width": "5"}, "spend": None},
        {"accuracy": {"relative": "0.1"}},
        {"accuracy": {"half_width": "5", "confidence": "0.3"}, "spend": None},
        {"accuracy": {"confidence": "1"}},
        {"accuracy": {"confidence": [SECRET_LITERAL]}},
    ],
)
def test_wrong_fields_are_422_before_anything_else(world: World, change: dict[str, object]) -> None:
    """Missing, unknown and wrong fields are refused, nothing reaches the journey, and no value is repeated."""
    body = {name: value for name, value in {**query(), **change}.items() if value is not None}
    response = send(world, json.dumps(body))
    assert response.status_code == 422
    assert (response.json()["code"], response.json()["charged"]) == ("invalid_request", False)
    assert SECRET_LITERAL not in response.text
    assert world.journey.asked == []


def test_all_findings_come_at_once(world: World) -> None:
    """Three wrong fields give three findings, each with its path."""
    response = send(world, json.dumps({"dataset": 1, "spend": {"epsilon": 0.5}, "wait_ms": -1}))
    assert {finding["field"] for finding in response.json()["findings"]} == {
        "dataset",
        "sql",
        "spend.epsilon",
        "wait_ms",
    }


def test_advice_says_how_the_price_is_written(world: World) -> None:
    """A JSON number and a price outside its object are the first mistakes of everybody: both refusals show the cure."""
    for body, advice in (
        (query(spend={"epsilon": 0.5}), 'Write it in quotes: "0.5".'),
        (query(epsilon="0.5"), 'Write it as "spend": {"epsilon": "0.5"}.'),
        (query(half_width="10"), 'Write it as "accuracy": {"half_width": "10"}.'),
    ):
        response = send(world, json.dumps(body))
        assert response.status_code == 422
        assert response.json()["instead"][0] == advice


def test_unknown_query_parameters_are_refused(world: World) -> None:
    """?dry_run=true must not be ignored on a request that spends; nor an unknown parameter anywhere else."""
    for response in (
        world.api.post("/v1/queries?dry_run=true", json=query()),
        world.api.get("/v1/queries?counts=5"),
        world.api.get("/v1/queries?count=5&count=6"),
        world.api.get("/healthz?x=1", who=None),
    ):
        assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    assert world.journey.asked == []
