"""Why an administrative act was not carried out: facts, and the one table of words for them.

    ActRefused     carries one `Refusal`; nothing was changed

Each refusal is a class: its fields are facts, its constants what is said of them. In the words `{it.name}` stands for a
fact, and `<name>` for what HTTP and the command line call differently: a field or an option, a route or a command.
`server.routes.refusals` and `server.cli.refusals` name these, and say the words in their form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from accountant.account import Account, Limit
from privacy.numbers import decimal_text
from privacy.refusal import Finding
from privacy.wording import nearest
from server.roles import Role

__all__ = [
    "Absent",
    "ActRefused",
    "AmbiguousAccount",
    "ChangedBudget",
    "ChangedDataset",
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
    "OtherDatasetName",
    "OtherRole",
    "OutcomeUnknown",
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
    "whose",
]

_NAMED = re.compile(r"<(\w+)>")


class Refusal:
    """One reason. `code` is the code of its problem over HTTP; `usage` says that the command was written wrongly."""

    __slots__ = ()

    code: ClassVar[str] = "conflict"
    usage: ClassVar[bool] = False
    what: ClassVar[str]
    why: ClassVar[str]
    instead: ClassVar[str]  # one line of advice in each line

    def finding(self, names: Mapping[str, str]) -> Finding:
        """The words for it; `names` is what this side calls things, in which `{it.name}` stands for a fact too."""

        def said(words: str) -> str:
            # The names come first: what a fact says is text, whatever it holds.
            return _NAMED.sub(lambda match: names[match[1]], words).format(it=self)

        advice = filter(None, said(self.instead).splitlines())
        return Finding(self.code, said(self.what), said(self.why), tuple(advice))


class ActRefused(Exception):
    """An administrative act that was not carried out, with the reason."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(type(refusal).__name__)


def whose(account: Account) -> str:
    """Whom an account is for, in words."""
    if account.parent is None:
        return "the root (all analysts together)"
    return f'"{account.principal}"' if account.principal is not None else f'the group "{account.name}"'


# What is not there


class Absent(Refusal):
    """Something that is named and is not there. HTTP says no more than `thing`: it may belong to others."""

    __slots__ = ()

    code = "not_found"
    thing: ClassVar[str]


@dataclass(frozen=True, slots=True)
class NoDataset(Absent):
    """No dataset of that name is served; `known` are the ones that are."""

    name: str
    known: tuple[str, ...]

    thing = "dataset"
    what = 'there is no dataset "{it.name}"'
    why = "{it.attached}"
    instead = "{it.near}\nAttach one with: <attach>"

    @property
    def attached(self) -> str:
        """The datasets that are there."""
        return f"Attached are: {', '.join(self.known)}." if self.known else "No dataset is attached yet."

    @property
    def near(self) -> str:
        """The dataset that may be meant, or nothing."""
        near = nearest(self.name, self.known)
        return f'Did you mean "{near}"?' if near else ""


@dataclass(frozen=True, slots=True)
class NoPrincipal(Absent):
    """There is no principal of that name."""

    name: str

    thing = "principal"
    what = 'there is no principal "{it.name}"'
    why = "A budget belongs to somebody who can ask."
    instead = "Make it together with its key: <create_key>"


@dataclass(frozen=True, slots=True)
class NoKey(Absent):
    """There is no key of that identifier."""

    id: str

    thing = "key"
    what = "there is no {it.named}"
    why = "No key of this home has this identifier."
    instead = "See: <keys>"

    @property
    def named(self) -> str:
        """The key that was asked for. A secret that was pasted with a typo is not repeated."""
        return "such key" if self.id.startswith("ngk_") else f'key "{self.id}"'


@dataclass(frozen=True, slots=True)
class NoAccount(Absent):
    """There is no such account; of that dataset, where one was named."""

    account: str
    dataset: str | None = None

    thing = "budget"
    what = 'there is no account "{it.account}"{it.where}'
    why = "No account has this identifier."
    instead = "See: <budgets>"

    @property
    def where(self) -> str:
        """The dataset that was named, or nothing."""
        return "" if self.dataset is None else f' of dataset "{self.dataset}"'


@dataclass(frozen=True, slots=True)
class NoParent(Absent):
    """The account to open the new one below is not one of the dataset's."""

    account: str
    dataset: str

    thing = "parent budget of this dataset"
    what = 'there is no account "{it.account}" of dataset "{it.dataset}"'
    why = "The account above must belong to the same dataset."
    instead = "See: <budgets_of>"


# Budgets


@dataclass(frozen=True, slots=True)
class NoRoot(Refusal):
    """A principal's account was asked for before the dataset's root, which bounds all of them; `limit` was asked."""

    dataset: str
    limit: Limit

    what = 'could not open the account: dataset "{it.dataset}" has no root account yet'
    why = "Only the root bounds what all analysts learn together, so you choose it first."
    instead = (
        "Open it with a limit for everybody together (this one is for a single analyst), then repeat:\n<open_root>"
    )

    @property
    def epsilon(self) -> str:
        """The epsilon that was asked for."""
        return decimal_text(self.limit.epsilon)

    @property
    def delta(self) -> str:
        """The delta that was asked for."""
        return decimal_text(self.limit.delta)


@dataclass(frozen=True, slots=True)
class SecondRoot(Refusal):
    """The dataset has a root account."""

    dataset: str

    what = 'could not open the account: dataset "{it.dataset}" has a root account'
    why = "A second root would double what may be disclosed about the same people."
    instead = "Change its limit: <change_root>"


@dataclass(frozen=True, slots=True)
class SecondAccount(Refusal):
    """The principal has `account` below the same parent."""

    account: str

    what = "could not open the account: the principal has one below the same account"
    why = "A second one would be a second limit for the same person."
    instead = "Change its limit: <change_account>"


@dataclass(frozen=True, slots=True)
class AmbiguousAccount(Refusal):
    """The principal has several accounts of the dataset, and none was named."""

    dataset: str
    principal: str
    accounts: tuple[str, ...]

    what = '"{it.principal}" has {it.count} accounts of dataset "{it.dataset}"'
    why = "It is not clear which one is meant."
    instead = "Name one with <account>: {it.listed}"

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.accounts)

    @property
    def listed(self) -> str:
        """Their identifiers."""
        return ", ".join(self.accounts)


@dataclass(frozen=True, slots=True)
class DeltaOfPure(Refusal):
    """A pure account has no delta."""

    code = "invalid_request"
    usage = True
    what = "<delta> is not accepted"
    why = "A pure account has no delta."
    instead = "Leave it away,\nor choose <approximate>."


@dataclass(frozen=True, slots=True)
class DeltaNeeded(Refusal):
    """An approximate account needs a delta above zero. `given` says whether a zero was given."""

    given: bool

    code = "invalid_request"
    usage = True
    what = "<delta> is {it.fault}"
    why = "An approximate account needs a delta above zero: the chance that its limit of epsilon may fail."
    instead = (
        "Use a delta far below 1 divided by the number of people, for instance <small_delta>,\n"
        "or choose <pure> (no Gaussian noise, groups must have public keys)."
    )

    @property
    def fault(self) -> str:
        """What is wrong with it."""
        return "not accepted" if self.given else "missing"


@dataclass(frozen=True, slots=True)
class FilterFixed(Refusal):
    """The account has another filter, which is chosen once."""

    account: Account

    what = "could not change account {it.account.id}: its filter is {it.account.filter.value}"
    why = "How losses add up is chosen once: what was spent was counted that way."
    instead = "Leave <filter> away. Another filter needs another dataset."


@dataclass(frozen=True, slots=True)
class ReasonNeeded(Refusal):
    """The account has another limit, and no reason to change it was given."""

    account: Account

    code = "invalid_request"
    what = "account {it.account.id} exists with another limit"
    why = "{it.owner} of dataset {it.account.dataset} has {it.limit}. The ledger keeps why it changes."
    instead = "Repeat with: <reason>"

    @property
    def owner(self) -> str:
        """Whom it is for."""
        return whose(self.account)

    @property
    def limit(self) -> str:
        """The limit that it has."""
        epsilon, delta = decimal_text(self.account.limit.epsilon), decimal_text(self.account.limit.delta)
        return f"epsilon {epsilon}" + (f" and delta {delta}" if self.account.limit.delta else "")


@dataclass(frozen=True, slots=True)
class FrozenAccount(Refusal):
    """The account pays for nothing more, so its limit stays."""

    account: str

    what = "could not change account {it.account}: it is frozen"
    why = "It was a second account of one principal below one parent, and pays for nothing more."
    instead = "Change the one that pays: <change_other>"


@dataclass(frozen=True, slots=True)
class ChangedBudget(Refusal):
    """The account's limit is not the one that the change was made for."""

    account: str

    code = "precondition_failed"
    what = "could not change account {it.account}: its limit was changed since it was read"
    why = "The change was meant for the earlier limit. Nothing was changed now."
    instead = "<reread_account>"


@dataclass(frozen=True, slots=True)
class UnsuitableBudget(Refusal):
    """The ledger does not open this account; `rule` is the one that it breaks."""

    dataset: str
    rule: str

    what = "could not open the account"
    why = "{it.rule}."
    instead = "See: <budgets_of>"


@dataclass(frozen=True, slots=True)
class UnsuitableLimit(Refusal):
    """The ledger does not take this limit or reason; `rule` is the one that it breaks."""

    account: str
    rule: str

    usage = True
    what = "could not change the limit of account {it.account}"
    why = "{it.rule}."
    instead = "Give a reason: <reason>"


# People


@dataclass(frozen=True, slots=True)
class NameInUse(Refusal):
    """There is a principal of this name. Names are kept forever."""

    name: str

    what = 'there is a principal "{it.name}"'
    why = "Names are kept forever, also of disabled principals: the ledger refers to them."
    instead = "Choose another name."


@dataclass(frozen=True, slots=True)
class OtherRole(Refusal):
    """The principal has `role`, and a key of the role `wanted` was asked for."""

    name: str
    role: Role
    wanted: Role

    what = 'could not make the key: "{it.name}" is {it.role.value}, not {it.wanted.value}'
    why = "A principal has one role, and all its keys have that role."
    instead = "Leave <role> away,\nor choose another name for the other role."


@dataclass(frozen=True, slots=True)
class DisabledPrincipal(Refusal):
    """The principal is disabled: a key of it would not work."""

    name: str

    what = 'could not make the key: "{it.name}" is disabled'
    why = "Keys of a disabled principal do not work."
    instead = "Enable it first: PATCH /v1/principals/{it.name} with an administrator's key."


@dataclass(frozen=True, slots=True)
class LastAdmin(Refusal):
    """Without this principal nobody could administrate."""

    what = "the last administrator cannot be disabled or lose the role"
    why = "Nobody could administrate this server any more."
    instead = "Make another administrator first: <create_admin>"


@dataclass(frozen=True, slots=True)
class UnsuitablePrincipal(Refusal):
    """The name or the role is not allowed; `rule` is the one that it breaks."""

    rule: str

    usage = True
    what = "could not make the principal"
    why = "{it.rule}."
    instead = "Choose another name."


@dataclass(frozen=True, slots=True)
class UnsuitableKey(Refusal):
    """The label, the life or one more key is not allowed; `rule` is the one that it breaks."""

    rule: str

    usage = True
    what = "could not make the key"
    why = "{it.rule}."
    instead = "See: <keys>"


# Datasets


@dataclass(frozen=True, slots=True)
class FaultyDataset(Refusal):
    """The dataset file or its data contradict themselves; every finding at once, at least one, with its own words."""

    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        assert self.findings, "a refusal says why"


@dataclass(frozen=True, slots=True)
class ServedAlready(Refusal):
    """A new dataset was to be attached, and one of this name is served, at the version `tag`."""

    name: str
    tag: str | None

    what = 'could not attach: dataset "{it.name}" is served already'
    why = "It was to be a new one, and what is served is not replaced by accident."
    instead = "<replace_dataset>"


@dataclass(frozen=True, slots=True)
class ChangedDataset(Refusal):
    """What is served is not the version that was to be replaced."""

    name: str

    code = "precondition_failed"
    what = 'could not change dataset "{it.name}": another version was attached, or it was removed, since it was read'
    why = "The change was meant for what was served before. Nothing was changed now."
    instead = "<reread_dataset>"


@dataclass(frozen=True, slots=True)
class OtherDatasetName(Refusal):
    """The file describes a dataset of another name than the one that was to be replaced."""

    what = "could not attach: the file describes a dataset of another name"
    why = "It was to replace one of a certain name."
    instead = "Change the name in the file."


@dataclass(frozen=True, slots=True)
class StoredVersion(Refusal):
    """This version of the dataset is stored with other contents, and versions never change."""

    what = "could not attach: this version of the dataset is stored with other contents"
    why = "A version never changes: releases and charges refer to it."
    instead = "Give the changed dataset another name."


# Acts that are carried out once


@dataclass(frozen=True, slots=True)
class KeyUsed(Refusal):
    """The idempotency key was used before for another request."""

    code = "idempotency_conflict"
    usage = True
    what = "<idempotency_key> was used before for another <request>"
    why = "It stands for one <request>, with all that belongs to it."
    instead = "Choose a new one for a new <request>.\nThe same <request> has the outcome that it had."


@dataclass(frozen=True, slots=True)
class OutcomeUnknown(Refusal):
    """The request was begun before under this key, and nobody knows what became of it."""

    what = "this <request> was begun before under its <idempotency_key>, and its outcome is not known"
    why = "It is being carried out, or it was ended in the middle. It is not carried out a second time."
    instead = "Look at what there is now. Then do what is missing with a new <idempotency_key>."
