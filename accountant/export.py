"""An export of the ledger as NDJSON: what an auditor needs to compute everything anew, and nothing else.

One object a line, in this order: `ledger` (format, identity, head), `account`, `entry` and `act` in the order of the
chain, with a `checkpoint` after every 10,000, `row`, `query`, `release`, `reading`, `end`. The line of an entry or act
has exactly what its hash covers; of rows that acts vouch for there are key and hash, of answers and releases the hashes
that ends of queries name. The last line has the number of lines of each kind, the head, and the hash of all bytes
before it: an export without it was cut.

No text of a query, no literal, no value of an answer, no idempotency key, no hash of what a client sent.
`clients/verify.py` reads it, and shares no code with this room.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator

from sqlalchemy import Connection, select

from accountant.acts import WATCHED, Act, chain, missing_tables, row_hashes
from accountant.entry import Entry, body_hash, canonical_json, shares_json
from accountant.filter import Branches, FilterKind, Limit
from accountant.rows import AccountState, release_hash
from accountant.statements import ACCOUNT_COLUMNS, Columns
from accountant.tables import ledger_meta, queries, readings, releases
from privacy.numbers import ATTO, PICO
from privacy.values import Json

__all__ = ["CHECKPOINT_EVERY", "EXPORT_FORMAT", "export_lines"]

EXPORT_FORMAT = "noisegate-ledger/2"

CHECKPOINT_EVERY = 10_000
"""Entries between two checkpoints."""

_ROWS = 500
"""Rows that are read at once."""

Line = dict[str, Json]


def export_lines(connection: Connection, *, now: int, answer_of: Callable[[Columns], bytes | None]) -> Iterator[bytes]:
    """The lines of an export, from a connection whose transaction sees one moment.

    `now` is the moment in microseconds; `answer_of` makes the whole stored answer of a query's row.
    """
    digest = hashlib.sha256()
    counts: Counter[str] = Counter()
    for line in _lines(connection, now=now, answer_of=answer_of):
        if line["line"] in ("checkpoint", "end"):
            line["sha256"] = digest.hexdigest()
        if line["line"] == "end":
            line["counts"] = dict(counts)
        raw = f"{canonical_json(line)}\n".encode("ascii")
        counts[str(line["line"])] += 1
        digest.update(raw)
        yield raw


def _lines(connection: Connection, *, now: int, answer_of: Callable[[Columns], bytes | None]) -> Iterator[Line]:
    meta = ledger_meta.c
    ledger, sequence, digest, epoch, timed_from = connection.execute(
        select(meta.ledger, meta.sequence, meta.hash, meta.epoch, meta.timed_from)
    ).one()
    kept: Line = {"epoch": epoch, "timed_from": timed_from}
    head: Line = {"sequence": sequence, "hash": digest}
    yield {"line": "ledger", "format": EXPORT_FORMAT, "ledger": ledger, "created": now, **head, **kept}
    streaming = connection.execution_options(yield_per=_ROWS)
    for row in streaming.execute(select(*ACCOUNT_COLUMNS)):
        yield _account(AccountState.from_row(row))
    yield from _chain(streaming)
    for row in streaming.execute(select(queries).order_by(queries.c.id)):
        yield _query(row, answer_of(row))
    for row in streaming.execute(select(releases).order_by(releases.c.id)):
        yield _release(row)
    for row in streaming.execute(select(readings).order_by(readings.c.account, readings.c.release)):
        yield {
            "line": "reading",
            "account": row.account,
            "release": row.release,
            "core_key": row.core_key,
            "query": row.query_id,
        }
    yield {"line": "end", **head}


def _chain(connection: Connection) -> Iterator[Line]:
    for one in chain(connection):
        yield _act(one) if isinstance(one, Act) else _entry(one)
        if one.sequence % CHECKPOINT_EVERY == 0:
            yield {"line": "checkpoint", "sequence": one.sequence, "hash": one.hash}
    lacking = missing_tables(connection)
    for table in sorted(WATCHED.keys() - lacking):
        for key, digest in sorted(row_hashes(connection, table)):
            yield {"line": "row", "table": table, "key": key, "hash": digest}


def _entry(entry: Entry) -> Line:
    return {
        "line": "entry",
        "sequence": entry.sequence,
        "account": entry.account,
        "account_sequence": entry.account_sequence,
        "kind": entry.kind.value,
        "query": entry.query_id,
        "amounts": list(entry.amounts),
        "details": entry.details,
        "created": entry.created,
        "account_previous": entry.account_previous,
        "previous": entry.previous,
        "hash": entry.hash,
    }


def _act(act: Act) -> Line:
    return {
        "line": "act",
        "sequence": act.sequence,
        "actor": act.actor,
        "action": act.action,
        "subject": act.subject,
        "details": act.details,
        "created": act.created,
        "previous": act.previous,
        "hash": act.hash,
    }


def _account(state: AccountState) -> Line:
    return {
        "line": "account",
        "id": state.id,
        "dataset": state.dataset,
        "parent": state.parent,
        "principal": state.principal,
        "name": state.name,
        "filter": state.filter.value,
        "shares": None if state.filter is FilterKind.PURE else dict(shares_json(state.shares)),
        "limit": _units(state.limit),
        "greatest": _units(state.greatest),
        "revision": state.revision,
        "budgets": _budgets(state.branches),
        "spent": list(state.spent),
        "entries": state.entries,
        "hash": state.hash,
        "frozen": state.frozen,
        "space": state.space,
        "expires": state.expires,
        "window": None if state.window is None else state.window.json(),
        "window_spent": None if state.turn is None else state.turn.json(),
    }


def _units(limit: Limit) -> list[Json]:
    """Whole picos of epsilon and attos of delta."""
    return [int(limit.epsilon / PICO), int(limit.delta / ATTO)]


def _budgets(branches: Branches) -> dict[str, Json]:
    return {
        "pure": branches.pure,
        "delta": branches.delta,
        "rho": branches.rho,
        "mu_squared": branches.mu_squared,
        "mixed_pure": branches.mixed_pure,
        "mixed_mu_squared": branches.mixed_mu_squared,
    }


def _query(row: Columns, answer: bytes | None) -> Line:
    return {
        "line": "query",
        "id": row.id,
        "dataset": row.dataset,
        "account": row.account,
        "principal": row.principal,
        "state": row.state,
        "cores": row.cores,
        "created": row.created,
        "finished": row.finished,
        "answer": None if answer is None else body_hash(answer),
    }


def _release(row: Columns) -> Line:
    return {
        "line": "release",
        "id": row.id,
        "query": row.query_id,
        "core_key": row.core_key,
        "quality": row.quality,
        "principal": row.principal,
        "dataset": row.dataset,
        "events": _read(row.events),
        "body": release_hash(row),
        "created": row.created,
    }


def _read(stored: str) -> Json:
    """Stored JSON; the text itself where somebody made it something else: the export is made all the same."""
    try:
        read: Json = json.loads(stored)
    except ValueError:
        return stored
    return read
