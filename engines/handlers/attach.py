"""The attaching worker: reads source files, verifies what was declared, writes one snapshot file. Started per task.

Findings are words, declared names and counts. No value of a cell and no text of the engine is ever part of one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from engines.columns import column_fault, matching_columns
from engines.frames import Frame
from engines.handlers.connection import columns_result, identifier, literal, lock_down, settings
from engines.handlers.conversion import ZONED, Conversion, conversion, written_of
from engines.handlers.layout import enumeration, stored_type
from engines.handlers.propose import add_constraints, inspect_table
from engines.handlers.sources import (
    INTERNAL,
    UNREADABLE,
    Refused,
    content_fault,
    encoding_of,
    file_fault,
    finding,
    fingerprint,
    identities,
    open_fault,
    open_sources,
    paths_of,
    read_as_utf8,
    relation_of,
)

__all__ = ["AttachHandler"]

_ROWS_MAX = 1 << 40
_PUBLIC_VALUES_MAX = 1_000_000
_UNIT_COLUMNS = ("unit$id", "unit$draw")
_KINDS = {"BIGINT": "integer", "VARCHAR": "text", "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMP": "timestamp"}


class AttachHandler:
    """Fingerprints, builds, inspects; one task per worker."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._settings = settings(threads=int(options["threads"]), memory_limit_mb=int(options["memory_limit_mb"]))
        self._temporary = Path(str(options["temporary"]))

    def between(self) -> None:
        """Nothing waits to be done."""

    def handle(self, frame: Frame) -> tuple[Mapping[str, Any], Sequence[bytes]]:
        """One task by its name."""
        task = frame.header["operation"]
        try:
            if task == "fingerprint":
                return {"sources": fingerprint(frame.header["sources"])}, ()
            if task == "build":
                return self._build(frame.header), ()
            if task == "columns":
                return {"sources": [self._columns(source) for source in frame.header["sources"]]}, ()
            if task == "inspect":
                return self._inspect(frame.header), ()
            return self._public(frame.header)
        except Refused as refused:
            return {"findings": refused.findings}, ()

    # --------------------------------------------------------------------------------------------- connections

    def _connect(self, path: str) -> duckdb.DuckDBPyConnection:
        spill = {"temp_directory": str(self._temporary)}
        connection = duckdb.connect(path, config={**self._settings, **spill})
        connection.execute("SET TimeZone='UTC'")
        return connection

    # -------------------------------------------------------------------------------------------------- build

    def _build(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        folder = self._temporary.parent
        request = {**request, "tables": [read_as_utf8(table, folder) for table in request["tables"]]}
        target = folder / "snapshot.duckdb"
        with contextlib.closing(self._connect(str(target))) as connection:
            relations = open_sources(connection, request["tables"])
            connection.execute(f"ATTACH {literal(str(folder / 'staging.duckdb'))} AS staging")
            files = [path for table in request["tables"] if table["format"] != "duckdb" for path in paths_of(table)]
            connection.execute(f"SET allowed_paths=[{', '.join(literal(path) for path in files)}]")
            lock_down(connection, local_files=True)
            reports = _stage_tables(connection, request, relations)
            _verify_keys(connection, request["tables"])
            units = _make_units(connection, request)
            for position, table in enumerate(request["tables"]):
                _store_table(connection, request, position, table, units, reports[position])
            _verify_units(connection, request["tables"], reports)
            connection.execute("CHECKPOINT")
        for source in request["sources"]:
            if identities(paths_of(source)) != source["identity"]:
                raise Refused([finding("source_changed")])
        return {"tables": reports, "units": units}

    # ------------------------------------------------------------------------------------------------ inspect

    def _inspect(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        """Tables, columns and proposed types of a source; of a database also the keys and references it declares."""
        paths, kind = paths_of(source), str(source["format"])
        encoding = "utf-8"
        if kind == "csv":
            faults = [file_fault(path) for path in paths]
            shown = {encoding_of(path) for path, fault in zip(paths, faults, strict=True) if fault is None}
            encoding = shown.pop() if len(shown) == 1 else "utf-8"
        code = next(filter(None, (file_fault(path) or content_fault(path, kind, encoding) for path in paths)), None)
        if code is not None:
            raise Refused([finding(code)])
        source = read_as_utf8({**source, "name": "", "encoding": encoding}, self._temporary.parent)
        paths = paths_of(source)
        with contextlib.closing(self._connect(":memory:")) as connection:
            names: list[str | None] = [None]
            if kind == "duckdb":
                try:
                    connection.execute(f"ATTACH {literal(paths[0])} AS s0 (READ_ONLY)")
                except duckdb.Error as error:
                    raise Refused([finding(open_fault(error))]) from None
                found = connection.execute(
                    "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 's0' ORDER BY 1, 2"
                ).fetchall()
                names = [name if schema == "main" else f"{schema}.{name}" for schema, name in found]
            else:
                connection.execute(f"SET allowed_paths=[{', '.join(map(literal, paths))}]")
            lock_down(connection, local_files=True)
            tables = [inspect_table(connection, source, name) for name in names]
            if kind == "duckdb":
                add_constraints(connection, tables)
        return {"tables": [{**table, "encoding": encoding} for table in tables]}

    def _columns(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        """The names of a source's columns, or the code of what is wrong with it. Counts and reads nothing."""
        paths, kind = paths_of(source), str(source["format"])
        encoding = str(source.get("encoding", "utf-8"))
        code = next(filter(None, (file_fault(path) or content_fault(path, kind, encoding) for path in paths)), None)
        if code is not None:
            return {"code": code}
        try:
            source = read_as_utf8(source, self._temporary.parent, head_only=True)
            with contextlib.closing(self._connect(":memory:")) as connection:
                relations = open_sources(connection, [source])
                if kind != "duckdb":
                    connection.execute(f"SET allowed_paths=[{', '.join(map(literal, paths_of(source)))}]")
                lock_down(connection, local_files=True)
                _, columns = relation_of(connection, source, relations[0])
        except INTERNAL:
            raise
        except Refused as refused:
            return {"code": refused.findings[0]["code"]}
        except duckdb.CatalogException:
            return {"code": "source_table_missing"}
        except (duckdb.Error, *UNREADABLE):
            return {"code": "malformed_csv" if kind == "csv" else "source_damaged"}
        return {"names": [name for name, _, _ in columns]}

    def _public(self, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[bytes]]:
        table, column = identifier(str(request["table"])), str(request["column"])
        with contextlib.closing(
            duckdb.connect(str(request["snapshot"]), read_only=True, config=self._settings)
        ) as connection:
            lock_down(connection, local_files=False)
            stored = [str(row[0]) for row in connection.execute(f"DESCRIBE main.{table}").fetchall()]
            if set(_UNIT_COLUMNS) & set(stored) or column not in stored:
                raise ValueError
            quoted = identifier(column)
            # An ENUM has no array form, and its order is the declared one: compare and sort it as text.
            probe = connection.execute(f"SELECT typeof({quoted}) FROM main.{table} LIMIT 1").fetchone()
            base = "VARCHAR" if probe is None else str(probe[0]).split("(", maxsplit=1)[0]
            kind = "text" if base == "ENUM" else _KINDS[base]
            value = f"CAST({quoted} AS VARCHAR)" if kind == "text" else quoted
            most = _PUBLIC_VALUES_MAX + 1
            cursor = connection.execute(
                f"SELECT DISTINCT {value} AS value FROM main.{table} ORDER BY 1 NULLS LAST LIMIT {most}"
            )
            described = cursor.description or []
            header, buffers = columns_result(cursor, ["value"], [str(described[0][1])], [kind])
        if header["rows"] > _PUBLIC_VALUES_MAX:
            raise ValueError
        return header, buffers


# ------------------------------------------------------------------------------------------------------- staging


def _stage_tables(
    connection: duckdb.DuckDBPyConnection, request: Mapping[str, Any], relations: Sequence[str]
) -> list[dict[str, Any]]:
    """Check and convert every table into the staging file; all findings of all tables together."""
    tables: Sequence[Mapping[str, Any]] = request["tables"]
    numbered = request["unit"]["table"] if request["unit"]["key"] is None else None
    findings: list[dict[str, Any]] = []
    reports: list[dict[str, Any]] = []
    for position, table in enumerate(tables):
        name = str(table["name"])
        if table.get("zone") is not None and not _is_zone(connection, str(table["zone"])):
            findings.append(finding("zone_unknown", table=name))
            continue
        try:
            found, report = _stage_table(connection, position, table, relations[position], numbered=name == numbered)
        except INTERNAL:
            raise
        except Refused as refused:
            found, report = refused.findings, {}
        except duckdb.CatalogException:
            found, report = [finding("source_table_missing", table=name)], {}
        except (duckdb.Error, *UNREADABLE):
            # Reading failed inside the file: ragged rows, bad encoding, a damaged page.
            code = "malformed_csv" if table["format"] == "csv" else "source_damaged"
            found, report = [finding(code, table=name)], {}
        findings += found
        reports.append(report)
    if findings:
        raise Refused(findings)
    return reports


def _stage_table(
    connection: duckdb.DuckDBPyConnection, position: int, table: Mapping[str, Any], known: str, *, numbered: bool
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """`numbered` gives each row a number of its own, for rows that are units."""
    name = str(table["name"])
    relation, columns = relation_of(connection, table, known)
    findings: list[dict[str, Any]] = []
    conversions: list[Conversion] = []
    taken: set[str] = set()
    for column in table["columns"]:
        places = matching_columns([original for original, _, _ in columns], column["name"], column.get("source_name"))
        code = column_fault(places) or ("column_repeated" if columns[places[0]][1] in taken else None)
        if code is not None:
            findings.append(finding(code, table=name, column=column["name"]))
            continue
        _, engine, kind = columns[places[0]]
        taken.add(engine)
        rule = conversion(
            source_type=kind,
            declared=column["type"],
            column=identifier(engine),
            written=written_of(table),
        )
        if rule is None:
            zoned = kind == ZONED and column["type"] in ("date", "timestamp")
            code = "zone_missing" if zoned else "type_mismatch"
            findings.append(finding(code, table=name, column=column["name"]))
            continue
        conversions.append(rule)
    if findings:
        return findings, {}
    counts = ["count(*)"]
    for column, rule in zip(table["columns"], conversions, strict=True):
        keys = enumeration(column)
        outside = f"({rule.value}) IS NOT NULL AND TRY_CAST({rule.value} AS {keys}) IS NULL" if keys else "false"
        if "allowed" in column:
            outside = f"NOT ({_allowed(column, rule.value)})"
        long = f"length({rule.value}) > {int(column['length_max'])}" if "length_max" in column else "false"
        conditions = (rule.failed, rule.special, f"({rule.value}) IS NULL", outside, long)
        counts += [f"count(*) FILTER (WHERE {condition})" for condition in conditions]
    row = connection.execute(f"SELECT {', '.join(counts)} FROM {relation}").fetchone()
    assert row is not None
    total, numbers = int(row[0]), [int(value) for value in row[1:]]
    special_counts: dict[str, int] = {}
    cut_counts: dict[str, int] = {}
    for index, column in enumerate(table["columns"]):
        failed, special, empty, outside_count, long_count = numbers[5 * index : 5 * index + 5]
        facts = {"table": name, "column": column["name"]}
        if failed:
            findings.append(finding("value_not_of_type", count=failed, **facts))
        if empty and not failed and not column["nullable"]:
            findings.append(finding("null_in_column", count=empty, **facts))
        if outside_count:
            findings.append(finding("value_outside_keys", count=outside_count, **facts))
        if long_count and column["names"]:
            findings.append(finding("text_too_long", count=long_count, **facts))
        elif long_count:
            cut_counts[str(column["name"])] = long_count
        if special:
            special_counts[str(column["name"])] = special
    if total == 0:
        findings.append(finding("no_rows", table=name))
    if total > _ROWS_MAX:
        findings.append(finding("too_many_rows", table=name, count=total))
    if findings:
        return findings, {}
    selected = ", ".join(
        f"{_shortened(column, rule.value)} AS {identifier(column['name'])}"
        for column, rule in zip(table["columns"], conversions, strict=True)
    )
    if numbered:
        selected += ', row_number() OVER () AS "unit$row"'
    connection.execute(f"CREATE TABLE staging.main.t{position} AS SELECT {selected} FROM {relation}")
    return [], {"name": name, "rows_read": total, "non_finite": special_counts, "texts_cut": cut_counts}


def _shortened(column: Mapping[str, Any], value: str) -> str:
    """The value, cut to its first characters where the column is text with a greatest length."""
    return f"left({value}, {int(column['length_max'])})" if "length_max" in column else value


def _is_zone(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    found = connection.execute("SELECT count(*) FROM pg_timezone_names() WHERE name = $1", [name]).fetchone()
    return found is not None and found[0] > 0


def _allowed(column: Mapping[str, Any], value: str) -> str:
    """The condition that a value is one of the declared keys; NULL for NULL."""
    stored = stored_type(column)
    first, last = column["allowed"].get("range", (None, None))
    if first is not None:
        return f"({value}) BETWEEN CAST({literal(first)} AS {stored}) AND CAST({literal(last)} AS {stored})"
    listed = ", ".join(f"CAST({literal(key)} AS {stored})" for key in column["allowed"]["values"])
    return f"({value}) IN ({listed})" if listed else f"({value}) IS NULL"


# ---------------------------------------------------------------------------------------- declared facts and units


def _number(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


def _verify_keys(connection: duckdb.DuckDBPyConnection, tables: Sequence[Mapping[str, Any]]) -> None:
    """Declared keys are unique and never NULL; the targets of references are unique."""
    places = {str(table["name"]): position for position, table in enumerate(tables)}
    findings: list[dict[str, Any]] = []
    checked: set[tuple[str, str]] = set()
    for table in tables:
        targets = [(reference["table"], reference["key"]) for reference in table["references"]]
        if table["key"] is not None:
            targets.append((table["name"], table["key"]))
            empty = _number(
                connection,
                f"SELECT count(*) FROM staging.main.t{places[table['name']]} WHERE {identifier(table['key'])} IS NULL",
            )
            if empty:
                findings.append(finding("key_null", table=table["name"], column=table["key"], count=empty))
        for name, key in targets:
            if (name, key) in checked:
                continue
            checked.add((name, key))
            column = identifier(key)
            repeated = _number(
                connection, f"SELECT count({column}) - count(DISTINCT {column}) FROM staging.main.t{places[name]}"
            )
            if repeated:
                findings.append(finding("key_not_unique", table=name, column=key, count=repeated))
        for column in table["columns"]:
            if column.get("unique"):
                name = identifier(column["name"])
                repeated = _number(
                    connection,
                    f"SELECT count({name}) - count(DISTINCT {name}) FROM staging.main.t{places[table['name']]}",
                )
                if repeated:
                    facts = {"table": table["name"], "column": column["name"]}
                    findings.append(finding("value_not_unique", count=repeated, **facts))
            if "keys_from" in column:
                findings += _outside_table(connection, places, table, column)
    if findings:
        raise Refused(findings)


def _outside_table(
    connection: duckdb.DuckDBPyConnection,
    places: Mapping[str, int],
    table: Mapping[str, Any],
    column: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """A finding when a column has values that are not in the public table which declares its keys."""
    source, key = column["keys_from"]
    own, theirs = identifier(column["name"]), identifier(key)
    rows, keys = (f"staging.main.t{places[name]}" for name in (table["name"], source))
    outside = _number(
        connection,
        f"SELECT count(*) FROM {rows} AS t ANTI JOIN {keys} AS k ON t.{own} = k.{theirs} WHERE t.{own} IS NOT NULL",
    )
    facts = {"table": table["name"], "column": column["name"]}
    return [finding("value_outside_keys", count=outside, **facts)] if outside else []


def _make_units(connection: duckdb.DuckDBPyConnection, request: Mapping[str, Any]) -> int:
    """Number the units and draw each one's place by a keyed hash of its own key alone.

    The draw is the first 64 bits of SHA-256 of the secret key, a colon and the unit's key as text: a pseudorandom
    function, so that draws say nothing about keys. Units are numbered by draw, so numbers carry no arrival order.
    """
    unit = request["unit"]
    if unit["key"] is None:
        return _make_units_of_rows(connection, request)
    names = [str(table["name"]) for table in request["tables"]]
    source, key = f"staging.main.t{names.index(unit['table'])}", identifier(unit["key"])
    empty = _number(connection, f"SELECT count(*) FROM {source} WHERE {key} IS NULL")
    if empty:
        raise Refused([finding("unit_key_null", table=unit["table"], column=unit["key"], count=empty)])
    connection.execute(
        "CREATE TABLE staging.main.units AS "
        "SELECT key, draw, row_number() OVER (ORDER BY draw, CAST(key AS VARCHAR)) - 1 AS id FROM ("
        "SELECT key, CAST('0x' || left(sha256($1 || ':' || CAST(key AS VARCHAR)), 16) AS UBIGINT) AS draw "
        f"FROM (SELECT DISTINCT {key} AS key FROM {source}))",
        [request["draw_key"]],
    )
    return _number(connection, "SELECT count(*) FROM staging.main.units")


def _make_units_of_rows(connection: duckdb.DuckDBPyConnection, request: Mapping[str, Any]) -> int:
    """Number the units where each row is one, and draw each one's place by a keyed hash of its own contents.

    Claim: the multiset of (row, draw) of a table without one row is that of the table with it, less one element: no
    row can change another one's draw, as where units have keys. For the draw hashes the row's contents and its number
    among the rows with the same contents; these numbers are 1 to n for n equal rows, so n - 1 equal rows have the same
    draws without that of n, and equal rows may be exchanged. The number of a row in the file would not do: a row
    that is left out moves all after it. A value is written as its length and its text, so that no two
    different rows have one text.
    """
    unit = request["unit"]
    position = [str(table["name"]) for table in request["tables"]].index(unit["table"])
    contents = _contents(request["tables"][position])
    connection.execute(
        "CREATE TABLE staging.main.units AS "
        "SELECT key, draw, row_number() OVER (ORDER BY draw, digest, copy) - 1 AS id FROM ("
        "SELECT key, digest, copy, "
        "CAST('0x' || left(sha256($1 || ':' || digest || ':' || copy), 16) AS UBIGINT) AS draw FROM ("
        "SELECT key, digest, row_number() OVER (PARTITION BY digest) AS copy FROM ("
        f"SELECT \"unit$row\" AS key, sha256($1 || ':row:' || {contents}) AS digest "
        f"FROM staging.main.t{position})))",
        [request["draw_key"]],
    )
    return _number(connection, "SELECT count(*) FROM staging.main.units")


def _contents(table: Mapping[str, Any], prefix: str = "") -> str:
    """SQL for one text of all values of a row; different rows have different texts."""
    parts = []
    for column in table["columns"]:
        text = f"CAST({prefix}{identifier(column['name'])} AS VARCHAR)"
        parts.append(f"CASE WHEN {text} IS NULL THEN 'n' ELSE 't' || strlen({text}) || ':' || {text} END")
    return " || ".join(parts)


def _choose_rows(
    connection: duckdb.DuckDBPyConnection, request: Mapping[str, Any], position: int, source: str, most: int
) -> int:
    """Lists the rows beyond the `most` that are kept of each unit, and returns how many there are.

    Claim: the multiset of rows that are kept of a unit is a function of the multiset of its own rows and the draw
    key. For a unit's rows are ordered by a keyed hash of their contents; rows with one hash have the same contents (but
    for collisions of SHA-256), so it does not matter which of them comes first. Without the key nobody can write rows
    that are kept.
    """
    heavy = f"SELECT u.id FROM {source} GROUP BY u.id HAVING count(*) > {most}"
    if not _number(connection, f"SELECT count(*) FROM ({heavy})"):
        return 0
    contents = _contents(request["tables"][position], "t.")
    connection.execute(
        f"CREATE TABLE staging.main.beyond{position} AS SELECT number FROM (SELECT t.rowid AS number, "
        f"row_number() OVER (PARTITION BY u.id ORDER BY sha256($1 || ':keep:' || {contents})) AS place "
        f"FROM {source} WHERE u.id IN ({heavy})) WHERE place > {most}",
        [request["draw_key"]],
    )
    return _number(connection, f"SELECT count(*) FROM staging.main.beyond{position}")


def _store_table(
    connection: duckdb.DuckDBPyConnection,
    request: Mapping[str, Any],
    position: int,
    table: Mapping[str, Any],
    units: int,
    report: dict[str, Any],
) -> None:
    """Write one table of the snapshot; a protected one with its unit columns, clustered by unit."""
    names = [str(other["name"]) for other in request["tables"]]
    columns = [
        f"CAST(t.{identifier(column['name'])} AS {stored_type(column)}) AS {identifier(column['name'])}"
        for column in table["columns"]
    ]
    source, order, beyond = f"staging.main.t{position} AS t", "", 0
    if table["protected"]:
        current = "t"
        for step, reference in enumerate(table["unit_path"]):
            joined = f"p{step}"
            source += (
                f" JOIN staging.main.t{names.index(reference['table'])} AS {joined}"
                f" ON {current}.{identifier(reference['column'])} = {joined}.{identifier(reference['key'])}"
            )
            current = joined
        holder = "unit$row" if request["unit"]["key"] is None else table["unit_column"]
        source += f" JOIN staging.main.units AS u ON {current}.{identifier(holder)} = u.key"
        number = "INTEGER" if units < 2**31 else "BIGINT"
        columns += [f'CAST(u.id AS {number}) AS "unit$id"', 'u.draw AS "unit$draw"']
        order = " ORDER BY u.id"
        if not table["one_row"]:
            beyond = _choose_rows(connection, request, position, source, int(table["rows_stored"]))
        if beyond:
            order = f" WHERE t.rowid NOT IN (SELECT number FROM staging.main.beyond{position}){order}"
    target = f"main.{identifier(table['name'])}"
    connection.execute(f"CREATE TABLE {target} AS SELECT {', '.join(columns)} FROM {source}{order}")
    stored = _number(connection, f"SELECT count(*) FROM {target}")
    report["rows_stored"] = stored
    report["rows_beyond"] = beyond
    report["rows_without_unit"] = report["rows_read"] - stored - beyond


def _verify_units(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[Mapping[str, Any]], reports: Sequence[Mapping[str, Any]]
) -> None:
    findings: list[dict[str, Any]] = []
    for table, report in zip(tables, reports, strict=True):
        if not table["protected"]:
            continue
        name = str(table["name"])
        if report["rows_stored"] == 0:
            findings.append(finding("no_rows_of_units", table=name))
        if table["one_row"]:
            distinct = _number(connection, f'SELECT count(DISTINCT "unit$id") FROM main.{identifier(name)}')
            if distinct != report["rows_stored"]:
                findings.append(finding("unit_not_one_row", table=name, count=report["rows_stored"] - distinct))
    if findings:
        raise Refused(findings)
