"""What a stream would promise and cost, before it is opened: text, declarations and balances, no row."""

from __future__ import annotations

import math

from privacy.values import Json
from server.resources.offer import Offer
from server.streams.terms import Terms

__all__ = ["estimated", "promised"]


def promised(terms: Terms) -> dict[str, Json]:
    """How exact the answers of a stream are, in the unit of its sums."""
    return {
        "tolerance": float(terms.tolerance * terms.step),
        "within": terms.within,
        "within_measured": terms.of_updates,
        "wrong_updates": terms.wrong_updates,
    }


def estimated(terms: Terms, offer: Offer) -> dict[str, Json]:
    """An estimate as it is shown."""
    half = math.sqrt(terms.noise.cell_variance * terms.cells / 2) * float(terms.step)
    return {
        "verdict": offer.verdict.value,
        "price": offer.price(),
        "cells": terms.cells,
        **promised(terms),
        "error_of_half": half,
    }
