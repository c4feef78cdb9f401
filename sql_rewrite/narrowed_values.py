"""The values that aggregates read, with the ranges that conditions prove of them: their own bounds are then narrower.

    SELECT AVG(cost) FROM visits WHERE cost BETWEEN 10 AND 500         within [10, 500], whatever is declared
    SELECT SUM(CASE WHEN cost > 900 THEN 900 ELSE cost END)            within [.., 900] on both paths
    SELECT SUM(price * pieces) ... WHERE price * pieces < 1000         the product is held to it
    SELECT SUM(COALESCE(cost, 900)) ... WHERE cost IS NOT NULL         as SUM(cost): no row has the 900

Claim. For each row that an aggregate reads, the narrowed argument has the value that the argument has once its columns
are clipped to their declared bounds; except that what conditions prove to lie beyond declared bounds is clipped to
where it was clipped before, a value that is compared with a column is clipped to that column's declared bounds, and
what is computed of columns beyond theirs is moved nearer to its stored value (mechanisms/bounding.md).
Proof: clipping to [l, u] keeps the order, so values of [a, b] become values of [clip(a), clip(b)], which is what the
column is clipped to instead. A branch of CASE is read where its condition is TRUE and those before it are not.

Bounds are enforced in the statement, so that sensitivities hold whether or not the claim does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from operator import is_

from privacy.bounds import date_at, timestamp_at
from privacy.numbers import float_down, float_up
from privacy.policy import ColumnType
from sql_rewrite.expressions import Call, ColumnRef, Expression, Interval, Literal, walk
from sql_rewrite.functions import TypeRefused, bounds_of, build, clip_columns
from sql_rewrite.known_ranges import Facts, Reader, State, Subjects, facts_of
from sql_rewrite.plan import Aggregate, Core, Source
from sql_rewrite.reachable import conjuncts, needed

__all__ = ["Narrowing", "conditions_of", "narrowed_core"]

INTEGER, NUMBER = ColumnType.INTEGER, ColumnType.NUMBER
DATE, TIMESTAMP = ColumnType.DATE, ColumnType.TIMESTAMP
_CLIPPED = (INTEGER, NUMBER, DATE, TIMESTAMP)
_MOST = 10**15


def narrowed_core(core: Core, *, guessed: bool = False) -> Core:
    """The core with narrower bounds of what its aggregates sum.

    Where bounds of columns are `guessed`, a condition that no value within them fulfils says nothing.
    """
    given = conditions_of(core.sources, core.where)
    choice = core.choice
    every = core.aggregates if choice is None else (choice.score,)
    summed = [aggregate for aggregate in every if aggregate.function.statistic.described.of_values]
    values = [value for aggregate in summed for value in aggregate.values]
    if not given and not any(a.filter is not None for a in summed) and not any(isinstance(v, Call) for v in values):
        return core
    present = frozenset[ColumnRef]() if core.where is None else _present(core.where)
    plain = Narrowing(values, given, present=present, guessed=guessed)
    found = {id(aggregate): _narrowed(aggregate, plain, given, present, guessed=guessed) for aggregate in summed}
    if all(found[id(aggregate)] is aggregate for aggregate in summed):
        return core
    if choice is not None:
        return replace(core, choice=replace(choice, score=found[id(choice.score)]))
    return replace(core, aggregates=tuple(found.get(id(aggregate), aggregate) for aggregate in core.aggregates))


def conditions_of(sources: Iterable[Source], where: Expression | None) -> list[Expression]:
    """What is TRUE of every row, as far as it is about values that are not NULL."""
    found = [source.only for source in sources if source.only is not None]
    return found if where is None else [*found, where]


def _narrowed(
    aggregate: Aggregate,
    plain: Narrowing,
    given: Sequence[Expression],
    present: frozenset[ColumnRef],
    *,
    guessed: bool,
) -> Aggregate:
    """The aggregate over rows that satisfy these conditions and its own filter."""
    narrowing = plain
    if aggregate.filter is not None:
        present |= _present(aggregate.filter)
        narrowing = Narrowing(aggregate.values, [*given, aggregate.filter], present=present, guessed=guessed)
    argument = None if aggregate.argument is None else narrowing.value(aggregate.argument)
    second = None if aggregate.second is None else narrowing.value(aggregate.second)
    if argument is aggregate.argument and second is aggregate.second:
        return aggregate
    return replace(aggregate, argument=argument, second=second)


def _present(condition: Expression) -> frozenset[ColumnRef]:
    """Columns that are NULL in no row of which a condition is TRUE."""
    tests = [_null_test(part) for part in conjuncts(condition)]
    tested = {column for column, missing in tests if isinstance(column, ColumnRef) and not missing}
    return frozenset(needed(condition) | tested)


def _null_test(condition: Expression) -> tuple[Expression | None, bool]:
    """What a condition tests for NULL, and whether it is TRUE of NULL; None where it is no such test."""
    if not isinstance(condition, Call):
        return None, False
    if condition.operator in ("is_null", "is_not_null"):
        return condition.arguments[0], condition.operator == "is_null"
    if condition.operator == "not":
        tested, missing = _null_test(condition.arguments[0])
        return tested, not missing
    return None, False


class Narrowing:
    """Gives expressions over rows that satisfy some conditions narrower bounds.

    Those of the columns that they are computed from; and with `whole` those of what they are, which are then enforced.
    Columns that are `present` are NULL in none of these rows.
    """

    def __init__(
        self,
        expressions: Iterable[Expression],
        given: Sequence[Expression],
        *,
        whole: bool = True,
        present: frozenset[ColumnRef] = frozenset(),
        guessed: bool = False,
    ) -> None:
        self._whole = whole
        self._guessed = guessed
        self._present = frozenset((column.relation, column.name) for column in present)
        about = Subjects.of(expressions)
        self._facts = facts_of(given, about, declared=True)
        self._reader = Reader(about, declared=True)

    def value(self, expression: Expression) -> Expression:
        """One of the expressions."""
        return self._value(expression, self._facts)

    def _value(self, node: Expression, facts: Facts) -> Expression:
        """As `clip_columns`, only what the result is computed from."""
        if node.type not in _CLIPPED or isinstance(node, Literal) or facts.none:
            return node
        if isinstance(node, ColumnRef):
            return _column(node, facts, guessed=self._guessed) if facts.ranges else node
        if self._present and node.operator in ("coalesce", "case"):
            node = self._read(node)
            if not isinstance(node, Call):
                return self._value(node, facts)
        if (node.operator == "clip" and not self._guessed) or not (facts.ranges or any(map(_chooses, walk(node)))):
            return node
        changed = self._below(node, facts)
        if node.operator == "clip":
            return changed
        return _held(changed, facts.of(node)) if self._whole and facts.composed else changed

    def _read(self, node: Call) -> Expression:
        """COALESCE and CASE without what no row reads, because a column is present: the same value in each row."""
        arguments = list(node.arguments)
        if node.operator == "coalesce":
            first = next((place for place, one in enumerate(arguments) if self._is_present(one)), None)
            if first is None:
                return node
            last = arguments[first]
            assert isinstance(last, ColumnRef)
            kept = [*arguments[:first], replace(last, nullable=False)]
            return kept[0] if first == 0 else build("coalesce", kept)
        kept = []
        for place in range(0, len(arguments) - 1, 2):
            condition, value = arguments[place : place + 2]
            tested, missing = _null_test(condition)
            if tested is None or not self._is_present(tested):
                kept += [condition, value]
            elif not missing:
                arguments[-1] = value
                break
        if len(kept) + 1 == len(arguments):
            return node
        return build("case", [*kept, arguments[-1]]) if kept else arguments[-1]

    def _is_present(self, node: Expression) -> bool:
        return isinstance(node, ColumnRef) and (node.relation, node.name) in self._present

    def _below(self, node: Call, facts: Facts) -> Expression:
        arguments = list(node.arguments)
        if node.operator == "case":
            self._branches(arguments, facts)
        elif node.operator == "nullif":
            arguments[2] = self._value(arguments[2], facts)
        else:
            arguments = [self._value(argument, facts) for argument in arguments]
        if all(map(is_, arguments, node.arguments)):
            return node
        try:
            return build(node.operator, arguments)
        except TypeRefused:  # ranges only shrink; but guards may make the text longer than it may be
            return node

    def _branches(self, arguments: list[Expression], facts: Facts) -> None:
        """Each value of a CASE with what its path says."""
        passed = facts
        for place in range(0, len(arguments) - 1, 2):
            condition = arguments[place]
            here = passed.both(self._reader.read(condition, State.TRUE, passed))
            arguments[place + 1] = self._value(arguments[place + 1], here)
            passed = passed.both(self._reader.read(condition, State.NOT_TRUE, passed))
        arguments[-1] = self._value(arguments[-1], passed)


def _chooses(node: Expression) -> bool:
    return isinstance(node, Call) and node.operator == "case"


def _column(column: ColumnRef, facts: Facts, *, guessed: bool) -> ColumnRef:
    known = facts.of(column)
    if column.is_unit or column.identifies or (known.lower is None and known.upper is None):
        return column
    declared = column.declared
    if declared is not None and declared.lower is not None and declared.upper is not None:
        found = _moved(known, declared.lower, declared.upper)
        if guessed and found.lower == found.upper:
            return column  # bounds that no row of these is within say nothing of the rows
    else:
        met = _met(known, declared, None if column.calendar else column.interval)
        if met is None:
            return column
        found = met
    assert found.lower is not None
    assert found.upper is not None
    if column.type is not NUMBER and ceil(found.lower) > floor(found.upper):
        return column  # no such value, and no bounds of whole numbers
    if found == declared or _too_far(found, column.type):
        return column
    return replace(column, declared=found)


def _moved(known: Interval, low: Fraction, high: Fraction) -> Interval:
    """Where clipping to [low, high] moves values of a range."""
    return Interval(
        low if known.lower is None else min(max(known.lower, low), high),
        high if known.upper is None else max(min(known.upper, high), low),
    )


def _met(*intervals: Interval | None) -> Interval | None:
    """The values in all of them, where they are bounded on both sides and there are any."""
    lowers = [one.lower for one in intervals if one is not None and one.lower is not None]
    uppers = [one.upper for one in intervals if one is not None and one.upper is not None]
    if not lowers or not uppers or max(lowers) > min(uppers):
        return None
    return Interval(max(lowers), min(uppers))


def _held(expression: Expression, known: Interval) -> Expression:
    """The value moved into the range that conditions prove of it, where that is narrower."""
    if known.lower is None and known.upper is None:
        return expression
    try:
        own = bounds_of(clip_columns(expression)) if expression.type in (INTEGER, NUMBER) else Interval(None, None)
    except TypeRefused:
        return expression
    found = _met(known, own)
    if found is None or found == own or _too_far(found, expression.type):
        return expression
    ends = _ends(found, expression.type)
    if ends is None:
        return expression
    try:
        return build("clip", (expression, *ends))
    except TypeRefused:
        return expression


def _too_far(interval: Interval, kind: ColumnType) -> bool:
    assert interval.lower is not None
    assert interval.upper is not None
    if kind is not INTEGER and kind is not NUMBER:
        return False
    # In whole numbers, which take a tenth of the time of fractions.
    lower, upper = interval.lower, interval.upper
    return abs(lower.numerator) > _MOST * lower.denominator or abs(upper.numerator) > _MOST * upper.denominator


def _ends(interval: Interval, kind: ColumnType) -> tuple[Literal, Literal] | None:
    lower, upper = interval.lower, interval.upper
    assert lower is not None
    assert upper is not None
    if kind is NUMBER:
        return Literal(float_down(lower), kind), Literal(float_up(upper), kind)
    low, high = ceil(lower), floor(upper)
    if low > high:
        return None
    at: dict[ColumnType, Callable[[Fraction], object]] = {DATE: date_at, TIMESTAMP: timestamp_at, INTEGER: int}
    first, last = at[kind](Fraction(low)), at[kind](Fraction(high))
    return Literal(first, kind), Literal(last, kind)  # type: ignore[arg-type]
