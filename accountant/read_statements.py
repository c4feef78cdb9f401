"""The statements of reading: built once, because making one costs more than running it."""

from __future__ import annotations

from sqlalchemy import Label, Select, Text, bindparam, literal_column, or_, select

from accountant.entry import EMPTY, ENDS
from accountant.rows import ReleaseRow
from accountant.statements import ACCOUNT_COLUMNS
from accountant.tables import accounts, queries, readings
from accountant.tables import releases as release_table

__all__ = [
    "ANSWER",
    "BEST",
    "BEST_OF",
    "BEST_OF_OWN",
    "BEST_OWN",
    "EARLIER",
    "FRAMES",
    "FRAMES_MAX",
    "RELEASE",
    "RELEASES_OF",
    "RELEASE_COLUMNS",
    "SPENDABLE",
    "STANDING",
    "held_by",
    "held_by_read",
    "kept_of",
]

FRAMES_MAX = 4
"""Most frames without groups that are looked up at once."""

FRAMES = tuple(f"frame{place}" for place in range(FRAMES_MAX))
"""Their parameters."""

SPENDABLE = (
    select(*ACCOUNT_COLUMNS)
    .where(
        accounts.c.dataset == bindparam("dataset"),
        or_(accounts.c.principal == bindparam("principal"), accounts.c.principal.is_(None)),
        or_(accounts.c.expires.is_(None), accounts.c.id == bindparam("named")),
    )
    .order_by(accounts.c.depth, accounts.c.created, accounts.c.id)
)
STANDING = select(*ACCOUNT_COLUMNS).where(accounts.c.id == bindparam("account"))


def kept_of(query: str) -> Label[str]:
    """What the end of a query says was kept of it. Without parameters: statements travel as text."""
    ends = ", ".join(f"'{kind.value}'" for kind in ENDS)
    return literal_column(
        f"(SELECT MAX(e.details) FROM entries AS e WHERE e.query_id = {query} AND e.kind IN ({ends}) "
        f"AND e.details <> '{EMPTY}')",
        Text,
    ).label("kept")


ANSWER_COLUMNS = (
    queries.c.answer,
    queries.c.answer_of,
    queries.c.answer_at,
    queries.c.answer_from,
    queries.c.answer_to,
    kept_of("queries.id"),
)
RELEASE_COLUMNS = (
    *(release_table.c[name] for name in ReleaseRow._fields if name != "kept"),
    kept_of("releases.query_id"),
)
ANSWER = select(*ANSWER_COLUMNS).where(queries.c.id == bindparam("query"))
EARLIER = select(queries.c.id, queries.c.state, queries.c.body_hash, queries.c.charged, *ANSWER_COLUMNS).where(
    queries.c.principal == bindparam("principal"), queries.c.idempotency_key == bindparam("key")
)
RELEASE = select(*RELEASE_COLUMNS).where(release_table.c.id == bindparam("release"))
RELEASES_OF = (
    select(*RELEASE_COLUMNS)
    .where(release_table.c.query_id == bindparam("query"))
    .order_by(release_table.c.quality.desc(), release_table.c.id.desc())
)
BEST = (
    select(*RELEASE_COLUMNS)
    .where(release_table.c.core_key == bindparam("core_key"), release_table.c.quality >= bindparam("least"))
    .order_by(release_table.c.quality.desc(), release_table.c.created.desc(), release_table.c.id.desc())
)
BEST_OWN = BEST.where(release_table.c.principal == bindparam("principal"))
BEST_OF = (
    select(*RELEASE_COLUMNS)
    .where(or_(release_table.c.core_key == bindparam("one"), release_table.c.core_key == bindparam("other")))
    .order_by(release_table.c.quality.desc(), release_table.c.created.desc(), release_table.c.id.desc())
)
BEST_OF_OWN = BEST_OF.where(release_table.c.principal == bindparam("principal"))


_HELD_COLUMNS = [release_table.c[name] for name in ("id", "core_key", "quality", "coarse", "held")]


def held_by(*, finer: bool, own: bool) -> Select[tuple[object, ...]]:
    """What the releases of a frame, or of finer groups, hold; of one principal where `own`."""
    wanted = release_table.c.frame == bindparam("frame")
    if finer:
        wanted = release_table.c.coarse.in_([bindparam(name) for name in FRAMES])
    chosen = select(*_HELD_COLUMNS).where(wanted)
    if own:
        chosen = chosen.where(release_table.c.principal == bindparam("principal"))
    return chosen.order_by(release_table.c.quality.desc(), release_table.c.created.desc())


def held_by_read(*, finer: bool) -> Select[tuple[object, ...]]:
    """The same of those that an account was charged for reading."""
    read = readings.c.account == bindparam("account")
    return held_by(finer=finer, own=False).join(readings, readings.c.release == release_table.c.id).where(read)
