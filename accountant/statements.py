"""The statements of a batch, compiled once for a database and run as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    ClauseElement,
    Column,
    ColumnElement,
    Dialect,
    Row,
    Table,
    any_,
    bindparam,
    func,
    insert,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.types import ARRAY, LargeBinary, Text

from accountant.direct import Parameters
from accountant.entry import Amounts
from accountant.states import EntryKind, QueryStatus
from accountant.tables import accounts, acts, entries, instances, ledger_meta, queries, readings, releases

__all__ = [
    "ACCOUNT_COLUMNS",
    "SPENT_COLUMNS",
    "AccountRow",
    "Columns",
    "DialectKind",
    "Statements",
    "Value",
    "Values",
    "hash_of",
    "statements_of",
    "text_of",
]

Value = None | int | str | bytes

Values = dict[str, Value]
"""A row to be written, or the parameters of a statement, by name."""

Columns = Row[*tuple[object, ...]]
"""A row that was read."""

CANDIDATES_MAX = 16
"""Releases of others that are looked at for one core: the least exact ones that are exact enough come first."""


def hash_of(sequence: int | BindParameter[int]) -> ColumnElement[str | None]:
    """The hash of the entry, or of the act, that has a number; NULL where there is neither."""
    of_entry = select(entries.c.hash).where(entries.c.sequence == sequence).scalar_subquery()
    of_act = select(acts.c.hash).where(acts.c.sequence == sequence).scalar_subquery()
    return func.coalesce(of_entry, of_act)


class AccountRow(NamedTuple):
    """The columns of an account that decide what it may spend, in the order in which they are read."""

    id: str
    dataset: str
    parent: str | None
    depth: int
    principal: str | None
    name: str
    filter: str
    share_gaussian: int
    share_concentrated: int
    share_mixed: int
    limit_epsilon: int
    limit_delta: int
    budget_pure: int
    budget_delta: int
    budget_rho: int | None
    budget_mu_squared: int | None
    budget_gaussian_delta: int
    budget_concentrated_delta: int
    budget_mixed_pure: int | None
    budget_mixed_mu_squared: int | None
    budget_mixed_delta: int
    entries: int
    hash: str
    created: int
    frozen: int
    revision: int
    greatest_epsilon: int
    greatest_delta: int
    space: str
    expires: int | None
    window_rule: str | None
    window_spent: str | None
    spent_pure: int
    spent_delta: int
    spent_rho: int
    spent_mu_squared: int
    unbounded_pure: int
    unbounded_rho: int
    unbounded_mu_squared: int
    spent_mixed_pure: int
    spent_mixed_mu_squared: int
    unbounded_mixed: int


SPENT_COLUMNS = AccountRow._fields[-len(Amounts._fields) :]
"""The columns of `accounts` that hold what was spent, in the order of `Amounts`."""

ACCOUNT_COLUMNS = [accounts.c[name] for name in AccountRow._fields]


_QUERY_COLUMNS = [
    queries.c.id,
    queries.c.principal,
    queries.c.dataset,
    queries.c.account,
    queries.c.idempotency_key,
    queries.c.body_hash,
    queries.c.state,
    queries.c.description,
    queries.c.cores,
    queries.c.charged,
    queries.c.instance,
    queries.c.created,
    queries.c.finished,
]
_ENTRY_AMOUNTS = [entries.c[name] for name in Amounts._fields]


@dataclass(frozen=True)
class DialectKind:
    """A dialect, equal to all that write the same text."""

    dialect: Dialect = field(compare=False, repr=False)
    kind: type[Dialect]
    paramstyle: str
    version: tuple[int | str, ...] | None

    @classmethod
    def of(cls, dialect: Dialect) -> DialectKind:
        """The kind of a dialect; of PostgreSQL, once it is connected, with the server's version."""
        version = dialect.server_version_info
        return cls(dialect, type(dialect), dialect.paramstyle, None if version is None else tuple(version))


@lru_cache(maxsize=64)
def text_of(statement: ClauseElement, kind: DialectKind) -> str:
    """A statement compiled for a dialect, once in a process."""
    return str(statement.compile(dialect=kind.dialect))


@lru_cache(maxsize=4)
def statements_of(kind: DialectKind) -> Statements:
    """The batch's statements for a dialect, compiled once in a process: it takes as long as opening the ledger."""
    return Statements(kind.dialect)


class Statements:
    """The batch's statements, compiled once for a database and run as text: compiling is most of a short statement.

    Lists travel as one parameter, so their number does not change the text; all parameters are named and have the
    types of the drivers.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._sqlite = dialect.name == "sqlite"
        self._dialect = dialect
        self._read_accounts_and_queries()
        self._read_releases()
        self._write()

    def _compiled(self, statement: ClauseElement) -> str:
        return str(statement.compile(dialect=self._dialect))

    def _read_accounts_and_queries(self) -> None:
        compiled = self._compiled
        # With the hash at the last durable head of this process: one statement more would cost every batch.
        kept = hash_of(bindparam("durable"))
        head = select(ledger_meta.c.sequence, ledger_meta.c.hash, ledger_meta.c.epoch, kept)
        self.head = compiled(head.with_for_update())
        self.accounts = compiled(
            select(*ACCOUNT_COLUMNS)
            .where(self._in(accounts.c.id, "ids"))
            .order_by(accounts.c.depth, accounts.c.id)
            .with_for_update()
        )
        self.parents = compiled(select(accounts.c.id, accounts.c.parent).where(self._in(accounts.c.id, "ids")))
        self.sibling = compiled(
            select(accounts.c.id).where(
                accounts.c.parent == bindparam("parent"), accounts.c.principal == bindparam("principal")
            )
        )
        self.owned = compiled(select(accounts.c.id).where(accounts.c.principal == bindparam("principal")))
        self.of_dataset = compiled(select(accounts.c.id).where(accounts.c.dataset == bindparam("dataset"))) + " LIMIT 1"
        around = accounts.alias("around")
        beside = around.c.space.in_(select(accounts.c.space).where(accounts.c.dataset == bindparam("dataset")))
        self.in_spaces = compiled(select(around.c.id).where(or_(beside, around.c.space == bindparam("space"))))
        self.open_beside = compiled(
            select(queries.c.id)
            .join(around, around.c.id == queries.c.account)
            .where(queries.c.state == literal_column(f"'{QueryStatus.RESERVED}'"), beside)
        )
        self.roots = compiled(select(accounts.c.id).where(accounts.c.parent.is_(None)))
        self.queries = compiled(select(*_QUERY_COLUMNS).where(self._in(queries.c.id, "ids")))
        self.keys = compiled(self._by_keys())
        self.charges = compiled(
            select(entries.c.query_id, entries.c.account, entries.c.account_sequence, *_ENTRY_AMOUNTS).where(
                self._in(entries.c.query_id, "ids"), entries.c.kind == literal_column(f"'{EntryKind.RESERVE}'")
            )
        )
        gone = select(instances.c.id).where(
            instances.c.id != bindparam("me"),
            or_(instances.c.expires < bindparam("now"), bindparam("all") == literal_column("1")),
        )
        self.expired = compiled(
            select(queries.c.id).where(
                queries.c.state == literal_column(f"'{QueryStatus.RESERVED}'"),
                queries.c.instance.in_(gone),
            )
        )

    def _read_releases(self) -> None:
        compiled = self._compiled
        self.releases = self._best_releases()
        paid = select(
            releases.c.id,
            releases.c.core_key,
            releases.c.quality,
            releases.c.dataset,
            releases.c.events,
            queries.c.account,
            queries.c.cores,
        ).join(queries, queries.c.id == releases.c.query_id)
        self.paid = compiled(paid.where(self._in(releases.c.id, "ids")))
        self.candidates = compiled(
            paid.where(releases.c.core_key == bindparam("core_key"), releases.c.quality >= bindparam("least")).order_by(
                releases.c.quality, releases.c.created.desc(), releases.c.id
            )
        )
        self.candidates += f" LIMIT {CANDIDATES_MAX}"
        self.best_read = compiled(
            select(
                releases.c.id,
                releases.c.core_key,
                releases.c.quality,
                releases.c.principal,
                releases.c.dataset,
                releases.c.created,
            )
            .join(readings, readings.c.release == releases.c.id)
            .where(readings.c.account == bindparam("account"), readings.c.core_key == bindparam("core_key"))
            .order_by(releases.c.quality.desc(), releases.c.created.desc(), releases.c.id.desc())
        )
        self.best_read += " LIMIT 1"
        self.readings = compiled(
            select(readings.c.release, readings.c.account).where(self._in(readings.c.release, "ids"))
        )

    def _write(self) -> None:
        compiled, dialect = self._compiled, self._dialect
        self.insert = {
            table: compiled(insert(table)) if self._sqlite else _insert_rows(table, dialect)
            for table in (accounts, queries, entries, releases)
        }
        if self._sqlite:
            places = ", ".join("?" for _ in entries.columns)
            names = ", ".join(column.name for column in entries.columns)
            self.insert[entries] = f"INSERT INTO {entries.name} ({names}) VALUES ({places})"
        self.insert[readings] = (
            compiled(insert(readings).prefix_with("OR IGNORE"))
            if self._sqlite
            else _insert_rows(readings, dialect) + " ON CONFLICT DO NOTHING"
        )
        self.update_queries = self._update(queries, ("state", "answer", "finished"))
        changing = (
            *("limit_epsilon", "limit_delta", "revision", "greatest_epsilon", "greatest_delta", "window_rule"),
            *(c.name for c in accounts.c if c.name.startswith("budget_")),
        )
        self.update_spent = self._update(accounts, (*SPENT_COLUMNS, "entries", "hash", "window_spent"))
        self.update_limits = compiled(
            update(accounts)
            .where(accounts.c.id == bindparam("key"))
            .values({name: bindparam(f"new_{name}") for name in changing})
        )
        self.update_frozen = compiled(
            update(accounts)
            .where(accounts.c.id == bindparam("key"))
            .values(frozen=bindparam("new_frozen"), expires=bindparam("new_expires"))
        )
        self.update_places = compiled(
            update(accounts)
            .where(accounts.c.id == bindparam("key"))
            .values({name: bindparam(f"new_{name}") for name in ("parent", "depth", "space")})
        )
        self.update_head = compiled(
            update(ledger_meta).values(
                sequence=bindparam("new_sequence"), hash=bindparam("new_hash"), epoch=bindparam("new_epoch")
            )
        )
        self.update_instance = compiled(
            update(instances)
            .where(instances.c.id == bindparam("key"), instances.c.batch == bindparam("last_batch"))
            .values(batch=bindparam("new_batch"), expires=bindparam("new_expires"))
        )
        self.renew_instance = compiled(
            update(instances)
            .where(instances.c.id == bindparam("key"))
            .values(batch=bindparam("new_batch"), expires=bindparam("new_expires"))
        )

    def rows(self, rows: list[Values]) -> list[Values] | dict[str, str]:
        """The parameters of an `insert`, `update_queries` or `update_spent`: the rows, or one text of all of them."""
        return rows if self._sqlite else {"rows": _ROWS.encode(rows)}

    def entries(self, rows: list[tuple[Value, ...]]) -> Parameters | Sequence[Sequence[Value]]:
        """The parameters of the `insert` of entries, whose fields are in the order of their columns."""
        if self._sqlite:
            return rows
        names = [column.name for column in entries.columns]
        return {"rows": _ROWS.encode([dict(zip(names, row, strict=True)) for row in rows])}

    def _update(self, table: Table, names: Sequence[str]) -> str:
        """Sets columns of rows, each found by its `key`, to what the row has as `new_` with the column's name."""
        if self._sqlite:
            values: dict[str, ColumnElement[object]] = {name: bindparam(f"new_{name}") for name in names}
            return self._compiled(update(table).where(table.c.id == bindparam("key")).values(values))
        read = {f"new_{name}": table.c[name] for name in names}
        values_read = zip(names, _values("given", read), strict=True)
        setting = ", ".join(f"{name} = {value}" for name, value in values_read)
        source = _recordset("given", {"key": table.c.id, **read}, self._dialect)
        return f"UPDATE {table.name} SET {setting} FROM {source} WHERE {table.name}.id = given.key"

    def ids(self, values: Iterable[str]) -> dict[str, str | list[str]]:
        """The parameter of a statement that asks for several rows."""
        listed = sorted(values)
        return {"ids": json.dumps(listed) if self._sqlite else listed}

    def pairs(self, values: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
        """The parameters of `keys`."""
        listed = sorted(values)
        if self._sqlite:
            return {"pairs": json.dumps(listed)}
        return {"principals": [pair[0] for pair in listed], "idempotency_keys": [pair[1] for pair in listed]}

    def _in(self, column: Column[str], parameter: str) -> ColumnElement[bool]:
        if self._sqlite:
            return column.in_(text(f"SELECT value FROM json_each(:{parameter})").columns(accounts.c.id))
        return column == any_(bindparam(parameter, type_=ARRAY(Text)))

    def _best_releases(self) -> str:
        """The best release for each wanted core: one step into an index, however many there are."""
        if self._sqlite:
            principal, core_key = "json_extract(wanted.value, '$[0]')", "json_extract(wanted.value, '$[1]')"
            source = "json_each(:wanted) AS wanted"
        else:
            principal, core_key = "wanted.principal", "wanted.core_key"
            source = (
                "unnest(CAST(%(principals)s AS text[]), CAST(%(core_keys)s AS text[])) AS wanted (principal, core_key)"
            )
        return (
            "SELECT r.id, r.core_key, r.quality, r.principal, r.dataset, r.created "
            f"FROM {source} JOIN releases AS r ON r.id = ("
            f"SELECT b.id FROM releases AS b WHERE b.core_key = {core_key} "
            f"AND ({principal} = '' OR b.principal = {principal}) "
            "ORDER BY b.quality DESC, b.created DESC, b.id DESC LIMIT 1)"
        )

    def wanted(self, cores: Iterable[tuple[str, str]]) -> dict[str, str | list[str]]:
        """The parameters of `releases`."""
        listed = sorted(cores)
        if self._sqlite:
            return {"wanted": json.dumps(listed)}
        return {"principals": [principal for principal, _ in listed], "core_keys": [key for _, key in listed]}

    def _by_keys(self) -> ClauseElement:
        if self._sqlite:
            pairs = "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:pairs)"
        else:
            pairs = "SELECT * FROM unnest(CAST(:principals AS text[]), CAST(:idempotency_keys AS text[]))"
        return select(*_QUERY_COLUMNS).where(text(f"(queries.principal, queries.idempotency_key) IN ({pairs})"))


def _insert_rows(table: Table, dialect: Dialect) -> str:
    """One statement for any number of rows, which travel as one JSON text.

    Row by row takes PostgreSQL several times as long, and an array for each column takes the driver as long: it writes
    every element with regular expressions.
    """
    columns = {column.name: column for column in table.columns}
    values = ", ".join(_values("given", columns))
    return (
        f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {values} FROM {_recordset('given', columns, dialect)}"
    )


def _recordset(name: str, columns: Mapping[str, Column[object]], dialect: Dialect) -> str:
    """The rows of the parameter `rows` as a table of that name."""
    typed = ", ".join(
        f"{key} {'text' if _is_bytes(column) else column.type.compile(dialect=dialect)}"
        for key, column in columns.items()
    )
    return f"json_to_recordset(CAST(%(rows)s AS json)) AS {name} ({typed})"


def _values(name: str, columns: Mapping[str, Column[object]]) -> list[str]:
    """The columns of `_recordset` as values of their own types."""
    return [f"decode({name}.{key}, 'hex')" if _is_bytes(column) else f"{name}.{key}" for key, column in columns.items()]


def _is_bytes(column: Column[object]) -> bool:
    return isinstance(column.type, LargeBinary)


_ROWS = json.JSONEncoder(separators=(",", ":"), default=bytes.hex)
"""Rows as PostgreSQL reads them, bytes in hex. What columns hold has no NUL (`storable`), which JSON there cannot."""
