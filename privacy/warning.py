"""Warnings: what an answer says beside its numbers, where they are right by the rules and may mislead a person.

A warning is a finding (privacy/refusal.py) with one of these codes. It follows from the text, the declarations and
released numbers alone, so it reveals nothing about rows that was not paid for. It never replaces a refusal: what
cannot be answered is refused. Codes are stable.
"""

from __future__ import annotations

__all__ = ["WARNINGS"]

WARNINGS: dict[str, str] = {
    "bounds_assumed": "Units are held to contribution bounds that nobody declared or asked for.",
    "bounds_uncertain": "The histogram that chose value bounds shows nobody for certain, so the bounds are a guess.",
    "hidden_groups_read": "A later part reads a released list of groups that are not public, and has room for 100.",
    "conditional_on_release": "A nested query stands for its released number, and intervals hold given that number.",
    "contribution_cut": "Scaling units to the chosen norm cuts a part which is not small, or which is not known.",
    "empty_groups_counted": "Groups of nobody, which appear because their keys are public, are counted like others.",
    "empty_groups_left_out": "Public groups were left out by their noisy counts, as the request asked.",
    "groups_merged": "Rows stand for several groups, which were merged by their noisy numbers as the request asked.",
    "levels_apart": "Each level of ROLLUP, CUBE or GROUPING SETS has noise of its own, and they share the price.",
    "entropy_of_counts": "ENTROPY is that of noisy counts of the groups that are shown.",
    "no_group_shown": "The list of groups is not public, and none has enough units to be shown.",
    "groups_chosen": "Noise chose which groups are shown, by a score that is not released; it says how well it chose.",
    "groups_declared": "The groups are those of the declarations: nothing was counted, and nobody need be in them.",
    "extreme_quantile": "MIN or MAX of people is an extreme quantile, never the least or the greatest value itself.",
    "groups_beyond_bound": "A unit counts in fewer groups than the answer has, so counts and sums are too low.",
    "groups_nearly_unique": "A key has nearly as many values as rows, so hardly any group has enough units.",
    "held_to_range": "A value was held to its range, or has none, or its interval is as wide as the range.",
    "nobody_seen": "The noisy number of rows behind an average, a spread or a guess cannot be told from zero.",
    "null_not_skipped": "LEAST or GREATEST is NULL where one of its arguments is, unlike DuckDB's own.",
    "other_meaning": "A text in GoogleSQL's spelling means something else here, in a point that is named.",
    "presence_by_count": "BOOL_OR or BOOL_AND of people is read from a noisy count, which may hide a few rows.",
    "range_not_narrowed": "The noise is that of all values which a number computed within each unit may have.",
    "synthetic_rows": "A synthetic table was read: its rows are about nobody, and no interval covers their error.",
    "two_charges": "The price follows from histograms that are bought first, in a charge of their own.",
    "literal_outside_declaration": "A constant is compared with a column that is declared never to have such a value.",
}
"""Every code of a warning with its meaning, one sentence each."""
