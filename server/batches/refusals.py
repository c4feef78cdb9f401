"""Why batches are refused."""

from __future__ import annotations

from privacy.refusal import Finding

__all__ = ["LEAVES_OUT", "TOO_MANY_CELLS", "WHAT"]

WHAT = "the batch is refused"

LEAVES_OUT = Finding(
    code="policy_forbids",
    what="cells are refused",
    why="One unit would count in fewer of them than it has rows for, which the queries by themselves do not leave out.",
    instead=(
        'name as many groups as rows: "contribution": {"rows_per_unit": 5, "groups_per_unit": 5, '
        '"rows_per_unit_and_group": 5}',
    ),
)
TOO_MANY_CELLS = Finding(
    code="too_large",
    what=WHAT,
    why="More than 32 different queries are answered from cells that add up, and these would need more than 1,000 of "
    "them, or more than 160 pieces of a column that is neither whole numbers nor days at one step.",
    instead=(
        "send queries of different columns in batches of their own",
        "use ranges whose ends are multiples of a step",
    ),
)
