"""The private engine: generated statements on snapshots of true data, answered as `Exact` or one constant failure."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

import numpy as np
import numpy.typing as npt

from engines.arrays import columns_of, decode_integers, decode_values
from engines.encoding import DesignRows, encode_rows, encode_statement
from engines.frames import Frame, FrameFault
from engines.incidents import Incidents
from engines.memory import resident_limit_mb
from engines.pool import Pool, Pooled, WorkerLease
from engines.process import Failure, WorkerOptions
from engines.protocol import Capabilities, EngineLease
from privacy.exact import Exact
from privacy.refusal import ExecutionFailed
from privacy.statement import Statement, StatementPlaces
from privacy.training import Wanted
from privacy.values import Cell, Json

__all__ = ["PrivateEngine", "PrivateLease"]


_Value = TypeVar("_Value")

SLOW_NANOSECONDS: Final = 20e6
"""What is assumed of a machine that was not measured: that it is four times slower than the reference."""

_PROBE_SECONDS: Final = 10.0
_HALF: Final = 1 << 62
_OPEN_SNAPSHOTS: Final = 2
_SPILL_MB: Final = 64 * 1024
_BASE_ADDRESS_SPACE_MB: Final = 2048
_ANSWER_BYTES_MAX: Final = 1 << 36
"""Out of reach on purpose: the number of groups is a fact about rows, and a limit within reach would reveal it."""


class PrivateLease:
    """A slot of the private engine with its worker: for all statements of one question, until its visible moment.

    Tables that its statements share are named with a number of its own, so no other lease can ask for them; a worker
    that still has some at the end is ended with them.
    """

    def __init__(self, worker: WorkerLease, incidents: Incidents) -> None:
        """Called by the engine."""
        self._number = secrets.token_hex(16)
        self._keeps = False
        self._worker = worker
        self._incidents = incidents
        self._seen: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Gives the slot back, with everything that shows that the statements have ended: incidents are counted now."""
        self._worker.release(reuse=not self._keeps)
        while self._seen:
            self._incidents.note("engine_error", self._seen.pop())


class PrivateEngine(Pooled):
    """Runs statements in DuckDB, in worker processes. Safe to use from many threads.

    `workers` requests run at a time, each with `threads` threads and `memory_limit_mb` for the engine. Every worker may
    keep two snapshots open, and ends itself above `engines.memory.resident_limit_mb`. A worker is replaced after any
    failure and after `recycle_after` requests.
    """

    capabilities: Final = Capabilities(dialect="duckdb", snapshots=True, stops_at_once=True)

    def __init__(
        self,
        *,
        workers: int = 2,
        threads: int = 2,
        memory_limit_mb: int = 2048,
        recycle_after: int = 500,
        temp_directory: Path | None = None,
        incidents: Incidents | None = None,
    ) -> None:
        """Start the workers in the background. `temp_directory` holds what queries spill, in private folders."""
        self._incidents = incidents or Incidents()
        options = WorkerOptions(
            kind="private",
            threads=threads,
            memory_limit_mb=memory_limit_mb,
            resident_mb=resident_limit_mb(memory_limit_mb, threads=threads, snapshots=_OPEN_SNAPSHOTS),
            address_space_mb=_BASE_ADDRESS_SPACE_MB + (_OPEN_SNAPSHOTS + 1) * memory_limit_mb,
            file_mb=_SPILL_MB,
            answer_bytes_max=_ANSWER_BYTES_MAX,
            settings={"open_max": _OPEN_SNAPSHOTS, "temporary_mb": _SPILL_MB},
        )
        super().__init__(Pool(options, size=workers, recycle_after=recycle_after, directory=temp_directory))
        self._probed = SLOW_NANOSECONDS

    def lease(self, *, owner: str = "") -> PrivateLease:
        """A slot and a worker for the statements of one question.

        Waits for the owner's turn as long as it takes: how long others' statements run is a fact about rows, and giving
        up, which gives the charge back, must not reveal it. For the same reason the caller releases the lease at the
        question's visible moment, not when its statements end: what waits for this slot would see that end.
        Errors: ExecutionFailed with `started` False, when the engine closes or cannot start a worker.
        """
        lease = self._pool.lease(owner=owner)
        if isinstance(lease, Failure):
            raise ExecutionFailed(started=False)
        return PrivateLease(lease, self._incidents)

    def run(
        self,
        snapshot: Path,
        statement: Statement,
        *,
        timeout_seconds: float,
        owner: str = "",
        lease: EngineLease | None = None,
    ) -> Exact:
        """The exact groups and sums of a statement.

        Runs in the worker of `lease`, which keeps its slot afterwards. Without one, a slot is taken for this statement
        and comes back at its true end: only where nothing else waits for the slot.

        Ensures: names, types, NULLs and bounds are what the statement declares.
        Errors: ExecutionFailed for everything else, without a cause or context; its `started` is False only when
        the statement was provably never sent to a worker.
        """
        assert lease is None or isinstance(lease, PrivateLease), "the lease is another engine's"
        request = _request(snapshot, statement)
        if request is None:
            self._incidents.note("engine_error", "unsent")
            raise ExecutionFailed(started=False)
        with contextlib.nullcontext(lease) if lease is not None else self.lease(owner=owner) as held:
            held._keeps = statement.shared is not None and statement.shared.kept
            answer = held._worker.call(
                {**request, "lease": held._number},
                timeout_seconds=timeout_seconds,
                parse=lambda frame: _parse(frame, statement),
            )
            if isinstance(answer, Failure) and answer.incident:
                held._seen.append(answer.value)
        if isinstance(answer, Failure):
            raise ExecutionFailed(started=answer.started)
        return answer

    def read_rows(self, snapshot: Path, rows: DesignRows, *, timeout_seconds: float, lease: EngineLease) -> None:
        """Reads the rows of a model into the worker of the lease, which keeps them until the lease ends.

        Nothing of them comes back, not even how many there are; the worker ends with the lease.
        Errors: as `run`.
        """
        assert isinstance(lease, PrivateLease), "the lease is another engine's"
        request = encode_rows(rows)
        if request is None or not snapshot.is_file():
            self._incidents.note("engine_error", "unsent")
            raise ExecutionFailed(started=False)
        lease._keeps = True
        asked = {"operation": "rows", "snapshot": str(snapshot.resolve()), **request}
        self._asked(lease, asked, timeout_seconds, lambda _: True)

    def add_up(
        self,
        wanted: Wanted,
        weights: Sequence[int],
        *,
        sums: int,
        bound: int,
        timeout_seconds: float,
        lease: EngineLease,
    ) -> Exact:
        """So many exact sums over the units of the rows that were read in this lease, under the name `sums`.

        `bound` is the greatest magnitude that the plan proved. Errors: as `run`.
        """
        assert isinstance(lease, PrivateLease), "the lease is another engine's"
        request = {"operation": "sums", "wanted": wanted.value, "weights": list(weights)}
        return self._asked(lease, request, timeout_seconds, lambda frame: _sums(frame, sums, bound))

    def _asked(
        self, lease: PrivateLease, request: Mapping[str, Json], timeout_seconds: float, parse: Callable[[Frame], _Value]
    ) -> _Value:
        """One request in a lease. Errors: ExecutionFailed."""
        answer = lease._worker.call({**request, "lease": lease._number}, timeout_seconds=timeout_seconds, parse=parse)
        if isinstance(answer, Failure):
            if answer.incident:
                lease._seen.append(answer.value)
            raise ExecutionFailed(started=answer.started)
        return answer

    def warm(self, snapshot: Path) -> None:
        """Open a snapshot in every worker ahead of the first statement, and in workers that are started later."""
        path = str(snapshot.resolve())
        self._pool.warm(path, {"operation": "open", "snapshot": path}, keep=_OPEN_SNAPSHOTS)

    def measure(self) -> None:
        """Measures how long a worker needs for the probe (handlers/speed.py). Takes no slot from a question."""
        request = {"operation": "probe"}
        answer = self._pool.call(request, timeout_seconds=_PROBE_SECONDS, parse=_nanoseconds, owner="probe", brief=True)
        if isinstance(answer, float) and answer > 0:
            self._probed = answer

    def probe_nanoseconds(self) -> float:
        """What `measure` found; until then, and where it fails, SLOW_NANOSECONDS. Never waits."""
        return self._probed


def _nanoseconds(frame: Frame) -> float:
    nanoseconds = frame.header["nanoseconds"]
    if type(nanoseconds) is not float:
        raise FrameFault
    return nanoseconds


def _sums(frame: Frame, count: int, bound: int) -> Exact:
    """Sums as they were asked for. Raises for any other number of them, and beyond the bound."""
    ((description, buffers),) = columns_of(frame)
    if description["kind"] != "huge":
        raise FrameFault
    values = decode_values(description, buffers, count)
    if any(type(value) is not int or abs(value) > bound for value in values):
        raise FrameFault
    return Exact(keys={}, sums={"sums": values}, rows=1)


def _request(snapshot: Path, statement: Statement) -> dict[str, Json] | None:
    encoded = encode_statement(statement)
    if encoded is None or not snapshot.is_file():
        return None
    return {"operation": "run", "snapshot": str(snapshot.resolve()), **encoded}


def _parse(frame: Frame, statement: Statement) -> Exact:
    """True values from a worker's answer. Raises for whatever the statement did not declare."""
    rows = frame.header["rows"]
    columns = columns_of(frame)
    if (
        type(rows) is not int
        or rows < 0
        or len(columns) != len(statement.keys) + 2 * len(statement.sums) + len(statement.by_place)
    ):
        raise FrameFault
    keys: dict[str, list[Cell]] = {}
    for key, (description, buffers) in zip(statement.keys, columns, strict=False):
        if description["kind"] != key.type.value:
            raise FrameFault
        keys[key.name] = decode_values(description, buffers, rows)
    sums: dict[str, npt.NDArray[np.int64] | list[int]] = {}
    position = len(statement.keys)
    for item in statement.sums:
        high, low = (decode_integers(*columns[position + part], rows) for part in (0, 1))
        sums[item.name] = _join(high, low, item.bound)
        position += 2
    for listed, column in zip(statement.by_place, columns[position:], strict=True):
        sums[listed.name] = _by_place(decode_integers(*column, rows * listed.places), rows, listed)
    return Exact(keys=keys, sums=sums, rows=rows)


def _by_place(given: npt.NDArray[np.int64], rows: int, item: StatementPlaces) -> npt.NDArray[np.int64]:
    """The integers as groups x places, refused where a group's are beyond the bound that the plan proved."""
    found = given.reshape(rows, item.places)
    # The sum of a group leaves 64 bits only where one of its integers is beyond the bound, or in floats above it.
    if found.size and (int(found.min()) < 0 or float(found.sum(axis=1, dtype=np.float64).max()) > item.bound):
        raise FrameFault
    return found


def _join(high: npt.NDArray[np.int64], low: npt.NDArray[np.int64], bound: int) -> npt.NDArray[np.int64] | list[int]:
    """high * 2**62 + low for each group, refused beyond the bound that the plan proved."""
    if low.size and (int(low.min()) <= -_HALF or int(low.max()) >= _HALF):
        raise FrameFault
    if not high.any():
        if low.size and max(-int(low.min()), int(low.max())) > bound:
            raise FrameFault
        return low
    if ((high > 0) & (low < 0)).any() or ((high < 0) & (low > 0)).any():
        raise FrameFault
    values = [upper * _HALF + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)]
    if max(map(abs, values)) > bound:
        raise FrameFault
    return values
