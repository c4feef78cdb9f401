"""What accounts had spent at the beginnings of days, once it was computed: later, nothing can change it."""

from __future__ import annotations

import json

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from accountant.entry import Amounts
from server.store.tables import account_days
from server.store.transactions import Transactions

__all__ = ["AccountDays"]


class AccountDays(Transactions):
    """The rows of days. Thread-safe; every method is one transaction."""

    def account_day(self, account: str, day: str) -> tuple[str, Amounts] | None:
        """The first day from this one on of which it is known, and what had been spent then; None without one."""
        table = account_days
        chosen = select(table.c.day, table.c.amounts).where(table.c.account == account, table.c.day >= day)
        with self._engine.connect() as connection:
            found = connection.execute(chosen.order_by(table.c.day).limit(1)).one_or_none()
        return None if found is None else (found.day, Amounts(*json.loads(found.amounts)))

    def add_account_day(self, account: str, day: str, amounts: Amounts) -> None:
        """Remembers what an account had spent when a day began, unless that is known."""
        values = {"account": account, "day": day, "amounts": json.dumps(list(amounts))}
        try:
            with self._writing() as connection:
                connection.execute(insert(account_days).values(**values))
                connection.commit()
        except IntegrityError:
            # Another process knew the same.
            return
