"""The reference meaning of expressions, in plain Python, and what follows from it for public group keys.

DuckDB runs the lowered SQL on rows; this evaluator defines what it must return and is compared with it in tests.
It runs on public values only: constants, and public keys at planning time. Results are the engine's bit for bit,
except for operators whose `exact` is False (logarithms, EXP, POWER), which may differ in the last digits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from privacy.policy import ColumnType, KeyValue
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, Value, columns_of, interval_of, walk
from sql_rewrite.functions import REGISTRY

__all__ = ["as_key", "closed_domain", "evaluate", "is_exact", "is_exact_on", "is_quick", "map_domain", "open_reads"]

WORK_MAX = 500_000
"""Most operators that are evaluated for the public keys of one expression (about a second): an estimate is free, and
must not keep the server busy."""

RANGE_DOMAIN_MAX = 366
"""Largest range of an INTEGER expression that counts as its public keys (the days of a year fit)."""

MADE_DOMAIN_MAX = 32
"""The same over values that are computed within each unit: how many rows a unit may have says little about it."""


def evaluate(expression: Expression, row: Mapping[tuple[str, str], Value]) -> Value:
    """The value of the expression for one row, given as {(relation, name): value}. Never raises for stored values.

    Requires: a value of the column's type, or None, for every column read; floats are finite.
    """
    if isinstance(expression, ColumnRef):
        return row[expression.relation, expression.name]
    if isinstance(expression, Literal):
        return expression.value
    operator = REGISTRY[expression.operator]
    values = [evaluate(argument, row) for argument in expression.arguments]
    if operator.strict and any(value is None for value in values):
        return None
    try:
        result: Value = operator.reference(expression, values)
    except OverflowError:  # a float operation of Python raises where IEEE gives an infinity
        assert expression.type is ColumnType.NUMBER
        return None
    if isinstance(result, float) and not math.isfinite(result):
        return None
    return result


def map_domain(expression: Expression, limit: int) -> tuple[KeyValue, ...] | None:
    """Every value that the expression can have, known without looking at rows, or None when that is not known.

    Known are: public columns and exact functions of them, truth values, CASE and COALESCE over such values, parts of
    dates and other integers of a small range.

    Claim: every stored row has a value in the result. It follows from four facts, each of which is tested against the
    engine (tests/sql_rewrite: test_functions, test_key_domains): a column's `domain` is every value that it has
    (verified when the data was attached; open columns count only as they are gathered); `evaluate` is the engine, bit
    for bit, for exact operators; `nullable` is true of everything that can be NULL; `interval` contains every value
    that is not. Nothing is dropped where the claim fails: the release fails, which is a fault of this program.

    The result has no repeats: it is in the order of the keys for one column and for CASE, sorted otherwise; NULL last.
    Returns None too when there are more than `limit` values or combinations, or more work than `WORK_MAX`.
    """
    values = _domain(expression, limit)
    if values is None:
        return None
    distinct = _distinct(values)
    return distinct if len(distinct) <= limit else None


def _distinct(values: Iterable[KeyValue]) -> tuple[KeyValue, ...]:
    """The values in order of first appearance, NULL last."""
    found = tuple(dict.fromkeys(values))
    return (*(value for value in found if value is not None), None) if None in found else found


def _domain(expression: Expression, limit: int) -> Sequence[KeyValue] | None:
    if expression.type is ColumnType.NUMBER:
        return None  # doubles are not group keys
    if isinstance(expression, Literal):
        return (as_key(expression.value),)
    mapped = _mapped(expression, limit)
    if mapped is not None:
        return mapped
    null: tuple[KeyValue, ...] = (None,) if expression.nullable else ()
    if expression.type is ColumnType.BOOLEAN:
        return (False, True, *null)
    if isinstance(expression, ColumnRef):
        return None
    if REGISTRY[expression.operator].values:
        return (*REGISTRY[expression.operator].values, *null)
    if expression.operator in ("case", "coalesce"):
        merged = _merged(expression, limit)
        if merged is not None:
            return merged
    if expression.type is ColumnType.INTEGER:
        interval = interval_of(expression)
        assert interval.lower is not None
        assert interval.upper is not None
        low, high = math.ceil(interval.lower), math.floor(interval.upper)
        made = any(column.shown is not None for column in columns_of(expression))
        if high - low < min(limit, MADE_DOMAIN_MAX if made else RANGE_DOMAIN_MAX):
            return (*range(low, high + 1), *null)
    return None


def as_key(value: Value) -> KeyValue:
    """The value as a key. Requires: it is not a double."""
    assert not isinstance(value, float)
    return value


def _merged(call: Call, limit: int) -> Sequence[KeyValue] | None:
    """The values of all branches of CASE or COALESCE."""
    branches = (*call.arguments[1::2], call.arguments[-1]) if call.operator == "case" else call.arguments
    merged: list[KeyValue] = []
    for branch in branches:
        values = _domain(branch, limit)
        if values is None:
            return None
        merged.extend(values)
    # COALESCE is NULL only when all of its arguments are.
    return merged if call.nullable else [value for value in merged if value is not None]


def _mapped(expression: Expression, limit: int) -> Sequence[KeyValue] | None:
    """The image of the columns' public keys, when all columns have them and Python computes exactly the same."""
    columns = columns_of(expression)
    domains = [closed_domain(column) for column in columns]
    if not all(domains) or any(column.other is not None for column in open_reads(expression)):
        return None
    combinations = math.prod(len(domain) for domain in domains if domain)
    if combinations > limit:
        return None
    if not isinstance(expression, ColumnRef) and combinations * sum(1 for _ in walk(expression)) > WORK_MAX:
        return None
    listed = [domain for domain in domains if domain is not None]
    if not _is_exact(expression, listed):
        return None
    keys = [(column.relation, column.name) for column in columns]
    values = [as_key(evaluate(expression, dict(zip(keys, row, strict=True)))) for row in itertools.product(*listed)]
    return values if len(columns) <= 1 else sorted(set(values), key=_sort_key)


def closed_domain(column: ColumnRef) -> tuple[KeyValue, ...] | None:
    """Every value of a column, gathered where it is open; None when they are not known."""
    domain = column.domain
    if domain is None and column.type is ColumnType.BOOLEAN:
        domain = (False, True)
    if domain is None or column.type is ColumnType.NUMBER:
        return None
    return (*domain, None) if column.nullable and None not in domain else domain


def open_reads(expression: Expression) -> list[ColumnRef]:
    """The columns that are read as they are stored, not gathered."""
    found: list[ColumnRef] = []
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, ColumnRef):
            found.append(node)
        elif isinstance(node, Call) and node.operator not in ("gather", "gather_range"):
            stack.extend(node.arguments)
    return found


def is_exact(expression: Expression) -> bool:
    """Whether the evaluator's result is the engine's on every value of the columns. Requires: closed columns."""
    domains = [closed_domain(column) for column in columns_of(expression)]
    return _is_exact(expression, [domain for domain in domains if domain is not None])


def is_exact_on(expression: Expression, rows: Iterable[Mapping[tuple[str, str], Value]]) -> bool:
    """Whether the evaluator's result is the engine's on each of these rows, whatever is declared of their columns.

    Shape: a row has a value for every column read, as in `evaluate`.
    """
    keys = [(column.relation, column.name) for column in columns_of(expression)]
    values = {row[key] for row in rows for key in keys}
    return _is_exact(expression, [[value for value in values if isinstance(value, str)]])


def is_quick(expression: Expression) -> bool:
    """Whether Python computes the expression in a time that its length bounds: of patterns it may not."""
    return all(REGISTRY[node.operator].quick for node in walk(expression) if isinstance(node, Call))


def _is_exact(expression: Expression, domains: Sequence[Sequence[KeyValue]]) -> bool:
    """Whether the evaluator's result is the engine's, bit for bit, on these values.

    A key that Python spells differently from the engine would make the engine's group an unknown one.
    """
    claims = {REGISTRY[node.operator].exact for node in walk(expression) if isinstance(node, Call)}
    texts = [value for domain in domains for value in domain if isinstance(value, str)]
    texts += [n.value for n in walk(expression) if isinstance(n, Literal) and isinstance(n.value, str)]
    return all(claim if isinstance(claim, bool) else all(map(claim, texts)) for claim in claims)


def _sort_key(value: KeyValue) -> tuple[bool, KeyValue]:
    # NULL last; all others are of one type, so that they compare.
    return (value is None, 0 if value is None else value)
