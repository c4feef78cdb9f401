"""Incidents: what must never happen on true data, and is a fault of ours when it does. Counted and logged.

Every operator is total and every plan was made on an empty twin beforehand, so rows can use up time or memory and
nothing else. An engine error of another kind is a wrong proof or a defect of the engine, and its occurrence may depend
on rows. The log has one fixed event and words of a fixed list; no text, statement or value travels with it.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

__all__ = ["INCIDENT_KINDS", "Incidents"]

_log = logging.getLogger("noisegate.engines")

INCIDENT_KINDS: Final = ("engine_error", "unplannable")
"""engine_error: a statement failed on true data, neither for time nor for memory. unplannable: a generated statement
could not be planned on the empty twin; it was refused before the charge."""


class Incidents:
    """Counts of one server process. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter(dict.fromkeys(INCIDENT_KINDS, 0))

    def note(self, kind: str, category: str) -> None:
        """Count one, and log it for the operator."""
        assert kind in INCIDENT_KINDS
        with self._lock:
            self._counts[kind] += 1
        _log.error("incident", extra={"fields": {"kind": kind, "category": category}})

    def counts(self) -> Mapping[str, int]:
        """How many of each kind there were since the process started."""
        with self._lock:
            return dict(self._counts)
