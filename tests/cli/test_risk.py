"""`noisegate dataset risk`: true counts for the owner, on the command line alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import cli


def test_a_report(home: Path) -> None:
    """Sixty people whose ages and cities tell nearly everybody apart; coarser columns are proposed, with their SQL."""
    done = cli("dataset", "risk", "people", "--columns", "Age,city", "--k", "10", "--home", str(home))
    assert done.code == 0
    assert "True counts, without noise" in done.out
    assert "k: 1. Found for certain: 100.0%" in done.out
    assert "Classes of at least 10" in done.out
    found = cli("dataset", "risk", "people", "--columns", "age,city", "--k", "10", "--home", str(home), "--json")
    body = json.loads(found.out)
    assert body["classes"]["units"] == 60
    assert body["generalised"]["classes"]["k"] >= 10
    assert body["differencing"]["noisy"] < 0.6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody", "--columns", "age"), 'there is no dataset "nobody"'),
        (("people", "--columns", "person_id"), '"person_id" is not among them'),
        (("people", "--columns", ""), "name 1 to 16 of them"),
        (("people", "--columns", "age", "--table", "visits"), "--table names no table of people"),
        (("people", "--columns", "age", "--k", "1"), "--k"),
    ],
)
def test_what_cannot_be_meant(home: Path, arguments: tuple[str, ...], words: str) -> None:
    """Shows a reason for each, and nothing of any row."""
    done = cli("dataset", "risk", *arguments, "--home", str(home))
    assert done.code != 0
    assert words in done.out + done.err


def test_the_ledger_is_untouched(home: Path) -> None:
    """The report is no release: nothing is charged, and nothing is stored."""
    before = cli("audit", "--home", str(home), "--json").out
    assert cli("dataset", "risk", "people", "--columns", "age", "--home", str(home)).code == 0
    assert cli("audit", "--home", str(home), "--json").out == before
