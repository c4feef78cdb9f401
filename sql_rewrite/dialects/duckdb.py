"""DuckDB's SQL. What is written because of how this engine behaves is here, in duckdb_scalars.py and duckdb_steps.py.

Here are the layers of a statement, and the aggregates in them; there the operators on one row, and its values as steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from privacy.norms import BINS, BINS_PER_OCTAVE
from sql_rewrite.dialects.dialect import writes
from sql_rewrite.dialects.duckdb_costs import DUCKDB_COSTS
from sql_rewrite.dialects.duckdb_factors import factors_text, nobody_text
from sql_rewrite.dialects.duckdb_frames import frame_text
from sql_rewrite.dialects.duckdb_scalars import ADDED, MULTIPLIED, quote
from sql_rewrite.dialects.duckdb_squares import squares_text
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
from sql_rewrite.relations import (
    Appended,
    BesideNobody,
    Binned,
    Blocked,
    CalledRows,
    ChosenGroups,
    ChosenValues,
    ComputedOnce,
    ConstantRows,
    Extended,
    Grouped,
    JoinedSources,
    Kept,
    Listed,
    LoweredSource,
    Masked,
    Merged,
    Output,
    Placed,
    Projected,
    RowsSource,
    Salted,
    SharedRows,
    SquaredTotals,
    TableRows,
    Unfolded,
    UnitFactors,
    UnitTotals,
    WithinUnit,
    WithTotals,
)
from sql_rewrite.scalars import EngineType

__all__ = ["DUCKDB", "SEED", "DuckDB", "quote"]

_SPLIT = 2**62
_PLACE_BITS = 12
_WORD = 62
_PLACED = 'STRUCT("key" BIGINT, "value" BIGINT)[]'
_NO_ARRAY = "CAST('' AS VARCHAR)"

SEED = "getvariable('seed')"
"""The worker's number of this run; NULL where statements are only planned."""


class DuckDB(DuckDBSteps):
    """Writes statements for DuckDB."""

    costs = DUCKDB_COSTS

    # Integers to sums

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
        return f"CAST(map_entries(histogram({self.write(node.place)})) AS {_PLACED})"

    @writes(PlaceSums)
    def _place_sums(self, node: PlaceSums) -> str:
        """One list of pairs: two lists could be in two orders, and a map takes four times as long."""
        pair = f'struct_pack("key" := {self.write(node.place)}, "value" := {self.write(node.sum)})'
        return f"CAST(list({pair}) AS {_PLACED})"

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
        text = f"PARTITION BY {', '.join(_names(('u', *node.partition)))}"
        terms = [
            f'"{term.name}" {"DESC" if term.descending else "ASC"} NULLS {"FIRST" if term.nulls_first else "LAST"}'
            for term in node.order
        ]
        if terms:
            text += f" ORDER BY {', '.join(terms)}"
        if node.frame is not None:
            text += f" {frame_text(node.frame)}"
        return f"{self.write(node.value)} OVER ({text})"

    # Layers

    def _outputs(self, outputs: Iterable[Output]) -> list[str]:
        writers = self._writers
        return [f'{writers[type(output.value)](self, output.value)} AS "{output.name}"' for output in outputs]

    @writes(TableRows)
    def _table_rows(self, node: TableRows) -> str:
        columns = ", ".join(self._outputs(node.outputs)) or "1"
        where = "" if node.where is None else f" WHERE ({self.write(node.where)})"
        return f"SELECT {columns} FROM {self._from(node.sources)}{where}"

    def _from(self, sources: Sequence[LoweredSource]) -> str:
        first, *others = sources
        return " ".join([self._source(first), *[self._joined(source) for source in others]])

    def _joined(self, source: LoweredSource) -> str:
        """A source beside those before it. Without a join it is tried with all of them, never sorted or hashed."""
        return f"{'' if source.join else 'CROSS JOIN '}{self._source(source)}"

    def _source(self, source: LoweredSource) -> str:
        if isinstance(source, JoinedSources):
            table = f"({self._from(source.sources)})"
        else:
            read = f"({self.write(source.rows)})" if isinstance(source, RowsSource) else f'"main".{quote(source.table)}'
            table = f"{read} AS {quote(source.relation)}"
        join = source.join
        if join is None:
            return table
        kind, equal = "LEFT JOIN" if join.outer else "INNER JOIN", "IS NOT DISTINCT FROM" if join.alike else "="
        pairs = ((join.child, join.parent), *join.also)
        met = [f"{self.write(one)} {equal} {self.write(two)}" for one, two in pairs]
        met += [f"({self.write(part)})" for part in join.beside]
        return f"{kind} {table} ON ({' AND '.join(met)})"

    @writes(BesideNobody)
    def _beside_nobody(self, node: BesideNobody) -> str:
        return nobody_text(node, self.write)

    @writes(ConstantRows)
    def _constant_rows(self, node: ConstantRows) -> str:
        rows = ", ".join([f"({', '.join([self.write(value) for value in row])})" for row in node.rows])
        return f'SELECT * FROM (VALUES {rows}) AS "v" ({", ".join(_names(node.names))})'

    @writes(Appended)
    def _appended(self, node: Appended) -> str:
        return " UNION ALL ".join([f"({self.write(part)})" for part in node.parts])

    @writes(CalledRows)
    def _called_rows(self, node: CalledRows) -> str:
        return f'SELECT * FROM "{node.name}"'

    @writes(ComputedOnce)
    def _computed_once(self, node: ComputedOnce) -> str:
        return f'WITH "{node.name}" AS MATERIALIZED ({self.write(node.rows)}) {self.write(node.made)}'

    @writes(SharedRows)
    def _shared_rows(self, node: SharedRows) -> str:
        """A temporary table of the worker's cursor (engines/handlers/private.py)."""
        return f'SELECT * FROM "temp"."main".{quote(node.table)}'

    @writes(ChosenGroups)
    def _chosen_groups(self, node: ChosenGroups) -> str:
        """Ranks by `hash`, which is not a volatile function: the engine refuses one in the ORDER BY of a window."""
        keys = [f'CAST("{key}" AS VARCHAR)' if key in node.texts else f'"{key}"' for key in node.keys]
        hashed = ", ".join([*_names(("d",)), *keys])
        order = ", ".join([f"hash({hashed})", *keys])
        return (
            f'SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY "u" ORDER BY {order}) AS "rank" '
            f'FROM ({self.write(node.rows)}) AS "b") AS "w" WHERE "rank" <= {node.groups}'
        )

    @writes(ChosenValues)
    def _chosen_values(self, node: ChosenValues) -> str:
        """Numbers rows, whose order is strict: two values with one hash are ordered by themselves."""
        keys, value = _names(node.keys), f'"{node.value}"'
        hashed = f"hash({', '.join([*_names(('d', *node.keys)), value])})"
        text = (
            f"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY {', '.join(_names(('u', *node.keys)))} "
            f'ORDER BY {hashed}, {value}) AS "place" FROM ({self.write(node.rows)}) AS "i" WHERE {value} IS NOT NULL) '
            f'AS "j" WHERE "place" <= {node.values}'
        )
        if node.total is None:
            return text
        order = ", ".join([hashed, *keys, value])
        return (
            f'SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY "u" ORDER BY {order}) AS "all" '
            f'FROM ({text}) AS "l") AS "o" WHERE "all" <= {node.total}'
        )

    @writes(Merged)
    def _merged(self, node: Merged) -> str:
        parts = []
        for place, (rows, own) in enumerate(node.parts):
            listed = _names(node.keys)
            for name in node.names:
                if name in own:
                    listed.append(f'CAST("{name}" AS {_PLACED}) AS "{name}"' if name in node.placed else f'"{name}"')
                else:
                    kind = _PLACED if name in node.placed else "HUGEINT"
                    listed.append(f'CAST(NULL AS {kind}) AS "{name}"')
            parts.append(f'SELECT {", ".join(listed)} FROM ({self.write(rows)}) AS "x{place}"')
        return " UNION ALL ".join(parts)

    @writes(Masked)
    def _masked(self, node: Masked) -> str:
        mask = f'xor("{node.name}", CAST(COALESCE({SEED}, 0) AS BIGINT))'
        return f'SELECT * REPLACE ({mask} AS "{node.name}") FROM ({self.write(node.rows)}) AS "k"'

    @writes(Salted)
    def _salted(self, node: Salted) -> str:
        """Texts go through MD5 with the seed before them, because texts with equal `hash` can be made.

        Different integers, dates and moments always have different hashes.
        """
        salt = ""
        for key in node.keys:
            value = f'md5_number(concat({SEED}, "{key.name}"))' if key.text else f'"{key.name}"'
            salt = f"hash({salt}, {value}, {SEED})" if salt else f"hash({value}, {SEED})"
        return f'SELECT *, {salt} AS "{node.name}" FROM ({self.write(node.rows)}) AS "h"'

    @writes(Blocked)
    def _blocked(self, node: Blocked) -> str:
        """By MD5: `hash` of several values combines them so that another key would only give blocks other numbers."""
        block = f"CAST(md5_number(concat({SEED}, ':', \"d\")) % {node.blocks} AS INTEGER)"
        return f'SELECT *, {block} AS "{node.name}" FROM ({self.write(node.rows)}) AS "h"'

    @writes(Grouped)
    def _grouped(self, node: Grouped) -> str:
        """Groups by hashing.

        For integers and dates an engine may instead allocate one entry for every value between the least and the
        greatest. One person's extreme date would then decide about gigabytes of memory, and so about failure. Workers
        collect no such values (engines/optimizers.md), and a group of text, even a constant one, rules it out a second
        time. Where units are grouped it is left out: it would take a quarter of the time. Places of 16 bits alone are
        added up in an array, whose size follows from their type.
        """
        listed = ", ".join([*_names(node.shown), *self._outputs(node.outputs)])
        text = f'SELECT {listed} FROM ({self.write(node.rows)}) AS "{node.alias}"'
        if not node.by:
            return text
        by = _names(node.by)
        if "u" not in node.by and not node.small and not node.hidden:
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
        """A join with the few units beyond the limit, and nobody: a window over all would take four times as long."""
        totals = [(self.write(output.value), output.name) for output in node.totals]
        listed = ", ".join([f'{text} AS "{name}"' for text, name in totals])
        beyond = " OR ".join([f"{text} > {node.limit}" for text, _ in totals])
        names = ", ".join([f'"m"."{name}"' for _, name in totals])
        nobody = ", ".join(["-1", *["CAST(NULL AS BIGINT)" for _ in totals]])
        return (
            f'WITH "pp" AS MATERIALIZED ({self.write(node.rows)}) SELECT "a".*, {names} FROM "pp" AS "a" LEFT JOIN '
            f'(SELECT "u", {listed} FROM "pp" GROUP BY "u" HAVING {beyond} UNION ALL SELECT {nobody}) AS "m" '
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

    @writes(Kept)
    def _kept(self, node: Kept) -> str:
        listed = ", ".join(self._outputs(node.outputs))
        where = "" if node.where is None else f" WHERE ({self.write(node.where)})"
        return f'SELECT {listed} FROM ({self.write(node.rows)}) AS "{node.alias}"{where}'

    @writes(UnitTotals)
    def _unit_totals(self, node: UnitTotals) -> str:
        """A window over units, whose rows are few: one for each group of the unit."""
        listed = ", ".join(
            [f'{self.write(output.value)} OVER (PARTITION BY "u") AS "{output.name}"' for output in node.outputs]
        )
        return f'SELECT *, {listed} FROM ({self.write(node.rows)}) AS "{node.alias}"'

    @writes(SquaredTotals)
    def _squared_totals(self, node: SquaredTotals) -> str:
        return squares_text(node, self.write)

    @writes(UnitFactors)
    def _unit_factors(self, node: UnitFactors) -> str:
        return factors_text(node, self.write)

    @writes(Binned)
    def _binned(self, node: Binned) -> str:
        """Each column is counted by itself, from one result: a unit may be in other bins of other columns."""
        parts = []
        number = "COUNT(*)" if node.alike is None else f'SUM("{node.alike}")'
        for place, (column, _) in enumerate(node.columns):
            counts = ", ".join(
                [f'{number if other == place else "0"} AS "{name}"' for other, (_, name) in enumerate(node.columns)]
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


def _double_below(value: Fraction) -> float:
    """The greatest double that is at most the value."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0)


DUCKDB = DuckDB()
"""The dialect of the embedded engine."""
