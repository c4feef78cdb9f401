"""Renyi differential privacy of repeated questions: its curves, and what they promise at one order, several, the best.

The ledger keeps no Renyi curve (decision 0014): an account that admits "while any order still fits" would be no
filter. One order that is fixed beforehand is one, and so are several with delta divided among them.
"""

from __future__ import annotations

import math
from typing import assert_never

from accountant.simulation.questions import Kind, Repeated
from privacy.least import least_place

__all__ = ["ORDERS", "at_best_order", "at_fixed_order", "best_order", "budget", "divergence", "one_of_orders"]

ORDERS = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 22, 32, 48, 64, 128, 256)
"""A grid of orders, as accountants of this kind keep it."""

_ABOVE_ONE = (-7.0, 14.0)
"""Logarithms of how far an order is above one: where the best one is looked for."""


def divergence(question: Repeated, order: float) -> float:
    """The Renyi divergence of one question at an order above 1.

    Source: Mironov 2017, Table II (Laplace, randomised response, Gaussian); Cesar and Rogers 2021, Lemma 3.4 (bounded
    range).
    """
    above = order - 1
    size = float(question.size)
    match question.kind:
        case Kind.GAUSSIAN:
            return order * size**2 / 2
        case Kind.SELECTION:
            return min(size, order * size**2 / 8)
        case Kind.LAPLACE:
            likely, unlikely = order / (2 * order - 1), above / (2 * order - 1)
            return _log_of_two(likely, above * size, unlikely, -order * size) / above
        case Kind.PURE:
            likely, unlikely = 1 / (1 + math.exp(-size)), 1 / (1 + math.exp(size))
            return _log_of_two(likely, above * size, unlikely, -above * size) / above
        case _:
            assert_never(question.kind)


def _log_of_two(chance: float, up: float, other: float, down: float) -> float:
    """ln(chance e^up + other e^down) for chances that add up to one and up > 0 > down, near zero without cancelling."""
    if up < 1:
        return math.log1p(chance * math.expm1(up) + other * math.expm1(down))
    return up + math.log(chance + other * math.exp(down - up))


def _epsilon(spent: float, order: float, delta: float) -> float:
    """Source: Canonne, Kamath and Steinke 2020, Proposition 12."""
    return spent + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def at_best_order(question: Repeated, count: int, delta: float) -> float:
    """The least epsilon over all orders: for questions that were fixed beforehand."""

    def value(x: float) -> float:
        order = 1 + math.exp(x)
        return _epsilon(count * divergence(question, order), order, delta)

    at = least_place(value, *_ABOVE_ONE)
    return max(value(at), 0.0)


def best_order(epsilon: float, delta: float) -> float:
    """The order that a limit of (epsilon, delta) is best held at when nothing of the questions is known.

    That at which the limit equals the most rho of zero-concentrated DP.
    """

    def value(x: float) -> float:
        order = 1 + math.exp(x)
        return -(epsilon - _epsilon(0.0, order, delta)) / order

    return 1 + math.exp(least_place(value, *_ABOVE_ONE))


def at_fixed_order(question: Repeated, epsilon: float, delta: float) -> int:
    """How many questions a filter at `best_order` admits. Source: Feldman and Zrnic 2021, Theorem 4.3."""
    return _admitted(question, epsilon, delta, best_order(epsilon, delta))


def one_of_orders(question: Repeated, epsilon: float, delta: float) -> int:
    """How many a union of filters admits, one for each of `ORDERS` with its part of delta (accountant/filter.md)."""
    return max(_admitted(question, epsilon, delta / len(ORDERS), order) for order in ORDERS)


def _admitted(question: Repeated, epsilon: float, delta: float, order: float) -> int:
    most = budget(epsilon, delta, order)
    return 0 if most <= 0 else int(most / divergence(question, order))


def budget(epsilon: float, delta: float, order: float) -> float:
    """The Renyi divergence at this order that an (epsilon, delta) limit affords; negative where it affords none."""
    return epsilon - _epsilon(0.0, order, delta)
