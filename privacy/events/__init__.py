"""Privacy events: one module per kind, listed here explicitly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privacy.events.event import Event
from privacy.events.gaussian import GaussianEvent
from privacy.events.gaussian_threshold import GaussianThresholdEvent
from privacy.events.laplace import LaplaceEvent
from privacy.events.truncated_geometric import TruncatedGeometricEvent

__all__ = [
    "KINDS",
    "Event",
    "GaussianEvent",
    "GaussianThresholdEvent",
    "LaplaceEvent",
    "TruncatedGeometricEvent",
    "event_from_json",
    "event_to_json",
]

KINDS: tuple[type[Any], ...] = (LaplaceEvent, GaussianEvent, TruncatedGeometricEvent, GaussianThresholdEvent)
"""Every event that may be charged."""

_BY_KIND = {kind.kind: kind for kind in KINDS}


def event_to_json(event: Event) -> dict[str, Any]:
    """The stored form of an event."""
    return {"kind": event.kind, "parameters": event.parameters()}


def event_from_json(stored: Mapping[str, Any]) -> Event:
    """The event of a stored form. Raises ValueError for an unknown kind or parameters out of range."""
    kind = _BY_KIND.get(stored.get("kind", ""))
    if kind is None:
        raise ValueError("unknown kind of privacy event")
    event: Event = kind.from_parameters(stored["parameters"])
    return event
