"""What each mechanism of quantiles would be off by at the price of a question: for the report of its plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mechanisms.calibrate import calibrate
from privacy.rank_tree import QuantileMechanism
from privacy.refusal import Refused
from privacy.statistic import StatisticKind
from server.journey.query import Prepared, Quote
from server.journey.wire_errors import by_rows_json
from server.question import Question
from sql_rewrite.bound import BoundedCore, bound_core

__all__ = ["compared_mechanisms"]


def compared_mechanisms(question: Question, prepared: Prepared, quote: Quote) -> list[dict[str, object]]:
    """Of each block with quantiles and each mechanism, the errors in groups of some sizes, or why it is refused.

    Nothing where bounds or norms are chosen first: errors follow from these.
    """
    if quote.priced is None or any(prepared.histograms) or prepared.values is not None:
        return []
    return [
        one
        for core in prepared.cores
        if any(item.statistic.kind is StatisticKind.RANKS for item in core.statistics)
        for mechanism in QuantileMechanism
        for one in _of(core, mechanism, question, prepared, quote)
    ]


def _of(
    core: BoundedCore, mechanism: QuantileMechanism, question: Question, prepared: Prepared, quote: Quote
) -> Iterator[dict[str, object]]:
    assert quote.priced is not None
    found: dict[str, object] = {"core": core.described.name, "mechanism": mechanism, "columns": [], "refused": None}
    try:
        other = bound_core(replace(core.core, quantiles=mechanism), prepared.plan.dataset)
    except Refused as refused:
        yield {**found, "refused": refused.findings[0].why}
        return
    described = [other.described if one.name == other.described.name else one for one in prepared.priced]
    try:
        calibration = calibrate(described, quote.priced.price)
    except ValueError as out_of_range:
        yield {**found, "refused": f"{out_of_range}"}
        return
    errors = calibration.expected_errors(other.described.name, question.confidence)
    names = {item.name: item.text for item in other.core.aggregates}
    quantiles = {one.name for one in other.described.estimates if one.kind.statistic is StatisticKind.RANKS}
    columns = [
        {"answers": names[name], "by_rows": by_rows_json(errors[name])} for name in names if name in quantiles
    ]  # fmt: skip
    yield {**found, "columns": columns}
