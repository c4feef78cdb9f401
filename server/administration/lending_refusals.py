"""Why something was not lent or taken back: the refusals that `refusal.py` describes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privacy.numbers import decimal_text
from server.administration.refusal import Refusal

__all__ = ["AboveRemainder", "EndsTooLate", "NoLoan", "NotLendable", "StaysForGood", "TooManyLoans"]


@dataclass(frozen=True, slots=True)
class NotLendable(Refusal):
    """The account is nobody's own."""

    account: str

    what = "account {it.account} is not lent from"
    why = "People lend of what is their own; a root or a group is nobody's."
    instead = "Open a budget below it: <open_below>"


@dataclass(frozen=True, slots=True)
class AboveRemainder(Refusal):
    """More than the lender has."""

    account: str
    left: Fraction
    delta: Fraction

    what = "this is more than account {it.account} has"
    why = "What is lent is spent from it: epsilon {it.epsilon} is left, and its delta is {it.delta_text}."
    instead = "Lend at most as much."

    @property
    def epsilon(self) -> str:
        """What is left."""
        return decimal_text(self.left, places=12, up=False)

    @property
    def delta_text(self) -> str:
        """The account's delta."""
        return decimal_text(self.delta)


@dataclass(frozen=True, slots=True)
class EndsTooLate(Refusal):
    """The end is missing, over, or too far away; `rule` says which."""

    rule: str

    code = "invalid_request"
    what = "the end is not accepted"
    why = "{it.rule}."
    instead = "Name a day to come."


@dataclass(frozen=True, slots=True)
class TooManyLoans(Refusal):
    """The account has as many envelopes as it may."""

    account: str
    most: int
    ever: int

    what = "account {it.account} has as many envelopes as it may"
    why = "At most {it.most} that have not ended, and {it.ever} ever: each of them is kept for good."
    instead = "Take one back, or let an administrator open a budget: <open_below>"


@dataclass(frozen=True, slots=True)
class NoLoan(Refusal):
    """The account was not lent."""

    account: str

    what = "account {it.account} was not lent"
    why = "It is its owner's own: only an administrator stops it."
    instead = "See: <budgets>"


@dataclass(frozen=True, slots=True)
class StaysForGood(Refusal):
    """A root, or somebody's own account that was charged."""

    account: str

    what = "account {it.account} stays: it has a history"
    why = "Ended, it could be opened anew, with a whole limit for the same people."
    instead = "Stop its owner, or lower its limit: <change_account>"
