"""The estimates of a collector, as a public table of a dataset: asked in SQL, for free."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechanisms.randomness import SystemBits
from server.administration.collectors import Collectors, OpenCollector, Report, encoder_for
from server.app import create_app
from server.services import Services
from tests.journey.clinic import answer_to, attach, open_account, question
from tests.server.fakes import Api

DATASET = """\
version: 2
dataset: habits
unit: {table: people, key: person_id}
tables:
  people:
    source: {file: folk.csv}
    key: person_id
    columns:
      person_id: {type: integer, nullable: false}
      smokes: {type: text, keys: {table: smoking, column: value}}
  smoking:
    source: {file: smoking.csv}
    public: true
    key: value
    columns:
      value: {type: text, nullable: false}
      share: {type: number}
      standard_error: {type: number}
policy: {epsilon_default: "0.1", epsilon_max: "100", delta_per_query: "1e-8"}
"""


def test_shares_are_a_public_table(services: Services, tmp_path: Path) -> None:
    """Collected, closed, saved as CSV, attached, and joined to a released count: the shares cost nothing."""
    acts = Collectors(services.ledger, services.registry)
    wanted = OpenCollector(question="Do you smoke?", domain=("yes", "no"), epsilon=Fraction(2), missing=False)
    collector = acts.open(wanted, actor="admin")
    values = np.repeat(np.array([0, 1]), [100, 300])
    reports = encoder_for(collector).encode(values, SystemBits())
    tokens = acts.make_tokens(collector.id, values.size, actor="admin")
    numbers = [(one,) if isinstance(one, int) else one for one in reports]
    acts.accept(collector.id, [Report(*pair) for pair in zip(tokens, numbers, strict=True)])
    acts.close(collector.id, actor="admin")
    services.registry.create_principal("collecting", "admin", actor="test")
    key = services.registry.create_key("collecting", label="test", days=30, actor="test").text
    with asyncio.Runner() as runner:
        api = Api(create_app(services.settings, services=services), runner, {"admin": key})
        address = f"/v1/collectors/{collector.id}/estimates"
        shown = {row["value"]: row for row in api.get(address, who="admin").json()["rows"]}
        csv = api.get(address, who="admin", headers={"Accept": "text/csv"}).text
        api.close()
    (tmp_path / "smoking.csv").write_text(csv)
    (tmp_path / "folk.csv").write_text(
        "person_id,smokes\n" + "".join(f"{i},{'yes' if i % 4 == 0 else 'no'}\n" for i in range(400))
    )
    (tmp_path / "habits.yaml").write_text(DATASET)
    attach(services, tmp_path / "habits.yaml")
    open_account(services.ledger, "reader_of_habits", dataset="habits")

    def ask(sql: str) -> dict[str, object]:
        return answer_to(services, question(sql, "reader_of_habits", dataset="habits"))

    answer = ask("SELECT value, share FROM smoking ORDER BY value")
    assert answer["rows"] == [[value, pytest.approx(shown[value]["share"])] for value in ("no", "yes")]
    assert answer["accounting"]["charged"] == []  # type: ignore[index]
    both = ask(
        "SELECT s.value, p.n, s.share FROM (SELECT smokes, COUNT(*) AS n FROM people GROUP BY smokes) p "
        "JOIN smoking s ON s.value = p.smokes ORDER BY s.value"
    )
    assert [row[0] for row in both["rows"]] == ["no", "yes"]  # type: ignore[attr-defined]
