"""The price of a resource: what would be charged on the accounts of a moment, and how it is said."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account
from accountant.request import CoreCharge, Reuse
from privacy.composition import compose
from privacy.events import Event
from privacy.loss import Loss
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.values import Json
from server.journey.wire_amounts import own_json, share_text
from server.journey.wire_estimate import Verdict
from server.spends import cost_on

__all__ = ["Offer", "price_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The charge of a resource, worked out on accounts as they were: its events, and who pays.

    `path` leads from the paying account to the root; `noise` names the noise, for the ledger's description. `beside` is
    charged with it, unless stored releases serve it by `reuse`: `fresh` are its events that none of them serves by now.
    """

    dataset: Dataset
    path: tuple[Account, ...]
    events: tuple[Event, ...]
    noise: str
    beside: tuple[CoreCharge, ...] = ()
    fresh: tuple[Event, ...] = ()
    reuse: Reuse = Reuse.NONE

    @property
    def account(self) -> Account:
        """The account that pays."""
        return self.path[0]

    @property
    def loss(self) -> Loss:
        """What all events cost together."""
        return compose((*self.events, *self.fresh))

    @property
    def cost(self) -> Fraction:
        """How much less of the paying account would remain: the most that is charged where it is agreed to."""
        return cost_on(self.account, self.loss)

    @property
    def verdict(self) -> Verdict:
        """What an estimate says of it."""
        admitted = all(account.admits(self.loss) for account in self.path)
        return Verdict.AFFORDABLE if admitted else Verdict.REJECTED_BUDGET

    def price(self) -> dict[str, Json]:
        """What is agreed, in both senses, as an estimate of a query says it."""
        return price_json(self.account, self.cost, (*self.events, *self.fresh), self.dataset)

    def price_text(self) -> str:
        """The same, as it is stored."""
        return json.dumps(self.price())


def price_json(account: Account, cost: Fraction, events: tuple[Event, ...], dataset: Dataset) -> dict[str, Json]:
    """An agreed price: `epsilon` of the account, which is charged, and what the events promise by themselves."""
    own: dict[str, Json] = dict(own_json(events, account, dataset))
    return {
        "budget": account.id,
        "epsilon": decimal_text(cost, places=12),
        "delta": decimal_text(sum((event.loss().delta for event in events), Fraction(0))),
        "share": share_text(cost, account),
        "own": own,
    }
