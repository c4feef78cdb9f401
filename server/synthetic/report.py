"""What is said of a synthetic table: its columns, what was measured and how exactly, and what to beware of.

Everything follows from the request, the noise and released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mechanisms.synthetic.counts import Noisy
from mechanisms.synthetic.model import Model
from privacy.histogram import GridScale
from privacy.values import Json
from server.synthetic.terms import Planned

__all__ = ["ROW_CELLS_MAX", "column_bodies", "estimated", "report_of", "rows_drawn"]

ROW_CELLS_MAX = 1_000_000
"""Most values of a table, rows times columns: as many as outer queries read of public tables."""


def rows_drawn(total: float, columns: int) -> int:
    """How many rows a table gets: about as many as there are, and no more than queries read."""
    return max(1, min(round(total), ROW_CELLS_MAX // columns))


def column_bodies(planned: Planned) -> list[Json]:
    """Each column: its type, and how many bins its values have."""
    bodies: list[Json] = []
    for column, binned in zip(planned.columns, planned.binned, strict=True):
        grid = binned.histogram.grid
        body: dict[str, Json] = {
            "name": column.name,
            "type": column.type.value,
            "nullable": binned.null or None in (column.keys.values if column.keys else ()),
            "bins": binned.size,
            "bounds": "keys" if grid is None else ("chosen" if binned.chosen else "declared"),
        }
        bodies.append(body)
    return bodies


def _measured(one: Noisy, names: Sequence[str], total: float) -> dict[str, Json]:
    return {
        "columns": [names[number] for number in one.marginal],
        "cells": int(one.counts.size),
        "standard_error": one.sigma,
        "expected_error": _share(one.sigma, one.counts.size, total),
    }


def _share(sigma: float, cells: int, total: float) -> float:
    """The part of the rows that noise alone is expected to put into a wrong cell: half of the sum of its sizes."""
    return min(1.0, 0.5 * math.sqrt(2 / math.pi) * sigma * cells / total)


def estimated(planned: Planned) -> dict[str, Json]:
    """What is known before anything is read: how much noise each group of marginals will have."""
    synthesis = planned.synthesis
    groups: list[Json] = [_group("columns", synthesis.columns, float(synthesis.sigma_of_columns))]
    if synthesis.pairs:
        groups.append(_group("pairs", synthesis.pairs, float(synthesis.sigma_of_pairs(synthesis.pairs))))
    if synthesis.triples:
        groups.append(_group("triples", synthesis.triples, float(synthesis.sigma_of_triples(synthesis.triples))))
    return {
        **planned.shown(),
        "verdict": planned.offer.verdict.value,
        "price": planned.offer.price(),
        "columns": column_bodies(planned),
        "selected": synthesis.selects,
        "measured_at_most": groups,
    }


def _group(of: str, count: int, sigma: float) -> dict[str, Json]:
    return {"of": of, "marginals": count, "standard_error": sigma}


def report_of(planned: Planned, noisy: Sequence[Noisy], model: Model, rows: int) -> dict[str, Json]:
    """The report of a table that was made. `planned` has the places that were kept."""
    names = [column.name for column in planned.columns]
    return {
        "columns": column_bodies(planned),
        "rows": rows,
        "rows_estimated": round(model.total),
        "measured": [_measured(one, names, model.total) for one in noisy],
        "model": [
            {"column": names[column], "depends_on": [names[parent] for parent in model.parents[column]]}
            for column in model.order
        ],
        "warnings": list(_warnings(planned, noisy, model, rows)),
    }


def _warnings(planned: Planned, noisy: Sequence[Noisy], model: Model, rows: int) -> list[str]:
    found = []
    if rows < round(model.total):
        found.append(
            f"The table has {rows:,} rows for about {round(model.total):,}: counts and sums are as much too small."
        )
    alone = [planned.columns[number].name for number, tied in _alone(model) if not tied]
    if len(planned.columns) > 1 and alone:
        found.append(f"Drawn without regard to any other column: {', '.join(alone)}.")
    wide = [
        column.name
        for column, binned in zip(planned.columns, planned.binned, strict=True)
        if binned.histogram.grid is not None and binned.histogram.grid.scale is GridScale.LOGARITHMIC
    ]
    if wide:
        found.append(f"Sizes alone are kept, by half octaves, of columns without bounds: {', '.join(wide)}.")
    noisy_ones = [one for one in noisy if _share(one.sigma, one.counts.size, model.total) > 0.25]
    if noisy_ones:
        found.append(f"{len(noisy_ones)} of the measured marginals are mostly noise: see expected_error.")
    if not planned.table.one_row:
        found.append(f"Of each unit at most {planned.synthesis.rows:,} rows are represented, and rows stand alone.")
    found.append("Nothing is promised of columns together that no measured marginal has.")
    return found


def _alone(model: Model) -> list[tuple[int, bool]]:
    """Each column, and whether the model ties it to another one."""
    tied = {number for number, parents in model.parents.items() if parents}
    tied |= {parent for parents in model.parents.values() for parent in parents}
    return [(number, number in tied) for number in sorted(model.order)]
