"""The functions that texts reach, by every name that both readers know: what else is reached is a finding."""

from __future__ import annotations

from privacy.aggregate import AggregateFunction

__all__ = ["CALLS"]

CALLS = frozenset(
    (
        "abs acos any_value arg_max arg_min argmax argmin array_to_string ascii asin atan atan2 bool_and bool_or "
        "cast cbrt ceil ceiling century char_length character_length chr coalesce concat concat_ws contains corr "
        "cos covar_pop covar_samp cume_dist date_add date_diff date_part date_sub date_trunc datediff datepart "
        "datesub datetrunc day dayname dayofmonth dayofweek dayofyear decade degrees dense_rank ends_with epoch exp "
        "extract first_value floor greatest group_concat hour if ifnull instr isodow isoyear kurtosis kurtosis_pop "
        "lag last_day last_value lcase lead least left len length listagg ln log log10 log2 lower lpad ltrim "
        "make_date max max_by median microsecond millisecond min min_by minute mod mode month monthname nth_value "
        "ntile nullif ord percent_rank percentile_cont percentile_disc pi position pow power prefix quantile "
        "quantile_cont quantile_disc quarter radians rank regexp_extract regexp_full_match regexp_matches "
        "regexp_replace regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy "
        "replace right round row_number rpad rtrim second sign sin skewness split_part sqrt starts_with strftime "
        "string_agg strpos substr substring suffix tan time_bucket translate trim trunc try_cast ucase unicode "
        "upper week weekday weekofyear year yearweek repeat entropy format"
    ).split()
) | {name for function in AggregateFunction for name in (*function.described.names, "count")}
