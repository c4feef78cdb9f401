"""Why an administrative act was not carried out: facts, without words for a screen.

    ActRefused     carries one `Refusal`; nothing was changed

`server.routes.refusals` turns a refusal into a problem document and `server.cli.refusals` into a message with an exit
code. Both match on the union, so a type checker finds the one that forgets a member.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accountant.account import Account, Limit
    from privacy.refusal import Finding
    from server.roles import Role

__all__ = [
    "Absent",
    "ActRefused",
    "AmbiguousAccount",
    "BudgetRefusal",
    "ChangedBudget",
    "ChangedDataset",
    "DatasetRefusal",
    "DeltaNeeded",
    "DeltaOfPure",
    "DisabledPrincipal",
    "FaultyDataset",
    "FilterFixed",
    "FrozenAccount",
    "KeyUsed",
    "LastAdmin",
    "NameInUse",
    "NoAccount",
    "NoDataset",
    "NoKey",
    "NoParent",
    "NoPrincipal",
    "NoRoot",
    "OnceRefusal",
    "OtherDatasetName",
    "OtherRole",
    "OutcomeUnknown",
    "PeopleRefusal",
    "ReasonNeeded",
    "Refusal",
    "SecondAccount",
    "SecondRoot",
    "ServedAlready",
    "StoredVersion",
    "UnsuitableBudget",
    "UnsuitableKey",
    "UnsuitableLimit",
    "UnsuitablePrincipal",
]

# What is not there


@dataclass(frozen=True, slots=True)
class NoDataset:
    """No dataset of that name is served; `known` are the ones that are."""

    name: str
    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoPrincipal:
    """There is no principal of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class NoKey:
    """There is no key of that identifier."""

    id: str


@dataclass(frozen=True, slots=True)
class NoAccount:
    """There is no such account; of that dataset, where one was named."""

    account: str
    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class NoParent:
    """The account to open the new one below is not one of the dataset's."""

    account: str
    dataset: str


# Budgets


@dataclass(frozen=True, slots=True)
class NoRoot:
    """A principal's account was asked for before the dataset's root, which bounds all of them; `limit` was asked."""

    dataset: str
    limit: Limit


@dataclass(frozen=True, slots=True)
class SecondRoot:
    """The dataset has a root account."""

    dataset: str


@dataclass(frozen=True, slots=True)
class SecondAccount:
    """The principal has `account` below the same parent."""

    account: str


@dataclass(frozen=True, slots=True)
class AmbiguousAccount:
    """The principal has several accounts of the dataset, and none was named."""

    dataset: str
    principal: str
    accounts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeltaOfPure:
    """A pure account has no delta."""


@dataclass(frozen=True, slots=True)
class DeltaNeeded:
    """An approximate account needs a delta above zero. `given` says whether a zero was given."""

    given: bool


@dataclass(frozen=True, slots=True)
class FilterFixed:
    """The account has another filter, which is chosen once."""

    account: Account


@dataclass(frozen=True, slots=True)
class ReasonNeeded:
    """The account has another limit, and no reason to change it was given."""

    account: Account


@dataclass(frozen=True, slots=True)
class FrozenAccount:
    """The account pays for nothing more, so its limit stays."""

    account: str


@dataclass(frozen=True, slots=True)
class ChangedBudget:
    """The account's limit is not the one that the change was made for."""

    account: str


@dataclass(frozen=True, slots=True)
class UnsuitableBudget:
    """The ledger does not open this account; `why` is the rule that it breaks."""

    dataset: str
    why: str


@dataclass(frozen=True, slots=True)
class UnsuitableLimit:
    """The ledger does not take this limit or reason; `why` is the rule that it breaks."""

    account: str
    why: str


# People


@dataclass(frozen=True, slots=True)
class NameInUse:
    """There is a principal of this name. Names are kept forever."""

    name: str


@dataclass(frozen=True, slots=True)
class OtherRole:
    """The principal has `role`, and a key of the role `wanted` was asked for."""

    name: str
    role: Role
    wanted: Role


@dataclass(frozen=True, slots=True)
class DisabledPrincipal:
    """The principal is disabled: a key of it would not work."""

    name: str


@dataclass(frozen=True, slots=True)
class LastAdmin:
    """Without this principal nobody could administrate."""


@dataclass(frozen=True, slots=True)
class UnsuitablePrincipal:
    """The name or the role is not allowed; `why` is the rule that it breaks."""

    why: str


@dataclass(frozen=True, slots=True)
class UnsuitableKey:
    """The label, the life or one more key is not allowed; `why` is the rule that it breaks."""

    why: str


# Datasets


@dataclass(frozen=True, slots=True)
class FaultyDataset:
    """The dataset file or its data contradict themselves; every finding at once, at least one."""

    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        assert self.findings, "a refusal says why"


@dataclass(frozen=True, slots=True)
class ServedAlready:
    """A new dataset was to be attached, and one of this name is served, at the version `tag`."""

    name: str
    tag: str | None


@dataclass(frozen=True, slots=True)
class ChangedDataset:
    """What is served is not the version that was to be replaced."""

    name: str


@dataclass(frozen=True, slots=True)
class OtherDatasetName:
    """The file describes a dataset of another name than the one that was to be replaced."""


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """This version of the dataset is stored with other contents, and versions never change."""


# Acts that are carried out once


@dataclass(frozen=True, slots=True)
class KeyUsed:
    """The idempotency key was used before for another request."""


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """The request was begun before under this key, and nobody knows what became of it."""


Absent = NoDataset | NoPrincipal | NoKey | NoAccount | NoParent
BudgetRefusal = (
    NoRoot
    | SecondRoot
    | SecondAccount
    | AmbiguousAccount
    | DeltaOfPure
    | DeltaNeeded
    | FilterFixed
    | ReasonNeeded
    | FrozenAccount
    | ChangedBudget
    | UnsuitableBudget
    | UnsuitableLimit
)
PeopleRefusal = NameInUse | OtherRole | DisabledPrincipal | LastAdmin | UnsuitablePrincipal | UnsuitableKey
DatasetRefusal = FaultyDataset | ServedAlready | ChangedDataset | OtherDatasetName | StoredVersion
OnceRefusal = KeyUsed | OutcomeUnknown
Refusal = Absent | BudgetRefusal | PeopleRefusal | DatasetRefusal | OnceRefusal
"""Every reason. A new one is a type checker's error where it has no words yet."""


class ActRefused(Exception):
    """An administrative act that was not carried out, with the reason as facts."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(type(refusal).__name__)
