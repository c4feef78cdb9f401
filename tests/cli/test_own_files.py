"""Files as people have them: other countries' CSV, odd names, no column of persons; and files that are none."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import httpx
import pytest

from server.datasets import load
from tests.cli.support import Ran, Serving, cli, refused

_LEUTE = ["Personen-Nr;Größe (cm);Geburtstag;Notiz;order"] + [
    f'{n};{150 + n % 40},{n % 10};{1 + n % 28:02d}.03.19{50 + n % 50};"eins\n""zwei""";x' for n in range(1, 200)
]
LEUTE = ("\r\n".join(_LEUTE) + "\r\n").encode("utf-8-sig")


@pytest.fixture
def leute(tmp_path: Path) -> Path:
    """Semicolons, decimal commas, days first, CRLF, a byte order mark, line breaks and quotes inside of quotes."""
    path = tmp_path / "leute.csv"
    path.write_bytes(LEUTE)
    return path


def attached(data: Path, home: Path, *options: str) -> tuple[Path, Ran]:
    """Proposes a file for the data, checks it and attaches it as proposed."""
    described = data.with_suffix(".yaml")
    proposed = cli("init", str(data), *options, "-o", str(described))
    assert proposed.code == 0, proposed.err
    checked = cli("dataset", "check", str(described))
    assert checked.code == 0, checked.out
    added = cli("dataset", "add", str(described), "--home", str(home), "--json")
    assert added.code == 0, added.err
    return described, proposed


@pytest.mark.slow
def test_a_european_csv_is_attached_as_proposed(leute: Path, empty_home: Path) -> None:
    """Every column is there with its type, under a name that SQL reads, and what was renamed is told."""
    described, proposed = attached(leute, empty_home, "--unit", "Personen-Nr")
    assert 'Names for SQL: "Personen-Nr" is Personen_Nr, "Größe (cm)" is Grosse_cm, "order" is order_' in proposed.out
    assert 'Read in leute: numbers with decimal ",", days as DD.MM.YYYY' in proposed.out
    table = load(described).tables["leute"]
    assert (table.source.decimal, table.source.dates, table.key) == (",", "DD.MM.YYYY", "Personen_Nr")
    assert [(name, column.source_name, column.type) for name, column in table.columns.items()] == [
        ("Personen_Nr", "Personen-Nr", "integer"),
        ("Grosse_cm", "Größe (cm)", "number"),
        ("Geburtstag", None, "date"),
        ("Notiz", None, "text"),
        ("order_", "order", "text"),
    ]


@pytest.mark.slow
def test_a_parquet_file_with_nested_columns(tmp_path: Path, empty_home: Path) -> None:
    """Decimals and moments have a type; lists and structures are left out and told."""
    path = tmp_path / "customers.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            'COPY (SELECT range AS "Customer ID", CAST(range / 4 AS DECIMAL(12, 2)) AS amount, '
            "TIMESTAMPTZ '2024-01-01 00:00:00+02' AS seen, {'street': 'x'} AS address, [range] AS items, uuid() AS u "
            f"FROM range(50)) TO '{path}' (FORMAT parquet)"
        )
    described, proposed = attached(path, empty_home, "--unit", "Customer_ID")
    assert 'Left out: "address" (its type is not supported), "items" (its type is not supported)' in proposed.out
    columns = load(described).tables["customers"].columns
    assert [(name, column.type) for name, column in columns.items()] == [
        ("Customer_ID", "integer"),
        ("amount", "number"),
        ("seen", "timestamp"),
        ("u", "text"),
    ]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A database with a table of people and one with many rows of each."""
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT range AS person_id, range % 2 = 0 AS member FROM range(90)")
        connection.execute(
            'CREATE TABLE orders AS SELECT range AS number, range % 60 AS "Person ID", 1.5 AS total FROM range(600)'
        )
        connection.execute("CREATE TABLE shelves AS SELECT range AS shelf FROM range(3)")
        connection.execute('CREATE TABLE visits AS SELECT range % 60 AS person_id, 1 AS "where" FROM range(600)')
    return path


@pytest.mark.slow
def test_a_database_with_many_rows_per_person(shop: Path, tmp_path: Path) -> None:
    """The table of persons is named, the others refer to it with a fixed bound; what is left out is told."""
    home = tmp_path / "home"
    at = ("--home", str(home), "--port", "0")
    own = ("up", "--data", str(shop), "--unit", "person_id")
    refused(cli(*own, *at), "--table is missing", "--table orders or --table people or --table visits", code=2)
    ran = cli(*own, "--table", "visits", *at)
    assert ran.code == 1
    assert 'table "visits" has several rows of one unit' in ran.err
    assert "with --table: orders, people." in ran.err
    with Serving(*own, "--table", "people", *at, "--no-sample") as serving:
        told = serving.until("Ctrl-C")
        assert serving.stop().code == 0
    flat = " ".join(told.split())
    assert "left out: table shelves" in flat
    assert '"Person ID" is Person_ID, "where" is where_' in flat
    assert "each question chooses how much of one unit counts" in flat
    assert "GROUP BY member" in flat, "true and false make groups that are no free text"
    tables = load(home / "datasets" / "shop.yaml").tables
    assert tables["people"].contribution is None
    assert [tables[name].references for name in ("orders", "visits")] == [
        {"Person_ID": "people.person_id"},
        {"person_id": "people.person_id"},
    ]
    assert [tables[name].contribution for name in ("orders", "visits")] == ["auto", "auto"]


@pytest.mark.slow
def test_a_table_that_the_keys_decide_is_not_asked_for(tmp_path: Path) -> None:
    """PRIMARY KEY and FOREIGN KEY say whose rows are whose: `up` needs no --table, and takes over what they declare."""
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE patients (patient_id INTEGER PRIMARY KEY, born INTEGER NOT NULL, sex VARCHAR)")
        connection.execute(
            "CREATE TABLE consents (patient_id INTEGER PRIMARY KEY REFERENCES patients (patient_id), given BOOLEAN)"
        )
        connection.execute(
            "CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, patient_id INTEGER REFERENCES patients (patient_id))"
        )
        connection.execute(
            "CREATE TABLE bills (visit INTEGER REFERENCES visits (visit_id), "
            "patient_id INTEGER REFERENCES patients (patient_id), amount DOUBLE)"
        )
        connection.execute("CREATE TABLE tests (visit INTEGER REFERENCES visits (visit_id), result DOUBLE)")
        connection.execute("CREATE TABLE wards (ward INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO patients SELECT range, 1950 + range % 50, 'f' FROM range(60)")
        connection.execute("INSERT INTO consents SELECT range, true FROM range(60)")
        connection.execute("INSERT INTO visits SELECT range, range % 60 FROM range(300)")
        connection.execute("INSERT INTO bills SELECT range, range % 60, 1.5 FROM range(300)")
        connection.execute("INSERT INTO tests SELECT range % 300, 2.5 FROM range(600)")
    home = tmp_path / "home"
    arguments = ("--home", str(home), "--port", "0", "--no-sample")
    with Serving("up", "--data", str(path), "--unit", "patient_id", *arguments) as serving:
        told = " ".join(serving.until("Ctrl-C").split())
        assert serving.stop().code == 0
    assert "units: one row for each in table patients" in told
    assert "left out: table wards" in told
    file = load(home / "datasets" / "clinic.yaml")
    assert (file.unit.table, file.unit.key) == ("patients", "patient_id")
    tables = file.tables
    assert set(tables) == {"patients", "consents", "visits", "bills", "tests"}
    assert [name for name, table in tables.items() if table.contribution is None] == ["consents", "patients"]
    assert tables["tests"].references == {"visit": "visits.visit_id"}
    assert tables["bills"].unit_via == "patient_id"
    assert not tables["patients"].columns["born"].nullable
    assert tables["patients"].columns["sex"].nullable


@pytest.mark.slow
def test_rows_without_a_column_of_persons(tmp_path: Path) -> None:
    """`--each-row` says what it means, counts every row, and shows no number of a row to analysts."""
    data = tmp_path / "survey.csv"
    data.write_text("city,age\n" + "A,41\n" * 150 + "".join(f"B,{number}\n" for number in range(150)))
    arguments = ("up", "--home", str(tmp_path / "home"), "--port", "0", "--data", str(data), "--each-row")
    refused(cli(*arguments[:-1]), "--unit is missing", "--each-row", code=2)
    refused(cli(*arguments[:-1], "--unit", "row"), 'no column "row"', "--each-row", code=2)
    refused(cli(*arguments, "--unit", "age"), "--unit and --each-row exclude each other", code=2)
    refused(cli(*arguments, "--rows-per-unit", "3"), "--rows-per-unit and --each-row", code=2)
    refused(cli("up", "--each-row", *arguments[1:5]), "--each-row needs --data", code=2)
    with Serving(*arguments) as serving:
        told = serving.until("Ctrl-C")
        record = json.loads((tmp_path / "home" / "serving.lock").read_text())
        key = (tmp_path / "home" / "secrets" / "analyst.apikey").read_text().strip()
        body = httpx.get(
            f"{record['url']}/v1/datasets/survey",
            headers={"Authorization": f"Bearer {key}"},
            trust_env=False,
            timeout=30,
        ).json()
        counted = cli(
            "query", "SELECT COUNT(*) AS n FROM survey", "--home", str(tmp_path / "home"), "--epsilon", "1", "--json"
        )
        assert serving.stop().code == 0
    assert "each row counts as one person" in told
    assert "one row at a time" in told
    assert body["privacy_unit"] == {"table": "survey", "key": None}
    assert [column["name"] for column in body["tables"][0]["columns"]] == ["city", "age"], "in the order of the file"
    assert body["tables"][0]["contribution"]["rows_per_unit"] == 1
    assert abs(counted.json["rows"][0][0] - 300) < 50


def test_init_for_rows_as_units(people: Path) -> None:
    """The proposal says in its text what a unit is, and both ways at once are wrong usage."""
    ran = cli("init", str(people), "--each-row")
    assert "unit: {table: people, rows: true}" in ran.out
    assert "a person with several rows is several units" in ran.out
    refused(cli("init", str(people), "--each-row", "--unit", "person_id"), "exclude each other", code=2)


def test_check_finds_missing_names_before_anything_is_attached(people: Path, tmp_path: Path) -> None:
    """A column that is not in the data is found by its name alone, beside every other finding."""
    described = tmp_path / "people.yaml"
    assert cli("init", str(people), "--unit", "person_id", "-o", str(described)).code == 0
    text = described.read_text().replace("      age:\n", '      years:\n        source_name: "Age"\n')
    text = text.replace("      city:\n", "      town:\n").replace("      score:\n", "      SCORE:\n")
    described.write_text(text)
    found = cli("dataset", "check", str(described), "--json").json["findings"]
    assert [item["place"] for item in found if item["severity"] == "error"] == ["tables.people.columns.town"]
    assert "it has person_id, age, city, score" in " ".join(item["why"] for item in found)


@pytest.mark.slow
def test_a_key_that_repeats_says_what_to_write(people: Path, tmp_path: Path, empty_home: Path) -> None:
    """The refusal of `dataset add` has the lines to remove and to add; done so, the data is attached."""
    described = tmp_path / "people.yaml"
    assert cli("init", str(people), "--unit", "person_id", "-o", str(described)).code == 0
    people.write_text("person_id,age,city,score\n1,2,A,0.5\n1,3,B,0.5\n2,3,B,0.5\n")
    ran = cli("dataset", "add", str(described), "--home", str(empty_home))
    refused(ran, "remove this line from table people: key: person_id", "The declared key repeats")
    (line,) = [item.split("in its place: ")[1] for item in ran.err.splitlines() if "in its place: " in item]
    (key,) = [item for item in described.read_text().splitlines() if item.strip().startswith("key: ")]
    described.write_text(described.read_text().replace(key, f"    {line}"))
    assert cli("dataset", "add", str(described), "--home", str(empty_home)).code == 0


@pytest.mark.slow
def test_compressed_csv(tmp_path: Path, empty_home: Path) -> None:
    """A .csv.gz file is read as what is in it; a cut one is refused."""
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(b"id;age\n1;2\n2;3\n"))
    described, _ = attached(path, empty_home, "--unit", "id")
    assert list(load(described).tables["people"].columns) == ["id", "age"]
    whole = gzip.compress(b"id;age\n" + b"".join(f"{n};{n % 90}\n".encode() for n in range(90_000)))
    path.write_bytes(whole[: len(whole) // 2])
    refused(cli("init", str(path), "--unit", "id"), "could not use the data file")
    path.write_bytes(whole[:12])
    refused(cli("init", str(path), "--unit", "id"), "could not use the data file")


# Files that are not what they claim, or hardly


def _png() -> bytes:
    return b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


def _parquet(folder: Path) -> bytes:
    path = folder / "made.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY (SELECT range AS id FROM range(5000)) TO '{path}' (FORMAT parquet)")
    return path.read_bytes()


@pytest.mark.sparse(5)
@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("picture.csv", lambda _: _png(), "is not what its name says"),
        ("people.csv", _parquet, "is not what its name says"),
        ("cut.parquet", lambda folder: _parquet(folder)[:-300], "is not what its name says"),
        ("cut.duckdb", lambda _: b"\0" * 8 + b"DUCK" + b"\0" * 100, "could not use the data file"),
        ("nul.csv", lambda _: b"id,age\n1,\0\n", "is not what its name says"),
        ("zip.csv", lambda _: b"PK\x03\x04" + b"x" * 100, "is not CSV text"),
        ("empty.csv", lambda _: b"", "It is empty"),
        ("folder.csv", None, "It has no CSV, Parquet or DuckDB file"),
        ("headless.csv", lambda _: b"4711,Meier,1957-03-02\n4712,Huber,1961-01-30\n", "looks like a row of data"),
        ("ragged.csv", lambda _: b"id,age\n1,2,3,4\n5\n6,7\n", "rows of different length"),
    ],
)
def test_files_that_are_not_what_they_claim(
    tmp_path: Path, empty_home: Path, name: str, content: Callable[[Path], bytes] | None, words: str
) -> None:
    """One clear message for each, by `init` and by `up`; no value of the file is in it, and nothing is made."""
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content(tmp_path))
    refused(cli("init", str(path), "--unit", "id"), words)
    home = tmp_path / "never"
    refused(cli("up", "--data", str(path), "--unit", "id", "--home", str(home), "--port", "0"), words)
    assert not home.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b"id\n1\n2\n", ["id"]),
        (b"\xef\xbb\xbfid,age\n1,2\n2,3\n", ["id", "age"]),
        (b"id,age\r\n1,2\r\n2,3\r\n", ["id", "age"]),
        (b"id;age\n1;2\n2;3\n", ["id", "age"]),
        (b"id\tage\n1\t2\n2\t3\n", ["id", "age"]),
        (b'id,note\n1,"a\nb"\n2,"c ""d"", e"\n', ["id", "note"]),
        (b'id,"age, in years"\n1,2\n2,3\n', ["id", "age_in_years"]),
        (b"id,age\n1,2\n2,3", ["id", "age"]),
    ],
    ids=["one column", "byte order mark", "CRLF", "semicolons", "tabs", "line breaks", "quoted header", "no last line"],
)
def test_odd_but_sound_csv_is_attached(tmp_path: Path, empty_home: Path, content: bytes, columns: list[str]) -> None:
    """Each has two rows and its columns; nothing of it is lost."""
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    described, _ = attached(path, empty_home, "--unit", "id")
    assert list(load(described).tables["people"].columns) == columns
    (manifest,) = (empty_home / "snapshots" / "people").glob("*[0-9a-f].json")
    (table,) = json.loads(manifest.read_text())["tables"]
    assert (table["rows_read"], table["rows_stored"]) == (2, 2)


@pytest.mark.sparse(6)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"id,age\n", "has no rows"),
        (b"id,age,age\n1,2,3\n", "Several columns of the source"),
        (b"id,age\n1,old\n", "Values do not convert"),
        (b"id,age\n1,\n,2\n", "NULL in some rows"),
        (b"id,age\n1,2\n1,3\n", "key repeats"),
        (b"id,other\n1,2\n", "no column of that name"),
    ],
)
def test_data_that_contradicts_the_file_loses_nothing(
    tmp_path: Path, empty_home: Path, content: bytes, words: str
) -> None:
    """The refusal has the finding and what to do; no dataset is listed and no snapshot is left."""
    (tmp_path / "people.csv").write_bytes(content)
    described = tmp_path / "people.yaml"
    described.write_text(
        "dataset: people\nunit: {table: people, key: id}\ntables:\n  people:\n    source: {file: people.csv}\n"
        "    key: id\n    columns:\n      id: {type: integer}\n      age: {type: integer, bounds: [0, 110]}\n"
    )
    ran = cli("dataset", "add", str(described), "--home", str(empty_home))
    refused(ran, words, "What is served stays as it was")
    assert "old" not in ran.err
    assert cli("dataset", "list", "--json", "--home", str(empty_home)).json == []
    assert list((empty_home / "snapshots").rglob("*.duckdb")) == []


@pytest.mark.sparse(6)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bounds: [110, 0]", "are reversed"),
        ("bounds: [5, 5]", "are equal"),
        ("bounds: [0, .inf]", "cannot be Infinity"),
        ("bounds: [.nan, 1]", "cannot be NaN"),
        ("bounds: [0, 1e30]", "too large"),
        ("bounds: [0]", "2 or more entries"),
        ("bounds: [zero, 1]", "must be a number"),
        ("bounds: 110", "must be a list"),
        ("bound: [0, 110]", 'Did you mean "bounds"'),
        ("bounds: [0, 110], bounds: [0, 10]", "is given twice"),
        ("type: text", "is given twice"),
        ("source_name: ''", "must not be empty"),
    ],
)
def test_mistakes_in_a_column_are_one_finding_each(tmp_path: Path, line: str, words: str) -> None:
    """Bounds that are no bounds, unknown and repeated names: one error with its line and the way out."""
    path = tmp_path / "people.yaml"
    (tmp_path / "people.csv").write_text("id,age\n1,2\n")
    path.write_text(
        "dataset: people\nunit: {table: people, key: id}\ntables:\n  people:\n    source: {file: people.csv}\n"
        f"    key: id\n    columns:\n      id: {{type: integer}}\n      age: {{type: integer, {line}}}\n"
    )
    ran = cli("dataset", "check", str(path), "--json")
    assert ran.code == 1
    errors = [item for item in ran.json["findings"] if item["severity"] == "error"]
    assert len(errors) == 1, errors
    assert words in f"{errors[0]['what']} {errors[0]['why']} {errors[0]['instead']}"
    assert errors[0]["line"] == 9


# Paths


def test_paths_are_shown_whole(tmp_path: Path, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--home ../x` is the folder that the system means, also behind a link, and so is `--data ../x`."""
    from server.cli.options import Here, absolute

    (tmp_path / "deep" / "er").mkdir(parents=True)
    os.symlink(tmp_path / "deep" / "er", tmp_path / "link")
    monkeypatch.chdir(tmp_path / "link")
    assert absolute(Path("../x")) == tmp_path / "deep" / "x"
    monkeypatch.chdir(tmp_path / "deep")
    assert Here(Path("../home"), as_json=False).place().path == tmp_path / "home"
    assert Here(Path("home"), as_json=False).place().path == tmp_path / "deep" / "home"
    assert Here(Path("~/x"), as_json=False).place().path == Path.home() / "x"
    ran = cli("key", "list", "--home", "../nothing")
    assert ran.code == 1
    assert str(tmp_path / "nothing") in ran.err
    assert ".." not in ran.err
    proposed = cli("init", "../people.csv", "--unit", "person_id")
    assert f'file: "{people}"' in proposed.out
