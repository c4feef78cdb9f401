"""Dashboards as they are stored: tiles, readers, links, and refreshes, each claimed by one process at a time."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from sqlalchemy import Connection, Update, delete, func, insert, or_, select, update

from server.roles import ASKING
from server.store.errors import NotThere
from server.store.tables import (
    dashboard_links,
    dashboard_readers,
    dashboard_refreshes,
    dashboard_tiles,
    dashboards,
    principals,
)
from server.store.transactions import Transactions, iso

__all__ = [
    "REFRESHES_MAX",
    "DashboardRow",
    "DashboardRows",
    "LinkRow",
    "RefreshEnd",
    "RefreshRow",
    "Standing",
    "TileRow",
    "TileState",
]

REFRESHES_MAX = 2_000
"""Most refreshes of a tile that are kept; older ones are forgotten, their queries are not."""

TileState = Literal["waiting", "current", "exhausted", "refused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardRow:
    """One dashboard. `account` is its envelope, `sealed` has its title."""

    id: str
    principal: str
    dataset: str
    account: str
    sealed: bytes
    created: str = ""
    paused: str | None = None
    closed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TileRow:
    """One tile (server/store/tables.py says what each column is). `sealed` has its text and its title."""

    id: str
    dashboard: str
    name: str
    place: int
    sealed: bytes
    schedule: str
    created: str = ""
    slot: str | None = None
    wanted: str | None = None
    handled: str = ""
    version: str | None = None
    due: str | None = None
    due_at: str | None = None
    claim: str | None = None
    lease: str | None = None
    state: str = "waiting"
    code: str | None = None
    answered: str | None = None
    query: str | None = None
    digest: str | None = None
    as_of: str | None = None
    refreshed: str | None = None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRow:
    """What came of one refresh."""

    tile: str
    number: int
    at: str
    outcome: str
    query: str | None
    charged: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRow:
    """One link, without its token."""

    id: str
    dashboard: str
    label: str
    expires: str
    created: str = ""
    revoked: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshEnd:
    """What a refresh found, and what its tile shows from now on."""

    outcome: Literal["answered", "unchanged", "exhausted", "refused", "failed"]
    handled: str
    version: str | None
    query: str | None = None
    digest: str | None = None
    answered: str | None = None
    code: str | None = None
    charged: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A tile that the schedule may refresh: whose it is, of which dataset, and its envelope."""

    tile: TileRow
    principal: str
    dataset: str
    account: str


_DASHBOARD, _TILE, _REFRESH, _LINK = (
    tuple(field.name for field in fields(row)) for row in (DashboardRow, TileRow, RefreshRow, LinkRow)
)


class DashboardRows(Transactions):
    """The rows of dashboards. Thread-safe; every method is one transaction."""

    def add_dashboard(
        self, row: DashboardRow, tiles: Sequence[TileRow], readers: Iterable[str], *, most: int
    ) -> DashboardRow | None:
        """Stores a dashboard with its tiles; None where its principal has `most` already."""
        now = self._now()
        with self._acting() as connection:
            # One principal's are counted one after the other.
            connection.execute(select(principals.c.name).where(principals.c.name == row.principal).with_for_update())
            mine = select(func.count()).where(dashboards.c.principal == row.principal, dashboards.c.closed.is_(None))
            if connection.execute(mine).scalar_one() >= most:
                connection.rollback()
                return None
            values = {name: getattr(row, name) for name in _DASHBOARD} | {"created": now}
            connection.execute(insert(dashboards).values(**values))
            self._put_tiles(connection, tiles, now)
            self._put_readers(connection, row.id, readers)
            self._log(connection, actor=row.principal, action="dashboard_add", subject=row.id)
            self._commit(connection)
        return DashboardRow(**values)

    def replace_dashboard(
        self,
        row: DashboardRow,
        *,
        removed: Iterable[str],
        kept: Mapping[str, Mapping[str, object]],
        added: Sequence[TileRow],
        readers: Iterable[str],
        actor: str,
    ) -> None:
        """Gives a dashboard another title, other readers and other tiles. Errors: NotThere for a closed one.

        `removed` and `kept` are identifiers of tiles, the latter with the columns that change.
        """
        now = self._now()
        with self._acting() as connection:
            this = (dashboards.c.id == row.id) & dashboards.c.closed.is_(None)
            if connection.execute(update(dashboards).where(this).values(sealed=row.sealed)).rowcount != 1:
                connection.rollback()
                raise NotThere(row.id)
            for tile in removed:
                connection.execute(_change(tile).values(slot=None, claim=None, lease=None))
            for tile, values in kept.items():
                connection.execute(_change(tile).values(**values))
            self._put_tiles(connection, added, now)
            connection.execute(delete(dashboard_readers).where(dashboard_readers.c.dashboard == row.id))
            self._put_readers(connection, row.id, readers)
            self._log(connection, actor=actor, action="dashboard_change", subject=row.id)
            self._commit(connection)

    def dashboard(self, dashboard_id: str) -> DashboardRow | None:
        """The dashboard of that identifier, closed or not."""
        with self._engine.connect() as connection:
            found = connection.execute(select(dashboards).where(dashboards.c.id == dashboard_id)).one_or_none()
        return None if found is None else DashboardRow(**found._mapping)

    def dashboards(
        self, principal: str | None, *, reader: str | None = None, after: str | None, count: int
    ) -> tuple[DashboardRow, ...]:
        """Dashboards that were not closed, the newest first: a principal's, those a reader may read, or everybody's."""
        query = select(dashboards).where(dashboards.c.closed.is_(None))
        if reader is not None:
            lent = select(dashboard_readers.c.dashboard).where(dashboard_readers.c.principal == reader)
            query = query.where(dashboards.c.id.in_(lent))
        elif principal is not None:
            query = query.where(dashboards.c.principal == principal)
        return tuple(DashboardRow(**row._mapping) for row in self._page(query, dashboards, after=after, count=count))

    def readers(self, dashboard_id: str) -> tuple[str, ...]:
        """Who may read a dashboard beside its owner, in order."""
        table = dashboard_readers
        query = select(table.c.principal).where(table.c.dashboard == dashboard_id).order_by(table.c.principal)
        with self._engine.connect() as connection:
            return tuple(connection.execute(query).scalars())

    def tiles(self, dashboard_id: str) -> tuple[TileRow, ...]:
        """The tiles of a dashboard, in their order."""
        table = dashboard_tiles
        query = select(table).where(table.c.dashboard == dashboard_id, table.c.slot.is_not(None))
        with self._engine.connect() as connection:
            found = connection.execute(query.order_by(table.c.place, table.c.id)).all()
        return tuple(TileRow(**row._mapping) for row in found)

    def pause_dashboard(self, dashboard_id: str, *, paused: bool, actor: str) -> None:
        """Stops the schedule of a dashboard, or goes on with it. Errors: NotThere for a closed one."""
        with self._acting() as connection:
            this = (dashboards.c.id == dashboard_id) & dashboards.c.closed.is_(None)
            value = func.coalesce(dashboards.c.paused, self._now()) if paused else None
            if connection.execute(update(dashboards).where(this).values(paused=value)).rowcount != 1:
                connection.rollback()
                raise NotThere(dashboard_id)
            action = "dashboard_pause" if paused else "dashboard_resume"
            self._log(connection, actor=actor, action=action, subject=dashboard_id)
            self._commit(connection)

    def close_dashboard(self, dashboard_id: str, *, actor: str) -> None:
        """Ends a dashboard, its tiles and its links. Errors: NotThere for one that is closed already."""
        now = self._now()
        with self._acting() as connection:
            this = (dashboards.c.id == dashboard_id) & dashboards.c.closed.is_(None)
            if connection.execute(update(dashboards).where(this).values(closed=now)).rowcount != 1:
                connection.rollback()
                raise NotThere(dashboard_id)
            mine = dashboard_tiles.c.dashboard == dashboard_id
            connection.execute(update(dashboard_tiles).where(mine).values(slot=None, claim=None, lease=None))
            links = (dashboard_links.c.dashboard == dashboard_id) & dashboard_links.c.revoked.is_(None)
            connection.execute(update(dashboard_links).where(links).values(revoked=now))
            self._log(connection, actor=actor, action="dashboard_close", subject=dashboard_id)
            self._commit(connection)

    # Refreshes

    def want_refresh(self, tile_id: str) -> None:
        """Asks for a refresh at the next look of the schedule; nothing while one is asked for."""
        with self._writing() as connection:
            connection.execute(_change(tile_id).where(dashboard_tiles.c.wanted.is_(None)).values(wanted=self._now()))
            connection.commit()

    def standing_tiles(self) -> tuple[Standing, ...]:
        """Every tile whose dashboard is open and runs, and whose owner may ask. Without its text: see `tile_text`.

        This is read every second, and most of it is due at another time.
        """
        query = (
            select(
                *(dashboard_tiles.c[name] for name in _TILE if name != "sealed"),
                *(dashboards.c[name].label(f"of_{name}") for name in ("principal", "dataset", "account")),
            )
            .join(dashboards, dashboards.c.id == dashboard_tiles.c.dashboard)
            .join(principals, principals.c.name == dashboards.c.principal)
            .where(
                *(dashboard_tiles.c.slot.is_not(None), dashboards.c.closed.is_(None), dashboards.c.paused.is_(None)),
                *(principals.c.disabled.is_(None), principals.c.role.in_([role.value for role in ASKING])),
            )
            .order_by(dashboard_tiles.c.handled, dashboard_tiles.c.id)
        )
        with self._engine.connect() as connection:
            found = connection.execute(query).mappings().all()
        return tuple(
            Standing(
                TileRow(**{name: row[name] for name in _TILE if name != "sealed"}, sealed=b""),
                principal=row["of_principal"],
                dataset=row["of_dataset"],
                account=row["of_account"],
            )
            for row in found
        )

    def tile_text(self, tile: TileRow) -> TileRow:
        """A tile of `standing_tiles` with its text. Errors: NoResultFound."""
        query = select(dashboard_tiles.c.sealed).where(dashboard_tiles.c.id == tile.id)
        with self._engine.connect() as connection:
            return replace(tile, sealed=connection.execute(query).scalar_one())

    def claim_refresh(
        self, tile: TileRow, *, due: str, at: str, now: datetime.datetime, lease_seconds: int
    ) -> str | None:
        """Makes a refresh this caller's for the lease. None where another process has it, or the tile moved on.

        A lease that ends later than any given now can was given under a clock that was ahead: it is over.
        """
        table, claim = dashboard_tiles, secrets.token_hex(12)
        until = iso(now + datetime.timedelta(seconds=lease_seconds))
        free = or_(table.c.lease.is_(None), table.c.lease <= iso(now), table.c.lease > until)
        same = (table.c.number == tile.number) & (func.coalesce(table.c.due, due) == due)
        with self._writing() as connection:
            mine = connection.execute(
                _change(tile.id).where(free, same).values(due=due, due_at=at, claim=claim, lease=until)
            )
            connection.commit()
        return claim if mine.rowcount == 1 else None

    def release_refresh(self, tile_id: str, claim: str, *, until: str, due: str | None = None) -> None:
        """Gives a refresh back that could not be made. It may be claimed after `until`, with the key `due` if given."""
        values = {"claim": None, "lease": until} | ({} if due is None else {"due": due})
        with self._writing() as connection:
            connection.execute(_change(tile_id).where(dashboard_tiles.c.claim == claim).values(**values))
            connection.commit()

    def end_refresh(self, tile: TileRow, claim: str, end: RefreshEnd, *, at: str) -> bool:
        """Stores what came of a refresh, in one transaction. False, and nothing changed, where it is not the caller's.

        The answer that is shown stays where the refresh has none, or the same one.
        """
        shown: dict[str, object] = {"state": _STATES[end.outcome], "code": end.code}
        query = tile.query
        if end.outcome in ("answered", "unchanged"):
            shown["answered"] = end.answered
            if end.digest != tile.digest:
                query = end.query
                shown |= {"query": end.query, "digest": end.digest, "as_of": at}
        values = {
            **shown,
            "handled": end.handled,
            "version": end.version,
            "refreshed": at,
            "number": tile.number + 1,
            **dict.fromkeys(("due", "due_at", "claim", "lease")),
        }
        with self._writing() as connection:
            table = dashboard_tiles
            done = connection.execute(
                _change(tile.id).where(table.c.claim == claim, table.c.number == tile.number).values(**values)
            )
            if done.rowcount != 1:
                connection.rollback()
                return False
            if tile.wanted is not None:
                connection.execute(_change(tile.id).where(table.c.wanted == tile.wanted).values(wanted=None))
            kept = query if end.outcome in ("answered", "unchanged") else None
            row = {"tile": tile.id, "number": tile.number + 1, "at": at, "outcome": end.outcome}
            connection.execute(insert(dashboard_refreshes).values(**row, query=kept, charged=end.charged))
            old = dashboard_refreshes.c.number <= tile.number + 1 - REFRESHES_MAX
            connection.execute(delete(dashboard_refreshes).where(dashboard_refreshes.c.tile == tile.id, old))
            connection.commit()
        return True

    def refreshes(self, tile_id: str, *, count: int) -> tuple[RefreshRow, ...]:
        """The last refreshes of a tile, the oldest first."""
        table = dashboard_refreshes
        query = select(table).where(table.c.tile == tile_id).order_by(table.c.number.desc()).limit(count)
        with self._engine.connect() as connection:
            found = connection.execute(query).all()
        return tuple(RefreshRow(**row._mapping) for row in reversed(found))

    # Links

    def add_link(self, row: LinkRow, *, most: int, actor: str) -> LinkRow | None:
        """Stores a link; None where its dashboard has `most` already that were not revoked."""
        values = {name: getattr(row, name) for name in _LINK} | {"created": self._now()}
        with self._acting() as connection:
            this = select(dashboards.c.id).where(dashboards.c.id == row.dashboard)
            connection.execute(this.with_for_update())
            same = (dashboard_links.c.dashboard == row.dashboard) & dashboard_links.c.revoked.is_(None)
            if connection.execute(select(func.count()).where(same)).scalar_one() >= most:
                connection.rollback()
                return None
            connection.execute(insert(dashboard_links).values(**values))
            self._log(connection, actor=actor, action="dashboard_link_add", subject=row.id)
            self._commit(connection)
        return LinkRow(**values)

    def links(self, dashboard_id: str) -> tuple[LinkRow, ...]:
        """The links of a dashboard, the newest first."""
        table = dashboard_links
        query = select(table).where(table.c.dashboard == dashboard_id)
        with self._engine.connect() as connection:
            found = connection.execute(query.order_by(table.c.created.desc(), table.c.id.desc())).all()
        return tuple(LinkRow(**row._mapping) for row in found)

    def revoke_link(self, dashboard_id: str, link_id: str, *, actor: str) -> None:
        """Ends a link. Errors: NotThere for one that is not the dashboard's, or was revoked."""
        table = dashboard_links
        with self._acting() as connection:
            this = (table.c.id == link_id) & (table.c.dashboard == dashboard_id) & table.c.revoked.is_(None)
            if connection.execute(update(table).where(this).values(revoked=self._now())).rowcount != 1:
                connection.rollback()
                raise NotThere(link_id)
            self._log(connection, actor=actor, action="dashboard_link_revoke", subject=link_id)
            self._commit(connection)

    def _put_tiles(self, connection: Connection, tiles: Sequence[TileRow], now: str) -> None:
        """New tiles. Each is to be refreshed at the next look: it has no answer yet."""
        for tile in tiles:
            values = {name: getattr(tile, name) for name in _TILE}
            stands = {"slot": f"{tile.dashboard}/{tile.name}", "created": now, "handled": now, "wanted": now}
            connection.execute(insert(dashboard_tiles).values(**values | stands))

    def _put_readers(self, connection: Connection, dashboard_id: str, readers: Iterable[str]) -> None:
        for name in sorted(set(readers)):
            connection.execute(insert(dashboard_readers).values(dashboard=dashboard_id, principal=name))


_STATES: Mapping[str, TileState] = {
    "answered": "current",
    "unchanged": "current",
    "exhausted": "exhausted",
    "refused": "refused",
    "failed": "failed",
}


def _change(tile_id: str) -> Update:
    return update(dashboard_tiles).where(dashboard_tiles.c.id == tile_id)
