"""What the two processes of a whole run share: each compiles the test files from another end.

Pytest compiles a test file anew, with its own asserts, where nobody has done so; in a fresh clone that takes seven
seconds, which each process would take for all files at the same moment.
"""

from __future__ import annotations

import contextlib
import importlib
import os

import pytest

__all__ = ["FromTheEnd"]


class FromTheEnd:
    """Loads the test files from the last to the first, in every second process, before it collects any."""

    def pytest_collection(self, session: pytest.Session) -> None:
        """Leaves errors, and modules that skip themselves, to the collection, which loads those again."""
        number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        if int(number) % 2 == 0 or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
            return
        root = session.config.rootpath
        for path in sorted((root / "tests").rglob("test_*.py"), reverse=True):
            with contextlib.suppress(Exception, pytest.skip.Exception):
                importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts))
