"""Rows of constants beside rows about people: VALUES, UNNEST of constants, series, joined by any condition, or by none.

    SELECT b.name, COUNT(*) FROM people JOIN (VALUES ('young', 0, 30), ('old', 30, 99)) AS b(name, low, high)
    ON age >= b.low AND age < b.high GROUP BY b.name
    core:  people times two rows, where age >= low and age < high, k0 = name, a0 = rows

Claim. The join is unit-local. Proof: each of its rows is one row about people, whose unit it has, beside constants that
everybody knows; so the rows of unit u are the pairs of u's own rows with constants for which the condition is
true, whatever other units have.

Claim. A row about people meets at most `most` constants (`most_met`). Proof: it meets none whose own condition
is not true, and those that it meets have one value in each column that is compared for equality with something that
the row determines, which parts them; among these, where the same expression of the row is compared with two ends, its
one value lies in the intervals of all that it meets. So the greatest number of intervals that overlap, in any one of
these parts, bounds them. With age bands that leave no gap for two, a person is in one, and has one row still.

The rows of a unit, and its bounds, multiply by `most`. Where rows meet is tried for all pairs, which is what they cost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

from sqlglot import exp

from privacy.policy import Column, ColumnType, Dataset, Table
from sql_rewrite.constant_lists import CELLS_MAX, ROWS_MAX, Cells, no_constants, typed
from sql_rewrite.evaluate import closed_domain, evaluate, is_exact, is_exact_on
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, Value, columns_of
from sql_rewrite.plan import GROUPS, Constants, Source
from sql_rewrite.references import reference
from sql_rewrite.refuse import refuse
from sql_rewrite.rows import Rows
from sql_rewrite.text import Text

__all__ = [
    "facts_of",
    "keeps_all",
    "most_met",
    "rows_of_cells",
]

_NUMBERS = (ColumnType.INTEGER, ColumnType.NUMBER)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def rows_of_cells(item: exp.Expr, relation: str, read: Cells, dataset: Dataset, text: Text) -> Rows:
    """The rows under that name of their source. Errors: Refused."""
    names, cells = read
    if len(cells) > ROWS_MAX or len(cells) * len(names) > CELLS_MAX:
        raise refuse(
            "too_large",
            "a list of constants is refused",
            f"It has {len(cells):,} rows of {len(names)} columns; {ROWS_MAX:,} rows and {CELLS_MAX:,} constants may "
            "stand beside rows about people.",
            "use fewer rows, or ask the owner for a public table",
            position=text.position(item),
        )
    if not cells:
        raise no_constants(text, item, "It has no rows: a series ends before its first value, or no row fulfils WHERE.")
    found = [typed(item, name, [row[place] for row in cells], text) for place, name in enumerate(names)]
    columns = [
        facts_of(f"v{place}", name, kind, [one.value for one in own])
        for place, (name, (own, kind)) in enumerate(zip(names, found, strict=True))
    ]
    rows = [tuple(one.value for one in row) for row in zip(*(own for own, _ in found), strict=True)]
    constants = Constants(tuple(columns), tuple(rows), len(rows))
    table = Table(
        "constants",
        tuple(Column(ref.name, ref.type, nullable=ref.nullable, description=ref.shown or "") for ref in columns),
        protected=False,
    )
    source = Source(relation, table, constants=constants)
    shown = [(name, reference(source, own, dataset)) for name, own in zip(names, table.columns, strict=True)]
    return Rows((source,), None, tuple(shown))


def facts_of(name: str, shown: str, kind: ColumnType, values: Sequence[Value]) -> ColumnRef:
    """What is known of a column of constants: everything."""
    known = [value for value in values if value is not None]
    numbers = [Fraction(value) for value in known if isinstance(value, int | float)]
    range_ = Interval(min(numbers, default=Fraction(0)), max(numbers, default=Fraction(0)))
    domain = (*dict.fromkeys(known), *((None,) if len(known) < len(values) else ()))
    return ColumnRef(
        GROUPS,
        name,
        kind,
        nullable=len(known) < len(values),
        interval=range_ if kind in _NUMBERS else None,
        declared=range_ if kind in _NUMBERS else None,
        domain=None if kind is ColumnType.NUMBER else tuple(v for v in domain if not isinstance(v, float)),
        length_max=max([1, *(len(v) for v in known if isinstance(v, str))]) if kind is ColumnType.TEXT else None,
        shown=shown,
    )


# How many of the rows one row about people may meet


def most_met(constants: Constants, relation: str, conditions: Iterable[Expression], later: Collection[str] = ()) -> int:
    """The most of these rows for which all conditions can be true of one row about people.

    Of several relations of constants each is counted beside one row of those before it, so that the products bound how
    many meet together; what compares it with those that are `later` says nothing of it.
    """
    rows = [{(relation, ref.name): v for ref, v in zip(constants.columns, row, strict=True)} for row in constants.rows]
    # A table's values may be others than are declared, and the engine may know letters of theirs that Python does not.
    every = rows
    equal: dict[Expression, ColumnRef | Call] = {}
    ends: dict[Expression, list[tuple[str, Expression]]] = defaultdict(list)
    for condition in conditions:
        read = {column.relation for column in columns_of(condition)}
        if relation not in read or not read.isdisjoint(later):
            continue
        if read == {relation}:
            if is_exact_on(condition, every):
                rows = [row for row in rows if evaluate(condition, row) is True]
            continue
        compared = _compared(condition, relation, every if constants.stored else None)
        if compared is None:
            continue
        operator, other, own = compared
        if operator == "=":
            equal[own] = own
        else:
            ends[other].append((operator, own))
    parts: dict[tuple[Value, ...], list[dict[tuple[str, str], Value]]] = defaultdict(list)
    for row in rows:
        key = tuple(evaluate(own, row) for own in equal)
        if None not in key:
            parts[key].append(row)
    return max((min([len(p), *(_overlapping(p, some) for some in ends.values())]) for p in parts.values()), default=0)


def keeps_all(constants: Constants, relation: str, condition: Expression) -> bool:
    """Whether for all that is declared a row about people may meet each of these rows by this condition.

    Then no group of theirs is ruled out, and an outer join that keeps them shows what an inner one shows.
    """
    others = [column for column in columns_of(condition) if column.relation != relation]
    if not others:
        return False
    own = [ref.name for ref in constants.columns if any(c.name == ref.name for c in columns_of(condition))]
    names = [ref.name for ref in constants.columns]
    if any(value is None for row in constants.rows for name, value in zip(names, row, strict=True) if name in own):
        return False
    domains = [closed_domain(column) for column in others]
    if not all(domains) or not is_exact(condition):
        return True  # nothing is ruled out where values are not known (reachable.py)
    if len(others) > 1:
        return False
    values = [{(others[0].relation, others[0].name): value} for value in domains[0] or ()]
    return all(
        any(evaluate(condition, {**row, **value}) is True for value in values)
        for row in ({(relation, n): v for n, v in zip(names, row, strict=True)} for row in constants.rows)
    )


def _compared(
    condition: Expression, relation: str, rows: Sequence[dict[tuple[str, str], Value]] | None
) -> tuple[str, Expression, ColumnRef | Call] | None:
    """The operator, what is compared of the row about people, and the column of constants beside it.

    With `rows`, those of constants, that may be what is computed of them alone, which is as well known.
    """
    if not isinstance(condition, Call) or condition.operator not in _MIRRORED:
        return None
    left, right = condition.arguments
    for own, other, operator in ((right, left, condition.operator), (left, right, _MIRRORED[condition.operator])):
        bare = own.arguments[0] if isinstance(own, Call) and own.operator in ("as_number", "as_timestamp") else own
        if rows is not None and isinstance(own, Call) and {column.relation for column in columns_of(own)} == {relation}:
            bare = columns_of(own)[0] if is_exact_on(own, rows) else own
        if not isinstance(bare, ColumnRef) or bare.relation != relation or isinstance(own, Literal):
            continue
        if all(column.relation != relation for column in columns_of(other)):
            return operator, other, own
    return None


def _overlapping(rows: Sequence[dict[tuple[str, str], Value]], ends: Sequence[tuple[str, Expression]]) -> int:
    """The most rows whose intervals have a value in common: of `other > own` the row's value is the lower end.

    An interval begins or ends at a value, or just after it: the second part of a place says which.
    """
    starts: list[tuple[Value, int]] = []
    stops: list[tuple[Value, int]] = []
    for row in rows:
        places: list[tuple[str, Value, int]] = [(o[0], evaluate(own, row), int(o in (">", "<="))) for o, own in ends]
        lows = [(value, after) for side, value, after in places if side == ">"]
        highs = [(value, after) for side, value, after in places if side == "<"]
        if any(value is None for value, _ in (*lows, *highs)):
            continue
        if lows and highs and max(lows) >= min(highs):
            continue
        starts += [max(lows)] if lows else []
        stops += [min(highs)] if highs else []
    if len({operator[0] for operator, _ in ends}) == 1:
        return max(len(starts), len(stops))  # with one end alone all of them may meet
    most = now = 0
    for _, change in sorted([*((one, 1) for one in starts), *((one, -1) for one in stops)]):
        now += change
        most = max(most, now)
    return most
