"""The figures of docs/accounting.md are computed, not remembered."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accountant.filter import Limit
from accountant.simulation import WAYS, Kind, Repeated, simulate
from privacy.own import own_figure
from server import pricing
from server.cli.answers import own_words, part_words
from server.floor import ROOT_COUNTED, RUNS
from server.pricing import Wish
from tests.server.test_prices import DATASET, account, ask

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "accounting.md").read_text()
ROWS = re.findall(
    r"^\| \((\d+), ([0-9.]+)\) \| `(\w+)` ([0-9.]+) \| (\w+) \| (.*?) % \| (.*?) \| (\d+) \|$", PAGE, re.M
)


def test_the_page_has_both_accounts_and_a_pure_one() -> None:
    """Two accounts side by side, in both ways to spend, and pure accounts."""
    assert {(row[0], row[1], row[2]) for row in ROWS} == {
        ("1", "0.000001", "epsilon"),
        ("10", "0.000001", "epsilon"),
        ("1", "0.000001", "own_epsilon"),
        ("10", "0.000001", "own_epsilon"),
        ("1", "0", "epsilon"),
        ("10", "0", "epsilon"),
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[:4]))
def test_the_table_of_accounts_is_what_the_server_says(row: Any) -> None:
    """Noise, part of the account, own figure (rounded up) and half width of each row."""
    epsilon, delta, way, amount, noise, part, own, width = row
    leaf = account(epsilon, delta)
    priced = ask(Wish(**{way: Fraction(amount)}), (leaf,))
    figure = own_figure(priced.calibration.events(), **pricing.own_deltas(leaf, DATASET))
    widths = priced.calibration.predicted_half_widths("core", Fraction(95, 100))
    assert priced.family == noise
    assert f"{float(priced.cost / leaf.limit.epsilon) * 100:.3g}" == part
    assert f"{math.ceil(round(float(figure.epsilon) * 1000, 6)) / 1000:g}" == own
    assert figure.delta == Fraction(delta)
    assert widths["n"] == float(width)
    # One promise is one promise: the same noise on both approximate accounts, and both ways the same on pure ones.
    assert way == "epsilon" or width == "71"
    assert delta != "0" or own == amount


def test_the_lines_of_the_command_are_those_of_the_page() -> None:
    """The first example is what the command line prints for the second row."""
    leaf = account(10, "1e-6")
    priced = ask(Wish(epsilon=Fraction(1, 10)), (leaf,))
    figure = own_figure(priced.calibration.events(), **pricing.own_deltas(leaf, DATASET))
    accounting = {"of": {"epsilon": "10", "delta": "0.000001"}}
    own = {"epsilon": f"{float(figure.epsilon):.9f}", "delta": "0.000001"}
    assert f"Price: {part_words('0.1', accounting)}." in PAGE
    (said,) = own_words(own)
    assert said in PAGE.splitlines()


def test_own_figures_that_are_added_up_say_far_more_than_the_events() -> None:
    """A hundred answers by their events are within the account; by the sum of their own figures they would not be."""
    leaf = account(10, "1e-6")
    events = ask(Wish(epsilon=Fraction(1, 10)), (leaf,)).calibration.events()
    one = own_figure(events, **pricing.own_deltas(leaf, DATASET))
    together = own_figure(events * 100, **pricing.own_deltas(leaf, DATASET))
    assert together.epsilon < leaf.limit.epsilon < 20 < one.epsilon * 100
    assert "(75.8, 0.0001)" in PAGE
    assert round(float(one.epsilon * 100)) == 76


def test_the_page_names_the_floor() -> None:
    """The number of fresh runs and the greatest root that counts."""
    assert f"about {RUNS:,} such answers" in PAGE
    assert f"(a root above {ROOT_COUNTED} counts as {ROOT_COUNTED})" in PAGE


def test_the_table_of_ways_is_what_the_simulation_says() -> None:
    """Every way of adding up has its line, with its standing and the number of questions of three kinds."""
    questions = (
        Repeated(Kind.LAPLACE, Fraction(1, 100)),
        Repeated.with_deviation(Kind.GAUSSIAN, Fraction(math.sqrt(2)) * 100),
        Repeated(Kind.SELECTION, Fraction(1, 100)),
    )
    limit = Limit(Fraction(1), Fraction(1, 10**6))
    columns = [{found.way: found.questions for found in simulate(question, limit, ())} for question in questions]
    expected = [
        (way.name, way.standing.value, *(f"{column[way]:,}" if way in column else "" for column in columns))
        for way in WAYS
    ]
    assert re.findall(r"^\| `(\w+)` \| (\w+) \| ([\d,]*) \| ([\d,]*) \| ([\d,]*) \|$", PAGE, re.M) == expected
