"""A query is reserved until it is settled, failed or voided: the state "running" goes.

No program ever stored it: a server knows what it carries out itself, and after its end only the reservation counts. A
row that a test or a person made with `Ledger.start` is reserved again, which is what recovery took it for. Entries say
nothing of states, so both chains stay as they are.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_CHECKS = {
    "ck_queries_state": "state IN ('reserved', 'settled', 'failed_charged', 'failed_void')",
    "ck_queries_answer": "(state = 'settled') = (answer IS NOT NULL)",
    "ck_queries_finished": "(state = 'reserved') = (finished IS NULL)",
}


def upgrade() -> None:
    """Narrows the states that a row of `queries` may have."""
    op.execute("UPDATE queries SET state = 'reserved' WHERE state = 'running'")
    if op.get_context().dialect.name == "sqlite":
        _rebuild()
    else:
        for name in ("ck_queries_state", "ck_queries_finished"):
            op.execute(f"ALTER TABLE queries DROP CONSTRAINT {name}")
            op.execute(f"ALTER TABLE queries ADD CONSTRAINT {name} CHECK ({_CHECKS[name]})")
    op.execute("UPDATE ledger_meta SET schema = 5")


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _big(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def _rebuild() -> None:
    """SQLite changes no constraint of a table: its rows move to a new one, which then takes its name.

    Foreign keys are not enforced during a migration, so those of other tables keep naming `queries`; that none of them
    refers to nothing is checked before the commit. Dropping a table fires no trigger.
    """
    columns: tuple[sa.Column[str] | sa.Column[int] | sa.Column[bytes], ...] = (
        *(_text(name) for name in ("id", "principal", "dataset", "account")),
        _text("idempotency_key", nullable=True),
        *(_text(name) for name in ("body_hash", "state", "description", "cores", "charged")),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        _text("instance"),
        _big("created"),
        _big("finished", nullable=True),
        _text("answer_of", nullable=True),
        *(_big(name, nullable=True) for name in ("answer_at", "answer_from", "answer_to")),
    )
    names = ", ".join(column.name for column in columns)
    op.create_table(
        "queries_new",
        *columns,
        sa.PrimaryKeyConstraint("id", name="pk_queries"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_queries_account_accounts"),
        sa.ForeignKeyConstraint(["instance"], ["instances.id"], name="fk_queries_instance_instances"),
        sa.UniqueConstraint("principal", "idempotency_key", name="uq_queries_principal_idempotency_key"),
        *(sa.CheckConstraint(condition, name=name) for name, condition in _CHECKS.items()),
    )
    op.execute(f"INSERT INTO queries_new ({names}) SELECT {names} FROM queries")
    op.execute("DROP TABLE queries")
    op.execute("ALTER TABLE queries_new RENAME TO queries")
    op.create_index("ix_queries_principal", "queries", ["principal", "created", "id"])
    op.create_index("ix_queries_state", "queries", ["state"])
    final = "OLD.state IN ('settled', 'failed_charged', 'failed_void')"
    for event, when, message in (
        ("DELETE", "", "queries are never deleted"),
        ("UPDATE", f" WHEN ({final})", "the query is in a final state"),
    ):
        op.execute(
            f"CREATE TRIGGER tr_queries_{event.lower()}_kept BEFORE {event} ON queries FOR EACH ROW{when} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
