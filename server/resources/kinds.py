"""The kinds of resources, and the states that every one of them has."""

from __future__ import annotations

from enum import StrEnum

from accountant.states import QueryStatus

__all__ = ["ResourceKind", "ResourceState"]


class ResourceKind(StrEnum):
    """What a resource is. The value is stored, and is the member of its query's description that names it."""

    MONITOR = "monitor"
    STREAM = "stream"
    BATCH = "batch"
    MODEL = "model"
    SYNTHETIC = "synthetic"

    @property
    def word(self) -> str:
        """What it is called in a sentence."""
        return "synthetic table" if self is ResourceKind.SYNTHETIC else self.value

    @property
    def path(self) -> str:
        """The address of the list of its kind."""
        return f"/v1/{_PLURALS[self]}"

    @property
    def plural(self) -> str:
        """The member of a page that has the list."""
        return _PLURALS[self]

    @property
    def session(self) -> bool:
        """Whether it answers questions that are chosen after it was charged, while others of the account are asked.

        Then its event has no rho: composition of interactive mechanisms is proved for the other measures alone
        (accountant/filter.md, "Sessions that stay open").
        """
        return self in (ResourceKind.MONITOR, ResourceKind.STREAM)


_PLURALS = {
    ResourceKind.MONITOR: "monitors",
    ResourceKind.STREAM: "streams",
    ResourceKind.BATCH: "batches",
    ResourceKind.MODEL: "models",
    ResourceKind.SYNTHETIC: "synthetic",
}


class ResourceState(StrEnum):
    """Where a resource is, towards clients: the states of a query, and one for what was there and takes no more."""

    RUNNING = "running"
    """Charged, and not there yet."""

    SETTLED = "settled"
    """There: it may be read, and used where its kind is used."""

    CLOSED = "closed"
    """It was there, and is used no more: its owner closed it, or it is used up. What it said stays."""

    FAILED_CHARGED = "failed_charged"
    """It was started and is not there; the charge stays."""

    FAILED_VOID = "failed_void"
    """It never read a row; the charge was given back."""

    @classmethod
    def of(cls, status: QueryStatus | None, *, closed: bool) -> ResourceState:
        """The state of a resource whose query has this status.

        None is a query that the ledger does not have: it was restored from an older copy since, and what became of the
        charge is unknown, which counts as charged.
        """
        if status is None:
            return cls.FAILED_CHARGED
        if status is QueryStatus.SETTLED and closed:
            return cls.CLOSED
        return cls.RUNNING if status is QueryStatus.RESERVED else cls(status.value)
