"""`./noisegate test`: what it hands to pytest, and what it says about skipped tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.__main__ import WORKERS, pytest_arguments
from tests.bootstrap.script import CHECKOUT
from tests.memory import folder_in_memory
from tests.skipped import skip_table

SKIPPING = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_database(number):
    pytest.skip("no PostgreSQL server was found")

@pytest.mark.skip(reason="needs a moon; enable: wait for the night")
def test_night(): ...

@pytest.mark.xfail(reason="expected")
def test_expected():
    raise AssertionError

def test_passes(): ...
"""


@pytest.mark.sparse(2)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_skipped_tests_are_explained(tmp_path: Path, workers: str) -> None:
    """The table after a test run has each reason once, with its number and how to enable the tests."""
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    first = lines.index("Skipped: 3. Each reason, and how to run these tests too:")
    assert lines[first + 1].split() == ["2", "no", "PostgreSQL", "server", "was", "found"]
    assert "NOISEGATE_TEST_POSTGRESQL_URL" in lines[first + 2]
    assert lines[first + 3].split() == ["1", "needs", "a", "moon"]
    assert lines[first + 4].endswith("-> wait for the night")
    assert not any("expected" in line for line in lines[first:])
    assert skip_table(Counter()) == "Nothing was skipped."


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], WORKERS),
        (["-k", "ledger"], [*WORKERS, "-k", "ledger"]),
        (["-n0"], ["-n0"]),
        (["-p", "no:xdist"], ["-p", "no:xdist"]),
        (["--pdb"], ["--pdb"]),
        (["--nightly"], ["-n", "0", "-m", "nightly", "--nightly"]),
        (["--nightly", "-m", "nightly and slow"], ["-n", "0", "--nightly", "-m", "nightly and slow"]),
    ],
)
def test_arguments_go_through_to_pytest(given: list[str], expected: list[str]) -> None:
    """Three workers unless the caller chose otherwise."""
    assert pytest_arguments(given) == expected


def test_tests_write_to_memory_where_there_is_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else pytest uses the system's place for temporary files, as it does for who calls it by itself."""
    monkeypatch.setattr("tests.memory.FOLDER", str(tmp_path))
    monkeypatch.setattr("tests.memory.FREE_BYTES", 0)
    assert folder_in_memory() == str(tmp_path)
    monkeypatch.setattr("tests.memory.FREE_BYTES", 2**80)
    assert folder_in_memory() is None
    monkeypatch.setattr("tests.memory.FOLDER", str(tmp_path / "none"))
    assert folder_in_memory() is None
