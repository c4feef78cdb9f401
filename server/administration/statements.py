"""Statements of budgets: the lifetime's loss beside the window's, what unlocks when, and where the pace leads to."""

from __future__ import annotations

import datetime
from fractions import Fraction

from accountant.account import Account
from accountant.calendar import begin_of
from accountant.entry import from_micros
from accountant.filter import least_share
from accountant.window import View
from privacy.numbers import ATTO, decimal_text

__all__ = ["lifetime_body", "projection_body", "window_body"]

_YEAR = 365
_DAY = datetime.timedelta(days=1)
_FURTHEST = 100 * _YEAR


def _epsilon(value: Fraction, *, up: bool = True) -> str:
    return decimal_text(max(value, Fraction(0)), places=12, up=up)


def lifetime_body(account: Account) -> dict[str, object]:
    """What the account has lost of its limit since it was opened, and what is left of it, whatever its window says."""
    lost = account.limit.epsilon - account.lifetime_epsilon()
    return {
        "loss": {"epsilon": _epsilon(lost), "delta": decimal_text(account.spent.delta * ATTO)},
        "remaining": {
            "epsilon": _epsilon(account.lifetime_epsilon(), up=False),
            "delta": decimal_text(account.lifetime_delta(), up=False),
        },
    }


def window_body(account: Account) -> dict[str, object] | None:
    """The account's window now: its rule, what was lost in it, what may still be spent, and when it turns. None: none.

    A function of the account and the clock.
    """
    view = account.window
    if view is None:
        return None
    rule, turn = view.rule, view.next_turn()
    lost = account.limit.epsilon * Fraction(*least_share(view.spent, account.branches))
    unlocked = None if rule.slices is None else rule.unlocked(view.number)
    return {
        "slices": None,
        "limit": None,
        **rule.json(),
        "begins": _day(begin_of(rule.kind, view.number)),
        "ends": _day(begin_of(rule.kind, view.number + 1)),
        "unlocked": unlocked,
        "loss": {"epsilon": _epsilon(lost), "delta": decimal_text(view.spent.delta * ATTO)},
        "remaining": {
            "epsilon": _epsilon(account.remaining_epsilon(), up=False),
            "delta": decimal_text(account.remaining_delta(), up=False),
        },
        "next": None if turn is None else {"at": _day(turn), "epsilon": _brings(account, view)},
    }


def _brings(account: Account, view: View) -> str:
    """The epsilon that the next window brings: one slice, or the window's own amount."""
    rule = view.rule
    one = rule.limit.epsilon if rule.limit is not None else account.limit.epsilon / (rule.slices or 1)
    return _epsilon(one, up=False)


def projection_body(account: Account) -> dict[str, object]:
    """Where the pace until now leads to in a year, at most to the limit, and the day on which nothing would be left.

    The pace is what was lost of the limit by the days since the account was opened, begun ones counted: no more is
    known of it here. A window can slow it and never makes it faster.
    """
    days = max((account.read_at.date() - account.created.date()).days + 1, 1)
    lost = account.limit.epsilon - account.lifetime_epsilon()
    left = account.lifetime_epsilon()
    pace = lost / days
    runs_out = None if pace == 0 else int(left / pace)
    return {
        "in_a_year": _epsilon(min(account.limit.epsilon, lost + pace * _YEAR)),
        "exhausted_on": None
        if runs_out is None or runs_out > _FURTHEST
        else (account.read_at + runs_out * _DAY).date().isoformat(),
        "grounds": {"days": days, "loss": _epsilon(lost)},
    }


def _day(micros: int) -> str:
    return from_micros(micros).isoformat()
