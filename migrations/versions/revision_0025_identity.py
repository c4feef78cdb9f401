"""Keys have scopes and are rotated; several processes share the rates of requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Columns that are empty for the keys that exist (the whole role, never rotated), and a table."""
    op.add_column("api_keys", sa.Column("scopes", sa.String(200), nullable=True))
    op.add_column("api_keys", sa.Column("previous_salt", sa.LargeBinary(), nullable=True))
    op.add_column("api_keys", sa.Column("previous_digest", sa.LargeBinary(), nullable=True))
    op.add_column("api_keys", sa.Column("previous_until", sa.String(32), nullable=True))
    op.create_table(
        "rate_buckets",
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("full_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_rate_buckets"),
    )
    if op.get_bind().dialect.name == "postgresql":
        # Rates bound load: after a crash full buckets are as good, and no request waits for a disk.
        op.execute("ALTER TABLE rate_buckets SET UNLOGGED")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
