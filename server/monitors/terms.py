"""What a monitor was opened with, what is asked of it, and what it says: values, without the transport."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from fractions import Fraction

from mechanisms.measurement import SCALE_BITS
from mechanisms.sparse_vector import NumericSparse, SparseVector
from privacy.bounds import AskedContribution
from privacy.events.event import fraction_from_text, fraction_to_text
from privacy.numbers import dyadic_up

__all__ = ["Direction", "EvaluateMonitor", "Evaluated", "OpenMonitor", "Terms"]


class Direction(StrEnum):
    """When a monitor has passed its threshold."""

    ABOVE = "above"
    """The sum is at least the threshold."""

    BELOW = "below"
    """The sum is at most the threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenMonitor:
    """A monitor to open. `epsilon` is what its comparisons promise together, `answer_epsilon` what each answer does.

    `background`: whether the server evaluates it by itself, on each version of the data.
    """

    principal: str
    dataset: str
    sql: str = field(repr=False)
    threshold: Fraction = field(repr=False)
    direction: Direction
    epsilon: Fraction
    hits: int
    evaluations: int
    stream: bool
    answer_epsilon: Fraction | None
    account: str | None
    contribution: AskedContribution | None = None
    idempotency_key: str | None
    body_hash: str
    background: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateMonitor:
    """An evaluation: of the monitor's own question, or, of a stream, of another one."""

    sql: str | None = field(default=None, repr=False)
    threshold: Fraction | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for all evaluations of a monitor, as its owner and overseers may read it.

    `change`: the greatest change of a sum between neighbours, in units of `step`. `restores`: how often the ledger had
    been restored when the monitor was opened: a state from before a restore may have forgotten hits.
    """

    direction: Direction
    epsilon: Fraction
    hits: int
    evaluations: int
    stream: bool
    change: Fraction
    step: Fraction
    one_way: bool
    upwards: bool
    threshold_scale: Fraction
    query_scale: Fraction
    answer_scale: Fraction | None
    answer_epsilon: Fraction | None
    restores: int
    contribution: AskedContribution | None = None
    """The bounds of what counts of one unit that the monitor names for itself."""

    background: bool = False
    """Whether the server evaluates it by itself on each version of the data; not so those of earlier servers."""

    @property
    def sparse(self) -> SparseVector:
        """The session: its price and its noise."""
        return SparseVector(
            sensitivity=self.change,
            hits=self.hits,
            one_way=self.one_way,
            interactive=True,
            threshold_scale=self.threshold_scale,
            query_scale=self.query_scale,
        )

    @property
    def numeric(self) -> NumericSparse | None:
        """The session with the noise of its answers; None where hits are not answered."""
        return None if self.answer_scale is None else NumericSparse(sparse=self.sparse, answer_scale=self.answer_scale)

    @staticmethod
    def scale_of_answers(change: Fraction, epsilon: Fraction) -> Fraction:
        """The least noise with which one answer costs at most `epsilon`."""
        return dyadic_up(change / epsilon, bits=SCALE_BITS)

    def to_json(self) -> str:
        """As it is stored: fractions are exact texts."""
        return json.dumps(
            {name: fraction_to_text(v) if isinstance(v, Fraction) else v for name, v in asdict(self).items()}
        )

    @classmethod
    def from_json(cls, text: str) -> Terms:
        """Reads `to_json` back."""
        plain = json.loads(text)
        for name in _FRACTIONS:
            plain[name] = None if plain[name] is None else fraction_from_text(plain[name])
        bounds = plain["contribution"]
        asked = None if bounds is None else AskedContribution(**bounds)
        return cls(**(plain | {"direction": Direction(plain["direction"]), "contribution": asked}))


_FRACTIONS = (*("epsilon", "change", "step", "threshold_scale", "query_scale", "answer_scale", "answer_epsilon"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """What an evaluation says. `repeated`: it was made before, for the same version of the data, and is said again."""

    number: int
    version: str
    at: str
    outcome: str
    detail: dict[str, object]
    left: int
    repeated: bool
