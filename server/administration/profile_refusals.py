"""Why a profile of data was not made: the refusals that `refusal.py` describes."""

from __future__ import annotations

from dataclasses import dataclass

from privacy.refusal import Finding
from server.administration.refusal import Refusal

__all__ = [
    "ProfileFailed",
    "ProfileRunning",
    "ProfiledAlready",
    "RootNeeded",
    "UnaffordableProfile",
    "UnpricedProfile",
]


@dataclass(frozen=True, slots=True)
class RootNeeded(Refusal):
    """The dataset has no root account, which a profile is charged on."""

    dataset: str

    what = 'could not profile dataset "{it.dataset}": it has no root account'
    why = "A profile is charged on the root, which bounds what all analysts learn together."
    instead = "Open it first: <open_root_of>"


@dataclass(frozen=True, slots=True)
class ProfiledAlready(Refusal):
    """This version of the data has a profile, made on a day, for this epsilon of the root."""

    dataset: str
    data_version: str
    made: str
    epsilon: str

    what = 'could not profile dataset "{it.dataset}": this version of its data has a profile'
    why = (
        "It was made on {it.made} for epsilon {it.epsilon} of the root, of data version {it.data_version}. "
        "A second one would say the same for another charge."
    )
    instead = "Read it: <describe>\nA new version of the data can be profiled again."


@dataclass(frozen=True, slots=True)
class ProfileRunning(Refusal):
    """A profile of this version of the data is being made."""

    dataset: str

    what = 'could not profile dataset "{it.dataset}": a profile of it is being made'
    why = "It has not ended yet. If its process died, it ends by itself within a minute, and stays charged."
    instead = "Wait, then look: <describe>"


@dataclass(frozen=True, slots=True)
class UnpricedProfile(Refusal):
    """The profile has no price that the policy and the root allow; every finding, at least one, with its own words."""

    dataset: str
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        assert self.findings, "a refusal says why"


@dataclass(frozen=True, slots=True)
class UnaffordableProfile(Refusal):
    """The root has not enough left for a profile of this price."""

    dataset: str
    epsilon: str
    left: str

    code = "budget_exhausted"
    what = 'could not profile dataset "{it.dataset}": its root account cannot pay for it'
    why = "The profile takes epsilon {it.epsilon} of the root, of which epsilon {it.left} is left. Nothing was charged."
    instead = "Spend less: <less>\nRaise the limit of the root: <change_root_of>"


@dataclass(frozen=True, slots=True)
class ProfileFailed(Refusal):
    """The profile could not be made. `charged` says whether the root paid: nobody knows what was read."""

    dataset: str
    charged: bool

    code = "execution_failed"
    what = 'could not profile dataset "{it.dataset}"'
    why = "{it.fate}"
    instead = "Ask for it again, which is a new charge.\nThe operator finds more in the log."

    @property
    def fate(self) -> str:
        """What became of the charge."""
        if self.charged:
            return "It was started and gave nothing. It stays charged on the root: nobody knows how far it came."
        return "The engine could not start. Nothing was charged."
