"""Which account was charged for reading a release that another account had paid for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A table that can only grow."""
    op.create_table(
        "readings",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("release", sa.Text(), nullable=False),
        sa.Column("core_key", sa.Text(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "release", name="pk_readings"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_readings_account_accounts"),
        sa.ForeignKeyConstraint(["release"], ["releases.id"], name="fk_readings_release_releases"),
        sa.ForeignKeyConstraint(["query_id"], ["queries.id"], name="fk_readings_query_id_queries"),
    )
    op.create_index("ix_readings_core", "readings", ["account", "core_key"])
    for event in ("UPDATE", "DELETE"):
        _refuse(event)
    # A program that does not know of readings would find accounts that it cannot explain.
    op.execute("UPDATE ledger_meta SET schema = 4")


def _refuse(event: str) -> None:
    """Refuses `event` on readings."""
    trigger = f"tr_readings_{event.lower()}_kept"
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE {event} ON readings FOR EACH ROW "
            "BEGIN SELECT RAISE(ABORT, 'readings are kept as they are'); END"
        )
        return
    op.execute(
        f"CREATE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'readings are kept as they are' USING ERRCODE = 'check_violation'; END $$"
    )
    op.execute(f"CREATE TRIGGER {trigger} BEFORE {event} ON readings FOR EACH ROW EXECUTE FUNCTION {trigger}()")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
