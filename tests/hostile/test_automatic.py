"""The hostile corpus where questions choose their bounds: what is refused for another reason than bounds stays so."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from privacy.bounds import AutomaticContribution
from privacy.norms import NormPower
from privacy.policy import Dataset
from privacy.refusal import Refused
from server.app import create_app
from server.journey.value_stage import at_nominal_bounds, value_stage
from sql_rewrite.bound import bound
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.lift import lift
from sql_rewrite.plan import Plan
from tests.hostile.corpus import large, refused
from tests.hostile.duck import Reader
from tests.journey.clinic import open_account
from tests.journey.norm_clinic import auto_clinic
from tests.sql_rewrite.datasets import CLINIC

AUTO: Dataset = replace(
    CLINIC,
    tables=tuple(
        replace(table, contribution=AutomaticContribution()) if table.protected and not table.one_row else table
        for table in CLINIC.tables
    ),
    limits=replace(CLINIC.limits, automatic_bounds=True),
)


class AutoReader(Reader):
    """Reads texts as the journey does where norms and value bounds are chosen."""

    power = NormPower.L2

    def read(self, text: str, parameters: object = None) -> Plan:
        """The plan of a text. Errors: Refused."""
        plan = lift(text, self.dataset)
        try:
            bound(plan, power=self.power)
        except Refused:
            values = value_stage(plan, self.power, DUCKDB)
            if values is None:
                raise
            bound(at_nominal_bounds(plan, values), power=self.power)
        self.judge(text)
        return plan


@pytest.fixture(scope="module")
def auto() -> Iterator[AutoReader]:
    """What reads texts about the clinic whose bounds are chosen."""
    made = AutoReader(AUTO)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("power", list(NormPower), ids=lambda power: power.value)
def test_choosing_bounds_answers_what_lacked_bounds_and_nothing_else(auto: AutoReader, power: NormPower) -> None:
    """Shows the same code for every text, but for sums that lacked nothing but the bounds of columns."""
    auto.power = power
    wrong, answered = [], []
    for entry in [*refused(), *large()]:
        try:
            auto.read(entry.text)
            found = ["answered"]
        except Refused as refusal:
            found = sorted({finding.code for finding in refusal.findings})
        if found == [entry.expected]:
            continue
        if entry.expected == "column_without_bounds" and found == ["answered"]:
            answered.append(entry.text)
        else:
            wrong.append((entry.place, entry.expected, found, entry.text[:200]))
    assert not wrong
    assert len(answered) >= 20
    assert not any("person_id" in text.partition("FROM")[0] for text in answered)


WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
BODIES: list[dict[str, Any]] = [
    {"contribution": contribution}
    for contribution in [
        "Auto", "auto ", "", "none", "autø", 0, -1, True, [], ["auto"],
        {"rows_per_unit": 0}, {"rows_per_unit": -1}, {"rows_per_unit": 2**40 + 1}, {"rows_per_unit": 10**400},
        {"rows_per_unit": 1.5}, {"rows_per_unit": "12"}, {"rows_per_unit": True}, {"groups_per_unit": 0},
        {"groups_per_unit": 2**63}, {"rows_per_unit_and_group": -(2**40)}, {"norm": 6}, {"auto": True},
        {"rows_per_unit": 1, "groups_per_unit": None, "bounds": [0, 1]},
    ]
]  # fmt: skip
BODIES += [
    {"spend": None, "accuracy": accuracy}
    for accuracy in [
        {"half_width": 0}, {"half_width": -1}, {"half_width": "1e-400"}, {"relative": "0"}, {"half_width": 10},
    ]
]  # fmt: skip
"""The last one is a wish for which no histogram is stored."""


@pytest.mark.slow
def test_requests_that_name_no_bound_are_refused_and_free(tmp_path: Path) -> None:
    """Shows problem+json, a code, and an untouched ledger for bounds of 0, below it, beyond 2^40, or of other types."""
    with auto_clinic(tmp_path) as (services, _):
        account = open_account(services.ledger, "hostile", dataset="wards")
        services.registry.create_principal("hostile", "analyst", actor="test")
        key = services.registry.create_key("hostile", label="", days=1, actor="test").text
        before = services.ledger.entries(account)
        wrong: list[object] = []

        async def send() -> None:
            transport = httpx.ASGITransport(app=create_app(services.settings, services=services))
            headers = {"Authorization": f"Bearer {key}"}
            async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
                for path, body in itertools.product(("/v1/queries", "/v1/estimates"), BODIES):
                    asked = {"dataset": "wards", "sql": WARD, "spend": {"epsilon": "1"}, **body}
                    reply = await client.post(path, json=asked, timeout=60)
                    problem = reply.json()
                    if not 400 <= reply.status_code < 500 or problem.get("charged") is not False:
                        wrong.append((path, body, reply.status_code, reply.text[:300]))
                    elif not (problem.get("what") and problem.get("why") and problem.get("instead")):
                        wrong.append((path, body, reply.status_code, reply.text[:600]))

        asyncio.run(send())
        assert not wrong
        assert services.ledger.entries(account) == before
