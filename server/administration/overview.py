"""An administrator's questions about all accounts: who spent what, what runs out, what could still be asked.

What an account had spent when a day began is computed from its entries once and remembered: no later answer reads these
entries again, however long the ledger is. All figures are functions of plans, limits and the ledger.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account
from accountant.entry import Amounts, to_micros
from accountant.filter import least_share
from accountant.ledger import Ledger
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from server.store.registry import Registry
from server.weighing import next_error, questions_left

__all__ = ["Overview", "owner_of"]

_PACE_DAYS = 30
_DAYS_MAX = 3_650
"""What runs out later than this is not projected."""


def owner_of(account: Account, accounts: Mapping[str, Account]) -> str | None:
    """Whose an account is: its principal, or the nearest one above it; None of roots and of groups below them."""
    found: Account | None = account
    while found is not None and found.principal is None:
        found = accounts.get(found.parent or "")
    return None if found is None else found.principal


@dataclass(frozen=True, slots=True)
class Overview:
    """The questions. `dataset_of` is a dataset that is served now. Errors of every method: LedgerUnavailable."""

    ledger: Ledger
    registry: Registry
    dataset_of: Callable[[str], Dataset | None]

    def spending(self, month: datetime.date | None = None, *, dataset: str | None = None) -> dict[str, object]:
        """What each account spent in the month that begins so, the present one by default; the greatest share first.

        Shares and epsilon are those of the limit that the account has now.
        """
        today = self.ledger.time().date()
        begin = today.replace(day=1) if month is None else month
        end = (begin + datetime.timedelta(days=32)).replace(day=1)
        rows = []
        for account, accounts in self._accounts(dataset):
            before = self._share(account, self._spent_at(account.id, begin, today))
            after = account.used_share()
            if end <= today:
                after = self._share(account, self._spent_at(account.id, end, today))
            used = max(after - before, Fraction(0))
            rows.append((used, {**_named(account, accounts), **_used(account, used)}))
        return {"month": begin.isoformat()[:7], "budgets": _sorted(rows)}

    def running_out(self, *, within_days: int, dataset: str | None = None) -> dict[str, object]:
        """What will be used up within so many days at the pace of the last thirty, or nearly is; the soonest first."""
        now = self.ledger.time()
        today = now.date()
        begin = today - datetime.timedelta(days=_PACE_DAYS)
        rows = []
        for account, accounts in self._accounts(dataset):
            share = account.used_share()
            used = max(share - self._share(account, self._spent_at(account.id, begin, today)), Fraction(0))
            lived = Fraction((now - max(_midnight(begin), account.created)) / datetime.timedelta(days=1))
            pace = used / max(lived, Fraction(1))
            days = None if not pace else int(min((1 - share) / pace, Fraction(_DAYS_MAX)))
            soon = share >= Fraction(9, 10) or (days is not None and days <= within_days)
            if not soon or not _pays(account, now):
                continue
            projected = None if days in (None, _DAYS_MAX) else today + datetime.timedelta(days=days or 0)
            row = {
                **_named(account, accounts),
                "used_share": decimal_text(share, places=6),
                "pace": {"share_per_day": decimal_text(pace, places=6), "days": _PACE_DAYS},
                "projected": None if projected is None else projected.isoformat(),
            }
            rows.append((-Fraction(_DAYS_MAX if days is None else days), row))
        return {"within_days": within_days, "budgets": _sorted(rows)}

    def questions_left(self, *, dataset: str | None = None) -> dict[str, object]:
        """How many counts at the dataset's default spend each account could still ask, with all accounts above it."""
        now = self.ledger.time()
        rows = []
        for account, accounts in self._accounts(dataset):
            served = self.dataset_of(account.dataset)
            if served is None or not _pays(account, now) or owner_of(account, accounts) is None:
                continue
            path, default = _path(account, accounts), served.limits.epsilon_default
            left = questions_left(path, default)
            row = {
                **_named(account, accounts),
                "remaining": decimal_text(max(account.remaining_epsilon(), Fraction(0)), places=6, up=False),
                "default_epsilon": decimal_text(default),
                "questions_left": left,
                "standard_error": next_error(account, default),
            }
            rows.append((Fraction(max(left.values(), default=0)), row))
        return {"budgets": _sorted(rows)}

    def remember(self) -> None:
        """Remembers what every account had spent when this day began: once a day, so that later sums are short."""
        today = self.ledger.time().date()
        for account in self.ledger.accounts():
            self._spent_at(account.id, today, today)

    def _accounts(self, dataset: str | None) -> list[tuple[Account, Mapping[str, Account]]]:
        accounts = {account.id: account for account in self.ledger.accounts()}
        return [(account, accounts) for account in accounts.values() if dataset in (None, account.dataset)]

    def _spent_at(self, account: str, day: datetime.date, today: datetime.date) -> Amounts:
        """What had been spent when a day began that has begun."""
        known = self.registry.account_day(account, day.isoformat())
        begin = to_micros(_midnight(day))
        if known is None:
            spent = self.ledger.spent_before(account, begin)
        elif known[0] == day.isoformat():
            return known[1]
        else:
            later = to_micros(_midnight(datetime.date.fromisoformat(known[0])))
            spent = known[1].plus(self.ledger.moved(account, begin, later).reversed_sign())
        if day <= today:
            self.registry.add_account_day(account, day.isoformat(), spent)
        return spent

    @staticmethod
    def _share(account: Account, spent: Amounts) -> Fraction:
        return Fraction(*least_share(spent.sums(), account.branches))


def _pays(account: Account, now: datetime.datetime) -> bool:
    """Whether an account may pay at all: it is not frozen, and what was lent has not ended."""
    return not account.frozen and (account.expires is None or account.expires > now)


def _midnight(day: datetime.date) -> datetime.datetime:
    return datetime.datetime.combine(day, datetime.time(), datetime.UTC)


def _path(account: Account, accounts: Mapping[str, Account]) -> list[Account]:
    path = [account]
    while path[-1].parent is not None:
        path.append(accounts[path[-1].parent])
    return path


def _named(account: Account, accounts: Mapping[str, Account]) -> dict[str, object]:
    return {
        "budget": account.id,
        "dataset": account.dataset,
        "principal": owner_of(account, accounts),
        "name": account.name,
        "limit": {"epsilon": decimal_text(account.limit.epsilon), "delta": decimal_text(account.limit.delta)},
    }


def _used(account: Account, share: Fraction) -> dict[str, object]:
    return {
        "share": decimal_text(share, places=6),
        "epsilon": decimal_text(account.limit.epsilon * share, places=6),
    }


def _sorted(rows: Sequence[tuple[Fraction, dict[str, object]]]) -> list[dict[str, object]]:
    """The greatest first; of equal ones by their accounts."""
    return [row for _, row in sorted(rows, key=lambda item: (-item[0], str(item[1]["budget"])))]
