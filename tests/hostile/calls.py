"""The functions that texts reach, by every name that both readers know: what else is reached is a finding."""

from __future__ import annotations

from privacy.aggregate import AggregateFunction

__all__ = ["CALLS"]

CALLS = frozenset(
    (
        "acos array_to_string ascii asin atan atan2 century chr concat_ws cos date_add date_sub datesub decade degrees "
        "last_day lpad make_date microsecond millisecond ord pi radians regexp_extract regexp_full_match "
        "regexp_matches regexp_replace rpad sin strftime tan time_bucket translate unicode weekday yearweek "
        "abs any_value arg_max arg_min argmax argmin bool_and bool_or cast cbrt ceil ceiling char_length "
        "character_length coalesce concat contains corr covar_pop covar_samp cume_dist date_diff date_part "
        "date_trunc datediff datepart datetrunc day dayname dayofmonth dayofweek dayofyear dense_rank ends_with "
        "epoch exp extract first_value floor greatest hour if ifnull instr isodow isoyear lag last_value lcase "
        "lead least left len length ln log log10 log2 lower ltrim max max_by median min min_by minute mod month "
        "monthname nth_value ntile nullif percent_rank percentile_cont percentile_disc position pow power prefix "
        "quantile quantile_cont quantile_disc quarter rank replace right round row_number rtrim second sign "
        "split_part sqrt starts_with strpos substr substring suffix trim trunc try_cast ucase upper week "
        "weekofyear year"
    ).split()
) | {name for function in AggregateFunction for name in (*function.described.names, "count")}
