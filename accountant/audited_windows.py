"""What an audit knows of the windows of accounts while it reads the entries, and what does not agree there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from accountant.calendar import number_at
from accountant.entry import Amounts, Entry, read_shares
from accountant.filter import Branches, FilterKind
from accountant.rows import AccountState
from accountant.window import Turn, View, Window
from privacy.values import Json

__all__ = ["AuditedWindows"]

Find: TypeAlias = Callable[[str, object, str], None]


class AuditedWindows:
    """The window of each account, as its entries make it. `find` notes what does not agree."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._rules: dict[str, Window] = {}
        self._turns: dict[str, Turn] = {}

    def granted(self, entry: Entry, details: Mapping[str, Json]) -> None:
        """The window that an account was opened with."""
        if details.get("window") is not None:
            self._set(entry, details["window"])

    def changed(self, entry: Entry, details: Mapping[str, Json]) -> None:
        """Another window, or none."""
        rule = self._rules.get(entry.account)
        if details.get("from") != (None if rule is None else rule.json()):
            self._find("wrong_window", entry.sequence, "the window that it changes was another one")
        if details.get("to") is not None:
            return self._set(entry, details["to"])
        self._rules.pop(entry.account, None)
        self._turns.pop(entry.account, None)
        return None

    def _set(self, entry: Entry, said: Json) -> None:
        before, turn = self._rules.get(entry.account), self._turns.get(entry.account)
        try:
            if not isinstance(said, dict):
                raise TypeError("no window")
            rule = Window.read(said)
        except (ValueError, TypeError, KeyError):
            self._find("wrong_window", entry.sequence, "the window is none that an account can have")
            return
        self._rules[entry.account] = rule
        if turn is None or before is None or before.kind is not rule.kind:
            self._turns[entry.account] = Turn(number_at(rule.kind, entry.created), entry.account_sequence)

    def charged(self, entry: Entry, spent: Amounts, branches: Branches, kind: str, shares: Mapping[str, int]) -> None:
        """A charge of an account that had spent so much, at the moment of its entry: its window let it through."""
        rule, turn = self._rules.get(entry.account), self._turns.get(entry.account)
        if rule is None or turn is None:
            return
        view = View.of(rule, turn, entry.created, FilterKind(kind), read_shares(shares))
        if (
            min(entry.amounts) < 0
            or min(spent) < 0
            or not view.admits(spent.plus(entry.amounts).sums(), entry.amounts.sums(), branches)
        ):
            self._find("over_window", entry.sequence, "its window did not admit this charge at that moment")

    def moved(self, entry: Entry, charge: int | None) -> None:
        """Amounts of an entry, which takes back an earlier one of the account where `charge` is its number."""
        rule, turn = self._rules.get(entry.account), self._turns.get(entry.account)
        if rule is None or turn is None:
            return
        if charge is None:
            number = number_at(rule.kind, entry.created)
            self._turns[entry.account] = turn.at(number, entry.account_sequence).plus(entry.amounts)
        elif charge >= turn.since and min(turn.plus(entry.amounts).spent) >= 0:
            self._turns[entry.account] = turn.plus(entry.amounts)

    def account(self, state: AccountState) -> None:
        """One account's row against its entries."""
        if state.window != self._rules.get(state.id) or state.turn != self._turns.get(state.id):
            self._find("wrong_window", state.id, "the window, or what was spent in it, is not that of the entries")

    def mark(self, account: str) -> dict[str, Json] | None:
        """What is known of an account's window, to go on from."""
        rule, turn = self._rules.get(account), self._turns.get(account)
        return None if rule is None or turn is None else {"rule": rule.json(), "turn": turn.text()}

    def resume(self, account: str, mark: Mapping[str, Json]) -> None:
        """Goes on from a mark. Errors: ValueError, TypeError, KeyError for what is none."""
        rule = mark["rule"]
        assert isinstance(rule, dict)
        self._rules[account], self._turns[account] = Window.read(rule), Turn.read(str(mark["turn"]))
