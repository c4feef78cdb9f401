"""Homes with a ledger that has entries, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from accountant.ledger import Ledger, utc_now
from server.roles import Role
from server.settings import Settings
from server.store.registry import Registry
from tests.accountant.making import analyst, releases_for, request, root


def spend(settings: Settings, *, queries: int = 2) -> None:
    """Opens a root and an analyst's account where there is none, and asks so many questions."""
    with Ledger(settings.database(), instance="test", high_water=settings.high_water()) as ledger:
        leaves = [account for account in ledger.accounts() if account.parent is not None]
        leaf = leaves[0] if leaves else analyst(ledger, root(ledger, epsilon=100), epsilon=100)
        for _ in range(queries):
            asked = request(leaf)
            reserved = ledger.reserve(asked)
            ledger.post(reserved.query_id, releases_for(ledger, reserved, asked.cores), b"answer")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """The settings of a home with a ledger of some entries, a key, a dataset and files beside them."""
    address: str = request.getfixturevalue(f"{request.param}_url")
    home = tmp_path / "home"
    home.mkdir()
    made = Settings(home=home, database_url=SecretStr(address))
    spend(made)
    registry = Registry(address, secret=made.keys_secret(), clock=utc_now)
    registry.create_principal("research", Role.ANALYST, actor="test")
    registry.create_key("research", label="", days=1, actor="test")
    for version in ("1" * 8, "2" * 8):
        registry.register_dataset(
            name="people",
            policy_version=1,
            data_version=version,
            snapshot=f"people/{version}.duckdb",
            document={"tables": {}},
            actor="test",
        )
    registry.close()
    made.own_secret("draw_key")
    for name in ("datasets/people.yaml", "datasets/people.csv", "snapshots/people/22222222.duckdb",
                 "snapshots/people/22222222.json", "snapshots/people/11111111.duckdb"):  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"contents of {name}")
    return made
