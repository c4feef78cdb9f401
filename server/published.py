"""Published profiles: what everybody who may ask a dataset reads about its data."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from typing import Final

from accountant.reads import Reads
from accountant.states import QueryStatus
from privacy.policy import Dataset
from server.profile_types import Profile

__all__ = ["ATTEMPTS_MAX", "PROFILE", "STATISTIC", "Published", "attempt_id"]

PROFILE = "profile"
"""The member of a query's description that says that it made a profile."""

STATISTIC = "statistic"
"""The member of a query's description that says which registered statistic it asked."""

ATTEMPTS_MAX = 1000
_KEPT: Final = 256


class Published:
    """The profiles of the ledger, kept once read: they never change. Safe to use from many threads."""

    def __init__(self, ledger: Reads) -> None:
        self._ledger = ledger
        self._kept: OrderedDict[tuple[str, str], Profile] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, dataset: Dataset) -> Profile | None:
        """The profile of this version of the data, None where none was made. Never spends."""
        return self.find(dataset.name, dataset.data_version)

    def find(self, name: str, data_version: str) -> Profile | None:
        """The same, by the names of dataset and version."""
        key = (name, data_version)
        with self._lock:
            known = self._kept.get(key)
        if known is None:
            known = self._read(name, data_version)
            if known is not None:
                with self._lock:
                    self._kept[key] = known
                    while len(self._kept) > _KEPT:
                        self._kept.popitem(last=False)
        return known

    def _read(self, name: str, data_version: str) -> Profile | None:
        for number in range(1, ATTEMPTS_MAX):
            made = self._ledger.query(attempt_id(name, data_version, number))
            if made is None:
                return None
            if made.state is QueryStatus.SETTLED:
                if made.answer is None:
                    return None
                profile: Profile = json.loads(made.answer) | {"created": made.created.isoformat()}
                return profile
        return None


def attempt_id(name: str, data_version: str, number: int) -> str:
    """The ledger takes each identifier once, so that two processes cannot both pay for the same attempt."""
    text = json.dumps([PROFILE, name, data_version, number])
    return f"q_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
