"""What takes two administrators: adjusting a limit, and accepting that a restored ledger has forgotten charges.

One proposes, with a reason, and another one confirms; nothing is done before. Where there is no other administrator,
the sole one confirms on the server's machine, and the ledger says so. An adjustment raises or lowers a *limit* by an
amount that the settings bound. What was spent is never lowered: a charge whose query may have run has been answered
from rows, or may have been, and the proof of the filter is about all that was admitted (accountant/filter.md). Only
the process that holds a query knows that its engine never started, and voids it then by itself; nobody else can.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.account import Account, Limit
from accountant.beside import Agreed
from accountant.entry import canonical_json, limit_json
from accountant.errors import AccountChanged, AccountFrozen, UnknownAccount
from accountant.ledger import Ledger
from privacy.numbers import decimal_text
from privacy.values import Json
from server.administration.budget_refusals import ChangedBudget, FrozenAccount, NoAccount, UnsuitableLimit
from server.administration.budgets import require_reason
from server.administration.proposal_refusals import (
    AboveCap,
    NobodyProposes,
    NoProposal,
    NotBehind,
    OthersConfirm,
    OwnProposal,
    ProposalOver,
)
from server.administration.refusal import ActRefused
from server.store.errors import ProposalDecided
from server.store.proposals import ProposalKind, ProposalRow, ProposalState
from server.store.registry import Registry

__all__ = ["DAYS", "Adjust", "Caps", "Proposals", "proposal_body"]

DAYS = 7
"""How long a proposal can be confirmed."""

LEDGER = "ledger"
"""The subject of a proposal that is about no single account."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most by which one adjustment may raise or lower a limit."""

    epsilon: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjust:
    """A change of an account's limit: by how much it is raised, or, below zero, lowered."""

    account: str
    epsilon: Fraction
    delta: Fraction
    reason: str


@dataclass(frozen=True, slots=True)
class Proposals:
    """The proposals of a server. Safe to use from many threads. Every method raises ActRefused."""

    ledger: Ledger
    registry: Registry
    caps: Caps

    def adjust(self, wanted: Adjust, *, actor: str) -> ProposalRow:
        """Proposes another limit. Refused: NoAccount, FrozenAccount, AboveCap, UnsuitableLimit."""
        account = self._account(wanted.account)
        require_reason(wanted.reason, account.id)
        if account.frozen:
            raise ActRefused(FrozenAccount(account.id))
        if abs(wanted.epsilon) > self.caps.epsilon or abs(wanted.delta) > self.caps.delta:
            raise ActRefused(AboveCap(decimal_text(self.caps.epsilon), decimal_text(self.caps.delta)))
        if not wanted.epsilon and not wanted.delta:
            raise ActRefused(UnsuitableLimit(account.id, "An adjustment changes something"))
        try:
            limit = Limit(account.limit.epsilon + wanted.epsilon, account.limit.delta + wanted.delta)
        except ValueError as error:
            raise ActRefused(UnsuitableLimit(account.id, str(error))) from None
        old, new = limit_json(account.limit), limit_json(limit)
        terms: dict[str, Json] = {"from": {**old}, "to": {**new}, "revision": account.revision}
        return self._propose(ProposalKind.ADJUST, account.id, canonical_json(terms), wanted.reason, actor)

    def acknowledge(self, reason: str, *, actor: str) -> ProposalRow:
        """Proposes to accept that the ledger has forgotten charges. Refused: NotBehind, UnsuitableLimit."""
        require_reason(reason, "")
        if not self.ledger.behind:
            raise ActRefused(NotBehind())
        return self._propose(ProposalKind.ACKNOWLEDGE, LEDGER, "{}", reason, actor)

    def confirm(self, proposal: str, *, actor: str, local: bool = False) -> ProposalRow:
        """Does what was proposed, in one transaction with the end of the proposal.

        `local`: on the server's machine, by whoever may use its files, where no administrator but the proposer is left.
        Refused: NoProposal, ProposalOver, OwnProposal, OthersConfirm, NobodyProposes; those of what is done.
        """
        row = self._open(proposal)
        administrators = set(self.registry.administrators())
        if local:
            if others := sorted(administrators - {row.proposer}):
                raise ActRefused(OthersConfirm(others[0]))
        elif actor == row.proposer:
            raise ActRefused(OwnProposal(alone=administrators == {actor}))
        elif row.proposer not in administrators:
            raise ActRefused(NobodyProposes(row.proposer))
        decided = replace(row, state=ProposalState.CONFIRMED, decider=actor)
        agreed = Agreed(row.id, row.proposer, local, self.registry.proposal_decision(decided))
        try:
            if row.kind is ProposalKind.ADJUST:
                self._adjust(row, agreed, actor=actor)
            else:
                self._acknowledge(row, agreed, actor=actor)
        except ProposalDecided:
            raise ActRefused(ProposalOver()) from None
        return self._found(proposal)

    def end(self, proposal: str, state: ProposalState, *, actor: str) -> ProposalRow:
        """Withdraws what the caller proposed, or rejects what another one did. Refused: NoProposal, ProposalOver."""
        row = self._open(proposal)
        own = ProposalState.WITHDRAWN if actor == row.proposer else ProposalState.REJECTED
        if state is not own:
            raise ActRefused(OwnProposal(alone=False))
        try:
            self.registry.decide_proposal(replace(row, state=state, decider=actor))
        except ProposalDecided:
            raise ActRefused(ProposalOver()) from None
        return self._found(proposal)

    def _propose(self, kind: ProposalKind, subject: str, terms: str, reason: str, actor: str) -> ProposalRow:
        row = ProposalRow(
            id=f"pr_{secrets.token_hex(12)}",
            kind=kind,
            subject=subject,
            terms=terms,
            reason=reason,
            proposer=actor,
        )
        return self.registry.add_proposal(row, days=DAYS)

    def _adjust(self, row: ProposalRow, agreed: Agreed, *, actor: str) -> None:
        terms = json.loads(row.terms)
        limit = Limit(Fraction(terms["to"]["epsilon"]), Fraction(terms["to"]["delta"]))
        try:
            self.ledger.change_limit(
                row.subject, limit, actor=actor, reason=row.reason, expected=terms["revision"], agreed=agreed
            )
        except AccountChanged:
            raise ActRefused(ChangedBudget(row.subject)) from None
        except AccountFrozen:
            raise ActRefused(FrozenAccount(row.subject)) from None
        except ValueError as error:
            raise ActRefused(UnsuitableLimit(row.subject, str(error))) from None

    def _acknowledge(self, row: ProposalRow, agreed: Agreed, *, actor: str) -> None:
        if not self.ledger.behind:
            raise ActRefused(NotBehind())
        try:
            self.ledger.acknowledge_restore(actor=actor, reason=row.reason, agreed=agreed)
        except ValueError:
            raise ActRefused(NotBehind()) from None

    def _account(self, identifier: str) -> Account:
        try:
            return self.ledger.account(identifier)
        except UnknownAccount:
            raise ActRefused(NoAccount(identifier)) from None

    def _found(self, proposal: str) -> ProposalRow:
        row = self.registry.proposal(proposal)
        if row is None:
            raise ActRefused(NoProposal())
        return row

    def _open(self, proposal: str) -> ProposalRow:
        row = self._found(proposal)
        if row.state is not ProposalState.OPEN:
            raise ActRefused(ProposalOver())
        return row


def proposal_body(row: ProposalRow) -> dict[str, object]:
    """A proposal as JSON: what routes and commands show in common."""
    terms = json.loads(row.terms)
    return {
        "id": row.id,
        "kind": row.kind.value,
        "budget": row.subject if row.kind is ProposalKind.ADJUST else None,
        "from": terms.get("from"),
        "to": terms.get("to"),
        "reason": row.reason,
        "proposed_by": row.proposer,
        "created": row.created,
        "expires": row.expires,
        "state": row.state.value,
        "decided": row.decided,
        "decided_by": row.decider,
        "links": {"self": f"/v1/proposals/{row.id}"},
    }
