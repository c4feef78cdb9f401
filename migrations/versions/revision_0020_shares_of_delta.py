"""Accounts say how their delta is divided; those that are there keep the division with which they were opened."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two columns, in percent: a quarter each for the two branches with a delta, as it was; the rest is for groups."""
    op.add_column("accounts", sa.Column("share_gaussian", sa.Integer(), nullable=False, server_default="25"))
    op.add_column("accounts", sa.Column("share_concentrated", sa.Integer(), nullable=False, server_default="25"))
    op.execute("UPDATE ledger_meta SET schema = 6")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
