"""The profile that a home has published of a dataset, for commands that advise from it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from server.home import Home

if TYPE_CHECKING:
    from privacy.values import Json

__all__ = ["published_profile"]


def published_profile(place: Home, name: str) -> Mapping[str, Json] | None:
    """The profile of the version of the dataset that this home serves; None without one, or without a home."""
    from accountant.connection import open_engine
    from accountant.reads import Reads
    from server.published import Published

    settings = place.settings()
    if not place.path.is_dir() or not place.has_ledger(settings):
        return None
    place.require_migrated(settings)
    with place.registry(settings) as registry:
        version = next((one for one in registry.datasets() if one.name == name), None)
    if version is None:
        return None
    with contextlib.ExitStack() as opened:
        engine = open_engine(settings.database())
        opened.callback(engine.dispose)
        return Published(Reads(engine)).find(name, version.data_version)
