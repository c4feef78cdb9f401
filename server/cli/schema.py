"""Which schema the database has, told without loading the migration tool: every start would wait for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.store.registry import Registry

__all__ = ["check_schema", "revisions"]

_FOLDER = Path(__file__).resolve().parents[2] / "migrations" / "versions"
_ASSIGNED = re.compile(r'^(revision|down_revision) = (?:"([^"]+)"|None)$', re.MULTILINE)


def revisions() -> tuple[str, ...]:
    """Every revision that this program knows, oldest first. A test compares it with the migration tool's."""
    below: dict[str | None, str] = {}
    for path in _FOLDER.glob("revision_*.py"):
        found = {name: value or None for name, value in _ASSIGNED.findall(path.read_text("utf-8"))}
        revision = found["revision"]
        assert revision is not None
        below[found["down_revision"]] = revision
    ordered: list[str] = []
    last: str | None = None
    while (following := below.get(last)) is not None:
        ordered.append(following)
        last = following
    return tuple(ordered)


def check_schema(registry: Registry) -> None:
    """Errors: NotMigrated or SchemaTooNew unless the database has exactly this program's schema."""
    from sqlalchemy.exc import OperationalError, ProgrammingError

    from accountant.errors import NotMigrated, SchemaTooNew

    try:
        present = registry.schema_revision()
    except (OperationalError, ProgrammingError) as error:
        text = str(error.orig).lower()
        if "no such table" in text or "does not exist" in text:
            raise NotMigrated("the database has no schema yet") from None
        raise
    known = revisions()
    if present == known[-1]:
        return
    if present is None or present in known:
        raise NotMigrated("the database has an older schema")
    raise SchemaTooNew("the database has a schema that this program does not know")
