"""Each home of an earlier version, unpacked and migrated, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrations.upgrade import upgrade
from tests.databases import EmptyDatabase
from tests.upgrade.homes import LEFT, OldHome, copy_to, entries_of, unpack

AT_NIGHT = ("0.2.1", "0.3.0", "0.5.0", "0.6.0", "0.7.0", "0.9.0", "0.11.0")
"""Their homes have nothing that those of 0.2.0, 0.4.0 and later ones lack."""

ON_SQLITE = ("0.4.0", "0.8.0")
"""Homes that were asked nothing that later ones were not: on PostgreSQL they are upgraded at night."""

DATABASES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks homes that are upgraded at night, or on PostgreSQL at night, and all but the newest slow.

    Before what `tests/conftest.py` does with these marks.
    """
    for item in items:
        if item.path.parent == Path(__file__).parent and isinstance(item, pytest.Function):
            made = getattr(item, "callspec", None)
            if made is not None and made.params.get("version") != next(reversed(LEFT)):
                item.add_marker(pytest.mark.slow)
            if made is not None and made.params.get("version") in AT_NIGHT:
                item.add_marker(pytest.mark.nightly)
            if made is not None and made.params.get("old") == "postgresql" and made.params["version"] in ON_SQLITE:
                item.add_marker(pytest.mark.nightly)


@pytest.fixture(scope="module", params=LEFT)
def version(request: pytest.FixtureRequest) -> str:
    """Each version that left a home; a test of some of them names these itself."""
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module", params=DATABASES)
def old(request: pytest.FixtureRequest, version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldHome]:
    """The home, migrated and served by this version."""
    folder: Path = tmp_path_factory.mktemp("old")
    unpack(version, folder)
    before = entries_of(folder)
    if request.param == "sqlite":
        yield from _served(OldHome(version, folder, None), before)
        return
    with EmptyDatabase(request.getfixturevalue("postgresql_server")) as address:
        copy_to(address, folder / "ledger.sqlite", LEFT[version].revision)
        (folder / "ledger.sqlite").unlink()
        yield from _served(OldHome(version, folder, address), before)


def _served(home: OldHome, before: list[dict[str, object]]) -> Iterator[OldHome]:
    """Migrates the home, serves it, and looks at it before any test asks something: some spend."""
    upgrade(home.settings.database())
    home.entries = before
    with home.serving():
        assert home.services is not None
        home.audit = home.services.ledger.audit()
        home.budgets = home.call("admin", "GET", "/v1/budgets").json()["budgets"]
        yield home
