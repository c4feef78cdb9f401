"""What a batch asks, and how it is answered: values without anything of the transport."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict, dataclass, field
from fractions import Fraction

from accountant.request import Reuse
from mechanisms.families import NoiseFamily
from privacy.bounds import AskedContribution
from privacy.events.event import fraction_from_text, fraction_to_text
from server.batches.strategy import Strategy
from server.question import Question
from sql_rewrite.batch_axes import Digit
from sql_rewrite.batch_forms import Cells, Runs
from sql_rewrite.lift_clock import started

__all__ = ["AskedBatch", "Terms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedBatch:
    """Counting queries over the rows of one dataset, and what all of them together may cost.

    `moment` is that of CURRENT_DATE and NOW() in any of them.
    """

    principal: str
    dataset: str
    queries: tuple[str, ...] = field(repr=False)
    epsilon: Fraction | None
    own_epsilon: Fraction | None
    noise: NoiseFamily | None
    confidence: Fraction
    contribution: AskedContribution | None
    reuse: Reuse | None
    account: str | None
    idempotency_key: str | None
    body_hash: str
    moment: datetime.datetime

    def question(self, sql: str) -> Question:
        """The question that answers it by this text."""
        return Question(
            principal=self.principal,
            dataset=self.dataset,
            sql=sql,
            parameters={},
            epsilon=self.epsilon,
            own_epsilon=self.own_epsilon,
            noise=self.noise,
            half_width=None,
            confidence=self.confidence,
            reuse=self.reuse,
            max_staleness_s=None,
            account=self.account,
            contribution=self.contribution,
            started=started(sql, self.moment),
            idempotency_key=self.idempotency_key,
            body_hash=self.body_hash,
            as_written=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a batch is answered, as its owner and overseers may read it: no text, and no literal of one.

    `places` gives of each query the number of its counts: queries that ask the same have one. `cells` says of which
    cells each count is the sum, None where it is a column of the answer.
    """

    strategy: Strategy
    confidence: Fraction
    places: tuple[int, ...]
    cells: Cells | None

    def to_json(self) -> str:
        """As it is stored."""
        return json.dumps(
            {
                "strategy": self.strategy.value,
                "confidence": fraction_to_text(self.confidence),
                "places": self.places,
                "digits": None if self.cells is None else [asdict(digit) for digit in self.cells.digits],
                "members": None if self.cells is None else self.cells.members,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Terms:
        """Reads `to_json` back."""
        plain = json.loads(text)
        cells = None
        if plain["digits"] is not None:
            members = tuple(tuple(_runs(runs) for runs in query) for query in plain["members"])
            cells = Cells("", tuple(Digit(**digit) for digit in plain["digits"]), members)
        return cls(
            strategy=Strategy(plain["strategy"]),
            confidence=fraction_from_text(plain["confidence"]),
            places=tuple(plain["places"]),
            cells=cells,
        )


def _runs(plain: list[list[int]]) -> Runs:
    return tuple((low, high) for low, high in plain)
