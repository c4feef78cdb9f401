"""Homes: one is made for all tests and copied for each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import cli
from tests.kept_workers import kept_workers

PEOPLE = "person_id,age,city,score\n" + "".join(
    f"{number},{20 + number % 60},{'ABC'[number % 3]},{number / 100}\n" for number in range(1, 61)
)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the caller's own installation gets in."""
    for name in list(os.environ):
        if name.startswith("NOISEGATE_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """Commands that run in this process have workers that run already."""
    with kept_workers():
        yield


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A data file with one row per person."""
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


@pytest.fixture(scope="session")
def _made_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    data = folder / "people.csv"
    data.write_text(PEOPLE)
    home = folder / "home"
    described = folder / "people.yaml"
    assert cli("migrate", "--home", str(home)).code == 0
    assert cli("init", str(data), "--unit", "person_id", "-o", str(described)).code == 0
    assert cli("dataset", "add", str(described), "--home", str(home)).code == 0
    return home


@pytest.fixture
def home(_made_home: Path, tmp_path: Path) -> Path:
    """A home with a ledger and the attached dataset "people"."""
    path = tmp_path / "home"
    shutil.copytree(_made_home, path)
    return path


@pytest.fixture
def empty_home(tmp_path: Path) -> Path:
    """A home with a ledger and nothing else."""
    path = tmp_path / "home"
    assert cli("migrate", "--home", str(path)).code == 0
    return path
