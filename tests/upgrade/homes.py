"""A home of an earlier version under this version's program, and what that version left in it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from alembic import command
from pydantic import SecretStr
from sqlalchemy import MetaData, create_engine, func, select, text

from accountant.audit import AuditReport
from accountant.connection import open_engine
from migrations.upgrade import configuration
from server.app import create_app
from server.build import build_services
from server.services import Services
from server.settings import Settings
from tests.kept_workers import kept_workers

__all__ = ["LEFT", "Left", "OldHome", "archive_of", "copy_to", "entries_of", "unpack"]


@dataclass(frozen=True, slots=True)
class Left:
    """What a version left behind; `make_home.py` says how it came about."""

    revision: str
    """The newest revision of its database."""
    accounts: int
    queries: int
    releases: int
    answered: tuple[str, ...]
    """The questions that have an answer, by their names in `asked.json`."""
    paid: tuple[str, ...]
    """Those whose releases their principal paid for as new ones."""
    ended: Mapping[str, str]
    """The state, under this version, of the queries that have no answer."""
    balance: tuple[str, ...]
    """The fields of a budget that mean the same now."""


_BALANCE = ("limit", "filter", "parent", "principal", "used_share", "remaining")
_PAID = ("public_keys", "hidden_keys", "average", "retried")
_ENDED = {"q_void": "failed_void", "q_fail": "failed_charged"}


def _left_since_0_2(revision: str, left_open: str, *chosen: str) -> Left:
    """These versions were asked the same; `chosen` are questions that chose norms or bounds, each by histograms."""
    paid = (*_PAID, "wide", *chosen)
    return Left(
        revision,
        accounts=3,
        queries=10 + len(chosen) + chosen.count("width"),  # one for each of its two charges
        releases=5 + sum(_RELEASES[name] for name in chosen),
        answered=(*paid, "repeated", "read"),
        paid=paid,
        ended={**_ENDED, left_open: "failed_charged"},
        balance=(*_BALANCE, "membership_guess"),
    )


_RELEASES = {
    "norms": 2, "weights": 2, "values": 3, "width": 2, "median": 1, "distinct": 1, "within": 1, "levels": 1,
    "stages": 1, "choice": 1, "quantiles": 1, "first": 1, "rows": 2,
    "together": 2, "histogram": 1, "any": 1, "listed": 2,
    "middle": 1, "series": 1, "pairs": 1,
    "pivot": 1, "named": 1, "membership": 1, "dearer": 1, "returned": 1,
    "laplace": 1, "moments": 1, "atoms": 1, "own_groups": 1,
    "running": 1, "averages": 1, "merged": 1, "positive": 1, "part": 1, "rest": 1,
}  # fmt: skip
"""How many releases a question makes: an average may choose bounds, then a norm; two stages read a stored one."""

_FROM_OTHERS = ("quantiles", "histogram")
"""Questions that 0.13.0 answers from what others measured."""

_OF_0_6 = ("norms", "weights", "values", "width", "median", "distinct", "within", "levels")
_OF_0_7 = (*_OF_0_6, "stages", "choice", "quantiles", "first", "rows")
_OF_0_8 = (*_OF_0_7, "together", "histogram", "any", "listed")
_OF_0_9 = (*_OF_0_8, "middle", "series", "pairs")


def _with_sessions(left: Left) -> Left:
    """With a monitor, and a collector on an account of its own: one charge each."""
    return replace(left, accounts=left.accounts + 1, queries=left.queries + 2)


def _with_resources(left: Left) -> Left:
    """With a batch, a model, a synthetic table, and a query of that table; of the releases the batch has one."""
    return replace(left, queries=left.queries + 4, releases=left.releases + 1)


def _with_sharing(left: Left) -> Left:
    """With an answer that follows from the release of another question, and one that was sharpened."""
    answered = (*left.answered, "derived")
    paid = tuple(name for name in left.paid if name not in _FROM_OTHERS)
    return replace(left, queries=left.queries + 2, releases=left.releases - 1, answered=answered, paid=paid)


def _with_streams(left: Left) -> Left:
    """With a stream, a statistic and a second model, each a query; and the histogram that chose the model's bounds."""
    return replace(left, queries=left.queries + 3, releases=left.releases + 1)


_OF_0_10 = (*_OF_0_9, "pivot", "named", "membership")
_OF_PUBLIC = ("dearer", "returned")
_OF_SHARING = ("laplace", "moments", "atoms", "own_groups")
_OF_MANY = ("running", "averages", "merged", "positive", "part", "rest")

LEFT = {
    "0.1.0": Left(
        "0003", 4, 8, 5, (*_PAID, "repeated", "second_account"), (*_PAID, "second_account"), _ENDED, _BALANCE
    ),
    "0.2.0": _left_since_0_2("0007", "q_running"),
    "0.2.1": _left_since_0_2("0008", "q_reserved"),
    "0.3.0": _left_since_0_2("0008", "q_reserved"),
    "0.4.0": _left_since_0_2("0008", "q_reserved", "norms", "weights", "values"),
    "0.5.0": _left_since_0_2("0008", "q_reserved", "norms", "weights", "values", "width"),
    "0.6.0": _left_since_0_2("0008", "q_reserved", *_OF_0_6),
    "0.7.0": _left_since_0_2("0008", "q_reserved", *_OF_0_7),
    "0.8.0": _left_since_0_2("0008", "q_reserved", *_OF_0_8),
    "0.9.0": _with_sessions(_left_since_0_2("0010", "q_reserved", *_OF_0_9)),
    "0.10.0": _with_resources(_with_sessions(_left_since_0_2("0013", "q_reserved", *_OF_0_10))),
    "0.11.0": _with_streams(_with_resources(_with_sessions(_left_since_0_2("0018", "q_reserved", *_OF_0_10)))),
    "0.12.0": _with_streams(
        _with_resources(_with_sessions(_left_since_0_2("0020", "q_reserved", *_OF_0_10, *_OF_PUBLIC)))
    ),
    "0.13.0": _with_sharing(
        _with_streams(
            _with_resources(_with_sessions(_left_since_0_2("0022", "q_reserved", *_OF_0_10, *_OF_PUBLIC, *_OF_SHARING)))
        )
    ),
    "0.14.0": _with_sharing(
        _with_streams(
            _with_resources(
                _with_sessions(_left_since_0_2("0023", "q_reserved", *_OF_0_10, *_OF_PUBLIC, *_OF_SHARING, *_OF_MANY))
            )
        )
    ),
}


def archive_of(version: str) -> Path:
    """The home that a version left behind."""
    return Path(__file__).with_name(f"home-{version}.tar.gz")


def unpack(version: str, folder: Path) -> None:
    """Puts the home of a version into a folder."""
    with tarfile.open(archive_of(version)) as archive:
        archive.extractall(folder, filter="data")


class OldHome:
    """One home of an earlier version under this version's program, and what its users were told."""

    def __init__(self, version: str, folder: Path, database: str | None) -> None:
        self.left = LEFT[version]
        self.asked: dict[str, Any] = json.loads((folder / "asked.json").read_text())
        self.settings = Settings(home=folder, database_url=None if database is None else SecretStr(database))
        self.services: Services | None = None
        self.audit: AuditReport | None = None
        self.budgets: list[dict[str, Any]] = []
        self.entries: list[dict[str, Any]] = []
        """The rows of the entries as the earlier version wrote them."""

    @contextlib.contextmanager
    def serving(self) -> Iterator[OldHome]:
        """The services of the home, started as `serve` starts them."""
        with kept_workers():
            self.services = build_services(self.settings)
        try:
            yield self
        finally:
            self.services.jobs.close(seconds=5)
            for close in self.services.closing:
                close()
            self.services = None

    def question(self, name: str) -> dict[str, Any]:
        """What was asked of the earlier version under that name, and what it answered."""
        question: dict[str, Any] = self.asked["questions"][name]
        return question

    def call(self, who: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request with a key that the earlier version made."""
        assert self.services is not None
        services = self.services

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=create_app(services.settings, services=services))
            async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
                key = {"Authorization": f"Bearer {self.asked['keys'][who]}"}
                return await client.request(method, path, json=body, headers={**key, **headers})

        return asyncio.run(send())


def entries_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of the entries in an unpacked home, oldest first."""
    engine = create_engine(f"sqlite:///{folder / 'ledger.sqlite'}")
    with engine.connect() as connection:
        rows = [dict(row._mapping) for row in connection.execute(text("SELECT * FROM entries ORDER BY sequence"))]
    engine.dispose()
    return rows


def copy_to(url: str, ledger: Path, revision: str) -> None:
    """Puts the rows of a SQLite ledger into a PostgreSQL database, at the revision that its version had."""
    target = open_engine(url, foreign_keys=False)
    with target.connect() as connection:
        config = configuration()
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()
    source = create_engine(f"sqlite:///{ledger}")
    there = MetaData()
    there.reflect(target)
    here = MetaData()
    here.reflect(source)
    with source.connect() as read, target.connect() as write:
        # The migration wrote a head of its own; the trigger that keeps it is about rows, not about this.
        write.execute(text("SET session_replication_role = replica"))
        write.execute(there.tables["ledger_meta"].delete())
        for table in here.sorted_tables:
            if table.name != "alembic_version":
                rows = [dict(row._mapping) for row in read.execute(select(table))]
                if rows:
                    write.execute(there.tables[table.name].insert(), rows)
        for name in ("dataset_versions", "registry_events"):
            newest = write.execute(select(func.max(there.tables[name].c.sequence))).scalar_one()
            write.execute(text(f"SELECT setval(pg_get_serial_sequence('{name}', 'sequence'), {newest})"))
        write.commit()
    source.dispose()
    target.dispose()
