"""Values of public keys that conditions on ranges rule out: `MONTH(day) ... WHERE day < '2024-04-01'` has no April.

Claim. A row that satisfies WHERE has its key among the values that are left. Proof: what conditions say of a column is
true of its stored value (known_ranges.py, without declared bounds, which stored values may violate), so a column that
is never NULL in such a row has one of the whole numbers, or days, of a range that is bounded on both sides. Those are
its values, as declared keys would be, and a key over such columns has an image of them (`map_domain`). Taken is only
an image within the values that the key had anyway; where it cannot be computed they stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from privacy.bounds import date_at
from privacy.policy import ColumnType, KeyValue
from sql_rewrite.evaluate import map_domain
from sql_rewrite.expressions import Call, ColumnRef, Expression, columns_of, walk
from sql_rewrite.functions import build
from sql_rewrite.known_ranges import Facts, Subjects, facts_of

__all__ = ["within_ranges"]

VALUES_MAX = 1_500
"""Most values of a column that are tried: the days of four years."""

WORK_MAX = 20_000
"""Most operators that are evaluated for one key: some hundredths of a second."""


def within_ranges(
    keys: Sequence[Expression], domains: Sequence[tuple[KeyValue, ...] | None], where: Expression | None, limit: int
) -> tuple[tuple[Expression, ...], tuple[tuple[KeyValue, ...] | None, ...]]:
    """The keys with columns of few values, and their values: of keys that are public, and of which values go."""
    if where is None or not any(_ranged(key) and domain is not None for key, domain in zip(keys, domains, strict=True)):
        return tuple(keys), tuple(domains)
    facts = facts_of([where], Subjects.of(keys))
    if not facts.ranges or facts.none:
        return tuple(keys), tuple(domains)
    pairs = [_narrowed(key, domain, facts, limit) for key, domain in zip(keys, domains, strict=True)]
    return tuple(key for key, _ in pairs), tuple(domain for _, domain in pairs)


def _ranged(key: Expression) -> bool:
    """Whether a key reads a column whose values are not listed, though they could be."""
    return isinstance(key, Call) and any(map(_open, columns_of(key)))


def _open(column: ColumnRef) -> bool:
    return (
        column.type in (ColumnType.INTEGER, ColumnType.DATE)
        and column.domain is None
        and column.other is None
        and not column.nullable
        and not column.identifies
    )


def _narrowed(
    key: Expression, domain: tuple[KeyValue, ...] | None, facts: Facts, limit: int
) -> tuple[Expression, tuple[KeyValue, ...] | None]:
    if domain is None or not _ranged(key):
        return key, domain
    listed = {column: _values(column, facts) for column in columns_of(key) if _open(column)}
    given = {column: values for column, values in listed.items() if values is not None}
    if not given or math.prod(map(len, given.values())) * sum(1 for _ in walk(key)) > WORK_MAX:
        return key, domain
    found = _with(key, given)
    image = map_domain(found, limit)
    if image is None or not set(image) <= set(domain):
        return key, domain
    kept = set(image)
    return found, tuple(value for value in domain if value in kept)


def _values(column: ColumnRef, facts: Facts) -> tuple[KeyValue, ...] | None:
    known = facts.of(column)
    if known.lower is None or known.upper is None:
        return None
    low, high = math.ceil(known.lower), math.floor(known.upper)
    if not 0 <= high - low < VALUES_MAX:
        return None
    if column.type is ColumnType.DATE:
        return tuple(date_at(known.lower + place) for place in range(high - low + 1))
    return tuple(range(low, high + 1))


def _with(node: Expression, given: dict[ColumnRef, tuple[KeyValue, ...]]) -> Expression:
    if isinstance(node, ColumnRef):
        return replace(node, domain=given[node]) if node in given else node
    if not isinstance(node, Call):
        return node
    return build(node.operator, tuple(_with(argument, given) for argument in node.arguments))
