"""Check an export of a Noisegate ledger without Noisegate: one file, standard library only, Python 3.11 or newer.

    python3 verify.py export.ndjson [--earlier OLD.ndjson] [--head SEQUENCE:HASH] [--json]

Everything is computed anew from the export: both chains of hashes, what each privacy event costs, into which sum of
the mixed branch each charge belongs, every budget from every limit, every balance, the path of every charge, voids,
raised limits, what was read of others, and that no account ever admitted more than its filter allows. It shares no
code with the server. Whoever owns the server can write a whole new ledger that agrees with itself: note the head that
this program prints, and give it back next time (--head, or the old export itself with --earlier).

Amounts are whole picos (10^-12) of epsilon, rho and mu squared and whole attos (10^-18) of delta. What is spent is
rounded up, budgets are rounded down. Exit code: 0 everything agrees, 1 something does not, 2 the file is no export.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import hashlib
import json
import math
import statistics
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["NotAnExport", "Verifier", "budgets_of", "charge_of", "heads_of", "loss_of", "main", "verify"]

FORMATS = ("noisegate-ledger/2", "noisegate-ledger/1")  # the latter of versions before 0.15.0, without acts
PICO, ATTO = 10**12, 10**18
AMOUNT_MAX = 2**62  # more counts as infinite
GENESIS = "0" * 64
DEPTH_MAX = 8
FIRST_SHARES = {"gaussian": 25, "concentrated": 25, "groups": 50}  # of grants that name none
AMOUNTS = ("pure", "delta", "rho", "mu_squared", "unbounded_pure", "unbounded_rho", "unbounded_mu_squared",
           "mixed_pure", "mixed_mu_squared", "unbounded_mixed")  # fmt: skip
ZERO = (0,) * len(AMOUNTS)
Loss = tuple[Fraction | None, Fraction, Fraction | None, Fraction | None]  # pure, delta, rho, mu squared
Line = dict[str, Any]

# --- JSON without two meanings ----------------------------------------------------------------------------------------


def _object(pairs: list[tuple[str, Any]]) -> Line:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has one name twice: programs would read different values")
    return made


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def parsed(text: str | bytes) -> Any:
    """A JSON value that every program reads alike. Errors: ValueError, also for names that come twice and for NaN."""
    return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)


# --- The normal tail, to 45 digits ------------------------------------------------------------------------------------

_CONTEXT = decimal.Context(prec=60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
_TWO_PI = Decimal("6.283185307179586476925286766559005768394338798750211641949889184615632812572417997")
_EIGHTH_PI = Fraction("0.39269908169872415480783042290993786052464617492189")
_UP = 1 + Fraction(1, 10**40)  # more than the error of this arithmetic


def tail(x: Decimal) -> Decimal:
    """The chance that a standard normal variable is above x."""
    if x < 0:
        return 1 - tail(-x)
    density = (-x * x / 2).exp() / _TWO_PI.sqrt()
    if x < 7:
        term = total = x
        odd = 1
        while term > total * Decimal("1e-62"):  # x + x^3/3 + x^5/15 + ...: nothing cancels
            odd += 2
            term *= x * x / odd
            total += term
        return Decimal("0.5") - density * total
    below = x
    for step in range(40 + int(5000 / (x * x)), 0, -1):  # x + 1/(x + 2/(x + 3/(x + ...)))
        below = x + step / below
    return density / below


def _place(level: Decimal) -> Decimal:
    """The x above zero whose tail has this logarithm: Newton's steps on a concave curve."""
    chance = float(level.exp())
    start = -statistics.NormalDist().inv_cdf(chance) if chance > 1e-300 else 0.0
    x = Decimal(start) if start > 0 else (-2 * level).sqrt()
    for _ in range(200):
        mass = tail(x)
        step = (mass.ln() - level) * mass * (x * x / 2).exp() * _TWO_PI.sqrt()
        x += step
        if abs(step) < x * Decimal("1e-42"):
            return x
    raise ArithmeticError("Newton's steps did not settle")


def _exact(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


# --- What events cost -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=65536)
def _two_points(epsilon: Fraction, *, laplace: bool) -> tuple[Fraction, Fraction]:
    """rho and mu squared of Laplace noise, or of anything of which only a pure epsilon is known."""
    if epsilon < Fraction(1, PICO):  # less than a unit of either measure: their leading terms
        return epsilon**2 / 2, 4 * _EIGHTH_PI * epsilon**2
    with decimal.localcontext(_CONTEXT):
        exact = _exact(epsilon)
        small = (-exact).exp()
        if laplace:
            rho, level = exact + small - 1, -exact / 2 - Decimal(2).ln()
        else:
            rho, level = exact * (1 - small) / (1 + small), -exact - (1 + small).ln()
        return Fraction(rho) * _UP, Fraction(4 * _place(level) ** 2) * _UP


def _laplace(epsilon: Fraction) -> Loss:
    return (epsilon, Fraction(0), *_two_points(epsilon, laplace=True))


def _only_pure(epsilon: Fraction) -> Loss:
    return (epsilon, Fraction(0), *_two_points(epsilon, laplace=False))


def _gaussian(mu_squared: Fraction) -> Loss:
    return None, Fraction(0), mu_squared / 2, mu_squared


def _both(left: Loss, right: Loss) -> Loss:
    return tuple(None if a is None or b is None else a + b for a, b in zip(left, right, strict=True))  # type: ignore[return-value]


def _times(loss: Loss, count: Fraction) -> Loss:
    return tuple(None if a is None else a * count for a in loss)  # type: ignore[return-value]


def _with_delta(loss: Loss, delta: Fraction) -> Loss:
    return _both(loss, (Fraction(0), delta, Fraction(0), Fraction(0)))


def _bounded_range(epsilon: Fraction) -> Loss:
    mu_squared = _two_points(epsilon / 2, laplace=False)[1]
    return epsilon, Fraction(0), min(epsilon**2 / 8, mu_squared / 2), mu_squared


def _ranges(l1: Fraction, l2_squared: Fraction) -> Loss:
    return l1, Fraction(0), l2_squared / 8, _EIGHTH_PI * _UP * l2_squared


def _sparse(sensitivity: Fraction, threshold: Fraction, query: Fraction, moves: Fraction, hits: Fraction) -> Loss:
    return _only_pure(sensitivity * (1 / threshold + hits * moves / query))


EVENTS: dict[str, tuple[tuple[str, ...], Callable[..., Loss]]] = {
    "laplace/1": (("l1_sensitivity", "scale"), lambda l1, b: _laplace(l1 / b)),
    "laplace_threshold/1": (("l1_sensitivity", "scale", "delta"), lambda l1, b, d: _with_delta(_laplace(l1 / b), d)),
    "discrete_laplace/1": (("l1_sensitivity", "scale"), lambda l1, b: _only_pure(l1 / b)),
    "gaussian/1": (("l2_squared", "variance"), lambda l2, v: _gaussian(l2 / v)),
    "gaussian_threshold/1": (("l2_squared", "variance", "delta"), lambda l2, v, d: _with_delta(_gaussian(l2 / v), d)),
    "truncated_geometric/1": (("epsilon", "delta"), lambda e, d: _with_delta(_only_pure(e), d)),
    "approximate/1": (("epsilon", "delta"), lambda e, d: _with_delta(_only_pure(e), d)),
    "local_report/1": (("epsilon",), _only_pure),
    "bounded_range/1": (("epsilon", "draws"), lambda e, n: _times(_bounded_range(e), n)),
    "permute_and_flip/1": (("epsilon", "draws"), lambda e, n: _times(_only_pure(e), n)),
    "laplace_ranges/1": (("l1_sensitivity", "scale", "ranges_l1", "ranges_l2_squared"),
                         lambda l1, b, r, s: _both(_laplace(l1 / b), _ranges(r, s))),
    "gaussian_ranges/1": (("l2_squared", "variance", "ranges_l1", "ranges_l2_squared"),
                          lambda l2, v, r, s: _both(_gaussian(l2 / v), _ranges(r, s))),
    "laplace_followed/1": (("l1_sensitivity", "scale", "epsilon", "count"),
                           lambda l1, b, e, n: _both(_laplace(l1 / b), _times(_only_pure(e), n))),
    "gaussian_followed/1": (("l2_squared", "variance", "epsilon", "count"),
                            lambda l2, v, e, n: _both(_gaussian(l2 / v), _times(_only_pure(e), n))),
    "sparse_vector/1": (("sensitivity", "threshold_scale", "query_scale", "moves", "hits"), _sparse),
    "sparse_session/1": (("sensitivity", "threshold_scale", "query_scale", "moves", "hits"),
                         lambda *p: (*_sparse(*p)[:2], None, _sparse(*p)[3])),
}  # fmt: skip
"""Of each kind of event its parameters, and its loss; docs/mechanisms.md has the theorems."""

COUNTS = {"draws", "count", "moves", "hits"}  # parameters that are whole numbers


def loss_of(event: Mapping[str, Any]) -> Loss:
    """The loss of one stored event. Errors: KeyError, ValueError, TypeError, ArithmeticError for what is none."""
    names, function = EVENTS[event["kind"]]
    given = event["parameters"]
    if set(given) != set(names):
        raise ValueError("other parameters")
    values = [Fraction(given[name]) for name in names]
    if min(values) <= 0:
        raise ValueError("a parameter that is not positive")
    if any(Fraction(given[name]).denominator != 1 for name in COUNTS.intersection(names)):
        raise ValueError("a part of a count")
    return function(*values)


@lru_cache(maxsize=65536)
def charge_of(details: str) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """The least and the most units of a reserve entry, in the order pure, delta, rho, mu squared; None is infinite.

    The least is what its events cost, rounded up. Whoever computes with fewer digits rounds up more: by 10^-18 of it.
    """
    stored = parsed(details)
    total: Loss = (Fraction(0),) * 4
    for core in [*stored["charged"], *stored.get("read", ())]:
        for event in core["events"]:
            total = _both(total, loss_of(event))
    found = []
    for margin in (Fraction(1), 1 + Fraction(1, 10**18)):
        units = [None if amount is None else math.ceil(amount * unit * margin)
                 for amount, unit in zip(total, (PICO, ATTO, PICO, PICO), strict=True)]  # fmt: skip
        found.append(tuple(None if amount is None or amount > AMOUNT_MAX else amount for amount in units))
    return found[0], found[1]


# --- What a limit allows ----------------------------------------------------------------------------------------------


def _greatest(fits: Callable[[int], bool]) -> int:
    """The greatest number of units that fits; 0 where one does not."""
    low, high = 0, AMOUNT_MAX + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@lru_cache(maxsize=4096)
def _noise_budget(epsilon: int, delta: int) -> int | None:
    """Picos of mu squared that are (epsilon, delta)-DP: Balle and Wang 2018, Theorem 8."""

    def fits(units: int) -> bool:
        mu = (Decimal(units) / PICO).sqrt()
        near, far = level / mu - mu / 2, level / mu + mu / 2
        return near > 12 or tail(near) - level.exp() * tail(far) <= share  # the tail at 12 is below every delta

    with decimal.localcontext(_CONTEXT):
        level, share = Decimal(epsilon) / PICO, Decimal(delta) / ATTO
        return (_greatest(fits) or None) if delta else None


@lru_cache(maxsize=4096)
def _concentrated_budget(epsilon: int, delta: int) -> int | None:
    """Picos of rho that are (epsilon, delta)-DP: Canonne, Kamath and Steinke 2020, Corollary 13, at the best order."""

    def rho(x: Decimal) -> Decimal:
        above = x.exp()
        order = 1 + above
        return (level - (above / order).ln() + (share * order).ln() / above) / order

    if not delta:
        return None
    with decimal.localcontext(_CONTEXT):
        level, share = Decimal(epsilon) / PICO, Decimal(delta) / ATTO
        best = max((Decimal(step) / 4 for step in range(-160, 321)), key=rho)
        low, high, golden = best - Decimal("0.25"), best + Decimal("0.25"), (Decimal(5).sqrt() - 1) / 2
        for _ in range(80):
            left, right = high - golden * (high - low), low + golden * (high - low)
            low, high = (low, right) if rho(left) >= rho(right) else (left, high)
        return int(rho((low + high) / 2) * PICO) or None


def budgets_of(limit: tuple[int, int], kind: str, shares: Mapping[str, int]) -> dict[str, int | None]:
    """The budgets of every branch, from a limit in picos and attos. Errors: ValueError for what is none."""
    epsilon, delta = limit
    if kind == "pure":
        if delta:
            raise ValueError("a pure account with a delta")
        return {"pure": epsilon, "delta": 0, "rho": None, "mu_squared": None, "mixed_pure": None,
                "mixed_mu_squared": None}  # fmt: skip
    parts = {name: shares.get(name, 0) for name in ("gaussian", "concentrated", "mixed", "groups")}
    if kind != "approximate" or sum(parts.values()) != 100 or min(parts.values()) < 0 or not set(shares) <= set(parts):
        raise ValueError("no filter, or shares of delta that do not add up to 100")
    attos = {name: delta * part // 100 for name, part in parts.items()}
    half = epsilon // 2
    noise = _noise_budget(epsilon - half, attos["mixed"]) if half else None
    return {
        "pure": epsilon,
        "delta": attos["groups"],
        "rho": _concentrated_budget(epsilon, attos["concentrated"]),
        "mu_squared": _noise_budget(epsilon, attos["gaussian"]),
        "mixed_pure": None if noise is None else half,
        "mixed_mu_squared": noise,
    }


# --- The ledger -------------------------------------------------------------------------------------------------------


class NotAnExport(Exception):
    """The file is not an export of a ledger, or of a later format."""


DAY = 86_400 * 10**6
WINDOWS = ("daily", "weekly", "monthly", "yearly")


def window_of(kind: str, moment: int) -> int:
    """The number of the window that a moment is in, in UTC: of days since 1970, of weeks from Monday, of months, of
    years."""
    days = moment // DAY
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    numbers = (days, (days + 3) // 7, date.year * 12 + date.month - 1, date.year)
    return dict(zip(WINDOWS, numbers, strict=True))[kind]


class Window:
    """When an account may spend how much: parts of its limit that unlock one after another, or an amount each time."""

    def __init__(self, said: Line, kind: str, shares: Mapping[str, int], *, moment: int, entry: int) -> None:
        self.said, self.kind = said, said["kind"]
        first = datetime.date.fromisoformat(said["first"]) - datetime.date(1970, 1, 1)
        self.first = window_of(self.kind, first.days * DAY)
        self.slices: int | None = None
        self.budgets: dict[str, int | None] = {}
        if said["mode"] == "slices":
            self.slices = said["slices"]
            if type(self.slices) is not int or not 2 <= self.slices <= 10_000:
                raise ValueError("no slices")
        elif said["mode"] == "reset":
            self.budgets = budgets_of(units_of(said["limit"]), kind, shares)
        else:
            raise ValueError("no mode of a window")
        self.number, self.since, self.spent = window_of(self.kind, moment), entry, ZERO

    def turn(self, moment: int, entry: int) -> None:
        """A later window begins with the first charge in it."""
        number = window_of(self.kind, moment)
        if number > self.number:
            self.number, self.since, self.spent = number, entry, ZERO

    def lets_through(self, account: Account) -> bool:
        """Whether it lets the account's last charge through, which is counted here and there."""
        if self.slices is None:
            return self.number >= self.first and within(sums_of(self.spent), self.budgets)
        unlocked = min(max(self.number - self.first + 1, 0), self.slices)
        return within(account.sums(), account.budgets, part=(unlocked, self.slices))


def units_of(limit: Line) -> tuple[int, int]:
    """A limit in picos and attos. Errors: KeyError, ValueError."""
    units = [Fraction(limit["epsilon"]) * PICO, Fraction(limit["delta"]) * ATTO]
    if any(one.denominator != 1 for one in units) or units[0] <= 0 or units[1] < 0:
        raise ValueError("no limit")
    return int(units[0]), int(units[1])


def sums_of(amounts: Sequence[int]) -> dict[str, int | None]:
    """Amounts by branch; None is infinite."""
    spent = dict(zip(AMOUNTS, amounts, strict=True))
    infinite = {"pure": "unbounded_pure", "rho": "unbounded_rho", "mu_squared": "unbounded_mu_squared",
                "mixed_pure": "unbounded_mixed", "mixed_mu_squared": "unbounded_mixed"}  # fmt: skip
    return {"delta": spent["delta"]} | {name: None if spent[of] else spent[name] for name, of in infinite.items()}


def within(
    sums: Mapping[str, int | None], budgets: Mapping[str, int | None], *, part: tuple[int, int] = (1, 1)
) -> bool:
    """Whether sums are within a part of the budgets: the deltas, and at least one branch."""

    def holds(*names: str) -> bool:
        pairs = [(sums[name], budgets[name]) for name in names]
        return all(a is not None and b is not None and a * part[1] <= b * part[0] for a, b in pairs)

    return holds("delta") and any((holds("pure"), holds("mu_squared"), holds("rho"),
                                   holds("mixed_pure", "mixed_mu_squared")))  # fmt: skip


class Account:
    """An account as its entries make it."""

    def __init__(self, grant: Line) -> None:
        self.dataset, self.parent = grant["dataset"], grant["parent"]
        self.name, self.principal = grant["name"], grant["principal"]
        self.kind, self.shares = grant["filter"], grant.get("delta_shares", FIRST_SHARES)
        self.space, self.expires = grant.get("space", grant["dataset"]), grant.get("expires")
        self.joined = 0  # the entry that put it below another root
        self.second = False  # frozen because its owner had another one: accounts below it went on
        self.limits: list[tuple[int, int]] = []
        self.budgets: dict[str, int | None] = {}
        self.spent, self.entries, self.hash, self.frozen = ZERO, 0, GENESIS, False
        self.window: Window | None = None
        self.uncounted = False  # whether anything was charged while it had no mixed branch
        self.set_limit(grant["limit"])

    def set_limit(self, limit: Line) -> None:
        """The limit from now on. Errors: KeyError, ValueError."""
        whole = units_of(limit)
        self.budgets = budgets_of(whole, self.kind, self.shares)
        self.limits.append(whole)

    @property
    def greatest(self) -> tuple[int, int]:
        """The greatest epsilon and the greatest delta that it ever had: what its answers together promise."""
        return max(limit[0] for limit in self.limits), max(limit[1] for limit in self.limits)

    def sums(self) -> dict[str, int | None]:
        """What is spent by branch; None is infinite."""
        return sums_of(self.spent)

    def within(self) -> bool:
        """Whether all that was admitted is within the filter: the deltas, and at least one branch."""
        return within(self.sums(), self.budgets)

    def set_window(self, said: Line | None, *, moment: int, entry: int) -> None:
        """The window from this entry on; one of the same kind goes on counting. Errors: KeyError, ValueError."""
        before = self.window
        self.window = None if said is None else Window(said, self.kind, self.shares, moment=moment, entry=entry)
        if before is not None and self.window is not None and before.kind == self.window.kind:
            self.window.number, self.window.since, self.window.spent = before.number, before.since, before.spent

    def placed(self, pure: int | None, mu_squared: int | None) -> tuple[int, int, int]:
        """Where a charge goes in the mixed branch: into its pure sum, into its mu squared, or beyond both.

        Into the sum of which it takes the smaller part, where it fits that one; else where it fits.
        """
        whole, noise = self.budgets["mixed_pure"], self.budgets["mixed_mu_squared"]
        if whole is None or noise is None:
            return 0, 0, 0
        if pure is None and mu_squared is None:
            return 0, 0, 1
        in_pure, in_noise = self.spent[7], self.spent[8]
        dead = bool(self.spent[9])
        ways = []
        if pure is not None:
            part = Fraction(pure, self.limits[-1][0])
            ways.append((dead or in_pure + pure > whole, part, 0, (pure, 0, 0), in_pure + pure))
        if mu_squared is not None:
            part = Fraction(mu_squared * (self.limits[-1][0] - whole), self.limits[-1][0] * noise)
            ways.append((dead or in_noise + mu_squared > noise, part, 1, (0, mu_squared, 0), in_noise + mu_squared))
        *_, amounts, after = min(ways)
        return (0, 0, 1) if after > AMOUNT_MAX else amounts

    def used(self) -> Fraction:
        """The part of the limit that is used: the least over the branches that still hold."""
        sums, budgets, parts = self.sums(), self.budgets, [Fraction(1)]
        for name in ("pure", "mu_squared", "rho"):
            spent, budget = sums[name], budgets[name]
            if spent is not None and budget is not None:
                parts.append(Fraction(spent, budget))
        whole, noise, in_pure, in_noise = (*(budgets[name] for name in AMOUNTS[7:9]), *(sums[n] for n in AMOUNTS[7:9]))
        if None not in (whole, noise, in_pure, in_noise) and in_pure <= whole and in_noise <= noise:  # type: ignore[operator]
            pure = self.limits[-1][0]
            parts.append(Fraction(in_pure * noise + (pure - whole) * in_noise, pure * noise))  # type: ignore[operator]
        return min(parts)


class Query:
    """What entries say of one query."""

    def __init__(self, stored: Line) -> None:
        self.charged: list[Line] = stored["charged"]
        self.reused: dict[str, str] = stored["reused"]
        self.acted = (stored.get("actor"), stored.get("principal"))  # a service, and on whose behalf it asked
        self.reserved: dict[str, tuple[int, ...]] = {}
        self.entries: dict[str, int] = {}  # of each account that is charged, which of its entries does
        self.read: dict[str, list[Line]] = {}
        self.closed: dict[str, str] = {}
        self.kept: Line = {}
        self.opened, self.ended = 0, 0  # the first entry that charges it, and the last that ends it
        self.frozen: set[str] = set()  # accounts that were frozen, or had ended, when they were charged

    @property
    def stands(self) -> bool:
        """Whether it ended and stays charged."""
        return bool(self.closed) and set(self.closed.values()) <= {"post", "fail"}


class Verifier:
    """The running state of one reading. `findings` are (code, what it is about, what does not agree)."""

    def __init__(self) -> None:
        self.findings: list[tuple[str, str, str]] = []
        self.sequence, self.hash, self.moment = 0, GENESIS, 0
        self.accounts: dict[str, Account] = {}
        self.claimed: dict[str, Line] = {}
        self.queries: dict[str, Query] = {}
        self.asked: dict[str, Line] = {}
        self.releases: dict[str, Line] = {}
        self.readings: dict[tuple[str, str], Line] = {}
        self.made: dict[tuple[str, str], int] = defaultdict(int)
        self.heads: dict[int, str] = {}
        self.acts: list[str] = []
        self.vouched: dict[tuple[str, str], str | None] = {}
        self.rows: dict[tuple[str, str], str] = {}
        self.header: Line = {}
        self.ended = False
        self.first_kept = 0  # the first end of a query that names what was kept
        self.joining: tuple[str, str, tuple[int, ...], bool] | None = None  # lower root, upper one, what it had spent
        self.counts: dict[str, int] = defaultdict(int)
        self._digest = hashlib.sha256()

    def find(self, code: str, subject: object, text: str) -> None:
        """Notes what does not agree."""
        self.findings.append((code, str(subject), text))

    # Reading

    def read(self, lines: Iterator[bytes], heads: Mapping[int, str]) -> None:
        """Reads all lines; `heads` are hashes that were noted earlier, by sequence. Errors: NotAnExport."""
        self.heads = dict(heads)
        number = 0
        for number, raw in enumerate(lines, 1):
            try:
                line = parsed(raw)
                kind = line["line"]
                if number == 1 and (kind != "ledger" or line["format"] not in FORMATS):
                    raise NotAnExport(f"the first line does not say {FORMATS[0]}")
                assert isinstance(kind, str)
            except (ValueError, KeyError, TypeError, AssertionError):
                if number == 1:
                    raise NotAnExport("the first line is no line of an export") from None
                self.find("unreadable_line", f"line {number}", "it is cut, or not a line of an export")
                continue
            if self.ended:
                self.find("cut_export", f"line {number}", "there are lines after the last one")
            try:
                self._line(kind, line)
            except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError) as error:
                self.find("unreadable_line", f"line {number}", f"it does not say what it must ({type(error).__name__})")
            self.counts[kind] += 1
            self._digest.update(raw)
        if number == 0:
            raise NotAnExport("the file is empty")
        if not self.ended:
            self.find("cut_export", "end", "the last line is missing: the export was cut, and entries may be")
        for sequence in self.heads:
            self.find("other_history", sequence, "the ledger had an entry here when its head was noted: it is gone")
        self._finish()

    def _line(self, kind: str, line: Line) -> None:
        known: dict[str, dict[Any, Line]] = {"account": self.claimed, "query": self.asked, "release": self.releases}
        if kind in known:
            self._once(known[kind], line["id"], line)
        elif kind == "reading":
            self._once(self.readings, (line["account"], line["release"]), line)
        else:
            steps = {"ledger": self._header, "entry": self._entry, "end": self._end, "checkpoint": self._checkpoint,
                     "act": self._act, "row": self._row}  # fmt: skip
            steps[kind](line)

    def _once(self, known: dict[Any, Line], key: object, line: Line) -> None:
        if not all(isinstance(part, str) for part in (key if isinstance(key, tuple) else (key,))):
            raise TypeError("a name is a text")
        if key in known:
            self.find("repeated_line", key, f"this {line['line']} comes twice")
        known[key] = line

    def _header(self, line: Line) -> None:
        if self.header:
            self.find("repeated_line", "ledger", "a second line says which ledger this is")
        else:
            self.header = line

    def _checkpoint(self, line: Line) -> None:
        if (line["sequence"], line["hash"]) != (self.sequence, self.hash):
            self.find("forged_checkpoint", line["sequence"], "it is not the head of the entries before it")
        if line["sha256"] != self._digest.hexdigest():
            self.find("changed_file", f"before entry {self.sequence + 1}", "lines were changed after the export")

    def _end(self, line: Line) -> None:
        self.ended = True
        if self.sequence > self.header.get("timed_from", self.sequence) and self.header["epoch"] != self.moment:
            self.find("wrong_time", "ledger", "its time is not that of its last entry")
        if line["sha256"] != self._digest.hexdigest():
            self.find("changed_file", "end", "lines were changed, added or taken out after the export")
        said = line["counts"]
        for name in sorted(said.keys() | self.counts.keys()):
            if self.counts.get(name, 0) != said.get(name, 0):
                self.find("wrong_count", name, f"{self.counts[name]} lines, and the last line says {said.get(name)}")
        for one in (line, self.header):
            if (one["sequence"], one["hash"]) != (self.sequence, self.hash):
                self.find(
                    "wrong_head", one["sequence"], f"the last entry is {self.sequence}, and {one['line']} says not"
                )

    # Entries

    def _entry(self, line: Line) -> None:
        sequence, name, amounts = line["sequence"], line["account"], tuple(line["amounts"])
        numbers = (sequence, line["account_sequence"], line["created"], *amounts)
        if not all(type(one) is int for one in numbers) or not isinstance(name, str):
            raise TypeError("an entry has whole numbers, and a text as its account")
        mixed = any(amounts[7:])
        promises = line["kind"] in ("post", "fail") and line["details"] != "{}"
        fields = ["entry/3" if promises else "entry/2" if mixed else "entry/1", sequence, name,
                  line["account_sequence"], line["kind"], line["query"],
                  amounts if mixed or promises else amounts[:7], line["details"],
                  line["created"], line["account_previous"], line["previous"]]  # fmt: skip
        self._follows(line, fields)
        details = parsed(line["details"])
        if line["kind"] == "grant":
            self._grant(sequence, name, details)
        account = self.accounts.get(name)
        if account is None:
            self.find("wrong_tree", sequence, f"account {name} was never granted anything")
            return
        if (line["account_sequence"], line["account_previous"]) != (account.entries + 1, account.hash):
            self.find("broken_chain", sequence, f"it does not follow the entry of account {name} before it")
        account.entries, account.hash = line["account_sequence"], line["hash"]
        if self.joining is not None and (details.get("action"), name) != ("join", self.joining[1]):
            self.find("wrong_tree", sequence, f"root {self.joining[0]} was joined, and the one above was not debited")
            self.joining = None
        if len(amounts) != len(AMOUNTS) or not self._agrees(line, account, amounts, details):
            self.find("wrong_amounts", sequence, f"its amounts are not those of this {line['kind']}")
        account.spent = tuple(a + b for a, b in zip(account.spent, amounts, strict=True))
        if account.window is not None and any(amounts):
            self._in_window(line, account, account.window, amounts)
        if (line["kind"] == "reserve" or (any(amounts) and line["kind"] == "adjust")) and not account.within():
            self.find("over_limit", sequence, f"account {name} admitted more than its limit allows")
        if min(account.spent) < 0:
            self.find("wrong_amounts", sequence, f"account {name} has spent less than nothing")

    def _in_window(self, line: Line, account: Account, window: Window, amounts: tuple[int, ...]) -> None:
        """Counts amounts in the account's window; a void takes back only what was charged in it."""
        query = self.queries.get(line["query"])
        if line["kind"] == "void":
            if query is None or query.entries.get(line["account"], 0) < window.since:
                return
        else:
            window.turn(line["created"], line["account_sequence"])
        window.spent = tuple(a + b for a, b in zip(window.spent, amounts, strict=True))
        if line["kind"] == "reserve" and not window.lets_through(account):
            self.find("over_window", line["sequence"], "its window did not admit this charge at that moment")

    def _follows(self, line: Line, fields: list[Any]) -> None:
        """Number, chain and hash of the next entry or act."""
        sequence, what = line["sequence"], line["line"]
        if sequence <= self.sequence:
            self.find("wrong_order", sequence, f"it comes after number {self.sequence}: twice, or out of order")
        elif sequence != self.sequence + 1:
            self.find("missing_entry", sequence, f"entries or acts {self.sequence + 1} to {sequence - 1} are missing")
        if line["previous"] != self.hash:
            self.find("broken_chain", sequence, f"the {what} does not follow what is before it")
        if hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode()).hexdigest() != line["hash"]:
            self.find(f"changed_{what}", sequence, "its content is not what its hash says")
        if self.heads.pop(sequence, line["hash"]) != line["hash"]:
            self.find("other_history", sequence, f"it is another {what} than when the head was noted")
        if line["created"] < self.moment and sequence > self.header.get("timed_from", sequence):
            self.find("wrong_time", sequence, "it is earlier than one before it: the ledger's time never falls")
        self.sequence, self.hash, self.moment = sequence, line["hash"], max(self.moment, line["created"])

    def _act(self, line: Line) -> None:
        """What an administrator did; it vouches for the rows that it changed."""
        texts = [line[name] for name in ("actor", "action", "subject", "details")]
        if not all(type(line[name]) is int for name in ("sequence", "created")) or not all(
            isinstance(one, str) for one in texts
        ):
            raise TypeError("an act has whole numbers and texts")
        self._follows(line, ["act/1", line["sequence"], *texts, line["created"], line["previous"]])
        details = parsed(line["details"])
        vouched = details.get("rows", {})
        for table, rows in vouched.items():
            self.vouched |= {(table, key): digest for key, digest in rows.items()}
        if vouched or "reason" in details:
            why = f": {details['reason']}" if "reason" in details else ""
            actor, action, subject, _ = texts
            self.acts.append(f"{day(line['created'])}: {actor}: {action.replace('_', ' ')}, {subject}{why}")

    def _row(self, line: Line) -> None:
        key = line["table"], line["key"]
        if key in self.rows:
            self.find("repeated_line", " ".join(key), "this row comes twice")
        self.rows[key] = line["hash"]

    def _registered(self) -> None:
        """Rows of principals, keys, datasets and webhooks against the last act about each."""
        for key in sorted(self.rows.keys() | self.vouched.keys()):
            there, vouched = self.rows.get(key), self.vouched.get(key)
            if there is None and vouched is not None:
                self.find("wrong_row", " ".join(key), "the row is gone, and no act says so")
            elif there != vouched:
                told = "no act made this row" if vouched is None else "it is not as the last act about it left it"
                self.find("wrong_row", " ".join(key), told)

    def _grant(self, sequence: int, name: str, details: Line) -> None:
        above = self.accounts.get(details["parent"])
        dataset, space = details["dataset"], details.get("space", details["dataset"])
        roots = [one for one in self.accounts.values() if one.parent is None and one.space == space]
        if details["parent"] is None and roots:
            self.find("wrong_tree", sequence, f"unit space {space} has a second root: a second budget")
        if details["parent"] is not None and (above is None or above.space != space):
            self.find("wrong_tree", sequence, "the account is not below an account of the same unit space")
        if any(one.space != space for one in self.accounts.values() if one.dataset == dataset):
            self.find("wrong_tree", sequence, f"dataset {dataset} is in two unit spaces: two budgets")
        if details.get("expires") is not None and type(details["expires"]) is not int:
            raise TypeError("an end is a whole number of microseconds")
        if name in self.accounts:
            self.find("wrong_limit", sequence, f"account {name} is granted twice")
            return
        self.accounts[name] = Account(details)
        self.accounts[name].set_window(details.get("window"), moment=self.moment, entry=1)
        if len(self.path(name)) > DEPTH_MAX:
            self.find("wrong_tree", sequence, f"more than {DEPTH_MAX} accounts on one path")

    def path(self, name: str | None, opened: int = 0) -> list[str]:
        """The account, the one above it, and so on to the root; to that of then, for what began with entry `opened`."""
        found: list[str] = []
        while name is not None and name in self.accounts and name not in found:
            found.append(name)
            mine = self.accounts[name]
            name = None if opened and opened < mine.joined else mine.parent
        return found

    def _agrees(self, line: Line, account: Account, amounts: tuple[int, ...], details: Line) -> bool:
        kind, query = line["kind"], line["query"]
        if kind == "reserve":
            known = self.queries.setdefault(query, Query(details))
            again = line["account"] in known.reserved or known.closed
            known.reserved[line["account"]] = amounts
            known.entries[line["account"]] = line["account_sequence"]
            known.read[line["account"]] = details.get("read", [])
            known.opened = known.opened or line["sequence"]
            account.uncounted |= account.budgets["mixed_pure"] is None
            if account.frozen or (account.expires is not None and account.expires <= line["created"]):
                known.frozen.add(line["account"])
            acted = (details.get("actor"), details.get("principal"))
            if (known.charged, known.reused, known.acted) != (details["charged"], details["reused"], acted):
                self.find("wrong_path", line["sequence"], f"query {query} is charged otherwise in another account")
            try:
                return not again and self._charged(line, account, amounts)
            except KeyError as error:
                self.find("unknown_event", line["sequence"], f"an event that this program does not know: {error}")
                return True
        if kind in ("post", "fail", "void"):
            closing = self.queries.get(query)
            if closing is None or line["account"] not in closing.reserved or line["account"] in closing.closed:
                self.find("wrong_state", line["sequence"], f"a {kind} without a charge that it ends")
                return False
            wanted = {"owner", "releases", "answer"} if kind == "post" else {"owner", "releases"}
            if details and (closing.kept or kind == "void" or wanted != details.keys()):
                self.find(
                    "wrong_state", line["sequence"], "it says of the query's end what no end says, or says it again"
                )
            closing.closed[line["account"]], closing.kept, closing.ended = (
                kind,
                details or closing.kept,
                line["sequence"],
            )
            self.first_kept = self.first_kept or (line["sequence"] if details else 0)
            back = tuple(-amount for amount in closing.reserved[line["account"]])
            return amounts == (back if kind == "void" else ZERO)
        if kind == "adjust":
            self._adjusted(line, account, details)
            if details["action"] == "join":
                return self._debited(line, account, amounts, details)
        return amounts == ZERO and kind in ("grant", "adjust")

    def _moved(self, line: Line, account: Account, details: Line) -> None:
        """A root, and all below it, in another unit space; where it was joined, below the root of that one."""
        if account.parent is not None or not isinstance(details["space"], str):
            self.find("wrong_tree", line["sequence"], "an account that is no root was moved")
        before = account.space
        for one in self.accounts.values():
            if one.space == before:
                one.space = details["space"]
        if details["action"] == "joined":
            above = self.accounts.get(details["parent"])
            if above is None or above is account or above.space != account.space or above.kind != account.kind:
                self.find("wrong_tree", line["sequence"], "it was not put below the root of that unit space")
            account.parent, account.joined = details["parent"], line["sequence"]
            mixed = account.budgets["mixed_pure"] is not None
            self.joining = (line["account"], details["parent"], account.spent, mixed)
        elif sum(one.parent is None and one.space == details["space"] for one in self.accounts.values()) > 1:
            self.find("wrong_tree", line["sequence"], f"unit space {details['space']} has two roots: two budgets")

    def _debited(self, line: Line, account: Account, amounts: tuple[int, ...], details: Line) -> bool:
        """Whether the upper of two roots was debited with all that the lower one had spent, and is the stricter."""
        joining, self.joining = self.joining, None
        if joining is None or (joining[0], joining[1]) != (details["account"], line["account"]):
            return False
        was, other, now = account.limits[-2], self.accounts[joining[0]].limits[-1], account.limits[-1]
        if now != (min(was[0], other[0]), min(was[1], other[1])):
            self.find("wrong_limit", line["sequence"], "the limit of two roots together is not the stricter one")
        spent = list(joining[2])
        if any(spent) and not joining[3] and account.budgets["mixed_pure"] is not None:
            spent[9] += 1  # charges that are in neither sum of a mixed branch
        return amounts == tuple(spent)

    def _charged(self, line: Line, account: Account, amounts: tuple[int, ...]) -> bool:
        """Whether a charge has the amounts of its events, and is where it belongs in the mixed branch."""
        least, most = charge_of(line["details"])
        wanted: dict[int, int | None] = {}
        for place, flag in ((0, 4), (2, 5), (3, 6)):
            wanted[place], low, high = least[place], least[place], most[place]
            if low is None or high is None or account.spent[place] + low > AMOUNT_MAX:
                if (amounts[place], amounts[flag]) != (0, 1):
                    return False
            else:
                if amounts[flag] != 0 or not low <= amounts[place] <= high:
                    return False
                wanted[place] = amounts[place]
        if not min(least[1] or 0, AMOUNT_MAX) <= amounts[1] <= min(most[1] or 0, AMOUNT_MAX):
            return False
        if amounts[7:] != account.placed(wanted[0], wanted[3]):
            self.find("wrong_place", line["sequence"], "in the mixed branch the charge is not where it belongs")
        return True

    def _adjusted(self, line: Line, account: Account, details: Line) -> None:
        when, who, why = day(line["created"]), details.get("actor", "?"), details.get("reason", "")
        if "agreed" in details:
            agreed = details["agreed"]
            how = ", sole administrator" if agreed["sole"] else ""
            who = f"{who} (proposed by {agreed['proposed_by']}{how})"
        name = f"{account.dataset}, account {account.name} ({line['account']})"
        if details["action"] in ("limit", "join"):
            before = [Fraction(details["from"][one]) * unit for one, unit in (("epsilon", PICO), ("delta", ATTO))]
            if any(was != now for was, now in zip(before, account.limits[-1], strict=True)):
                self.find("wrong_limit", line["sequence"], "the limit that it changes was another one")
            without = account.budgets["mixed_pure"] is None
            account.set_limit(details["to"])
            if without and account.uncounted and account.budgets["mixed_pure"] is not None and any(account.spent):
                self.find("over_limit", line["sequence"], f"account {account.name} gets a branch that missed charges")
            was, now = pair(account.limits[-2]), pair(account.limits[-1])
            if details["action"] == "join":
                told = f"{when}: {who} put account {details['account']} below {name}, with all that it had spent"
                self.acts.append(f"{told}; the limit was {was} and is {now}: {why}")
            else:
                asked = f" for request {details['request']}" if "request" in details else ""
                self.acts.append(f"{when}: {who} changed the limit of {name} from {was} to {now}{asked}: {why}")
        elif details["action"] in ("space", "joined"):
            self._moved(line, account, details)
            if details["action"] == "space":
                self.acts.append(f"{when}: {who} moved {name} to the unit space {details['space']}: {why}")
        elif details["action"] == "window":
            old = account.window
            if details["from"] != (None if old is None else old.said):
                self.find("wrong_window", line["sequence"], "the window that it changes was another one")
            account.set_window(details["to"], moment=line["created"], entry=line["account_sequence"])
            account.limits.append(account.limits[-1])
            self.acts.append(f"{when}: {who} changed the window of {name} to {windowed(details['to'])}: {why}")
        elif details["action"] == "end":
            if details["expires"] != line["created"] or (account.expires or line["created"] + 1) <= line["created"]:
                self.find("wrong_state", line["sequence"], "the account does not end with this entry")
            account.expires = details["expires"]
            self.acts.append(f"{when}: {who} ended {name}: it pays for nothing more: {why}")
        elif details["action"] == "freeze":
            account.frozen, account.second = True, "kept" in details
            self.acts.append(f"{when}: {name} was frozen by {who}: it pays for nothing more: {why}")
        elif details["action"] == "unfreeze":
            account.frozen = False
            self.acts.append(f"{when}: {name} was allowed to pay again by {who}: {why}")
        elif details["action"] == "acknowledge_restore":
            told = f"{when}: {who} accepted that the ledger of {account.dataset} had forgotten charges: {why}."
            self.acts.append(f"{told} What was answered in what it forgot is in no figure here")
        else:
            self.find(
                "unknown_act", line["sequence"], f"an adjustment that this program does not know: {details['action']}"
            )

    # What the rest of the export says, against the entries

    def _finish(self) -> None:
        self._registered()
        for name in sorted(self.accounts.keys() | self.claimed.keys()):
            if name not in self.claimed or name not in self.accounts:
                self.find("wrong_account", name, "the account has entries and no line, or a line and no entries")
            else:
                self._guarded(self._account, name)
        for name in sorted(self.queries.keys() | self.asked.keys()):
            self._guarded(self._query, name)
        for name in sorted(self.releases):
            self._guarded(self._release, name)
        for account, release in sorted(self.readings):
            line = self.readings[account, release]
            by = self.queries.get(line["query"])
            read = [] if by is None or not by.stands else by.read.get(account, [])
            if not any(one["release"] == release and one["core_key"] == line["core_key"] for one in read):
                self.find("uncharged_reading", release, f"account {account} was not charged for reading it")

    def _guarded(self, check: Callable[[str], None], name: str) -> None:
        try:
            check(name)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            self.find("unreadable_line", name, f"it does not say what it must ({type(error).__name__})")

    def _account(self, name: str) -> None:
        mine, said = self.accounts[name], self.claimed[name]
        if tuple(said["spent"]) != mine.spent:
            self.find("wrong_balance", name, "what the ledger says is spent is not the sum of the entries")
        if (said["entries"], said["hash"]) != (mine.entries, mine.hash):
            self.find("wrong_head", name, "the account's last entry is not the one that the ledger names")
        limits = (tuple(said["limit"]), tuple(said["greatest"]), said["revision"])
        if limits != (mine.limits[-1], mine.greatest, len(mine.limits)):
            self.find("wrong_limit", name, "limit, or greatest limit, is not that of the grant and the adjustments")
        if said["filter"] != mine.kind or (mine.kind != "pure" and said["shares"] != mine.shares):
            self.find("wrong_limit", name, "filter, or shares of delta, are not those of the grant")
        for branch, most in mine.budgets.items():
            budget = said["budgets"][branch]
            # Of rho the server takes the best order that floats find: a little less, and never more.
            short = 0 if most is None or branch != "rho" else 1 + most // 10**12
            if budget != most and (budget is None or most is None or not most - short <= budget <= most):
                self.find("wrong_limit", name, f"the budget {branch} does not follow from the limit")
        mine_now = (None, None) if mine.window is None else (mine.window.said, {
            "number": mine.window.number, "since": mine.window.since, "spent": list(mine.window.spent)})  # fmt: skip
        if (said.get("window"), said.get("window_spent")) != mine_now:
            self.find("wrong_window", name, "the window, or what was spent in it, is not that of the entries")
        place = (said["dataset"], said["parent"], said["principal"], said["name"], bool(said["frozen"]),
                 said.get("space", said["dataset"]), said.get("expires"))  # fmt: skip
        if place != (mine.dataset, mine.parent, mine.principal, mine.name, mine.frozen, mine.space, mine.expires):
            self.find("wrong_tree", name, "place, owner or state are not those of its entries")

    def _query(self, name: str) -> None:
        mine, said = self.queries.get(name), self.asked.get(name)
        if said is None:
            self.find("wrong_state", name, "entries charge a query that the export does not have")
            return
        cores = parsed(said["cores"])
        path = self.path(said["account"], mine.opened if mine is not None else 0)
        if said["dataset"] != self.accounts[said["account"]].dataset:
            self.find("wrong_path", name, "it asked one dataset, and an account of another one pays")
        owner = self.accounts[said["account"]].principal
        if owner not in (None, said["principal"]):
            self.find("wrong_state", name, "the account that pays belongs to somebody else")
        read = {one["release"]: set(one["accounts"]) for one in cores.get("read", {}).values()}
        wanted = set(path) if cores["charged"] else set().union(*read.values())
        if mine is None:
            if wanted:
                self.find("wrong_path", name, "the query measured something, and no account was charged")
        else:
            if mine.reserved.keys() != wanted or not wanted <= set(path):
                self.find("wrong_path", name, "not all accounts from the payer up to the root were charged")
            if (mine.charged, mine.reused) != (cores["charged"], cores["reused"]):
                self.find("wrong_state", name, "the query says that it measured something else than its entries")
            self._measured(name, mine, cores)
            if any(one == said["account"] or not self.accounts[one].second for one in mine.frozen):
                self.find("over_limit", name, "an account that pays was frozen or had ended before")
        closing = {"settled": "post", "failed_charged": "fail", "failed_void": "void", "reserved": None}[said["state"]]
        if wanted and mine is not None and mine.closed != ({} if closing is None else dict.fromkeys(wanted, closing)):
            self.find("wrong_state", name, f"the query is {said['state']}, and its entries say otherwise")
        if said["answer"] is not None and said["state"] != "settled":
            self.find("wrong_state", name, f"it has an answer, and is {said['state']}")
        if mine is not None and mine.stands and not mine.kept and 0 < self.first_kept < mine.ended:
            self.find("wrong_state", name, "its end does not say what was kept, and earlier ends do")
        if mine is not None and mine.kept and mine.kept["owner"] != said["principal"]:
            self.find("wrong_owner", name, "it belongs to somebody else than when it ended")
        if mine is not None and mine.acted[1] not in (None, said["principal"]):
            self.find("wrong_owner", name, "it belongs to somebody else than the service asked for")
        if mine is not None and "answer" in mine.kept and mine.kept["answer"] != said["answer"]:
            self.find("wrong_answer", name, "the stored answer is not the one that was posted")
        for release, sha256 in (mine.kept.get("releases", {}) if mine is not None else {}).items():
            if self.releases.get(release, {}).get("body") != sha256:
                self.find("wrong_release", release, "its numbers are not those that were posted, or it is gone")
        if said["state"] != "settled":
            return
        for release in {*read, *cores["reused"].values()} - self.releases.keys():
            self.find("wrong_release", release, f"query {name} was answered from it, and it is not there")
        for release in read:
            if not set(path) <= self.paid_for(release):
                self.find("uncharged_reading", name, "an account of the path did not pay for what it read")

    def _measured(self, name: str, mine: Query, cores: Line) -> None:
        """What a query was charged for: events of its own, in addition to what was there, and of what it read."""
        keys = [core["core_key"] for core in mine.charged]
        if len(set(keys)) != len(keys) or not all(core["events"] for core in mine.charged):
            self.find("uncharged_release", name, "it measured something without a privacy event, or twice at one price")
        read = sorted(
            (account, one["release"], one["key"])
            for one in cores.get("read", {}).values()
            for account in one["accounts"]
        )
        charged = [(account, one) for account, every in mine.read.items() for one in every]
        if read != sorted((account, one["release"], one["core_key"]) for account, one in charged):
            self.find("uncharged_reading", name, "its entries charge other readings than it says")
        for account, one in charged:
            release = self.releases.get(one["release"], {})
            if (one["core_key"], one["events"]) != (release.get("core_key"), release.get("events")):
                self.find("uncharged_reading", name, f"account {account} was charged for less than it read")
        used = {one["release"] for _, one in charged} | {
            core["base"]["release"] for core in mine.charged if "base" in core
        }
        for release in used & self.releases.keys():
            made = self.queries.get(self.releases[release]["query"])
            if made is None or not 0 < made.ended < mine.opened:
                self.find("uncharged_release", name, f"release {release} was not there yet when it was used")

    def _release(self, name: str) -> None:
        said = self.releases[name]
        self.made[said["query"], said["core_key"]] += 1
        if self.made[said["query"], said["core_key"]] == 2:
            self.find("uncharged_release", name, "its query released this twice, and was charged for it once")
        by, asked = self.queries.get(said["query"]), self.asked.get(said["query"], {})
        cores = [
            one for one in (by.charged if by is not None and by.stands else []) if one["core_key"] == said["core_key"]
        ]
        if not cores or any(asked.get(one) != said[one] for one in ("dataset", "principal")):
            self.find("uncharged_release", name, "it belongs to no charge that stands")
            return
        if by is not None and by.kept and name not in by.kept["releases"]:
            self.find("wrong_release", name, "its query did not release it")
        base = cores[0].get("base", {"events": []})
        under = self.releases.get(base.get("release", ""), {"events": base["events"], "dataset": said["dataset"]})
        if (said["events"], said["quality"]) != ([*base["events"], *cores[0]["events"]], cores[0]["quality"]):
            self.find("uncharged_release", name, "it has other privacy events, or another quality, than were charged")
        if (under["events"], under["dataset"]) != (base["events"], said["dataset"]):
            self.find("uncharged_release", name, "what it was measured in addition to has other privacy events")
        if "release" in base and base["release"] not in self.releases:
            self.find("wrong_release", base["release"], f"{name} was measured in addition to it, and it is not there")

    def paid_for(self, release: str) -> set[str]:
        """The accounts that paid for all that a release is made of: its own measurement, and what it rests on."""
        chain: list[str] = []
        following: str | None = release
        while following is not None and following in self.releases and following not in chain:
            chain.append(following)
            said = self.releases[following]
            made = self.queries.get(said["query"])
            cores = [] if made is None else [one for one in made.charged if one["core_key"] == said["core_key"]]
            following = cores[0].get("base", {}).get("release") if cores else None
        paid: set[str] = set()
        for one in reversed(chain):
            made = self.queries.get(self.releases[one]["query"])
            measured = set(made.reserved) if made is not None and made.stands else set()
            readers = {account for account, read in self.readings if read == one}
            paid = (measured if one == chain[-1] else paid & measured) | readers
            # A root that was joined brought what it had paid for to the one above: that was debited with its sum.
            for account in [account for account in paid if self.accounts[account].joined]:
                paid.update(self.path(account))
        return paid

    # In words

    def words(self) -> Iterator[str]:
        """What the export says, for people. Names and reasons cannot move a terminal's cursor, nor begin a line."""
        for line in self._words():
            yield "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)

    def _words(self) -> Iterator[str]:
        yield f"Ledger {self.header.get('ledger')}, exported on {day(self.header.get('created', 0))}."
        yield ""
        for name, account in self.accounts.items():
            if account.parent is None:
                yield from self._root(name, account)
        for act in self.acts:
            yield act + "."
        for code, subject, text in self.findings:
            yield f"WRONG  {code}  {subject}: {text}."
        if self.findings:
            yield f"{len(self.findings):,} things do not agree. Rely on nothing above until they are explained."
        else:
            read = f"{self.counts['entry']:,} entries, {self.counts['act']:,} acts, {len(self.accounts):,} accounts"
            yield f"Everything agrees: {read}, {len(self.asked):,} queries, {len(self.releases):,} releases."
            yield "Budgets, prices, balances and both chains of hashes were computed anew."
        yield f"Head, to be noted elsewhere: {self.sequence}:{self.hash}"

    def report(self) -> Line:
        """The same for programs."""
        return {
            "ok": not self.findings,
            "ledger": self.header.get("ledger"),
            "head": {"sequence": self.sequence, "hash": self.hash},
            "counts": dict(self.counts),
            "findings": [dict(zip(("code", "subject", "text"), one, strict=True)) for one in self.findings],
            "accounts": [self._reported(name) for name in self.accounts],
            "acts": self.acts,
        }  # fmt: skip

    def _reported(self, name: str) -> Line:
        account = self.accounts[name]
        epsilon, delta = account.greatest
        return {
            "id": name,
            "dataset": account.dataset,
            "parent": account.parent,
            "spent": dict(zip(AMOUNTS, account.spent, strict=True)),
            "worst_case": {"epsilon": decimal_text(epsilon, PICO), "delta": decimal_text(delta, ATTO)},
            "used_share": float(account.used()),
            "window": None if account.window is None else account.window.said,
        }

    def _root(self, name: str, account: Account) -> Iterator[str]:
        epsilon, delta = account.greatest
        exact = Fraction(epsilon, PICO)
        factor = f"{math.exp(float(exact)):,.4g}" if exact < 40 else f"e^{float(exact):,.10g}"
        small = math.exp(-min(float(exact), 700))
        guess = math.ceil((1 + delta / ATTO * small) / (1 + small) * 10**6) / 10**4
        besides = f"except with a chance of {decimal_text(delta, ATTO)}" if delta else "without exception"
        datasets = sorted({one.dataset for one in self.accounts.values() if one.space == account.space})
        what = f"Dataset {account.dataset}"
        if datasets != [account.space]:
            what = f"Unit space {account.space} (datasets {', '.join(datasets)})"
        yield f"{what}: worst-case loss per person {pair((epsilon, delta))}."
        yield "  Whoever puts together everything that was ever answered about it sees no outcome that is more"
        yield f"  than {factor} times as likely with a person's rows as without them, {besides}."
        yield "  Who tosses a coin for whether somebody is in the data, and then guesses, is right at most"
        yield f"  {min(guess, 100.0):g} % of the time. Used of the limit: {percent(account.used())}."
        running = [one for one in self.queries.values() if one.reserved.keys() & {name} and not one.closed]
        sessions = sum("sparse_session" in json.dumps(one.charged) for one in self.queries.values()
                       if name in one.reserved and set(one.closed.values()) != {"void"})  # fmt: skip
        if running:
            yield f"  {len(running):,} reservations are open: they count as spent."
        if sessions:
            yield f"  {sessions:,} sessions were charged in whole when they were opened, whatever they go on to say."
        first = {one: place for place, one in enumerate(self.accounts)}
        for below in sorted(self.accounts, key=lambda one: [first[above] for above in reversed(self.path(one))]):
            other = self.accounts[below]
            if other.space == account.space and other.parent is not None:
                whose = f"{other.name} ({below})" + (f" of {other.dataset}" if len(datasets) > 1 else "")
                window = "" if other.window is None else f"; window: {windowed(other.window.said)}"
                farther = "  " * (len(self.path(below)) - 1)
                used = f"used {percent(other.used())}{window}"
                yield f"{farther}Account {whose}: at most {pair(other.greatest)}; {used}."
        yield "  An account below speaks of its own answers alone; of people who tell each other, only the first line."
        yield ""


def decimal_text(units: int, unit: int) -> str:
    """Whole units as a plain decimal."""
    with decimal.localcontext(_CONTEXT):
        text = f"{Decimal(units) / unit:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def pair(limit: tuple[int, int]) -> str:
    """A limit as people write it."""
    return f"(epsilon {decimal_text(limit[0], PICO)}, delta {decimal_text(limit[1], ATTO)})"


def windowed(said: Line | None) -> str:
    """A window as people read it."""
    if said is None:
        return "none"
    if said["mode"] == "slices":
        return f"{said['slices']:,} {said['kind']} slices from {said['first']} on"
    return f"{said['kind']} {pair(units_of(said['limit']))} from {said['first']} on, which add up to the limit"


def percent(part: Fraction) -> str:
    """A part of one, rounded up."""
    return f"{math.ceil(part * 10**4) / 100:g} %"


def day(micros: int) -> str:
    """The day of a moment, in UTC."""
    return f"{datetime.datetime.fromtimestamp(micros / 10**6, datetime.UTC):%Y-%m-%d}"


def verify(path: Path, heads: Mapping[int, str] | None = None) -> Verifier:
    """Reads an export and returns what was found. Errors: NotAnExport, OSError."""
    verifier = Verifier()
    with path.open("rb") as file:
        verifier.read(iter(file), heads or {})
    return verifier


def head_of(path: Path) -> tuple[int, str]:
    """The head that an earlier export ends with. Errors: NotAnExport, OSError."""
    with path.open("rb") as file:
        last = deque(file, maxlen=1)
    try:
        line = parsed(last.pop())
        return int(line["sequence"]), str(line["hash"])
    except (IndexError, ValueError, KeyError, TypeError):
        raise NotAnExport(f"{path} has no last line: note the head of a whole export") from None


def heads_of(earlier: Sequence[Path], noted: Sequence[str]) -> dict[int, str]:
    """Hashes that the export must have, by sequence: of earlier exports, and of heads that people wrote down.

    Errors: NotAnExport, OSError; ValueError for a head that is none.
    """
    found = [head_of(path) for path in earlier]
    for text in noted:
        sequence, _, digest = text.partition(":")
        if not sequence.isascii() or not sequence.isdigit() or len(digest) != len(GENESIS):
            raise ValueError("a head is written SEQUENCE:HASH, as this program prints it")
        found.append((int(sequence), digest))
    heads = dict(found)
    if any(heads[sequence] != digest for sequence, digest in found):
        raise ValueError("two heads of one entry differ: they are not of the same history")
    return {sequence: digest for sequence, digest in heads.items() if sequence}


def main(arguments: list[str] | None = None) -> int:
    """One command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check an export of a Noisegate ledger.")
    parser.add_argument("file", type=Path, help="the export")
    parser.add_argument(
        "--earlier", type=Path, action="append", default=[], help="an earlier export of the same ledger"
    )
    parser.add_argument("--head", action="append", default=[], help="a head that was noted: SEQUENCE:HASH")
    parser.add_argument("--json", action="store_true", help="one line of JSON for programs")
    given = parser.parse_args(arguments)
    try:
        found = verify(given.file, heads_of(given.earlier, given.head))
    except (NotAnExport, OSError, ValueError) as error:
        sys.stderr.write(f"verify: {error}\n")
        return 2
    if given.json:
        sys.stdout.write(json.dumps(found.report()) + "\n")
    else:
        sys.stdout.write("\n".join(found.words()) + "\n")
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main())
