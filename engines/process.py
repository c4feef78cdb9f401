"""One worker process: how it is started, asked and ended, and one constant failure for everything that goes wrong.

    call     = send one frame, wait for one frame until the deadline, parse it
    failure  = one of the words below, for the operator

Every worker is a fresh interpreter, never a fork: a copy of the server would carry its keys and accounts.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from engines.folders import PrivateFolder
from engines.frames import Frame, FrameCut, FrameFault, receive_frame, send_frame
from engines.memory import MEMORY_EXIT
from privacy.values import Json

__all__ = ["START_SECONDS", "Failure", "Fault", "LoneWorker", "Worker", "WorkerOptions", "log_failure"]

_log = logging.getLogger("noisegate.engines")
_Value = TypeVar("_Value")

_ROOT: Final = str(Path(__file__).resolve().parent.parent)
_BOOT: Final = "import sys; sys.path.insert(0, sys.argv[1]); from engines.worker import main; main()"
START_SECONDS: Final = 30.0
"""How long a worker may take to start."""

_END_SECONDS: Final = 1.0
_MEGABYTE: Final = 1 << 20
_MALFORMED: Final = (
    *(FrameFault, LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, RecursionError, MemoryError),
)
"""What parsing a frame may raise when a worker sends anything but what was asked for."""


class Failure(enum.Enum):
    """Why a call gave no answer. The words are for the operator's log; callers show one constant text."""

    UNAVAILABLE = "unavailable"  # no worker was free in time, and nothing was sent
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    GARBLED = "garbled"  # the answer was not a proper frame
    REFUSED = "refused"  # the worker said that it failed
    MEMORY = "memory"  # the request used up the worker's memory
    INVALID = "invalid"  # the SQL does not bind; the worker is fine

    @property
    def incident(self) -> bool:
        """Whether a statement on true data must never end so: it started, and it is neither time nor memory."""
        return self not in (Failure.UNAVAILABLE, Failure.TIMEOUT, Failure.MEMORY)

    @property
    def started(self) -> bool:
        """Whether a worker may have received the request."""
        return self is not Failure.UNAVAILABLE


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker is for and what it may use."""

    kind: str
    threads: int
    memory_limit_mb: int
    address_space_mb: int
    file_mb: int
    resident_mb: int | None = None
    request_bytes_max: int = 256 * _MEGABYTE
    answer_bytes_max: int = 256 * _MEGABYTE
    settings: Mapping[str, Json] = field(default_factory=dict)


class Fault(Exception):
    """A call failed inside; carries only the word."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.value)


class Worker:
    """One child process, its socket and its private directory."""

    def __init__(self, options: WorkerOptions, *, parent_directory: Path) -> None:
        """Start the process; it becomes usable after `wait_ready`."""
        self._options = options
        self.served = 0
        self._directory = tempfile.mkdtemp(prefix="worker-", dir=parent_directory)
        ours, theirs = socket.socketpair()
        self._socket = ours
        command = [sys.executable, "-I", "-c", _BOOT, _ROOT, str(theirs.fileno()), str(os.getpid())]
        command += [str(options.address_space_mb * _MEGABYTE), str(options.file_mb * _MEGABYTE)]
        environment = {
            "HOME": self._directory,
            "TMPDIR": self._directory,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "MALLOC_ARENA_MAX": "2",
            "OPENBLAS_NUM_THREADS": "1",
        }
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._directory,
                env=environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            shutil.rmtree(self._directory, ignore_errors=True)
            raise
        finally:
            theirs.close()

    @property
    def directory(self) -> Path:
        """The private directory; it is removed with the worker."""
        return Path(self._directory)

    @property
    def process_id(self) -> int:
        """The child's process number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def wait_ready(self) -> bool:
        """Configure the child and wait until its engine is loaded."""
        options = {
            **self._options.settings,
            "kind": self._options.kind,
            "threads": self._options.threads,
            "memory_limit_mb": self._options.memory_limit_mb,
            "resident_mb": self._options.resident_mb,
            "temporary": os.path.join(self._directory, "spill"),
            "bytes_max": self._options.request_bytes_max,
        }
        try:
            send_frame(self._socket, options)
            answer = receive_frame(self._socket, bytes_max=1 << 16, deadline=time.monotonic() + START_SECONDS)
        except (OSError, FrameFault):
            return False
        return answer is not None and answer.header.get("status") == "ready"

    def request(
        self,
        header: Mapping[str, Json],
        buffers: Sequence[bytes],
        *,
        deadline: float,
        parse: Callable[[Frame], _Value],
    ) -> _Value:
        """Send one request and parse its answer; Fault with the word of what went wrong."""
        self.served += 1
        seconds = max(deadline - time.monotonic(), 0.0)
        document = {**header, "cpu_seconds": seconds * self._options.threads + 2}
        try:
            self._socket.settimeout(max(seconds, 0.001))
            send_frame(self._socket, document, buffers)
            answer = receive_frame(self._socket, bytes_max=self._options.answer_bytes_max, deadline=deadline)
            if answer is None:
                raise Fault(self._ended())
            status = answer.header.get("status")
            if status == "invalid":
                raise Fault(Failure.INVALID)
            if status == "failed":
                raise Fault(Failure.REFUSED)
            if status == "memory":
                raise Fault(Failure.MEMORY)
            if status != "done":
                raise FrameFault
            return parse(answer)
        except TimeoutError:
            failure = Failure.TIMEOUT
        except (OSError, FrameCut):
            failure = self._ended()
        except _MALFORMED:
            failure = Failure.GARBLED
        raise Fault(failure)

    def _ended(self) -> Failure:
        """Why the process is gone: its own fence of time or memory, or anything else."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_END_SECONDS)
            if code == MEMORY_EXIT:
                return Failure.MEMORY
            if code == -signal.SIGXCPU:
                return Failure.TIMEOUT
        return Failure.CRASHED

    def end(self) -> None:
        """End the process and leave what remains to the user of the worker."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def kill(self) -> None:
        """End the process, reap it and remove its directory. For the one thread that holds the worker."""
        self.end()
        self._process.wait()
        self._socket.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class LoneWorker:
    """One worker for one task, started and ended by the caller's thread. Use as a context manager."""

    def __init__(self, options: WorkerOptions, *, directory: Path | None = None) -> None:
        """Prepare; the process starts on entry."""
        self._options = options
        self._parent_directory = directory
        self._worker: Worker | None = None

    def __enter__(self) -> LoneWorker:
        self._folder = PrivateFolder(self._parent_directory)
        try:
            self._worker = Worker(self._options, parent_directory=self._folder.path)
        except BaseException:
            self._folder.remove()
            raise
        self._ready = self._worker.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._worker is not None
        self._worker.kill()
        self._folder.remove()

    @property
    def directory(self) -> Path:
        """The worker's private directory, until the end of the context."""
        assert self._worker is not None
        return self._worker.directory

    def call(
        self, header: Mapping[str, Json], *, timeout_seconds: float, parse: Callable[[Frame], _Value]
    ) -> _Value | Failure:
        """One request, as `Pool.call`. After a failure the worker is not used again."""
        assert self._worker is not None
        if not self._ready:
            return log_failure(self._options.kind, Failure.UNAVAILABLE)
        try:
            return self._worker.request(header, (), deadline=time.monotonic() + timeout_seconds, parse=parse)
        except Fault as fault:
            failure = fault.failure
        self._ready = False
        return log_failure(self._options.kind, failure)


def log_failure(kind: str, failure: Failure) -> Failure:
    """Log the word for the operator, and nothing that depends on the query or the rows."""
    _log.warning("engine_worker", extra={"fields": {"kind": kind, "category": failure.value}})
    return failure
