"""Acts of administrators are in the ledger's chain: the log of acts is copied behind the entries that are there.

A last act, by "upgrade", vouches for the rows of principals, keys, datasets and webhooks as they are at this moment.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import time

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_BESIDES = {
    "principals": ("name", ()),
    "api_keys": ("id", ("last_used_day",)),
    "dataset_versions": ("sequence", ()),
    "webhooks": ("id", ("sealed",)),
}


def upgrade() -> None:
    """The new table, with what the old one had and the state of now."""
    op.create_table(
        "acts",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("actor", "action", "subject", "details")),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_acts"),
    )
    op.create_index("ix_acts_action", "acts", ["action", "sequence"])
    _copy()
    for event in ("UPDATE", "DELETE"):
        _refuse(event)
    _drop_old()
    op.execute("UPDATE ledger_meta SET schema = 10")


def _copy() -> None:
    connection = op.get_bind()
    said = sa.text("SELECT at, actor, action, subject FROM registry_events ORDER BY sequence")
    told = [(*row[1:], {}, _micros(row[0])) for row in connection.execute(said)]
    rows = {table: dict(_rows(connection, table)) for table in sorted(_BESIDES)}
    vouched = {table: found for table, found in rows.items() if found}
    if vouched:
        told.append(("upgrade", "registry_taken_over", "registry", {"rows": vouched}, 0))
    head = connection.execute(sa.text("SELECT sequence, hash, epoch FROM ledger_meta")).one()
    sequence, previous, epoch = head
    write = sa.text(
        "INSERT INTO acts (sequence, actor, action, subject, details, created, previous, hash) "
        "VALUES (:sequence, :actor, :action, :subject, :details, :created, :previous, :hash)"
    )
    for actor, action, subject, details, created in told:
        sequence += 1
        created = created or max(epoch, time.time_ns() // 1000)
        epoch = max(epoch, created)
        text = json.dumps(details, sort_keys=True, separators=(",", ":"))
        fields = ["act/1", sequence, actor, action, subject, text, created, previous]
        digest = hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode("ascii")).hexdigest()
        connection.execute(
            write,
            {
                "sequence": sequence,
                "actor": actor,
                "action": action,
                "subject": subject,
                "details": text,
                "created": created,
                "previous": previous,
                "hash": digest,
            },
        )
        previous = digest
    if told:
        # What was logged before is of the clocks of then, and may be older than the entries before it.
        change = "UPDATE ledger_meta SET sequence = :sequence, timed_from = :sequence, hash = :hash, epoch = :epoch"
        connection.execute(sa.text(change), {"sequence": sequence, "hash": previous, "epoch": epoch})


def _micros(at: str) -> int:
    moment = datetime.datetime.strptime(at, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)
    return int(moment.timestamp()) * 1_000_000


def _rows(connection: sa.Connection, table: str) -> list[tuple[str, str]]:
    """Key and hash of every row, as accountant/acts.py has them in this version."""
    key, besides = _BESIDES[table]
    found = []
    for row in connection.execute(sa.text(f"SELECT * FROM {table}")).mappings():
        kept = {name: _plain(value) for name, value in row.items() if value is not None and name not in besides}
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
        found.append((str(row[key]), hashlib.sha256(text.encode("ascii")).hexdigest()))
    return found


def _plain(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    return bytes(value).hex() if isinstance(value, (bytes, bytearray, memoryview)) else value


def _refuse(event: str) -> None:
    """Refuses `event` on acts."""
    trigger, told = f"tr_acts_{event.lower()}_kept", "acts are kept as they are"
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE {event} ON acts FOR EACH ROW BEGIN SELECT RAISE(ABORT, '{told}'); END"
        )
        return
    op.execute(
        f"CREATE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{told}' USING ERRCODE = 'check_violation'; END $$"
    )
    op.execute(f"CREATE TRIGGER {trigger} BEFORE {event} ON acts FOR EACH ROW EXECUTE FUNCTION {trigger}()")
    if event == "DELETE":
        op.execute(
            f"CREATE TRIGGER tr_acts_truncate_kept BEFORE TRUNCATE ON acts "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {trigger}()"
        )


def _drop_old() -> None:
    op.drop_table("registry_events")
    if op.get_context().dialect.name == "postgresql":
        for event in ("update", "delete"):
            op.execute(f"DROP FUNCTION tr_registry_events_{event}_kept()")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
