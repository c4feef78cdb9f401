"""The aggregates of the private core, each described once; everything else about them is a view of this list.

| what | where it is read |
|---|---|
| how SQL text calls it, and which node of the parser that is | `sql_rewrite/aggregates.py` |
| which sums it needs | `sql_rewrite/bound.py` |
| what is suggested for another system's name | `sql_rewrite/hints.py` |
| what /v1/capabilities announces | `server/matrix.py` |
| its lines in docs/sql.md | `tests/test_aggregates.py` compares |
| its value, error, simulation and expected error | its estimator, in `mechanisms/estimates.py` |

An aggregate over existing statistics is a member here, an estimator in `mechanisms/estimators/`, and its line in
docs/sql.md (docs/recipes/aggregate.md shows one). Without an estimator `mechanisms.estimates` cannot be imported.
"""

from __future__ import annotations

import enum
from typing import Self, assert_never

from privacy.described import Described, ResultType
from privacy.policy import ColumnType
from privacy.statistic_kind import StatisticKind

__all__ = ["AggregateFunction"]

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_ORDERED = (*_NUMBERS, ColumnType.DATE, ColumnType.TIMESTAMP)


@enum.unique
class AggregateFunction(enum.Enum):
    """The aggregates of the private core: what a call asks for, and what an estimate shows. All others are refused."""

    ROWS = Described(
        stored="rows",
        names=("count", "count_if", "countif"),
        written=("COUNT(*)", "COUNT(1)", "COUNT_IF(condition)"),
        arguments=(),
        statistic=StatisticKind.COUNT,
        result=ResultType.WHOLE,
        meaning="rows (that meet the condition), bounded per privacy unit",
        short="COUNT",
    )
    VALUES = Described(
        stored="values",
        names=("count",),
        written=("COUNT(x)",),
        arguments=tuple(ColumnType),
        statistic=StatisticKind.COUNT,
        result=ResultType.WHOLE,
        meaning="rows where x is not NULL, bounded per privacy unit",
        distinct=("COUNT(DISTINCT x)", "APPROX_COUNT_DISTINCT(x)"),
        elsewhere=("approx_distinct",),
        hint="COUNT(DISTINCT v) counts different values",
    )
    UNITS = Described(
        stored="units",
        names=("count",),
        written=("COUNT(DISTINCT unit)",),
        arguments=(),
        statistic=StatisticKind.UNITS,
        result=ResultType.WHOLE,
        meaning="privacy units, where `unit` is the declared key of the unit",
    )
    PRESENT = Described(
        stored="present",
        names=("bool_or", "bool_and"),
        written=("BOOL_OR(condition)", "BOOL_AND(condition)"),
        arguments=(),
        statistic=StatisticKind.COUNT,
        result=ResultType.WHOLE,
        meaning="whether rows that meet the condition are there, or none that do not, as far as a noisy count tells",
    )
    SUM = Described(
        stored="sum",
        names=("sum", "fsum", "kahan_sum", "sumkahan"),
        arguments=_NUMBERS,
        statistic=StatisticKind.SUM,
        result=ResultType.ARGUMENT,
        meaning="x is clipped to its range; it follows from declared bounds and conditions through the expression",
        distinct=("SUM(DISTINCT x)",),
        short="SUM",
    )
    AVERAGE = Described(
        stored="average",
        names=("avg", "mean", "favg"),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=1,
        result=ResultType.NUMBER,
        meaning="the mean of x, clipped as for SUM",
        distinct=("AVG(DISTINCT x)", "MEAN(DISTINCT x)"),
        short="AVG",
    )
    VARIANCE_POPULATION = Described(
        stored="variance_population",
        names=("var_pop",),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=2,
        result=ResultType.NUMBER,
        meaning="the variance of x, clipped as for SUM, over n rows",
        distinct=("VAR_POP(DISTINCT x)",),
    )
    VARIANCE_SAMPLE = Described(
        stored="variance_sample",
        names=("variance", "var_samp"),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=2,
        result=ResultType.NUMBER,
        meaning="the same over n - 1",
        distinct=("VARIANCE(DISTINCT x)", "VAR_SAMP(DISTINCT x)"),
        elsewhere=("var", "varp", "variance_samp", "variance_pop", "var_sample"),
        hint="VARIANCE(x) or VAR_POP(x)",
        short="VARIANCE",
    )
    DEVIATION_POPULATION = Described(
        stored="deviation_population",
        names=("stddev_pop",),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=2,
        result=ResultType.NUMBER,
        meaning="the root of VAR_POP",
        distinct=("STDDEV_POP(DISTINCT x)",),
    )
    DEVIATION_SAMPLE = Described(
        stored="deviation_sample",
        names=("stddev", "stddev_samp"),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=2,
        result=ResultType.NUMBER,
        meaning="the root of VARIANCE",
        distinct=("STDDEV(DISTINCT x)", "STDDEV_SAMP(DISTINCT x)"),
        elsewhere=("std", "stdev", "stdevp", "std_dev", "standard_deviation", "stddevp"),
        hint="STDDEV(x) or STDDEV_POP(x)",
        short="STDDEV",
    )

    SKEWNESS = Described(
        stored="skewness",
        names=("skewness",),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=3,
        result=ResultType.NUMBER,
        meaning="the skewness of a sample, of x clipped as for SUM; NULL below 3 rows, or without a variance",
        elsewhere=("skew",),
        hint="SKEWNESS(x)",
    )
    KURTOSIS = Described(
        stored="kurtosis",
        names=("kurtosis",),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=4,
        result=ResultType.NUMBER,
        meaning="the excess kurtosis of a sample; NULL below 4 rows",
        elsewhere=("kurt",),
        hint="KURTOSIS(x) or KURTOSIS_POP(x)",
    )
    KURTOSIS_POPULATION = Described(
        stored="kurtosis_population",
        names=("kurtosis_pop",),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=4,
        result=ResultType.NUMBER,
        meaning="the excess kurtosis of the rows themselves",
    )
    COVARIANCE_POPULATION = Described(
        stored="covariance_population",
        names=("covar_pop",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=1,
        symmetric=True,
        result=ResultType.NUMBER,
        meaning="the covariance of y and x over the n rows that have both, each clipped as for SUM",
        elsewhere=("covariance", "covar", "cov"),
        hint="COVAR_POP(y, x) or COVAR_SAMP(y, x)",
    )
    COVARIANCE_SAMPLE = Described(
        stored="covariance_sample",
        names=("covar_samp",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=1,
        symmetric=True,
        result=ResultType.NUMBER,
        meaning="the same over n - 1",
    )
    CORRELATION = Described(
        stored="correlation",
        names=("corr",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=2,
        second_degree=2,
        symmetric=True,
        result=ResultType.NUMBER,
        meaning="COVAR_POP over the root of both variances, held to [-1, 1]; NULL where a variance is not positive",
        elsewhere=("correlation", "pearson"),
        hint="CORR(y, x)",
    )
    REGRESSION_SLOPE = Described(
        stored="regression_slope",
        names=("regr_slope",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=2,
        result=ResultType.NUMBER,
        meaning="the slope of the least-squares line of y over x: COVAR_POP(y, x) / VAR_POP(x)",
    )
    REGRESSION_INTERCEPT = Described(
        stored="regression_intercept",
        names=("regr_intercept",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=2,
        result=ResultType.NUMBER,
        meaning="where that line is at x = 0",
    )
    REGRESSION_R2 = Described(
        stored="regression_r2",
        names=("regr_r2",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=2,
        second_degree=2,
        result=ResultType.NUMBER,
        meaning="the square of CORR",
    )
    REGRESSION_COUNT = Described(
        stored="regression_count",
        names=("regr_count",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=1,
        symmetric=True,
        result=ResultType.WHOLE,
        meaning="rows that have both values",
    )
    REGRESSION_MEAN_X = Described(
        stored="regression_mean_x",
        names=("regr_avgx",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=1,
        result=ResultType.NUMBER,
        meaning="the mean of x over these rows",
    )
    REGRESSION_MEAN_Y = Described(
        stored="regression_mean_y",
        names=("regr_avgy",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=1,
        result=ResultType.NUMBER,
        meaning="the mean of y over these rows",
    )
    REGRESSION_SXX = Described(
        stored="regression_sxx",
        names=("regr_sxx",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=2,
        result=ResultType.NUMBER,
        meaning="REGR_COUNT times the variance of x over these rows",
    )
    REGRESSION_SXY = Described(
        stored="regression_sxy",
        names=("regr_sxy",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=1,
        second_degree=1,
        result=ResultType.NUMBER,
        meaning="REGR_COUNT times COVAR_POP",
    )
    REGRESSION_SYY = Described(
        stored="regression_syy",
        names=("regr_syy",),
        arguments=_NUMBERS,
        statistic=StatisticKind.PRODUCTS,
        degree=2,
        second_degree=1,
        result=ResultType.NUMBER,
        meaning="REGR_COUNT times the variance of y over these rows",
    )
    QUANTILE = Described(
        stored="quantile",
        names=("median", "quantile_cont", "percentile_cont"),
        written=("MEDIAN(x)", "QUANTILE_CONT(x, p)", "PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x)"),
        arguments=_ORDERED,
        statistic=StatisticKind.RANKS,
        result=ResultType.NUMBER,
        meaning="the value below which the part p of the rows lies, between two values where p does",
        short="MEDIAN",
    )
    QUANTILE_DISCRETE = Described(
        stored="quantile_discrete",
        names=("quantile_disc", "quantile", "percentile_disc", "approx_quantile"),
        written=(
            "QUANTILE_DISC(x, p)",
            "QUANTILE(x, p)",
            "PERCENTILE_DISC(p) WITHIN GROUP (ORDER BY x)",
            "APPROX_QUANTILE(x, p)",
        ),
        arguments=_ORDERED,
        statistic=StatisticKind.RANKS,
        result=ResultType.ARGUMENT,
        meaning="the least value that the part p of the rows does not exceed",
        elsewhere=("percentile", "approx_percentile", "percentile_approx", "reservoir_quantile", "approx_quantiles"),
        hint="QUANTILE_CONT(x, 0.5) or QUANTILE_DISC(x, 0.5) for the value with half of the rows below it",
    )
    LEAST = Described(
        stored="least",
        names=("min",),
        arguments=_ORDERED,
        statistic=StatisticKind.RANKS,
        result=ResultType.ARGUMENT,
        meaning="an extreme quantile, never the least value itself: as many rows lie below as the noise hides",
    )
    GREATEST = Described(
        stored="greatest",
        names=("max",),
        arguments=_ORDERED,
        statistic=StatisticKind.RANKS,
        result=ResultType.ARGUMENT,
        meaning="an extreme quantile, never the greatest value itself: as many rows lie above as the noise hides",
    )
    STANDARD_ERROR = Described(
        stored="standard_error",
        names=("sem",),
        arguments=_NUMBERS,
        statistic=StatisticKind.MOMENTS,
        degree=2,
        result=ResultType.NUMBER,
        meaning="the standard error of the mean: the root of VAR_POP over the number of rows",
        elsewhere=("stderr", "std_err"),
        hint="SEM(x) is the standard error of the mean",
    )

    described: Described

    statistic: StatisticKind
    """The sums that it is computed from, unless another aggregate's sums hold it too."""

    degree: int
    """Of moments the least degree that holds it, of products that of the first value; zero for others."""

    second_degree: int
    """Of products, the least degree of the second value that holds it; zero for other statistics."""

    arguments: tuple[ColumnType, ...]
    """Types that its argument may have; none when it reads no value."""

    def __new__(cls, described: Described) -> Self:
        """A member whose value is what releases and keys store, and which carries its description."""
        member = object.__new__(cls)
        member._value_ = described.stored
        member.described = described
        # Plain attributes, for every layer asks for them several times of each query.
        member.statistic, member.arguments = described.statistic, described.arguments
        member.degree, member.second_degree = described.degree, described.second_degree
        return member

    def whole(self, argument: ColumnType | None) -> bool:
        """Whether its true value over an argument of this type (None: no argument) is a whole number."""
        match self.described.result:
            case ResultType.WHOLE:
                return True
            case ResultType.ARGUMENT:
                return argument is ColumnType.INTEGER
            case ResultType.NUMBER:
                return False
            case _:
                assert_never(self.described.result)
