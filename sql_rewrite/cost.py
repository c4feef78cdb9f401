"""What a query costs in time: nanoseconds of each operator for one row, at worst, and of all rows of one unit.

Claim. Let two data sets differ in one privacy unit. On the reference machine the running times of one plan differ by
at most `Work.unit_nanoseconds`, as far as the table below is right. For the plan and its statement are the same, so
the engine does the same for each row of the others; the unit has at most `rows_stored_per_unit` rows in a table
(the snapshot keeps no more), each of them takes every branch of every CASE, every side of AND and OR and every FILTER
at most once, and holds texts of at most `length_max` characters. The rows lie together (snapshots are ordered by unit),
so they touch few vectors; a vector in which a single row needs an operator costs `vector`. Grouped by unit and key they
lie apart, one group in a vector at worst. What makes the claim a measurement and not a proof: the table
(`benchmarks/cost.py` reproduces it; SAFETY is the factor above it), caches, and the engine's own freedom to do things
in another order.

`server/journey/moments.py` makes the tick of a plan ten times that long, and proves what then shows.

The table holds worst cases: the dearest values of several alphabets for `character`, integers of 128 bits in `wide`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from privacy.policy import LENGTH_MAX_DEFAULT, ColumnType
from privacy.refusal import Finding, Refused
from privacy.statistic import StatisticKind
from privacy.wording import shortened
from sql_rewrite.bound import BoundedCore
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, describe, needs_wide
from sql_rewrite.functions import REGISTRY

__all__ = [
    "COSTS",
    "OPERATORS_MAX",
    "PLAN_NANOSECONDS",
    "SAFETY",
    "SPEED_REFERENCE",
    "UNIT_NANOSECONDS_MAX",
    "Cost",
    "Work",
    "characters",
    "check_work",
    "parts_of",
    "work_of",
]

SPEED_REFERENCE = 5_000_000
"""Nanoseconds of `engines.speed.PROBE` on the machine whose nanoseconds the table holds."""

SAFETY = 2
"""Factor between the table and what is assumed: for caches, orders of evaluation, and what was not measured."""

UNIT_NANOSECONDS_MAX = 250_000_000
"""Most that the rows of one unit may cost; a plan's tick is ten times as much, at most 2.5 seconds."""

OPERATORS_MAX = 3_000
"""Most operators of all statements of a query. Planning takes 25 microseconds for each, before any row is read."""

PLAN_NANOSECONDS = 25_000
PLAN_CORE = 80
"""Operators that take as long to plan as a core without any."""
PLAN_READING = 20
"""Operators that take as long to plan as one conversion of text, whose pattern is made anew."""
VECTOR_ROWS = 2_048


@dataclass(frozen=True, slots=True)
class Cost:
    """Nanoseconds of one operator, its arguments not counted.

    `row` is for one row (`wide` when it computes in 128 bits), `character` for each character of its text arguments,
    `pattern` for each of them and each character of the constant that is searched, `vector` for a vector of the
    engine in which one row at least needs it.
    """

    row: float
    vector: float = 1_200
    wide: float = 0
    character: float = 0
    pattern: float = 0


COSTS: Mapping[str, Cost] = MappingProxyType(
    {
        "and": Cost(row=4),
        "or": Cost(row=5),
        "not": Cost(row=7),
        "=": Cost(row=9, wide=11, character=0.8),
        "<>": Cost(row=6, wide=22, character=0.8),
        "<": Cost(row=16, vector=2300, character=0.4),
        "<=": Cost(row=17, vector=1900, wide=21, character=0.3),
        ">": Cost(row=18, vector=3600, character=1),
        ">=": Cost(row=15, character=1.4),
        "is_null": Cost(row=9, character=0.2),
        "is_not_null": Cost(row=4, vector=2500, character=0.2),
        "is_distinct_from": Cost(row=41, character=1.2),
        "is_not_distinct_from": Cost(row=13, wide=15, character=1.3),
        "in": Cost(row=13, vector=2300, character=1.2),
        "case": Cost(row=8, character=1.1),
        "coalesce": Cost(row=7, character=0.1),
        "nullif": Cost(row=13, character=0.9),
        "least": Cost(row=31, vector=2400, character=2.7),
        "greatest": Cost(row=24, character=4.1),
        "clip": Cost(row=24, vector=3300),
        "gather": Cost(row=31, vector=6000, character=2.6),
        "gather_range": Cost(row=53, vector=8000, character=3),
        "as_number": Cost(row=8),
        "as_timestamp": Cost(row=11),
        "add": Cost(row=10, wide=13),
        "subtract": Cost(row=9, wide=10),
        "multiply": Cost(row=14),
        "negate": Cost(row=9),
        "divide": Cost(row=28),
        "integer_divide": Cost(row=232, vector=2700),
        "modulo": Cost(row=227, vector=2500),
        "abs": Cost(row=4, wide=8),
        "sign": Cost(row=10),
        "floor": Cost(row=5),
        "ceil": Cost(row=10, vector=1400),
        "trunc": Cost(row=5),
        "round": Cost(row=105, vector=3400),
        "sqrt": Cost(row=17, vector=1600),
        "ln": Cost(row=21),
        "log10": Cost(row=34, vector=3100),
        "log2": Cost(row=22, vector=1300),
        "exp": Cost(row=19),
        "power": Cost(row=73, vector=3900),
        "like": Cost(row=29, character=6.9, pattern=4.46),
        "not_like": Cost(row=27, character=7, pattern=4.41),
        "ilike": Cost(row=53, vector=2500, character=20.5, pattern=4.37),
        "not_ilike": Cost(row=55, vector=1900, character=20.5, pattern=4.7),
        "lower": Cost(row=27, vector=2800, character=15.7),
        "upper": Cost(row=17, character=17.7),
        "length": Cost(row=4, character=1.4),
        "trim": Cost(row=51, character=14.6),
        "ltrim": Cost(row=32, vector=1300, character=7),
        "rtrim": Cost(row=28, vector=2100, character=9.6),
        "left": Cost(row=37, vector=3100, character=3.7),
        "right": Cost(row=41, vector=1400, character=5.9),
        "substr": Cost(row=24, vector=3200, character=5),
        "concat": Cost(row=25, character=2.1),
        "replace": Cost(row=47, vector=3900, character=15, pattern=0.08),
        "starts_with": Cost(row=29, vector=2600, character=1),
        "ends_with": Cost(row=26, vector=2100, character=1.1),
        "contains": Cost(row=23, vector=3900, character=9.5, pattern=0.12),
        "position": Cost(row=25, character=9.5, pattern=0.12),
        "year": Cost(row=8, vector=4400),
        "quarter": Cost(row=12),
        "month": Cost(row=16, vector=2000),
        "day": Cost(row=10, vector=2200),
        "day_of_week": Cost(row=22, vector=4100),
        "day_of_week_iso": Cost(row=17),
        "day_of_year": Cost(row=10, vector=3200),
        "week": Cost(row=30),
        "iso_year": Cost(row=32),
        "hour": Cost(row=8),
        "minute": Cost(row=16),
        "second": Cost(row=19),
        "dayname": Cost(row=25, vector=2100),
        "monthname": Cost(row=11),
        "date_trunc": Cost(row=32, vector=2100),
        "date_diff": Cost(row=20),
        "epoch": Cost(row=17, vector=1600),
        "cast_integer": Cost(row=181, vector=3300, character=11.9),
        "cast_number": Cost(row=167, vector=6400, character=14.5),
        "cast_text": Cost(row=85, vector=3700),
        "cast_boolean": Cost(row=211, vector=3900, character=10),
        "cast_date": Cost(row=144, vector=3100, character=11.6),
        "cast_timestamp": Cost(row=166, vector=3900, character=15.3),
    }
)
"""Every operator of the allow-list, from runs of `python -m benchmarks.cost`, beside other work and without.

The greatest figures, at least 4 ns for a row and 1,200 for a vector.
"""

UNKNOWN = Cost(row=300, vector=5_000, wide=300, character=20, pattern=1)
"""An operator that was not measured is taken to be dearer than any other."""

_GUARD = Cost(row=15, vector=2_400)
"""isfinite and the CASE that turn an infinity into NULL; the value is computed twice."""

_PIECE = 0.1
"""Nanoseconds for each character of a text and of a LIKE pattern without _."""

_CHAINED = frozenset({"and", "or", "in", "gather", "coalesce", "least", "greatest", "concat"})
"""Operators whose figures are for two arguments, and grow with each further one."""

_LONGEST = {"cast_text": 40, "dayname": 9, "monthname": 9}

# What a core costs for a row beside its expressions, from the shapes that sql_rewrite.lower writes.
_SCAN = 25.0
_JOIN = 60.0
_SUM = 20.0
_UNIT = 80.0
_KEY = 40.0
_KEY_CHARACTER = 3.0
_CHOICE = 200.0
_GROUP = 10_000.0
"""One more group that nobody else has: its way to the mechanism, its noise and its selection."""
_CORE_VECTOR = 20_000.0
_SCATTERED = 10_000.0
"""One bounded sum of one group of a unit beyond its bounds, in a vector where nobody else is (measured: 8,300).

The groups of a unit do not lie together: grouping by unit and key leaves them in the order of a hash.
"""
_CLIPPED = 2_500.0
"""The same where a comparison is all that is needed."""
_SALT = 5.0
"""One hidden key in the number that decides where its groups lie; a text adds more (measured: 121 and 1.6 a byte)."""
_SALT_TEXT = 140.0
_SALT_CHARACTER = 6.5
_KEY_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Work:
    """What a query's statements do.

    `unit_nanoseconds` is the most that the rows of one unit cost in all cores together, with SAFETY; `row_nanoseconds`
    what the declared numbers of rows cost, as far as they are declared; `operators` how many operators are planned.
    `dearest` is the operator that costs a unit's rows most, in words, None where there is none.
    """

    unit_nanoseconds: float
    row_nanoseconds: float
    operators: int
    dearest: str | None

    @property
    def plan_nanoseconds(self) -> float:
        """Time to plan the statements."""
        return self.operators * PLAN_NANOSECONDS


@dataclass(frozen=True, slots=True)
class _Sum:
    row: float = 0.0
    vector: float = 0.0
    operators: int = 0

    def plus(self, other: _Sum, times: int = 1) -> _Sum:
        return _Sum(
            self.row + times * other.row,
            self.vector + times * other.vector,
            self.operators + times * other.operators,
        )


class _Meter:
    """Adds up expressions. Shared parts are looked at once."""

    def __init__(self, *, typical: int | None = None) -> None:
        self._known: dict[int, _Sum] = {}
        self._lengths: dict[int, int] = {}
        self._typical = typical

    def lowered(self, expression: Expression) -> _Sum:
        """The expression as it is lowered: with its guard, for which it is written twice."""
        own = self.bare(expression)
        if isinstance(expression, Call) and not expression.finite:
            return _Sum(_GUARD.row, _GUARD.vector, 2).plus(own, 2)
        return own

    def bare(self, expression: Expression) -> _Sum:
        """The expression without a guard of its own."""
        if not isinstance(expression, Call):
            return _Sum(operators=1)
        known = self._known.get(id(expression))
        if known is None:
            known = self._known[id(expression)] = self._call(expression)
        return known

    def _call(self, call: Call) -> _Sum:
        entry = REGISTRY[call.operator]
        total = self.own(call)
        for index, argument in enumerate(call.arguments):
            copies = entry.copies_of(call.arguments, index)
            total = total.plus(self.bare(argument) if entry.loose else self.lowered(argument), copies)
        return total

    def own(self, call: Call) -> _Sum:
        """One operator, once."""
        cost = COSTS.get(call.operator, UNKNOWN)
        times = max(1, len(call.arguments) - 1) if call.operator in _CHAINED else 1
        if call.operator == "case":
            times = len(call.arguments) // 2
        wide = needs_wide(call) or any(needs_wide(argument) for argument in call.arguments)
        row = (max(cost.row, cost.wide) if wide else cost.row) * times
        read = [a for a in call.arguments if a.type is ColumnType.TEXT and not isinstance(a, Literal)]
        if read and (cost.character or cost.pattern):
            needles = [a.value for a in call.arguments if isinstance(a, Literal) and isinstance(a.value, str)]
            longest = max((len(needle) for needle in needles), default=0)
            # A pattern without _ is searched piece by piece; one with it is tried at every character.
            plain = call.operator.endswith("like") and not any("_" in needle for needle in needles)
            rate = cost.character + (min(cost.pattern, _PIECE) if plain else cost.pattern) * longest
            compared = times if call.operator in ("in", "gather") else 1
            row += sum(self.characters(argument) for argument in read) * rate * compared
        operators = times
        if call.operator.startswith("cast_") and read and call.type is not ColumnType.TEXT:
            operators = PLAN_READING
        return _Sum(row, cost.vector * times, operators)

    def characters(self, expression: Expression) -> int:
        """The most characters that a text of the expression may have."""
        known = self._lengths.get(id(expression))
        if known is None:
            known = self._lengths[id(expression)] = self._characters(expression)
        return known

    def _characters(self, expression: Expression) -> int:
        if isinstance(expression, Literal):
            return len(expression.value) if isinstance(expression.value, str) else 0
        if isinstance(expression, ColumnRef):
            if expression.domain is not None and expression.other is None:
                return max((len(value) for value in expression.domain if isinstance(value, str)), default=0)
            longest = LENGTH_MAX_DEFAULT if expression.length_max is None else expression.length_max
            return longest if self._typical is None else min(longest, self._typical)
        if expression.operator in _LONGEST:
            return _LONGEST[expression.operator]
        arguments = expression.arguments
        texts = [self.characters(argument) for argument in arguments if argument.type is ColumnType.TEXT]
        if expression.operator == "concat":
            return sum(texts)
        last = arguments[-1]
        cut = expression.operator in ("left", "right") or (expression.operator == "substr" and len(arguments) == 3)
        if cut and isinstance(last, Literal) and isinstance(last.value, int):
            return min(last.value, texts[0])
        if expression.operator == "replace":
            # Not longer in bytes, but four characters may stand where one of four bytes stood.
            old, new = (a.value for a in arguments[1:] if isinstance(a, Literal))
            assert isinstance(old, str)
            assert isinstance(new, str)
            return texts[0] * max(1, -(-len(new) // max(1, len(old))))
        if expression.operator == "gather":  # never longer than the keys: other values are not shown
            return max(texts[1:])
        if expression.operator in ("case", "coalesce", "least", "greatest", "nullif"):
            return max(texts, default=0)
        return texts[0] if texts else 40


def characters(expression: Expression) -> int:
    """The most characters that a text of the expression may have."""
    return _Meter().characters(expression)


USUAL_SHARE = 1 / 3
"""What a row usually costs of what it may cost: plain shapes took about a quarter when they were tried."""

TYPICAL_CHARACTERS = 32
"""Characters of a stored text where the time of a whole table is predicted; worst cases use `length_max`."""


def work_of(cores: Iterable[BoundedCore]) -> Work:
    """What the statements of these cores do. A function of the plan and of declarations."""
    unit = rows = 0.0
    operators = 0
    dearest: tuple[float, Call] | None = None
    for bounded in cores:
        root = bounded.core.sources[0].table
        stored = root.rows_stored
        worst, usual = _core(bounded, _Meter()), _core(bounded, _Meter(typical=TYPICAL_CHARACTERS))
        vectors = 1 + -(-(stored - 1) // VECTOR_ROWS)
        groups = 0 if bounded.described.keys.domain is not None else min(bounded.contribution.groups, stored)
        sums = sum(b.statistic.coordinates for b in bounded.statistics)
        unit += stored * worst.row + vectors * worst.vector + groups * (_GROUP + sums * _GROUP / 10)
        if not bounded.contribution.one_row:
            unit += min(bounded.contribution.groups, stored) * _held_nanoseconds(bounded)
        # Rows of joined tables are hashed whether or not a row finds them.
        unit += sum(source.table.rows_stored for source in bounded.core.sources[1:] if source.table.protected) * _JOIN
        rows += (root.rows_expected or 0) * usual.row * USUAL_SHARE
        operators += worst.operators
        meter = _Meter()
        for call in _calls(bounded):
            own = meter.own(call)
            took = stored * own.row + vectors * own.vector
            if dearest is None or took > dearest[0]:
                dearest = (took, call)
    return Work(
        unit_nanoseconds=unit * SAFETY,
        row_nanoseconds=rows,
        operators=operators,
        dearest=None if dearest is None else shortened(describe(dearest[1])),
    )


def _held_nanoseconds(bounded: BoundedCore) -> float:
    """Time of the expressions that hold what a unit adds to one group, where only units beyond the bounds need them."""
    total = 0.0
    for b in bounded.statistics:
        if b.statistic.kind is StatisticKind.MOMENTS or b.scaled:
            total += (b.statistic.coordinates + (b.statistic.kind is StatisticKind.MOMENTS)) * _SCATTERED
        elif b.statistic.kind is not StatisticKind.UNITS:
            total += _CLIPPED
    return total


def parts_of(bounded: BoundedCore) -> list[tuple[Expression, int]]:
    """The expressions of a core, and how often the statement holds each of them at most."""
    parts: list[tuple[Expression, int]] = []
    if bounded.core.where is not None:
        parts.append((bounded.core.where, 1))
    parts += [(key, 3) for _, key in bounded.core.keys]
    for statistic in bounded.statistics:
        if statistic.argument is not None:
            parts.append((statistic.argument, 3))
        parts += [(part, 1) for part in (statistic.filter, statistic.present) if part is not None]
    return parts


def _calls(bounded: BoundedCore) -> Iterable[Call]:
    seen: set[int] = set()
    stack: list[Expression] = [expression for expression, _ in parts_of(bounded)]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(node.arguments)


def _core(bounded: BoundedCore, meter: _Meter) -> _Sum:
    """One core for one row: its expressions, and the joins, sums and groups around them."""
    total = _Sum()
    for expression, copies in parts_of(bounded):
        total = total.plus(meter.lowered(expression), copies)
    sums = sum(b.statistic.coordinates for b in bounded.statistics)
    keys = [key for _, key in bounded.core.keys]
    row = _SCAN + _JOIN * (len(bounded.core.sources) - 1) + _SUM * sums + _KEY * len(keys)
    texts = [key for key in keys if key.type is ColumnType.TEXT]
    compared = sum(min(meter.characters(key), _KEY_CHARACTERS) for key in texts) * _KEY_CHARACTER
    row += compared
    if not bounded.contribution.one_row:
        row += _UNIT
        for key, domain in zip(keys, bounded.domains, strict=True):
            if domain is None:
                row += _SALT
                if key.type is ColumnType.TEXT:
                    row += _SALT_TEXT + _SALT_CHARACTER * min(meter.characters(key), _KEY_CHARACTERS)
        if bounded.contribution.choose_groups:
            row += _CHOICE + _KEY * len(keys)
        if bounded.contribution.scaled:
            # The rows of the unit over all its groups: a window over at most as many rows as the choice sorts.
            row += _CHOICE
    return total.plus(_Sum(row, _CORE_VECTOR, PLAN_CORE + len(keys) + 2 * sums))


def check_work(cores: Sequence[BoundedCore]) -> Work:
    """The work of a query's cores, all together.

    Errors: Refused (too_large) when planning them, or the rows of one unit, would take too long. Depends on the text
    and on declarations only, never on the machine: a text is always answered or always refused.
    """
    work = work_of(cores)
    if work.operators > OPERATORS_MAX:
        raise Refused(
            [
                Finding(
                    code="too_large",
                    what="the query is refused",
                    why=f"Written out for the engine it has {work.operators:,} operators, guards and their copies "
                    f"included, and {OPERATORS_MAX:,} may be planned.",
                    instead=(
                        "nest functions of numbers less deeply: each guard doubles what is below it",
                        "ask for its aggregates in several queries",
                    ),
                )
            ]
        )
    if work.unit_nanoseconds > UNIT_NANOSECONDS_MAX:
        named = "its expressions" if work.dearest is None else work.dearest
        milliseconds = round(work.unit_nanoseconds / 1e6)
        raise Refused(
            [
                Finding(
                    code="too_large",
                    what="the query is refused",
                    why=f"The rows of one person may take {milliseconds:,} ms, which would show whether they are "
                    f"there; {UNIT_NANOSECONDS_MAX // 1_000_000} ms are allowed. The dearest part is {named}.",
                    instead=(
                        "work on a piece of a text, for example LEFT(x, 50)",
                        "ask for its aggregates in several queries",
                        "ask an administrator to declare a smaller length_max or rows_stored_per_unit",
                    ),
                )
            ]
        )
    return work
