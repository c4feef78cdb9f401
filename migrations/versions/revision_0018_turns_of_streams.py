"""Streams name the process that compares at this moment, so that others wait for it, and not for one that died."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One column, empty while nothing is compared."""
    op.add_column("streams", sa.Column("instance", sa.String(200), nullable=True))
    op.create_index("ix_streams_instance", "streams", ["instance"])


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
