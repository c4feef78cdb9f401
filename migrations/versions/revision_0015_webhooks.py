"""Webhooks, the outbox of what is to be sent to them, and which monitors the server evaluates by itself."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two tables, and a column: monitors that are open already are evaluated when somebody asks."""
    op.create_table(
        "webhooks",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("host", sa.String(300), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("subjects", sa.Text(), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("removed", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
        sa.ForeignKeyConstraint(["principal"], ["principals.name"], name="fk_webhooks_principal_principals"),
    )
    op.create_index("ix_webhooks_principal", "webhooks", ["principal", "created", "id"])
    op.create_table(
        "webhook_deliveries",
        sa.Column("sequence", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("webhook", sa.String(32), nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("due", sa.String(32), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("failure", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("sequence", name="pk_webhook_deliveries"),
        sa.UniqueConstraint("id", name="uq_webhook_deliveries_id"),
        sa.ForeignKeyConstraint(["webhook"], ["webhooks.id"], name="fk_webhook_deliveries_webhook_webhooks"),
        sa.CheckConstraint("state IN ('waiting', 'delivered', 'failed')", name="ck_webhook_deliveries_state_known"),
    )
    op.create_index("ix_webhook_deliveries_state", "webhook_deliveries", ["state", "webhook", "sequence"])
    op.create_index("ix_webhook_deliveries_webhook", "webhook_deliveries", ["webhook", "sequence"])
    op.add_column("monitors", sa.Column("background", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_monitors_background", "monitors", ["background", "dataset"])


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
