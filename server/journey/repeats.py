"""Answers that this process has given, kept so that the same question is answered by the ledger alone.

Only released numbers and what was computed from them are kept here; nothing of it is newer knowledge about rows. The
ledger decides at every repeat whether the same releases would serve, so an entry can be useless, never wrong.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from accountant.request import CoreCharge, StoredRelease
from server.pricing import Priced

__all__ = ["AnswerParts", "Repeats"]

CELLS_MAX = 200_000
"""Most cells of all kept answers together: some tens of megabytes."""

ANSWERS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerParts:
    """What all answers to a question have in common while the same releases serve it (wire_answer.py).

    `table` and `provenance` are JSON as it is sent; `cells` is how many cells the table has, each with an error and an
    interval. `releases` are the ledger's records by core key, without their bodies.
    """

    table: bytes
    provenance: bytes
    cells: int
    releases: Mapping[str, StoredRelease]
    priced: Priced | None
    charges: tuple[CoreCharge, ...] = ()
    told_by: str | None = None
    """The query whose stored answer is whole: repeats refer to its table."""


class Repeats:
    """The latest answers; the least recently asked ones are forgotten first. Safe to use from many threads."""

    def __init__(self, *, cells_max: int = CELLS_MAX, answers_max: int = ANSWERS_MAX) -> None:
        self._cells_max = cells_max
        self._answers_max = answers_max
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, AnswerParts] = OrderedDict()
        self._again: dict[Hashable, tuple[Hashable, str]] = {}
        self._cells = 0

    def get(self, key: Hashable) -> AnswerParts | None:
        """The answer to an earlier question, None when it is not kept."""
        with self._lock:
            parts = self._answers.get(key)
            if parts is not None:
                self._answers.move_to_end(key)
        return parts

    def keep(self, key: Hashable, parts: AnswerParts) -> None:
        """Keeps an answer in place of an earlier one; one that is too large by itself is not kept."""
        with self._lock:
            self._forget(key)
            if parts.cells > self._cells_max // 4:
                return
            self._answers[key] = parts
            self._cells += parts.cells
            while self._cells > self._cells_max or len(self._answers) > self._answers_max:
                self._forget(next(iter(self._answers)))

    def keep_again(self, key: Hashable, state: Hashable, query_id: str) -> None:
        """Keeps which repeat last sent an answer that is still kept, and the state that it showed beside it."""
        with self._lock:
            if key in self._answers:
                self._again[key] = (state, query_id)

    def again(self, key: Hashable, state: Hashable) -> str | None:
        """The query that sent this answer with the same state beside it, None when there is none."""
        with self._lock:
            shown, query_id = self._again.get(key, (None, None))
        return query_id if shown == state else None

    def _forget(self, key: Hashable) -> None:
        self._again.pop(key, None)
        parts = self._answers.pop(key, None)
        if parts is not None:
            self._cells -= parts.cells
