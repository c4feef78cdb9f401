"""Engine workers that outlive the services of one test: the next services of the process are given the same ones.

Starting the five workers of a home takes more processor time than most tests, and hardly a test is about their start.
Everything else is the services' own: engines, slots, counts of incidents, and what is opened ahead. An engine that is
closed answers nothing more; workers that somebody still uses at that moment end with it, as they do when served.

Workers that read source files (`LoneWorker`) do one task each where served; here the next task has them, in an emptied
folder. Its folder must be on the disk of what is built, for what is built is renamed: only there are they kept.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from engines.folders import PrivateFolder
from engines.pool import Pool
from engines.process import Failure, LoneWorker, Worker, WorkerOptions
from engines.turns import Slots
from tests.memory import folder_in_memory

__all__ = ["kept_readers", "kept_workers"]

KEPT_MAX = 2
"""Most pools of one kind that wait for services: tests with two servers have two of each."""

_lock = threading.Lock()
_waiting: dict[str, list[Pool]] = defaultdict(list)
_lone: dict[str, list[tuple[PrivateFolder, Worker]]] = defaultdict(list)


@contextmanager
def kept_workers() -> Iterator[None]:
    """Engines that are made inside are given workers that run already, and leave them to others when they close."""
    with patch("engines.private.Pool", KeptPool), patch("engines.shell.Pool", KeptPool):
        yield


@contextmanager
def kept_readers() -> Iterator[None]:
    """Source files are read inside by workers that run already, and wait for the next file afterwards."""
    with ExitStack() as stack:
        for place in ("engines.snapshot", "engines.inspect", "engines.public_table", "engines.classes"):
            stack.enter_context(patch(f"{place}.LoneWorker", KeptLone))
        yield


class KeptPool:
    """What one engine has of a pool: the pool itself, until the engine closes it."""

    def __init__(self, options: WorkerOptions, *, size: int, recycle_after: int, directory: Path | None = None) -> None:
        self._kind = repr((options, size, recycle_after, directory))
        with _lock:
            pool = _waiting[self._kind].pop() if _waiting[self._kind] else None
        if pool is None or not pool.usable():
            pool = Pool(options, size=size, recycle_after=recycle_after, directory=directory)
        self._size = size
        self._pool: Pool | None = pool

    def __getattr__(self, name: str) -> Any:
        """What a pool does; of a closed one, what a closed one says."""
        return getattr(self._pool, name) if self._pool is not None else _CLOSED[name]

    def close(self) -> None:
        """Leaves the pool to the next engine of its kind, or closes it where it is in use or not wanted."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        if _is_left_alone(pool):
            pool._slots, pool._brief = Slots(self._size), Slots(1)
            with pool._changed:
                pool._warm.clear()
            with _lock:
                if len(_waiting[self._kind]) < KEPT_MAX:
                    _waiting[self._kind].append(pool)
                    return
        pool.close()


class KeptLone(LoneWorker):
    """A worker for one task that goes on to the next one, unless the task failed.

    A worker ends with the thread that started it (`confine`): only those of the main thread can wait for anybody.
    """

    def __enter__(self) -> LoneWorker:
        places = [Path(place) for place in (tempfile.gettempdir(), folder_in_memory()) if place is not None]
        disk = (self._parent_directory or places[0]).stat().st_dev
        near = next((place for place in places if place.stat().st_dev == disk), None)
        self._kind = repr((self._options, disk))
        with _lock:
            waiting = _lone[self._kind].pop() if _lone[self._kind] else None
        self._stays = waiting is not None
        if waiting is None:
            self._stays = near is not None and threading.current_thread() is threading.main_thread()
            self._parent_directory = near if self._stays else self._parent_directory
            return super().__enter__()
        self._folder, self._worker = waiting
        self._ready = True
        return self

    def __exit__(self, *given: object) -> None:
        worker = self._worker
        assert worker is not None
        if not (self._stays and self._ready and worker.alive and given[0] is None):
            super().__exit__(*given)
            return
        for left in worker.directory.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()
        with _lock:
            _lone[self._kind].append((self._folder, worker))


_CLOSED: dict[str, Callable[..., object]] = {
    "call": lambda *_, **__: Failure.UNAVAILABLE,
    "lease": lambda **_: Failure.UNAVAILABLE,
    "warm": lambda *_, **__: None,
    "wait_ready": lambda **_: False,
    "usable": lambda: False,
    "process_ids": list,
}


def _is_left_alone(pool: Pool) -> bool:
    """Whether a pool serves nobody, when the measurement that each start of a server begins has ended."""
    until = time.monotonic() + 1
    while pool._brief._turns.running and time.monotonic() < until:
        time.sleep(0.01)
    with pool._changed:
        waiting = [*pool._slots._waiting, *pool._brief._waiting]
        running = pool._slots._turns.running + pool._brief._turns.running
        return not (pool._closed or pool._parked or waiting or running) and pool._failed_starts == 0


@atexit.register
def _end() -> None:
    """Nothing is kept longer than the process."""
    for pools in _waiting.values():
        while pools:
            pools.pop().close()
    for workers in _lone.values():
        for folder, worker in workers:
            worker.kill()
            folder.remove()
