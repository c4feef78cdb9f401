"""Amounts of epsilon and delta as decimal text, as answers and estimates state them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from accountant.account import Account, FilterKind
from privacy.events import Event
from privacy.numbers import decimal_text
from privacy.own import own_figure
from privacy.policy import Dataset
from server.pricing import own_deltas

__all__ = ["epsilon_text", "own_json", "remaining_json", "share_text", "stated_epsilon"]


def own_json(events: Sequence[Event], account: Account, dataset: Dataset) -> dict[str, str]:
    """What the events reveal about one unit, taken alone: epsilon and delta."""
    own = own_figure(events, **own_deltas(account, dataset))
    return {"epsilon": epsilon_text(own.epsilon, account), "delta": decimal_text(own.delta)}


def share_text(cost: Fraction, account: Account) -> str:
    """The part of the account's limit, from 0 to 1: exact or rounded up."""
    return decimal_text(cost / account.limit.epsilon, places=9)


def remaining_json(account: Account) -> dict[str, str]:
    """What remains on an account, rounded down."""
    return {
        "epsilon": epsilon_text(account.remaining_epsilon(), account, up=False),
        "delta": decimal_text(account.remaining_delta(), up=False),
    }


def epsilon_text(value: Fraction, account: Account, *, up: bool = True) -> str:
    """Epsilon as text: exact of a pure account, in millionths of an approximate one, where it is a gauge.

    A share of a Gaussian budget has digits that nobody can use; what is spent is rounded up, what is left down.
    """
    places = 12 if account.filter is FilterKind.PURE else 6
    if up and places == 6 and value < Fraction(1, 10**4):
        places = 12
    return decimal_text(value, places=places, up=up)


def stated_epsilon(value: Fraction, account: Account) -> Fraction:
    """What is spent, as it is stated: at least the value."""
    return Fraction(epsilon_text(value, account))
