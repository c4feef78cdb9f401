"""The first chart that anybody tries on the demo: hardly cut, and not in silence."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from server.demo import write_demo
from tests.journey.clinic import answer_to, attach, open_account, question, services_of

CHART = "SELECT DATE_TRUNC('month', visit_date) AS month, COUNT(*) AS n FROM visits GROUP BY month ORDER BY month"


@pytest.mark.slow
def test_a_chart_of_visits_per_month_is_not_cut_in_silence(tmp_path: Path) -> None:
    """Beyond its noise each of the 36 months lacks a few percent at most, and the answer says that units were cut.

    With bounds of six groups each month lacked most of its visits. The norm that a question chooses cuts one or two
    percent of the whole, so some true numbers still lie outside intervals of the noise alone.
    """
    demo = write_demo(tmp_path / "demo")
    with demo.dataset_file.with_name("visits.csv").open(newline="") as file:
        true = Counter(row["visit_date"][:7] for row in csv.DictReader(file))
    with services_of(tmp_path) as services:
        attach(services, demo.dataset_file)
        open_account(services.ledger, "chart", epsilon="10", dataset="demo")
        answer = answer_to(services, question(CHART, "chart", dataset="demo", epsilon="1"))
    assert [str(row[0])[:7] for row in answer["rows"]] == sorted(true)
    assert len(true) == 36
    for (month, n), (_, low), (_, high) in zip(answer["rows"], answer["lows"], answer["highs"], strict=True):
        truth = true[str(month)[:7]]
        # Five standard deviations of the noise, in 36 months: once in fifty thousand runs.
        assert abs(n - truth) < 0.03 * truth + 2.55 * (high - low) / 2, month
        assert high - low < 0.1 * truth, month
    (cut,) = answer["provenance"]["cut"]
    assert "scaled down" in cut
