"""`noisegate dataset preview`: questions on invented rows; no row of people is read, and nothing is charged."""

from __future__ import annotations

import datetime
import json
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock

import pytest

from accountant.account import Limit
from server.administration.preview import Bench, Tried, _compared, questions_of
from tests.cli.support import cli

QUESTIONS = """\
-- how many there are
SELECT COUNT(*) AS n
FROM people;

SELECT city, COUNT(*) AS n FROM people GROUP BY city

SELECT age FROM people
"""


@pytest.mark.slow
def test_questions_are_tried(home: Path, tmp_path: Path) -> None:
    """Shows errors that fall with the price, a refusal in words, and a home that is as it was before."""
    file = tmp_path / "questions.sql"
    file.write_text(QUESTIONS)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file() and "snapshots" in path.parts}
    audit = cli("audit", "--home", str(home), "--json").out
    options = ("--questions", str(file), "--epsilons", "0.1,0.9", "--runs", "4", "--units", "600", "--home", str(home))
    done = cli("dataset", "preview", "people", *options, "--json")
    assert done.code == 0, done
    body = json.loads(done.out)
    assert body["rows"] == {"people": 600}
    assert body["assumed"] == ["people.age", "people.city", "people.score"]
    cheap, exact, _, cities, *rest = body["questions"]
    assert (cheap["epsilon"], cheap["columns"][0]["value"]) == ("0.1", 600)
    assert 0 <= exact["columns"][0]["error"] < 40 < cheap["columns"][0]["stated"] + 30
    assert exact["columns"][0]["stated"] < cheap["columns"][0]["stated"] / 5
    assert cities["shown"] is not None
    assert 0 < cities["shown"] <= 1
    assert all("rows about people" in one["refused"] and one["columns"] == [] for one in rest)
    assert {path: path.read_bytes() for path in before} == before
    assert cli("audit", "--home", str(home), "--json").out == audit


def test_errors_are_those_of_rows_with_the_same_keys() -> None:
    """Shows the mean square over runs, rows that no answer showed, and a column without numbers."""
    columns = [{"name": "k", "kind": "key"}, {"name": "n", "kind": "released"}]
    answers: list[dict[str, object]] = [
        {"columns": columns, "rows": [["b", 13], ["a", 10]], "standard_errors": [[None, 2.0], [None, 2.0]]},
        {"columns": columns, "rows": [["a", 6]], "standard_errors": [[None, 2.0]]},
    ]
    tried = _compared("q", 1, answers, [("a", 10), ("b", 10), ("c", 10)])  # type: ignore[arg-type]
    (one,) = tried.columns
    assert (one.value, one.stated, tried.shown) == (10, 2.0, 0.5)
    assert one.error == pytest.approx(((9 + 0 + 16) / 3) ** 0.5)
    assert one.relative == one.error / 10
    assert _compared("q", 1, answers, None) == Tried(  # type: ignore[arg-type]
        "q",
        1,  # type: ignore[arg-type]
        "its answer cannot be compared with a number",
    )


def test_accounts_are_in_the_unit_space_of_the_dataset() -> None:
    """A dataset that shares its root with others is tried as well: elsewhere its accounts pay for nothing."""
    ledger, dataset = Mock(), Mock(space="citizens")
    bench = Bench(dataset, Mock(), Mock(), ledger, Mock(), Limit(Fraction(1), Fraction(1, 10**6)))
    assert bench._principal() == "preview0"
    assert [call.kwargs["space"] for call in ledger.create_account.call_args_list] == ["citizens", "citizens"]


def test_questions_of_a_file() -> None:
    """Shows what separates them, and what is left out."""
    assert questions_of(QUESTIONS)[0] == "SELECT COUNT(*) AS n\nFROM people"
    assert len(questions_of(QUESTIONS)) == 3
    assert questions_of("\n\n-- nothing\n") == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody",), 'there is no dataset "nobody"'),
        (("people", "--epsilons", ""), "--epsilons is not accepted"),
        (("people", "--synthetic", "s_1"), "there is no synthetic table"),
        (("people", "--runs", "0"), "--runs"),
    ],
)
def test_what_cannot_be_meant(home: Path, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """Shows a reason for each."""
    file = tmp_path / "questions.sql"
    file.write_text(QUESTIONS)
    done = cli("dataset", "preview", *arguments, "--questions", str(file), "--home", str(home))
    assert done.code != 0
    assert words in done.out + done.err
    file.write_text("-- nothing\n")
    done = cli("dataset", "preview", "people", "--questions", str(file), "--home", str(home))
    assert "has 0 questions" in done.err


def test_intervals_moments_and_modes_are_judged() -> None:
    """Shows seconds, days and the part that is right; a mode is no key of its row, wherever it stands in the list."""
    sql = "WITH v AS (SELECT a, b FROM t) SELECT MODE(city), k, AVG(b - a) AS stay, MAX(day) FROM v GROUP BY k"
    columns = [{"name": str(place), "kind": kind} for place, kind in enumerate(("key", "key", "derived", "derived"))]
    rows = [["Bonn", "a", "1 day 00:00:10", "2024-01-03T12:00:00"], ["Ulm", "b", "-00:00:20.5", "2024-01-02"]]
    none = [[None] * 4] * 2
    answers: list[dict[str, object]] = [{"columns": columns, "rows": rows, "standard_errors": none}]
    day = datetime.date(2024, 1, 2)
    truth = [("Bonn", "a", "1 day", day), ("Bonn", "b", "00:00:00", day)]
    mode, stay, moment = _compared(sql, 1, answers, truth).columns  # type: ignore[arg-type]
    assert (mode.right, mode.error, mode.value) == (0.5, None, None)
    assert (stay.unit, stay.error) == ("seconds", pytest.approx(((10**2 + 20.5**2) / 2) ** 0.5))
    assert (moment.unit, moment.error) == ("days", pytest.approx((1.5**2 / 2) ** 0.5))
    only = [{"columns": columns[:1], "rows": [["Bonn"]], "standard_errors": [[None]]}]
    assert _compared("SELECT k FROM t", 1, only, [("Bonn",), ("Ulm",)]).shown == 0.5  # type: ignore[arg-type]
    assert _compared("SELECT k FROM t", 1, only, [("Bonn",)]).refused is None  # type: ignore[arg-type]
