"""Staging: every source checked against its declaration and converted, before anything of the snapshot is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from engines.columns import column_fault, matching_columns
from engines.described import BuildRequest, BuildTable, DescribedColumn
from engines.handlers.connection import identifier, literal, one_number, one_row
from engines.handlers.conversion import ZONED, Conversion, conversion
from engines.handlers.layout import enumeration, stored_type
from engines.handlers.sources import INTERNAL, UNREADABLE, Refused, relation_of
from engines.snapshot_findings import SnapshotFinding

__all__ = ["Staged", "stage_tables", "verify_keys"]

_ROWS_MAX = 1 << 40
_Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Staged:
    """What was counted of a table while it was staged: rows, and by column what became NULL and what was cut."""

    rows: int
    non_finite: _Counts
    texts_cut: _Counts


def stage_tables(
    connection: duckdb.DuckDBPyConnection, request: BuildRequest, relations: Sequence[str]
) -> list[Staged]:
    """Check and convert every table into the staging file. Errors: Refused with the findings of all tables."""
    findings: list[SnapshotFinding] = []
    staged: list[Staged] = []
    for position, table in enumerate(request.tables):
        if table.zone is not None and not _is_zone(connection, table.zone):
            findings.append(SnapshotFinding("zone_unknown", table.name))
            continue
        numbered = request.unit.key is None and table.name == request.unit.table
        try:
            staged.append(_stage_table(connection, position, table, relations[position], numbered=numbered))
        except INTERNAL:
            raise
        except Refused as refused:
            findings += refused.findings
        except duckdb.CatalogException:
            findings.append(SnapshotFinding("source_table_missing", table.name))
        except (duckdb.Error, *UNREADABLE):
            # Reading failed inside the file: ragged rows, bad encoding, a damaged page.
            code = "malformed_csv" if table.format == "csv" else "source_damaged"
            findings.append(SnapshotFinding(code, table.name))
    if findings:
        raise Refused(*findings)
    return staged


def _is_zone(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    return one_number(connection, "SELECT count(*) FROM pg_timezone_names() WHERE name = $1", [name]) > 0


def _stage_table(
    connection: duckdb.DuckDBPyConnection, position: int, table: BuildTable, known: str, *, numbered: bool
) -> Staged:
    """`numbered` gives each row a number of its own, for rows that are units.

    The source is read once: each value is stored beside the faults that it has, which are counted there.
    """
    relation, columns = relation_of(connection, table, known)
    conversions = _conversions(table, columns)
    selected = [
        f"{_shortened(column, rule.value)} AS {identifier(column.name)}"
        for column, rule in zip(table.columns, conversions, strict=True)
    ]
    for place, (column, rule) in enumerate(zip(table.columns, conversions, strict=True)):
        selected.append(f"{_faults(column, rule)} AS {identifier(f'unit$faults{place}')}")
    if numbered:
        selected.append('row_number() OVER () AS "unit$row"')
    connection.execute(f"CREATE TABLE staging.main.t{position} AS SELECT {', '.join(selected)} FROM {relation}")
    return _count_faults(connection, table, f"staging.main.t{position}")


def _conversions(table: BuildTable, columns: Sequence[tuple[str, str, str]]) -> list[Conversion]:
    """How each declared column is made from a column of the source (source name, engine name, type)."""
    findings: list[SnapshotFinding] = []
    conversions: list[Conversion] = []
    taken: set[str] = set()
    for column in table.columns:
        places = matching_columns([original for original, _, _ in columns], column.name, column.source_name)
        code = column_fault(places) or ("column_repeated" if columns[places[0]][1] in taken else None)
        if code is not None:
            findings.append(SnapshotFinding(code, table.name, column.name))
            continue
        _, engine, kind = columns[places[0]]
        taken.add(engine)
        rule = conversion(source_type=kind, declared=column.type, column=identifier(engine), written=table)
        if rule is None:
            zoned = kind == ZONED and column.type in ("date", "timestamp")
            findings.append(SnapshotFinding("zone_missing" if zoned else "type_mismatch", table.name, column.name))
            continue
        conversions.append(rule)
    if findings:
        raise Refused(*findings)
    return conversions


def _faults(column: DescribedColumn, rule: Conversion) -> str:
    """SQL for one bit for each thing that a value is and its declaration does not allow, in the order of `_COUNTED`."""
    keys = enumeration(column)
    outside = f"({rule.value}) IS NOT NULL AND TRY_CAST({rule.value} AS {keys}) IS NULL" if keys else "false"
    if column.allowed is not None:
        outside = f"NOT ({_allowed(column, rule.value)})"
    long = "false" if column.length_max is None else f"length({rule.value}) > {column.length_max}"
    conditions = (rule.failed, rule.special, outside, long, rule.zoned)
    bits = [f"CASE WHEN {found} THEN {1 << bit} ELSE 0 END" for bit, found in enumerate(conditions) if found != "false"]
    return f"CAST({' + '.join(bits) or '0'} AS UTINYINT)"


_COUNTED = 5
"""Bits of a value's faults: not of its type, NaN or infinite, outside its keys, too long, of no zone."""


def _count_faults(connection: duckdb.DuckDBPyConnection, table: BuildTable, staged: str) -> Staged:
    """Counts in the staged rows for each column what its declaration does not allow."""
    counts = ["count(*)"]
    for place, column in enumerate(table.columns):
        bits = identifier(f"unit$faults{place}")
        counts.append(f"count(*) FILTER (WHERE {identifier(column.name)} IS NULL)")
        counts += [f"count(*) FILTER (WHERE {bits} & {1 << bit} <> 0)" for bit in range(_COUNTED)]
    total, *numbers = one_row(connection, f"SELECT {', '.join(counts)} FROM {staged}")
    findings: list[SnapshotFinding] = []
    non_finite: dict[str, int] = {}
    texts_cut: dict[str, int] = {}
    for index, column in enumerate(table.columns):
        empty, failed, special, outside_count, long_count, zoned = numbers[6 * index : 6 * index + 6]
        faults = {
            "value_not_of_type": failed,
            "zone_missing": zoned,
            "null_in_column": empty if not failed and not column.nullable else 0,
            "value_outside_keys": outside_count,
            "text_too_long": long_count if column.names else 0,
        }
        findings += [SnapshotFinding(code, table.name, column.name, count) for code, count in faults.items() if count]
        if long_count and not column.names:
            texts_cut[column.name] = long_count
        if special:
            non_finite[column.name] = special
    if total == 0:
        findings.append(SnapshotFinding("no_rows", table.name))
    if total > _ROWS_MAX:
        findings.append(SnapshotFinding("too_many_rows", table.name, count=total))
    if findings:
        raise Refused(*findings)
    return Staged(total, tuple(non_finite.items()), tuple(texts_cut.items()))


def _shortened(column: DescribedColumn, value: str) -> str:
    """The value, cut to its first characters where the column is text with a greatest length."""
    return value if column.length_max is None else f"left({value}, {column.length_max})"


def _allowed(column: DescribedColumn, value: str) -> str:
    """The condition that a value is one of the declared keys; NULL for NULL."""
    assert column.allowed is not None
    stored = stored_type(column)
    if column.allowed.range is not None:
        first, last = (f"CAST({literal(end)} AS {stored})" for end in column.allowed.range)
        return f"({value}) BETWEEN {first} AND {last}"
    listed = ", ".join(f"CAST({literal(key)} AS {stored})" for key in column.allowed.values)
    return f"({value}) IN ({listed})" if listed else f"({value}) IS NULL"


# ------------------------------------------------------------------------------------------------- declared facts


def verify_keys(connection: duckdb.DuckDBPyConnection, tables: Sequence[BuildTable]) -> None:
    """Declared keys are unique and never NULL; the targets of references are unique. Errors: Refused."""
    places = {table.name: position for position, table in enumerate(tables)}
    findings: list[SnapshotFinding] = []
    checked: set[tuple[str, str]] = set()
    for table in tables:
        targets = [(reference.table, reference.key) for reference in table.references]
        if table.key is not None:
            targets.append((table.name, table.key))
            empty = one_number(
                connection,
                f"SELECT count(*) FROM staging.main.t{places[table.name]} WHERE {identifier(table.key)} IS NULL",
            )
            if empty:
                findings.append(SnapshotFinding("key_null", table.name, table.key, empty))
        for name, key in targets:
            if (name, key) not in checked:
                checked.add((name, key))
                findings += _repeated(connection, places, name, key, "key_not_unique")
        for column in table.columns:
            if column.unique:
                findings += _repeated(connection, places, table.name, column.name, "value_not_unique")
            if column.keys_from is not None:
                findings += _outside_table(connection, places, table, column.name, column.keys_from)
    if findings:
        raise Refused(*findings)


def _repeated(
    connection: duckdb.DuckDBPyConnection, places: Mapping[str, int], table: str, column: str, code: str
) -> list[SnapshotFinding]:
    """A finding when values of a column repeat."""
    name = identifier(column)
    repeated = one_number(
        connection, f"SELECT count({name}) - count(DISTINCT {name}) FROM staging.main.t{places[table]}"
    )
    return [SnapshotFinding(code, table, column, repeated)] if repeated else []


def _outside_table(
    connection: duckdb.DuckDBPyConnection,
    places: Mapping[str, int],
    table: BuildTable,
    column: str,
    keys_from: tuple[str, str],
) -> list[SnapshotFinding]:
    """A finding when a column has values that are not in the public table which declares its keys."""
    source, key = keys_from
    own, theirs = identifier(column), identifier(key)
    rows, keys = (f"staging.main.t{places[name]}" for name in (table.name, source))
    outside = one_number(
        connection,
        f"SELECT count(*) FROM {rows} AS t ANTI JOIN {keys} AS k ON t.{own} = k.{theirs} WHERE t.{own} IS NOT NULL",
    )
    return [SnapshotFinding("value_outside_keys", table.name, column, outside)] if outside else []
