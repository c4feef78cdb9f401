"""The price-accuracy curve of a question, in both directions: spends with their widths, and widths with their spends.

Within a direction widths never grow with the price (`calibrate_for_half_width` says why). A width's spend is what a
request for this accuracy is charged, not an interpolation: it is that of the family which costs least for it, where a
spend is answered by the one that composes best (server/pricing.py), so a width may cost less than a spend that reaches
it. Each point names its family.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from accountant.account import Account
from mechanisms.released_table import ReleasedTable
from server.journey.norms import foresee
from server.journey.query import Prepared, Quote
from server.journey.quoting import Quoting
from server.journey.wire_amounts import epsilon_text, share_text
from server.journey.wire_errors import expected_columns
from server.pricing import Priced
from server.question import Question

__all__ = ["price_curve", "round_numbers"]

_POINTS = 12
_ROWS = 1_000
"""The size of a group for which the width of a ratio is given."""


def price_curve(question: Question, prepared: Prepared, quote: Quote, quoting: Quoting) -> dict[str, object]:
    """Both directions; each empty where it is not known before the answer, with the reason."""
    priced = quote.priced
    if priced is None or quote.histograms_only:
        reason = "It reads no rows about people." if priced is None else "The sums are priced after their histograms."
        return {"by_epsilon": [], "by_half_width": [], "reason": reason}
    seen = [point for point in map(quoting.at_spend, _spends(priced, prepared, quote)) if point is not None]
    points = [_point(point, question, prepared, quote.path[0], quote.histograms) for point in seen]
    cells = prepared.at_once()
    # A count at a great spend has the half width zero, from which no list of widths begins.
    widest = [width for width in map(_widest, points) if width]
    widths: list[dict[str, object]] = []
    if widest and cells is not None and not any(prepared.histograms) and prepared.values is None:
        for width in round_numbers(min(widest), max(widest), _POINTS):
            found = quoting.for_width(width, cells)
            if found is not None:
                point = _point(found, question, prepared, quote.path[0], quote.histograms)
                widths.append({"half_width": str(_plain(width)), **point})
    why = None if widths else "No column has a half width that is known before the answer."
    return {"by_epsilon": points, "by_half_width": widths, "reason": why}


def round_numbers(lower: float, upper: float, count: int) -> list[Fraction]:
    """Numbers like 1, 2 and 5 from the lower to the upper end, at most so many, evenly thinned."""
    found: list[Fraction] = []
    if not 0 < lower <= upper < math.inf:
        return found
    for exponent in range(math.floor(math.log10(lower)), math.floor(math.log10(upper)) + 1):
        found += [Fraction(digit) * Fraction(10) ** exponent for digit in (1, 2, 5)]
    kept = [number for number in found if lower <= number <= upper]
    if len(kept) <= count:
        return kept
    return [kept[round(place * (len(kept) - 1) / (count - 1))] for place in range(count)]


def _spends(priced: Priced, prepared: Prepared, quote: Quote) -> list[Fraction]:
    """Round spends around the price, which is one of them, as far as policy and account go."""
    most = min(prepared.plan.dataset.limits.epsilon_max, quote.path[0].limit.epsilon)
    least = max(quote.least or Fraction(0), priced.epsilon / 100)
    around = [spend for spend in round_numbers(float(least), float(most), 3 * _POINTS) if least <= spend <= most]
    near = sorted(around, key=lambda spend: abs(math.log(spend / priced.epsilon)))[: _POINTS - 1]
    return sorted({*near, priced.epsilon})


def _point(
    priced: Priced,
    question: Question,
    prepared: Prepared,
    leaf: Account,
    histograms: Mapping[str, ReleasedTable],
) -> dict[str, object]:
    columns = expected_columns(prepared, foresee(prepared, priced, histograms), question, {})
    return {
        "epsilon": epsilon_text(priced.cost, leaf),
        "share": share_text(priced.cost, leaf),
        "noise": priced.family,
        "affordable": priced.admitted,
        "columns": [dict(_column(column)) for column in columns if column["kind"] == "released"],
    }


def _column(column: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The width of a column, that of a ratio in a group of some rows."""
    sizes = column["by_rows"]
    assert isinstance(sizes, Sequence)
    of_rows = next((size for size in sizes if size["rows"] == _ROWS), None)
    yield "name", column["name"]
    yield "half_width", column["half_width"] if of_rows is None else of_rows["half_width"]
    yield "in_a_group_of_rows", None if of_rows is None else _ROWS


def _widest(point: Mapping[str, object]) -> float | None:
    """The widest of the half widths that do not depend on the answer."""
    columns = point["columns"]
    assert isinstance(columns, list)
    known = [column["half_width"] for column in columns if column["in_a_group_of_rows"] is None]
    return max((width for width in known if width is not None), default=None)


def _plain(width: Fraction) -> str:
    return f"{float(width):.12f}".rstrip("0").rstrip(".")
