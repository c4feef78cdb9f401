"""By which strategy the numbers of a question are measured, where it is not each group by itself, as JSON."""

from __future__ import annotations

import math

from mechanisms.consistency import sizes_of
from mechanisms.estimates import linear_form
from mechanisms.measurement import Measurement
from mechanisms.measurements.levels import GaussianLevels, LaplaceLevels
from mechanisms.trees import flat_error, running_weights, tree_error
from mechanisms.weighted_cells import standard_errors
from privacy.statistic import CoreStatistics

__all__ = ["running_errors_json", "strategy_json"]


def strategy_json(measurement: Measurement) -> dict[str, object]:
    """The member `strategy`; none where each group has noise of its own."""
    if not isinstance(measurement, LaplaceLevels | GaussianLevels):
        return {}
    lattice = measurement.lattice
    levels = [{"nodes": lattice.cells_of(level), "weight": weight} for level, weight in lattice.weights]
    return {"strategy": {"name": "tree" if lattice.axes else "levels", "levels": levels}}


def running_errors_json(core: CoreStatistics, measurement: Measurement) -> dict[str, object]:
    """The member `running_sums`: their root-mean-square standard errors, and what the groups alone would give."""
    if not isinstance(measurement, LaplaceLevels | GaussianLevels) or core.running is None:
        return {}
    counts = sizes_of(core.keys.domain or ())
    estimate = next((one for one in core.estimates if one.statistic == measurement.statistic.name), None)
    if counts is None or estimate is None:
        return {}
    form = linear_form(measurement.statistic, estimate.kind)
    if form is None or len(form) != 1:
        return {}
    weights = running_weights(counts, core.running)
    error = math.sqrt(float((standard_errors(measurement, estimate, weights) ** 2).mean()))
    power, groups = (1, 1) if isinstance(measurement, LaplaceLevels) else (2, core.keys.groups_per_unit)
    ratio = flat_error(weights) / tree_error(measurement.lattice, weights, power=power, groups=groups)
    return {"running_sums": {"standard_error": error, "of_groups_alone": error * ratio}}
