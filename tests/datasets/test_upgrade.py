"""Versions of dataset files: older ones are read, and rewritten with the same meaning."""

from __future__ import annotations

from typing import Any

import pytest

from server.datasets import check_text, load_text, severity, upgrade
from server.datasets.editing import Editing, written_out
from server.datasets.reading import read
from tests.datasets.example import EXAMPLE

OLD = EXAMPLE.replace("version: 2\n", "")
COMMENTED = (
    "# the head\n\n" + OLD.replace("    key: patient_id\n", "    key: patient_id   # one row each\n") + "# the end\n"
)


def values(text: str) -> Any:
    """The values of a text that is read without a finding."""
    document = read(text.encode())
    assert not document.findings
    return document.data


def test_a_file_without_version_is_read_and_says_so() -> None:
    """Shows that a file of version 1 has one warning, which names the command, and no error."""
    (found,) = check_text(OLD)
    assert (severity(found), found.what) == ("warning", "the file is of version 1, and the current version is 2")
    assert "dataset upgrade" in found.instead[0]
    assert [problem.field for problem in check_text("version: 1\n" + OLD)] == ["version"]
    assert load_text(OLD).version == 1
    assert check_text(EXAMPLE) == []


def test_a_newer_version_is_refused() -> None:
    """Shows that a file of an unknown version is not read as if it were known."""
    (found,) = check_text(EXAMPLE.replace("version: 2", "version: 3"))
    assert (severity(found), found.field) == ("error", "version")
    assert "versions 1 to 2" in found.why


def test_upgrade_keeps_comments_and_order() -> None:
    """Shows that only lines are added to a file of version 1, and that what it declares stays."""
    result = upgrade(COMMENTED)
    assert result.kept
    assert result.changes
    assert result.text.startswith("# the head\n\nversion: 2\ndataset: clinic\n")
    assert result.text.endswith("# the end\n")
    assert "key: patient_id   # one row each" in result.text
    assert load_text(result.text).version == 2
    assert check_text(result.text) == []


def test_upgrade_twice_changes_nothing() -> None:
    """Shows that the upgrade of an upgraded file is that file."""
    once = upgrade(COMMENTED)
    assert upgrade(once.text) == type(once)(once.text, kept=True, changes=())
    assert upgrade("version: 1\n" + OLD).text == upgrade(OLD).text.replace("\nversion: 2", "")


def test_upgrade_of_flow_style() -> None:
    """Shows that a file on one line, and JSON, stay what they are."""
    flow = '{"dataset": "d", "unit": {"table": "t", "rows": true}, "tables": {"t": {"source": {"file": "t.csv"}, ' + (
        '"columns": {"a": {"type": "integer"}}}}}'
    )
    result = upgrade(flow)
    assert result.kept
    assert result.text == '{"version": 2, ' + flow[1:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n  b: 1  # 1\n  c: [1,\n  2] # 2\n# e\n", "a:\n  b: 1  # 1\n  c: [1,\n  2] # 2\n  new: null\n# e\n"),
        ("a: {b: 1, c: [1, 2]}  # x\n", "a: {b: 1, c: [1, 2], new: null}  # x\n"),
        ("a:\n  b:\n    c: 1\nd: 2\n", "a:\n  b:\n    c: 1\n  new: null\nd: 2\n"),
        ("a:\n  b:\n  - 1\n  - 2", "a:\n  b:\n  - 1\n  - 2\n  new: null"),
    ],
)  # fmt: skip
def test_an_entry_is_added_on_its_own_line(text: str, expected: str) -> None:
    """Shows that a new entry follows the last one, and comments keep their lines."""
    editing = Editing(text)
    editing.add_last(("a",), "new", None)
    assert editing.text() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k: [a, b]   # x\n", "k: {values: [a, b], other: null}   # x\n"),
        ("k:\n  - a # x\n  - b\n", "k:\n  other: null\n  values:\n  - a # x\n  - b\n"),
        ("k:\n- a\n- b\n", None),
    ],
)
def test_a_list_gets_a_name(text: str, expected: str | None) -> None:
    """Shows a list that becomes a mapping, and None for a style in which the text cannot be kept."""
    editing = Editing(text)
    editing.wrap_list(("k",), "values", other=None)
    assert editing.text() == expected
    assert editing.data == {"k": {"values": ["a", "b"], "other": None}}


def test_a_value_is_replaced() -> None:
    """Shows that a scalar is replaced where it stands, and that a block is not."""
    editing = Editing("a: true   # x\nb: 'y'\n")
    editing.replace(("a",), "free")
    assert editing.text() == "a: \"free\"   # x\nb: 'y'\n"
    block = Editing("a:\n  - 1\n")
    block.replace(("a",), 1)
    assert block.text() is None


def test_what_is_written_out_reads_as_the_same_values() -> None:
    """Shows the text that is written where the old one cannot be kept."""
    for text in (EXAMPLE, 'a: {b: "x: y", c: 1.50, "d e": [null, true, "no"], f: {}}\n'):
        assert values(written_out(values(text))) == values(text)


@pytest.mark.parametrize(("old", "new"), [("true", "free"), ("false", "no"), (None, "no")])
def test_sharing_of_releases_gets_its_name(old: str | None, new: str) -> None:
    """Shows that `true` is written as `free`, with a sentence that says what it means, and that the rest stays `no`."""
    text = OLD if old is None else OLD.replace("policy: {", f"policy: {{releases_shared: {old}, ")
    assert load_text(text).policy.releases_shared == new
    result = upgrade(text)
    assert load_text(result.text).policy.releases_shared == new
    said = [sentence for sentence in result.changes if "releases_shared" in sentence]
    assert bool(said) is (old == "true")
    assert all("does not bound what they read" in sentence for sentence in said)
