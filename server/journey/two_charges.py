"""Questions of two charges: a width is asked for, and what its noise follows from is not known yet.

The first charge buys the histograms, as a question at the dataset's default spend would. They choose value bounds and
norms, and so say what the width costs: the second charge, made only where it is at most what the question may cost
(mechanisms/norm_choice.md, claim 5). Where it would be more, nothing more is charged and nothing more is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.account import Account
from accountant.request import CoreCharge
from mechanisms.released_table import ReleasedTable
from privacy.composition import compose
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import Finding
from privacy.release import NormSource
from server.errors import Problem
from server.floor import Floor
from server.journey.charges import charges_of, wish_of
from server.journey.query import Prepared
from server.journey.value_stage import Told
from server.pricing import Priced
from server.question import Question
from server.spends import cost_on

__all__ = ["Learned", "first_priced", "said_before", "sums_refused"]


@dataclass(frozen=True, slots=True)
class Learned:
    """What a first charge bought: histograms of values, and those of norms by the name of their core."""

    values: tuple[Told, ...]
    norms: Mapping[str, tuple[ReleasedTable, NormSource]]


def first_priced(prepared: Prepared, default: Priced, path: Sequence[Account]) -> tuple[Priced, tuple[CoreCharge, ...]]:
    """The price of the histograms alone at the default spend, and what the ledger is asked.

    They are a run of their own here, so they take as much as a run must (server/floor.py). Errors: ValueError for noise
    out of range.
    """
    price, floor = default.price, Floor.of(prepared.plan.dataset, path[-1])
    while True:
        calibrated = prepared.calibrations.get(prepared.priced, price)
        charges = charges_of(prepared, replace(default, price=price, calibration=calibrated.calibration))
        charges = charges[len(prepared.cores) :]
        loss = compose([event for charge in charges for event in charge.events])
        missing = floor.missing(loss)
        if missing <= 1:
            break
        price = replace(price, amount=price.amount * Fraction(math.ceil(missing * 1001), 1000))
    cost = cost_on(path[0], loss)
    admitted = all(account.admits(loss) for account in path)
    return replace(
        default, price=price, calibration=calibrated.calibration, loss=loss, cost=cost, epsilon=cost, admitted=admitted
    ), charges


def said_before(question: Question, dataset: Dataset, leaf: Account, first: str) -> Finding:
    """What an estimate says of the two charges; `first` is the epsilon of the histograms."""
    most = decimal_text(min(wish_of(question).most(dataset), leaf.limit.epsilon), places=6)
    return Finding(
        code="two_charges",
        what="this accuracy is two charges",
        why=f"The first one, epsilon {first}, buys histograms from which the value bounds and the norm of the units "
        "follow. These say what the width costs: the second charge, of at most epsilon "
        f"{most}. Where the width would cost more, the question is refused, and only the first charge stays.",
        instead=(
            'limit the second charge: "accuracy": {"at_most": "..."} (or --at-most E)',
            "declare value bounds and contribution bounds, or name them in the question: they save the first charge",
        ),
    )


def sums_refused(problem: Problem) -> Problem:
    """The refusal of the second charge, which says that the first one stays."""
    finding = problem.finding
    return Problem(
        finding.code,
        what=finding.what,
        why=f"{finding.why} The histograms that say so were charged and are stored, so an estimate of the same "
        "question knows its price now; the sums were neither charged nor read.",
        instead=finding.instead,
        position=finding.position,
        charged=True,
        extra=problem.extra,
    )
