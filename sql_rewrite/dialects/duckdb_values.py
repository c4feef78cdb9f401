"""DuckDB's SQL of what layers compute: aggregates, windows and keyed orders, and factors and bins of norms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from privacy.norms import BINS, BINS_PER_OCTAVE
from sql_rewrite.dialects.dialect import writes
from sql_rewrite.dialects.duckdb_frames import frame_text
from sql_rewrite.dialects.duckdb_scalars import ADDED, MULTIPLIED
from sql_rewrite.dialects.duckdb_steps import DuckDBSteps, double_text
from sql_rewrite.layer_values import (
    AllTrue,
    AnyTrue,
    Beside,
    Count,
    DifferentValues,
    Distinct,
    EndOf,
    Factor,
    Half,
    KeyedOrder,
    KeyText,
    LeastPlace,
    ListedPlaces,
    MostOften,
    NormBin,
    OfPair,
    OneZero,
    OnlyOne,
    PlaceCounts,
    PlaceSums,
    Ranked,
    SmallPlace,
    Sum,
)
from sql_rewrite.relations import Placed, WithinUnit
from sql_rewrite.scalars import EngineType

__all__ = ["PLACED", "SEED", "DuckDBValues", "quoted"]

_SPLIT = 2**62
_PLACE_BITS = 12
_WORD = 62
PLACED = 'STRUCT("key" BIGINT, "value" BIGINT)[]'
"""The type of a list of places with a number for each."""

SEED = "getvariable('seed')"
"""The worker's number of this run; NULL where statements are only planned."""


class DuckDBValues(DuckDBSteps, part=True):
    """Integers to sums."""

    @writes(OneZero)
    def _one_zero(self, node: OneZero) -> str:
        value = self.write(node.value)
        return f"CASE WHEN {value} = 0 THEN {double_text(0.0)} ELSE {value} END"

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

    @writes(PlaceCounts)
    def _place_counts(self, node: PlaceCounts) -> str:
        """Pairs, which the aggregate makes without one for what is NULL; NULL where nothing is left."""
        return f"CAST(map_entries(histogram({self.write(node.place)})) AS {PLACED})"

    @writes(PlaceSums)
    def _place_sums(self, node: PlaceSums) -> str:
        """One list of pairs: two lists could be in two orders, and a map takes four times as long."""
        pair = f'struct_pack("key" := {self.write(node.place)}, "value" := {self.write(node.sum)})'
        return f"CAST(list({pair}) AS {PLACED})"

    @writes(SmallPlace)
    def _small_place(self, node: SmallPlace) -> str:
        return f"CAST({self.write(node.value)} AS USMALLINT)"

    @writes(OnlyOne)
    def _only_one(self, node: OnlyOne) -> str:
        return f"any_value({self.write(node.value)})"

    @writes(ListedPlaces)
    def _listed_places(self, node: ListedPlaces) -> str:
        part = 1 if node.part == "places" else 2
        listed = f'list_transform({self.write(node.counts)}, lambda "pair": struct_extract_at("pair", {part}))'
        return f"COALESCE({listed}, CAST([] AS BIGINT[]))"

    @writes(EndOf)
    def _end_of(self, node: EndOf) -> str:
        return f"{'MIN' if node.which == 'least' else 'MAX'}({self.write(node.value)})"

    @writes(Ranked)
    def _ranked(self, node: Ranked) -> str:
        """Whole numbers as doubles, as the engine itself interpolates them; the part as a decimal, which is exact."""
        value = self.write(node.value)
        if node.which == "discrete":
            return f"quantile_disc({value}, {node.part:f})"
        double = f"CAST({value} AS DOUBLE)"
        return f"mad({double})" if node.which == "deviation" else f"quantile_cont({double}, {node.part:f})"

    @writes(MostOften)
    def _most_often(self, node: MostOften) -> str:
        """Of values that are there as often the engine takes the one that it met first: in their order, the least."""
        value = self.write(node.value)
        return f"mode({value} ORDER BY {value})"

    @writes(Beside)
    def _beside(self, node: Beside) -> str:
        by, value = self.write(node.by), self.write(node.value)
        return f"CASE WHEN {by} IS NOT NULL AND {value} IS NOT NULL THEN row({by}, {value}) END"

    @writes(OfPair)
    def _of_pair(self, node: OfPair) -> str:
        return f"struct_extract_at({self.write(node.pair)}, 2)"

    @writes(AnyTrue)
    def _any_true(self, node: AnyTrue) -> str:
        return f"BOOL_OR({self.write(node.value)})"

    @writes(AllTrue)
    def _all_true(self, node: AllTrue) -> str:
        return f"BOOL_AND({self.write(node.value)})"

    @writes(DifferentValues)
    def _different_values(self, node: DifferentValues) -> str:
        """Texts by their MD5 with the seed before them: many texts with one `hash` can be made."""
        value = self.write(node.value)
        if node.type is EngineType.TEXT:
            value = f"CASE WHEN {value} IS NOT NULL THEN md5_number(concat({SEED}, {value})) END"
        return f"COUNT(DISTINCT {value})"

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
        value, most = self.operand(node.value, ADDED), 2**node.parts * node.norm
        if not node.squared:
            # Divisions of 64 bits take a tenth of the time.
            exact = f"CAST({self.operand(node.value, MULTIPLIED)} AS {'HUGEINT' if node.wide else 'BIGINT'})"
            return (
                f"CASE WHEN {value} <= {math.floor(node.norm)} THEN {2**node.parts} "
                f"ELSE CAST({math.floor(most)} // {exact} AS BIGINT) END"
            )
        numerator = _double_below(most * (1 - Fraction(1, 2**48)))
        return (
            f"CASE WHEN {value} <= {math.floor(node.norm**2)} THEN {2**node.parts} "
            f"ELSE CAST(floor({double_text(numerator)} / sqrt(CAST({value} AS DOUBLE))) AS BIGINT) END"
        )

    @writes(NormBin)
    def _norm_bin(self, node: NormBin) -> str:
        value = self.operand(node.value, ADDED)
        octaves = BINS_PER_OCTAVE // 2 if node.squared else BINS_PER_OCTAVE
        place = f"CAST(ceil({octaves} * log2(CAST({value} AS DOUBLE))) AS BIGINT)"
        return f"CASE WHEN {value} > 0 THEN greatest(0, least({BINS - 1}, {place})) END"

    @writes(Placed)
    def _placed(self, node: Placed) -> str:
        nulls = " IGNORE NULLS" if node.ignores_null else ""
        return f"{node.function}({', '.join([self.write(argument) for argument in node.arguments])}{nulls})"

    @writes(WithinUnit)
    def _within_unit(self, node: WithinUnit) -> str:
        """Rows are sorted, not grouped by hashing: values that somebody chose can only lie beside one another."""
        text = f"PARTITION BY {', '.join(quoted(('u', *node.partition)))}"
        terms = [
            f'"{term.name}" {"DESC" if term.descending else "ASC"} NULLS {"FIRST" if term.nulls_first else "LAST"}'
            for term in node.order
        ]
        if terms:
            text += f" ORDER BY {', '.join(terms)}"
        if node.frame is not None:
            text += f" {frame_text(node.frame)}"
        return f"{self.write(node.value)} OVER ({text})"


def quoted(columns: Iterable[str]) -> list[str]:
    """Columns as they are written."""
    return [f'"{name}"' for name in columns]


def _double_below(value: Fraction) -> float:
    """The greatest double that is at most the value."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0)
