"""True sums do not follow from the order of rows, from threads or from seeds: whatever shape a statement has."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engines.private import PrivateEngine
from privacy.exact import Exact
from server.services import Services
from tests.journey.clinic import answer_to, attach, clinic_in, open_account, question

TEXTS = (
    "SELECT COUNT(*), SUM(cost), AVG(cost) FROM visits",
    "SELECT VARIANCE(cost) FROM visits",
    "SELECT MEDIAN(cost) FROM visits",
    "SELECT sex, MEDIAN(cost) FROM visits JOIN people USING (person_id) GROUP BY sex",
    "SELECT ward, MEDIAN(cost) FROM visits GROUP BY ward",
    "SELECT ward, COUNT(*), SUM(cost) FROM visits GROUP BY ward",
    "SELECT SUM(cost) FROM visits JOIN people USING (person_id) WHERE age > 60",
    "SELECT AVG(m) FROM (SELECT person_id, MAX(cost) AS m FROM visits GROUP BY person_id)",
    "SELECT MODE(w) FROM (SELECT person_id, MODE(cost > 500) AS w FROM visits GROUP BY person_id)",
    "SELECT COUNT(DISTINCT ward) FROM visits",
)
"""Of kept tables of units, of medians of several rows with light and heavy units, of chosen groups and kept rows."""


def plain(exact: Exact) -> list[Any]:
    """True keys and sums, in an order of their own."""
    keys, sums, rows = exact.reveal()
    columns = [*keys.values(), *(np.asarray(sums[name]).tolist() for name in sorted(sums))]
    return sorted(str([column[row] for column in columns]) for row in range(rows))


def measured(services: Services, patch: pytest.MonkeyPatch) -> list[list[Any]]:
    """What the engine finds for each text, the same for two runs of each statement."""
    found: list[list[Any]] = []
    genuine: Callable[..., Exact] = PrivateEngine.run

    def run(self: PrivateEngine, *given: Any, **named: Any) -> Exact:
        first, again = (genuine(self, *given, **named) for _ in range(2))
        assert plain(first) == plain(again)
        found.append(plain(first))
        return first

    with patch.context() as inside:
        inside.setattr(PrivateEngine, "run", run)
        for text in TEXTS:
            answer_to(services, question(text, "ann", epsilon="1"))
    return found


@pytest.mark.nightly
def test_the_order_of_rows_changes_no_true_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows the same sums of a file whose rows stand in another order, where rows beyond what is kept are left out of
    many units, and other ones of a file without one row."""
    with clinic_in(tmp_path) as (services, path):
        text = path.read_text().replace("key: visit_id\n", "key: visit_id\n    rows_stored_per_unit: 10\n", 1)
        path.write_text(text.replace("rows_per_unit: 20, groups_per_unit: 2", "rows_per_unit: 6, groups_per_unit: 2"))
        source = path.parent / "visits.csv"
        head, *rows = source.read_text().splitlines()
        rows += [f"{10_000 + visit},{visit % 9},{'abcd'[visit % 4]},{visit}" for visit in range(300)]
        found: list[list[list[Any]]] = []
        for listed in (rows, random.Random(5).sample(rows, len(rows)), rows[:5_000] + rows[5_001:]):
            source.write_text("\n".join([head, *listed]) + "\n")
            attach(services, path)
            if not found:
                open_account(services.ledger, "ann")
            found.append(measured(services, monkeypatch))
        assert found[0] == found[1]
        assert found[0] != found[2]
