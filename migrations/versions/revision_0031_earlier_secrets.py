"""Secrets that API keys are accepted under for a while after a rotation, encrypted with the newest one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A table that is empty until the first rotation."""
    op.create_table(
        "earlier_secrets",
        sa.Column("fingerprint", sa.String(32), nullable=False),
        sa.Column("until", sa.String(32), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_earlier_secrets"),
    )


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
