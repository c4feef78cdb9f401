"""Why a proposal of an administrator was not made, or not confirmed."""

from __future__ import annotations

from dataclasses import dataclass

from server.administration.refusal import Absent, Refusal

__all__ = [
    "AboveCap",
    "NeedsTwo",
    "NoProposal",
    "NobodyProposes",
    "NotBehind",
    "OthersConfirm",
    "OwnProposal",
    "ProposalOver",
]


@dataclass(frozen=True, slots=True)
class NoProposal(Absent):
    """There is no proposal of that identifier."""

    thing = "proposal"
    what = "there is no such proposal"
    why = "No administrator made one of that identifier."
    instead = "See: <proposals>"


@dataclass(frozen=True, slots=True)
class ProposalOver(Refusal):
    """The proposal was decided, or its time is over."""

    what = "this proposal is decided, or its time is over"
    why = "A proposal is decided once, within a week. Nothing was changed now."
    instead = "See what became of it: <proposals>"


@dataclass(frozen=True, slots=True)
class OwnProposal(Refusal):
    """Who proposed does not decide. `alone` says that there is no other administrator."""

    alone: bool

    code = "forbidden"
    what = "this decision is another administrator's to make"
    why = "It takes two: one proposes, and another one confirms or rejects. Who proposed may withdraw."
    instead = "{it.advice}"

    @property
    def advice(self) -> str:
        """What to do."""
        if self.alone:
            return "You are the only one: confirm on the server's machine, noisegate proposal confirm ID --local"
        return "Ask another administrator."


@dataclass(frozen=True, slots=True)
class OthersConfirm(Refusal):
    """There is another administrator, who confirms instead of the server's machine."""

    other: str

    code = "forbidden"
    what = "another administrator has to confirm this"
    why = "The server's machine confirms only where there is no administrator but the proposer."
    instead = 'Ask "{it.other}" to confirm it with a key of their own.'


@dataclass(frozen=True, slots=True)
class NobodyProposes(Refusal):
    """Who proposed is no enabled administrator any more."""

    proposer: str

    what = "whoever proposed this is no administrator any more"
    why = 'It takes two administrators, and "{it.proposer}" is none now.'
    instead = "Propose it again."


@dataclass(frozen=True, slots=True)
class AboveCap(Refusal):
    """The adjustment is greater than the settings allow."""

    epsilon: str
    delta: str

    code = "invalid_request"
    usage = True
    what = "the adjustment is too large"
    why = (
        "One adjustment changes a limit by at most epsilon {it.epsilon} (adjust_max_epsilon) "
        "and delta {it.delta} (adjust_max_delta)."
    )
    instead = "Propose a smaller one."


@dataclass(frozen=True, slots=True)
class NotBehind(Refusal):
    """There is nothing to accept, or the wrong file is open."""

    what = "there is nothing to acknowledge"
    why = "The ledger is not behind its high-water mark, or its file was exchanged while it was open."
    instead = "See: noisegate audit"


@dataclass(frozen=True, slots=True)
class NeedsTwo(Refusal):
    """A limit above every one before, by one administrator alone, where the settings want two."""

    account: str

    code = "forbidden"
    what = "this limit takes two administrators"
    why = "It is above every limit that the account had, and raises_need_two is set."
    instead = "Propose it: <adjust>"
