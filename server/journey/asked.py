"""The questions that were asked last, by the identifier of their answer: what `:sharpen` asks again.

They are kept in memory alone, and of each analyst apart, so that nobody can see by them how much others asked. Neither
ledger nor log has the text of a query.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from server.question import Question

__all__ = ["KEPT", "Asked"]

KEPT = 64
"""Questions that are kept of each analyst."""

_ANALYSTS = 1_000


class Asked:
    """The last questions of each analyst. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: OrderedDict[str, OrderedDict[str, Question]] = OrderedDict()

    def keep(self, query_id: str, question: Question) -> None:
        """Keeps a question as it was asked, under the identifier of its answer."""
        with self._lock:
            own = self._questions.setdefault(question.principal, OrderedDict())
            self._questions.move_to_end(question.principal)
            own[query_id] = question
            own.move_to_end(query_id)
            while len(own) > KEPT:
                own.popitem(last=False)
            while len(self._questions) > _ANALYSTS:
                self._questions.popitem(last=False)

    def of(self, principal: str, query_id: str) -> Question | None:
        """What an analyst asked, None when it is not kept."""
        with self._lock:
            own = self._questions.get(principal)
            return None if own is None else own.get(query_id)

    def forget(self) -> None:
        """Forgets all of them."""
        with self._lock:
            self._questions.clear()
