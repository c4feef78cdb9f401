"""Why a budget request was not made or decided: the refusals that `refusal.py` describes."""

from __future__ import annotations

from dataclasses import dataclass

from server.administration.refusal import Absent, Refusal

__all__ = [
    "ChangedRequest",
    "CoveredAlready",
    "DecidedBefore",
    "LimitMissing",
    "NoOwnAccount",
    "NotYours",
    "RaisedSince",
    "ReasonMissing",
    "SeveralAccounts",
    "TooManyRequests",
    "WindowShort",
]


class NoOwnAccount(Absent):
    """The account is not one of the caller's that pays for the dataset."""

    thing = "budget"
    what = "there is no such budget of yours"
    why = "A request is for a budget of your own, of the dataset that it names."
    instead = "GET /v1/budgets lists yours."


@dataclass(frozen=True, slots=True)
class SeveralAccounts(Refusal):
    """The caller has several accounts of the dataset, and named none."""

    accounts: tuple[str, ...]

    code = "invalid_request"
    usage = True
    what = "it is not clear which budget is meant"
    why = "You have several of this dataset: {it.listed}."
    instead = "Name the one whose limit shall be another one."

    @property
    def listed(self) -> str:
        """Their identifiers."""
        return ", ".join(self.accounts)


@dataclass(frozen=True, slots=True)
class LimitMissing(Refusal):
    """No limit was asked for, and there is no question that says what is missing."""

    code = "invalid_request"
    usage = True
    what = "the request names no limit"
    why = "Without a question that your budget does not cover, nobody can compute what is missing."
    instead = "Name the whole limit that you would like, or the question that is too expensive."


@dataclass(frozen=True, slots=True)
class WindowShort(Refusal):
    """The window of the account is short of the question, and its limit is not what would have to grow."""

    what = "the window of your budget is what does not cover the question"
    why = "A greater limit opens a part of itself in each window, or nothing, so what it lacks is not computed."
    instead = (
        "Wait for the next window: your budget says when it begins, and what may be spent then.\n"
        "Ask an administrator for another window, or name the limit that you would like."
    )


@dataclass(frozen=True, slots=True)
class CoveredAlready(Refusal):
    """The account has what is asked for. `above` says that an account above it is what is short."""

    above: bool

    what = "your own budget is enough for that"
    why = "{it.said}"
    instead = "Ask the question, or name a greater limit."

    @property
    def said(self) -> str:
        """What is short, if anything is."""
        if self.above:
            return "What does not cover the question is the budget that you share with others, which no request raises."
        return "Its limit is not below the one that is asked for, or it covers the question."


@dataclass(frozen=True, slots=True)
class TooManyRequests(Refusal):
    """The principal has as many open requests as one may have."""

    most: int

    what = "too many requests of yours are open"
    why = "At most {it.most} wait for a decision at a time."
    instead = "Withdraw one that you no longer need."


@dataclass(frozen=True, slots=True)
class NotYours(Refusal):
    """The caller may see the request, and this decision is somebody else's. `own` says that it asked itself."""

    own: bool

    code = "forbidden"
    what = "this decision is not yours to make"
    why = "{it.said}"
    instead = "Ask an administrator, or an owner who has a budget of the dataset."

    @property
    def said(self) -> str:
        """Whose it is."""
        if self.own:
            return "Nobody approves or rejects a request of their own; you may withdraw it."
        return "Only who asked withdraws a request."


@dataclass(frozen=True, slots=True)
class DecidedBefore(Refusal):
    """The request is not open any more."""

    state: str

    what = "the request is {it.state} already"
    why = "A request is decided once. Nothing was changed now."
    instead = "Read it again. A limit can be changed without a request too."


@dataclass(frozen=True, slots=True)
class ChangedRequest(DecidedBefore):
    """As `DecidedBefore`, where the caller named the state that it had read."""

    code = "precondition_failed"


@dataclass(frozen=True, slots=True)
class RaisedSince(Refusal):
    """The account's limit is greater in a part than what would be given."""

    account: str

    what = "could not approve: the limit of account {it.account} is greater by now"
    why = "What was asked for would lower it. Nothing was changed."
    instead = "Approve with the whole limit that it shall have, or reject the request."


@dataclass(frozen=True, slots=True)
class ReasonMissing(Refusal):
    """A request is rejected without a reason."""

    code = "invalid_request"
    usage = True
    what = "the reason is missing"
    why = "Who asked reads why a request was rejected."
    instead = "Say why, in one sentence."
