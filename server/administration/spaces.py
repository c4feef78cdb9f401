"""Unit spaces: the accounts of a dataset follow what its file declares, and never leave what was spent."""

from __future__ import annotations

from accountant.errors import SpacesNotJoined
from accountant.ledger import Ledger
from privacy.policy import Dataset
from privacy.refusal import Finding
from server.services import DatasetRefused

__all__ = ["settle_space"]


def settle_space(ledger: Ledger, dataset: Dataset, actor: str) -> None:
    """Puts the accounts of a dataset into the unit space that it declares; nothing where they are there already.

    Two roots become one tree, which has the stricter limit and counts what both have spent (accountant/spaces.md).
    Errors: DatasetRefused; those of the ledger.
    """
    if all(account.space == dataset.space for account in ledger.accounts(dataset=dataset.name)):
        return
    try:
        ledger.join_space(dataset.name, dataset.space, actor=actor, reason="declared as unit_space")
    except SpacesNotJoined as refused:
        raise DatasetRefused(
            [
                Finding(
                    code="dataset_refused",
                    what=f'unit_space "{dataset.space}" is refused',
                    why=f"The budgets of the dataset stay where they are: {refused.why}.",
                    instead=(
                        "Leave unit_space as it was, or see the budgets of both: noisegate budget show",
                        "docs/datasets.md says under Unit spaces when a dataset changes from one to another.",
                    ),
                    field="unit_space",
                )
            ]
        ) from None
