"""Synthetic tables: what was asked for, the report, and the rows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """One table."""
    op.create_table(
        "synthetic_tables",
        sa.Column("id", sa.String(80), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("account", sa.String(80), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("slot", sa.String(200), nullable=True),
        sa.Column("data_version", sa.String(200), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("report", sa.Text(), nullable=True),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.Column("archived", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_synthetic_tables"),
        sa.UniqueConstraint("slot", name="uq_synthetic_tables_slot"),
    )
    op.create_index("ix_synthetic_tables_principal", "synthetic_tables", ["principal", "created", "id"])
    op.create_index("ix_synthetic_tables_dataset", "synthetic_tables", ["dataset", "created", "id"])


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
