"""Who may still spend: privacy filters as comparisons of whole numbers.

A limit (E, delta) is split once, when an account is opened, into the budgets of a few branches. Each branch sums
one measure of everything that was ever admitted; a charge is admitted while some branch, with the charge added, is
within its budget, and the deltas of all charges are within theirs. Proof in `filter.md`.

| branch | measure | budget |
|---|---|---|
| pure | pure epsilon | E |
| gaussian | mu squared | largest mu squared that is (E, g delta)-DP |
| concentrated | rho | largest rho that is (E, c delta)-DP |
| mixed | pure epsilon of some charges | a = E/2 |
| | mu squared of the others | largest mu squared that is (E - a, m delta)-DP |
| (all) | delta of the charges | s delta; 0 for a pure account |

The shares g, c, m and s of an account (`DeltaShares`) add up to 1 and never change. In the mixed branch each charge is
put into exactly one of two sums when it is admitted (`place`), and stays there.

Amounts are whole picos (delta: whole attos). What is spent is rounded up once per charge, budgets are rounded down.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from privacy.conversions import concentrated_rho, gaussian_mu_squared
from privacy.loss import Loss
from privacy.numbers import ATTO, PICO, units_down, units_up

__all__ = [
    "AMOUNT_MAX",
    "DEFAULT_SHARES",
    "DELTA_MAX",
    "EPSILON_MAX",
    "FIRST_SHARES",
    "NOTHING",
    "Branch",
    "Branches",
    "DeltaShares",
    "FilterKind",
    "Limit",
    "Sums",
    "alive_branches",
    "charges_left",
    "fits",
    "forgets_charges",
    "least_share",
    "place",
    "split_limit",
]

AMOUNT_MAX = 2**62
"""Greatest number of units that is stored (a ledger column is a signed 64-bit integer); more counts as infinite."""

EPSILON_MAX = Fraction(10**6)
"""Greatest epsilon of a limit. It keeps every budget below `AMOUNT_MAX`."""

DELTA_MAX = Fraction(1, 100)
"""Greatest delta of a limit: a mechanism may leak everything with probability delta."""


class FilterKind(enum.Enum):
    """Which filter an account enforces. Chosen when it is opened, forever."""

    PURE = "pure"
    """The sum of pure epsilons; charges with a delta or without a pure epsilon are never admitted."""

    APPROXIMATE = "approximate"
    """The union of the pure, the Gaussian and the concentrated filter, and a cap on deltas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaShares:
    """What of an account's delta is for which noise, in whole percent that add up to 100. Fixed when it is opened.

    Raises ValueError for other numbers. A share of 0 is a branch that the account does not have; without one for
    groups it finds no groups that the dataset does not declare.
    """

    gaussian: int
    concentrated: int
    mixed: int = 0
    groups: int

    def __post_init__(self) -> None:
        shares = (self.gaussian, self.concentrated, self.mixed, self.groups)
        if min(shares) < 0 or sum(shares) != 100:
            raise ValueError(
                "the shares of delta (gaussian, concentrated, mixed, groups) are whole percents that add up to 100, "
                f"not {', '.join(map(str, shares))}"
            )


DEFAULT_SHARES = DeltaShares(gaussian=70, concentrated=7, mixed=8, groups=15)
"""The shares of a new account where nobody chose others: most for the noise that answers most questions."""

FIRST_SHARES = DeltaShares(gaussian=25, concentrated=25, groups=50)
"""The shares of every account whose grant names none: all that were opened before shares could be chosen."""


class Branch(enum.Enum):
    """One running sum with a budget of its own; the mixed one has two."""

    PURE = "pure"
    GAUSSIAN = "gaussian"
    CONCENTRATED = "concentrated"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Limit:
    """What the charges of an account may be together: (epsilon, delta)-DP, both exact.

    Raises ValueError for amounts that are not whole picos (attos) within (0, 10^6] and [0, 1/100].
    """

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        if not (isinstance(self.epsilon, Fraction) and isinstance(self.delta, Fraction)):
            raise TypeError("the amounts of a limit must be Fractions")
        if not 0 < self.epsilon <= EPSILON_MAX:
            raise ValueError("epsilon of a limit must be greater than zero and at most 1000000")
        if not 0 <= self.delta <= DELTA_MAX:
            raise ValueError("delta of a limit must be between 0 and 0.01")
        if (self.epsilon / PICO).denominator != 1 or (self.delta / ATTO).denominator != 1:
            raise ValueError("a limit must be a whole number of picos (epsilon) and attos (delta)")


@dataclass(frozen=True, slots=True)
class Sums:
    """Amounts of one charge, or of all charges so far, in whole units; None is infinite and stays so.

    Units: picos for `pure`, `rho`, `mu_squared` and the two sums of the mixed branch, attos for `delta`. Every amount
    is at most `AMOUNT_MAX`; the sum of deltas stops there (it is far beyond any limit). Into which sum of the mixed
    branch a charge goes is the account's to say, so of one charge both are 0.
    """

    pure: int | None = 0
    rho: int | None = 0
    mu_squared: int | None = 0
    delta: int = 0
    mixed_pure: int | None = 0
    mixed_mu_squared: int | None = 0

    def __post_init__(self) -> None:
        # One by one, without a loop: sums are made several times for every account of every charge.
        pure, rho, mu_squared, in_pure, in_noise = (
            *(self.pure, self.rho, self.mu_squared),
            *(self.mixed_pure, self.mixed_mu_squared),
        )
        wrong = "an amount is negative or cannot be stored"
        assert pure is None or 0 <= pure <= AMOUNT_MAX, wrong
        assert rho is None or 0 <= rho <= AMOUNT_MAX, wrong
        assert mu_squared is None or 0 <= mu_squared <= AMOUNT_MAX, wrong
        assert 0 <= self.delta <= AMOUNT_MAX, wrong
        assert in_pure is None or 0 <= in_pure <= AMOUNT_MAX, wrong
        assert in_noise is None or 0 <= in_noise <= AMOUNT_MAX, wrong

    @classmethod
    def of(cls, loss: Loss) -> Sums:
        """One charge: the loss of all its events together, each measure rounded up once."""
        return _rounded(loss)

    def plus(self, charge: Sums, branches: Branches) -> Sums:
        """The sums of an account with these budgets after one more charge."""
        placed = place(charge, self, branches)
        in_pure, in_mu_squared = (None, None) if placed is None else placed
        return Sums(
            pure=_plus(self.pure, charge.pure),
            rho=_plus(self.rho, charge.rho),
            mu_squared=_plus(self.mu_squared, charge.mu_squared),
            delta=min(self.delta + charge.delta, AMOUNT_MAX),
            mixed_pure=_plus(self.mixed_pure, in_pure),
            mixed_mu_squared=_plus(self.mixed_mu_squared, in_mu_squared),
        )

    def placed(self, spent: Sums, branches: Branches) -> Sums:
        """One charge with its place in the mixed branch of an account with these budgets that has spent so much."""
        found = place(self, spent, branches)
        in_pure, in_mu_squared = (None, None) if found is None else found
        return replace(self, mixed_pure=in_pure, mixed_mu_squared=in_mu_squared)

    def together(self, charge: Sums) -> Sums:
        """The sums after one more charge that has its place."""
        return Sums(
            pure=_plus(self.pure, charge.pure),
            rho=_plus(self.rho, charge.rho),
            mu_squared=_plus(self.mu_squared, charge.mu_squared),
            delta=min(self.delta + charge.delta, AMOUNT_MAX),
            mixed_pure=_plus(self.mixed_pure, charge.mixed_pure),
            mixed_mu_squared=_plus(self.mixed_mu_squared, charge.mixed_mu_squared),
        )

    def add(self, loss: Loss, branches: Branches) -> Sums:
        """The sums of an account with these budgets after one more charge."""
        return self.plus(Sums.of(loss), branches)


NOTHING = Sums()
"""The sums of a new account."""


@functools.lru_cache(maxsize=256)
def _rounded(loss: Loss) -> Sums:
    """A function of exact numbers alone, which every step of one question asks for again."""
    return Sums(
        pure=_stored(loss.pure),
        rho=_stored(loss.rho),
        mu_squared=_stored(loss.mu_squared),
        delta=min(units_up(loss.delta, ATTO), AMOUNT_MAX),
    )


def _stored(amount: Fraction | None) -> int | None:
    if amount is None:
        return None
    units = units_up(amount, PICO)
    return None if units > AMOUNT_MAX else units


def _plus(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    total = left + right
    return None if total > AMOUNT_MAX else total


@dataclass(frozen=True, slots=True)
class Branches:
    """Budgets of one account, fixed by its limit. None for a branch that the account does not have.

    Units: picos for `pure`, `rho`, `mu_squared` and the two of the mixed branch, which has both or neither; attos for
    `delta` (the cap on the deltas of charges) and for `gaussian_delta`, `concentrated_delta` and `mixed_delta` (what
    these branches take from the delta of the limit).
    """

    pure: int
    mu_squared: int | None
    rho: int | None
    delta: int
    gaussian_delta: int
    concentrated_delta: int
    mixed_pure: int | None = None
    mixed_mu_squared: int | None = None
    mixed_delta: int = 0

    def __post_init__(self) -> None:
        assert 0 < self.pure <= AMOUNT_MAX
        assert self.mu_squared is None or 0 < self.mu_squared <= AMOUNT_MAX
        assert self.rho is None or 0 < self.rho <= AMOUNT_MAX
        assert min(self.delta, self.gaussian_delta, self.concentrated_delta, self.mixed_delta) >= 0
        assert (self.mu_squared is None) or self.gaussian_delta > 0
        assert (self.rho is None) or self.concentrated_delta > 0
        assert (self.mixed_pure is None) == (self.mixed_mu_squared is None)
        if self.mixed_pure is not None and self.mixed_mu_squared is not None:
            assert self.mixed_delta > 0
            assert 0 < self.mixed_pure < self.pure
            assert 0 < self.mixed_mu_squared <= AMOUNT_MAX


def split_limit(limit: Limit, kind: FilterKind, shares: DeltaShares) -> Branches:
    """The budgets of an account with this limit; a pure one has no delta that could be shared.

    Errors: ValueError when a pure account has a delta or an approximate account has less than 4 attos of it.
    """
    pure = units_down(limit.epsilon, PICO)
    delta = units_down(limit.delta, ATTO)
    if kind is FilterKind.PURE:
        if delta != 0:
            raise ValueError("the limit of a pure account has delta 0")
        return Branches(pure=pure, mu_squared=None, rho=None, delta=0, gaussian_delta=0, concentrated_delta=0)
    if delta < 4:
        raise ValueError("the limit of an approximate account needs a delta of at least 4e-18")
    gaussian, concentrated, mixed, groups = (
        delta * percent // 100 for percent in (shares.gaussian, shares.concentrated, shares.mixed, shares.groups)
    )
    # A budget of less than one unit is a branch that nothing fits.
    half = pure // 2
    noise = _budget(gaussian_mu_squared, limit.epsilon - half * PICO, mixed) if half else None
    return Branches(
        pure=pure,
        mu_squared=_budget(gaussian_mu_squared, limit.epsilon, gaussian),
        rho=_budget(concentrated_rho, limit.epsilon, concentrated),
        delta=groups,
        gaussian_delta=gaussian,
        concentrated_delta=concentrated,
        mixed_pure=None if noise is None else half,
        mixed_mu_squared=noise,
        mixed_delta=mixed,
    )


def _budget(most: Callable[..., Fraction], epsilon: Fraction, delta: int) -> int | None:
    return units_down(most(epsilon=epsilon, delta=delta * ATTO), PICO) or None if delta else None


def place(charge: Sums, spent: Sums, branches: Branches) -> tuple[int, int] | None:
    """What a charge adds to the pure sum and to the sum of mu squared of the mixed branch: to one of them, not both.

    To the one of which it takes the smaller part, where it fits that one; to the other where it fits only there. So
    what it takes of the branch never falls with its measures. None when it has no finite amount of either measure; two
    zeros for an account without the branch. A function of what was spent before: whoever replays the entries finds the
    same.
    """
    whole, noise = branches.mixed_pure, branches.mixed_mu_squared
    if whole is None or noise is None:
        return 0, 0
    if charge.pure is None:
        return None if charge.mu_squared is None else (0, charge.mu_squared)
    if charge.mu_squared is None:
        return charge.pure, 0
    fits_pure = spent.mixed_pure is not None and spent.mixed_pure + charge.pure <= whole
    fits_noise = spent.mixed_mu_squared is not None and spent.mixed_mu_squared + charge.mu_squared <= noise
    cheaper = charge.pure * noise <= charge.mu_squared * (branches.pure - whole)
    in_pure = cheaper if fits_pure == fits_noise else fits_pure
    return (charge.pure, 0) if in_pure else (0, charge.mu_squared)


def alive_branches(sums: Sums, branches: Branches) -> tuple[Branch, ...]:
    """The branches whose sum of everything admitted is within their budget."""
    amounts = (
        (Branch.PURE, _within(sums.pure, branches.pure)),
        (Branch.GAUSSIAN, _within(sums.mu_squared, branches.mu_squared)),
        (Branch.CONCENTRATED, _within(sums.rho, branches.rho)),
        (Branch.MIXED, _mixed_within(sums, branches)),
    )
    return tuple(branch for branch, alive in amounts if alive)


def least_share(sums: Sums, branches: Branches) -> tuple[int, int]:
    """The least used share over the branches that are alive, as numerator and denominator; 1 of 1 when none is.

    Of the mixed branch it is the share of its epsilon: what its pure sum is of E, and of the rest of E the part that
    its mu squared is of its budget. So a pure charge counts there what it counts in the pure branch.
    Without the arithmetic of fractions: it is asked many times for every question.
    """
    best = (1, 1)
    for spent, budget in (
        (sums.pure, branches.pure),
        (sums.mu_squared, branches.mu_squared),
        (sums.rho, branches.rho),
    ):
        # A branch that is used beyond its budget is not alive; one without a budget is full from the beginning.
        if spent is not None and budget is not None and spent * best[1] < best[0] * budget:
            best = (spent, budget)
    if _mixed_within(sums, branches):
        whole, noise = branches.mixed_pure, branches.mixed_mu_squared
        in_pure, in_noise = sums.mixed_pure, sums.mixed_mu_squared
        assert whole is not None and noise is not None and in_pure is not None and in_noise is not None  # noqa: PT018
        used, of = in_pure * noise + (branches.pure - whole) * in_noise, branches.pure * noise
        if used * best[1] < best[0] * of:
            best = (used, of)
    return best


def charges_left(charge: Sums, sums: Sums, branches: Branches) -> int:
    """How many charges of these amounts would be admitted one after another from these sums on."""
    found = [0]
    for amount, spent, budget in (
        (charge.pure, sums.pure, branches.pure),
        (charge.mu_squared, sums.mu_squared, branches.mu_squared),
        (charge.rho, sums.rho, branches.rho),
    ):
        if amount and spent is not None and budget is not None:
            found.append((budget - spent) // amount)
    if _mixed_within(sums, branches):
        # First the sum of which each takes less is filled, then the other one.
        found.append(
            sum(
                (budget - spent) // amount
                for amount, spent, budget in (
                    (charge.pure, sums.mixed_pure, branches.mixed_pure),
                    (charge.mu_squared, sums.mixed_mu_squared, branches.mixed_mu_squared),
                )
                if amount and spent is not None and budget is not None
            )
        )
    most = max(found)
    return max(min(most, (branches.delta - sums.delta) // charge.delta), 0) if charge.delta else most


def fits(sums: Sums, branches: Branches) -> bool:
    """Whether these sums, which include the charge that is asked about, are within the limit."""
    return sums.delta <= branches.delta and (
        _within(sums.pure, branches.pure)
        or _within(sums.mu_squared, branches.mu_squared)
        or _within(sums.rho, branches.rho)
        or _mixed_within(sums, branches)
    )


def forgets_charges(sums: Sums, before: Branches, after: Branches, *, mixed: int) -> bool:
    """Whether another limit could leave charges out of the mixed branch: what was charged while there was none.

    A limit so small that its budget is less than a unit has no mixed branch, and its charges are in neither sum
    (`place`). An account gets one later only where nothing was charged so: where nothing is charged at all, or where
    nothing fitted the limit without it. So that this stays known, a limit without it, under which something fits, is
    not lowered to one under which nothing does. `mixed` is the account's share of delta for that branch.
    """
    if not mixed or before.mixed_pure is not None or sums == NOTHING or not fits(sums, before):
        return False
    return after.mixed_pure is not None or not fits(sums, after)


def _mixed_within(sums: Sums, branches: Branches) -> bool:
    return _within(sums.mixed_pure, branches.mixed_pure) and _within(sums.mixed_mu_squared, branches.mixed_mu_squared)


def _within(spent: int | None, budget: int | None) -> bool:
    return spent is not None and budget is not None and spent <= budget
