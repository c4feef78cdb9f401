"""Public cells that a row can reach: those that the conditions of WHERE rule out are left out of the answer.

    WHERE region IN ('Coast', 'South') GROUP BY region       two cells, not all regions and NULL

Claim: a row that satisfies WHERE has its key among the cells that are returned. WHERE is true of a row exactly when
each of its conjuncts is. A conjunct over columns whose every value is known (closed domains) is evaluated on all of
them with the reference evaluator, which is the engine bit for bit for exact operators; a cell is left out only when no
combination of values gives it and makes all such conjuncts true. Every other conjunct counts as true. Of an open
column, whose values outside its keys are gathered, `other` (and NULL, where that is `other`) stands for any value,
and a conjunct about it counts as true there. A conjunct that a NULL could not satisfy (strict operators give NULL for
NULL) says that its columns are not NULL in any row that stays. All of this follows from the text and the declarations,
so the cells reveal nothing about rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_

from privacy.policy import ColumnType, KeyValue
from sql_rewrite.evaluate import as_key, closed_domain, evaluate, is_exact, open_reads
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, canonical, columns_of, walk
from sql_rewrite.functions import REGISTRY, build

__all__ = ["Reachable", "conjuncts", "narrowed", "needed", "present"]

WORK_MAX = 50_000
"""Most operators that are evaluated for the values of one column: about a tenth of a second."""

JOINT_MAX = 10_000
"""Most operators that are evaluated for all pairs of values of columns that a condition or a key connects."""

_KEY = "key$"
Cell = tuple[KeyValue, ...]


def narrowed(where: Expression | None, *expressions: Expression) -> tuple[Expression, ...]:
    """The expressions over rows that satisfy WHERE: columns that cannot be NULL in such a row are never NULL."""
    if where is None:
        return expressions
    found = {column for conjunct in conjuncts(where) for column in needed(conjunct)}
    wanted = {c for c in found if c.nullable and (c.other is None or c.other.value is not None)}
    return tuple([_present(expression, wanted) for expression in expressions]) if wanted else expressions


def _present(node: Expression, wanted: set[ColumnRef]) -> Expression:
    if isinstance(node, ColumnRef):
        if node not in wanted:
            return node
        domain = None if node.domain is None else tuple(value for value in node.domain if value is not None)
        return replace(node, nullable=False, domain=domain or None)
    if isinstance(node, Call):
        arguments = tuple([_present(argument, wanted) for argument in node.arguments])
        return node if all(map(is_, arguments, node.arguments)) else build(node.operator, arguments)
    return node


def needed(condition: Expression) -> set[ColumnRef]:
    """Columns that are not NULL in a row that satisfies the condition."""
    if not isinstance(condition, Call):
        return present(condition)
    match condition.operator:
        case "and":
            return set().union(*map(needed, condition.arguments))
        case "or":
            return set.intersection(*map(needed, condition.arguments))
        case "is_not_null" | "in":
            return present(condition.arguments[0])
    return present(condition)


def present(expression: Expression) -> set[ColumnRef]:
    """Columns that are not NULL in a row in which the expression is not NULL."""
    if isinstance(expression, ColumnRef):
        return {expression}
    if isinstance(expression, Call) and REGISTRY[expression.operator].strict:
        return set().union(*map(present, expression.arguments))
    return set()


class Reachable:
    """The cells of some public keys that rows can have which satisfy all conditions."""

    def __init__(self, keys: Sequence[Expression], domains: Sequence[Cell], conditions: Sequence[Expression]) -> None:
        self._domains = domains
        self._places: dict[str, int] = {}  # opaque keys: their form, and their place among the keys
        self._keys: list[Expression] = []
        for place, (key, domain) in enumerate(zip(keys, domains, strict=True)):
            mapped = all(closed_domain(column) is not None for column in columns_of(key)) and is_exact(key)
            stored = any(column.other is not None for column in open_reads(key))
            if not mapped or stored or key.type is ColumnType.NUMBER:
                self._places.setdefault(repr(canonical(key)), place)
                key = self._opaque(place, key.type, domain)
            self._keys.append(key)
        seen = map(self._seen, conditions) if self._places else conditions
        self._known = [(part, columns_of(part)) for part in seen if _evaluable(part)]
        """The conjuncts that can be evaluated, with the columns that they read."""
        self._values = {column: self._alone(column) for column in self._columns(self._keys)}

    def _opaque(self, place: int, kind: ColumnType, domain: Cell) -> ColumnRef:
        """A key whose values are known directly, and not from its columns."""
        return ColumnRef(_KEY, f"k{place}", kind, nullable=None in domain, domain=domain)

    def _seen(self, condition: Expression) -> Expression:
        """The condition with opaque keys instead of the expressions that they stand for."""
        place = self._places.get(repr(canonical(condition)))
        if place is not None:
            return self._keys[place]
        if not isinstance(condition, Call):
            return condition
        arguments = tuple(self._seen(argument) for argument in condition.arguments)
        return condition if arguments == condition.arguments else replace(condition, arguments=arguments)

    @staticmethod
    def _columns(expressions: Iterable[Expression]) -> list[ColumnRef]:
        return list(dict.fromkeys(column for expression in expressions for column in columns_of(expression)))

    def _alone(self, column: ColumnRef) -> list[KeyValue]:
        """The values of a column that satisfy every conjunct about it alone."""
        conditions = [part for part, read in self._known if len(read) == 1 and read[0] == column]
        domain = closed_domain(column)
        assert domain is not None
        if not conditions or len(domain) * _size(conditions) > WORK_MAX:
            return list(domain)
        name = (column.relation, column.name)
        return [value for value in domain if all(_may_hold(part, {name: value}) for part in conditions)]

    def cells(self, limit: int) -> list[Cell] | None:
        """The cells in the order of the domains; None when there are more than `limit`."""
        parts = [self._part(places) for places in self._connected()]
        shown = []
        for place, domain in enumerate(self._domains):
            places, found = next(part for part in parts if place in part[0])
            values = {cell[places.index(place)] for cell in found}
            shown.append([value for value in domain if value in values])
        if math.prod(map(len, shown)) > limit:
            return None
        together = [(places, found) for places, found in parts if len(places) > 1]
        return [
            cell
            for cell in itertools.product(*shown)
            if all(tuple(cell[place] for place in places) in found for places, found in together)
        ]

    def _connected(self) -> list[list[int]]:
        """Keys that share a column, or a conjunct, stand together."""
        groups: list[tuple[set[ColumnRef], list[int]]] = []
        for place, key in enumerate(self._keys):
            columns = set(columns_of(key))
            for _, read in self._known:
                if len(read) > 1 and not columns.isdisjoint(read):
                    columns.update(read)
            near = [group for group in groups if group[0] & columns]
            merged = (columns.union(*(g[0] for g in near)), sorted([place, *(p for g in near for p in g[1])]))
            groups = [group for group in groups if group not in near] + [merged]
        return [places for _, places in groups]

    def _part(self, places: list[int]) -> tuple[list[int], set[Cell]]:
        """The cells of some keys, from all values of their columns that satisfy the conjuncts about them."""
        keys = [self._keys[place] for place in places]
        columns = self._columns(keys)
        own = set(columns)
        conditions = [part for part, read in self._known if len(read) > 1 and not own.isdisjoint(read)]
        if len(keys) == 1 and not conditions and not any(own.issuperset(read) for _, read in self._known):
            return places, {(value,) for value in self._domains[places[0]]}
        wide = self._columns([*keys, *conditions])
        values = {column: self._values.get(column) or self._alone(column) for column in wide}
        if math.prod(len(values[column]) for column in wide) * _size([*keys, *conditions]) > JOINT_MAX:
            conditions, wide = [], columns
            if math.prod(len(values[column]) for column in wide) * _size(keys) > WORK_MAX:
                return places, set(itertools.product(*(self._domains[place] for place in places)))
        found = set()
        for chosen in itertools.product(*(values[column] for column in wide)):
            row: Mapping[tuple[str, str], KeyValue] = {
                (column.relation, column.name): value for column, value in zip(wide, chosen, strict=True)
            }
            if all(_may_hold(condition, row) for condition in conditions):
                found.add(tuple(as_key(evaluate(key, row)) for key in keys))
        return places, found


def conjuncts(where: Expression) -> tuple[Expression, ...]:
    """The conditions that must all be true."""
    if isinstance(where, Call) and where.operator == "and":
        return tuple([part for argument in where.arguments for part in conjuncts(argument)])
    return (where,)


def _may_hold(condition: Expression, row: Mapping[tuple[str, str], KeyValue]) -> bool:
    """Whether the condition is true of some row with these values: of an open column `other` stands for many."""
    many = any(c.other is not None and row[c.relation, c.name] == c.other.value for c in columns_of(condition))
    return (many and not _names_keys(condition)) or evaluate(condition, row) is True


def _names_keys(condition: Expression) -> bool:
    """Whether the condition says that a column equals one of its keys: then no other value satisfies it."""
    if not isinstance(condition, Call) or condition.operator not in ("=", "in"):
        return False
    columns = [argument for argument in condition.arguments if isinstance(argument, ColumnRef)]
    literals = [argument.value for argument in condition.arguments if isinstance(argument, Literal)]
    if len(columns) != 1 or len(columns) + len(literals) != len(condition.arguments):
        return False
    domain, other = columns[0].domain, columns[0].other
    return domain is not None and all(
        value is None or (value in domain and (other is None or value != other.value)) for value in literals
    )


def _evaluable(condition: Expression) -> bool:
    """Whether a condition can be evaluated on every value that its columns have, with the engine's own result."""
    columns = columns_of(condition)
    return bool(columns) and all(closed_domain(column) is not None for column in columns) and is_exact(condition)


def _size(expressions: Iterable[Expression]) -> int:
    return sum(1 for expression in expressions for _ in walk(expression))
