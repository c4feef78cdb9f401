"""Which of DuckDB's optimizers run on private data: only those whose result is a function of text and schema.

An optimizer that reads statistics (least and greatest value, number of rows, "has a NULL") makes the plan a function
of rows. Then whether a statement can be planned at all, how it fails and how long it takes are facts about rows that
carry no noise. So this is an allow-list: an optimizer is off unless it was read, found free of statistics, and worth
its place. The proof, the reasons and the price are in `optimizers.md`; `tests/engines/test_optimizers.py` compares
plans on rows with those on an empty twin, and an engine with another list of optimizers starts no private worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["DECISIONS", "PRIVATE_OFF", "PRIVATE_ON", "SHELL_OFF"]

_READS: Final = "reads statistics of rows"
_COUNTS: Final = "reads numbers of rows"
_RUNTIME: Final = "makes filters or skips rows at run time by the values found"
_UNUSED: Final = "has nothing to do in generated statements"
_UNREAD: Final = "not shown to be free of statistics, and not needed"
_PLAIN: Final = "reads no statistics, but is not worth its place"

DECISIONS: Final[Mapping[str, tuple[bool, str]]] = MappingProxyType(
    {
        "expression_rewriter": (False, f"{_READS}: drops tests for NULL where a column happens to have none"),
        "filter_pullup": (False, f"{_PLAIN}: only prepares filter_pushdown"),
        "filter_pushdown": (False, f"{_RUNTIME}: filters inside scans are decided per segment by its extremes"),
        "empty_result_pullup": (False, f"{_READS}: acts on results that others proved empty"),
        "cte_filter_pusher": (False, _UNUSED),
        "regex_range": (False, f"{_RUNTIME}: adds ranges for zone maps"),
        "in_clause": (True, "reads the list's constants; long lists are hashed instead of compared one by one"),
        "join_order": (False, f"{_COUNTS} and distinct values"),
        "deliminator": (False, _UNUSED),
        "unnest_rewriter": (False, _UNUSED),
        "unused_columns": (True, "reads names; columns that nobody uses are not read from disk"),
        "statistics_propagation": (False, f"{_READS}: folds comparisons and chooses forms of aggregates by extremes"),
        "common_subexpressions": (True, "compares trees; guards repeat their operand, which is computed once"),
        "common_aggregate": (True, "compares trees; equal sums are added up once"),
        "column_lifetime": (True, "reads names; joins carry only what is used above them"),
        "limit_pushdown": (False, _UNUSED),
        "row_group_pruner": (False, f"{_READS}: orders and skips row groups by their extremes"),
        "top_n": (False, f"{_COUNTS}; generated statements have no LIMIT"),
        "top_n_window_elimination": (False, "turns bounding windows into a heap that cannot spill; had wrong results"),
        "build_side_probe_side": (False, f"{_COUNTS}: the hashed side of a join is the referenced table instead"),
        "compressed_materialization": (False, f"{_READS}: chooses narrower types by extremes"),
        "duplicate_groups": (False, f"{_PLAIN}: generated groups do not repeat"),
        "reorder_filter": (False, f"{_PLAIN}: orders conditions by guessed cost"),
        "sampling_pushdown": (False, _UNUSED),
        "join_filter_pushdown": (False, f"{_RUNTIME}: filters one side of a join by the extremes of the other"),
        "extension": (False, "no extension is loaded"),
        "materialized_cte": (False, _UNUSED),
        "aggregate_function_rewriter": (False, f"{_PLAIN}: moves constants out of sums"),
        "late_materialization": (False, f"{_COUNTS}; generated statements have no LIMIT"),
        "cte_inlining": (False, _UNUSED),
        "common_subplan": (False, _UNREAD),
        "join_elimination": (False, f"{_UNUSED}; would read uniqueness"),
        "window_self_join": (False, _UNREAD),
        "projection_pullup": (False, _UNREAD),
        "outer_join_simplification": (False, _UNREAD),
        "window_rewriter": (False, _UNUSED),
        "partitioned_execution": (False, _UNREAD),
        "partial_aggregate_pushdown": (False, _UNREAD),
        "remote_pushdown": (False, _UNUSED),
        "grouping_sets": (False, _UNUSED),
        "type_pushdown": (False, _UNREAD),
        "scalar_fn_pushdown": (False, _UNREAD),
        "distinct_aggregate_rewrite": (False, _UNUSED),
        "aggregate_reuse": (False, _UNREAD),
        "projection_placement": (False, _UNREAD),
        "redundant_order_keys": (False, _UNREAD),
    }
)
"""Every optimizer of the pinned engine in its order: whether it runs on private data, with the reason."""

PRIVATE_ON: Final = frozenset(name for name, (on, _) in DECISIONS.items() if on)
"""Optimizers of private connections and of the twins on which their statements are planned beforehand."""

PRIVATE_OFF: Final = frozenset(DECISIONS) - PRIVATE_ON
"""All others."""

SHELL_OFF: Final = frozenset({"statistics_propagation", "top_n_window_elimination"})
"""Off where released numbers are read: its plans may depend on them, but what binds on empty tables should run."""
