"""One spendable account of a principal below one parent, and the greatest limit that each account ever had.

Accounts that a principal has twice below one parent are frozen, all but the oldest: that is the one that has paid
whenever a question named no account. A frozen account pays for nothing more. Its entries, its answers and releases and
what it spent stay, and are counted above it as before; what was left of its limit is not moved anywhere, because
nobody knows whether a second grant was meant or a request was sent twice. An administrator who meant it raises the
limit of the account that stays. Each freezing is an `adjust` entry in both chains.
"""

from __future__ import annotations

import hashlib
import json
import time
from fractions import Fraction

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_COLUMNS = (
    "frozen INTEGER DEFAULT 0 NOT NULL",
    "revision BIGINT DEFAULT 1 NOT NULL",
    "greatest_epsilon BIGINT DEFAULT 0 NOT NULL",
    "greatest_delta BIGINT DEFAULT 0 NOT NULL",
)


def upgrade() -> None:
    """Adds the columns, fills them from the entries, freezes second accounts, and allows no more of them."""
    for column in _COLUMNS:
        op.execute(f"ALTER TABLE accounts ADD COLUMN {column}")
    connection = op.get_bind()
    _fill(connection)
    _freeze_seconds(connection)
    op.create_index(
        "uq_accounts_principal",
        "accounts",
        ["parent", "principal"],
        unique=True,
        sqlite_where=sa.text("principal IS NOT NULL AND parent IS NOT NULL AND frozen = 0"),
        postgresql_where=sa.text("principal IS NOT NULL AND parent IS NOT NULL AND frozen = 0"),
    )
    # A program that does not know of frozen accounts would spend from them.
    connection.execute(sa.text("UPDATE ledger_meta SET schema = 2"))


def _fill(connection: sa.Connection) -> None:
    """Limits so far, from the grants and adjustments of each account."""
    limits: dict[str, list[tuple[int, int]]] = {}
    chosen = sa.text("SELECT account, kind, details FROM entries WHERE kind IN ('grant', 'adjust') ORDER BY sequence")
    for account, kind, details in connection.execute(chosen):
        stored = json.loads(details)
        limit = stored["limit"] if kind == "grant" else stored["to"] if stored.get("action") == "limit" else None
        if limit is not None:
            units = int(Fraction(limit["epsilon"]) * 10**12), int(Fraction(limit["delta"]) * 10**18)
            limits.setdefault(account, []).append(units)
    for account, known in limits.items():
        connection.execute(
            sa.text(
                "UPDATE accounts SET revision = :revision, greatest_epsilon = :epsilon, greatest_delta = :delta "
                "WHERE id = :id"
            ),
            {
                "id": account,
                "revision": len(known),
                "epsilon": max(epsilon for epsilon, _ in known),
                "delta": max(delta for _, delta in known),
            },
        )


def _freeze_seconds(connection: sa.Connection) -> None:
    """Freezes all but the oldest account of each principal below each parent."""
    chosen = sa.text(
        "SELECT id, parent, principal FROM accounts WHERE principal IS NOT NULL AND parent IS NOT NULL "
        "ORDER BY depth, created, id"
    )
    kept: dict[tuple[str, str], str] = {}
    for identifier, parent, principal in connection.execute(chosen).all():
        stays = kept.setdefault((parent, principal), identifier)
        if stays != identifier:
            _freeze(connection, identifier, stays)


def _freeze(connection: sa.Connection, account: str, kept: str) -> None:
    """One entry at the end of both chains, hashed as accountant/README.md says of "entry/1"; no amount moves."""
    sequence, previous = connection.execute(sa.text("SELECT sequence, hash FROM ledger_meta")).one()
    count, account_previous = connection.execute(
        sa.text("SELECT entries, hash FROM accounts WHERE id = :id"), {"id": account}
    ).one()
    details = {
        "action": "freeze",
        "actor": "migration 0004",
        "kept": kept,
        "reason": "a principal has one account below one parent",
    }
    row: dict[str, str | int] = {
        "sequence": sequence + 1,
        "account": account,
        "account_sequence": count + 1,
        "details": json.dumps(details, sort_keys=True, separators=(",", ":")),
        "created": int(time.time() * 1_000_000),
        "account_previous": account_previous,
        "previous": previous,
    }
    fields = [
        "entry/1",
        row["sequence"],
        account,
        row["account_sequence"],
        "adjust",
        None,
        [0] * 7,
        row["details"],
        row["created"],
        account_previous,
        previous,
    ]
    row["hash"] = hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode("ascii")).hexdigest()
    connection.execute(
        sa.text(
            "INSERT INTO entries (sequence, account, account_sequence, kind, query_id, pure, delta, rho, mu_squared, "
            "unbounded_pure, unbounded_rho, unbounded_mu_squared, details, created, account_previous, previous, hash) "
            "VALUES (:sequence, :account, :account_sequence, 'adjust', NULL, 0, 0, 0, 0, 0, 0, 0, :details, :created, "
            ":account_previous, :previous, :hash)"
        ),
        row,
    )
    connection.execute(
        sa.text("UPDATE accounts SET frozen = 1, entries = :account_sequence, hash = :hash WHERE id = :account"), row
    )
    connection.execute(sa.text("UPDATE ledger_meta SET sequence = :sequence, hash = :hash"), row)


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
