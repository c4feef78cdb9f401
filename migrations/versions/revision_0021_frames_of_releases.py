"""Stored releases say of which rows and groups they are, and what their sums measure: other questions may use them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Three columns and the indexes that find them.

    Releases that are there have none of it: what their question was is not stored. They go on answering that question.
    """
    for name in ("frame", "coarse", "held"):
        op.add_column("releases", sa.Column(name, sa.Text(), nullable=True))
    for name in ("frame", "coarse"):
        op.create_index(f"ix_releases_{name}", "releases", [name, "quality", "created"])
        op.create_index(f"ix_releases_{name}_own", "releases", [name, "principal", "quality", "created"])


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
