"""DuckDB's SQL for what is computed from one row: every operator of `scalars.py`, total.

Where an expression of the query is written, every part is in parentheses. Where a part is needed more than once (a
guard and what it guards), it is one node here and its text is repeated: the engine computes equal texts once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sql_rewrite.date_scalars import (
    AgePart,
    DateFromParts,
    DatePart,
    DateTrunc,
    DaysBetween,
    DaysLater,
    EpochSeconds,
    Later,
    TimeBucket,
    UnitsBetween,
    WholeUnits,
)
from sql_rewrite.dialects.dialect import Dialect, writes
from sql_rewrite.scalars import (
    Arithmetic,
    ArithmeticSymbol,
    Case,
    Cast,
    Clip,
    Coalesce,
    Column,
    Comparison,
    Concatenation,
    Decoded,
    EngineType,
    Extreme,
    Finite,
    Function,
    Gather,
    Guarded,
    Held,
    Holds,
    IsNull,
    Junction,
    KeyPlace,
    Like,
    Member,
    Named,
    Negate,
    Not,
    Null,
    Parameter,
    Power,
    PowerDomain,
    ReadText,
    RegularExpression,
    RoundDigits,
    RoundUnits,
    Scalar,
    SplitPart,
    TotalDivision,
    Whole,
)

__all__ = ["ADDED", "MULTIPLIED", "DuckDBScalars", "quote"]

_TYPES: Mapping[EngineType, str] = {
    EngineType.INTEGER: "BIGINT",
    EngineType.WIDE: "HUGEINT",
    EngineType.NUMBER: "DOUBLE",
    EngineType.TEXT: "VARCHAR",
    EngineType.BOOLEAN: "BOOLEAN",
    EngineType.DATE: "DATE",
    EngineType.TIMESTAMP: "TIMESTAMP",
}
_COMPARISONS = {"distinct": "IS DISTINCT FROM", "not distinct": "IS NOT DISTINCT FROM"}
_FUNCTIONS = {"position": "strpos"}
_NARROW = frozenset({"lpad", "rpad"})
"""Functions whose numbers have 32 bits: constants, which fit."""

_DATE_PARTS = {
    "day_of_week": "dayofweek",
    "day_of_week_iso": "isodow",
    "day_of_year": "dayofyear",
    "iso_year": "isoyear",
    "year_week": "yearweek",
}
_POWER_TESTS = {PowerDomain.NOT_ZERO: "<>", PowerDomain.POSITIVE: ">", PowerDomain.NOT_NEGATIVE: ">="}
_ZERO = "0::DOUBLE"
_FIRST_DAY, _LAST_DAY = "DATE '0001-01-01'", "DATE '9999-12-31'"
_FIRST_MOMENT, _LAST_MOMENT = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"

# How tightly an operator binds, least first. A CASE without parentheses never stands beside an operator.
_OR, _AND, _COMPARED, ADDED, MULTIPLIED = range(1, 6)
_ARITHMETIC: dict[ArithmeticSymbol, int] = {"+": ADDED, "-": ADDED, "*": MULTIPLIED, "//": MULTIPLIED}


def quote(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return f'"{name}"' if '"' not in name else '"' + name.replace('"', '""') + '"'


def _binding(node: Scalar) -> int:
    """How tightly a node that is not closed holds its parts together."""
    if isinstance(node, Arithmetic):
        return _ARITHMETIC[node.symbol]
    if isinstance(node, Comparison | IsNull):
        return _COMPARED
    if isinstance(node, Junction):
        return _AND if node.word == "AND" else _OR
    return 0


def _interval(months: int, days: int, microseconds: int) -> str:
    parts = ((months, "months"), (days, "days"), (microseconds, "microseconds"))
    text = " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 days"
    return f"INTERVAL '{text}'"


def _escaped(text: str) -> str:
    """The text as a regular expression that fits it alone, written with letters, digits and escapes only."""
    return "".join(sign if sign.isascii() and sign.isalnum() else f"\\x{{{ord(sign):x}}}" for sign in text)


class DuckDBScalars(Dialect, part=True):
    """Writes operators for DuckDB."""

    types = _TYPES

    def operand(self, node: Scalar, binding: int) -> str:
        """A part of an operator, in parentheses if it would otherwise not be read as one."""
        text = self._writers[type(node)](self, node)
        return text if node.closed or _binding(node) >= binding else f"({text})"

    # What is there

    @writes(Column)
    def _column(self, node: Column) -> str:
        relation, name = node.relation, node.name
        plain = '"' not in relation and '"' not in name
        return f'"{relation}"."{name}"' if plain else f"{quote(relation)}.{quote(name)}"

    def _listed_parts(self, parts: Sequence[Scalar]) -> str:
        writers = self._writers
        return ", ".join([writers[type(part)](self, part) for part in parts])

    @writes(Decoded)
    def _decoded(self, node: Decoded) -> str:
        return f"CAST({self.write(node.value)} AS VARCHAR)"

    @writes(KeyPlace)
    def _key_place(self, node: KeyPlace) -> str:
        return f"CAST(enum_code({self.write(node.value)}) AS BIGINT)"

    @writes(Named)
    def _named(self, node: Named) -> str:
        return f'"{node.name}"'

    @writes(Whole)
    def _whole(self, node: Whole) -> str:
        return str(node.value)

    @writes(Parameter)
    def _parameter(self, node: Parameter) -> str:
        return f"CAST(${node.number} AS {_TYPES[node.type]})"

    @writes(Null)
    def _null(self, node: Null) -> str:
        return "NULL" if node.type is None else f"CAST(NULL AS {_TYPES[node.type]})"

    # Conversions

    @writes(Cast)
    def _cast(self, node: Cast) -> str:
        return f"{'TRY_CAST' if node.safe else 'CAST'}({self.write(node.value)} AS {_TYPES[node.type]})"

    @writes(ReadText)
    def _read_text(self, node: ReadText) -> str:
        bare = f"trim({self.write(node.value)}, ' ')"
        test = f"regexp_full_match({bare}, '{node.pattern}')"
        if node.characters_max is not None:
            # A text that fits the pattern has one byte for each character.
            test = f"strlen({bare}) <= {node.characters_max} AND {test}"
        return f"(CASE WHEN {test} THEN TRY_CAST({bare} AS {_TYPES[node.type]}) END)"

    @writes(Finite)
    def _finite(self, node: Finite) -> str:
        value = self.write(node.value)
        return f"(CASE WHEN isfinite({value}) THEN {value} END)"

    # Truth

    @writes(Holds)
    def _holds(self, node: Holds) -> str:
        return f"COALESCE({self.write(node.value)}, FALSE)"

    @writes(IsNull)
    def _is_null(self, node: IsNull) -> str:
        text = f"{self.operand(node.value, ADDED)} {'IS NOT NULL' if node.negated else 'IS NULL'}"
        return f"({text})" if node.closed else text

    @writes(Not)
    def _negation(self, node: Not) -> str:
        return f"(NOT {self.write(node.value)})"

    @writes(Junction)
    def _junction(self, node: Junction) -> str:
        binding = _AND if node.word == "AND" else _OR
        text = f" {node.word} ".join([self.operand(part, binding) for part in node.parts])
        return f"({text})" if node.closed else text

    @writes(Comparison)
    def _comparison(self, node: Comparison) -> str:
        symbol = _COMPARISONS.get(node.symbol, node.symbol)
        text = f"{self.operand(node.left, ADDED)} {symbol} {self.operand(node.right, ADDED)}"
        return f"({text})" if node.closed else text

    @writes(Member)
    def _member(self, node: Member) -> str:
        return f"({self.write(node.value)} IN ({', '.join([self.write(part) for part in node.listed])}))"

    # Choices

    @writes(Case)
    def _case(self, node: Case) -> str:
        pairs = " ".join([f"WHEN {self.write(test)} THEN {self.write(value)}" for test, value in node.pairs])
        text = f"CASE {pairs} END" if node.otherwise is None else f"CASE {pairs} ELSE {self.write(node.otherwise)} END"
        return f"({text})" if node.closed else text

    @writes(Coalesce)
    def _coalesce(self, node: Coalesce) -> str:
        return f"COALESCE({self._listed_parts(node.parts)})"

    @writes(Extreme)
    def _extreme(self, node: Extreme) -> str:
        parts = [self.write(part) for part in node.parts]
        value = f"{node.which.upper()}({', '.join(parts)})"
        tests = [f"({part} IS NULL)" for part, nullable in zip(parts, node.nullable, strict=True) if nullable]
        # The engine's own function skips NULL: a missing value would silently become the bound.
        return f"(CASE WHEN {' OR '.join(tests)} THEN NULL ELSE {value} END)" if tests else value

    @writes(Clip)
    def _clip(self, node: Clip) -> str:
        value, low, high = [self.operand(part, ADDED) for part in (node.value, node.lower, node.upper)]
        if node.closed:
            return f"(CASE WHEN ({value} < {low}) THEN {low} WHEN ({value} > {high}) THEN {high} ELSE {value} END)"
        return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"

    @writes(Held)
    def _held(self, node: Held) -> str:
        value, below, above = [self.operand(part, ADDED) for part in (node.value, node.below, node.above)]
        text = f"CASE WHEN {value} < (-{below}) THEN (-{below}) WHEN {value} > {above} THEN {above} ELSE {value} END"
        return f"({text})" if node.closed else text

    @writes(Gather)
    def _gather(self, node: Gather) -> str:
        value, other = self.write(node.value), self.write(node.other)
        if not node.keys:
            return f"(CASE WHEN ({value} IS NULL) THEN {value} ELSE {other} END)"
        keys = [self.write(key) for key in node.keys]
        inside = f"{value} BETWEEN {keys[0]} AND {keys[1]}" if node.between else f"{value} IN ({', '.join(keys)})"
        missing = f"({value} IS NULL) OR " if node.nullable else ""
        return f"(CASE WHEN {missing}({inside}) THEN {value} ELSE {other} END)"

    # Arithmetic

    @writes(Arithmetic)
    def _arithmetic(self, node: Arithmetic) -> str:
        binding = _ARITHMETIC[node.symbol]
        text = f"{self.operand(node.left, binding)} {node.symbol} {self.operand(node.right, binding + 1)}"
        return f"({text})" if node.closed else text

    @writes(TotalDivision)
    def _total_division(self, node: TotalDivision) -> str:
        divisor = self.write(node.right)
        if node.zero:
            # Written as CASE: the engine's NULLIF is the same CASE.
            zero = _ZERO if node.type is EngineType.NUMBER else "0"
            divisor = f"(CASE WHEN ({divisor} <> {zero}) THEN {divisor} END)"
        return f"({self.write(node.left)} {node.symbol} {divisor})"

    @writes(DaysBetween)
    def _days_between(self, node: DaysBetween) -> str:
        return f"({self.write(node.left)} - {self.write(node.right)})"

    @writes(Negate)
    def _negate(self, node: Negate) -> str:
        # The space keeps two signs from becoming a comment.
        return f"(- {self.write(node.value)})"

    @writes(RoundDigits)
    def _round_digits(self, node: RoundDigits) -> str:
        value = self.write(node.value)
        return f"round({value})" if node.digits == 0 else f"round({value}, {node.digits})"

    @writes(RoundUnits)
    def _round_units(self, node: RoundUnits) -> str:
        value, half = self.write(node.value), node.unit // 2
        moved = f"(CASE WHEN ({value} < 0) THEN ({value} - {half}) ELSE ({value} + {half}) END)"
        return f"(({moved} // {node.unit}) * {node.unit})"

    @writes(Guarded)
    def _guarded(self, node: Guarded) -> str:
        value = self.write(node.value)
        text = f"{node.function}({value})"
        test = f"{value} {'>=' if node.function == 'sqrt' else '>'} {_ZERO}"
        if node.function in ("asin", "acos"):
            test = f"{value} BETWEEN -1::DOUBLE AND 1::DOUBLE"
        return f"(CASE WHEN ({test}) THEN {text} END)" if node.guarded else text

    @writes(Power)
    def _power(self, node: Power) -> str:
        """POW where it is defined: with one setting the engine raises for zero and negative bases."""
        base, exponent = self.write(node.base), self.write(node.exponent)
        value = f"pow({base}, {exponent})"
        if node.domain is PowerDomain.EVERYWHERE:
            return value
        if node.domain is PowerDomain.BY_EXPONENT:
            test = (
                f"({base} > {_ZERO}) OR (({base} = {_ZERO}) AND ({exponent} >= {_ZERO})) "
                f"OR (({base} < {_ZERO}) AND ({exponent} = trunc({exponent})))"
            )
        else:
            test = f"{base} {_POWER_TESTS[node.domain]} {_ZERO}"
        return f"(CASE WHEN ({test}) THEN {value} END)"

    @writes(Function)
    def _function(self, node: Function) -> str:
        name = node.name
        parts = [self.write(part) for part in node.arguments]
        if name in _NARROW:
            parts = [parts[0], f"CAST({parts[1]} AS INTEGER)", *parts[2:]]
        text = f"{_FUNCTIONS.get(name, name)}({', '.join(parts)})"
        return text if node.cast is None else f"CAST({text} AS {_TYPES[node.cast]})"

    # Text and dates

    @writes(Like)
    def _like(self, node: Like) -> str:
        value, pattern = self.write(node.value), self.write(node.pattern)
        if node.fold:
            value, pattern = f"lower({value})", f"lower({pattern})"
        ending = "" if node.escape is None else f" ESCAPE {self.write(node.escape)}"
        return f"({value} {'NOT LIKE' if node.negated else 'LIKE'} {pattern}{ending})"

    @writes(Concatenation)
    def _concatenation(self, node: Concatenation) -> str:
        return f"({' || '.join([self.write(part) for part in node.parts])})"

    @writes(DatePart)
    def _date_part(self, node: DatePart) -> str:
        return f"CAST({_DATE_PARTS.get(node.part, node.part)}({self.write(node.value)}) AS BIGINT)"

    @writes(DateTrunc)
    def _date_trunc(self, node: DateTrunc) -> str:
        start = f"date_trunc('{node.unit}', {self.write(node.value)})"
        if node.unit in ("century", "decade"):
            # The first one would start with the year 0. greatest() would leave NULL out.
            second = "TIMESTAMP '0100-01-01'" if node.unit == "century" else "TIMESTAMP '0010-01-01'"
            start = f"CASE WHEN {self.write(node.value)} < {second} THEN TIMESTAMP '0001-01-01' ELSE {start} END"
        return f"CAST({start} AS {_TYPES[node.type]})"

    @writes(UnitsBetween)
    def _units_between(self, node: UnitsBetween) -> str:
        return f"date_diff('{node.unit}', {self.write(node.first)}, {self.write(node.second)})"

    @writes(EpochSeconds)
    def _epoch_seconds(self, node: EpochSeconds) -> str:
        # The engine's own epoch() drops microseconds of distant years; the division is rounded once.
        return f"(CAST(epoch_us({self.write(node.value)}) AS DOUBLE) / 1000000::DOUBLE)"

    @writes(Later)
    def _later(self, node: Later) -> str:
        text = f"({self.write(node.value)} + {_interval(node.months, node.days, node.microseconds)})"
        return (
            f"(CASE WHEN {text} BETWEEN {_FIRST_MOMENT} AND {_LAST_MOMENT} THEN {text} END)" if node.guarded else text
        )

    @writes(DaysLater)
    def _days_later(self, node: DaysLater) -> str:
        days = self.write(node.days)
        if node.limit is not None:
            days = f"(CASE WHEN {days} BETWEEN {-node.limit} AND {node.limit} THEN {days} END)"
        text = f"({self.write(node.value)} + TRY_CAST({days} AS INTEGER))"
        return f"(CASE WHEN {text} BETWEEN {_FIRST_DAY} AND {_LAST_DAY} THEN {text} END)" if node.guarded else text

    @writes(WholeUnits)
    def _whole_units(self, node: WholeUnits) -> str:
        return f"date_sub('{node.unit}', {self.write(node.first)}, {self.write(node.second)})"

    @writes(AgePart)
    def _age_part(self, node: AgePart) -> str:
        return f"CAST({node.unit}(age({self.write(node.later)}, {self.write(node.earlier)})) AS BIGINT)"

    @writes(DateFromParts)
    def _date_from_parts(self, node: DateFromParts) -> str:
        year, month, day = self.write(node.year), self.write(node.month), self.write(node.day)
        # The inner condition makes a date: it may not be looked at before the outer one is true.
        last = f"day(last_day(make_date({year}, {month}, 1)))"
        inner = f"CASE WHEN {day} <= {last} THEN make_date({year}, {month}, {day}) END"
        test = f"{year} BETWEEN 1 AND 9999 AND {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND 31"
        return f"(CASE WHEN {test} THEN {inner} END)"

    @writes(TimeBucket)
    def _time_bucket(self, node: TimeBucket) -> str:
        width = _interval(node.months, node.days, node.microseconds)
        text = f"CAST(time_bucket({width}, {self.write(node.value)}) AS {_TYPES[node.type]})"
        first = _FIRST_DAY if node.type is EngineType.DATE else _FIRST_MOMENT
        return f"(CASE WHEN {text} >= {first} THEN {text} END)" if node.guarded else text

    @writes(SplitPart)
    def _split_part(self, node: SplitPart) -> str:
        # The engine's own function makes a list of all parts first, whose memory nobody counts.
        separator, place = _escaped(node.separator), node.place
        if len(node.separator) > 1:
            pattern = f"(?s)^(?:.*?{separator}){{{place - 1}}}(.*?)(?:{separator}|\\z)"
        elif place > 0:
            pattern = f"^(?:[^{separator}]*{separator}){{{place - 1}}}([^{separator}]*)"
        else:
            pattern = f"(?:^|{separator})([^{separator}]*)(?:{separator}[^{separator}]*){{{-place - 1}}}\\z"
        return f"regexp_extract({self.write(node.value)}, '{pattern}', 1)"

    @writes(RegularExpression)
    def _regular_expression(self, node: RegularExpression) -> str:
        value, pattern = self.write(node.value), f"'{node.pattern}'"
        if node.use == "extract":
            return f"regexp_extract({value}, {pattern}, {node.group})"
        if node.use == "replace":
            assert node.replacement is not None
            every = ", 'g'" if node.every else ""
            return f"regexp_replace({value}, {pattern}, {self.write(node.replacement)}{every})"
        return f"{'regexp_matches' if node.use == 'search' else 'regexp_full_match'}({value}, {pattern})"
