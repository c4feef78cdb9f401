"""What to write instead of a function that is not answered, by the name that the analyst wrote."""

from __future__ import annotations

__all__ = ["AGGREGATES", "FUNCTIONS", "instead_of"]

AGGREGATES = "use COUNT, SUM, AVG, VARIANCE or STDDEV"
FUNCTIONS = "see the list of functions under /v1/capabilities"

_SPREAD = "SELECT FLOOR(x / 10) * 10 AS x, COUNT(*) ... GROUP BY 1 shows their spread (dates: date_trunc('month', x))"
_LISTED = "SELECT x, COUNT(*) ... GROUP BY x shows the values that many people share"
_PARTS = "date_trunc('month', d), YEAR(d), MONTH(d) or DAYOFWEEK(d)"
_DIFFERENCE = "date_diff('day', a, b), with both dates written out or columns"
_PATTERN = "x LIKE 'N%', CONTAINS(x, 'text') or STARTS_WITH(x, 'text')"
_PRODUCTS = "AVG(x * y) - AVG(x) * AVG(y) is the covariance"

_HINTS: dict[str, str] = {
    hinted: hint
    for hint, names in {
        f"{_SPREAD}; the extreme value itself is one person's": "min max arg_min arg_max argmin argmax min_by max_by",
        _SPREAD: "median quantile quantile_cont quantile_disc percentile_cont percentile_disc approx_quantile mad "
        "histogram reservoir_quantile skewness kurtosis kurtosis_pop entropy width_bucket equi_width_bins",
        "SELECT x, COUNT(*) AS n ... GROUP BY x ORDER BY n DESC LIMIT 1": "mode approx_top_k",
        _LISTED: "first last any_value arbitrary list array_agg string_agg group_concat listagg stringagg "
        "json_group_array first_value last_value",
        "COUNT(DISTINCT unit) counts people, where unit is the key of the privacy unit": "approx_count_distinct "
        "approx_distinct",
        _PRODUCTS: "corr covar_pop covar_samp regr_slope regr_intercept regr_r2 regr_sxy",
        "EXP(AVG(LN(x))) is the geometric mean": "product geomean geometric_mean",
        "SUM(CASE WHEN p THEN 1 ELSE 0 END) or COUNT_IF(p)": "bool_and bool_or logical_and logical_or",
        _PARTS: "strftime to_char date_format time_bucket week_of_year yearweek last_day make_date",
        _DIFFERENCE: "age date_add date_sub datesub dateadd date_part_diff to_days to_months to_years interval",
        "CAST(x AS DATE) or CAST(x AS TIMESTAMP)": "strptime try_strptime to_date to_timestamp str_to_date",
        _PATTERN: "regexp_matches regexp_full_match regexp_like regexp_extract regexp_replace rlike regexp glob instr "
        "position strpos charindex levenshtein jaccard similar",
        "x // y for whole numbers": "divide fdiv",
        "CASE WHEN p THEN x ELSE y END": "iff decode choose",
        "COALESCE(x, y)": "zeroifnull",
    }.items()
    for hinted in names.split()
}


def instead_of(name: str, otherwise: str) -> tuple[str, ...]:
    """What to write instead of a function of that name (with or without its bracket)."""
    hint = _HINTS.get(name.removesuffix("()").lower())
    return (otherwise,) if hint is None else (hint, otherwise)
