"""What the operations of a batch will look at: said before it is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Needs"]


@dataclass(slots=True)
class Needs:
    """What the operations of a batch will look at."""

    accounts: set[str] = field(default_factory=set)
    queries: set[str] = field(default_factory=set)
    keys: set[tuple[str, str]] = field(default_factory=set)
    cores: set[tuple[str, str]] = field(default_factory=set)
    """Cores whose best release is wanted: of this principal ("" for everybody's), the core's key."""
    shared: set[tuple[str, str, int]] = field(default_factory=set)
    """Cores that others' releases may serve for a charge: the account that reads, the core's key, the least quality."""
    charges: set[str] = field(default_factory=set)
    siblings: set[tuple[str, str]] = field(default_factory=set)
    """Accounts below this parent, of this principal."""
    owned: set[str] = field(default_factory=set)
    """Principals whose accounts are wanted, all of them."""
    datasets: set[str] = field(default_factory=set)
    """Datasets of which some account is wanted: all of them are in one unit space."""
    moved: set[tuple[str, str]] = field(default_factory=set)
    """Datasets whose unit space is joined to another one: all accounts of both."""
    roots: bool = False
    expired: bool = False
    others: bool = False
    accepts_loss: bool = False
    """Whether the head may be older than the last durable one: for the step that acknowledges it."""
