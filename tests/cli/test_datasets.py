"""`noisegate init` and `noisegate dataset`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import cli, refused


def test_init_proposes_without_reading_values(people: Path) -> None:
    """Names and types are there, bounds are asked for, and no value of a row is."""
    ran = cli("init", str(people), "--unit", "person_id")
    assert ran.code == 0
    assert "unit: {table: people, key: person_id}" in ran.out
    assert "# bounds: [LOWEST, HIGHEST]" in ran.out
    people.write_text("person_id,age,city,score\n1,987654,Quagmire,0.5\n")
    assert "987654" not in cli("init", str(people), "--unit", "person_id").out
    assert "Quagmire" not in cli("init", str(people), "--unit", "person_id").out


def test_init_to_a_file_keeps_what_exists(people: Path, tmp_path: Path) -> None:
    """The file can be checked at once, names the data relative to itself, and is not replaced by accident."""
    output = tmp_path / "people.yaml"
    assert cli("init", str(people), "--unit", "person_id", "-o", str(output)).code == 0
    assert 'file: "people.csv"' in output.read_text()
    assert cli("dataset", "check", str(output)).code == 0
    output.write_text("mine\n")
    refused(cli("init", str(people), "-o", str(output)), "exists", "--force", code=2)
    assert output.read_text() == "mine\n"
    assert cli("init", str(people), "-o", str(output), "--force").code == 0


def test_init_suggests_the_near_column(people: Path) -> None:
    """A misspelt unit is wrong usage, with the column that was most likely meant."""
    refused(cli("init", str(people), "--unit", "prson_id"), 'Did you mean --unit "person_id"?', code=2)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nothing.csv", None, "could not find"),
        ("empty.csv", b"", "It is empty"),
        ("table.xlsx", b"PK\x03\x04", "suffix"),
        ("people.parquet", b"person_id,age\n1,2\n", "not what its name says"),
        ("people.duckdb", b"person_id,age\n1,2\n", "not what its name says"),
        ("people.csv", b"PAR1" + b"\0" * 40 + b"PAR1", "not what its name says"),
        ("people.parquet", b"PAR1" + b"\0" * 40 + b"PAR1", "could not use"),
    ],
)
def test_files_that_are_not_what_they_claim(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    """Each gets one message that says what is wrong with the file."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    refused(cli("init", str(path), "--unit", "person_id"), words)


@pytest.mark.slow
def test_init_of_a_folder(tmp_path: Path) -> None:
    """A folder is one table in parts, or a table for each file when their columns differ; an empty one is refused."""
    (tmp_path / "inner").mkdir()
    refused(cli("init", str(tmp_path)), "It has no CSV, Parquet or DuckDB file, only 1 folder.")
    (tmp_path / "inner").rmdir()
    refused(cli("init", str(tmp_path)), "It has no CSV, Parquet or DuckDB file.")
    for number in (1, 2):
        (tmp_path / f"part-{number}.csv").write_text(f"person_id,age\n{number},30\n")
    ran = cli("init", str(tmp_path), "--unit", "person_id", "--dataset", "people")
    assert ran.code == 0
    assert ran.out.count("source:") == 1
    assert cli("init", str(tmp_path / "part-*.csv"), "--unit", "person_id").out.count("part-*.csv") == 2
    (tmp_path / "visits.csv").write_text("person_id,cost\n1,5.5\n")
    (tmp_path / "part-2.csv").unlink()
    for name in ("2023", "2024", "_temporary", ".hidden"):
        (tmp_path / name).mkdir()
    ran = cli("init", str(tmp_path), "--unit", "person_id", "-o", str(tmp_path / "all.yaml"), "--json")
    assert f'left out: 2 folders in "{tmp_path}"' in ran.err
    made = ran.json
    assert 'file: "part-1.csv"' in made["text"]
    assert "references: {person_id: part_1.person_id}" in made["text"]


@pytest.mark.slow
def test_a_folder_in_parts_is_attached_and_served_again(empty_home: Path, tmp_path: Path) -> None:
    """What is registered is read by every server, without the data files: a folder has no suffix there."""
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in (1, 2):
        (parts / f"{number}.csv").write_text(f"person_id,age\n{number},30\n")
    path = tmp_path / "parts.yaml"
    assert cli("init", str(parts), "--unit", "person_id", "-o", str(path)).code == 0
    added = cli("dataset", "add", str(path), "--home", str(empty_home))
    assert added.code == 0
    assert "needs a budget" in added.out
    assert (
        cli("budget", "set", "--dataset", "parts", "--epsilon", "1", "--delta", "1e-6", "--home", str(empty_home)).code
        == 0
    )
    again = cli("dataset", "add", str(path), "--home", str(empty_home))  # reads what is registered first
    assert again.code == 0
    assert "needs a budget" not in again.out


def test_check_reports_every_finding_at_once(tmp_path: Path) -> None:
    """Three mistakes, three findings with their lines, exit code 1."""
    path = tmp_path / "bad.yaml"
    path.write_text(
        "dataset: bad\nunit: {table: nobody, key: id}\ntables:\n  people:\n    source: {file: missing.csv}\n"
        "    columns:\n      id: {type: integer}\n      age: {type: integer, bounds: [9, 1]}\n"
    )
    ran = cli("dataset", "check", str(path), "--json")
    assert ran.code == 1
    assert ran.json["ok"] is False
    errors = [item for item in ran.json["findings"] if item["severity"] == "error"]
    assert len(errors) >= 3
    assert all(item["what"] and item["why"] and item["instead"] for item in errors)
    text = cli("dataset", "check", str(path))
    assert text.code == 1
    assert text.out.count("error: line ") >= 3


def test_check_of_data_instead_of_yaml(people: Path, tmp_path: Path) -> None:
    """A data file, binary bytes and a missing file are findings, not failures of the program."""
    binary = tmp_path / "x.yaml"
    binary.write_bytes(bytes(range(128, 256)))
    for path in (people, binary, tmp_path / "missing.yaml"):
        ran = cli("dataset", "check", str(path), "--json")
        assert ran.code == 1
        assert len(ran.json["findings"]) == 1


def test_add_list_remove(home: Path) -> None:
    """An attached dataset is listed; removed, it is not, and unknown names are told."""
    listed = cli("dataset", "list", "--json", "--home", str(home)).json
    assert [(item["dataset"], item["tables"], item["policy_version"]) for item in listed] == [("people", ["people"], 1)]
    assert "people" in cli("dataset", "list", "--home", str(home)).out
    refused(cli("dataset", "remove", "peple", "--home", str(home)), 'no dataset "peple"', "people")
    assert cli("dataset", "remove", "people", "--home", str(home)).code == 0
    assert cli("dataset", "list", "--json", "--home", str(home)).json == []
    assert "No dataset" in cli("dataset", "list", "--home", str(home)).out


@pytest.mark.slow
def test_add_again_after_a_move_finds_the_version(home: Path, people: Path, tmp_path: Path) -> None:
    """A home that was moved accepts the same data again as the same version, and a changed file as the next one."""
    described = tmp_path / "people.yaml"
    assert cli("init", str(people), "--unit", "person_id", "-o", str(described)).code == 0
    first = cli("dataset", "add", str(described), "--home", str(home), "--json")
    assert first.code == 0, first.err
    moved = home.with_name("moved")
    home.rename(moved)
    again = cli("dataset", "add", str(described), "--home", str(moved), "--json")
    assert again.code == 0, again.err
    assert again.json == first.json
    described.write_text(described.read_text() + "  releases_shared: true\n")
    changed = cli("dataset", "add", str(described), "--home", str(moved), "--json").json
    assert changed["policy_version"] == first.json["policy_version"] + 1
    assert changed["data_version"] == first.json["data_version"]


@pytest.mark.slow
def test_add_refuses_what_the_data_contradicts(home: Path, people: Path, tmp_path: Path) -> None:
    """A declared key that repeats is told, with the file as the dataset file names it; what was served stays."""
    described = tmp_path / "people.yaml"
    assert cli("init", str(people), "--unit", "person_id", "-o", str(described)).code == 0
    people.write_text("person_id,age,city,score\n1,2,A,0.5\n1,3,B,0.5\n")
    before = cli("dataset", "list", "--json", "--home", str(home)).json
    refused(cli("dataset", "add", str(described), "--home", str(home)), "not attached", "(people.csv)", "repeats")
    assert cli("dataset", "list", "--json", "--home", str(home)).json == before


@pytest.mark.slow
def test_repeated_values_of_a_unique_column_are_never_attached(home: Path, tmp_path: Path) -> None:
    """`unique: true` is verified on every row: the refusal names the column and no value; NULLs do not repeat."""
    before = cli("dataset", "list", "--json", "--home", str(home)).json
    data, described = tmp_path / "members.csv", tmp_path / "members.yaml"
    data.write_text("person_id,email,phone\n1,canary@example.org,\n2,canary@example.org,\n3,c@example.org,7\n")
    described.write_text(
        "version: 2\ndataset: members\nunit: {table: members, key: person_id}\ntables:\n  members:\n"
        "    source: {file: members.csv}\n    key: person_id\n    columns:\n      person_id: {type: integer}\n"
        "      email: {type: text, unique: true}\n      phone: {type: integer, unique: true, bounds: [0, 10]}\n"
    )
    ran = cli("dataset", "add", str(described), "--home", str(home))
    refused(ran, "not attached: 1 finding", "tables.members.email", "some values repeat", "Remove unique: true")
    assert "canary" not in ran.err
    assert "phone" not in ran.err
    assert cli("dataset", "list", "--json", "--home", str(home)).json == before
    data.write_text(data.read_text().replace("2,canary", "2,other"))
    assert cli("dataset", "add", str(described), "--home", str(home)).code == 0


@pytest.mark.slow
def test_a_folder_whose_name_has_a_point_is_not_refused(empty_home: Path, tmp_path: Path) -> None:
    """`dataset check` accepted a folder such as data.v2, and `dataset add` refused it: both take it, and restarts."""
    folder = tmp_path / "data.v2"
    folder.mkdir()
    for part in (1, 2):
        (folder / f"part{part}.csv").write_text(f"person_id,age\n{part},3{part}\n")
    described = tmp_path / "people.yaml"
    described.write_text(
        "version: 2\ndataset: people\nunit: {table: people, key: person_id}\ntables:\n  people:\n"
        "    source: {file: data.v2}\n    key: person_id\n    columns:\n      person_id: {type: integer}\n"
        "      age: {type: integer, bounds: [0, 110]}\n"
    )
    assert cli("dataset", "check", str(described)).code == 0
    added = cli("dataset", "add", str(described), "--home", str(empty_home))
    assert added.code == 0, added.err
    # Another start reads what was stored; by then the folder is somewhere else.
    folder.rename(tmp_path / "archive")
    checks = cli("doctor", "--home", str(empty_home), "--json").json["checks"]
    assert [item["outcome"] for item in checks if item["check"] == "datasets"] == ["ok"]


def test_add_shows_every_error_of_the_file(empty_home: Path, tmp_path: Path) -> None:
    """A file with errors is refused with all of them; nothing is attached."""
    path = tmp_path / "bad.yaml"
    path.write_text("dataset: 'not a name'\nunit: {}\ntables: {}\n")
    ran = cli("dataset", "add", str(path), "--home", str(empty_home))
    assert ran.code == 1
    assert ran.err.count("error: line ") >= 3
    assert "could not attach" in ran.err
    refused(cli("dataset", "add", str(tmp_path / "none.yaml"), "--home", str(empty_home)), "could not find")


def _old_file(folder: Path, people: Path) -> Path:
    """A dataset file of version 1, with a comment."""
    path = folder / "old.yaml"
    assert cli("init", str(people), "--unit", "person_id", "-o", str(path)).code == 0
    text = path.read_text()
    assert "\nversion: 2\n" in text
    path.write_text(text.replace("\nversion: 2\n", "\n# mine\n"))
    return path


@pytest.mark.slow
def test_upgrade_rewrites_a_file_once(people: Path, tmp_path: Path) -> None:
    """--check tells and changes nothing; the upgrade keeps the rest of the text; a second one changes nothing."""
    path = _old_file(tmp_path, people)
    path.chmod(0o640)
    old = path.read_text()
    checked = cli("dataset", "upgrade", str(path), "--check")
    assert checked.code == 1
    assert "older version" in checked.out
    assert path.read_text() == old
    done = cli("dataset", "upgrade", str(path), "--json").json
    assert (done["version"], done["changed"], done["file"]) == (2, True, str(path))
    assert path.read_text() == old.replace("# mine\n", "# mine\nversion: 2\n")
    assert path.stat().st_mode & 0o777 == 0o640
    again = cli("dataset", "upgrade", str(path), "--check")
    assert (again.code, "of version 2 already" in again.out) == (0, True)
    assert cli("dataset", "upgrade", str(path), "--json").json["changed"] is False
    findings = cli("dataset", "check", str(path), "--json").json["findings"]
    assert all(item["place"] != "" for item in findings)


def test_upgrade_of_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    """A file with errors stays as it is, and its errors are told."""
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"dataset: bad\nunit: {table: nobody, key: id}\n")
    refused(cli("dataset", "upgrade", str(path)), '"tables" is missing', "has errors")
    assert path.read_bytes() == b"dataset: bad\nunit: {table: nobody, key: id}\n"
    path.write_bytes(b"\xff\xfe")
    refused(cli("dataset", "upgrade", str(path)), "not UTF-8")
    refused(cli("dataset", "upgrade", str(tmp_path / "none.yaml")), "none.yaml")


@pytest.mark.slow
def test_a_profile_advises_checks_and_proposals(home: Path, people: Path, tmp_path: Path) -> None:
    """Made by the command, shown by it, and a comment of what is proposed for the same dataset afterwards."""
    rooted = cli("budget", "set", "--dataset", "people", "--epsilon", "2000", "--delta", "0.00001", "--home", str(home))
    assert rooted.code == 0, rooted.err
    made = cli("dataset", "profile", "people", "--epsilon", "1", "--home", str(home))
    assert made.code == 0, made.err
    assert "people: units" in made.out
    refused(cli("dataset", "profile", "people", "--epsilon", "1", "--home", str(home)), "has a profile")
    proposed = cli("init", str(people), "--unit", "person_id", "--home", str(home))
    assert "# By the profile of data version" in proposed.out
    assert "people.age" in proposed.out
    described = tmp_path / "people.yaml"
    described.write_text(proposed.out)
    checked = cli("dataset", "check", str(described), "--home", str(home), "--json")
    assert checked.code == 0, checked.err
    assert any("people.age" in line for line in checked.json["profile"])
