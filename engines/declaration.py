"""What follows from a dataset's declaration: what is wrong with it, how workers read it, the version of its data."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence

from engines.records import write_record
from engines.snapshot_findings import SnapshotFinding
from engines.stored import FORMAT
from engines.table_source import TableSource
from privacy.policy import Column, ColumnType, Dataset, KeyValue, Reference, Table
from privacy.stored_norms import SQUARES_MAX, KeptTotal
from privacy.values import Json

__all__ = [
    "data_version",
    "declaration_findings",
    "described_column",
    "described_table",
    "described_unit",
    "norms_stored",
]


def declaration_findings(dataset: Dataset, sources: Sequence[TableSource]) -> list[SnapshotFinding]:
    """What is wrong before any file is opened."""
    given = [source.table.lower() for source in sources]
    findings = [
        SnapshotFinding("source_unknown", source.table)
        for source in sources
        if dataset.table(source.table) is None or given.count(source.table.lower()) > 1
    ]
    for table in dataset.tables:
        if table.name.lower() not in given:
            findings.append(SnapshotFinding("source_missing", table.name))
        findings += [
            SnapshotFinding("reserved_name", table.name, column.name)
            for column in table.columns
            if column.name.lower().startswith("unit$")
        ]
        findings += [
            SnapshotFinding("reference_unknown", table.name, reference.column)
            for reference in table.references
            if table.column(reference.column) is None or _target(dataset, reference) is None
        ]
        if table.key is not None and table.column(table.key) is None:
            findings.append(SnapshotFinding("column_missing", table.name, table.key))
    unit_table = dataset.table(dataset.unit.table)
    if unit_table is None or not unit_table.protected:
        return [*findings, SnapshotFinding("unit_unknown", dataset.unit.table, dataset.unit.key)]
    if dataset.unit.key is None:
        return findings + [
            SnapshotFinding("unit_unknown", table.name)
            for table in dataset.tables
            if table.protected and not _rows_are_units(dataset, table)
        ]
    unit_key = unit_table.column(dataset.unit.key)
    if unit_key is None:
        return [*findings, SnapshotFinding("unit_unknown", dataset.unit.table, dataset.unit.key)]
    if unit_key.type is ColumnType.NUMBER:
        findings.append(SnapshotFinding("unit_type", unit_table.name, unit_key.name))
    for table in dataset.tables:
        if table.protected:
            findings += _path_findings(dataset, table, unit_key)
    return findings


def _rows_are_units(dataset: Dataset, table: Table) -> bool:
    """Whether a protected table is declared soundly where each row is a unit: then no other table has rows of units."""
    whole = table.unit_column is None and not table.unit_path
    return table.name.lower() == dataset.unit.table.lower() and whole


def _path_findings(dataset: Dataset, table: Table, unit_key: Column) -> list[SnapshotFinding]:
    current = table
    for reference in table.unit_path:
        column, target = current.column(reference.column), _target(dataset, reference)
        following = dataset.table(reference.table)
        if column is None or target is None or following is None:
            return [SnapshotFinding("unit_unknown", table.name, reference.column)]
        if column.type is not target.type or column.type is ColumnType.NUMBER:
            return [SnapshotFinding("unit_type", table.name, reference.column)]
        current = following
    holder = _unit_column(dataset, current)
    if holder is None:
        return [SnapshotFinding("unit_unknown", table.name)]
    if holder.type is not unit_key.type:
        return [SnapshotFinding("unit_type", table.name, holder.name)]
    return []


def _unit_column(dataset: Dataset, table: Table) -> Column | None:
    """The column of a table that holds the unit's key itself."""
    if table.unit_column is not None:
        return table.column(table.unit_column)
    if table.name.lower() == dataset.unit.table.lower() and dataset.unit.key is not None:
        return table.column(dataset.unit.key)
    return None


def _target(dataset: Dataset, reference: Reference) -> Column | None:
    table = dataset.table(reference.table)
    return None if table is None else table.column(reference.key)


def described_unit(dataset: Dataset) -> dict[str, Json]:
    """The privacy unit as workers read it: its table, and its key as the table spells it."""
    table = dataset.table(dataset.unit.table)
    assert table is not None
    return {"table": table.name, "key": None if dataset.unit.key is None else _spelled(table, dataset.unit.key)}


def described_table(
    dataset: Dataset, table: Table, source: TableSource, totals: Sequence[KeptTotal] = ()
) -> dict[str, Json]:
    """A declared table and its source as workers read them. The version of the data is made of it."""
    last = table
    # Only where norms are kept: the versions of other data stay what they were.
    norms = norms_stored(table)
    more: dict[str, Json] = {} if norms is None else {"norms": list(norms), "units": True}
    if totals:
        more["totals"] = [write_record(total) for total in totals]
    for reference in table.unit_path:
        following = dataset.table(reference.table)
        assert following is not None
        last = following
    holder = _unit_column(dataset, last) if table.protected else None
    naming = _naming_columns(dataset, table)
    return source.written() | {
        "name": table.name,
        **source.located(),
        "format": source.format,
        "source_table": source.source_table,
        "protected": table.protected,
        "key": None if table.key is None else _spelled(table, table.key),
        "references": [_described_reference(dataset, table, reference) for reference in table.references]
        + _described_path(dataset, table),
        "unit_path": _described_path(dataset, table),
        "unit_column": None if holder is None else holder.name,
        "one_row": table.one_row,
        "rows_stored": table.rows_stored if table.protected else None,
        "columns": [
            {
                **described_column(column, dict(source.source_names).get(column.name)),
                **_described_length(column, names=column.name.lower() in naming),
            }
            for column in table.columns
        ],
        **more,
    }


def norms_stored(table: Table) -> tuple[str, ...] | None:
    """The columns by which a new snapshot keeps the squares of units' rows: the first ones with public keys.

    None for a table of which no norms are kept.
    """
    if not table.protected or table.one_row:
        return None
    keyed = [
        column.name
        for column in table.columns
        if column.type is ColumnType.BOOLEAN
        or column.keys_from is not None
        or (column.keys is not None and column.keys.other is None)
    ]
    return tuple(keyed[:SQUARES_MAX])


def _described_length(column: Column, *, names: bool) -> dict[str, Json]:
    """How long the strings of a column may be. Where only listed keys are stored, they are the limit."""
    if column.type is not ColumnType.TEXT or (column.keys is not None and column.keys.other is None):
        return {}
    return {"length_max": column.length_stored, "names": names}


def _naming_columns(dataset: Dataset, table: Table) -> set[str]:
    """Columns whose strings identify units or rows: two strings that were cut to the same one would merge them."""
    found = {reference.column for reference in (*table.references, *table.unit_path)}
    found |= {name for name in (table.key, table.unit_column) if name is not None}
    if dataset.unit.key is not None and table.name.lower() == dataset.unit.table.lower():
        found.add(dataset.unit.key)
    for other in dataset.tables:
        for reference in (*other.references, *other.unit_path):
            if reference.table.lower() == table.name.lower():
                found.add(reference.key)
    return {name.lower() for name in found}


def _described_path(dataset: Dataset, table: Table) -> list[dict[str, str]]:
    described: list[dict[str, str]] = []
    current = table
    for reference in table.unit_path:
        described.append(_described_reference(dataset, current, reference))
        following = dataset.table(reference.table)
        assert following is not None
        current = following
    return described


def _described_reference(dataset: Dataset, table: Table, reference: Reference) -> dict[str, str]:
    target = dataset.table(reference.table)
    assert target is not None
    return {
        "column": _spelled(table, reference.column),
        "table": target.name,
        "key": _spelled(target, reference.key),
    }


def _spelled(table: Table, name: str) -> str:
    column = table.column(name)
    assert column is not None
    return column.name


def described_column(column: Column, source_name: str | None = None) -> dict[str, Json]:
    """A declared column as workers read it."""
    texts: list[str] | None = None
    # Only where it is declared: the versions of data without it stay what they were.
    more: dict[str, Json] = {} if source_name is None else {"source_name": source_name}
    if column.keys is not None and column.keys.other is None and column.keys_from is None:
        keys = [value for value in column.keys.values if value is not None]
        if column.type is ColumnType.TEXT:
            texts = [str(value) for value in keys]
        else:
            more["allowed"] = _allowed(keys)
    if column.keys_from is not None:
        more["keys_from"] = list(column.keys_from)
    if column.unique:
        more["unique"] = True
    return {"name": column.name, "type": column.type.value, "nullable": column.nullable, "keys": texts, **more}


def _allowed(keys: Sequence[KeyValue]) -> dict[str, list[str]]:
    """The values that a column may have, as strings; a range of whole numbers or days by its ends."""
    places = {place: key for key in keys if (place := _place(key)) is not None}
    if places and len(places) == len(keys) and max(places) - min(places) == len(keys) - 1:
        return {"range": [str(places[min(places)]), str(places[max(places)])]}
    return {"values": [str(value) for value in keys]}


def _place(key: KeyValue) -> int | None:
    """Where a key stands among all of its type, which have no other between two neighbours; None for other types."""
    if type(key) is int:
        return key
    return key.toordinal() if type(key) is datetime.date else None


def data_version(
    dataset: Dataset,
    sources: Sequence[TableSource],
    digests: Sequence[str],
    draw_key: bytes,
    *,
    totals: Mapping[str, Sequence[KeptTotal]] | None = None,
) -> str:
    """16 hex digits that change with the contents, the declared shape and the draw key.

    Keyed, because the version is public: a plain hash of private files would let anyone confirm a guess of them.
    """
    # The location of the files has no meaning. Of totals it is which columns have them: bounds may change. Numbers of
    # values change nothing that is asked, and a version without them is the same data.
    summed = {name: [total.column for total in listed if not total.values] for name, listed in (totals or {}).items()}
    shape = [
        {name: value for name, value in described_table(dataset, *pair).items() if name not in ("path", "paths")}
        | ({"totals": summed[pair[0].name]} if summed.get(pair[0].name) else {})
        for pair in zip(dataset.tables, sources, strict=True)
    ]
    document = {
        "format": FORMAT,
        "unit": [dataset.unit.table, dataset.unit.key],
        "tables": shape,
        "digests": list(digests),
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hmac.new(draw_key, b"noisegate data version\0" + text.encode(), hashlib.sha256).hexdigest()[:16]
