"""From released tables to the rows of an answer, with an error bar for every cell that has one.

Three kinds of columns: keys have no error; released columns keep the interval of their mechanism; derived columns get
theirs by running the shell again over replicates of the released tables (post-processing, so it is free).
"""

from __future__ import annotations

import datetime
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from engines.shell import ShellColumn, ShellEngine, ShellTable
from mechanisms.interval import two_sided_alpha
from mechanisms.noisy_sums import released_columns, sums_from_plain, sums_to_plain
from mechanisms.replicates import approximate_replicates, simulate
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed, Finding, Refused
from privacy.release import MechanismNote, ReleasedColumn, ReleasedTable
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import Shell
from sql_rewrite.shell import REPLICATE, ROW

__all__ = ["AnswerRows", "assemble", "check_types", "from_stored", "shapes", "to_stored"]

_TYPE_NAMES = {
    ColumnType.INTEGER: "BIGINT",
    ColumnType.NUMBER: "DOUBLE",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}
_ANSWER_TYPES = frozenset(
    "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT DOUBLE DECIMAL VARCHAR "
    "BOOLEAN DATE TIMESTAMP NULL".split()
) | {'"NULL"'}
_ANSWER_ROWS_MIN = 10_000
"""Rows that every answer may have; a larger one may have as many as were released. Joins of released numbers make more
without telling more, for nothing, and every row is kept with its answer."""

_SIMULATED_ROWS_MAX = 40_000
_SIMULATED_ANSWER_ROWS_MAX = 200_000
_DRAWS_MIN = 40
_DRAWS_MAX = 400


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """The table of an answer: columns (name, type, kind), and four arrays of the same shape, row by row."""

    columns: tuple[tuple[str, str, str], ...]
    rows: list[list[Any]]
    standard_errors: list[list[float | None]]
    lows: list[list[float | int | None]]
    highs: list[list[float | int | None]]


def shapes(cores: Sequence[BoundedCore]) -> list[ShellTable]:
    """The released tables of the cores without rows: what the shell is checked against before anything is spent."""
    tables = []
    for core in cores:
        described = core.described
        columns = [ShellColumn(key.name, key.type) for key in described.keys.columns]
        columns += [
            ShellColumn(e.name, ColumnType.INTEGER if e.integer else ColumnType.NUMBER) for e in described.estimates
        ]
        tables.append(ShellTable(described.name, (*columns, ShellColumn(ROW, ColumnType.INTEGER))))
    return tables


def check_types(types: Sequence[tuple[str, str]], shell_plan: Shell) -> None:
    """Refuses answers whose columns no format can carry, before anything is spent (LESSONS 4)."""
    findings = [
        Finding(
            code="unsupported_type",
            what=f'the answer\'s column "{output.name}" is refused',
            why=f"It is of type {type_.split('(')[0]}, which answers do not have.",
            instead=("cast it to VARCHAR, DOUBLE, BIGINT, DATE or TIMESTAMP",),
        )
        for output, (_, type_) in zip(shell_plan.outputs, types, strict=False)
        if type_.split("(")[0] not in _ANSWER_TYPES
    ]
    if findings:
        raise Refused(findings)


def assemble(
    shell_plan: Shell,
    types: tuple[tuple[str, str], ...] | None,
    released: Sequence[ReleasedTable],
    *,
    shell: ShellEngine,
    confidence: Fraction,
    timeout_seconds: float,
    owner: str,
) -> AnswerRows:
    """The answer's rows. Errors: ExecutionFailed when the shell fails on the released values, or makes too many."""
    by_name = {table.name: {column.name: column for column in table.columns} for table in released}
    outputs = shell_plan.outputs
    if shell_plan.trivial:
        table = released[0]
        chosen = [by_name[table.name][output.column or ""] for output in outputs]
        count = table.rows
        return AnswerRows(
            columns=tuple((o.name, _TYPE_NAMES[c.type], o.kind) for o, c in zip(outputs, chosen, strict=True)),
            rows=[[_plain(c.values[i]) for c in chosen] for i in range(count)],
            standard_errors=[[_at(c.standard_errors, i) for c in chosen] for i in range(count)],
            lows=[[_at(c.lows, i) for c in chosen] for i in range(count)],
            highs=[[_at(c.highs, i) for c in chosen] for i in range(count)],
        )
    assert types is not None
    result = shell.run(
        [_shell_table(table) for table in released],
        shell_plan.sql,
        timeout_seconds=timeout_seconds,
        owner=owner,
        rows_max=max(_ANSWER_ROWS_MIN, sum(table.rows for table in released)),
    )
    spread = _simulate(shell_plan, released, shell, confidence, timeout_seconds, owner)
    answer = AnswerRows(
        columns=tuple((o.name, t, o.kind) for o, (_, t) in zip(outputs, types[: len(outputs)], strict=True)),
        rows=[],
        standard_errors=[],
        lows=[],
        highs=[],
    )
    for row in result.rows:
        values, identity = row[: len(outputs)], row[len(outputs) :]
        errors: list[tuple[float | None, Any, Any]] = []
        for place, output in enumerate(outputs):
            if output.kind == "released" and output.identity is not None and output.core and output.column:
                column = by_name[output.core][output.column]
                where = identity[output.identity]
                errors.append(
                    (None, None, None)
                    if where is None
                    else (_at(column.standard_errors, where), _at(column.lows, where), _at(column.highs, where))
                )
            elif output.kind == "derived":
                errors.append(spread.get((tuple(identity), place), (None, None, None)))
            else:
                errors.append((None, None, None))
        answer.rows.append([_plain(value) for value in values])
        answer.standard_errors.append([e[0] for e in errors])
        answer.lows.append([e[1] for e in errors])
        answer.highs.append([e[2] for e in errors])
    return answer


def _shell_table(table: ReleasedTable) -> ShellTable:
    columns = [ShellColumn(column.name, column.type, column.values) for column in table.columns]
    return ShellTable(table.name, (*columns, ShellColumn(ROW, ColumnType.INTEGER, tuple(range(table.rows)))))


def _simulate(
    shell_plan: Shell,
    released: Sequence[ReleasedTable],
    shell: ShellEngine,
    confidence: Fraction,
    timeout_seconds: float,
    owner: str,
) -> dict[tuple[tuple[Any, ...], int], tuple[float | None, float | None, float | None]]:
    """Standard error and interval of every derived cell, by (row identity, column); empty when unknown."""
    rows = sum(table.rows for table in released)
    if shell_plan.simulation is None or rows == 0:
        return {}
    draws = min(_DRAWS_MAX, _SIMULATED_ROWS_MAX // rows)
    matrices = {table.name: _replicates(table, draws) for table in released}
    wanted = [matrices[t.name].get(c.name) for t in released for c in t.columns if c.role == "released"]
    draws = min((0 if matrix is None else len(matrix) for matrix in wanted), default=0)
    if draws < _DRAWS_MIN:
        return {}
    tables = []
    for table in released:
        columns = []
        for column in table.columns:
            if column.role == "key":
                columns.append(ShellColumn(column.name, column.type, column.values * draws))
            else:
                flat = matrices[table.name][column.name][:draws].reshape(-1)
                columns.append(ShellColumn(column.name, ColumnType.NUMBER, _finite(flat)))
        columns.append(ShellColumn(ROW, ColumnType.INTEGER, tuple(range(table.rows)) * draws))
        replicate = np.repeat(np.arange(draws), table.rows)
        columns.append(ShellColumn(REPLICATE, ColumnType.INTEGER, replicate.tolist()))
        tables.append(ShellTable(table.name, tuple(columns)))
    try:
        result = shell.run(
            tables,
            shell_plan.simulation.sql,
            timeout_seconds=timeout_seconds,
            owner=owner,
            rows_max=_SIMULATED_ANSWER_ROWS_MAX,
        )
    except ExecutionFailed:
        return {}  # the intervals are unknown; the answer itself is not touched
    derived = [i for i, output in enumerate(shell_plan.outputs) if output.kind == "derived"]
    width = len(shell_plan.outputs)
    samples: dict[tuple[tuple[Any, ...], int], list[float]] = defaultdict(list)
    for row in result.rows:
        identity = tuple(row[width + 1 :])
        for place in derived:
            value = row[place]
            if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value):
                samples[identity, place].append(float(value))
    alpha = 1 - float(confidence)
    return {cell: _spread(values, alpha) for cell, values in samples.items() if len(values) >= 0.9 * draws}


def _spread(values: Sequence[float], alpha: float) -> tuple[float | None, float | None, float | None]:
    """Standard error and interval of one simulated cell.

    Values that are all equal (a rank that the noise does not move) tell that another one is rare, not that there is
    none: with 95 % confidence its probability is below 3/n (Hanley and Lippman-Hand 1983). So their standard error is
    unknown, and the one value is the interval only where that is less than the interval may miss.
    """
    array = np.asarray(values)
    if (array == array[0]).all():
        only = float(array[0]) if alpha * len(array) >= 3 else None
        return None, only, only
    # Quantiles of simulated values are simulated values: a rank lies between ranks, not between 1.3 and 2.
    low = np.quantile(array, alpha / 2, method="lower")
    high = np.quantile(array, 1 - alpha / 2, method="higher")
    return float(array.std()), float(low), float(high)


def _replicates(table: ReleasedTable, draws: int) -> dict[str, Any]:
    """Per released column its replicates (draws x rows): its sums with fresh noise, or its standard errors'."""
    released = [column for column in table.columns if column.role == "released"]
    if table.sums:
        return simulate(table.sums, draws)
    return {column.name: approximate_replicates(column, draws) for column in released}


def _finite(values: Any) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _at(values: Sequence[Any], place: int) -> Any:
    if not values:
        return None
    value = values[place]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """A value as JSON holds it: dates as ISO text, decimals as numbers, infinities as null."""
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# The stored form of a release


_STORED_VERSION = 2
"""Version 1 had no noisy sums: its intervals are widened by a factor, or unknown."""


def to_stored(table: ReleasedTable) -> bytes:
    """A released table as bytes for the ledger: noisy values, errors, notes and the noisy sums; never replicates."""
    return json.dumps(
        {
            "version": _STORED_VERSION,
            "rows": table.rows,
            "confidence": table.confidence,
            "columns": [
                {
                    "name": c.name,
                    "role": c.role,
                    "type": c.type.value,
                    "values": [_plain(v) for v in c.values],
                    "standard_errors": list(c.standard_errors),
                    "lows": list(c.lows),
                    "highs": list(c.highs),
                    "linear": c.linear,
                }
                for c in table.columns
            ],
            "notes": [
                {
                    "statistic": n.statistic,
                    "mechanism": n.mechanism,
                    "scale": n.scale,
                    "sensitivity": n.sensitivity,
                    "argument": n.argument,
                    "share": n.share,
                    "estimates": list(n.estimates),
                }
                for n in table.notes
            ],
            "statistics": sums_to_plain(table.sums or ()),
        },
        separators=(",", ":"),
    ).encode()


def from_stored(body: bytes, name: str, confidence: Fraction) -> ReleasedTable:
    """A stored release under the name of a core, with intervals that hold at the asked confidence.

    The noisy sums are stored with the law of their noise, so that errors and intervals are those of a fresh release at
    any confidence. Version 1 had no sums: a lower confidence than the stored one keeps the intervals, which cover at
    least as often; a higher one widens those of linear columns, and those of ratios are unknown then.
    """
    stored = json.loads(body)
    notes = tuple(MechanismNote(**{**note, "estimates": tuple(note["estimates"])}) for note in stored["notes"])
    gaussian = {e: note.mechanism.startswith("gaussian") for note in notes for e in note.estimates}
    before, after = float(Fraction(stored["confidence"])), float(confidence)
    sums = sums_from_plain(stored["statistics"]) if stored["version"] >= 2 else None
    known = released_columns(sums, two_sided_alpha(confidence)) if sums else {}
    columns = []
    for column in stored["columns"]:
        type_ = ColumnType(column["type"])
        if column["name"] in known:
            # The values are those that were told; only their errors are computed again.
            values = tuple(_read(value, type_) for value in column["values"])
            columns.append(replace(known[column["name"]], values=values))
            continue
        factor: float | None = 1.0
        if after > before:
            gaussian_noise = gaussian.get(column["name"], False)
            factor = _factor(before, after, gaussian=gaussian_noise) if column.get("linear") else None
        columns.append(
            ReleasedColumn(
                name=column["name"],
                role=column["role"],
                type=type_,
                values=tuple(_read(value, type_) for value in column["values"]),
                standard_errors=tuple(column["standard_errors"]),
                lows=_widened(column["values"], column["lows"], factor, side=-1),
                highs=_widened(column["values"], column["highs"], factor, side=1),
                linear=bool(column.get("linear")),
            )
        )
    return ReleasedTable(
        name=name,
        rows=stored["rows"],
        columns=tuple(columns),
        confidence=str(confidence),
        notes=notes,
        sums=sums,
    )


def _factor(before: float, after: float, *, gaussian: bool) -> float:
    """How much wider an interval has to be at a higher confidence.

    Exact for one normal or Laplace variable. A sum of Laplace variables needs less: its quantile is the larger one to
    begin with, and grows no faster with the logarithm of the tail.
    """
    if gaussian:
        return NormalDist().inv_cdf((1 + after) / 2) / NormalDist().inv_cdf((1 + before) / 2)
    return math.log(1 - after) / math.log(1 - before)


def _widened(values: Sequence[Any], edges: Sequence[Any], factor: float | None, *, side: int) -> tuple[Any, ...]:
    """The edges further from the values, whole ones to the next whole number outside; None when nobody knows."""
    if factor == 1.0 or not edges:
        return tuple(edges)
    if factor is None:
        return (None,) * len(edges)
    widened: list[Any] = []
    for value, edge in zip(values, edges, strict=True):
        if value is None or edge is None:
            widened.append(None)
            continue
        if isinstance(value, int) and isinstance(edge, int):
            # Both were rounded: together they may be one nearer to each other than the numbers they stand for.
            widened.append(value + side * math.ceil((abs(edge - value) + 1) * factor))
        else:
            widened.append(value + (edge - value) * factor)
    return tuple(widened)


def _read(value: Any, type_: ColumnType) -> Any:
    if value is None:
        return None
    if type_ is ColumnType.DATE:
        return datetime.date.fromisoformat(value)
    if type_ is ColumnType.TIMESTAMP:
        return datetime.datetime.fromisoformat(value)
    return value
