"""Windows: when an account may spend how much of its limit, by the calendar in UTC. Proof in `window.md`.

A window is a day, a week (from Monday), a month or a year. In mode `slices` the limit is divided into equal parts, one
of which unlocks when a window begins: what is spent is at no moment more than what is unlocked. In mode `reset` each
window has an amount of its own. The limit of the account bounds everything in both modes.

Moments are whole microseconds since 1970 in UTC, of the ledger's time. `calendar` numbers the windows of a kind.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

from accountant.calendar import (
    ACKNOWLEDGEMENT,
    SLICES_MAX,
    WindowKind,
    WindowMode,
    begin_of,
    begin_of_day,
    date_of,
    number_at,
)
from accountant.entry import ZERO, Amounts, canonical_json, limit_json
from accountant.filter import Branches, DeltaShares, FilterKind, Limit, Sums, fits, split_limit
from privacy.values import Json

__all__ = ["Turn", "View", "Window", "WindowWish", "read_window"]


def _date(moment: int) -> str:
    return date_of(moment).isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The rule of an account: `first` is the number of the window in which it begins.

    `slices` is the number of parts in mode `slices`, `limit` the amount of one window in mode `reset`.
    """

    kind: WindowKind
    mode: WindowMode
    first: int
    slices: int | None = None
    limit: Limit | None = None

    def json(self) -> dict[str, Json]:
        """As entries and the account's row keep it."""
        said: dict[str, Json] = {
            "kind": self.kind.value,
            "mode": self.mode.value,
            "first": _date(begin_of(self.kind, self.first)),
        }
        if self.limit is not None:
            return {**said, "limit": dict(limit_json(self.limit))}
        return {**said, "slices": self.slices}

    def text(self) -> str:
        """The same as canonical JSON."""
        return canonical_json(self.json())

    @classmethod
    def read(cls, said: Mapping[str, Json]) -> Self:
        """Reads `json` back. Errors: ValueError, TypeError, KeyError for what is none."""
        kind, mode = WindowKind(str(said["kind"])), WindowMode(str(said["mode"]))
        first = number_at(kind, begin_of_day(datetime.date.fromisoformat(str(said["first"]))))
        if mode is WindowMode.SLICES:
            slices = said["slices"]
            if not isinstance(slices, int) or not 2 <= slices <= SLICES_MAX or set(said) != _SLICED:
                raise ValueError("no slices")
            return cls(kind=kind, mode=mode, first=first, slices=slices)
        limit = said["limit"]
        if not isinstance(limit, Mapping) or set(said) != _RESET:
            raise ValueError("no limit of a window")
        amount = Limit(Fraction(str(limit["epsilon"])), Fraction(str(limit["delta"])))
        return cls(kind=kind, mode=mode, first=first, limit=amount)

    def unlocked(self, number: int) -> int:
        """How many slices are unlocked in the window of this number, from 0 to all."""
        assert self.slices is not None
        return min(max(number - self.first + 1, 0), self.slices)

    def turn_after(self, number: int) -> int | None:
        """When the next window after that of this number begins that brings something; None where none does."""
        following = max(number + 1, self.first)
        if self.slices is not None and following >= self.first + self.slices:
            return None
        return begin_of(self.kind, following)

    def turn_after_moment(self, moment: int) -> int | None:
        """The same of a moment: of the rule and a clock alone, whatever was charged."""
        return self.turn_after(number_at(self.kind, moment))

    def check(self, limit: Limit, filter: FilterKind, shares: DeltaShares) -> None:
        """Errors: ValueError where an account with this limit cannot have this window."""
        if self.slices is not None and split_limit(limit, filter, shares).pure < self.slices:
            raise ValueError("a slice of the limit is less than a pico of epsilon")
        if self.limit is not None:
            if self.limit.epsilon > limit.epsilon or self.limit.delta > limit.delta:
                raise ValueError("the amount of a window is more than the account's limit, which bounds all windows")
            split_limit(self.limit, filter, shares)


_SLICED = {"kind", "mode", "first", "slices"}
_RESET = {"kind", "mode", "first", "limit"}


@lru_cache(maxsize=1024)
def read_window(text: str) -> Window:
    """The rule that an account's row keeps."""
    return Window.read(json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowWish:
    """A window as it is asked for: `slices`, or the day on which the last of them ends (`ends` is not part of it).

    `starts` is any day of the first window, by default the ledger's own. `limit` is for mode `reset`.
    """

    kind: WindowKind
    mode: WindowMode = WindowMode.SLICES
    starts: datetime.date | None = None
    ends: datetime.date | None = None
    slices: int | None = None
    limit: Limit | None = None
    acknowledge: str | None = None

    def at(self, now: int) -> Window:
        """The rule, from this moment of the ledger on. Errors: ValueError for one that is reversed or empty."""
        first = number_at(self.kind, now if self.starts is None else begin_of_day(self.starts))
        if self.mode is WindowMode.RESET:
            if self.limit is None or self.slices is not None or self.ends is not None:
                raise ValueError('a window of mode "reset" has the limit of one window, and neither slices nor an end')
            if self.acknowledge != ACKNOWLEDGEMENT:
                raise ValueError(
                    'mode "reset" gives each window a new amount, and what windows reveal adds up: say so with '
                    f'"acknowledge": "{ACKNOWLEDGEMENT}"'
                )
            return Window(kind=self.kind, mode=self.mode, first=first, limit=self.limit)
        if self.limit is not None:
            raise ValueError('a window of mode "slices" divides the account\'s limit and has none of its own')
        if (self.slices is None) == (self.ends is None):
            raise ValueError('a window of mode "slices" has either a number of slices or an end')
        slices = self.slices
        if self.ends is not None:
            if begin_of_day(self.ends) <= (now if self.starts is None else begin_of_day(self.starts)):
                raise ValueError("the end of the windows is not after their start")
            slices = number_at(self.kind, begin_of_day(self.ends) - 1) - first + 1
        assert slices is not None
        if not 2 <= slices <= SLICES_MAX:
            raise ValueError(f"a limit has from 2 to {SLICES_MAX} slices; {slices} would be none")
        try:
            begin_of(self.kind, first + slices)
        except (ValueError, OverflowError):
            raise ValueError("the last window begins after the year 9999") from None
        return Window(kind=self.kind, mode=self.mode, first=first, slices=slices)


@dataclass(frozen=True, slots=True)
class Turn:
    """What was charged in one window: its number, from which entry of the account on, and the amounts.

    A charge is in it from its reserve on; a void takes back only what is in it.
    """

    number: int
    since: int
    spent: Amounts = ZERO

    def at(self, number: int, entry: int) -> Turn:
        """The same, or that of a later window, which begins with this entry of the account."""
        return self if number <= self.number else Turn(number, entry)

    def plus(self, amounts: Amounts) -> Turn:
        """With one more charge."""
        return replace(self, spent=self.spent.plus(amounts))

    def text(self) -> str:
        """As the account's row keeps it."""
        return canonical_json(self.json())

    def json(self) -> dict[str, Json]:
        """The same as JSON."""
        return {"number": self.number, "since": self.since, "spent": list(self.spent)}

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads `text` back. Errors: ValueError, TypeError, KeyError for what is none."""
        said = json.loads(text)
        return cls(int(said["number"]), int(said["since"]), Amounts(*map(int, said["spent"])))


@dataclass(frozen=True, slots=True)
class View:
    """An account's window at one moment: the rule, the number of the window, and what was charged in it.

    `branches` are the budgets of one window in mode `reset`.
    """

    rule: Window
    number: int
    spent: Sums
    branches: Branches | None = None

    @classmethod
    def of(cls, rule: Window, turn: Turn, now: int, filter: FilterKind, shares: DeltaShares) -> Self:
        """At a moment, which is not before the last window that was charged."""
        number = max(number_at(rule.kind, now), turn.number)
        spent = (turn.spent if number == turn.number else ZERO).sums()
        return cls(rule, number, spent, None if rule.limit is None else split_limit(rule.limit, filter, shares))

    @property
    def open(self) -> bool:
        """Whether the first window has begun."""
        return self.number >= self.rule.first

    def admits(self, after: Sums, charge: Sums, branches: Branches) -> bool:
        """Whether the window lets a charge through that is in `after`, the account's sums, and, placed, is `charge`.

        `branches` are the account's budgets.
        """
        if not self.open:
            return False
        if self.branches is not None:
            return fits(self.spent.together(charge), self.branches)
        return self._needed(after, branches) <= self.rule.unlocked(self.number)

    def _needed(self, after: Sums, branches: Branches) -> int:
        """How many slices hold these sums: more than there are where none do. Exact."""
        slices = self.rule.slices
        assert slices is not None

        def of(spent: int | None, budget: int | None) -> int:
            return slices + 1 if spent is None or budget is None or spent > budget else -(-spent * slices // budget)

        noise = max(of(after.mixed_pure, branches.mixed_pure), of(after.mixed_mu_squared, branches.mixed_mu_squared))
        best = min(
            of(after.pure, branches.pure), of(after.mu_squared, branches.mu_squared), of(after.rho, branches.rho), noise
        )
        return max(best, of(after.delta, branches.delta) if after.delta else 0)

    def available(self, after: Sums, charge: Sums, branches: Branches) -> int | None:
        """The first moment at which the window would let the charge through if nothing else is charged; None: never."""
        if self.branches is not None:
            number = max(self.number + 1, self.rule.first) if self.open else self.rule.first
            return begin_of(self.rule.kind, number) if fits(charge, self.branches) else None
        needed = self._needed(after, branches)
        assert self.rule.slices is not None
        if needed > self.rule.slices:
            return None
        return begin_of(self.rule.kind, max(self.rule.first + needed - 1, self.rule.first))

    def next_turn(self) -> int | None:
        """When the next window begins that brings something; None where none does."""
        return self.rule.turn_after(self.number)

    def budgets(self, branches: Branches) -> Branches | None:
        """The budgets that hold now, in whole units; None where nothing is unlocked.

        Those of mode `slices` are compared with all that the account spent, those of mode `reset` with what was spent
        in this window.
        """
        if not self.open or self.branches is not None:
            return self.branches if self.open else None
        slices, unlocked = self.rule.slices, self.rule.unlocked(self.number)
        assert slices is not None

        def part(budget: int | None) -> int | None:
            return None if budget is None else budget * unlocked // slices or None

        pure, whole, noise = part(branches.pure), part(branches.mixed_pure), part(branches.mixed_mu_squared)
        if pure is None:
            return None
        both = whole is not None and noise is not None
        return replace(
            branches,
            pure=pure,
            mu_squared=part(branches.mu_squared),
            rho=part(branches.rho),
            delta=branches.delta * unlocked // slices,
            mixed_pure=whole if both else None,
            mixed_mu_squared=noise if both else None,
        )

    def compared(self, spent: Sums) -> Sums:
        """What is compared with `budgets`: of an account that spent so much."""
        return spent if self.branches is None else self.spent

    def left(self, spent: Sums, branches: Branches) -> Fraction:
        """The part of the account's own budgets that may be spent now, from 0 to 1: the most of any branch that counts.

        In the same measure as what a charge takes of the account: a part of the branch's budget.
        """
        budgets, compared = self.budgets(branches), self.compared(spent)
        if budgets is None:
            return Fraction(0)
        found = [Fraction(0)]
        for used, budget, whole in (
            (compared.pure, budgets.pure, branches.pure),
            (compared.mu_squared, budgets.mu_squared, branches.mu_squared),
            (compared.rho, budgets.rho, branches.rho),
        ):
            if used is not None and budget is not None and whole is not None:
                found.append(Fraction(budget - used, whole))
        return max(*found, *_left_of_both(compared, budgets, branches))

    def after(self, charge: Sums) -> View:
        """With one more charge, which is placed."""
        return replace(self, spent=self.spent.together(charge))


def _left_of_both(spent: Sums, budgets: Branches, branches: Branches) -> tuple[Fraction, Fraction]:
    """What each of the two sums of the mixed branch has left, as a part of the account's; nothing where one is over."""
    nothing = Fraction(0), Fraction(0)
    whole, noise = budgets.mixed_pure, budgets.mixed_mu_squared
    in_pure, in_noise = spent.mixed_pure, spent.mixed_mu_squared
    if whole is None or noise is None or in_pure is None or in_noise is None or in_pure > whole or in_noise > noise:
        return nothing
    if branches.mixed_pure is None or branches.mixed_mu_squared is None:
        return nothing
    rest = 1 - Fraction(branches.mixed_pure, branches.pure)
    return Fraction(whole - in_pure, branches.pure), Fraction(noise - in_noise, branches.mixed_mu_squared) * rest
