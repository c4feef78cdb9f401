"""How much text the operators of a query make from one row: memory that the engine's own limit does not count.

Claim. While a statement runs, strings made by its operators take at most TEXT_ROW_BYTES_MAX bytes for each row that a
thread is working on, and a thread works on at most one vector of 2,048 rows.

Argument. An operator that makes a text keeps the texts of one vector until the next one comes. A stored text has at
most `length_max` characters (the snapshot keeps no longer ones), so a text of an expression has at most
`cost.characters` of them, of at most four bytes each. The lowered statement holds an operator as often as the copies
of its dialect say, and none is computed more often than it is written. CASE, COALESCE and their relatives refer to
texts that others made. What aggregation, joins and windows keep is the engine's own memory: counted, and spilled.

Without this limit a nested REPLACE over messages of 2 KB held 4 MB for each operator, and 2,048 messages of one person
decided whether a query met the limit of memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import ColumnType
from privacy.statement import TEXT_ROW_BYTES_MAX
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.cost import parts_of, passes_of
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.dialects.duckdb_costs import DUCKDB_COSTS
from sql_rewrite.expression_cost import characters
from sql_rewrite.expressions import Call, Expression
from sql_rewrite.functions import REGISTRY
from sql_rewrite.plan import Source, computed_parts, joined_when
from sql_rewrite.refuse import refuse

__all__ = ["check_memory", "text_bytes"]

_BYTES = 4
"""Most bytes of a character in UTF-8."""

_REFERRING = frozenset({"case", "coalesce", "nullif", "least", "greatest"})
_FOLDING = frozenset({"ilike", "not_ilike"})
_READING_COPIES = 2
"""A conversion of text trims it twice: once for the pattern and once for the value."""


def text_bytes(cores: Sequence[BoundedCore], costs: EngineCosts = DUCKDB_COSTS) -> int:
    """Most bytes of text that one statement's operators make of one row: that of the core with most."""
    return max((_core_bytes(bounded, costs) for bounded in cores), default=0)


def check_memory(cores: Sequence[BoundedCore], costs: EngineCosts = DUCKDB_COSTS) -> None:
    """Refuses what could use up a worker's memory by the texts that rows happen to hold.

    Errors: Refused (too_large). Depends on the text and on declarations only.
    """
    found = text_bytes(cores, costs)
    if found <= TEXT_ROW_BYTES_MAX:
        return
    raise refuse(
        "too_large",
        "the query is refused",
        f"Its functions may make {found // 1024:,} KiB of text from one row, and {TEXT_ROW_BYTES_MAX // 1024} KiB are "
        "allowed: stored texts must not decide about memory.",
        "work on a piece of a text, for example LEFT(x, 50)",
        "ask for its aggregates in several queries",
        "ask an administrator to declare a smaller length_max",
    )


def _core_bytes(bounded: BoundedCore, costs: EngineCosts) -> int:
    known: dict[int, int] = {}
    once = sum(copies * _bytes(expression, known, costs) for expression, copies in parts_of(bounded))
    once += sum(_below(source, known, costs) for source in bounded.core.sources)
    return once * passes_of(bounded)


def _below(source: Source, known: dict[int, int], costs: EngineCosts) -> int:
    """Bytes of the texts that are made within each unit, at most three copies of an expression in each layer."""
    own = 0 if source.only is None else 3 * _bytes(source.only, known, costs)
    own += sum(3 * _bytes(met, known, costs) for met in joined_when((source,)))
    for branch in () if source.union is None else source.union.branches:
        own += sum(_below(inner, known, costs) for inner in branch.sources)
        own += sum(3 * _bytes(part, known, costs) for part in (*branch.columns, branch.where) if part is not None)
    computed = source.windows or source.groups
    if computed is None:
        return own
    parts = computed_parts(computed)
    inner = sum(_below(source, known, costs) for source in computed.sources)
    return own + inner + sum(3 * _bytes(part, known, costs) for part in parts)


def _bytes(expression: Expression, known: dict[int, int], costs: EngineCosts) -> int:
    """Bytes of the expression and all below it as they are lowered, with the guard that doubles a number."""
    if not isinstance(expression, Call):
        return 0
    found = known.get(id(expression))
    if found is None:
        entry = REGISTRY[expression.operator]
        found = _own(expression)
        for index, argument in enumerate(expression.arguments):
            below = _bytes(argument, known, costs)
            if entry.loose and isinstance(argument, Call) and not argument.finite:
                below //= 2
            found += costs.copies_of(expression.operator, expression.arguments, index) * below
        found *= 1 if expression.finite else 2
        known[id(expression)] = found
    return found


def _own(call: Call) -> int:
    """Bytes that one operator makes itself."""
    if call.type is ColumnType.TEXT:
        return 0 if call.operator in _REFERRING else _BYTES * characters(call)
    read = [argument for argument in call.arguments if argument.type is ColumnType.TEXT]
    if call.operator in _FOLDING:
        return _BYTES * characters(read[0])
    if call.is_cast and read:
        # What is below is written as often (`copies` says so); this is the trimmed text itself.
        return _READING_COPIES * _BYTES * characters(read[0])
    return 0
