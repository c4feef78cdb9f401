"""What questions would be answered like, tried on invented rows before budgets are opened: for the owner alone.

Each question takes the whole journey, at each price, some times: on rows that follow from declarations
(server/datasets/invented.py), in a home of its own that is thrown away, on accounts of its own. Its answers are
compared with what the same text gives on the same rows without noise, clipping and bounds. Not a row of people is read,
and nothing is charged; no route calls this, only a command.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from accountant.account import Limit
from accountant.filter import FilterKind
from accountant.ledger import Ledger
from accountant.request import Reuse
from engines.shell import ShellColumn, ShellEngine, ShellTable
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Refused
from privacy.values import Cell
from server.admitted import InFlight, Settled
from server.answer import Journey
from server.datasets.invented import Invented
from server.question import Question
from sql_rewrite.lift_clock import started as clock_of

__all__ = ["Bench", "ColumnError", "Tried", "questions_of", "try_question"]

_TRUTH_SECONDS = 30.0
_ROWS_MOST = 20_000

Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class ColumnError:
    """How far one column was off, over all rows that answers showed and all runs.

    `value` is the root mean square of the true values, `error` that of the differences, `stated` the mean of the
    standard errors that answers stated, where they did. Both are in a `unit` where the column is of intervals (seconds)
    or of dates and timestamps (days, and no value to be a part of). Of a column that no number says how far is off,
    which MODE chose or which is text, `right` is the part of cells that are the true ones.
    """

    name: str
    value: float | None
    error: float | None
    stated: float | None
    unit: str = ""
    right: float | None = None

    @property
    def relative(self) -> float | None:
        """The error as a part of the value."""
        return None if self.error is None or not self.value else self.error / self.value


@dataclass(frozen=True, slots=True)
class Tried:
    """One question at one price. `refused` says why there is no answer; `shown` is the part of the true rows shown."""

    sql: str
    epsilon: Fraction
    refused: str | None = None
    columns: tuple[ColumnError, ...] = ()
    shown: float | None = None


@dataclass(slots=True)
class Bench:
    """Where questions are tried: a journey over invented rows, and accounts that are opened as they are needed."""

    dataset: Dataset
    invented: Invented
    journey: Journey
    ledger: Ledger
    shell: ShellEngine
    limit: Limit
    _root: str | None = None
    _asked: Iterator[int] = field(default_factory=itertools.count)

    def answer(self, sql: str, epsilon: Fraction) -> dict[str, object]:
        """One answer, of an account that has paid for nothing yet. Errors: Refused, ExecutionFailed, LedgerError."""
        principal = self._principal()
        asked = Question(
            principal=principal,
            dataset=self.dataset.name,
            sql=sql,
            parameters={},
            epsilon=None,
            own_epsilon=epsilon,
            half_width=None,
            confidence=Fraction(95, 100),
            reuse=Reuse.NONE,
            max_staleness_s=None,
            account=None,
            idempotency_key=None,
            body_hash=hashlib.sha256(sql.encode(errors="replace")).hexdigest(),
            started=clock_of(sql, datetime.datetime.now(datetime.UTC)),
        )
        admitted = self.journey.admit(asked)
        assert not isinstance(admitted, InFlight)
        content = admitted.answer if isinstance(admitted, Settled) else self.journey.complete(admitted)
        body: dict[str, object] = json.loads(content)
        return body

    def truth(self, sql: str) -> list[tuple[Cell, ...]] | None:
        """What the text gives on the invented rows by itself; None where the engine does not read it so."""
        tables = [
            ShellTable(
                made.table.name,
                tuple(
                    ShellColumn(column.name, column.type, made.columns[column.name]) for column in made.table.columns
                ),
            )
            for made in self.invented.tables
        ]
        try:
            return self.shell.run(tables, sql, timeout_seconds=_TRUTH_SECONDS, rows_max=_ROWS_MOST).rows
        except ExecutionFailed:
            return None

    def _principal(self) -> str:
        if self._root is None:
            # As much as a root may have: what is tried is what one account pays, not what is left for others.
            most = Limit(Fraction(10**6), Fraction(1, 100))
            root = self.ledger.create_account(
                dataset=self.dataset.name, parent=None, principal=None, name="root",
                limit=most, filter=FilterKind.APPROXIMATE, space=self.dataset.space, actor="preview",
            )  # fmt: skip
            self._root = root.id
        name = f"preview{next(self._asked)}"
        kind = FilterKind.APPROXIMATE if self.limit.delta else FilterKind.PURE
        self.ledger.create_account(
            dataset=self.dataset.name, parent=self._root, principal=name, name=name,
            limit=self.limit, filter=kind, space=self.dataset.space, actor="preview",
        )  # fmt: skip
        return name


def questions_of(text: str) -> list[str]:
    """The questions of a file: separated by empty lines; lines that begin with two dashes are left out."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.strip():
            blocks.append([])
        elif not line.lstrip().startswith("--"):
            blocks[-1].append(line)
    return ["\n".join(block).strip().rstrip(";") for block in blocks if block]


def try_question(
    bench: Bench, sql: str, epsilons: Sequence[Fraction], *, runs: int, step: Callable[[], None] = lambda: None
) -> list[Tried]:
    """A question at several prices. A refusal is an outcome of its price; `step` is called after each answer."""
    truth = bench.truth(sql)
    tried = []
    for epsilon in epsilons:
        answers: list[dict[str, object]] = []
        refused: str | None = None
        for _ in range(runs):
            try:
                answers.append(bench.answer(sql, epsilon))
            except Refused as error:
                refused = f"{error.findings[0].what}: {error.findings[0].why}"
                break
            except ExecutionFailed:
                refused = "the query could not be completed"
                break
            step()
        tried.append(Tried(sql, epsilon, refused) if refused else _compared(sql, epsilon, answers, truth))
    return tried


def _compared(sql: str, epsilon: Fraction, answers: Sequence[dict[str, object]], truth: Sequence[Row] | None) -> Tried:
    """Answers beside what is true, row by row: by their keys, or by their place where there are none."""
    columns = _list(answers[0]["columns"])
    chosen = _chosen(sql, len(columns))
    keys = [place for place, column in enumerate(columns) if _kind(column) == "key" and place not in chosen]
    known: dict[tuple[str, ...], Row] = {}
    if truth is not None and all(len(row) == len(columns) for row in truth):
        known = {_identity(row, keys, place): row for place, row in enumerate(truth)}
    judged = {place: _Judged(place in chosen) for place in range(len(columns)) if place not in keys}
    shown = 0
    for answer in answers:
        errors = _list(answer["standard_errors"])
        for number, (row, error) in enumerate(zip(_list(answer["rows"]), errors, strict=True)):
            cells, told = _list(row), _list(error)
            true = known.get(_identity(cells, keys, number))
            shown += true is not None
            for place, one in judged.items():
                if isinstance(told[place], int | float):
                    one.stated.append(float(str(told[place])))
                if true is not None:
                    one.add(cells[place], true[place])
    found = [one.error(_name(columns[place])) for place, one in judged.items() if one.sizes or one.cells]
    part = shown / (len(known) * len(answers)) if known else None
    # Keys alone are judged by how many of them are the true ones.
    told_of = found or (known and not judged)
    return Tried(sql, epsilon, None if told_of else "its answer cannot be compared with a number", tuple(found), part)


@dataclass(slots=True)
class _Judged:
    """One column as its cells are compared; `chosen` where MODE or its like chose them."""

    chosen: bool
    sizes: list[tuple[float, float]] = field(default_factory=list)
    """The true number and the difference, of each cell that is a number."""
    stated: list[float] = field(default_factory=list)
    cells: int = 0
    right: int = 0
    unit: str = ""

    def add(self, cell: object, true: object) -> None:
        """Compares a cell with the true one."""
        (ours, unit), (theirs, _) = _measured(cell), _measured(true)
        if not self.chosen and ours is not None and theirs is not None:
            self.unit = unit
            self.sizes.append((0.0 if unit == "days" else theirs, ours - theirs))
        elif self.chosen or isinstance(cell, str | bool) or isinstance(true, str | bool):
            self.cells += 1
            self.right += _written(cell) == _written(true)

    def error(self, name: str) -> ColumnError:
        """What was found of all cells. Requires: there is one."""
        mean = sum(self.stated) / len(self.stated) if self.stated else None
        if not self.sizes:
            return ColumnError(name, None, None, mean, right=self.right / self.cells)
        value, error = (math.sqrt(sum(pair[end] ** 2 for pair in self.sizes) / len(self.sizes)) for end in (0, 1))
        return ColumnError(name, value, error, mean, self.unit)


_SPAN = re.compile(r"(?:(-?\d+) days? ?)?(?:(-?)(\d+):(\d\d):(\d\d(?:\.\d+)?))?")


def _measured(cell: object) -> tuple[float | None, str]:
    """The number of a cell and what it counts: seconds of an interval, days of a moment; None of anything else."""
    if isinstance(cell, bool):
        return None, ""
    if isinstance(cell, int | float | Decimal):
        return float(cell), ""
    if isinstance(cell, datetime.date):
        cell = cell.isoformat()
    if not isinstance(cell, str) or not cell:
        return None, ""
    span = _SPAN.fullmatch(cell)
    if span is not None:
        days, sign, *clock = span.groups()
        seconds = sum(float(part or 0) * size for part, size in zip(clock, (3_600, 60, 1), strict=True))
        return float(days or 0) * 86_400 + (-seconds if sign else seconds), "seconds"
    with contextlib.suppress(ValueError):
        return (datetime.datetime.fromisoformat(cell) - datetime.datetime(1970, 1, 1)).total_seconds() / 86_400, "days"
    return None, ""


_CHOSEN = re.compile(r"\b(mode|approx_top_k)\s*\(", re.IGNORECASE)
_OUTER = re.compile(r"[(),]|\b(select|from)\b|'[^']*'|\"[^\"]*\"", re.IGNORECASE)


def _chosen(sql: str, columns: int) -> frozenset[int]:
    """The places of the select list that MODE or its like fills; none where the list has another length."""
    depth, start, items = 0, -1, list[str]()
    for found in _OUTER.finditer(sql):
        word = found.group().lower()
        depth += (word == "(") - (word == ")")
        if depth or word not in ("select", "from", ","):
            continue
        if word == "select":
            start, items = found.end(), []
        elif start >= 0:
            items.append(sql[start : found.start()])
            start = found.end() if word == "," else -1
    return (
        frozenset(i for i, item in enumerate(items) if _CHOSEN.search(item)) if len(items) == columns else frozenset()
    )


def _identity(row: Row, keys: Sequence[int], place: int) -> tuple[str, ...]:
    # Dates are text in answers: compared as they are written.
    return tuple(_written(row[key]) for key in keys) if keys else (str(place),)


def _written(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).replace("T", " ") if not isinstance(value, str) else value.replace("T", " ")


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def _kind(column: object) -> str:
    assert isinstance(column, dict)
    return str(column["kind"])


def _name(column: object) -> str:
    assert isinstance(column, dict)
    return str(column["name"])
