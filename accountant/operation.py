"""What a step of the ledger is: it says what it needs, then changes the whole batch or raises and changes nothing."""

from __future__ import annotations

from typing import Protocol, TypeVar

from accountant.batch import Batch, Needs

__all__ = ["Operation", "Result"]

Result = TypeVar("Result", covariant=True)


class Operation(Protocol[Result]):
    """One step. `name` is how fault points call it; `query_ids` are the queries whose fate it decides."""

    @property
    def name(self) -> str:
        """The step's name."""
        ...

    @property
    def query_ids(self) -> tuple[str, ...]:
        """Queries that end failed when nobody can tell the caller how this step went."""
        ...

    def needs(self, needs: Needs) -> None:
        """Adds what must be loaded."""
        ...

    def apply(self, batch: Batch) -> Result:
        """Decides and changes the batch; returns what the caller gets once it is durable."""
        ...
