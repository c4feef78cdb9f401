"""Privacy events, in a module for each form of their loss; what the modules list may be charged."""

from __future__ import annotations

from collections.abc import Mapping

from privacy.events import approximate, followed, gaussian, laplace, ranges, selection, sparse
from privacy.events.approximate import ApproximateEvent, TruncatedGeometricEvent
from privacy.events.event import Event
from privacy.events.followed import GaussianFollowedEvent, LaplaceFollowedEvent
from privacy.events.gaussian import GaussianEvent, GaussianThresholdEvent
from privacy.events.laplace import LaplaceEvent
from privacy.events.ranges import GaussianRangesEvent, LaplaceRangesEvent
from privacy.events.selection import BoundedRangeEvent, PermuteAndFlipEvent
from privacy.events.sparse import SparseSessionEvent, SparseVectorEvent
from privacy.values import Json

__all__ = [
    "KINDS",
    "ApproximateEvent",
    "BoundedRangeEvent",
    "Event",
    "GaussianEvent",
    "GaussianFollowedEvent",
    "GaussianRangesEvent",
    "GaussianThresholdEvent",
    "LaplaceEvent",
    "LaplaceFollowedEvent",
    "LaplaceRangesEvent",
    "PermuteAndFlipEvent",
    "SparseSessionEvent",
    "SparseVectorEvent",
    "TruncatedGeometricEvent",
    "event_from_json",
    "event_to_json",
]

KINDS: tuple[type[Event], ...] = (
    *laplace.EVENTS,
    *gaussian.EVENTS,
    *approximate.EVENTS,
    *selection.EVENTS,
    *ranges.EVENTS,
    *followed.EVENTS,
    *sparse.EVENTS,
)
"""Every event that may be charged."""

_BY_KIND = {kind.kind: kind for kind in KINDS}


def event_to_json(event: Event) -> dict[str, Json]:
    """The stored form of an event."""
    return {"kind": event.kind, "parameters": event.parameters()}


def event_from_json(stored: Mapping[str, Json]) -> Event:
    """The event of a stored form. Raises ValueError for an unknown kind or parameters out of range."""
    kind = _BY_KIND.get(str(stored.get("kind", "")))
    if kind is None:
        raise ValueError("unknown kind of privacy event")
    return kind.from_parameters(stored["parameters"])
