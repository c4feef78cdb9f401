"""Which keys have a bucket of their own where squares are found by buckets (dialects/duckdb_squares.py)."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import KeyValue

__all__ = ["BUCKETS", "place_of_null"]

BUCKETS = 64


def place_of_null(domain: Sequence[tuple[KeyValue, ...]] | None) -> int | None:
    """The bucket of NULL where each cell of one whole number has a bucket, its last six bits; None where two share one.

    `domain` are all cells in which a row can be (`_Lowering._base`).
    """
    if domain is None or len(domain) > BUCKETS or any(len(cell) != 1 for cell in domain):
        return None
    values = [cell[0] for cell in domain]
    wholes = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    places = {value & (BUCKETS - 1) for value in wholes}
    if len(places) < len(wholes) or len(wholes) + values.count(None) < len(values):
        return None
    return next((place for place in range(BUCKETS) if place not in places), None if None in values else 0)
