"""How large the groups of units are that share the values of some columns: for the owner of the data alone.

The answers are true counts about rows. Nothing that an analyst reaches calls this; a worker of its own opens the
snapshot, counts and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeVar

from engines.frames import Frame, FrameFault
from engines.process import Failure, LoneWorker
from engines.records import read_list, read_records, write_record
from engines.snapshot import attach_options
from engines.snapshot_findings import SnapshotFinding, SnapshotRefused
from privacy.values import Json

__all__ = ["ClassCounter", "ClassSizes", "Coarse", "Coarseness", "Spread"]

_SECONDS: Final = 1800.0
_Value = TypeVar("_Value")

Coarseness = Literal["exact", "width", "prefix", "day", "month", "year", "hidden"]
"""How much of a value is kept: all of it, its multiple of a width, its first characters, its day, month or year, or
nothing."""

ClassSizes = tuple[tuple[int, int], ...]
"""Pairs, the smallest size first: how many units there are in the smallest of whose classes so many units are."""


@dataclass(frozen=True, slots=True)
class Coarse:
    """A column as it is grouped by. `size` is the width, or the number of characters."""

    column: str
    kept: Coarseness = "exact"
    size: int = 0


@dataclass(frozen=True, slots=True)
class Spread:
    """What the coarser forms of a column follow from: different values, greatest less least, longest text."""

    values: int
    range: float
    length: int


class ClassCounter:
    """Counts in one table of a snapshot, in a worker of its own that ends with the `with` block."""

    def __init__(self, snapshot: Path, table: str) -> None:
        self._request: dict[str, Json] = {"snapshot": str(snapshot.absolute()), "table": table}
        self._table = table
        self._worker = LoneWorker(attach_options())

    def __enter__(self) -> Self:
        self._worker.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.__exit__(kind, error, trace)

    def sizes(self, columns: Sequence[Coarse]) -> ClassSizes:
        """The sizes of the classes of units that agree in all columns; a unit counts in the smallest of its classes.

        NULL is a value as any other. Errors: SnapshotRefused (not_completed) when they could not be counted.
        """
        return self._asked("class_sizes", columns, _sizes)

    def spreads(self, columns: Sequence[str]) -> tuple[Spread, ...]:
        """One for each column. Errors: as `sizes`."""
        return self._asked("spreads", [Coarse(name) for name in columns], _spreads)

    def _asked(self, operation: str, columns: Sequence[Coarse], parse: Callable[[Frame], _Value]) -> _Value:
        listed: list[Json] = [write_record(column) for column in columns]
        request = self._request | {"operation": operation, "columns": listed}
        answer = self._worker.call(request, timeout_seconds=_SECONDS, parse=parse)
        if isinstance(answer, Failure):
            raise SnapshotRefused([SnapshotFinding("not_completed", self._table)])
        return answer


def _sizes(frame: Frame) -> ClassSizes:
    pairs = [read_list(pair) for pair in read_list(frame.header["sizes"])]
    if not all(len(pair) == 2 and all(type(number) is int and number > 0 for number in pair) for pair in pairs):
        raise FrameFault
    return tuple((int(str(size)), int(str(units))) for size, units in pairs)


def _spreads(frame: Frame) -> tuple[Spread, ...]:
    return tuple(read_records(Spread, frame.header["spreads"]))
