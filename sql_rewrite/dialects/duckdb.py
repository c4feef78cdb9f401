"""DuckDB's SQL. What is written because of how this engine behaves is here and in the files beside it.

Here are the layers of a statement; in duckdb_values.py the aggregates in them, in duckdb_scalars.py the operators on
one row, and in duckdb_steps.py its values as steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sql_rewrite.dialects.dialect import writes
from sql_rewrite.dialects.duckdb_costs import DUCKDB_COSTS
from sql_rewrite.dialects.duckdb_factors import factors_text, nobody_text
from sql_rewrite.dialects.duckdb_scalars import quote
from sql_rewrite.dialects.duckdb_squares import squares_text
from sql_rewrite.dialects.duckdb_values import PLACED, SEED, DuckDBValues, quoted
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
    Projected,
    RowsSource,
    Salted,
    SharedRows,
    SquaredTotals,
    TableRows,
    Unfolded,
    UnitFactors,
    UnitTotals,
    WithTotals,
)

__all__ = ["DUCKDB", "NO_ARRAY", "SEED", "DuckDB", "quote"]

NO_ARRAY = "CAST('f' AS BOOLEAN)"
"""A group beside others with which the engine makes no array of groups, whatever it knows of rows."""


class DuckDB(DuckDBValues):
    """Writes statements for DuckDB."""

    costs = DUCKDB_COSTS

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
        return f'SELECT * FROM (VALUES {rows}) AS "v" ({", ".join(quoted(node.names))})'

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
        hashed = ", ".join([*quoted(("d",)), *keys])
        order = ", ".join([f"hash({hashed})", *keys])
        return (
            f'SELECT * FROM (SELECT *, dense_rank() OVER (PARTITION BY "u" ORDER BY {order}) AS "rank" '
            f'FROM ({self.write(node.rows)}) AS "b") AS "w" WHERE "rank" <= {node.groups}'
        )

    @writes(ChosenValues)
    def _chosen_values(self, node: ChosenValues) -> str:
        """Numbers rows, whose order is strict: two values with one hash are ordered by themselves."""
        keys, value = quoted(node.keys), f'"{node.value}"'
        hashed = f"hash({', '.join([*quoted(('d', *node.keys)), value])})"
        text = (
            f"SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY {', '.join(quoted(('u', *node.keys)))} "
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
            listed = quoted(node.keys)
            for name in node.names:
                if name in own:
                    listed.append(f'CAST("{name}" AS {PLACED}) AS "{name}"' if name in node.placed else f'"{name}"')
                else:
                    kind = PLACED if name in node.placed else "HUGEINT"
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
        collect no such values (engines/optimizers.md), and a group of a type that has no array, even a constant one,
        rules it out a second time: a boolean takes a quarter less time than a text. Where units are grouped it is left
        out: it would take a quarter of the time. Places of 16 bits alone are added up in an array, whose size follows
        from their type.
        """
        listed = ", ".join([*quoted(node.shown), *self._outputs(node.outputs)])
        text = f'SELECT {listed} FROM ({self.write(node.rows)}) AS "{node.alias}"'
        if not node.by:
            return text
        by = quoted(node.by)
        if "u" not in node.by and not node.small and not node.hidden:
            by.append(NO_ARRAY)
        return f"{text} GROUP BY {', '.join(by)}"

    @writes(Listed)
    def _listed(self, node: Listed) -> str:
        numbers = ", ".join([f"CAST({place} AS BIGINT)" for place in range(len(node.columns))])
        values = ", ".join([f"CAST({name} AS BIGINT)" for name in quoted(node.columns)])
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
                f'GROUP BY "{column}", {NO_ARRAY}'
            )
        units = f'WITH "ub" AS MATERIALIZED ({self.write(node.units)})'
        if len(parts) == 1:
            return f"{units} {parts[0]}"
        sums = ", ".join([f'SUM("{name}") AS "{name}"' for _, name in node.columns])
        return (
            f'{units} SELECT "{node.bin}", {sums} FROM ({" UNION ALL ".join(parts)}) AS "ua" '
            f'GROUP BY "{node.bin}", {NO_ARRAY}'
        )


DUCKDB = DuckDB()
"""The dialect of the embedded engine."""
