"""The histogram of the units' norms: what it is to the mechanisms, and the statement that counts it.

One histogram for each norm of a core, all in one table: a row for each bin, a column for each norm. Each unit counts
in one bin of each histogram, or in none where it adds nothing. So each of them has sensitivity 1 (mechanisms/norms.md).
"""

from __future__ import annotations

from fractions import Fraction

from privacy.aggregate import AggregateFunction
from privacy.norms import BINS, norms_name
from privacy.policy import ColumnType
from privacy.statement import Statement
from privacy.statistic import CoreStatistics, Estimate, KeyColumn, Keys, Sensitivity, Statistic, StatisticKind
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.lower import lower_histogram
from sql_rewrite.norm_shapes import shares_tables
from sql_rewrite.normed import at_norms
from sql_rewrite.plan_key import norm_key

__all__ = ["BIN", "at_norms", "lower_norms", "norm_core", "norm_key", "shares_tables"]

BIN = "bin"
"""The key of a histogram."""


def norm_core(bounded: BoundedCore) -> CoreStatistics | None:
    """The histograms of a core as a core of its own, named after it; None where no norm is to be chosen.

    Its key is the number of the bin (`mechanisms.norm_choice.bin_of`), its statistics are named as the norms.
    """
    if not bounded.norms:
        return None
    one = Fraction(1)
    relation = bounded.statistics[0].statistic.sensitivity.relation
    return CoreStatistics(
        name=norms_name(bounded.described.name),
        keys=Keys(
            columns=(KeyColumn(BIN, ColumnType.INTEGER),),
            domain=tuple((place,) for place in range(BINS)),
            groups_per_unit=1,
        ),
        statistics=tuple(
            Statistic(
                name=item.norm.name,
                kind=StatisticKind.COUNT,
                sensitivity=Sensitivity(relation, l0=1, l1=one, l2_squared=one, linf=one),
                argument=f"units by the norm of their {item.norm.text}",
            )
            for item in bounded.norms
        ),
        estimates=tuple(
            Estimate(item.norm.name, AggregateFunction.ROWS, item.norm.name, integer=True) for item in bounded.norms
        ),
    )


def lower_norms(bounded: BoundedCore, dialect: Dialect = DUCKDB, *, shared: bool = False) -> Statement:
    """The statement that counts the histograms of a core, whatever the norms are later.

    With `shared` it makes and keeps the tables of which `lower` with `shared` then makes the sums, at any norms.
    """
    return lower_histogram(bounded, BIN, dialect, shared=shared)
