"""What the language answers, for /v1/capabilities: made from the lists that the lift itself uses."""

from __future__ import annotations

from collections.abc import Mapping

from privacy.aggregate import AggregateFunction
from sql_rewrite.functions import INTERNAL, REGISTRY
from sql_rewrite.stages import STAGES_MAX
from sql_rewrite.syntax import DEPTH_MAX, IN_LIST_MAX, NESTING_MAX, NODES_MAX, TEXT_BYTES_MAX

__all__ = ["sql_matrix"]


def sql_matrix() -> Mapping[str, object]:
    """Aggregates, scalar functions, shell constructs, what is refused always, and the limits of a text."""
    return {
        "dialect": "duckdb",
        "aggregates": [
            *(form for function in AggregateFunction for form in function.described.forms),
            *(form for function in AggregateFunction for form in function.described.distinct),
        ],
        "choices": [
            "MODE(x)",
            "MODE() WITHIN GROUP (ORDER BY x)",
            "SELECT k FROM t GROUP BY k ORDER BY COUNT(*) DESC LIMIT n",
            "ARG_MAX(k, n) over groups with their count n",
            "UNNEST(APPROX_TOP_K(x, n))",
            "APPROX_TOP_K(x, n)",
            "MODE and APPROX_TOP_K beside other aggregates",
        ],
        "histograms": [
            "HISTOGRAM(x)",
            "HISTOGRAM(x, [10, 20])",
        ],
        "clauses": [
            "FILTER", "WHERE", "GROUP BY", "GROUP BY ALL", "JOIN along declared references", "LEFT JOIN",
            "windows and QUALIFY within a privacy unit, in nested queries", "DISTINCT ON the privacy unit",
            "released numbers in expressions", "JOIN and IN over released public groups",
            "FULL JOIN on the privacy unit",
        ],
        "functions": sorted(name for name in REGISTRY if name not in INTERNAL),
        "shell": [
            "arithmetic on aggregates", "HAVING", "QUALIFY", "ORDER BY", "LIMIT", "OFFSET", "DISTINCT",
            "window functions", "CTEs", "derived tables", "aggregation of released numbers", "set operations",
            "joins of released numbers", "scalar subqueries",
        ],
        "refused": [
            "statements other than one SELECT", "rows about people", "grouping by the privacy unit",
            "volatile functions", "table functions, files and catalogues", "windows over rows of several people",
            "functions outside the list",
        ],
        "limits": {
            "text_bytes": TEXT_BYTES_MAX,
            "brackets": NESTING_MAX,
            "depth": DEPTH_MAX,
            "nodes": NODES_MAX,
            "in_list": IN_LIST_MAX,
            "stages": STAGES_MAX,
        },
    }  # fmt: skip
