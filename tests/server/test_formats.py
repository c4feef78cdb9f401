"""Results in every format: what Accept chooses, the same numbers everywhere, and refusals that cost nothing."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server import formats
from server.formats import FORMATS, Column, Table, answer_table, rank, release_table, to_csv, unguarded
from server.formats.columnar import _outward, arrow_modules
from tests.server.conftest import World
from tests.server.fakes import query

CSV = "text/csv"
STREAM = "application/vnd.apache.arrow.stream"
FILE = "application/vnd.apache.arrow.file"
PARQUET = "application/vnd.apache.parquet"
BINARY: dict[str, Callable[[bytes], pa.Table]] = {
    STREAM: lambda content: ipc.open_stream(content).read_all(),
    FILE: lambda content: ipc.open_file(content).read_all(),
    PARQUET: lambda content: pq.read_table(io.BytesIO(content)),
}

TABLE: dict[str, Any] = {
    "columns": [
        {"name": "town", "type": "VARCHAR", "kind": "key"},
        {"name": "day", "type": "DATE", "kind": "key"},
        {"name": "moment", "type": "TIMESTAMP", "kind": "key"},
        {"name": "adult", "type": "BOOLEAN", "kind": "key"},
        {"name": "n", "type": "BIGINT", "kind": "released"},
        {"name": "age", "type": "DOUBLE", "kind": "released"},
        {"name": "total", "type": "HUGEINT", "kind": "derived"},
        {"name": "half", "type": "DECIMAL(18,1)", "kind": "derived"},
        {"name": "all", "type": "BIGINT[]", "kind": "derived"},
    ],
    "rows": [
        ['O"Hara, Aix\nÉvian', "0001-01-01", "9999-12-31T23:59:59.999999", True, -4, 0.1, 10**20, 2.5, [1, None]],
        ["", "2026-02-28", "2026-02-28T01:02:03", False, 2**53 + 1, 1e300, -7, 3, [2]],
        [None, None, None, None, None, None, None, None, None],
    ],
    "standard_errors": [
        [None, None, None, None, 2.8, 0.02, 1.5, None, None],
        [None, None, None, None, 2.8, 5e-324, 1.5, 0.25, None],
        [None] * 9,
    ],
    "lows": [
        [None, None, None, None, -10, -0.5, 1e20, 2.25, None],
        [None, None, None, None, 2**53 - 5, 0.5, -9.5, 2.5, None],
        [None] * 9,
    ],
    "highs": [
        [None, None, None, None, 2, 0.7, 1.5e20, 2.75, None],
        [None, None, None, None, 2**53 + 1, 1e300, -5.5, 3.5, None],
        [None] * 9,
    ],
}
NAMES = [column["name"] for column in TABLE["columns"]]
ERRORS = [
    f"{name}_{kind}" for name in ("n", "age", "total", "half", "all") for kind in ("standard_error", "low", "high")
]
RELEASE = {
    "version": 1,
    "rows": 2,
    "confidence": "19/20",
    "columns": [
        {
            "name": "k0",
            "role": "key",
            "type": "text",
            "values": ["=a", None],
            "standard_errors": [],
            "lows": [],
            "highs": [],
        },
        {
            "name": "s0",
            "role": "released",
            "type": "integer",
            "values": [7, -2],
            "standard_errors": [1.5, 1.5],
            "lows": [4, -5],
            "highs": [10, 1],
        },
    ],
    "notes": [{"statistic": "s0", "mechanism": "laplace"}],
}


def one_column(type_: str, *values: Any, kind: str = "key") -> Table:
    """A table of one column."""
    return Table((Column("x", kind, 0, type_, values),), {}, {})


def arrow_type(type_: str, *values: Any, kind: str = "key") -> tuple[pa.DataType, list[Any]]:
    """Arrow type and values of one column."""
    write = next(f.write for f in FORMATS if f.media_type == STREAM)
    assert write is not None
    read = BINARY[STREAM](write(one_column(type_, *values, kind=kind)))
    return read.schema.field(0).type, read.column(0).to_pylist()


@pytest.fixture
def no_arrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server without pyarrow."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    arrow_modules.cache_clear()
    yield
    arrow_modules.cache_clear()


def ask(world: World, accept: str | None = None, body: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
    """A query with this Accept header. The client's own default is */*."""
    sent = headers if accept is None else {**headers, "Accept": accept}
    return world.api.post("/v1/queries", json=body or query(), headers=sent)


# What is asked for


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ([], "application/json"),
        ([""], "application/json"),
        ([" , "], "application/json"),
        (["*/*"], "application/json"),
        (["application/*"], "application/json"),
        (["Application/JSON; Charset=UTF-8"], "application/json"),
        (["application/json;profile=x"], "application/json"),
        (["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], "application/json"),
        (["text/csv"], CSV),
        (['text/csv;header=present;charset="utf-8"'], CSV),
        (["text/*"], CSV),
        (["text/csv, */*"], CSV),
        (["text/csv, application/json"], "application/json"),
        (["text/csv;q=0.9, application/json;q=0.8"], CSV),
        (["text/csv;q=0.5", f"{PARQUET};q=0.501"], PARQUET),
        (["application/json;q=0, */*"], CSV),
        (["application/*, application/json;q=0.1"], STREAM),
        ([f"{FILE};q=1.000, text/csv;q=0.999"], FILE),
        (["text/csv;q=0.5;version=2, application/json;q=0.4"], CSV),
        (['text/plain;x="a,text/html;q=0", text/csv'], CSV),
        (["text/csv;header=absent, application/json;q=0.1"], "application/json"),
        (["text/csv;q=2, application/json;q=0.1"], "application/json"),
    ],
)
def test_accept_chooses(accept: list[str], expected: str) -> None:
    """The best quality wins, then the most exact name, then JSON; parts that are not well formed are left out."""
    assert rank(accept)[0].media_type == expected


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "*/*;q=0",
        "application/json;q=0",
        "application/json;q=0.0000",
        "application/json;q=-1",
        "application/json;q=",
        "application/json;q",
        "*/json",
        "json",
        "text/csv;header=absent",
        "text/csv;charset=utf-16",
        "text / csv",
        'text/html;x="application/json',
        "application/json" + " " * 5000,
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_is_charged(world: World, accept: str) -> None:
    """406 not_acceptable on all three routes: nothing was asked, nothing charged, and it says what would do."""
    response = ask(world, accept)
    assert response.status_code == 406
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert (problem["code"], problem["charged"], problem["retryable"]) == ("not_acceptable", False, False)
    assert problem["available"] == [format_.media_type for format_ in FORMATS]
    assert "utf-16" not in response.text
    assert world.journey.asked == []
    assert world.spent() == 0
    made = ask(world).json()
    for path in (f"/v1/queries/{made['id']}", f"/v1/releases/{made['provenance']['releases'][0]}"):
        assert world.api.get(path, headers={"Accept": accept}).status_code == 406
        assert world.api.get(path).status_code == 200


def test_who_may_not_ask_learns_nothing_of_formats(world: World) -> None:
    """Without a key it is 401, in a role that does not ask 403, whatever Accept says."""
    for who, status in ((None, 401), ("auditor", 403)):
        response = world.api.post("/v1/queries", json=query(), headers={"Accept": "text/html"}, who=who)
        assert response.status_code == status


@pytest.mark.parametrize("accept", BINARY)
def test_without_pyarrow_it_says_what_to_install(world: World, no_arrow: None, accept: str) -> None:
    """Arrow and Parquet are 406 before anything is charged; CSV and JSON are what is left."""
    response = ask(world, accept)
    assert response.status_code == 406
    assert "setup --extra arrow" in " ".join(response.json()["instead"])
    assert response.json()["available"] == ["application/json", CSV]
    assert ask(world, "text/html").json()["available"] == ["application/json", CSV]
    assert world.journey.asked == []
    assert ask(world, f"{accept}, text/csv;q=0.1").headers["content-type"].startswith(CSV)


def test_capabilities_tell_the_formats(world: World) -> None:
    """Every format is listed as on, with what it needs."""
    listed = world.api.get("/v1/capabilities").json()["formats"]
    assert [entry["media_type"] for entry in listed] == ["application/json", CSV, STREAM, FILE, PARQUET]
    assert all(entry["on"] for entry in listed)


def test_capabilities_tell_what_is_missing(world: World, no_arrow: None) -> None:
    """Without pyarrow the three are off, and the extra is named."""
    listed = world.api.get("/v1/capabilities").json()["formats"]
    assert [entry["media_type"] for entry in listed if entry["on"]] == ["application/json", CSV]
    assert {entry["needs"] for entry in listed if not entry["on"]} == {"noisegate[arrow]"}


# The same numbers


@pytest.mark.parametrize("accept", BINARY)
def test_arrow_and_parquet_tell_the_same_as_json(world: World, accept: str) -> None:
    """Values, errors and intervals come back equal to the JSON, in the promised types, with everything beside them."""
    world.journey.table = TABLE
    response = ask(world, accept)
    assert response.status_code == 200
    assert response.headers["content-type"] == accept
    answer = world.api.get(response.headers["content-location"]).json()
    table = BINARY[accept](response.content)
    assert table.schema.names == NAMES + ERRORS
    types = [table.schema.field(name).type for name in NAMES]
    assert types == [
        pa.string(), pa.date32(), pa.timestamp("us"), pa.bool_(), pa.int64(), pa.float64(), pa.decimal128(38, 0),
        pa.float64(), pa.string(),
    ]  # fmt: skip
    assert {table.schema.field(name).type for name in ERRORS} == {pa.float64()}
    for place, name in enumerate(NAMES):
        expected = [row[place] for row in answer["rows"]]
        assert [back(value) for value in table.column(name).to_pylist()] == [
            json.dumps(value, separators=(",", ":")) if isinstance(value, list) else value for value in expected
        ]
        if answer["columns"][place]["kind"] != "key":
            for part, kind in (("standard_errors", "standard_error"), ("lows", "low"), ("highs", "high")):
                told = [row[place] for row in answer[part]]
                # 2^53 + 1 is no binary number: the upper end goes outwards.
                ends = [2, 2**53 + 2, None] if (name, kind) == ("n", "high") else told
                assert table.column(f"{name}_{kind}").to_pylist() == ends
    about = json.loads(table.schema.metadata[b"noisegate"])
    assert about == {name: answer[name] for name in answer if name not in TABLE}
    field = table.schema.field("n_low")
    assert {name: field.metadata[f"noisegate.{name}".encode()] for name in ("kind", "column", "type")} == {
        "kind": b"low",
        "column": b"4",
        "type": b"DOUBLE",
    }
    assert table.schema.field("total").metadata[b"noisegate.type"] == b"HUGEINT"


def back(value: Any) -> Any:
    """A value of Arrow as the JSON has it."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return int(value) if isinstance(value, Decimal) else value


def test_csv_tells_the_same_as_json(world: World) -> None:
    """Read back by any RFC 4180 reader, every field is the JSON's value; NULL is empty, text is quoted."""
    world.journey.table = TABLE
    response = ask(world, CSV)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    text = response.content.decode()
    assert text.splitlines(keepends=True)[0].endswith("\r\n")
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == NAMES + ERRORS
    answer = world.api.get(response.headers["content-location"]).json()
    assert len(rows) == 3
    for number, row in enumerate(rows):
        for place, column in enumerate(answer["columns"]):
            assert row[place] == written(answer["rows"][number][place])
            if column["kind"] != "key":
                for part, kind in (("standard_errors", "standard_error"), ("lows", "low"), ("highs", "high")):
                    field = row[header.index(f"{column['name']}_{kind}")]
                    assert field == written(answer[part][number][place])
    # NULL and the empty text are told apart by quotes.
    assert text.split("\r\n")[-2] == "," * (len(header) - 1)
    assert text.split("\r\n")[-3].startswith('"",2026-02-28,')


def written(value: Any) -> str:
    """A JSON value as CSV has it."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def test_the_headers_tell_the_price(world: World) -> None:
    """Identifiers, charge and remainder are headers of the formats that have no place for them."""
    plain = answer_table(
        json.dumps(
            {
                "id": "q_1",
                **TABLE,
                "confidence": 0.95,
                "warnings": [{"code": "literal_outside_declaration"}, {"code": "literal_outside_declaration"}],
                "accounting": {
                    "charged": [
                        {"budget": "b_root", "epsilon": "0.7", "delta": "0"},
                        {"budget": "b_leaf", "epsilon": "0.5", "delta": "0.00000001"},
                    ],
                    "reused": False,
                    "remaining": {"epsilon": "9.5", "delta": "0.000001"},
                },
                "provenance": {"releases": ["r_1", "r_2"]},
                "links": {"budget": "/v1/budgets/b_leaf"},
            }
        ).encode()
    )
    assert plain.headers == {
        "Noisegate-Query": "q_1",
        "Noisegate-Confidence": "0.95",
        "Noisegate-Budget": "b_leaf",
        "Noisegate-Charged-Epsilon": "0.5",
        "Noisegate-Charged-Delta": "0.00000001",
        "Noisegate-Remaining-Epsilon": "9.5",
        "Noisegate-Remaining-Delta": "0.000001",
        "Noisegate-Reused": "false",
        "Noisegate-Releases": "r_1, r_2",
        "Noisegate-Warnings": "literal_outside_declaration",
    }
    assert "noisegate-warnings" not in ask(world, CSV).headers
    sent = ask(world, CSV)
    query_id = sent.headers["noisegate-query"]
    assert sent.headers["content-location"] == f"/v1/queries/{query_id}"
    assert sent.headers["content-disposition"] == f'attachment; filename="{query_id}.csv"'
    assert sent.headers["cache-control"] == "no-store"
    assert set(sent.headers) & {name.lower() for name in formats.RESULT_HEADERS} >= {"noisegate-remaining-epsilon"}
    assert "noisegate-query" not in ask(world).headers


@pytest.mark.parametrize(
    ("reused", "releases", "expected"), [(True, ["r_1"], "0"), (False, [], "0"), (False, ["r_1"], None)]
)
def test_a_free_answer_costs_zero_and_an_unknown_charge_is_not_zero(
    reused: bool, releases: list[str], expected: str | None
) -> None:
    """The charge is 0 only when nothing was charged; where the JSON does not show it, it is left out."""
    body = {
        "id": "q_1",
        **TABLE,
        "confidence": 0.9,
        "accounting": {"charged": [], "reused": reused, "remaining": {"epsilon": "1", "delta": "0"}},
        "provenance": {"releases": releases},
        "links": {"budget": "/v1/budgets/b_leaf"},
    }
    assert answer_table(json.dumps(body).encode()).headers.get("Noisegate-Charged-Epsilon") == expected


def test_names_do_not_collide() -> None:
    """The answer's own names stay; later ones get the first free number, also when only case differs."""
    names = ["n", "N", "n_2", "n_low", "n"]
    body = {
        "id": "q_1",
        "columns": [
            {"name": name, "type": "BIGINT", "kind": "released" if place == 0 else "key"}
            for place, name in enumerate(names)
        ],
        "rows": [[1, 2, 3, 4, 5]],
        "standard_errors": [[0.5, None, None, None, None]],
        "lows": [[0, None, None, None, None]],
        "highs": [[2, None, None, None, None]],
        "confidence": 0.9,
        "accounting": {"charged": [], "reused": True, "remaining": {"epsilon": "1", "delta": "0"}},
        "provenance": {"releases": []},
    }
    table = answer_table(json.dumps(body).encode())
    assert [(column.name, column.values[0], column.of) for column in table.columns] == [
        ("n", 1, 0),
        ("N_3", 2, 1),
        ("n_2", 3, 2),
        ("n_low", 4, 3),
        ("n_4", 5, 4),
        ("n_standard_error", 0.5, 0),
        ("n_low_2", 0, 0),
        ("n_high", 2, 0),
    ]


def test_an_answer_without_rows_has_its_columns(world: World) -> None:
    """No rows: the header line of CSV, and the types of Arrow and Parquet."""
    world.journey.table = {**TABLE, "rows": [], "standard_errors": [], "lows": [], "highs": []}
    assert ask(world, CSV).content.count(b"\r\n") == 1
    for accept, read in BINARY.items():
        table = read(ask(world, accept).content)
        assert (table.num_rows, table.schema.names) == (0, NAMES + ERRORS)
        assert table.schema.field("day").type == pa.date32()


# Types


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        ("BIGINT", [2**63 - 1, -(2**63) + 1], pa.int64()),
        ("BIGINT", [2**63, None], pa.decimal128(38, 0)),
        ("HUGEINT", [1], pa.decimal128(38, 0)),
        ("UBIGINT", [2**64 - 1], pa.decimal128(38, 0)),
        ("HUGEINT", [10**38 - 1, 1 - 10**38], pa.decimal128(38, 0)),
        ("DECIMAL(38,0)", [10**37], pa.decimal128(38, 0)),
        ("DECIMAL(18,3)", [1, 0.125], pa.float64()),
        ("DOUBLE", [1, 0.1, None], pa.float64()),
        ("BOOLEAN", [True, None], pa.bool_()),
        ("TIMESTAMP_NS", ["2026-01-01T00:00:00.000001"], pa.timestamp("us")),
        ("ENUM('a', 'b')", ["a"], pa.string()),
        ("TIME", ["01:02:03"], pa.string()),
        ("UUID", ["00000000-0000-0000-0000-000000000000"], pa.string()),
    ],
)
def test_types(type_: str, values: list[Any], expected: pa.DataType) -> None:
    """Every type of an answer has its Arrow type, and the values come back."""
    found, read = arrow_type(type_, *values)
    assert found == expected
    assert [back(value) for value in read] == values


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("HUGEINT", 10**38),
        ("DOUBLE", 10**400),
        ("BOOLEAN", 1),
        ("BIGINT", True),
        ("BIGINT", 0.5),
        ("DATE", "20260101"),
        ("DATE", "soon"),
        ("DATE", 5),
        ("TIMESTAMP", "2026-01-01T00:00:00+01:00"),
        ("VARCHAR[]", ["a", None]),
    ],
)
def test_a_value_that_does_not_fit_is_sent_as_text(type_: str, value: Any) -> None:
    """A column with a value outside its type is text as in the JSON: no value is dropped, no answer fails."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    assert arrow_type(type_, value, None) == (pa.string(), [text, None])


@settings(deadline=None)
@given(st.integers(min_value=-(10**330), max_value=10**330))
def test_interval_ends_never_move_inside(value: int) -> None:
    """As binary numbers, lows are at most and highs at least what the JSON says, and equal up to 2^53."""
    low, high = _outward(value, up=False), _outward(value, up=True)
    assert low is not None
    assert high is not None
    assert low <= value <= high
    if abs(value) <= 2**53:
        assert low == value == high
    elif math.isfinite(low) and math.isfinite(high):
        assert high <= math.nextafter(low, math.inf)


def test_interval_ends_of_a_table_are_binary_numbers() -> None:
    """Whole and broken ends have one type, so that tables of several answers can be put together."""
    assert arrow_type("DOUBLE", 1, None, kind="low") == (pa.float64(), [1.0, None])
    assert arrow_type("DOUBLE", 2**60 + 1, 0.5, kind="high") == (pa.float64(), [float(2**60 + 256), 0.5])


# Spreadsheets

DANGEROUS = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\u00a0=1", "\uff1d1", "'=1", "a;=1", "a\t=1",
    "a\n=1", "a;;=1", '";=1', "; -1",
]  # fmt: skip


@pytest.mark.parametrize("text", DANGEROUS)
def test_formulas_in_texts_are_guarded(text: str) -> None:
    """No cell begins with a formula, neither for readers of commas nor for those of semicolons or tabs."""
    content = to_csv(one_column("VARCHAR", text)).decode()
    ((name,), (field,)) = csv.reader(io.StringIO(content, newline=""))
    assert name == "x"
    for separator in (";", "\t", "\n", "\r"):
        for cell in field.split(separator):
            assert not cell.strip(" \u00a0").startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
    assert unguarded(field) == text


@pytest.mark.parametrize("text", ["", "a", "a=1", "1-1", "O'Hara", "a; b", "a,=1", "café"])
def test_harmless_texts_are_left_alone(text: str) -> None:
    """Texts without a formula stand as they are."""
    ((_,), (field,)) = csv.reader(io.StringIO(to_csv(one_column("VARCHAR", text)).decode(), newline=""))
    assert field == text


@settings(deadline=None)
@given(st.lists(st.text(alphabet=st.sampled_from("a'=-+@;\t\r\n \u00a0\",\uff1d")), min_size=1, max_size=4))
def test_guarded_texts_come_back(texts: list[str]) -> None:
    """Every text comes back exactly by taking the apostrophes away."""
    table = Table(tuple(Column(f"c{i}", "key", i, "VARCHAR", (text,)) for i, text in enumerate(texts)), {}, {})
    _, fields = csv.reader(io.StringIO(to_csv(table).decode(), newline=""), strict=True)
    assert [unguarded(field) for field in fields] == texts


def test_names_and_moments_are_texts_too() -> None:
    """An alias is the analyst's own text, and a date that is none is guarded; negative numbers are numbers."""
    assert to_csv(Table((Column("=x", "key", 0, "BIGINT", (-4,)),), {}, {})) == b'"\'=x"\r\n-4\r\n'
    assert to_csv(one_column("DATE", "2026-01-01", "-1")) == b'"x"\r\n2026-01-01\r\n"\'-1"\r\n'
    assert to_csv(one_column("VARCHAR", "2026-01-01")) == b'"x"\r\n"2026-01-01"\r\n'


def test_a_line_is_never_empty() -> None:
    """NULL in a table of one column: readers skip empty lines, and a row would be lost."""
    assert to_csv(one_column("VARCHAR", None, "a")) == b'"x"\r\n""\r\n"a"\r\n'


# HTTP


def test_a_retry_may_ask_for_another_format(world: World) -> None:
    """The format is not part of the question: under one key it is one charge, one id and equal numbers."""
    key = {"Idempotency-Key": "one"}
    first = ask(world, None, None, **key)
    for accept in (CSV, *BINARY):
        again = ask(world, accept, None, **key)
        assert again.status_code == 200
        assert again.headers["noisegate-query"] == first.json()["id"]
    assert world.journey.completed == 1
    assert world.spent() == Fraction(1, 2)


def test_every_format_has_its_own_tag(world: World) -> None:
    """ETags are distinct per format and stable; a tag of one format is no 304 in another; caches vary by Accept."""
    world.journey.release_body = json.dumps(RELEASE).encode()
    made = ask(world).json()
    for path in (f"/v1/queries/{made['id']}", f"/v1/releases/{made['provenance']['releases'][0]}"):
        tags = {}
        for accept in ("application/json", CSV, *BINARY):
            first = world.api.get(path, headers={"Accept": accept})
            again = world.api.get(path, headers={"Accept": accept, "If-None-Match": first.headers["etag"]})
            assert first.content == world.api.get(path, headers={"Accept": accept}).content
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["vary"] == first.headers["vary"] == "Authorization, Accept, Noisegate-On-Behalf-Of"
            assert first.headers["cache-control"] == "private, max-age=31536000, immutable"
            tags[accept] = first.headers["etag"]
        assert len(set(tags.values())) == 5
        other = world.api.get(path, headers={"Accept": CSV, "If-None-Match": tags["application/json"]})
        assert other.status_code == 200
    assert world.spent() == Fraction(1, 2)


@pytest.mark.parametrize("accept", [CSV, *BINARY])
def test_what_is_no_result_stays_json(world: World, accept: str) -> None:
    """202 is JSON and every problem problem+json, whatever was asked for."""
    running = ask(world, accept, query("SELECT slow", wait_ms=0))
    assert (running.status_code, running.headers["content-type"]) == (202, "application/json")
    polled = world.api.get(running.headers["location"], headers={"Accept": accept})
    assert (polled.status_code, polled.headers["content-type"]) == (202, "application/json")
    world.journey.gate.set()
    for sql, status in (("SELECT unreadable", 400), ("SELECT secret_column", 422), ("SELECT broken", 500)):
        response = ask(world, accept, query(sql))
        assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    missing = world.api.get("/v1/queries/q_none", headers={"Accept": accept})
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("accept", [CSV, *BINARY])
def test_an_exhausted_budget_is_a_problem_in_every_format(world: World, accept: str) -> None:
    """403 problem+json, not an empty table."""
    response = ask(world, accept, query(spend={"epsilon": "1000"}))
    assert (response.status_code, response.json()["code"]) == (403, "budget_exhausted")
    assert response.headers["content-type"] == "application/problem+json"


def test_a_release_has_the_same_formats(world: World) -> None:
    """A release's table with its errors, its identifiers in headers, and its notes in the metadata."""
    world.journey.release_body = json.dumps(RELEASE).encode()
    made = ask(world).json()
    release_id = made["provenance"]["releases"][0]
    path = f"/v1/releases/{release_id}"
    body = world.api.get(path).json()
    sent = world.api.get(path, headers={"Accept": CSV})
    assert sent.content == (
        b'"k0","s0","s0_standard_error","s0_low","s0_high"\r\n"\'=a",7,1.5,4,10\r\n,-2,1.5,-5,1\r\n'
    )
    assert sent.headers["noisegate-release"] == release_id
    assert sent.headers["noisegate-query"] == made["id"]
    assert sent.headers["noisegate-confidence"] == "0.95"
    for accept, read in BINARY.items():
        table = read(world.api.get(path, headers={"Accept": accept}).content)
        assert table.to_pydict() == {
            "k0": ["=a", None],
            "s0": [7, -2],
            "s0_standard_error": [1.5, 1.5],
            "s0_low": [4.0, -5.0],
            "s0_high": [10.0, 1.0],
        }
        about = json.loads(table.schema.metadata[b"noisegate"])
        assert about["id"] == release_id
        assert about["dataset"] == body["dataset"]
        assert about["release"] == {"version": 1, "confidence": "19/20", "notes": RELEASE["notes"]}


def test_a_shared_release_does_not_name_its_query() -> None:
    """Whose query paid is nobody else's business: neither a header nor the metadata has it."""
    body = {"id": "r_1", "dataset": "clinic", "created": None, "query": None, "release": RELEASE}
    table = release_table(json.dumps(body).encode())
    assert "Noisegate-Query" not in table.headers
    assert table.about["query"] is None


def test_errors_that_are_not_finite_are_null() -> None:
    """A stored release may hold infinite errors, which are unknown to the reader."""
    column = {**RELEASE["columns"][1], "standard_errors": [math.inf, 1.5], "lows": [-math.inf, 0]}  # type: ignore[index]
    release = {**RELEASE, "columns": [column]}
    body = {"id": "r_1", "dataset": "clinic", "created": None, "query": None, "release": release}
    table = release_table(json.dumps(body).encode())
    assert [column.values for column in table.columns][1:3] == [(None, 1.5), (None, 0)]
