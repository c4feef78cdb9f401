"""Collectors of local reports: questions, single-use tokens, tallies. A report uses a token and is counted at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlalchemy import Connection, Row, insert, select, text, update

from privacy.numbers import decimal_text, parse_decimal
from privacy.values import Json
from server.store.errors import CollectorClosed, NotThere, TokenRefused, TooManyTokens
from server.store.tables import collector_tallies, collector_tokens, collectors
from server.store.transactions import Transactions

__all__ = ["TOKENS_MAX", "Collections", "StoredCollector", "token_digest"]

TOKENS_MAX = 10_000_000
"""Most tokens of one collector, and so most reports."""

_RAISE = text(
    "INSERT INTO collector_tallies (collector, number, count) VALUES (:collector, :number, :count) "
    "ON CONFLICT (collector, number) DO UPDATE SET count = collector_tallies.count + excluded.count"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCollector:
    """A question of local collection, as it was opened, and how far it is."""

    id: str
    question: str
    domain: tuple[str, ...]
    missing: str | None
    encoding: str
    epsilon: Fraction
    account: str
    created: str
    actor: str
    tokens: int = 0
    reports: int = 0
    closed: str | None = None


def token_digest(collector: str, token: str) -> str:
    """What is stored of a token. It has 192 random bits, so that a plain hash of it cannot be searched."""
    return hashlib.sha256(f"{collector} {token}".encode()).hexdigest()


class Collections(Transactions):
    """The collectors of a registry."""

    def add_collector(self, made: StoredCollector) -> StoredCollector:
        """Stores a collector that was just opened and charged for."""
        made_now = {
            "id": made.id,
            "question": made.question,
            "domain": json.dumps(made.domain, ensure_ascii=False, separators=(",", ":")),
            "missing": made.missing,
            "encoding": made.encoding,
            "epsilon": decimal_text(made.epsilon),
            "account": made.account,
            "tokens": 0,
            "reports": 0,
            "created": self._now(),
            "closed": None,
            "actor": made.actor,
        }
        with self._acting() as connection:
            connection.execute(insert(collectors).values(**made_now))
            told: dict[str, Json] = {"question": hashlib.sha256(made.question.encode()).hexdigest()}
            self._log(connection, actor=made.actor, action="collector_opened", subject=made.id, details=told)
            self._commit(connection)
            return _required(connection, made.id)

    def collector(self, identifier: str) -> StoredCollector | None:
        """The collector of that identifier."""
        with self._engine.connect() as connection:
            return _found(connection, identifier)

    def collectors(self, *, after: str | None = None, count: int = 100) -> tuple[StoredCollector, ...]:
        """A page of collectors, the newest first; `after` is the last one of the page before."""
        found = self._page(select(collectors), collectors, after=after, count=count)
        return tuple(_collector(row) for row in found)

    def add_tokens(self, collector: str, digests: Sequence[str], *, actor: str) -> StoredCollector:
        """Stores the digests of new tokens. Errors: NotThere, CollectorClosed, TooManyTokens."""
        with self._acting() as connection:
            open_one = (collectors.c.id == collector) & collectors.c.closed.is_(None)
            raised = update(collectors).where(open_one).values(tokens=collectors.c.tokens + len(digests))
            if connection.execute(raised).rowcount != 1:
                raise _why_not(there=_found(connection, collector) is not None)
            if _required(connection, collector).tokens > TOKENS_MAX:
                raise TooManyTokens("a collector has at most ten million tokens")
            rows = [{"collector": collector, "digest": digest, "used": False} for digest in digests]
            connection.execute(insert(collector_tokens), rows)
            told: dict[str, Json] = {"tokens": len(digests)}
            self._log(connection, actor=actor, action="collector_tokens", subject=collector, details=told)
            self._commit(connection)
            return _required(connection, collector)

    def accept_reports(self, collector: str, digests: Sequence[str], counts: Mapping[int, int]) -> None:
        """Uses a token for each report and raises the tally by all of them, or changes nothing.

        Errors: NotThere, CollectorClosed; TokenRefused for the first token that is unknown, was used, or comes twice.
        """
        # Whoever has no token gets no lock on the database that the ledger writes to: they are read first.
        with self._engine.connect() as connection:
            this = select(collectors.c.closed).where(collectors.c.id == collector)
            row = connection.execute(this).one_or_none()
            if row is None or row.closed is not None:
                raise _why_not(there=row is not None)
            _require_unused(connection, collector, digests)
        with self._writing() as connection:
            # First, so that two servers change the rows of one collector one after the other.
            open_one = (collectors.c.id == collector) & collectors.c.closed.is_(None)
            if connection.execute(update(collectors).where(open_one).values(closed=None)).rowcount != 1:
                # Collectors stay: it was closed since.
                raise CollectorClosed("the collector is closed")
            for place, digest in enumerate(digests):
                token = (collector_tokens.c.collector == collector) & (collector_tokens.c.digest == digest)
                used = update(collector_tokens).where(token, collector_tokens.c.used.is_(False)).values(used=True)
                if connection.execute(used).rowcount != 1:
                    known = connection.execute(select(collector_tokens.c.digest).where(token)).one_or_none()
                    raise TokenRefused(place, used=known is not None)
            rows = [
                {"collector": collector, "number": number, "count": count} for number, count in sorted(counts.items())
            ]
            if rows:
                connection.execute(_RAISE, rows)
            raised = update(collectors).where(open_one).values(reports=collectors.c.reports + len(digests))
            connection.execute(raised)
            connection.commit()

    def collector_tally(self, collector: str) -> tuple[StoredCollector, dict[int, int]]:
        """A collector and how often each number was reported, of one moment. Errors: NotThere."""
        joined = collectors.outerjoin(collector_tallies, collectors.c.id == collector_tallies.c.collector)
        # One statement, so that reports and counts are of one moment on both databases.
        query = select(collectors.c.reports, collector_tallies.c.number, collector_tallies.c.count)
        with self._engine.connect() as connection:
            found = _found(connection, collector)
            if found is None:
                raise NotThere("there is no such collector")
            rows = connection.execute(query.select_from(joined).where(collectors.c.id == collector)).all()
        counts = {row[1]: row[2] for row in rows if row[1] is not None}
        return replace(found, reports=rows[0][0]), counts

    def close_collector(self, collector: str, *, actor: str) -> StoredCollector:
        """Takes no more reports. Closing twice changes nothing. Errors: NotThere."""
        with self._acting() as connection:
            open_one = (collectors.c.id == collector) & collectors.c.closed.is_(None)
            closed = connection.execute(update(collectors).where(open_one).values(closed=self._now())).rowcount
            if closed:
                self._log(connection, actor=actor, action="collector_closed", subject=collector)
            self._commit(connection)
            found = _found(connection, collector)
        if found is None:
            raise NotThere("there is no such collector")
        return found


def _require_unused(connection: Connection, collector: str, digests: Sequence[str]) -> None:
    """Errors: TokenRefused for the first token that is unknown, was used, or comes twice."""
    table = collector_tokens
    asked = select(table.c.digest, table.c.used).where(table.c.collector == collector, table.c.digest.in_(digests))
    unused = {row.digest: not row.used for row in connection.execute(asked)}
    for place, digest in enumerate(digests):
        if not unused.get(digest, False):
            raise TokenRefused(place, used=digest in unused)
        unused[digest] = False


def _why_not(*, there: bool) -> NotThere | CollectorClosed:
    """Why no open collector was changed."""
    return CollectorClosed("the collector is closed") if there else NotThere("there is no such collector")


def _found(connection: Connection, identifier: str) -> StoredCollector | None:
    row = connection.execute(select(collectors).where(collectors.c.id == identifier)).one_or_none()
    return None if row is None else _collector(row)


def _required(connection: Connection, identifier: str) -> StoredCollector:
    found = _found(connection, identifier)
    assert found is not None
    return found


def _collector(row: Row[tuple[object, ...]]) -> StoredCollector:
    return StoredCollector(
        id=row.id,
        question=row.question,
        domain=tuple(json.loads(row.domain)),
        missing=row.missing,
        encoding=row.encoding,
        epsilon=parse_decimal(row.epsilon, name="epsilon", maximum=Fraction(100), unit=Fraction(1, 10**12)),
        account=row.account,
        created=row.created,
        actor=row.actor,
        tokens=row.tokens,
        reports=row.reports,
        closed=row.closed,
    )
