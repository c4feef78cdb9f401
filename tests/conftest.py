"""What is true of every test run."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator

import hypothesis
import pytest

from tests.databases import (  # noqa: F401 - fixtures of every room: of each there is one server and one template
    empty_postgresql_url,
    postgresql_server,
    postgresql_template,
    postgresql_url,
    sqlite_template,
    sqlite_url,
)
from tests.kept_workers import kept_readers
from tests.skipped import skip_reasons, skip_table
from tests.thinned import mark_sparse


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Half of the time of collecting went to looking for garbage among tests, of which none becomes garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Hypothesis draws the same examples in every run of the same test, and at night other ones; none has a time."""
    hypothesis.settings.register_profile("noisegate", derandomize=not config.getoption("--nightly"), deadline=None)
    hypothesis.settings.load_profile("noisegate")


def pytest_unconfigure() -> None:
    """What was made before the tests is freed at the end as well: DuckDB reports what is not."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--nightly`: tests that need a machine which does nothing else, or very long."""
    parser.addoption("--nightly", action="store_true", help="Run the tests marked nightly too, and other examples.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks cases of sparse tests slow, leaves nightly tests out, and says so in the list of what was skipped."""
    mark_sparse(items)
    if config.getoption("--nightly"):
        return
    reason = "needs a quiet machine and minutes; enable: ./noisegate test --nightly"
    for item in items:
        if item.get_closest_marker("nightly") is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says at the end which tests were skipped, why, and how to enable them."""
    terminalreporter.write_line(skip_table(skip_reasons(terminalreporter.stats.get("skipped", []))))


@pytest.fixture(autouse=True, scope="session")
def readers() -> Iterator[None]:
    """Hardly a test is about the start of the worker that reads a source file, and every second one attaches some."""
    with kept_readers():
        yield
