"""A question as it leaves HTTP: checked values, exact amounts, nothing of the transport."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from accountant.request import Reuse
from mechanisms.families import NoiseFamily
from privacy.bounds import AskedContribution
from privacy.rank_tree import QuantileMechanism
from sql_rewrite.google_clause import Clause
from sql_rewrite.lift_clock import started as clock_of
from sql_rewrite.lifting import ByAtoms

__all__ = ["Question", "QuestionParameter", "plain_question"]

QuestionParameter = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an analyst asks, and what it may cost or how exact it shall be (in one way at most).

    `epsilon` is a part of the paying account, `own_epsilon` what the answer promises by itself. `noise` is the only
    family that may answer, None for the server's choice; `delta` is that of selecting groups, None for the policy's.
    `relative` is a half width as a part of the smallest number of the answer, as far as that is known beforehand
    (journey/sizes.py makes a half width of it). `at_most` is the greatest part of the account for either, where that is
    less than the policy's. `nonempty` leaves out public groups whose noisy count may be zero. `with_cut` asks for
    intervals with the cut beside those of the noise.
    `mechanism` is the one by which quantiles are drawn, None for the server's choice.
    `report` asks an estimate for the whole report of the plan (journey/report.py).
    `started` is the moment of CURRENT_DATE and NOW(), None for texts that read no clock (sql_rewrite/lift_clock.py).
    `clause` is what the text asked for in GoogleSQL's spelling, which `sql` no longer has (journey/google.py).
    `max_cost` is the greatest part of the account that all its charges may take, None for that of the policy.
    `sharpens` refuses a question that is neither answered by a stored release nor by making one more precise.
    `body_hash` is the SHA-256 (hex) of the request in canonical form without `wait_ms`.
    """

    principal: str
    dataset: str
    sql: str = field(repr=False)
    parameters: Mapping[str, QuestionParameter] = field(repr=False)
    epsilon: Fraction | None
    half_width: Fraction | None
    confidence: Fraction
    reuse: Reuse | None
    max_staleness_s: int | None
    account: str | None
    idempotency_key: str | None
    body_hash: str
    contribution: AskedContribution | None = None
    accept_noise: bool = False
    own_epsilon: Fraction | None = None
    noise: NoiseFamily | None = None
    delta: Fraction | None = None
    nonempty: bool = False
    relative: Fraction | None = None
    at_most: Fraction | None = None
    with_cut: bool = False
    nonnegative: bool = False
    merge: Fraction | None = None
    """The relative accuracy below which groups are merged; None where they are not. It sets no price."""
    report: bool = False
    started: datetime.datetime | None = None
    clause: Clause | None = None
    mechanism: QuantileMechanism | None = None
    max_cost: Fraction | None = None
    sharpens: bool = False
    envelope: bool = False
    """Whether `account` is one that was set aside below the principal's own: asked by the schedule of a dashboard."""
    as_written: bool = False
    """Whether each condition is measured by itself: where ways are compared, and where a session has one number."""

    def __post_init__(self) -> None:
        given = [
            amount for amount in (self.epsilon, self.own_epsilon, self.half_width, self.relative) if amount is not None
        ]
        assert len(given) <= 1, "one price, asked for in one way"

    @property
    def atoms(self) -> ByAtoms:
        """Whether conditions may be measured as groups: a width that is asked for is that of each number shown."""
        if self.as_written or self.merge is not None:
            return ByAtoms.NONE
        return ByAtoms.SUMS if self.half_width is None and self.relative is None else ByAtoms.ALONE


def plain_question(
    *,
    principal: str,
    dataset: str,
    sql: str,
    account: str | None,
    body_hash: str,
    contribution: AskedContribution | None = None,
    confidence: Fraction = Fraction(95, 100),
) -> Question:
    """A question of nothing but a text, whose price is named elsewhere: of a session, a model, a statistic."""
    return Question(
        principal=principal,
        dataset=dataset,
        sql=sql,
        parameters={},
        epsilon=None,
        half_width=None,
        confidence=confidence,
        reuse=Reuse.NONE,
        max_staleness_s=None,
        account=account,
        contribution=contribution,
        idempotency_key=None,
        body_hash=body_hash,
        started=clock_of(sql, datetime.datetime.now(datetime.UTC)),
        as_written=True,
    )
