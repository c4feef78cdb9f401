"""Budgets: opening accounts of the ledger and changing their limits. The ledger records who did it, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction

from accountant.account import Account, DeltaShares, FilterKind, Limit
from accountant.beside import Beside
from accountant.errors import AccountChanged, AccountExists, AccountExpired, AccountFrozen, UnknownAccount
from accountant.filter import DEFAULT_SHARES
from accountant.ledger import Ledger, new_account_id
from accountant.window import WindowWish
from privacy.numbers import decimal_text
from server.administration.budget_refusals import (
    AmbiguousAccount,
    ChangedBudget,
    DeltaNeeded,
    DeltaOfPure,
    FilterFixed,
    FrozenAccount,
    NoAccount,
    NoParent,
    NoRoot,
    ReasonNeeded,
    SecondAccount,
    SecondRoot,
    SharesFixed,
    SharesOfPure,
    UnsuitableBudget,
    UnsuitableLimit,
)
from server.administration.proposal_refusals import NeedsTwo
from server.administration.refusal import ActRefused, NoDataset, NoPrincipal
from server.administration.statements import lifetime_body, projection_body, window_body
from server.administration.window_worth import require_worth
from server.store.registry import Registry

__all__ = [
    "ANY",
    "REASON_MAX",
    "AskedFor",
    "BudgetSet",
    "Budgets",
    "ChangeBudget",
    "OpenBudget",
    "Outcome",
    "SetBudget",
    "account_body",
    "budget_tag",
    "require_reason",
    "root_of",
]

ANY = "*"
"""For `ChangeBudget.expected`: whatever the limit is."""

REASON_MAX = 500
"""Longest reason."""

_ROOT, _ANALYST = Limit(Fraction(20), Fraction(1, 10**5)), Limit(Fraction(10), Fraction(1, 10**6))
"""The limits of first accounts, where nobody has chosen others."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBudget:
    """A new account. Without principal and parent it is the dataset's root, which bounds everybody together.

    `delta` and `shares` are None where none were given. A principal without a parent is opened below the root.
    """

    dataset: str
    epsilon: Fraction
    delta: Fraction | None = None
    filter: FilterKind = FilterKind.APPROXIMATE
    shares: DeltaShares | None = None
    principal: str | None = None
    parent: str | None = None
    name: str | None = None
    window: WindowWish | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeBudget:
    """Another limit for an account.

    `expected` is the tag (`budget_tag`) of the account that the author has read; None and ANY mean any.
    """

    account: str
    epsilon: Fraction
    delta: Fraction | None
    reason: str
    expected: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetBudget:
    """A limit that an account shall have, whether it exists or not.

    `account` names one that exists. Otherwise it is the principal's (below `parent`, where that is given), or the root
    when there is neither. A parent without a principal always opens a new group. `reason` is needed for a change only.
    """

    dataset: str
    epsilon: Fraction
    delta: Fraction | None = None
    filter: FilterKind | None = None
    shares: DeltaShares | None = None
    principal: str | None = None
    parent: str | None = None
    account: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFor:
    """The budget request that an act grants: the entry names it, and `beside` stores its decision with the act.

    `account` is the identifier that an account which is opened for it gets.
    """

    request: str
    beside: Beside
    account: str


class Outcome(StrEnum):
    """What `Budgets.set` did."""

    OPENED = "opened"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class BudgetSet:
    """The account as it is now, and what was done for it."""

    account: Account
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Budgets:
    """The acts on budgets. `served` returns the names of the datasets that are served now.

    Every act raises ActRefused, or the ledger's own errors when it cannot be reached or is behind.
    """

    ledger: Ledger
    registry: Registry
    served: Callable[[], Iterable[str]]
    raises_need_two: bool = False
    """Whether one administrator alone raises no limit above those that the account had."""

    def open(self, request: OpenBudget, *, actor: str, asked: AskedFor | None = None) -> Account:
        """Opens an account and writes its grant. Errors: RequestDecided, of what was `asked`.

        Refused: DeltaOfPure, DeltaNeeded, SharesOfPure, NoDataset, NoPrincipal, NoParent, NoRoot, SecondRoot,
        SecondAccount, FrozenAccount (that above it), UnsuitableBudget, SmallWindow.
        """
        limit = _limit(request.epsilon, request.delta, request.filter, dataset=request.dataset)
        if request.shares is not None and request.filter is FilterKind.PURE:
            raise ActRefused(SharesOfPure())
        self.require_dataset(request.dataset)
        if request.principal is not None:
            self.require_principal(request.principal)
        parent = self._parent(request, limit)
        try:
            if request.window is not None:
                self._require_worth(request, request.window, limit, parent)
            return self.ledger.create_account(
                dataset=request.dataset,
                parent=parent,
                principal=request.principal,
                name=request.name or request.principal or ("root" if parent is None else "group"),
                limit=limit,
                filter=request.filter,
                shares=request.shares or DEFAULT_SHARES,
                space=self._space(request.dataset),
                window=request.window,
                actor=actor,
                id=new_account_id() if asked is None else asked.account,
                request=None if asked is None else asked.request,
                beside=None if asked is None else asked.beside,
            )
        except AccountExists as exists:
            raise ActRefused(SecondAccount(exists.account)) from None
        except (AccountFrozen, AccountExpired) as ended:
            raise ActRefused(FrozenAccount(ended.account)) from None
        except ValueError as error:
            raise ActRefused(UnsuitableBudget(request.dataset, str(error))) from None

    def _require_worth(self, request: OpenBudget, wish: WindowWish, limit: Limit, parent: str | None) -> None:
        opened = Account.opened(
            id="",
            dataset=request.dataset,
            parent=parent,
            principal=request.principal,
            name="",
            limit=limit,
            filter=request.filter,
            shares=request.shares or DEFAULT_SHARES,
            created=self.ledger.time(),
        )
        root = opened if parent is None else self.ledger.path(parent)[-1]
        require_worth(wish, opened, root, ledger=self.ledger, registry=self.registry)

    def change(self, request: ChangeBudget, *, actor: str, asked: AskedFor | None = None) -> Account:
        """Raises or lowers a limit, with an adjustment that names actor and reason. What was spent stays spent.

        Errors: RequestDecided, of what was `asked`.
        Refused: NoAccount, DeltaOfPure, DeltaNeeded, NeedsTwo, ChangedBudget, FrozenAccount, UnsuitableLimit.
        """
        try:
            account = self.ledger.account(request.account)
        except UnknownAccount:
            raise ActRefused(NoAccount(request.account)) from None
        limit = _limit(request.epsilon, request.delta, account.filter, dataset=account.dataset)
        require_reason(request.reason, account.id)
        higher = limit.epsilon > account.guarantee.epsilon or limit.delta > account.guarantee.delta
        if self.raises_need_two and higher:
            raise ActRefused(NeedsTwo(account.id))
        unconditional = request.expected in (None, ANY)
        if not unconditional and request.expected != budget_tag(account):
            raise ActRefused(ChangedBudget(account.id))
        expected = None if unconditional else account.revision
        try:
            return self.ledger.change_limit(
                account.id,
                limit,
                actor=actor,
                reason=request.reason,
                expected=expected,
                request=None if asked is None else asked.request,
                beside=None if asked is None else asked.beside,
            )
        except AccountChanged:
            raise ActRefused(ChangedBudget(account.id)) from None
        except AccountFrozen:
            raise ActRefused(FrozenAccount(account.id)) from None
        except ValueError as error:
            raise ActRefused(UnsuitableLimit(account.id, str(error))) from None

    def set(self, request: SetBudget, *, actor: str) -> BudgetSet:
        """Opens the account that is meant, or changes its limit; nothing when it has this limit.

        A change is made to the limit that was read here, and to no other.
        Refused: as `open` and `change`; NoAccount, AmbiguousAccount, FilterFixed, SharesFixed, ReasonNeeded.
        """
        found = self._find(request)
        if found is None:
            wanted = OpenBudget(
                dataset=request.dataset,
                epsilon=request.epsilon,
                delta=request.delta,
                filter=request.filter or FilterKind.APPROXIMATE,
                shares=request.shares,
                principal=request.principal,
                parent=request.parent,
            )
            return BudgetSet(self.open(wanted, actor=actor), Outcome.OPENED)
        if request.filter not in (None, found.filter):
            raise ActRefused(FilterFixed(found))
        if request.shares not in (None, found.shares) or (request.shares and found.filter is FilterKind.PURE):
            raise ActRefused(SharesFixed(found))
        limit = _limit(request.epsilon, request.delta, found.filter, dataset=found.dataset)
        if limit == found.limit:
            return BudgetSet(found, Outcome.UNCHANGED)
        if request.reason is None:
            raise ActRefused(ReasonNeeded(found))
        change = ChangeBudget(
            account=found.id,
            epsilon=request.epsilon,
            delta=request.delta,
            reason=request.reason,
            expected=budget_tag(found),
        )
        return BudgetSet(self.change(change, actor=actor), Outcome.CHANGED)

    def open_first(self, dataset: str, *, analyst: str, actor: str) -> None:
        """Opens the root of a dataset and an analyst's account below it, each only where there is none."""
        accounts = self.accounts_of(dataset)
        root = root_of(accounts)
        if root is None:
            root = self.open(OpenBudget(dataset=dataset, epsilon=_ROOT.epsilon, delta=_ROOT.delta), actor=actor)
        if any((account.principal, account.dataset) == (analyst, dataset) for account in accounts):
            return
        first = OpenBudget(
            dataset=dataset,
            epsilon=min(_ANALYST.epsilon, root.limit.epsilon),
            delta=None if root.filter is FilterKind.PURE else _ANALYST.delta,
            filter=root.filter,
            principal=analyst,
        )
        self.open(first, actor=actor)

    def require_dataset(self, name: str) -> None:
        """Refused: NoDataset unless a dataset of that name is served."""
        known = tuple(self.served())
        if name not in known:
            raise ActRefused(NoDataset(name, known))

    def require_principal(self, name: str) -> None:
        """Refused: NoPrincipal unless there is one of that name."""
        if self.registry.principal(name) is None:
            raise ActRefused(NoPrincipal(name))

    def _parent(self, request: OpenBudget, limit: Limit) -> str | None:
        """The account that the new one hangs below, None for a root."""
        existing = self.accounts_of(request.dataset)
        if request.parent is not None:
            if request.parent not in {account.id for account in existing}:
                raise ActRefused(NoParent(request.parent, request.dataset))
            return request.parent
        root = root_of(existing)
        if root is None and request.principal is not None:
            raise ActRefused(NoRoot(request.dataset, limit))
        if root is not None and request.principal is None:
            raise ActRefused(SecondRoot(request.dataset, None if root.dataset == request.dataset else root.space))
        return None if root is None else root.id

    def _space(self, dataset: str) -> str:
        """The unit space that the dataset declares."""
        declared = {version.name: version.unit_space for version in self.registry.datasets()}
        return declared.get(dataset, dataset)

    def accounts_of(self, dataset: str) -> list[Account]:
        """The accounts of the dataset's unit space, roots first."""
        return self.ledger.accounts(space=self._space(dataset))

    def _find(self, request: SetBudget) -> Account | None:
        """The account that is meant, None when it does not exist yet."""
        accounts = self.accounts_of(request.dataset)
        if request.account is not None:
            for account in accounts:
                if account.id == request.account:
                    return account
            raise ActRefused(NoAccount(request.account, request.dataset))
        if request.parent is not None and request.parent not in {account.id for account in accounts}:
            raise ActRefused(NoParent(request.parent, request.dataset))
        if request.principal is None:
            # A group without a principal is always a new one; an old one is changed by its identifier.
            return root_of(accounts) if request.parent is None else None
        own = [
            account
            for account in accounts
            if (account.principal, account.dataset) == (request.principal, request.dataset)
            and account.expires is None
            and account.parent is not None
            and request.parent in (None, account.parent)
            and not account.frozen
        ]
        if len(own) > 1:
            named = tuple(account.id for account in own)
            raise ActRefused(AmbiguousAccount(request.dataset, request.principal, named))
        return own[0] if own else None


def root_of(accounts: Iterable[Account]) -> Account | None:
    """The root among the accounts of one unit space."""
    return next((account for account in accounts if account.parent is None), None)


def budget_tag(account: Account) -> str:
    """The tag of what administrators decide about an account: spending does not change it."""
    return f"{account.id}-{account.revision}"


def account_body(account: Account) -> dict[str, object]:
    """An account as JSON: what routes and commands show in common."""
    return {
        "id": account.id,
        "dataset": account.dataset,
        "unit_space": account.space,
        "parent": account.parent,
        "principal": account.principal,
        "name": account.name,
        "filter": account.filter.value,
        "delta_shares": None if account.filter is FilterKind.PURE else asdict(account.shares),
        "limit": {"epsilon": decimal_text(account.limit.epsilon), "delta": decimal_text(account.limit.delta)},
        "used_share": decimal_text(min(account.used_share(), Fraction(1)), places=6),
        "remaining": {
            "epsilon": decimal_text(max(account.remaining_epsilon(), Fraction(0)), places=12, up=False),
            "delta": decimal_text(account.remaining_delta(), up=False),
        },
        "lifetime": lifetime_body(account),
        "window": window_body(account),
        "projection": projection_body(account),
        "frozen": account.frozen,
        "expires": None if account.expires is None else account.expires.isoformat(),
    }


def _limit(epsilon: Fraction, delta: Fraction | None, filter: FilterKind, *, dataset: str) -> Limit:
    """The limit, where its delta suits the filter."""
    if filter is FilterKind.PURE and delta:
        raise ActRefused(DeltaOfPure())
    if filter is FilterKind.APPROXIMATE and not delta:
        raise ActRefused(DeltaNeeded(given=delta is not None))
    try:
        return Limit(epsilon, delta or Fraction(0))
    except ValueError as error:
        raise ActRefused(UnsuitableBudget(dataset, str(error))) from None


def require_reason(reason: str, account: str) -> None:
    """Refused: UnsuitableLimit for what the ledger does not keep as a reason."""
    if not reason.strip() or len(reason) > REASON_MAX or _CONTROL.search(reason):
        why = f"a reason has between 1 and {REASON_MAX} characters, and no control characters"
        raise ActRefused(UnsuitableLimit(account, why))
