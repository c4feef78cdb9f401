"""What a stream would promise and cost, before it is opened: text, declarations and balances, no row."""

from __future__ import annotations

import math

from privacy.values import Json
from server.streams.counted import Counted
from server.streams.opening import Planned
from server.streams.terms import Terms

__all__ = ["estimated", "left_out", "promised"]


def promised(terms: Terms) -> dict[str, Json]:
    """How exact the answers of a stream are, in the unit of its sums."""
    return {
        "tolerance": float(terms.tolerance * terms.step),
        "within": terms.within,
        "within_measured": terms.of_updates,
        "wrong_updates": terms.wrong_updates,
    }


def left_out(counted: Counted | None) -> dict[str, Json]:
    """How much of one unit counts, and what no number beside it shows of what that leaves out."""
    return {
        "contribution": None if counted is None else counted.bounds(),
        "cut": [] if counted is None else list(counted.cut),
    }


def estimated(planned: Planned) -> dict[str, Json]:
    """An estimate as it is shown."""
    terms, offer = planned.stream, planned.offer
    half = math.sqrt(terms.noise.cell_variance * terms.cells / 2) * float(terms.step)
    return {
        "verdict": offer.verdict.value,
        "price": offer.price(),
        "cells": terms.cells,
        **promised(terms),
        "error_of_half": half,
        **left_out(planned.frame.counted),
    }
