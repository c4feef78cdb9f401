"""Privacy units: numbered and drawn, and every table of the snapshot written with the units of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from engines.described import BuildRequest, BuildTable
from engines.handlers.connection import identifier, one_number
from engines.handlers.layout import norm_types, stored_type, unit_tables
from engines.handlers.sources import Refused
from engines.handlers.stage import Staged
from engines.snapshot_findings import SnapshotFinding
from engines.stored import TableReport
from privacy.stored_norms import FIRST, ROWS, UNITS, KeptTotal, squares_name, total_name

__all__ = ["make_units", "store_table", "verify_units"]


def make_units(connection: duckdb.DuckDBPyConnection, request: BuildRequest) -> int:
    """Number the units and draw each one's place by a keyed hash of its own key alone.

    The draw is the first 64 bits of SHA-256 of the secret key, a colon and the unit's key as text: a pseudorandom
    function, so that draws say nothing about keys. Units are numbered by draw, so numbers carry no arrival order.
    """
    unit = request.unit
    if unit.key is None:
        return _make_units_of_rows(connection, request)
    source, key = f"staging.main.t{request.place(unit.table)}", identifier(unit.key)
    empty = one_number(connection, f"SELECT count(*) FROM {source} WHERE {key} IS NULL")
    if empty:
        raise Refused(SnapshotFinding("unit_key_null", unit.table, unit.key, empty))
    connection.execute(
        "CREATE TABLE staging.main.units AS "
        "SELECT key, draw, row_number() OVER (ORDER BY draw, CAST(key AS VARCHAR)) - 1 AS id FROM ("
        "SELECT key, CAST('0x' || left(sha256($1 || ':' || CAST(key AS VARCHAR)), 16) AS UBIGINT) AS draw "
        f"FROM (SELECT DISTINCT {key} AS key FROM {source}))",
        [request.draw_key],
    )
    return one_number(connection, "SELECT count(*) FROM staging.main.units")


def _make_units_of_rows(connection: duckdb.DuckDBPyConnection, request: BuildRequest) -> int:
    """Number the units where each row is one, and draw each one's place by a keyed hash of its own contents.

    Claim: the multiset of (row, draw) of a table without one row is that of the table with it, less one element: no
    row can change another one's draw, as where units have keys. For the draw hashes the row's contents and its number
    among the rows with the same contents; these numbers are 1 to n for n equal rows, so n - 1 equal rows have the same
    draws without that of n, and equal rows may be exchanged. The number of a row in the file would not do: a row
    that is left out moves all after it. A value is written as its length and its text, so that no two
    different rows have the same string.
    """
    position = request.place(request.unit.table)
    contents = _contents(request.tables[position])
    connection.execute(
        "CREATE TABLE staging.main.units AS "
        "SELECT key, draw, row_number() OVER (ORDER BY draw, digest, copy) - 1 AS id FROM ("
        "SELECT key, digest, copy, "
        "CAST('0x' || left(sha256($1 || ':' || digest || ':' || copy), 16) AS UBIGINT) AS draw FROM ("
        "SELECT key, digest, row_number() OVER (PARTITION BY digest) AS copy FROM ("
        f"SELECT \"unit$row\" AS key, sha256($1 || ':row:' || {contents}) AS digest "
        f"FROM staging.main.t{position})))",
        [request.draw_key],
    )
    return one_number(connection, "SELECT count(*) FROM staging.main.units")


def _contents(table: BuildTable, prefix: str = "") -> str:
    """SQL for one string of all values of a row; different rows have different strings."""
    parts = []
    for column in table.columns:
        text = f"CAST({prefix}{identifier(column.name)} AS VARCHAR)"
        parts.append(f"CASE WHEN {text} IS NULL THEN 'n' ELSE 't' || strlen({text}) || ':' || {text} END")
    return " || ".join(parts)


def _choose_rows(
    connection: duckdb.DuckDBPyConnection, request: BuildRequest, position: int, source: str, most: int
) -> int:
    """Lists the rows beyond the `most` that are kept of each unit, and returns how many there are.

    Claim: the multiset of rows that are kept of a unit is a function of the multiset of its own rows and the draw
    key. For a unit's rows are ordered by a keyed hash of their contents; rows with one hash have the same contents (but
    for collisions of SHA-256), so it does not matter which of them comes first. Without the key nobody can write rows
    that are kept.
    """
    heavy = f"SELECT u.id FROM {source} GROUP BY u.id HAVING count(*) > {most}"
    if not one_number(connection, f"SELECT count(*) FROM ({heavy})"):
        return 0
    contents = _contents(request.tables[position], "t.")
    connection.execute(
        f"CREATE TABLE staging.main.beyond{position} AS SELECT number FROM (SELECT t.rowid AS number, "
        f"row_number() OVER (PARTITION BY u.id ORDER BY sha256($1 || ':keep:' || {contents})) AS place "
        f"FROM {source} WHERE u.id IN ({heavy})) WHERE place > {most}",
        [request.draw_key],
    )
    return one_number(connection, f"SELECT count(*) FROM staging.main.beyond{position}")


def _make_norms(
    connection: duckdb.DuckDBPyConnection,
    columns: Sequence[str],
    totals: Sequence[KeptTotal],
    position: int,
    rows: str,
) -> None:
    """One row for each unit with its norms (privacy/stored_norms.py) over these joined rows, and one of its rows.

    What a unit has here is made of its own rows: groups are by unit, and then by unit and one column.
    """
    owned, norms = f"staging.main.owned{position}", f"staging.main.norms{position}"
    keys = "".join(f", t.{identifier(name)} AS k{place}" for place, name in enumerate(columns))
    keys += "".join(f", {total.nearest} AS {identifier(total.placed)}" for total in totals)
    connection.execute(f"CREATE TABLE {owned} AS SELECT u.id AS id, t.rowid AS number{keys} FROM {rows}")
    sums = "".join(f", {_total(total)} AS x{number}" for number, total in enumerate(totals))
    squared = [number for number, total in enumerate(totals) if total.squares]
    of_cells = "".join(f", {_total(totals[number])} AS x{number}" for number in squared)
    squares = "".join(f", CAST(sum(x{number} * x{number}) AS BIGINT) AS x{number}" for number in squared)
    source = f"(SELECT id, count(*) AS n, min(number) AS number{sums} FROM {owned} GROUP BY id) AS r"
    listed = [f"CAST(r.n AS BIGINT) AS {identifier(ROWS)}"]
    for place, name in enumerate(columns):
        cells = f"SELECT id, count(*) AS n{of_cells} FROM {owned} GROUP BY id, k{place}"
        source += (
            f" JOIN (SELECT id, CAST(sum(n * n) AS BIGINT) AS n{squares} FROM ({cells}) GROUP BY id) AS s{place}"
            " USING (id)"
        )
        listed.append(f"s{place}.n AS {identifier(squares_name(name))}")
        listed += [f"s{place}.x{number} AS {identifier(total_name(totals[number].column, name))}" for number in squared]
    listed += [f"r.x{number} AS {identifier(total.name)}" for number, total in enumerate(totals)]
    connection.execute(
        f"CREATE TABLE {norms} AS SELECT r.id AS id, r.number AS number, {', '.join(listed)} FROM {source}"
    )
    connection.execute(f"DROP TABLE {owned}")


def _total(total: KeptTotal) -> str:
    """The sum of what the rows of a group add: none where all are NULL. It is below 2^62."""
    return f"CAST(coalesce(sum({total.held}), 0) AS BIGINT)"


def store_table(
    connection: duckdb.DuckDBPyConnection, request: BuildRequest, position: int, units: int, staged: Staged
) -> TableReport:
    """Write one table of the snapshot; a protected one with its unit columns, clustered by unit."""
    table = request.tables[position]
    columns = [
        f"CAST(t.{identifier(column.name)} AS {stored_type(column)}) AS {identifier(column.name)}"
        for column in table.columns
    ]
    source, order, beyond = f"staging.main.t{position} AS t", "", 0
    if table.protected:
        current = "t"
        for step, reference in enumerate(table.unit_path):
            joined = f"p{step}"
            source += (
                f" JOIN staging.main.t{request.place(reference.table)} AS {joined}"
                f" ON {current}.{identifier(reference.column)} = {joined}.{identifier(reference.key)}"
            )
            current = joined
        holder = "unit$row" if request.unit.key is None else table.unit_column
        assert holder is not None
        source += f" JOIN staging.main.units AS u ON {current}.{identifier(holder)} = u.key"
        number = "INTEGER" if units < 2**31 else "BIGINT"
        columns += [f'CAST(u.id AS {number}) AS "unit$id"', 'u.draw AS "unit$draw"']
        order = " ORDER BY u.id"
        if not table.one_row:
            assert table.rows_stored is not None
            beyond = _choose_rows(connection, request, position, source, table.rows_stored)
        kept = f" WHERE t.rowid NOT IN (SELECT number FROM staging.main.beyond{position})" if beyond else ""
        if table.norms is not None:
            _make_norms(connection, table.norms, table.totals, position, f"{source}{kept}")
            columns += [f"n.{identifier(name)}" for name, _ in norm_types(table.norms, table.totals)[:-1]]
            columns.append(f"t.rowid = n.number AS {identifier(FIRST)}")
            source += f" JOIN staging.main.norms{position} AS n ON u.id = n.id"
        order = f"{kept}{order}"
    target = f"main.{identifier(table.name)}"
    connection.execute(f"CREATE TABLE {target} AS SELECT {', '.join(columns)} FROM {source}{order}")
    if table.units:
        _store_units(connection, table, position)
    stored = one_number(connection, f"SELECT count(*) FROM {target}")
    return TableReport(
        name=table.name,
        rows_read=staged.rows,
        rows_stored=stored,
        rows_without_unit=staged.rows - stored - beyond,
        non_finite=staged.non_finite,
        rows_beyond=beyond,
        texts_cut=staged.texts_cut,
    )


def _store_units(connection: duckdb.DuckDBPyConnection, table: BuildTable, position: int) -> None:
    """Write the tables of a table's units, of the norms that its rows were joined with: the same numbers.

    Which unit a row is of is not in them.
    """
    assert table.norms is not None
    (units, norms), (sizes, _) = unit_tables(table.name, table.norms, table.totals)
    columns = ", ".join(identifier(name) for name, _ in norms)
    connection.execute(
        f"CREATE TABLE main.{identifier(units)} AS SELECT {columns} FROM staging.main.norms{position} ORDER BY id"
    )
    connection.execute(
        f"CREATE TABLE main.{identifier(sizes)} AS SELECT {identifier(ROWS)}, count(*) AS {identifier(UNITS)} "
        f"FROM staging.main.norms{position} GROUP BY 1 ORDER BY 1"
    )


def verify_units(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[BuildTable], reports: Sequence[TableReport]
) -> None:
    """Every protected table has rows of units, and one for each where that is declared. Errors: Refused."""
    findings: list[SnapshotFinding] = []
    for table, report in zip(tables, reports, strict=True):
        if not table.protected:
            continue
        if report.rows_stored == 0:
            findings.append(SnapshotFinding("no_rows_of_units", table.name))
        if table.one_row:
            distinct = one_number(connection, f'SELECT count(DISTINCT "unit$id") FROM main.{identifier(table.name)}')
            if distinct != report.rows_stored:
                findings.append(SnapshotFinding("unit_not_one_row", table.name, count=report.rows_stored - distinct))
    if findings:
        raise Refused(*findings)
