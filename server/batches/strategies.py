"""Which ways there are to answer a batch, what error each would have at the same price, and which is taken.

Each way is a text that goes through steps 2 to 4 of the journey, so its noise is the very noise that would be drawn.
The choice follows from the texts, declarations, the price and the account: no row is read, and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.consistency import CELLS_MAX
from mechanisms.families import FAMILIES
from mechanisms.interval import Floats
from mechanisms.trees import bases_of, flat_error, tree_error, tree_of
from mechanisms.weighted_cells import standard_errors
from privacy.refusal import Finding, Refused
from privacy.statistic import CoreStatistics
from server.answer import Journey
from server.batches.nesting import nested_layout
from server.batches.refusals import LEAVES_OUT, TOO_MANY_CELLS, WHAT
from server.batches.strategy import Strategy
from server.batches.terms import AskedBatch
from server.journey.named_bounds import require_named_bounds
from server.journey.query import Prepared
from server.pricing import Priced
from sql_rewrite.batch_axes import Axis, axes_of
from sql_rewrite.batch_forms import (
    DIRECT_MAX,
    Cells,
    cells_of,
    disjoint,
    disjoint_text,
    ones_text,
)
from sql_rewrite.batch_text import Counted, ReadBatch
from sql_rewrite.contribution import Contribution

__all__ = ["Way", "best", "cell_weights", "findings_of", "ways_of"]

_TRIED_MAX = 96
"""Most queries by whose errors trees are compared with each other; the stated errors are of all of them."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to answer a batch. `errors` are the standard errors of its counts; `refused` says why it is none."""

    strategy: Strategy
    text: str
    cells: Cells | None
    errors: Floats | None
    measured: int
    """Sums that noise is drawn for."""
    priced: Priced | None = None
    refused: Refused | None = None

    @property
    def error(self) -> float:
        """Root mean square of the standard errors; infinite for none."""
        return math.inf if self.errors is None else math.sqrt(float((self.errors**2).mean()))


def best(ways: Sequence[Way]) -> Way:
    """The way with the least error; of equal ones, to nine digits, the first. Errors: Refused where there is none."""
    chosen = min(ways, key=lambda way: float(f"{way.error:.9g}"))
    if chosen.errors is not None:
        return chosen
    raise next(way.refused for way in ways if way.refused is not None)


def ways_of(journey: Journey, asked: AskedBatch, read: ReadBatch, queries: Sequence[Counted]) -> tuple[Way, ...]:
    """All ways for queries that are all different, the simplest first. Errors: Refused where none could be tried."""
    ways: list[Way] = []
    if len(queries) <= DIRECT_MAX:
        ways.append(_one_by_one(journey, asked, ones_text(read.source, queries), len(queries)))
    found = axes_of(queries) if len(queries) > 1 else None
    if found is not None and 1 < math.prod(axis.pieces for axis in found[0]) <= CELLS_MAX:
        axes, common = found
        flat = _tried(journey, asked, Strategy.CELLS, cells_of(read.source, axes, common))
        ways.append(flat)
        if len(axes) == 1 and flat.priced is not None:
            tree = _best_tree(read.source, axes, common, flat.priced)
            if tree is not None:
                ways.append(_tried(journey, asked, Strategy.TREE, tree))
    if len(queries) > 1 and disjoint(queries):
        text, digits = disjoint_text(read.source, queries)
        members = tuple((((place, place + 1),),) for place in range(len(queries)))
        ways.append(_tried(journey, asked, Strategy.DISJOINT, Cells(text, digits, members)))
    if not ways:
        raise Refused([TOO_MANY_CELLS])
    return tuple(ways)


def _one_by_one(journey: Journey, asked: AskedBatch, text: str, count: int) -> Way:
    try:
        prepared, priced = _priced(journey, asked, text)
    except Refused as refused:
        return Way(Strategy.ONE_BY_ONE, text, None, None, count, refused=refused)
    (core,) = prepared.described
    errors = [
        standard_errors(priced.calibration.measurement(core.name, one.statistic), one, np.ones((1, 1)))[0]
        for one in core.estimates
    ]
    return Way(Strategy.ONE_BY_ONE, text, None, np.array(errors), len(errors), priced)


def _tried(journey: Journey, asked: AskedBatch, strategy: Strategy, cells: Cells) -> Way:
    try:
        prepared, priced = _priced(journey, asked, cells.text)
        _require_whole(prepared)
        (core,) = prepared.described
        weights = cell_weights(cells, _domain(core))
    except Refused as refused:
        return Way(strategy, cells.text, None, None, 0, refused=refused)
    (estimate,) = core.estimates
    measurement = priced.calibration.measurement(core.name, estimate.statistic)
    lattice = FAMILIES[priced.family].lattice(core)
    errors = standard_errors(measurement, estimate, weights)
    return Way(strategy, cells.text, cells, errors, weights.shape[1] if lattice is None else lattice.nodes, priced)


def _priced(journey: Journey, asked: AskedBatch, text: str) -> tuple[Prepared, Priced]:
    """Steps 2 to 4 of a text. Errors: Refused, also where norms would be chosen from the data."""
    prepared, priced = journey.priced(asked.question(text))
    require_named_bounds(
        prepared,
        journey.sizes.profile(prepared.plan.dataset),
        what=WHAT,
        why="with it would be the error by which ways are compared",
    )
    assert prepared.values is None, "counts need no value bounds"
    assert priced is not None
    return prepared, priced


def _require_whole(prepared: Prepared) -> None:
    """Refuses cells of which a unit may count in fewer than it has rows for: counts by themselves would have them."""
    for core in prepared.cores:
        found = core.contribution
        if not isinstance(found, Contribution) or found.one_row:
            continue
        if found.rows < found.total or (found.choose_groups and found.groups < found.total):
            raise Refused([LEAVES_OUT])


def _domain(core: CoreStatistics) -> tuple[tuple[object, ...], ...]:
    if core.keys.domain is None:
        raise Refused([TOO_MANY_CELLS])
    return core.keys.domain


def cell_weights(cells: Cells, groups: Sequence[Sequence[object]]) -> Floats:
    """Which groups of a release each count is the sum of, as zeros and ones (counts x groups).

    Errors: ValueError for groups that the text does not have.
    """
    numbers = np.array([cells.numbers(keys) for keys in groups], dtype=np.intp).reshape(len(groups), len(cells.sizes))
    weights = np.ones((len(cells.members), len(groups)))
    for axis, size in enumerate(cells.sizes):
        inside = np.zeros((len(cells.members), size))
        for place, runs in enumerate(cells.members):
            for low, high in runs[axis]:
                inside[place, low:high] = 1.0
        weights *= inside[:, numbers[:, axis]]
    return weights


def _best_tree(source: str, axes: Sequence[Axis], common: Sequence[str], priced: Priced) -> Cells | None:
    """The tree with the least error for these very queries; None where cells alone are better."""
    (axis,) = axes
    (core,) = priced.calibration.cores
    power, groups = FAMILIES[priced.family].power, core.keys.groups_per_unit
    if power is None:
        return None
    layouts: list[tuple[tuple[int, ...], tuple[int, ...] | None]] = [(bases, None) for bases in bases_of(axis.pieces)]
    nested = None if axis.steps is not None else nested_layout(axis.pieces, axis.members)
    if nested is not None:
        layouts.append(nested)
    least: tuple[float, Cells] | None = None
    for bases, layout in layouts:
        lattice = tree_of(bases, power=power, groups=groups)
        if lattice is None:
            continue
        cells = cells_of(source, axes, common, bases=bases, layout=layout)
        weights = _line(cells, lattice.cells)
        error = tree_error(lattice, weights, power=power, groups=groups)
        if error < flat_error(weights) and (least is None or error < least[0] * (1 - 1e-6)):
            least = error, cells
    return None if least is None else least[1]


def _line(cells: Cells, count: int) -> Floats:
    """Weights of the numbers of one axis, for some of the queries, evenly among all."""
    chosen = cells.members[:: max(1, -(-len(cells.members) // _TRIED_MAX))]
    weights = np.zeros((len(chosen), count))
    for place, (runs,) in enumerate(chosen):
        for low, high in runs:
            weights[place, low:high] = 1.0
    return weights


def findings_of(refused: Refused) -> tuple[Finding, ...]:
    """Why a way is none, without places in a text that nobody wrote."""
    return tuple(Finding(one.code, one.what, one.why, one.instead, field=one.field) for one in refused.findings)
