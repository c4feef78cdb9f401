"""Monitors, with the state of their sessions, and their evaluations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two tables."""
    op.create_table(
        "monitors",
        sa.Column("id", sa.String(80), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("account", sa.String(80), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("left", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_monitors"),
        sa.CheckConstraint('"left" >= 0', name="ck_monitors_left_not_negative"),
    )
    op.create_index("ix_monitors_principal", "monitors", ["principal", "created", "id"])
    op.create_table(
        "monitor_evaluations",
        sa.Column("monitor", sa.String(80), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(200), nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("monitor", "number", name="pk_monitor_evaluations"),
        sa.ForeignKeyConstraint(["monitor"], ["monitors.id"], name="fk_monitor_evaluations_monitor_monitors"),
        sa.CheckConstraint(
            "outcome IN ('passed', 'not_passed', 'failed')", name="ck_monitor_evaluations_outcome_known"
        ),
    )


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
