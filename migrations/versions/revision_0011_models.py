"""Models that were asked for; their charges and answers are the ledger's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One table."""
    op.create_table(
        "models",
        sa.Column("id", sa.String(80), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("account", sa.String(80), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
    )
    op.create_index("ix_models_principal", "models", ["principal", "created", "id"])


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
