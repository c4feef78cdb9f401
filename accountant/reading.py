"""Reading what another account paid for: which release serves, and which of the reader's accounts are charged.

Every account that paid for a release has it in its transcript: those from the payer up to the root. They are the common
ancestors' part of the reader's path; the accounts below them do not, and are charged for it like for an answer of
their own (filter.md, "Reading what another account paid for"). After that they have paid as well.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from accountant.direct import Direct
from accountant.entry import canonical_json
from accountant.filter import Sums
from accountant.rows import AccountState, Candidate, CandidateRow
from accountant.statements import Statements
from privacy.composition import compose
from privacy.events import event_from_json
from privacy.loss import Loss
from privacy.numbers import PICO

__all__ = ["Read", "choose_candidate", "load_made", "loss_of", "paid_for"]


@dataclass(frozen=True, slots=True)
class Read:
    """One core that is served by somebody else's release, and the accounts that are charged for it, root first."""

    core_key: str
    release: str
    release_key: str
    """The core key under which the release is stored: it may be another one that serves."""
    accounts: tuple[str, ...]
    loss: Loss
    stored: str
    """As an entry's details keep it."""


@lru_cache(maxsize=1024)
def loss_of(events: str) -> Loss:
    """The loss of a release's events, recomputed from them."""
    return compose([event_from_json(event) for event in json.loads(events)])


def load_made(direct: Direct, statements: Statements, found: Sequence[CandidateRow]) -> dict[str, CandidateRow]:
    """These releases and all that they were measured in addition to, by their identifiers."""
    made: dict[str, CandidateRow] = {}
    rows = list(found)
    while rows:
        made.update((row.id, row) for row in rows)
        missing = {row.base for row in rows if row.base is not None} - made.keys()
        wanted = statements.ids([base for base in missing if base is not None])
        rows = direct.read(CandidateRow, statements.paid, wanted) if missing else []
    return made


def paid_for(
    release: str,
    *,
    measured: Mapping[str, Collection[str]],
    bases: Mapping[str, str | None],
    readings: Mapping[str, Collection[str]],
) -> frozenset[str]:
    """The accounts that paid for all that a release is made of.

    `measured` are the accounts that its own measurement was charged to, `bases` the release that it was measured in
    addition to, `readings` the accounts that were charged for reading the whole; each by release. People read their own
    base from any of their accounts, so the path that paid for the difference may never have paid for the base.
    """
    chain = [release]
    while (base := bases.get(chain[-1])) is not None and base not in chain:
        chain.append(base)
    paid = frozenset(measured.get(chain[-1], ()))
    for one in reversed(chain):
        paid = (paid & frozenset(measured.get(one, ()))) | frozenset(readings.get(one, ()))
    return paid


def choose_candidate(
    candidates: Sequence[Candidate],
    path: Sequence[AccountState],
    *,
    core_key: str,
    fresh: Loss,
    readings: Mapping[str, Collection[str]],
    now: int,
) -> Read | None:
    """The first candidate that costs the reader no more than a fresh answer would, and that their accounts admit.

    `path` is the reader's, root first; `fresh` the loss of the core if it were measured anew; `readings` are the
    accounts of the path that were charged for a release before, by release; `now` is the ledger's time. None when no
    candidate will do: a better release than was asked for, more expensive than was agreed, is never sold unasked.
    """
    leaf = path[-1]
    limit = leaf.account(now).cost(fresh) + PICO if leaf.admits(Sums.of(fresh), now) else None
    for candidate in candidates:
        already = candidate.paid | set(readings.get(candidate.id, ()))
        unpaid = [account for account in path if account.id not in already]
        loss = loss_of(candidate.events)
        if any(not account.admits(Sums.of(loss), now) for account in unpaid):
            continue
        if leaf in unpaid and (limit is None or leaf.account(now).cost(loss) > limit):
            continue
        details = {
            "core_key": candidate.core_key,
            "events": json.loads(candidate.events),
            "release": candidate.id,
        }
        return Read(
            core_key,
            candidate.id,
            candidate.core_key,
            tuple(account.id for account in unpaid),
            loss,
            canonical_json(details),
        )
    return None
