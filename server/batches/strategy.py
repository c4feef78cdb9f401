"""The ways to answer a batch, by name."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Strategy"]


class Strategy(StrEnum):
    """How the queries of a batch are answered."""

    ONE_BY_ONE = "one_by_one"
    """Each gets its part of the price, and noise of its own."""
    CELLS = "cells"
    """They are sums of the cells of one histogram, with the levels that they ask for measured with it."""
    TREE = "tree"
    """They are sums of the cells of one axis, with the levels of a tree measured with them."""
    DISJOINT = "disjoint"
    """They are groups of which no row is in two: each has the whole price."""
