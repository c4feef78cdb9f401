"""The form of the log, for this program and for libraries."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from server import log
from tests.server.fakes import SECRET_LITERAL


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """A configured log, undone afterwards."""
    root = logging.getLogger()
    names = ("", "uvicorn", "uvicorn.error", "uvicorn.access")
    kept = [(logging.getLogger(name), list(logging.getLogger(name).handlers)) for name in names]
    propagate = logging.getLogger("uvicorn.access").propagate
    level = root.level
    monkeypatch.setattr(log, "_logger", log._logger)
    made = io.StringIO()
    log.configure_logs(level="info", stream=made)
    yield made
    for library, handlers in kept:
        library.handlers = handlers
    logging.getLogger("uvicorn.access").propagate = propagate
    root.setLevel(level)


def read(stream: io.StringIO) -> list[dict[str, object]]:
    """The lines."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_fields_outside_of_the_list_are_dropped(stream: io.StringIO) -> None:
    """A field that is not allowed is left out and counted; objects become their class."""
    log.logger().info("request", route="/x", sql=SECRET_LITERAL, names=[SECRET_LITERAL.encode()])
    line = read(stream)[0]
    assert (line["event"], line["route"], line["level"], line["count"]) == ("request", "/x", "info", 1)
    assert line["names"] == ["bytes"]
    assert SECRET_LITERAL not in stream.getvalue()


def test_libraries_say_where_and_not_what(stream: io.StringIO) -> None:
    """Texts and exceptions of libraries are left out; the web server's lines about its life are kept."""
    logging.getLogger("sqlalchemy").error("value %s", SECRET_LITERAL)
    try:
        raise ValueError(SECRET_LITERAL)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("failed %s", SECRET_LITERAL)
    logging.getLogger("uvicorn.error").info("Started server process")
    logging.getLogger("uvicorn.access").info("GET /?q=%s", SECRET_LITERAL)
    assert SECRET_LITERAL not in stream.getvalue()
    lines = read(stream)
    assert [line["logger"] for line in lines] == ["sqlalchemy", "uvicorn.error", "uvicorn.error"]
    assert lines[1]["exception"] == "ValueError"
    assert lines[2]["message"] == "Started server process"


def test_levels_are_kept(stream: io.StringIO) -> None:
    """Below the level nothing is written."""
    log.logger().debug("request")
    assert read(stream) == []


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0, "<10ms"), (0.01, "<100ms"), (0.5, "<1s"), (9.9, "<10s"), (10, ">=10s")]
)
def test_durations_are_coarse(seconds: float, bucket: str) -> None:
    """Five steps, because how long a query ran is a fact about rows."""
    assert log.duration_bucket(seconds) == bucket
