"""What one administrator proposes and another one confirms."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A table that is empty until the first proposal."""
    op.create_table(
        "proposals",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(80), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("proposer", sa.String(64), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("expires", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("decided", sa.String(32), nullable=True),
        sa.Column("decider", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_proposals"),
        sa.CheckConstraint("kind IN ('adjust', 'acknowledge_restore')", name="ck_proposals_kind_known"),
        sa.CheckConstraint("state IN ('open', 'confirmed', 'rejected', 'withdrawn')", name="ck_proposals_state_known"),
        sa.CheckConstraint("(state = 'open') = (decided IS NULL)", name="ck_proposals_decided"),
    )
    op.create_index("ix_proposals_state", "proposals", ["state", "created", "id"])


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
