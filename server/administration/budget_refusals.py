"""Why a budget was not opened or changed: the refusals that `refusal.py` describes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account, Limit
from privacy.numbers import decimal_text
from server.administration.refusal import Absent, Refusal

__all__ = [
    "AmbiguousAccount",
    "ChangedBudget",
    "DeltaNeeded",
    "DeltaOfPure",
    "FilterFixed",
    "FrozenAccount",
    "NoAccount",
    "NoParent",
    "NoRoot",
    "ReasonNeeded",
    "SecondAccount",
    "SecondRoot",
    "SharesFixed",
    "SharesOfPure",
    "SmallWindow",
    "UnsuitableBudget",
    "UnsuitableLimit",
    "UnsuitableWindow",
    "whose",
]


def whose(account: Account) -> str:
    """Whom an account is for, in words."""
    if account.parent is None:
        return "the root (all analysts together)"
    return f'"{account.principal}"' if account.principal is not None else f'the group "{account.name}"'


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
    """The dataset has a root account, its own or that of its unit space."""

    dataset: str
    shared: str | None = None
    """The unit space, where the root was opened for another dataset of it."""

    what = 'could not open the account: dataset "{it.dataset}" has a root account{it.where}'
    why = "A second root would double what may be disclosed about the same people."
    instead = "Change its limit: <change_root>"

    @property
    def where(self) -> str:
        """Whose root it is, where it is not the dataset's own."""
        return "" if self.shared is None else f', that of unit space "{self.shared}"'


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
class SharesFixed(Refusal):
    """The account divides its delta otherwise, or has none to divide."""

    account: Account

    what = "could not change account {it.account.id}: its delta is divided for good"
    why = "How delta is divided is chosen once: chosen after an answer, the account would promise less than its limit."
    instead = "Leave <delta_shares> away. Another division needs another account."


@dataclass(frozen=True, slots=True)
class SharesOfPure(Refusal):
    """Shares of delta for an account that has none."""

    code = "invalid_request"
    usage = True
    what = "<delta_shares> is not accepted"
    why = "A pure account has no delta to divide."
    instead = "Leave it away,\nor choose <approximate>."


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

    what = "could not change account {it.account}: it is frozen, or has ended"
    why = "An administrator or its lender stopped it, or it was a second account of one principal below one parent."
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


@dataclass(frozen=True, slots=True)
class UnsuitableWindow(Refusal):
    """The ledger does not take this window; `rule` is the one that it breaks."""

    account: str
    rule: str

    code = "invalid_request"
    usage = True
    what = "could not set the window of account {it.account}"
    why = "{it.rule}. Nothing was changed."
    instead = "See: <windows>"


@dataclass(frozen=True, slots=True)
class SmallWindow(Refusal):
    """What one window brings holds no answer that reads rows; epsilon of the account, and of the root."""

    account: str
    brings: Fraction
    least: Fraction

    code = "invalid_request"
    usage = True
    what = "could not set the window: one window is too small for any answer"
    why = "It brings epsilon {it.part}; an answer that reads rows takes at least {it.floor} of the root (epsilon_min)."
    instead = "Choose fewer slices, longer windows or a larger amount."

    @property
    def part(self) -> str:
        """What one window brings."""
        return decimal_text(self.brings, places=12, up=False)

    @property
    def floor(self) -> str:
        """The least price."""
        return decimal_text(self.least, places=12)
