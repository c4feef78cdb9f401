"""DuckDB's SQL. Everything that is written because of how this engine behaves is written here.

Where an expression of the query is written, every part is in parentheses. Where a part is needed more than once (a
guard and what it guards), it is one node here and its text is repeated: the engine computes equal texts once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from privacy.norms import BINS, BINS_PER_OCTAVE
from sql_rewrite.dialects.dialect import Dialect, writes
from sql_rewrite.dialects.duckdb_costs import DUCKDB_COSTS
from sql_rewrite.relations import (
    Binned,
    ChosenGroups,
    Count,
    Distinct,
    EndOf,
    Extended,
    Factor,
    Grouped,
    Half,
    KeyedOrder,
    KeyText,
    LeastPlace,
    Listed,
    NormBin,
    Output,
    Projected,
    Salted,
    Steps,
    Sum,
    TableRows,
    TableSource,
    Unfolded,
    UnitFactors,
    UnitTotals,
    WithTotals,
)
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
    DatePart,
    DateTrunc,
    DaysBetween,
    Decoded,
    EngineType,
    EpochSeconds,
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
    ReadText,
    RoundDigits,
    RoundUnits,
    Scalar,
    TotalDivision,
    UnitsBetween,
    Whole,
)

__all__ = ["DUCKDB", "SEED", "DuckDB", "quote"]

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
_DATE_PARTS = {
    "day_of_week": "dayofweek",
    "day_of_week_iso": "isodow",
    "day_of_year": "dayofyear",
    "iso_year": "isoyear",
}
_POWER_TESTS = {"not zero": "<>", "positive": ">", "not negative": ">="}
_SPLIT = 2**62
_PLACE_BITS = 12
_WORD = 62
_NO_ARRAY = "CAST('' AS VARCHAR)"
_ARRAY_SUMS_MAX = 4
"""Most sums for an array with one entry per unit: 2^22 entries (the engine's setting) then stay below 1 GiB."""

SEED = "getvariable('seed')"
"""The worker's number of this run; NULL where statements are only planned."""

_ZERO = "0::DOUBLE"

# How tightly an operator binds, least first. A CASE without parentheses never stands beside an operator.
_OR, _AND, _COMPARED, _ADDED, _MULTIPLIED = range(1, 6)
_ARITHMETIC: dict[ArithmeticSymbol, int] = {"+": _ADDED, "-": _ADDED, "*": _MULTIPLIED, "//": _MULTIPLIED}


def quote(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _binding(node: Scalar) -> int:
    """How tightly a node that is not closed holds its parts together."""
    if isinstance(node, Arithmetic):
        return _ARITHMETIC[node.symbol]
    if isinstance(node, Comparison | IsNull):
        return _COMPARED
    if isinstance(node, Junction):
        return _AND if node.word == "AND" else _OR
    return 0


class DuckDB(Dialect):
    """Writes nodes for DuckDB."""

    types = _TYPES
    costs = DUCKDB_COSTS

    def _operand(self, node: Scalar, binding: int) -> str:
        """A part of an operator, in parentheses if it would otherwise not be read as one."""
        text = self.write(node)
        return text if node.closed or _binding(node) >= binding else f"({text})"

    # What is there

    @writes(Column)
    def _column(self, node: Column) -> str:
        return f"{quote(node.relation)}.{quote(node.name)}"

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
        text = f"{self._operand(node.value, _ADDED)} {'IS NOT NULL' if node.negated else 'IS NULL'}"
        return f"({text})" if node.closed else text

    @writes(Not)
    def _negation(self, node: Not) -> str:
        return f"(NOT {self.write(node.value)})"

    @writes(Junction)
    def _junction(self, node: Junction) -> str:
        binding = _AND if node.word == "AND" else _OR
        text = f" {node.word} ".join([self._operand(part, binding) for part in node.parts])
        return f"({text})" if node.closed else text

    @writes(Comparison)
    def _comparison(self, node: Comparison) -> str:
        symbol = _COMPARISONS.get(node.symbol, node.symbol)
        text = f"{self._operand(node.left, _ADDED)} {symbol} {self._operand(node.right, _ADDED)}"
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
        return f"COALESCE({', '.join([self.write(part) for part in node.parts])})"

    @writes(Extreme)
    def _extreme(self, node: Extreme) -> str:
        parts = [self.write(part) for part in node.parts]
        value = f"{node.which.upper()}({', '.join(parts)})"
        tests = [f"({part} IS NULL)" for part, nullable in zip(parts, node.nullable, strict=True) if nullable]
        # The engine's own function skips NULL: a missing value would silently become the bound.
        return f"(CASE WHEN {' OR '.join(tests)} THEN NULL ELSE {value} END)" if tests else value

    @writes(Clip)
    def _clip(self, node: Clip) -> str:
        value, low, high = (self._operand(part, _ADDED) for part in (node.value, node.lower, node.upper))
        if node.closed:
            return f"(CASE WHEN ({value} < {low}) THEN {low} WHEN ({value} > {high}) THEN {high} ELSE {value} END)"
        return f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"

    @writes(Held)
    def _held(self, node: Held) -> str:
        value, below, above = (self._operand(part, _ADDED) for part in (node.value, node.below, node.above))
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
        text = f"{self._operand(node.left, binding)} {node.symbol} {self._operand(node.right, binding + 1)}"
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
        test = ">= 0" if node.function == "sqrt" else "> 0"
        return f"(CASE WHEN ({value} {test}::DOUBLE) THEN {text} END)" if node.guarded else text

    @writes(Power)
    def _power(self, node: Power) -> str:
        """POW where it is defined: with one setting the engine raises for zero and negative bases."""
        base, exponent = self.write(node.base), self.write(node.exponent)
        value = f"pow({base}, {exponent})"
        if node.domain == "everywhere":
            return value
        if node.domain == "depends on the exponent":
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
        text = f"{_FUNCTIONS.get(name, name)}({', '.join([self.write(part) for part in node.arguments])})"
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
        return f"CAST(date_trunc('{node.unit}', {self.write(node.value)}) AS {_TYPES[node.type]})"

    @writes(UnitsBetween)
    def _units_between(self, node: UnitsBetween) -> str:
        return f"date_diff('{node.unit}', {self.write(node.first)}, {self.write(node.second)})"

    @writes(EpochSeconds)
    def _epoch_seconds(self, node: EpochSeconds) -> str:
        # The engine's own epoch() drops microseconds of distant years; the division is rounded once.
        return f"(CAST(epoch_us({self.write(node.value)}) AS DOUBLE) / 1000000::DOUBLE)"

    # Rows to integers, and integers to sums

    @writes(Steps)
    def _steps(self, node: Steps) -> str:
        value = self.write(node.value)
        # TRY_CAST keeps this total and the clip within its ends whatever the value is. GREATEST and LEAST ignore
        # NULL, so NULL is kept out of them.
        steps = (
            f"TRY_CAST(ROUND((CAST({value} AS DOUBLE) - {_double(float(node.offset))}) / "
            f"{_double(float(node.step))}) AS BIGINT)"
        )
        inside = f"GREATEST({node.lowest}, LEAST({steps}, {node.highest}))"
        return f"CASE WHEN {value} IS NULL THEN NULL ELSE {inside} END"

    @writes(KeyText)
    def _key_text(self, node: KeyText) -> str:
        whole = f"CAST({self.write(node.value)} AS VARCHAR)"
        cut = f"left({whole}, {node.characters})"
        # A text of n bytes has at most n characters; counting characters takes far longer.
        return f"CASE WHEN strlen({whole}) <= {node.characters} THEN {whole} ELSE {cut} END" if node.cheap else cut

    @writes(Sum)
    def _sum(self, node: Sum) -> str:
        return f"SUM({self.write(node.value)})"

    @writes(Count)
    def _count(self, node: Count) -> str:
        return "COUNT(*)" if node.value is None else f"COUNT({self.write(node.value)})"

    @writes(EndOf)
    def _end_of(self, node: EndOf) -> str:
        return f"{'MIN' if node.which == 'least' else 'MAX'}({self.write(node.value)})"

    @writes(KeyedOrder)
    def _keyed_order(self, node: KeyedOrder) -> str:
        return f"hash({', '.join([self.write(place) for place in node.places])})"

    @writes(LeastPlace)
    def _least_place(self, node: LeastPlace) -> str:
        """The least of one integer that holds both: `arg_min` would take whichever of two equal rows came first."""
        order, place = self.write(node.order), self.write(node.place)
        both = f"((({order} >> {_PLACE_BITS}) << {_PLACE_BITS}) | CAST({place} AS UBIGINT))"
        return f"CAST(MIN({both}) & {2**_PLACE_BITS - 1} AS BIGINT)"

    @writes(Distinct)
    def _distinct(self, node: Distinct) -> str:
        """Bits in words of 62: a set of its own for each unit would take memory that depends on one person's rows."""
        place = self.write(node.place)
        words = []
        for first in range(0, node.count, _WORD):
            test = f"{place} BETWEEN {first} AND {min(first + _WORD, node.count) - 1}"
            bit = f"CASE WHEN {test} THEN CAST(1 AS BIGINT) << CAST({place} - {first} AS BIGINT) END"
            words.append(f"bit_count(COALESCE(bit_or({bit}), CAST(0 AS BIGINT)))")
        return " + ".join([f"CAST({word} AS BIGINT)" for word in words])

    @writes(Half)
    def _half(self, node: Half) -> str:
        return f"CAST({self.write(node.value)} {'//' if node.part == 'high' else '%'} {_SPLIT} AS BIGINT)"

    @writes(Factor)
    def _factor(self, node: Factor) -> str:
        """An exact quotient of integers; for squares, one of doubles that is never too large.

        The conversion of an integer of 128 bits, the root and the quotient are each within three times 2^-53 of what
        they round. The numerator is less than the norm by 2^-48 of it, which is more than all of them.
        """
        value, most = self._operand(node.value, _ADDED), 2**node.parts * node.norm
        if not node.squared:
            # Divisions of 64 bits take a tenth of the time.
            exact = f"CAST({self._operand(node.value, _MULTIPLIED)} AS {'HUGEINT' if node.wide else 'BIGINT'})"
            return (
                f"CASE WHEN {value} <= {math.floor(node.norm)} THEN {2**node.parts} "
                f"ELSE CAST({math.floor(most)} // {exact} AS BIGINT) END"
            )
        numerator = _double_below(most * (1 - Fraction(1, 2**48)))
        return (
            f"CASE WHEN {value} <= {math.floor(node.norm**2)} THEN {2**node.parts} "
            f"ELSE CAST(floor({_double(numerator)} / sqrt(CAST({value} AS DOUBLE))) AS BIGINT) END"
        )

    @writes(NormBin)
    def _norm_bin(self, node: NormBin) -> str:
        value = self._operand(node.value, _ADDED)
        octaves = BINS_PER_OCTAVE // 2 if node.squared else BINS_PER_OCTAVE
        place = f"CAST(ceil({octaves} * log2(CAST({value} AS DOUBLE))) AS BIGINT)"
        return f"CASE WHEN {value} > 0 THEN greatest(0, least({BINS - 1}, {place})) END"

    # Layers

    def _outputs(self, outputs: Iterable[Output]) -> list[str]:
        return [f'{self.write(output.value)} AS "{output.name}"' for output in outputs]

    @writes(TableRows)
    def _table_rows(self, node: TableRows) -> str:
        columns = ", ".join(self._outputs(node.outputs)) or "1"
        where = "" if node.where is None else f" WHERE ({self.write(node.where)})"
        return f"SELECT {columns} FROM {' '.join([self._source(source) for source in node.sources])}{where}"

    def _source(self, source: TableSource) -> str:
        table = f'"main".{quote(source.table)} AS {quote(source.relation)}'
        if source.join is None:
            return table
        kind = "LEFT JOIN" if source.join.outer else "INNER JOIN"
        return f"{kind} {table} ON ({self.write(source.join.child)} = {self.write(source.join.parent)})"

    @writes(ChosenGroups)
    def _chosen_groups(self, node: ChosenGroups) -> str:
        """Ranks by `hash`, which is not a volatile function: the engine refuses one in the ORDER BY of a window."""
        keys = _names(node.keys)
        hashed = ", ".join(_names(("d", *node.keys)))
        order = ", ".join([f"hash({hashed})", *keys])
        return (
            f'SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY "u" ORDER BY {order}) AS "rank" '
            f'FROM ({self.write(node.rows)}) AS "b") AS "w" WHERE "rank" <= {node.groups}'
        )

    @writes(Salted)
    def _salted(self, node: Salted) -> str:
        """Texts go through MD5 with the seed before them, because texts with equal `hash` can be made.

        Different integers, dates and moments always have different hashes.
        """
        salt = ""
        for key in node.keys:
            value = f'md5_number(concat({SEED}, "{key.name}"))' if key.text else f'"{key.name}"'
            salt = f"hash({salt}, {value}, {SEED})" if salt else f"hash({value}, {SEED})"
        return f'SELECT *, {salt} AS "s" FROM ({self.write(node.rows)}) AS "h"'

    @writes(Grouped)
    def _grouped(self, node: Grouped) -> str:
        """Groups by hashing, unless they are units alone with a few sums.

        For integers and dates the engine may instead allocate one entry for every value between the least and the
        greatest. One person's extreme date would then decide about gigabytes of memory, and so about failure: a
        group of text, even a constant one, rules that out. Numbers of units are dense, and worth the faster form.
        """
        listed = ", ".join([*_names(node.shown), *self._outputs(node.outputs)])
        text = f'SELECT {listed} FROM ({self.write(node.rows)}) AS "{node.alias}"'
        if not node.by:
            return text
        by = _names(node.by)
        if not node.dense or len(node.outputs) > _ARRAY_SUMS_MAX:
            by.append(_NO_ARRAY)
        return f"{text} GROUP BY {', '.join(by)}"

    @writes(Listed)
    def _listed(self, node: Listed) -> str:
        numbers = ", ".join([f"CAST({place} AS BIGINT)" for place in range(len(node.columns))])
        values = ", ".join([f"CAST({name} AS BIGINT)" for name in _names(node.columns)])
        return (
            f'SELECT unnest([{numbers}]) AS "k0", unnest([{values}]) AS "k1" FROM ({self.write(node.rows)}) '
            f'AS "{node.alias}"'
        )

    @writes(WithTotals)
    def _with_totals(self, node: WithTotals) -> str:
        """A join with the few units that are beyond the limit: a window over all units would cost four times as much.

        The row of no unit is there so that some row always is: the engine skips a join with nothing, so that the first
        unit beyond the limit would make all rows of the others look for their totals, and take longer.
        """
        totals = [(self.write(output.value), output.name) for output in node.totals]
        listed = ", ".join([f'{text} AS "{name}"' for text, name in totals])
        beyond = " OR ".join([f"{text} > {node.limit}" for text, _ in totals])
        names = ", ".join([f'"m"."{name}"' for _, name in totals])
        nobody = ", ".join(["-1", *["CAST(NULL AS BIGINT)" for _ in totals]])
        # Numbers of units are dense, and worth the engine's array; with many sums it would be a large one.
        unit = '"u"' if len(totals) < _ARRAY_SUMS_MAX else f'"u", {_NO_ARRAY}'
        return (
            f'WITH "pp" AS MATERIALIZED ({self.write(node.rows)}) SELECT "a".*, {names} FROM "pp" AS "a" LEFT JOIN '
            f'(SELECT "u", {listed} FROM "pp" GROUP BY {unit} HAVING {beyond} UNION ALL SELECT {nobody}) AS "m" '
            'ON ("a"."u" = "m"."u")'
        )

    @writes(Extended)
    def _extended(self, node: Extended) -> str:
        listed = ", ".join(self._outputs(node.outputs))
        return f'SELECT *, {listed} FROM ({self.write(node.rows)}) AS "{node.alias}"'

    @writes(Unfolded)
    def _unfolded(self, node: Unfolded) -> str:
        listed = ", ".join([self.write(value) for value in node.values])
        return f'SELECT unnest([{listed}]) AS "{node.name}" FROM ({self.write(node.rows)}) AS "{node.alias}"'

    @writes(Projected)
    def _projected(self, node: Projected) -> str:
        listed = ", ".join(self._outputs(node.outputs))
        return f'SELECT {listed} FROM ({self.write(node.rows)}) AS "{node.alias}"'

    @writes(UnitTotals)
    def _unit_totals(self, node: UnitTotals) -> str:
        """A window over units, whose rows are few: one for each group of the unit."""
        listed = ", ".join(
            [f'{self.write(output.value)} OVER (PARTITION BY "u") AS "{output.name}"' for output in node.outputs]
        )
        return f'SELECT *, {listed} FROM ({self.write(node.rows)}) AS "{node.alias}"'

    @writes(UnitFactors)
    def _unit_factors(self, node: UnitFactors) -> str:
        """A join with all units: whoever is beyond a norm must not decide how many rows are looked up."""
        names = ", ".join([f'"m"."{name}"' for name in node.names])
        return (
            f'SELECT "a".*, {names} FROM ({self.write(node.rows)}) AS "a" INNER JOIN ({self.write(node.units)}) AS "m" '
            'ON ("a"."u" = "m"."u")'
        )

    @writes(Binned)
    def _binned(self, node: Binned) -> str:
        """Each column is counted by itself, from one result: a unit may be in other bins of other columns."""
        parts = []
        for place, (column, _) in enumerate(node.columns):
            counts = ", ".join(
                [f'{"COUNT(*)" if other == place else "0"} AS "{name}"' for other, (_, name) in enumerate(node.columns)]
            )
            parts.append(
                f'SELECT "{column}" AS "{node.bin}", {counts} FROM "ub" WHERE "{column}" IS NOT NULL '
                f'GROUP BY "{column}", {_NO_ARRAY}'
            )
        units = f'WITH "ub" AS MATERIALIZED ({self.write(node.units)})'
        if len(parts) == 1:
            return f"{units} {parts[0]}"
        sums = ", ".join([f'SUM("{name}") AS "{name}"' for _, name in node.columns])
        return (
            f'{units} SELECT "{node.bin}", {sums} FROM ({" UNION ALL ".join(parts)}) AS "ua" '
            f'GROUP BY "{node.bin}", {_NO_ARRAY}'
        )


def _names(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]


def _double(value: float) -> str:
    """A double literal that reads back to the same number."""
    return f"CAST('{value!r}' AS DOUBLE)"


def _double_below(value: Fraction) -> float:
    """The greatest double that is at most the value."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0)


DUCKDB = DuckDB()
"""The dialect of the embedded engine."""
