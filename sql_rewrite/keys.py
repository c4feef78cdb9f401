"""Group keys: which cells are public, and which must pass partition selection.

A core's cells are public when each of its keys has a finite set of values that follows from declarations and the
query text alone. All their combinations then appear in the answer, with noise even where nobody is. Otherwise no
cell is public: a mixture of public and hidden keys would still reveal which hidden values exist.

A number is a key when all its values are whole (`whole`): FLOOR(age / 10) is an exact integer in everything below, and
in the shell the double that the dialect makes of it.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from privacy.policy import ColumnType, Dataset, KeyValue
from privacy.refusal import Refused
from sql_rewrite.evaluate import evaluate, is_exact, map_domain
from sql_rewrite.expressions import BIGINT, Call, ColumnRef, Expression, Interval, Literal, columns_of, interval_of
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.key_ranges import within_ranges
from sql_rewrite.plan import Core
from sql_rewrite.reachable import Reachable, conjuncts, narrowed
from sql_rewrite.refuse import refuse

__all__ = ["cells_most", "fits", "key_domain", "whole"]

_WHOLE = frozenset({"floor", "ceil", "trunc"})
_CLOSED = frozenset({"add", "subtract", "multiply", "negate", "abs", "modulo"})
_CHOSEN = frozenset({"least", "greatest", "coalesce"})


def whole(expression: Expression) -> bool:
    """Whether every value of a number is a whole double, or NULL.

    Roundings to no digits give whole doubles. Sums, differences, products and remainders of whole doubles are whole
    too: the exact result is an integer, integers of size up to 2^53 are doubles, and a larger one is rounded to a
    double of size 2^53 or more, all of which are whole. Infinities become NULL. What only chooses among whole values
    is whole. A whole double inside 64 bits is a BIGINT without any rounding, and becomes the same double again.
    """
    if expression.type is ColumnType.INTEGER:
        return True
    if expression.type is not ColumnType.NUMBER:
        return False
    if isinstance(expression, Literal):
        return expression.value is None or (isinstance(expression.value, float) and expression.value.is_integer())
    if not isinstance(expression, Call):
        return False
    arguments = expression.arguments
    match expression.operator:
        case "round":
            digits = arguments[1]
            return isinstance(digits, Literal) and isinstance(digits.value, int) and digits.value <= 0
        case "as_number":
            return True
        case "cast_number":
            return whole(arguments[0]) or arguments[0].type is ColumnType.BOOLEAN
        case "case":
            return all(whole(value) for value in (*arguments[1::2], arguments[-1]))
        case "nullif":
            return whole(arguments[2])
    if expression.operator in _WHOLE:
        return True
    return expression.operator in _CLOSED | _CHOSEN and all(whole(argument) for argument in arguments)


_HALF = Interval(Fraction(1 - 2**62), Fraction(2**62 - 1))
"""What an integer column without bounds is taken to hold when the range of a key is judged."""


def fits(key: Expression, limit: int) -> bool:
    """Whether a key stays within 64 bits for public values, declared bounds, and half the range of other columns.

    Keys are not clipped: a stored value beyond that is computed like any other, and is NULL where it leaves 64 bits.
    """
    if key.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
        return True
    columns = columns_of(key)
    if key.type is ColumnType.INTEGER and columns and all(column.domain is not None for column in columns):
        domain = map_domain(key, limit)
        if domain is not None:
            return all(value is None or (isinstance(value, int) and BIGINT.contains(value)) for value in domain)
    return interval_of(clip_columns(_halved(key))).inside(BIGINT)


def _halved(expression: Expression) -> Expression:
    if isinstance(expression, ColumnRef) and expression.type is ColumnType.INTEGER and expression.declared is None:
        return replace(expression, declared=_HALF)
    if not isinstance(expression, Call) or expression.type not in (ColumnType.INTEGER, ColumnType.NUMBER):
        return expression
    return build(expression.operator, tuple(_halved(argument) for argument in expression.arguments))


def cells_most(core: Core, dataset: Dataset) -> int | None:
    """How many public cells a core has; None where its groups are hidden, or the core is refused later."""
    try:
        _, cells = key_domain(core, dataset)
    except Refused:
        return None
    return None if cells is None else len(cells)


def key_domain(
    core: Core, dataset: Dataset
) -> tuple[tuple[tuple[KeyValue, ...] | None, ...], tuple[tuple[KeyValue, ...], ...] | None]:
    """Public values of each key (None: not public), and all cells in order when every key is public.

    Cells that WHERE rules out are not among them (`reachable`). A core without keys has one cell, the empty tuple.
    Errors: Refused (key_domain_too_large, no_groups).
    """
    limit = dataset.limits.cells_max
    parts = () if core.where is None else tuple(part for part in conjuncts(core.where) if part not in core.met)
    if core.keys and any(map(_never, parts)):
        raise _no_groups()
    where = core.where if not core.met else build("and", parts) if len(parts) > 1 else parts[0] if parts else None
    narrow = narrowed(where, *(key for _, key in core.keys), *parts)
    keys, conditions = narrow[: len(core.keys)], narrow[len(core.keys) :]
    domains = tuple(map_domain(key, limit) for key in keys)
    if any(domain is None for domain in domains):
        return tuple(None for _ in domains), None
    keys, domains = within_ranges(keys, domains, where, limit)
    known = [domain for domain in domains if domain is not None]
    cells = Reachable(keys, known, conditions).cells(limit)
    if cells is None:
        raise refuse(
            "key_domain_too_large",
            "GROUP BY is refused",
            f"Its public keys make more than {limit} groups, and every one of them would get noise.",
            "group by fewer or coarser keys",
        )
    if not cells:
        raise _no_groups()
    return domains, tuple(cells)


def _never(condition: Expression) -> bool:
    """Whether a condition reads no column and is not true."""
    return not columns_of(condition) and is_exact(condition) and evaluate(condition, {}) is not True


def _no_groups() -> Refused:
    return refuse(
        "no_groups",
        "the query is refused",
        "No row that satisfies WHERE can be in any of its groups, so the answer would have no rows.",
        "compare the conditions with the declared keys: GET /v1/datasets/{dataset} lists them",
    )
