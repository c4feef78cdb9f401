"""Evaluations of processes that died: each is ended as one that failed, counted, and says nothing.

Claim. Ending them so, and going on from the last state that is stored, releases nothing and costs nothing.

Proof. What is released of a monitor are stored outcomes. An evaluation whose process died stored none, so nobody saw
what it drew: neither the noise of its score nor the further bits of the threshold's noise, which are stored with an
outcome alone. Bits that nobody saw are independent of all that was released, so those that later evaluations draw in
their place have the law that sparse_vector.md asks for. That holds as long as no outcome is chosen among several: a
comparison is never repeated under the same number, and whether one is thrown away does not follow from what it found.
A hit whose outcome is stored stays one; its answer is a charge of its own, which the ledger settled, or failed charged.

A process that was only slow finds its evaluation over when it stores the outcome, and throws it away unseen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from accountant.ledger import Ledger
from accountant.states import QueryStatus
from server.log import logger
from server.monitors.notices import notice_of
from server.store.monitors import EvaluationRow
from server.store.registry import Registry
from server.store.resources import MONITORS

__all__ = ["Recovery", "answer_of"]

ANSWER_FIELDS = ("beyond", "beyond_standard_error", "combined", "query")
"""What the ledger keeps of the answer to a hit, and an evaluation shows."""


def answer_of(monitor: str, number: int) -> str:
    """The identifier under which the answer to a hit is charged."""
    return f"{monitor}.{number}"


@dataclass(frozen=True, slots=True)
class Recovery:
    """Ends evaluations, and turns of streams, of processes that died. Safe to use from many threads and processes."""

    ledger: Ledger
    registry: Registry

    def recover(self) -> int:
        """Ends what no process will end any more. Returns how many that were.

        Errors: LedgerUnavailable; the database's.
        """
        gone = self.ledger.gone(self.registry.evaluating() | self.registry.comparing())
        if not gone:
            return 0
        # What they had reserved is failed first, so that an answer is there by now or never will be.
        self.ledger.recover()
        ended = self.end(self.registry.evaluations_of(gone))
        ended += self.registry.end_turns_of(gone)
        logger().warning("evaluations_recovered", count=ended)
        return ended

    def end(self, left: Iterable[EvaluationRow]) -> int:
        """Ends evaluations that nobody goes on with. Returns how many were under way. Errors: as of `recover`."""
        ended = 0
        for found in left:
            outcome, detail = ("failed", None) if found.outcome is None else (found.outcome, self._answered(found))
            row = self.registry.resource(MONITORS, found.monitor)
            assert row is not None, "monitors are never removed"
            notice = notice_of(row, found, outcome=outcome, detail=detail)
            ended += self.registry.note_evaluation(
                found.monitor, found.number, outcome=outcome, detail=detail, notice=notice
            )
        return ended

    def _answered(self, found: EvaluationRow) -> str:
        """What is said of a hit that was to be answered: the answer, where the ledger has it."""
        said = json.loads(found.detail or "{}")
        record = self.ledger.query(answer_of(found.monitor, found.number))
        if record is not None and record.state is QueryStatus.SETTLED and record.answer is not None:
            kept = json.loads(record.answer)
            return json.dumps(said | {name: kept[name] for name in ANSWER_FIELDS})
        return json.dumps(said | {"answer_refused": "unavailable"})
