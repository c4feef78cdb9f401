"""Hostile bodies of everything that is charged once and read afterwards, with real parts: numbers, texts and shapes
that no honest client sends are refused with words, cost nothing and reach no row.

Each body is an honest one with one field exchanged, as the bytes that are sent. A control shows that the honest ones
are estimated.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from server.app import create_app
from server.resources.resources import Resources
from tests.journey.clinic import attach, clinic_in
from tests.journey.watched import COUNT, Clinic

STATISTICS = 'statistics: {typical_age: {sql: "SELECT MEDIAN(age) FROM people"}}\n'
MACHINERY = ("Traceback", "sqlglot", "duckdb", "pydantic", "Error:", ".py", "<class", "unit$", "sql_rewrite", "Decimal")
HONEST: dict[str, dict[str, Any]] = {
    "monitors": {"sql": COUNT, "threshold": "3500", "epsilon": "2", "evaluations": 50, "hits": 2},
    "streams": {"table": "people", "columns": [{"name": "age", "low": 18, "high": 89, "step": 1}], "epsilon": "2"},
    "batches": {"queries": [COUNT, f"{COUNT} WHERE age < 30"], "spend": {"epsilon": "1"}},
    "models": {"sql": "SELECT age, age >= 54 AS label FROM people", "spend": {"epsilon": "1"}, "iterations": 2},
    "synthetic": {"table": "people", "name": "drawn", "epsilon": "2", "columns": [{"name": "age"}, {"name": "sex"}]},
    "statistics": {"statistic": "typical_age", "width": "5", "spend": {"own_epsilon": "2"}},
}

NUMBERS = (
    *(b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"1" + b"0" * 400, b"-1" + b"0" * 400),
    *(b'"NaN"', b'"inf"', b'"1e999"', b'"1e-999"', b'"-1"', b'"-0"', b'"0x10"', b'"1_000"', b'" 1"', b'"1\\u0000"'),
    *('"١"'.encode(), '"1٫5"'.encode(), b'"' + b"9" * 5_000 + b'"', b"true", b"0.5", b"[]", b"{}", b'""'),
)
"""What stands where an exact amount belongs."""

TEXTS = (
    *(b"1", b"true", b"[]", b"{}", b'""', b'"\\ud800"', b'"a\\u0000b"', b'"\xff"', b'"\xed\xa0\x80"'),
    *('"pеople"'.encode(), '"ｐｅｏｐｌｅ"'.encode(), '"people\u200b"'.encode(), b'"\\u202epeople"'),
    *(b'"\'; DROP TABLE people; --"', b'"../../etc/passwd"', b'"unit$id"', b'"main.people"', b'"people\\""'),
)
"""What stands where a name belongs."""

WHOLE = (b"1e0", b"1.5", b"-1", b"0", b'"1"', b"true", b"[1]", b"1" + b"0" * 400, b"NaN", b"9223372036854775808")
"""What stands where a count belongs."""

SQL = (
    *(b'"SELECT 1"', b'""', b'"\\u0000"', b'"SELECT COUNT(*) FROM people; SELECT 2"', b'"SELECT * FROM people"', b"[]"),
    *(
        b"\"SELECT COUNT(*) FROM read_csv('/etc/passwd')\"",
        b'"SELECT unit$id FROM people"',
        '"ＳＥＬＥＣＴ 1"'.encode(),
    ),
)

ENDS = (
    *(b"NaN", b"1e999", b"1.5", b"true", b'"NaN"', b'"infinity"', b'"-infinity"', b'"2020-02-30"', b'"0000-00-00"'),
    *(b'"99999-01-01"', b'"epoch"', b'"now"', b"-9223372036854775808", b"9223372036854775807", b"1" + b"0" * 400),
)

FIELDS: dict[str, dict[str, tuple[bytes, ...]]] = {
    "monitors": {"sql": SQL, "threshold": NUMBERS, "epsilon": NUMBERS, "hits": WHOLE, "evaluations": WHOLE},
    "streams": {
        "table": TEXTS,
        "epsilon": NUMBERS,
        "updates": WHOLE,
        "queries": WHOLE,
        "tolerance": NUMBERS,
        "columns": (
            *(b"[]", b"{}", b"1", b"[1]", b"[[]]", b'["age"]', b'[{"name": "sex", "low": 1}]', b'[{"name": "town"}]'),
            *(b'[{"name": "age", "low": %b}]' % end for end in ENDS),
            *(b'[{"name": "age", "step": %b}]' % step for step in WHOLE),
            *(b'[{"name": %b}]' % name for name in TEXTS),
            b"[" + b", ".join([b'{"name": "age"}'] * 17) + b"]",
            b'[{"name": "age", "low": 1, "low": 20}]',
        ),
    },
    "batches": {
        "queries": (
            b"[]",
            b"{}",
            b'"x"',
            b"[1]",
            b"[[]]",
            *(b"[%b]" % text for text in SQL),
            b'["a"' + b', "a"' * 5_000 + b"]",
        ),
        "confidence": (*NUMBERS[:-4], b'"1"', b'"0.4"'),
        "reuse": (b'"Own"', b"1", b'"\\u0000"'),
        "noise": (b'"none"', b'""', b"0", b'"Laplace "'),
    },
    "models": {
        "sql": SQL,
        "iterations": WHOLE,
        "method": (b'"none"', b"1", b"[]"),
        "held_out": (*NUMBERS[:-3], b'"0.6"'),
        "clip": (*NUMBERS, b'"2"', b'"0"'),
        "spend": (b"{}", b"1", b'{"epsilon": "1", "own_epsilon": "1"}', *(b'{"own_epsilon": %b}' % n for n in NUMBERS)),
    },
    "synthetic": {
        "table": TEXTS,
        "name": (*TEXTS[:-5], b'"a b"', b'"' + b"x" * 300 + b'"'),
        "epsilon": NUMBERS,
        "rows_per_unit": WHOLE,
        "columns": (
            *(b"[1]", b"{}", b'["age"]', b'[{"name": "age"}, {"name": "AGE"}]', b'[{"name": "age", "bins": 1}]'),
            *(
                b'[{"name": "salary", "low": %b, "high": "9"}]' % end
                for end in (*NUMBERS[:7], b'"-"', b'"--1"', b'"1e16"')
            ),
            *(b'[{"name": %b}]' % name for name in TEXTS),
        ),
    },
    "statistics": {
        "statistic": (*TEXTS, '"typical_аge"'.encode(), b'"typical_age "', b'"TYPICAL\\u0000AGE"', b'"absent"'),
        "width": (*NUMBERS, b'"1e15"', b'"0"'),
        "confidence": (*NUMBERS[:-4], b'"1"'),
        "spend": (b"{}", b'{"epsilon": NaN}', b'{"epsilon": "1", "own_epsilon": "1"}', b'{"own_epsilon": "-1"}'),
    },
}

SHAPES = (
    *(
        b"",
        b" ",
        b"null",
        b"1",
        b'"x"',
        b"[]",
        b"[{}]",
        b"{",
        b"{}}",
        b"{}{}",
        b"\xef\xbb\xbf{}",
        b"\x00{}",
        b"{'a': 1}",
    ),
    *(b"[" * 1_000 + b"]" * 1_000, b'{"a": ' * 1_000 + b"1" + b"}" * 1_000, b'{"dataset": "clinic"}'),
)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """A clinic with a registered statistic."""
    home = tmp_path_factory.mktemp("bodies")
    with clinic_in(home) as (services, path):
        path.write_text(path.read_text() + STATISTICS)
        attach(services, path)
        yield Clinic(home, services, path)


def sent(clinic: Clinic, who: str, path: str, bodies: list[bytes]) -> list[httpx.Response]:
    """The responses to some bodies, one after the other."""

    async def send() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=create_app(clinic.services.settings, services=clinic.services))
        headers = {"Authorization": f"Bearer {clinic.key(who)}", "Content-Type": "application/json"}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            return [await client.post(path, content=body, timeout=60) for body in bodies]

    return asyncio.run(send())


def exchanged(honest: dict[str, Any], name: str, value: bytes) -> bytes:
    """The honest body with other bytes in one field."""
    members = [
        b"%b: %b" % (json.dumps(key).encode(), json.dumps(one).encode()) for key, one in honest.items() if key != name
    ]
    return b"{" + b", ".join([*members, b'"%b": %b' % (name.encode(), value)]) + b"}"


def hostile(kind: str) -> list[bytes]:
    """Every hostile body of a kind."""
    honest = {"dataset": "clinic", **HONEST[kind]}
    bodies = [exchanged(honest, name, value) for name, values in FIELDS[kind].items() for value in values]
    bodies += [exchanged(honest, "dataset", value) for value in TEXTS]
    bodies += [exchanged(honest, name, b"1") for name in ("Dataset", "__class__", "sqI", "constructor", "\u0435psilon")]
    whole = json.dumps(honest).encode()
    doubled = b'{"dataset": "other", ' + whole[1:]
    return [*bodies, *SHAPES, doubled, whole + b"x", whole.replace(b'"dataset"', b'"data\\u0073et ": 1, "dataset"')]


def wrong(body: bytes, response: httpx.Response) -> str | None:
    """What is wrong with a reply to a hostile body."""
    if response.headers.get("content-type") != "application/problem+json":
        return f"{body[:200]!r}: {response.status_code}"
    problem = response.json()
    if not 400 <= response.status_code < 500 or response.status_code in (401, 409, 429):
        return f"{body[:200]!r}: {response.status_code} {problem['code']}"
    if problem["charged"] is not False or not problem["what"]:
        return f"{body[:200]!r}: charged {problem['charged']}"
    said = [piece for piece in MACHINERY if piece in response.text and piece.encode() not in body]
    return f"{body[:200]!r}: {said}" if said else None


@pytest.mark.sparse(2)
@pytest.mark.parametrize("kind", HONEST)
def test_hostile_bodies_are_refused_for_nothing(clinic: Clinic, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows a problem of the client's for every body, for an estimate and for the thing itself: no internal error, no
    charge, no entry, nothing listed, and no slot of the engine taken. The honest body is estimated."""
    who, account = clinic.somebody(epsilon="500")
    assert isinstance(clinic.services.resources, Resources)
    monkeypatch.setattr(clinic.services.resources.private, "lease", None)
    honest = json.dumps({"dataset": "clinic", **HONEST[kind]}).encode()
    (control,) = sent(clinic, who, f"/v1/{kind}:estimate", [honest])
    assert control.status_code == 200, control.text
    before = len(clinic.services.ledger.entries(account))
    bodies = hostile(kind)
    found = [
        finding
        for path in (f"/v1/{kind}:estimate", f"/v1/{kind}")
        for body, response in zip(bodies, sent(clinic, who, path, bodies), strict=True)
        if (finding := wrong(body, response)) is not None
    ]
    assert found == []
    assert len(clinic.services.ledger.entries(account)) == before


OPENED: dict[str, tuple[str, tuple[bytes, ...]]] = {
    "monitors": (
        "evaluations",
        (
            *(b'{"wait_ms": %b}' % value for value in WHOLE if value != b"0"),
            *(b'{"after": %b}' % value for value in WHOLE if value not in (b"0", b"-0")),
            *(b'{"sql": %b}' % value for value in SQL),
            *(b'{"threshold": %b}' % value for value in (*NUMBERS, b'"1"')),
            *(b"[]", b"1", b'{"wait_ms": 1, "wait_ms": 1}', b'{"threshold": "1", "sql": "SELECT 1"}', b"{}x"),
        ),
    ),
    "streams": (
        "queries",
        (
            *SHAPES,
            *(b'{"queries": %b}' % value for value in (b"[]", b"{}", b"[1]", b'[{"where": {}}]', b'[{"where": [1]}]')),
            *(b'{"queries": [{"where": [{"key": %b, "low": 18}]}]}' % name for name in TEXTS),
            *(
                b'{"queries": [{"where": [{"key": "age", "low": %b}]}]}' % end
                for end in (*ENDS, *NUMBERS, b"17", b"90")
            ),
            *(
                b'{"queries": [{"where": [{"key": "age", "high": %b}]}]}' % end
                for end in (*ENDS, *NUMBERS, b"17", b"90")
            ),
            *(b'{"queries": [{"where": [{"key": "age", "values": [%b]}]}]}' % end for end in (*ENDS, *NUMBERS, b"17")),
            b'{"queries": [{"where": [{"key": "age", "values": [' + b"20, " * 1_000 + b"20]}]}]}",
            b'{"queries": [' + b'{"where": []}, ' * 100 + b'{"where": []}]}',
            b'{"queries": [{"where": [{"key": "age", "low": 20, "low": 30}]}]}',
            b'{"queries": [{"where": [], "where": [{"key": "age", "low": 20}]}]}',
        ),
    ),
}


@pytest.mark.parametrize("kind", OPENED)
def test_hostile_questions_of_what_is_open_are_refused_and_count_nothing(
    clinic: Clinic, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows the same of evaluations of a monitor and of queries of a stream, which are free: none is counted."""
    who, account = clinic.somebody(epsilon="500")
    made = clinic.call(who, "POST", f"/v1/{kind}", {"dataset": "clinic", **HONEST[kind]}).json()
    assert isinstance(clinic.services.resources, Resources)
    monkeypatch.setattr(clinic.services.resources.private, "lease", None)
    before, spent = clinic.call(who, "GET", made["links"]["self"]).json(), clinic.spent(account)
    below, bodies = OPENED[kind]
    replies = zip(bodies, sent(clinic, who, f"{made['links']['self']}/{below}", list(bodies)), strict=True)
    assert [finding for body, response in replies if (finding := wrong(body, response)) is not None] == []
    assert clinic.call(who, "GET", made["links"]["self"]).json() == before
    assert clinic.spent(account) == spent
