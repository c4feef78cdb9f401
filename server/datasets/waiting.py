"""How long an answer waits for what a dataset file declares."""

from __future__ import annotations

from server.journey.moments import SHARE

__all__ = ["text_wait_seconds"]


def text_wait_seconds(*, rows: int, characters: int) -> float:
    """The tick of a question with LOWER on a text column, in seconds on the reference machine.

    `rows` is how many rows of one unit are stored, `characters` how many each text may have. A question with other
    functions, or with several of them, waits in proportion to their cost (`sql_rewrite/dialects`).
    """
    # Here, as it reads the tables of the query language, which most files do not need.
    from sql_rewrite.cost import SAFETY
    from sql_rewrite.dialects.duckdb_costs import DUCKDB_COSTS
    from sql_rewrite.functions import REGISTRY

    cost = DUCKDB_COSTS.cost_of("lower", REGISTRY["lower"].cost)
    return SHARE * SAFETY * rows * (cost.row + cost.character * characters) / 1e9
