"""Budget requests, principals who were stopped, what notices were given, and what accounts had spent on days."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Four tables; nothing that is there changes."""
    op.create_table(
        "budget_requests",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("account", sa.String(80), nullable=True),
        sa.Column("epsilon", sa.String(40), nullable=False),
        sa.Column("delta", sa.String(40), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("decided", sa.String(32), nullable=True),
        sa.Column("decider", sa.String(64), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_budget_requests"),
        sa.ForeignKeyConstraint(["principal"], ["principals.name"], name="fk_budget_requests_principal_principals"),
        sa.CheckConstraint(
            "state IN ('open', 'approved', 'rejected', 'withdrawn')", name="ck_budget_requests_state_known"
        ),
        sa.CheckConstraint("(state = 'open') = (decided IS NULL)", name="ck_budget_requests_decided"),
    )
    op.create_index("ix_budget_requests_principal", "budget_requests", ["principal", "created", "id"])
    op.create_index("ix_budget_requests_state", "budget_requests", ["state", "created", "id"])
    op.create_table(
        "stops",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("accounts", sa.Text(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("ended", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_stops"),
        sa.ForeignKeyConstraint(["principal"], ["principals.name"], name="fk_stops_principal_principals"),
    )
    op.create_index("ix_stops_principal", "stops", ["principal", "created", "id"])
    op.create_table(
        "told",
        sa.Column("subject", sa.String(80), nullable=False),
        sa.Column("occasion", sa.String(80), nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("subject", "occasion", name="pk_told"),
    )
    op.create_table(
        "account_days",
        sa.Column("account", sa.String(80), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("amounts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("account", "day", name="pk_account_days"),
    )


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
