"""Evaluations of monitors name the process that makes them, so that those of a process that died are ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column, empty for what is over. What earlier versions left without an outcome failed: they said nothing."""
    op.add_column("monitor_evaluations", sa.Column("instance", sa.String(200), nullable=True))
    op.execute("UPDATE monitor_evaluations SET outcome = 'failed' WHERE outcome IS NULL")
    op.create_index("ix_monitor_evaluations_instance", "monitor_evaluations", ["instance"])


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
