"""The trace of a query: every step before rows, with the figures that the steps themselves give."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.cli.trace import main
from server.datasets.check import load_text
from server.datasets.convert import to_dataset
from server.demo import DATASET_FILE
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower

QUERY = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM patients WHERE income > 10 GROUP BY sex ORDER BY n"


def test_every_step_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The plan, its bounds, the very statement that the engine runs, the noise and the price, in this order."""
    assert main([QUERY, "--epsilon", "0.5"]) == 0
    shown = capsys.readouterr().out
    dataset = to_dataset(load_text(DATASET_FILE), policy_version=1, data_version="none", public_values=None)
    (core,) = bound(lift(QUERY, dataset, {}))
    parts = (
        "where income > 10", "key k0 = sex", "AVG(age)", "shell: SELECT", "2 public ones", lower(core).sql,
        "tick 4.0 ms", "gaussian noise", "AVG(age): depends on the answer", "price: epsilon",
    )  # fmt: skip
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)
    assert "COUNT(*): ±" in shown


def test_a_pure_account_and_a_file_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The account decides the family of noise; the dataset is any file."""
    path = tmp_path / "mine.yaml"
    path.write_text(DATASET_FILE.replace("dataset: demo", "dataset: mine"))
    assert main(["SELECT COUNT(*) FROM visits", "--file", str(path), "--delta", "0"]) == 0
    shown = capsys.readouterr().out
    assert "laplace noise" in shown
    assert "c0.s0: laplace" in shown
    assert "scaled to norms of: rows (l1)" in shown


def test_both_stages_of_a_chosen_norm_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The statement of the histogram before that of the sums, its sixteenth of the price, and widths by the norm."""
    assert main(["SELECT department, COUNT(*) FROM visits GROUP BY department"]) == 0
    shown = capsys.readouterr().out
    parts = (
        "scaled to norms of: rows (l2)", "statement of c0.norms", "statement of c0,",
        "c0.norms.n0: gaussian, share 0.0625", "for each unit of the norm",
    )  # fmt: skip
    places = [shown.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize(("sql", "word"), [("SELECT COUNT(*) FROM nobody", "nobody"), ("SELECT SUM(", "parse_error")])
def test_a_refusal_says_what_a_user_would_read(sql: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and the finding on standard error."""
    assert main([sql]) == 1
    assert word in capsys.readouterr().err


def test_columns_whose_bounds_the_question_chooses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A column that nobody declared: the histogram that chooses its bounds, its share, and widths at nominal ones."""
    path = tmp_path / "mine.yaml"
    path.write_text(
        "version: 2\ndataset: mine\nunit: {table: people, key: id}\ntables:\n  people:\n"
        "    source: {file: people.csv}\n    key: id\n    columns:\n"
        "      id: {type: integer, nullable: false}\n      age: {type: integer}\n"
    )
    assert main(["SELECT AVG(age), SUM(age) FROM people", "--file", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "chooses the bounds of people.age, nominal here" in shown
    assert "share 0.25" in shown
    assert "at nominal bounds" in shown
    assert "price: epsilon" in shown
