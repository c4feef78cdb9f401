"""The journey of a query: eight steps, each a call downward.

Their order is kept in `journey/admission.py` (1 to 5) and `journey/running.py` (6 to 8):

    1 ask        HTTP makes a Question (routes/)
    2 lift       text to plan                     nothing spent when it refuses
    3 bound      plan to statistics               nothing spent when it refuses
    4 calibrate  statistics to noise and price    nothing spent when it refuses
    5 reserve    price to a reservation           nothing spent when the budget refuses
    6 run        statement to exact sums          from here on the charge stays
    7 release    exact sums to noisy rows, and the shell over them
    8 post       releases and answer stored with the entry, in one transaction; then the reply

Steps 2 to 4 read the text, public metadata and balances; they also make the estimate. What each step does is in
server/journey, a file each.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Mapping

from accountant.ledger import Ledger
from accountant.states import QueryStatus
from engines.protocol import StatementEngine
from engines.shell import ShellEngine
from mechanisms.randomness import BitSource
from privacy.refusal import Finding, Refused
from server.admitted import retried
from server.free_answers import Allowances, FreeAnswers
from server.journey.admission import Admission, Served
from server.journey.asked import Asked
from server.journey.google import plain_question
from server.journey.pace import Pace
from server.journey.preparing import Preparing
from server.journey.query import Admitted, Prepared, ToRun
from server.journey.repeats import Repeats
from server.journey.report import report
from server.journey.reuse import Stored
from server.journey.running import Running
from server.journey.sharpening import sharper
from server.journey.sizes import Sizes
from server.journey.wire_estimate import estimate
from server.pricing import Priced
from server.public_tables import Drawn, NothingDrawn, PublicTables
from server.question import Question
from sql_rewrite.dialects import DIALECTS

__all__ = ["Journey"]

_NOT_KEPT = Finding(
    code="text_not_kept",
    what="the query cannot be asked again by its identifier",
    why="The texts of queries are kept in memory only, of each analyst the last ones: not beyond a restart.",
    instead=("send the same question with the better wish: POST /v1/queries buys what is missing as well",),
)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Journey:
    """Answers questions. One per server process; safe to use from many threads."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        private: StatementEngine,
        shell: ShellEngine,
        served: Served,
        bits: BitSource,
        pace: Pace | None = None,
        free_answers: Allowances | None = None,
        now: Callable[[], datetime.datetime] = _now,
        drawn: Drawn | None = None,
    ) -> None:
        """`drawn` finds synthetic tables; without it there are none."""
        drawn = NothingDrawn() if drawn is None else drawn
        self._ledger = ledger
        self.pace = pace if pace is not None else Pace()
        public = PublicTables(served.snapshot, drawn.rows_of)
        self.preparing = Preparing(shell, shell, DIALECTS[private.capabilities.dialect], public.of)
        repeats = Repeats()
        self.free = free = free_answers if free_answers is not None else FreeAnswers()
        self.sizes = Sizes(ledger)
        self.asked = Asked()
        self.admission = Admission(
            ledger=ledger,
            served=served,
            preparing=self.preparing,
            stored=Stored(ledger, now),
            repeats=repeats,
            free=free,
            pace=self.pace,
            sizes=self.sizes,
            beside=drawn.beside,
        )
        self.running = Running(
            ledger=ledger,
            admission=self.admission,
            private=private,
            shell=shell,
            served=served,
            bits=bits,
            pace=self.pace,
            repeats=repeats,
            free=free,
            public=public,
        )

    def estimate(self, question: Question) -> Mapping[str, object]:
        """Steps 1 to 4: the price and the expected errors, and where it is asked for the report of the plan.

        Touches no private row, spends nothing. Errors: Refused.
        """
        question = plain_question(question)
        prepared, quote = self.admission.quote(question)
        expected = self.sizes.expected(prepared, quote, question)
        body = {**estimate(question, prepared, quote), "expected": expected}
        if not question.report:
            return body
        stored_width = self.sizes.stored_width(prepared, question)
        return {**body, "plan": report(question, prepared, quote, body, stored_width=stored_width)}

    def priced(self, question: Question) -> tuple[Prepared, Priced | None]:
        """Steps 2 to 4 of a text that is compared with others: its noise and its price. Errors: Refused."""
        return self.admission.priced(question)

    def admit(self, question: Question) -> Admitted:
        """Steps 1 to 5. Errors: Refused, and the ledger's (BudgetExhausted, IdempotencyConflict, ...)."""
        admitted = self.admission.admit(plain_question(question))
        self.asked.keep(admitted.query_id, question)
        return admitted

    def sharpen(self, query_id: str, better: Question) -> Admitted:
        """Steps 1 to 5 of an earlier question of the same analyst with a better wish (`better` has no text).

        A retry is looked up first: it needs no text. Errors: as of `admit`; Refused (text_not_kept).
        """
        if better.idempotency_key is not None:
            earlier = self._ledger.earlier(better.principal, better.idempotency_key, better.body_hash)
            if earlier is not None:
                return retried(earlier)
        asked = self.asked.of(better.principal, query_id)
        if asked is None:
            raise Refused([_NOT_KEPT])
        return self.admit(sharper(asked, better))

    def complete(self, query: ToRun) -> bytes:
        """Steps 6 to 8: the stored answer at its visible moment. Errors: ExecutionFailed, one opaque outcome."""
        return self.running.complete(query)

    def cancel(self, query_id: str, principal: str) -> QueryStatus | None:
        """Voids a query that no engine has seen. Returns its state afterwards."""
        return self.admission.cancel(query_id, principal)

    def cancel_all(self, principals: Collection[str]) -> int:
        """Voids every query of these principals that no engine has seen. Returns how many."""
        return self.admission.cancel_all(principals)

    def abandon(self, query: ToRun) -> None:
        """Voids an admitted query whose turn never came (shutdown), cancelled or not."""
        self.admission.abandon(query.query_id)
