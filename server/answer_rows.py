"""From released tables to the rows of an answer, with an error bar for every cell that has one.

Three kinds of columns: keys have no error; released columns keep the interval of their mechanism; derived columns get
theirs by running the shell again over other numbers (`derived/`; post-processing, so it is free).
"""

from __future__ import annotations

import datetime
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

from engines.shell import Sample, ShellColumn, ShellEngine, ShellTable
from mechanisms.families import BY_MECHANISM, FAMILIES, NoiseFamily
from mechanisms.interval import two_sided_alpha
from mechanisms.noisy_sums import released_columns, sums_from_plain, sums_to_plain
from mechanisms.released_table import ReleasedTable
from privacy.policy import ColumnType, KeyValue
from privacy.refusal import Finding, Refused
from privacy.release import BoundsNote, BoundsSource, ColumnKind, MechanismNote, NormNote, NormSource, ReleasedColumn
from privacy.values import Cell
from server.arranging import arranged
from server.derived.cells import Errors, IntervalMethod, NoInterval
from server.derived.error_bars import shell_errors
from sql_rewrite.bound import BoundedCore
from sql_rewrite.plan import Shell
from sql_rewrite.released import ROW

__all__ = [
    "ROWS_MIN",
    "TEXT_MIN",
    "AnswerRows",
    "IntervalReason",
    "assemble",
    "check_types",
    "from_stored",
    "samples",
    "shapes",
    "spread_samples",
    "to_stored",
]

_ANSWER_TYPES = frozenset(
    "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT DOUBLE VARCHAR "
    "BOOLEAN DATE TIMESTAMP INTERVAL NULL".split()
) | {'"NULL"'}
_DECIMAL = re.compile(r"DECIMAL\(\d{1,2},\d{1,2}\)\Z")
ROWS_MIN = 10_000
"""Rows that every answer may have; a larger one may have as many as were released. Joins of released numbers make more
without telling more, for free, and every row is kept with its answer."""

TEXT_MIN = 4 << 20
"""Bytes of text that every answer may have, and one of much released text a few times that: STRING_AGG over windows
makes the square of what was released, for free, and all of it is kept too."""

_TEXTS = 4


Number = TypeVar("Number", bound=float)
Plain = str | float | bool | None
"""A cell as JSON holds it."""


@dataclass(frozen=True, slots=True)
class IntervalReason:
    """Why cells of a column have no interval: its code. `rows` is None when it is all of them."""

    column: int
    code: NoInterval
    rows: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """The table of an answer: columns (name, type, kind), and four arrays of the same shape, row by row.

    `methods` says of each column where its intervals come from, None without one; `reasons` why cells have none.
    """

    columns: tuple[tuple[str, str, str], ...]
    rows: list[list[Plain]]
    standard_errors: list[list[float | None]]
    lows: list[list[float | int | None]]
    highs: list[list[float | int | None]]
    methods: tuple[IntervalMethod | None, ...] = ()
    reasons: tuple[IntervalReason, ...] = ()


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


_SAMPLES: Mapping[ColumnType, tuple[str | None, ...]] = {
    ColumnType.INTEGER: (None, "7", "0", "1000000"),
    ColumnType.NUMBER: (None, "7.5", "0", "1000000"),
}
"""Values of released columns that a text above them is tried on: nothing, small, zero and large."""


def samples(cores: Sequence[BoundedCore], shell_plan: Shell, public: Sequence[ShellTable] = ()) -> list[Sample]:
    """Rows that the shell is tried on before anything is spent: made-up numbers, and public keys as they are declared.

    Of `public` tables, which follow those of the cores, the first row, one in the middle and the last one.

    None for a shell that only selects columns, sorts and limits: no engine runs it, and nothing in it can fail. Keys
    that are not public are NULL.
    """
    if shell_plan.arrangement is not None:
        return []
    count = len(_SAMPLES[ColumnType.INTEGER])
    return [
        [*(_sample(core, place, count) for core in cores), *(_public_row(table, place, count) for table in public)]
        for place in range(count)
    ]


_SPREAD = 16
"""Powers of ten that made-up numbers of one row are taken from: no two columns of a usual question have the same."""


def spread_samples(cores: Sequence[BoundedCore], public: Sequence[ShellTable] = ()) -> list[Sample]:
    """Rows for what fails on `samples`: numbers that differ from column to column, upwards, downwards and negative."""
    rows: list[Sample] = []
    for number, (first, step, sign) in enumerate(((0, 1, ""), (_SPREAD - 1, -1, ""), (0, 1, "-")), start=1):
        places = itertools.count(first, step)
        made = [_spread_row(core, places, sign) for core in cores]
        rows.append([*made, *(_public_row(table, number, 4) for table in public)])
    return rows


def _public_row(table: ShellTable, place: int, count: int) -> list[str | None]:
    """One row of a public table as text, `place` of so many: NULLs first, then from its first row to its last."""
    rows = len(table.columns[0].values)
    if not place or not rows:
        return [None] * len(table.columns)
    at = (rows - 1) * (place - 1) // (count - 2)
    return [None if (value := column.values[at]) is None else str(value) for column in table.columns]


def _spread_row(core: BoundedCore, places: Iterator[int], sign: str) -> list[str | None]:
    described = core.described
    cells = described.keys.domain
    cell = _without_null(cells, len(cells) - 1) if cells else (None,) * len(described.keys.columns)
    numbers = [f"{sign}{10 ** (next(places) % _SPREAD)}" for _ in described.estimates]
    return [*(None if value is None else str(value) for value in cell), *numbers, "1"]


def _without_null(cells: Sequence[Sequence[KeyValue]], place: int) -> Sequence[KeyValue]:
    """The cell at a place, or the nearest one before it without NULL, which hides what fails on values."""
    return next((cell for cell in reversed(cells[: place + 1]) if None not in cell), cells[place])


def _sample(core: BoundedCore, place: int, count: int) -> list[str | None]:
    """One row of a core's released table: the first cell, the last one, and some between."""
    described = core.described
    cells = described.keys.domain
    cell: Sequence[KeyValue] = (None,) * len(described.keys.columns)
    if cells and place:
        cell = _without_null(cells, (len(cells) - 1) * (place - 1) // (count - 2))
    numbers = [
        _SAMPLES[ColumnType.INTEGER if estimate.integer else ColumnType.NUMBER][place]
        for estimate in described.estimates
    ]
    return [*(None if value is None else str(value) for value in cell), *numbers, "0"]


def check_types(types: Sequence[tuple[str, str]], shell_plan: Shell) -> None:
    """Refuses answers whose columns no format can carry, before a charge that would buy nothing."""
    findings = [
        Finding(
            code="unsupported_type",
            what=f'the answer\'s column "{output.name}" is refused',
            why=f"It is of type {_shortened(type_)}, which answers do not have.",
            instead=("cast it to VARCHAR, DOUBLE, BIGINT, DATE or TIMESTAMP",),
        )
        for output, (_, type_) in zip(shell_plan.outputs, types, strict=False)
        if type_ not in _ANSWER_TYPES and not _DECIMAL.match(type_)
    ]
    if findings:
        raise Refused(findings)


def _shortened(type_: str) -> str:
    """A type without what it is made of."""
    name, made, _ = type_.partition("(")
    return name + "[]" if made and type_.endswith("]") else name


def assemble(
    shell_plan: Shell,
    types: tuple[tuple[str, str], ...] | None,
    released: Sequence[ReleasedTable],
    *,
    shell: ShellEngine,
    confidence: Fraction,
    timeout_seconds: float,
    owner: str,
    public: Sequence[ShellTable] = (),
) -> AnswerRows:
    """The answer's rows. `public` are the public tables that the shell reads.

    Errors: ExecutionFailed when the shell fails on the released values, or makes too many rows or too long texts.
    """
    by_name = {table.name: {column.name: column for column in table.columns} for table in released}
    outputs = shell_plan.outputs
    if shell_plan.trivial:
        table = released[0]
        chosen = [by_name[table.name][output.column or ""] for output in outputs]
        count = table.rows
        return AnswerRows(
            columns=tuple((o.name, c.type.sql, o.kind) for o, c in zip(outputs, chosen, strict=True)),
            rows=[[_plain(c.values[i]) for c in chosen] for i in range(count)],
            standard_errors=[[_at(c.standard_errors, i) for c in chosen] for i in range(count)],
            lows=[[_at(c.lows, i) for c in chosen] for i in range(count)],
            highs=[[_at(c.highs, i) for c in chosen] for i in range(count)],
            methods=tuple(None if c.role == ColumnKind.KEY else IntervalMethod.NOISE for c in chosen),
            reasons=_unknown(chosen, count),
        )
    assert types is not None
    found: Sequence[tuple[Cell, ...]]
    if shell_plan.arrangement is not None:
        found = arranged(released[0], shell_plan.arrangement)
    else:
        found = shell.run(
            [*(_shell_table(table) for table in released), *public],
            shell_plan.sql,
            timeout_seconds=timeout_seconds,
            owner=owner,
            rows_max=max(ROWS_MIN, sum(table.rows for table in released)),
            text_max=max(TEXT_MIN, _TEXTS * sum(_text_of(table) for table in released)),
        ).rows
    errors = shell_errors(
        shell_plan,
        released,
        found,
        shell=shell,
        confidence=confidence,
        timeout_seconds=timeout_seconds,
        owner=owner,
        public=public,
    )
    width = len(outputs)
    return AnswerRows(
        columns=tuple((o.name, t, o.kind) for o, (_, t) in zip(outputs, types[:width], strict=True)),
        rows=[[_plain(value) for value in row[:width]] for row in found],
        standard_errors=[[cell.error for cell in row] for row in errors],
        lows=[[cell.low for cell in row] for row in errors],
        highs=[[cell.high for cell in row] for row in errors],
        methods=tuple(
            next((row[place].method for row in errors if row[place].method is not None), None) for place in range(width)
        ),
        reasons=_reasons(errors),
    )


def _text_of(table: ReleasedTable) -> int:
    """Bytes of the text that a release has."""
    texts = (column for column in table.columns if column.type is ColumnType.TEXT)
    return sum(len(value.encode(errors="replace")) for column in texts for value in column.values if type(value) is str)


def _unknown(columns: Sequence[ReleasedColumn], count: int) -> tuple[IntervalReason, ...]:
    """Columns of a stored release whose intervals nobody knows at this confidence."""
    return tuple(
        IntervalReason(place, NoInterval.STORED_WITHOUT_SUMS, None)
        for place, column in enumerate(columns)
        if count and column.role == ColumnKind.RELEASED and all(low is None for low in column.lows)
    )


def _reasons(errors: Errors) -> tuple[IntervalReason, ...]:
    """Why cells have no interval, by column and reason."""
    found: dict[tuple[int, NoInterval], list[int]] = {}
    for number, row in enumerate(errors):
        for place, cell in enumerate(row):
            if cell.reason is not None:
                found.setdefault((place, cell.reason), []).append(number)
    return tuple(
        IntervalReason(place, code, None if len(rows) == len(errors) else tuple(rows))
        for (place, code), rows in sorted(found.items())
    )


def _shell_table(table: ReleasedTable) -> ShellTable:
    columns = [ShellColumn(column.name, column.type, column.values) for column in table.columns]
    return ShellTable(table.name, (*columns, ShellColumn(ROW, ColumnType.INTEGER, tuple(range(table.rows)))))


def _at(values: Sequence[Number | None], place: int) -> Number | None:
    if not values:
        return None
    value = values[place]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Cell) -> Plain:
    """A value as JSON holds it: dates as ISO text, decimals as numbers, infinities as null."""
    if value is None or type(value) is int or type(value) is str:  # nearly all of them
        return value
    if isinstance(value, datetime.date):
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
            "family": table.family,
            "statistics": sums_to_plain(table.sums or ()),
            **({"norms": [asdict(note) for note in table.norms]} if table.norms else {}),
            **({"bounds": [asdict(note) for note in table.bounds]} if table.bounds else {}),
            **({"steps": {name: str(step) for name, step in table.steps}} if table.steps else {}),
            **({"clipped_to": [list(map(str, one)) for one in table.clipped_to]} if table.clipped_to else {}),
            **({"scaled_to": {name: str(norm) for name, norm in table.scaled_to}} if table.scaled_to else {}),
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
    # Earlier versions did not store the family: it is that of any of their mechanisms.
    family = NoiseFamily(stored["family"]) if stored.get("family") else _family_of(notes)
    before, after = float(Fraction(stored["confidence"])), float(confidence)
    sums = sums_from_plain(stored["statistics"]) if stored["version"] >= 2 else None
    known = released_columns(sums, two_sided_alpha(confidence)) if sums else {}
    columns = []
    for column in stored["columns"]:
        type_ = ColumnType(column["type"])
        if column["name"] in known:
            # The values are those that were released; only their errors are computed again.
            values = tuple(_read(value, type_) for value in column["values"])
            columns.append(replace(known[column["name"]], values=values))
            continue
        factor: float | None = 1.0
        if after > before:
            linear = bool(column.get("linear"))
            factor = FAMILIES[family].widening(before, after) if linear and family is not None else None
        columns.append(
            ReleasedColumn(
                name=column["name"],
                role=ColumnKind(column["role"]),
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
        family=family,
        norms=tuple(_norm_note(note) for note in stored.get("norms", ())),
        steps=tuple((name, Fraction(step)) for name, step in stored.get("steps", {}).items()),
        clipped_to=tuple(
            (of, column, Fraction(lower), Fraction(upper)) for of, column, lower, upper in stored.get("clipped_to", ())
        ),
        scaled_to=tuple((name, Fraction(norm)) for name, norm in stored.get("scaled_to", {}).items()),
        bounds=tuple(
            BoundsNote(**{**note, "source": BoundsSource(note["source"])}) for note in stored.get("bounds", ())
        ),
    )


def _norm_note(note: Mapping[str, Any]) -> NormNote:
    """What `to_stored` wrote of a note."""
    return NormNote(**{**note, "estimates": tuple(note["estimates"]), "source": NormSource(note["source"])})


def _family_of(notes: Sequence[MechanismNote]) -> NoiseFamily | None:
    """The family of the noise that made a release; None of one without a mechanism."""
    return next((BY_MECHANISM[note.mechanism].name for note in notes), None)


def _widened(
    values: Sequence[float | None], edges: Sequence[float | None], factor: float | None, *, side: int
) -> tuple[float | None, ...]:
    """The edges further from the values, whole ones to the next whole number outside; None when nobody knows."""
    if factor == 1.0 or not edges:
        return tuple(edges)
    if factor is None:
        return (None,) * len(edges)
    widened: list[float | None] = []
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


def _read(value: Plain, type_: ColumnType) -> Cell:
    if isinstance(value, str) and type_ is ColumnType.DATE:
        return datetime.date.fromisoformat(value)
    if isinstance(value, str) and type_ is ColumnType.TIMESTAMP:
        return datetime.datetime.fromisoformat(value)
    return value
