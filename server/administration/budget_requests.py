"""Budget requests: somebody asks for a limit and says for which question; somebody else decides, once.

A request holds what its author may know: the question, what it would cost, and what is missing of the author's own
account. No true value and no other account is in it. Approval changes the limit, or opens the account, in the
transaction that ends the request, with an entry that names it, who approved and why.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_UP, Context
from fractions import Fraction

from accountant.account import Account
from accountant.filter import FilterKind
from accountant.ledger import Ledger, new_account_id
from privacy.numbers import decimal_text
from privacy.values import Json
from server.administration.budgets import AskedFor, Budgets, ChangeBudget, OpenBudget, require_reason, root_of
from server.administration.refusal import ActRefused
from server.administration.request_refusals import (
    ChangedRequest,
    CoveredAlready,
    DecidedBefore,
    LimitMissing,
    NoOwnAccount,
    NotYours,
    RaisedSince,
    ReasonMissing,
    SeveralAccounts,
    TooManyRequests,
    WindowShort,
)
from server.roles import Role
from server.sealing import Seal, SealBroken
from server.store.budget_requests import BudgetRequestRow, RequestState
from server.store.errors import RequestDecided
from server.store.outbox import Notice
from server.store.registry import Registry
from server.store.transactions import iso
from server.webhooks.events import EventType, event_body

__all__ = ["REQUESTS_MAX", "AskBudget", "BudgetRequests", "Decide", "request_body", "request_tag"]

REQUESTS_MAX = 20
"""Most open requests of a principal."""

_KEPT = ("verdict", "price", "noise", "remaining", "policy_version", "data_version")
"""What is kept of an estimate: what the asker was told of the price, and of the account that would pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskBudget:
    """A limit that somebody asks for; what is None follows from the estimate of the question.

    `question` is the body of the question and `estimate` that of its estimate.
    """

    principal: str
    dataset: str
    reason: str = field(repr=False)
    account: str | None = None
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    question: Mapping[str, object] | None = field(default=None, repr=False)
    estimate: Mapping[str, object] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """What a request shall be. Without a limit it is the one that was asked for; `expected` is the tag it had."""

    state: RequestState
    actor: str
    role: Role
    reason: str | None = None
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    expected: str | None = None


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True, slots=True)
class BudgetRequests:
    """The requests of a server. Safe to use from many threads. Every method raises ActRefused."""

    ledger: Ledger
    registry: Registry
    budgets: Budgets
    seal: Seal
    now: Callable[[], datetime.datetime] = _now

    def ask(self, asked: AskBudget) -> BudgetRequestRow:
        """Stores a request, and tells those who may decide it.

        For a dataset of which the asker has no account nothing is looked up: whether there is one stays unsaid.
        Refused: NoOwnAccount, SeveralAccounts, LimitMissing, CoveredAlready, WindowShort, TooManyRequests,
        UnsuitableLimit.
        """
        require_reason(asked.reason, asked.account or "")
        account = self._own_account(asked)
        estimate = None if asked.estimate is None else _kept(asked.estimate)
        epsilon, delta = _limit_asked(asked, account, estimate)
        identifier = f"br_{secrets.token_hex(12)}"
        said = {"question": asked.question, "estimate": estimate, "reason": asked.reason}
        row = BudgetRequestRow(
            id=identifier,
            principal=asked.principal,
            dataset=asked.dataset,
            account=None if account is None else account.id,
            epsilon=decimal_text(epsilon),
            delta=decimal_text(delta),
            sealed=self.seal.encrypted(json.dumps(said).encode(), bound_to=identifier),
        )
        told: dict[str, object] = {
            "request": row.id,
            "dataset": row.dataset,
            "principal": row.principal,
            "limit": {"epsilon": row.epsilon, "delta": row.delta},
            "missing": None if estimate is None else estimate["missing"],
        }
        stored = self.registry.add_request(row, self._notice(row, EventType.REQUEST_WAITING, told), most=REQUESTS_MAX)
        if stored is None:
            raise ActRefused(TooManyRequests(REQUESTS_MAX))
        return stored

    def decide(self, row: BudgetRequestRow, wanted: Decide) -> BudgetRequestRow:
        """Withdraws, rejects or approves a request that the actor may see.

        Refused: NotYours, ReasonMissing, DecidedBefore, ChangedRequest, RaisedSince; as `Budgets.open` and `change`.
        """
        own = row.principal == wanted.actor
        if own != (wanted.state is RequestState.WITHDRAWN) or wanted.role not in (Role.ADMIN, Role.OWNER, Role.ANALYST):
            raise ActRefused(NotYours(own))
        if wanted.expected not in (None, "*", request_tag(row)):
            raise ActRefused(ChangedRequest(row.state.value))
        if row.state is not RequestState.OPEN:
            raise ActRefused(DecidedBefore(row.state.value))
        if wanted.state is RequestState.REJECTED and wanted.reason is None:
            raise ActRefused(ReasonMissing())
        if wanted.reason is not None:
            require_reason(wanted.reason, row.account or "")
        decided = replace(row, state=wanted.state, decider=wanted.actor, reason=wanted.reason)
        try:
            if wanted.state is RequestState.APPROVED:
                self._approve(decided, wanted)
            else:
                notice = None if own else self._decided(decided)
                self.registry.decide_request(decided, notice)
        except (RequestDecided, ActRefused) as refused:
            # What another approval has changed already may be met before the request that it decided.
            now = self.registry.request(row.id) or row
            if isinstance(refused, ActRefused) and now.state is RequestState.OPEN:
                raise
            raise ActRefused(DecidedBefore(now.state.value)) from None
        return self.registry.request(row.id) or decided

    def content(self, row: BudgetRequestRow) -> Mapping[str, Json]:
        """Question, estimate and reason; none of them where they cannot be read."""
        try:
            said = json.loads(self.seal.decrypted(row.sealed, bound_to=row.id))
        except SealBroken:
            return {}
        return said if isinstance(said, dict) else {}

    def _approve(self, row: BudgetRequestRow, wanted: Decide) -> None:
        reason = wanted.reason or f"request {row.id}"
        epsilon = Fraction(row.epsilon) if wanted.epsilon is None else wanted.epsilon
        delta = Fraction(row.delta) if wanted.delta is None else wanted.delta
        row = replace(row, epsilon=decimal_text(epsilon), delta=decimal_text(delta))
        if row.account is None:
            root = root_of(self.budgets.accounts_of(row.dataset))
            row = replace(row, account=new_account_id())
            opened = OpenBudget(
                dataset=row.dataset,
                epsilon=epsilon,
                delta=delta or None,
                filter=FilterKind.APPROXIMATE if root is None else root.filter,
                principal=row.principal,
            )
            self.budgets.open(opened, actor=wanted.actor, asked=self._asked_for(row))
            return
        account = self.ledger.account(row.account)
        lower = epsilon < account.limit.epsilon or delta < account.limit.delta
        if lower and wanted.epsilon is None:
            raise ActRefused(RaisedSince(account.id))
        change = ChangeBudget(
            account=account.id,
            epsilon=epsilon,
            delta=delta or None,
            reason=reason,
            expected=f"{account.id}-{account.revision}",
        )
        self.budgets.change(change, actor=wanted.actor, asked=self._asked_for(row))

    def _asked_for(self, row: BudgetRequestRow) -> AskedFor:
        assert row.account is not None
        beside = self.registry.decision(row, self._decided(row))
        return AskedFor(request=row.id, beside=beside, account=row.account)

    def _decided(self, row: BudgetRequestRow) -> Notice:
        told: dict[str, object] = {
            "request": row.id,
            "dataset": row.dataset,
            "state": row.state.value,
            "limit": {"epsilon": row.epsilon, "delta": row.delta},
            "reason": row.reason,
        }
        return self._notice(row, EventType.REQUEST_DECIDED, told)

    def _notice(self, row: BudgetRequestRow, kind: EventType, told: Mapping[str, object]) -> Notice:
        body = event_body(kind, at=iso(self.now()), data=told)
        return Notice(principal=row.principal, event=kind, subject=row.id, body=body)

    def _own_account(self, asked: AskBudget) -> Account | None:
        """The account whose limit is meant; None where the asker has none that pays."""
        own = [
            account
            for account in self.ledger.accounts(dataset=asked.dataset, principal=asked.principal)
            if not account.frozen and account.expires is None and account.parent is not None
        ]
        if asked.account is not None:
            own = [account for account in own if account.id == asked.account]
            if not own:
                raise ActRefused(NoOwnAccount())
        elif asked.estimate is not None:
            own = [account for account in own if account.id == _paying(asked.estimate)] or own
        if len(own) > 1:
            raise ActRefused(SeveralAccounts(tuple(account.id for account in own)))
        return own[0] if own else None


def _paying(estimate: Mapping[str, object]) -> object:
    """The account that an estimate is about."""
    price = estimate.get("price")
    return price.get("budget") if isinstance(price, Mapping) else None


def _kept(estimate: Mapping[str, object]) -> dict[str, Json]:
    """What is kept of an estimate, with what is missing of the account that would pay."""
    kept: dict[str, Json] = json.loads(json.dumps({name: estimate.get(name) for name in _KEPT}))
    price, remaining = kept["price"], kept["remaining"]
    assert isinstance(price, dict)
    assert isinstance(remaining, dict)
    missing = {
        name: decimal_text(max(Fraction(str(price[name])) - Fraction(str(remaining[name])), Fraction(0)))
        for name in ("epsilon", "delta")
    }
    return {**kept, "missing": dict(missing)}


def _limit_asked(
    asked: AskBudget, account: Account | None, estimate: Mapping[str, Json] | None
) -> tuple[Fraction, Fraction]:
    """The whole limit that is asked for: as it was named, or the present one and what the question lacks."""
    if asked.epsilon is not None:
        pure = account is not None and account.filter is FilterKind.PURE
        given = Fraction(0) if pure or account is None else account.limit.delta
        delta = given if asked.delta is None else asked.delta
        if account is not None and asked.epsilon <= account.limit.epsilon and delta <= account.limit.delta:
            raise ActRefused(CoveredAlready(above=False))
        return asked.epsilon, delta
    if account is None or estimate is None or _paying(estimate) != account.id:
        raise ActRefused(LimitMissing())
    missing = estimate["missing"]
    assert isinstance(missing, dict)
    lacks = {name: Fraction(str(missing[name])) for name in ("epsilon", "delta")}
    if not any(lacks.values()):
        raise ActRefused(CoveredAlready(above=estimate["verdict"] == "rejected_budget"))
    if (lacks["epsilon"] and account.remaining_epsilon() < account.lifetime_epsilon()) or (
        lacks["delta"] and account.remaining_delta() < account.lifetime_delta()
    ):
        raise ActRefused(WindowShort())
    # The budgets of all branches grow at least as the limit does, so what lacks in the nominal is enough. Of the
    # delta that showing groups takes, an account has its share only.
    part = Fraction(100, max(account.shares.groups, 1))
    return (
        account.limit.epsilon if not lacks["epsilon"] else _up(account.limit.epsilon + lacks["epsilon"]),
        account.limit.delta if not lacks["delta"] else _up(account.limit.delta + lacks["delta"] * part),
    )


def _up(value: Fraction) -> Fraction:
    """The next number of three digits."""
    return Fraction(Context(prec=3, rounding=ROUND_UP).divide(value.numerator, value.denominator))


def request_tag(row: BudgetRequestRow) -> str:
    """The tag of what is decided about a request."""
    return f"{row.id}-{row.state}"


def request_body(row: BudgetRequestRow, content: Mapping[str, Json]) -> dict[str, object]:
    """A request as JSON."""
    decision = {"at": row.decided, "by": row.decider, "reason": row.reason}
    return {
        "id": row.id,
        "dataset": row.dataset,
        "principal": row.principal,
        "budget": row.account,
        "state": row.state.value,
        "limit": {"epsilon": row.epsilon, "delta": row.delta},
        "reason": content.get("reason"),
        "question": content.get("question"),
        "estimate": content.get("estimate"),
        "created": row.created,
        "decision": None if row.decided is None else decision,
        "links": {
            "self": f"/v1/budget-requests/{row.id}",
            "budget": None if row.account is None else f"/v1/budgets/{row.account}",
        },
    }
