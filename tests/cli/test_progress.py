"""Steps that take long say so."""

from __future__ import annotations

import contextlib
import io
import threading

from server.cli.output import progress


class _Stream(io.StringIO):
    """Standard error that says when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def flush(self) -> None:
        self.written.set()


def test_a_long_step_is_not_silent() -> None:
    """`dataset add` of three million rows said nothing for 37 seconds."""
    stream = _Stream()
    # Within the test: pytest puts its own stream back between a fixture and the test.
    with contextlib.redirect_stderr(stream), progress("reading the data", first_seconds=0.01):
        assert stream.written.wait(60)
    assert stream.getvalue().startswith("  reading the data ... ")


def test_a_short_step_says_nothing() -> None:
    """Nobody needs a sign of life from what has ended."""
    stream = _Stream()
    with contextlib.redirect_stderr(stream), progress("reading the data", first_seconds=3600.0):
        pass
    assert stream.getvalue() == ""
