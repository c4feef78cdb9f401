"""A checked dataset file in the vocabulary of `privacy`, and the list of files to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from engines.table_source import TableSource
from privacy.bounds import AskedContribution, AutomaticContribution, ContributionBound, ValueBounds
from privacy.policy import (
    Column,
    ColumnType,
    Dataset,
    KeyValue,
    Limits,
    OwnStatistic,
    PublicKeys,
    Reference,
    Sharing,
    Table,
)
from privacy.refusal import Finding
from privacy.unit import PrivacyUnit
from server.datasets.finding import ERROR, DatasetFileRefused
from server.datasets.keys import KEYS_MAX, gathered_in, key_values, moment_bounds
from server.datasets.model import AUTO, ColumnFile, ContributionFile, DatasetFile, KeysOfTable, StatisticFile, TableFile
from server.datasets.routes import routes_to_unit
from server.datasets.source import source_of

__all__ = ["public_columns", "sources", "to_dataset"]


def public_columns(file: DatasetFile) -> tuple[tuple[str, str], ...]:
    """Columns of public tables whose values are keys of some column: what `to_dataset` wants as `public_values`."""
    found = {
        (column.keys.table, column.keys.column): None
        for table in file.tables.values()
        for column in table.columns.values()
        if isinstance(column.keys, KeysOfTable)
    }
    return tuple(found)


def sources(file: DatasetFile, directory: Path) -> list[TableSource]:
    """Where the rows of each table are; relative paths are taken from `directory`."""
    return [source_of(name, table, directory) for name, table in file.tables.items()]


def to_dataset(
    file: DatasetFile,
    *,
    policy_version: int,
    data_version: str,
    public_values: Mapping[tuple[str, str], Sequence[KeyValue]] | None,
) -> Dataset:
    """The dataset as the other rooms know it.

    Requires: `file` came from `load`; `public_values` has the values of every column in `public_columns(file)`, in any
    order and with repeats. None makes a draft for the snapshot from which those values are read: in it the columns
    whose keys come from a public table have no keys yet.
    Errors: DatasetFileRefused when a public table gives no keys, too many, or keys of another type.
    """
    findings: list[Finding] = []
    tables = tuple(_table(file, name, table, public_values, findings) for name, table in file.tables.items())
    if findings:
        raise DatasetFileRefused(findings)
    policy = file.policy
    return Dataset(
        name=file.dataset,
        unit=PrivacyUnit(table=file.unit.table, key=file.unit.key),
        tables=tables,
        policy_version=policy_version,
        data_version=data_version,
        limits=Limits(
            epsilon_default=Fraction(policy.epsilon_default),
            epsilon_max=Fraction(policy.epsilon_max),
            epsilon_min=None if policy.epsilon_min is None else Fraction(policy.epsilon_min),
            delta_per_query=Fraction(policy.delta_per_query),
            cells_max=policy.cells_max,
            statistics_max=policy.statistics_max,
            timeout_seconds=policy.timeout_seconds,
            releases_shared=Sharing(policy.releases_shared),
            automatic_bounds=policy.automatic_bounds,
        ),
        description=file.description,
        statistics=tuple(_statistic(name, one) for name, one in file.statistics.items()),
        unit_space=file.unit_space,
    )


def _statistic(name: str, one: StatisticFile) -> OwnStatistic:
    rows = one.rows_per_unit
    asked = None if rows is None else AskedContribution(rows_per_unit=rows)
    return OwnStatistic(name, one.sql, one.description, analysts=one.analysts, contribution=asked)


def _table(
    file: DatasetFile,
    name: str,
    table: TableFile,
    public_values: Mapping[tuple[str, str], Sequence[KeyValue]] | None,
    findings: list[Finding],
) -> Table:
    references = tuple(_reference(column, target) for column, target in table.references.items())
    unit_column: str | None = None
    unit_path: tuple[Reference, ...] = ()
    contribution: ContributionBound | AutomaticContribution | None = None
    if not table.public:
        (route,) = routes_to_unit(file.unit, file.tables, name)
        unit_column = route.unit_column
        unit_path = () if unit_column is not None else route.steps
        declared = table.contribution
        if route.one_row:
            contribution = ContributionBound(1, 1, 1)
        elif declared == AUTO:
            contribution = AutomaticContribution()
        else:
            assert isinstance(declared, ContributionFile), "the file was checked"
            contribution = ContributionBound(
                declared.rows_per_unit, declared.groups_per_unit, declared.rows_per_unit_and_group
            )
    columns = tuple(
        _column(name, key, column, public_values, findings, version=file.version)
        for key, column in table.columns.items()
    )
    return Table(
        name=name,
        columns=columns,
        protected=not table.public,
        key=table.key,
        references=references,
        unit_column=unit_column,
        unit_path=unit_path,
        contribution=contribution,
        description=table.description,
        rows_stored_per_unit=table.rows_stored_per_unit,
        rows_expected=table.rows_expected,
    )


def _reference(column: str, target: str) -> Reference:
    table, _, key = target.partition(".")
    return Reference(column=column, table=table, key=key)


def _column(
    table: str,
    name: str,
    column: ColumnFile,
    public_values: Mapping[tuple[str, str], Sequence[KeyValue]] | None,
    findings: list[Finding],
    *,
    version: int,
) -> Column:
    bounds = None
    if column.bounds is not None:
        moments = column.type in ("date", "timestamp")
        lower, upper = moment_bounds(column) if moments else (Fraction(end) for end in column.bounds)
        bounds = ValueBounds(lower, upper)
    values = key_values(column)
    other = gathered_in(column, version)
    keys_from = None
    if isinstance(column.keys, KeysOfTable):
        keys_from = (column.keys.table, column.keys.column) if other is None else None
        if public_values is not None:
            values = _public_keys(table, name, column.keys, ColumnType(column.type), public_values, findings)
    return Column(
        name=name,
        type=ColumnType(column.type),
        bounds=bounds,
        keys=PublicKeys(values, other) if values else None,
        nullable=column.nullable,
        description=column.description,
        length_max=column.length_max,
        keys_from=keys_from,
        unique=column.unique,
    )


def _public_keys(
    table: str,
    name: str,
    keys: KeysOfTable,
    kind: ColumnType,
    public_values: Mapping[tuple[str, str], Sequence[KeyValue]],
    findings: list[Finding],
) -> tuple[KeyValue, ...]:
    """Distinct values in ascending order, NULL last."""
    distinct = set(public_values[keys.table, keys.column])
    wrong = not all(value is None or type(value) in kind.python for value in distinct)
    if distinct and not wrong and len(distinct) <= KEYS_MAX:
        ordered = sorted(value for value in distinct if value is not None)
        return (*ordered, None) if None in distinct else tuple(ordered)
    reason = (
        "It has no rows."
        if not distinct
        else "Its values are of another type."
        if wrong
        else f"It has {len(distinct)} different values, and the limit is {KEYS_MAX}."
    )
    findings.append(
        Finding(
            ERROR,
            what=f'"{keys.table}.{keys.column}" cannot give the keys of column "{table}.{name}"',
            why=reason,
            instead=("Correct the public table, or list the keys.",),
            field=f"tables.{table}.columns.{name}.keys",
        )
    )
    return ()
