"""Empty databases of both kinds."""

from __future__ import annotations

from tests.databases import empty_postgresql_url, postgresql_server  # noqa: F401 - fixtures are found by their names
