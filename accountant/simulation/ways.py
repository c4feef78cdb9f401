"""Every way of adding up, in one table: how many questions a limit affords, and what so many of them promise."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from accountant.filter import DEFAULT_SHARES, NOTHING, FilterKind, Limit, Sums, charges_left, split_limit
from accountant.simulation import distribution, renyi, theorems
from accountant.simulation.questions import Kind, Repeated
from privacy.conversions import concentrated_epsilon, gaussian_epsilon

__all__ = ["QUESTIONS_MAX", "WAYS", "Figures", "Standing", "Way", "simulate"]

QUESTIONS_MAX = distribution.COUNT_MAX
"""Where counting stops: a limit that affords more says so."""


class Standing(enum.Enum):
    """What a figure may be relied on for. The value is its word in the API."""

    FILTER = "filter"
    """Holds when each question is chosen after the answers to the earlier ones: what a server may enforce."""

    FIXED = "fixed"
    """Holds when number and sizes of all questions are fixed beforehand."""

    WRONG = "wrong"
    """Does not hold. It is here because books print it."""


Epsilon = Callable[[Repeated, int, float], float]
"""The epsilon that so many questions promise at delta; infinite where the way says nothing."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of adding up. `kinds`: the questions that it is for. `here`: whether accounts of this server use it."""

    name: str
    means: str
    source: str
    standing: Standing
    kinds: frozenset[Kind]
    epsilon: Epsilon
    here: bool = False
    admitted: Callable[[Repeated, Limit], int] | None = None
    """How many questions fit, where that is not simply those whose epsilon is within the limit."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one way says. `epsilons` has one entry for each of the asked counts, None where the way says nothing."""

    way: Way
    questions: int
    epsilons: tuple[float | None, ...]


def simulate(question: Repeated, limit: Limit, counts: tuple[int, ...]) -> tuple[Figures, ...]:
    """How many such questions the limit affords, and their epsilon at its delta after each of `counts`, for every way.

    A limit with delta 0 leaves the ways that need none: the sum, and this server's pure account.
    Errors: ValueError for counts outside [1, `QUESTIONS_MAX`], and a delta above zero and below 10^-9.
    """
    if not all(1 <= count <= QUESTIONS_MAX for count in counts):
        raise ValueError(f"a count of questions must be between 1 and {QUESTIONS_MAX}")
    delta = float(limit.delta)
    if 0 < delta < distribution.DELTA_LEAST:
        raise ValueError("delta must be zero or at least 0.000000001")
    ways = [way for way in WAYS if question.kind in way.kinds and (delta > 0 or way in _PURE)]
    return tuple(_figures(way, question, limit, counts) for way in ways)


def _figures(way: Way, question: Repeated, limit: Limit, counts: tuple[int, ...]) -> Figures:
    delta = float(limit.delta)
    epsilons = tuple(way.epsilon(question, count, delta) for count in counts)
    if way.admitted is not None:
        questions = way.admitted(question, limit)
    else:
        goal = float(limit.epsilon) * (1 + 1e-12)
        questions = _most(lambda count: way.epsilon(question, count, delta) <= goal)
    return Figures(way, questions, tuple(value if math.isfinite(value) else None for value in epsilons))


def _most(fit: Callable[[int], bool]) -> int:
    """The most questions that fit; fitting only ever stops."""
    if not fit(1):
        return 0
    low, high = 1, 2
    while high < QUESTIONS_MAX and fit(high):
        low, high = high, 2 * high
    high = min(high, QUESTIONS_MAX + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    return low


def _sum(question: Repeated, count: int, delta: float) -> float:
    return count * float(question.size)


def _most_of_sum(question: Repeated, limit: Limit) -> int:
    return min(int(limit.epsilon / question.size), QUESTIONS_MAX)


def _rho(question: Repeated) -> Fraction:
    rho = question.loss().rho
    assert rho is not None
    return rho


def _mu_squared(question: Repeated) -> Fraction:
    mu_squared = question.loss().mu_squared
    assert mu_squared is not None
    return mu_squared


def _concentrated(question: Repeated, count: int, delta: float) -> float:
    return float(concentrated_epsilon(rho=_rho(question) * count, delta=Fraction(delta)))


def _gaussian(question: Repeated, count: int, delta: float) -> float:
    mu_squared = _mu_squared(question) * count
    return float(gaussian_epsilon(mu_squared=mu_squared, delta=Fraction(delta))) if mu_squared <= 10**12 else math.inf


def _first_concentrated(question: Repeated, count: int, delta: float) -> float:
    return theorems.bun_steinke(float(_rho(question)) * count, delta)


def _distribution(question: Repeated, count: int, delta: float) -> float:
    if question.kind is Kind.GAUSSIAN:
        return _gaussian(question, count, delta)
    return distribution.epsilon_of_many(question, count, delta)


def _by_limit(count_of: Callable[[Repeated, float, float], int]) -> Callable[[Repeated, Limit], int]:
    return lambda question, limit: min(count_of(question, float(limit.epsilon), float(limit.delta)), QUESTIONS_MAX)


def _of_account(question: Repeated, limit: Limit) -> int:
    """What an account of this server admits of such questions alone: its own filter, its own rounding."""
    branches = split_limit(limit, FilterKind.APPROXIMATE if limit.delta else FilterKind.PURE, DEFAULT_SHARES)
    return min(charges_left(replace(Sums.of(question.loss()), delta=0), NOTHING, branches), QUESTIONS_MAX)


def _nothing(question: Repeated, count: int, delta: float) -> float:
    return math.inf


def _with_epsilon(theorem: Callable[[float, int, float], float]) -> Epsilon:
    return lambda question, count, delta: theorem(float(question.size), count, delta)


_EVERY = frozenset(Kind)
_WITH_EPSILON = frozenset({Kind.LAPLACE, Kind.SELECTION, Kind.PURE})
_ONLY_GAUSSIAN = frozenset({Kind.GAUSSIAN})

_ACCOUNT = Way(
    name="account",
    means="An account of this server: a union of filters, delta divided among them.",
    source="accountant/filter.md",
    standing=Standing.FILTER,
    kinds=_EVERY,
    epsilon=_nothing,
    here=True,
    admitted=_of_account,
)

_SUM = Way(
    name="sum",
    means="The pure epsilons added up.",
    source="Dwork and Roth 2014, Theorem 3.16",
    standing=Standing.FILTER,
    kinds=_WITH_EPSILON,
    epsilon=_sum,
    here=True,
    admitted=_most_of_sum,
)

_PURE = (_ACCOUNT, _SUM)

WAYS: tuple[Way, ...] = (
    _ACCOUNT,
    _SUM,
    Way(
        name="gaussian",
        means="The squares of mu of Gaussian differential privacy added up, converted exactly.",
        source="Dong, Roth and Su 2022, Corollary 3.3; Smith and Thakurta 2022",
        standing=Standing.FILTER,
        kinds=_EVERY,
        epsilon=_gaussian,
        here=True,
    ),
    Way(
        name="concentrated",
        means="Rho of zero-concentrated differential privacy added up, in its best conversion.",
        source="Canonne, Kamath and Steinke 2020, Corollary 13; Feldman and Zrnic 2021",
        standing=Standing.FILTER,
        kinds=_EVERY,
        epsilon=_concentrated,
        here=True,
    ),
    Way(
        name="concentrated_first",
        means="The same with the first conversion, rho + 2 sqrt(rho ln(1/delta)).",
        source="Bun and Steinke 2016, Proposition 1.3",
        standing=Standing.FILTER,
        kinds=_EVERY,
        epsilon=_first_concentrated,
    ),
    Way(
        name="renyi",
        means="Renyi divergence at one order, which follows from the limit.",
        source="Feldman and Zrnic 2021, Theorem 4.3; Canonne, Kamath and Steinke 2020, Proposition 12",
        standing=Standing.FILTER,
        kinds=_EVERY,
        epsilon=_nothing,
        admitted=_by_limit(renyi.at_fixed_order),
    ),
    Way(
        name="renyi_orders",
        means="Renyi divergence at any of several orders, delta divided among them.",
        source="accountant/filter.md, union of filters",
        standing=Standing.FILTER,
        kinds=_EVERY,
        epsilon=_nothing,
        admitted=_by_limit(renyi.one_of_orders),
    ),
    Way(
        name="renyi_best",
        means="Renyi divergence at the order that turns out best: no filter.",
        source="Mironov 2017; Canonne, Kamath and Steinke 2020, Proposition 12",
        standing=Standing.FIXED,
        kinds=_EVERY,
        epsilon=renyi.at_best_order,
    ),
    Way(
        name="filter_whitehouse",
        means="Advanced composition with its best constants, as a filter.",
        source="Whitehouse et al. 2023, Theorem 2",
        standing=Standing.FILTER,
        kinds=_WITH_EPSILON,
        epsilon=_with_epsilon(theorems.filter_of_whitehouse),
    ),
    Way(
        name="filter_rogers",
        means="The first filter for epsilons that are chosen adaptively.",
        source="Rogers, Roth, Ullman and Vadhan 2016, Theorem 5.1",
        standing=Standing.FILTER,
        kinds=_WITH_EPSILON,
        epsilon=_with_epsilon(theorems.filter_of_rogers),
    ),
    Way(
        name="advanced",
        means="Advanced composition.",
        source="Dwork, Rothblum and Vadhan 2010, Theorem III.3",
        standing=Standing.FIXED,
        kinds=_WITH_EPSILON,
        epsilon=_with_epsilon(theorems.advanced),
    ),
    Way(
        name="distribution",
        means="The distribution of the loss, composed numerically; for pure questions the optimum of all mechanisms.",
        source="Doroshenko et al. 2022; Kairouz, Oh and Viswanath 2015, Theorem 3.3",
        standing=Standing.FIXED,
        kinds=_EVERY - {Kind.SELECTION},
        epsilon=_distribution,
    ),
    Way(
        name="classical",
        means="Classical Gaussian noise at delta / k for each of k questions, their epsilons added up.",
        source="Dwork and Roth 2014, Theorems A.1 and 3.16",
        standing=Standing.FIXED,
        kinds=_ONLY_GAUSSIAN,
        epsilon=_with_epsilon(theorems.classical_gaussian),
    ),
    Way(
        name="advanced_of_books",
        means="2 epsilon sqrt(2 k ln(1/delta)), printed without the condition that it needs.",
        source="needs k (e^epsilon - 1)^2 <= 2 ln(1/delta)",
        standing=Standing.WRONG,
        kinds=_WITH_EPSILON,
        epsilon=_with_epsilon(theorems.advanced_of_books),
    ),
    Way(
        name="classical_of_books",
        means="Classical Gaussian noise under that form of advanced composition.",
        source="needs an epsilon below 1, and that condition",
        standing=Standing.WRONG,
        kinds=_ONLY_GAUSSIAN,
        epsilon=_with_epsilon(theorems.classical_gaussian_of_books),
    ),
)
"""All of them: first what accounts of this server use, last what is wrong."""
