"""Datasets that declare one unit space: attached, budgeted, joined, and refused where something would be lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from unittest.mock import Mock

import pytest

from accountant.account import Account
from accountant.ledger import Ledger
from privacy.policy import Dataset
from privacy.refusal import Refused
from server.administration.budget_refusals import SecondRoot
from server.administration.budgets import Budgets, OpenBudget, SetBudget
from server.administration.refusal import ActRefused
from server.administration.spaces import settle_space
from server.catalogue import ServedDatasets
from server.journey.admission import Admission
from server.roles import Role
from server.services import DatasetRefused
from server.store.registry import Registry

FILE = """version: 2
dataset: {name}
unit: {{table: rows, rows: true}}
{space}tables:
  rows:
    source: {{file: rows.csv}}
    columns:
      age: {{type: integer, bounds: [0, 100]}}
"""


@dataclass
class House:
    """A ledger, a registry and what is attached."""

    ledger: Ledger
    registry: Registry
    catalogue: ServedDatasets
    folder: Path

    def attach(self, name: str, space: str | None = None) -> Dataset:
        """Attaches one table of one column, under a name and a unit space."""
        (self.folder / "rows.csv").write_text("age\n40\n", "utf-8")
        file = self.folder / f"{name}.yaml"
        file.write_text(FILE.format(name=name, space=f"unit_space: {space}\n" if space else ""), "utf-8")
        return self.catalogue.register_file(file.name, actor="owner")

    def budget(self, dataset: str, principal: str | None = None, *, epsilon: int = 5) -> Account:
        """Opens an account."""
        budgets = Budgets(self.ledger, self.registry, lambda: [one.name for one in self.catalogue.all()])
        request = OpenBudget(dataset=dataset, epsilon=Fraction(epsilon), delta=Fraction(1, 10**6), principal=principal)
        return budgets.open(request, actor="admin")

    def pays(self, dataset: str) -> list[str]:
        """The path that pays for a question of the analyst."""
        admission = Mock(spec=Admission, _ledger=self.ledger, _served=self.catalogue)
        admission._beside = lambda found, _: found
        question = Mock(dataset=dataset, principal="analyst", account=None, envelope=False)
        _, path = Admission.paying(admission, question)
        return [account.id for account in path]


@pytest.fixture
def house(database: str, registry: Registry, tmp_path: Path) -> Iterator[House]:
    """Nothing attached, and one analyst."""
    registry.create_principal("analyst", Role.ANALYST, actor="test")
    with Ledger(database, instance="test") as ledger:
        catalogue = ServedDatasets(
            registry,
            datasets_directory=tmp_path,
            snapshots_directory=tmp_path / "snapshots",
            draw_secret=b"0" * 32,
            settle=lambda dataset, actor: settle_space(ledger, dataset, actor),
        )
        yield House(ledger, registry, catalogue, tmp_path)


def test_a_dataset_is_attached_beside_another_one(house: House) -> None:
    """One root for both; the analyst's account of the first lets nobody into the second; a third stays apart."""
    for name, space in (("people", None), ("visits", "people"), ("other", None)):
        assert house.attach(name, space).space == (space or name)
    root = house.budget("people", epsilon=20)
    mine = house.budget("people", "analyst")
    with pytest.raises(Refused):
        house.pays("visits")
    with pytest.raises(ActRefused) as refused:
        house.budget("visits")
    assert refused.value.refusal == SecondRoot("visits", "people")
    theirs = house.budget("visits", "analyst")
    assert (theirs.parent, theirs.space, theirs.dataset) == (root.id, "people", "visits")
    assert (house.pays("people"), house.pays("visits")) == ([mine.id, root.id], [theirs.id, root.id])
    apart = house.budget("other")
    assert (apart.parent, apart.space) == (None, "other")
    asked = SetBudget(dataset="visits", epsilon=Fraction(4), delta=Fraction(1, 10**6), reason="less")
    budgets = Budgets(house.ledger, house.registry, lambda: ["people", "visits"])
    assert budgets.set(asked, actor="admin").account.id == root.id


def test_a_new_version_may_join_and_never_leaves(house: House) -> None:
    """A declared space joins the roots; back again, or away from who shares the root, is refused."""
    for name in ("people", "visits"):
        house.attach(name)
        house.budget(name, epsilon=10)
    mine = house.budget("visits", "analyst")
    upper, lower = house.ledger.accounts(dataset="people")[0], house.ledger.accounts(dataset="visits")[0]
    house.attach("visits", "people")
    assert house.pays("visits") == [mine.id, lower.id, upper.id]
    served = house.catalogue.get("visits")
    with pytest.raises(DatasetRefused, match="unit_space"):
        house.attach("visits")
    with pytest.raises(DatasetRefused, match="unit_space"):
        house.attach("people", "elsewhere")
    assert house.catalogue.get("visits") == served
    assert house.pays("visits") == [mine.id, lower.id, upper.id]
    assert house.ledger.audit().ok


def test_what_is_served_beside_its_accounts_is_not_answered(house: House) -> None:
    """A file that names another space than its accounts are in: a doubt is a refusal."""
    house.attach("people")
    house.budget("people")
    house.budget("people", "analyst")
    served = house.catalogue.get("people")
    assert served is not None
    moved = dataclasses.replace(served, unit_space="elsewhere")
    house.catalogue = Mock(get=lambda _: moved)
    with pytest.raises(Refused) as refused:
        house.pays("people")
    assert refused.value.findings[0].code == "no_budget"
