"""Steps that take long say so."""

from __future__ import annotations

import io
import threading

import pytest

from server.cli import progress as module
from server.cli.progress import progress


class _Stream(io.StringIO):
    """Standard error that says when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def flush(self) -> None:
        self.written.set()


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> _Stream:
    """What standard error gets."""
    made = _Stream()
    monkeypatch.setattr(module.sys, "stderr", made)
    return made


def test_a_long_step_is_not_silent(stream: _Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """`dataset add` of three million rows said nothing for 37 seconds."""
    monkeypatch.setattr(module, "_FIRST_SECONDS", 0.01)
    with progress("reading the data"):
        assert stream.written.wait(60)
    assert stream.getvalue().startswith("  reading the data ... ")


def test_a_short_step_says_nothing(stream: _Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody needs a sign of life from what has ended."""
    monkeypatch.setattr(module, "_FIRST_SECONDS", 3600.0)
    with progress("reading the data"):
        pass
    assert stream.getvalue() == ""
