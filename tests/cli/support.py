"""Running the command line: in this process for commands that end, in another one for servers."""

from __future__ import annotations

import contextlib
import io
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

from server.cli import main
from server.home import Home

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one line of JSON on standard output."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self.out
        return json.loads(lines[0])


def cli(*arguments: str) -> Ran:
    """Runs one command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    assert "Traceback" not in out.getvalue() + err.getvalue()
    return Ran(code, out.getvalue(), err.getvalue())


def refused(ran: Ran, *words: str, code: int = 1) -> None:
    """One clear message: the words, why, what to do, the exit code, and nothing on standard output."""
    assert code == ran.code, ran
    assert ran.out == ""
    for word in ("noisegate: ", "Why: ", "What to do: ", *words):
        assert word in ran.err, ran.err
    assert ran.err.count("noisegate: ") == 1


def misused(ran: Ran, *words: str) -> None:
    """A message of the option parser, with exit code 2."""
    assert ran.code == 2, ran
    assert "Error: " in ran.err
    for word in words:
        assert word in ran.err, ran.err


def environment(**variables: str) -> dict[str, str]:
    """Variables for another process: none of ours from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NOISEGATE_")}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


class Serving:
    """`python -m server.cli ...` in a process of its own, ended when the block ends."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "server.cli", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**variables),
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._streams = (self.process.stdout, self.process.stderr)
        self._lines: tuple[queue.SimpleQueue[str], ...] = (queue.SimpleQueue(), queue.SimpleQueue())
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in zip(self._streams, self._lines, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: IO[str], lines: queue.SimpleQueue[str]) -> None:
        for line in stream:
            lines.put(line)
        lines.put("")

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader in self._readers:
            reader.join(timeout=5)
        for stream in self._streams:
            stream.close()

    def until(self, words: str, *, error: bool = False, seconds: float = 120) -> str:
        """Everything up to the line with these words; fails when it does not come in time."""
        deadline = time.monotonic() + seconds
        text = ""
        while words not in text:
            try:
                line = self._lines[error].get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = ""
            if not line:
                self.process.kill()
                raise AssertionError(f"{words!r} did not come: {text} {self._rest(not error)}")
            text += line
        return text

    def _rest(self, stream: bool) -> str:
        self.process.wait(timeout=30)
        self._readers[stream].join(timeout=5)
        text = ""
        while not self._lines[stream].empty():
            text += self._lines[stream].get()
        return text

    def children(self) -> list[int]:
        """The processes that it started."""
        found: list[int] = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            found += [int(word) for word in (task / "children").read_text().split()]
        return found

    def stop(self, number: int = signal.SIGTERM, *, seconds: float = 30) -> Ran:
        """Sends the signal and waits for the end; what was not read yet is in the result."""
        self.process.send_signal(number)
        self.process.wait(timeout=seconds)
        return Ran(self.process.returncode, self._rest(False), self._rest(True))


def serving_url(serving: Serving, home: Path) -> str:
    """Where a server of a home answers, once it is ready."""
    serving.until('"started"', error=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        url = Home(home).url()
        if url is not None:
            try:
                if httpx.get(f"{url}/readyz", trust_env=False, timeout=10).status_code == 200:
                    return url
            except httpx.TransportError:
                pass
        time.sleep(0.05)
    raise AssertionError("the server is not ready")


def gone(process: int, *, seconds: float = 60) -> bool:
    """Whether the process ends in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
