"""The shell engine: public SQL over released tables, in workers that have never seen anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engines.arrays import (
    Column,
    columns_of,
    decode_values,
    encode_values,
)
from engines.encoding import encode_parameters, encode_statement, is_unicode
from engines.frames import Frame, FrameFault
from engines.incidents import Incidents
from engines.pool import Pool, Pooled
from engines.process import Failure, WorkerOptions
from engines.texts import AskedText, Stopped, TextRefused, encode_text, read_stopped
from engines.twin import twin_of
from privacy.policy import ColumnType, Dataset
from privacy.refusal import ExecutionFailed
from privacy.statement import Parameter, Statement, Step
from privacy.values import Cell, Json

__all__ = [
    "CHECK_SECONDS",
    "PlanFailed",
    "Sample",
    "ShellColumn",
    "ShellEngine",
    "ShellInvalid",
    "ShellResult",
    "ShellSlow",
    "ShellTable",
]

_ADDRESS_SPACE_MB: Final = 1024
"""Beside the engine's own limit: a worker that has done nothing has mapped 0.4 GB."""

_ANSWER_BYTES_MAX: Final = 64 << 20
CHECK_SECONDS: Final = 5.0
"""How long a check may take: many times what a text takes, also on a busy machine."""

_WAIT_SECONDS: Final = 30.0
"""How long a check waits for the checks of others, who take turns: longer than those of several callers together."""

_PATIENCE: Final = 6
"""How many times its own time a request waits for its turn. With less, one caller's slow queries would fail others'."""


@dataclass(frozen=True, slots=True)
class ShellColumn:
    """A column of a released table; `values` has one entry per row and is not read by `check`."""

    name: str
    type: ColumnType
    values: Sequence[Cell] = ()


@dataclass(frozen=True, slots=True)
class ShellTable:
    """A released table under the name that the shell's SQL uses."""

    name: str
    columns: tuple[ShellColumn, ...]

    def __post_init__(self) -> None:
        assert self.columns, "a released table needs a column"
        assert len({len(column.values) for column in self.columns}) == 1, "columns of different length"


Sample = Sequence[Sequence[str | None]]
"""One row for each table, its values as text."""


@dataclass(frozen=True, slots=True)
class ShellResult:
    """Columns (name, engine type as text) and rows of Python values."""

    columns: tuple[tuple[str, str], ...]
    rows: list[tuple[Cell, ...]]


class ShellInvalid(Exception):
    """The SQL does not bind on the released tables' names and types. Carries no message of the engine.

    `place` is the character of the SQL whose value does not fit, None where it is not known. `fails` says that it
    binds, and fails on every row that it was tried on.
    """

    def __init__(self, place: int | None = None, *, fails: bool = False) -> None:
        super().__init__("the outer part of the query does not fit the released columns")
        self.place = place
        self.fails = fails


class ShellSlow(Exception):
    """The SQL could not be checked within its time. Carries no message of the engine."""

    def __init__(self) -> None:
        super().__init__("the outer part of the query takes too long to check")


class PlanFailed(Exception):
    """A generated statement cannot be planned. Carries no message of the engine."""

    def __init__(self) -> None:
        super().__init__("a statement cannot be planned on an empty copy of the tables")


class ShellEngine(Pooled):
    """Runs shell SQL in worker processes. Safe to use from many threads.

    Every run has a database of its own, in memory, with nothing but the tables of the call; nothing survives it.
    Results of more than `rows_max` rows, or `cells_max` of rows times columns, fail. Slots are given in turn to
    the owners of requests (turns.py); a check never waits for a run.
    """

    def __init__(
        self,
        *,
        workers: int = 2,
        threads: int = 1,
        memory_limit_mb: int = 512,
        recycle_after: int = 500,
        rows_max: int = 1_000_000,
        cells_max: int = 1_000_000,
        temp_directory: Path | None = None,
        incidents: Incidents | None = None,
    ) -> None:
        """Start the workers in the background."""
        self._incidents = incidents or Incidents()
        options = WorkerOptions(
            kind="shell",
            threads=threads,
            memory_limit_mb=memory_limit_mb,
            address_space_mb=_ADDRESS_SPACE_MB + memory_limit_mb,
            file_mb=0,
            answer_bytes_max=_ANSWER_BYTES_MAX,
            settings={"rows_max": rows_max, "cells_max": cells_max},
        )
        super().__init__(Pool(options, size=workers, recycle_after=recycle_after, directory=temp_directory))

    def check(
        self,
        tables: Sequence[ShellTable],
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        samples: Sequence[Sample] = (),
        others: Sequence[Sample] = (),
        timeout_seconds: float = CHECK_SECONDS,
        owner: str = "",
    ) -> tuple[tuple[str, str], ...]:
        """Names and engine types of the result columns, from binding on empty tables of the same types.

        Any type may come out, even one that no answer has: the caller refuses it, because `run` fails on it. On each
        sample, which has one row for each table, it is run: a text that is not a number, compared with a number, binds
        and fails on every row. What fails on the first numbers is run on the rest, on each of the `others`, and on all
        of these rows together: what fails each time is invalid too.
        Waits for other checks at most `_WAIT_SECONDS`: each ends in its time, and owners take turns.
        Errors: ShellInvalid when the SQL does not bind, when a value of a sample or a constant cannot be read as the
        type that it is compared with or cast to, or when it fails each time; ShellSlow when all of it takes longer than
        `timeout_seconds`, or more memory than a worker has; ExecutionFailed(started=False) when no worker was free or
        it died.
        """
        request = _request("check", tables, sql, parameters)
        if request is None:
            raise ShellInvalid
        request |= {"samples": [[list(row) for row in sample] for sample in samples]}
        request |= {"others": [[list(row) for row in sample] for sample in others]}
        answer = self._pool.call(
            request,
            timeout_seconds=timeout_seconds,
            parse=_checked,
            owner=owner,
            patience_seconds=_WAIT_SECONDS,
            brief=True,
        )
        if answer in (Failure.UNAVAILABLE, Failure.CRASHED):
            raise ExecutionFailed(started=False)
        if answer is Failure.INVALID:
            raise ShellInvalid
        if isinstance(answer, Failure):
            raise ShellSlow
        if isinstance(answer, _Misfit):
            before = None if answer.place is None else sql.encode()[: answer.place]
            place = None if before is None else len(before.decode(errors="ignore"))
            raise ShellInvalid(place, fails=answer.fails)
        return answer

    def plan(
        self,
        dataset: Dataset,
        statements: Sequence[Statement],
        *,
        text: AskedText | None = None,
        timeout_seconds: float = 5.0,
        owner: str = "",
    ) -> None:
        """Plan private statements on the dataset's empty twin, and run them on no rows, before anything is charged.

        The `text` that they come from is bound on the twin first, in the same round trip; it is never run.
        Waits for other checks only, which touch no row: waiting reveals nothing. The worker holds released numbers at
        most, and the twin none.
        Errors: TextRefused when the engine does not read the text in time; PlanFailed when it refuses a statement,
        or takes longer than `timeout_seconds`; ExecutionFailed(started=False) when no worker was free.
        """
        twin = twin_of(dataset)
        encoded = [encode_statement(statement) for statement in statements]
        if any(statement is None for statement in encoded):
            self._incidents.note("unplannable", "unsent")
            raise PlanFailed
        asked = None if text is None else encode_text(text)
        request: dict[str, Json] = {"operation": "plan", "twin": twin.name, "schema": twin.schema, "tables": None}
        request |= {"text": asked, "statements": encoded}
        answer = self._plan(request, timeout_seconds, owner)
        if answer is False:
            # This worker meets the twin for the first time.
            request["tables"] = list(twin.tables)
            answer = self._plan(request, timeout_seconds, owner)
        if answer is Failure.UNAVAILABLE:
            raise ExecutionFailed(started=False)
        if text is not None and isinstance(answer, Stopped):
            raise answer.refusal(text)
        if text is not None and isinstance(answer, Failure):
            # A text may be written to take long; a statement that cannot be planned is our fault.
            self.plan(dataset, statements, timeout_seconds=timeout_seconds, owner=owner)
            raise TextRefused(Step.END)
        if answer is not True:
            self._incidents.note("unplannable", answer.value if isinstance(answer, Failure) else "unknown")
            raise PlanFailed

    def _plan(self, request: Mapping[str, Json], timeout_seconds: float, owner: str) -> bool | Stopped | Failure:
        return self._pool.call(
            request,
            timeout_seconds=timeout_seconds,
            parse=_planned,
            owner=owner,
            patience_seconds=_WAIT_SECONDS,
            brief=True,
        )

    def run(
        self,
        tables: Sequence[ShellTable],
        sql: str,
        parameters: Sequence[Parameter] = (),
        *,
        timeout_seconds: float,
        owner: str = "",
        rows_max: int | None = None,
        text_max: int | None = None,
    ) -> ShellResult:
        """The rows of the SQL over the tables, at most `rows_max` (the engine's own limit when None).

        With `text_max` its strings have at most that many bytes, or 64 for each value where that is more.

        INTEGER columns become BIGINT, or HUGEINT when a value needs more than 64 bits; NUMBER becomes DOUBLE.
        Errors: ExecutionFailed for everything that goes wrong, without a cause or context.
        """
        request = _request("run", tables, sql, parameters)
        columns = _encoded(tables)
        if request is None or columns is None:
            raise ExecutionFailed(started=False)
        header = request | {
            "rows_max": rows_max,
            "text_max": text_max,
            "columns": [column.description for column in columns],
        }
        buffers = [buffer for column in columns for buffer in column.buffers]
        answer = self._pool.call(
            header,
            buffers,
            timeout_seconds=timeout_seconds,
            parse=_result,
            owner=owner,
            patience_seconds=_PATIENCE * timeout_seconds,
        )
        if isinstance(answer, Failure):
            raise ExecutionFailed(started=answer.started)
        return answer


def _request(
    operation: str, tables: Sequence[ShellTable], sql: str, parameters: Sequence[Parameter]
) -> dict[str, Json] | None:
    """What both operations ask, or None for what cannot be sent."""
    items = encode_parameters(parameters)
    names = [name for table in tables for name in (table.name, *(column.name for column in table.columns))]
    if items is None or not is_unicode(sql, *names):
        return None
    described: list[Json] = [
        {
            "name": table.name,
            "rows": len(table.columns[0].values),
            "columns": [[column.name, column.type.value] for column in table.columns],
        }
        for table in tables
    ]
    return {"operation": operation, "tables": described, "sql": sql, "parameters": items}


def _encoded(tables: Sequence[ShellTable]) -> list[Column] | None:
    """The columns of all tables, or None when a value does not fit its declared type."""
    try:
        return [_encode(column) for table in tables for column in table.columns]
    except (TypeError, ValueError, OverflowError):
        return None


def _encode(column: ShellColumn) -> Column:
    kind = column.type.value
    if kind == "integer":
        try:
            return encode_values(kind, column.values)
        except OverflowError:
            return encode_values("huge", column.values)
    return encode_values(kind, column.values)


def _planned(frame: Frame) -> bool | Stopped:
    """Whether the worker knows the twin and planned everything, or where it stopped reading the text."""
    known, stopped = frame.header["known"], frame.header["stopped"]
    if type(known) is not bool:
        raise FrameFault
    if stopped is None:
        return known
    return read_stopped(stopped)


@dataclass(frozen=True, slots=True)
class _Misfit:
    """A value that cannot be read as the type that it meets, and the byte of the SQL where it stands; or what fails."""

    place: int | None
    fails: bool


def _checked(frame: Frame) -> tuple[tuple[str, str], ...] | _Misfit:
    """The columns, or what does not fit."""
    place, fails = frame.header["place"], frame.header["fails"]
    if frame.header["described"] == []:
        if type(fails) is not bool or (place is not None and (type(place) is not int or place < 0)):
            raise FrameFault
        return _Misfit(place, fails)
    return _described(frame)


def _described(frame: Frame) -> tuple[tuple[str, str], ...]:
    described = frame.header["described"]
    if not isinstance(described, list) or not described:
        raise FrameFault
    pairs: list[tuple[str, str]] = []
    for item in described:
        name, type_name = item
        if type(name) is not str or type(type_name) is not str:
            raise FrameFault
        pairs.append((name, type_name))
    return tuple(pairs)


def _result(frame: Frame) -> ShellResult:
    names = _described(frame)
    rows = frame.header["rows"]
    columns = columns_of(frame)
    if type(rows) is not int or rows < 0 or len(columns) != len(names):
        raise FrameFault
    values = [decode_values(description, buffers, rows) for description, buffers in columns]
    return ShellResult(names, list(zip(*values, strict=True)))
