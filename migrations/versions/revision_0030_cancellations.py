"""A query that waits in one process can be cancelled through another one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """A table of wishes, each of which its process answers within seconds."""
    op.create_table(
        "cancellations",
        sa.Column("query", sa.String(80), nullable=False),
        sa.Column("instance", sa.String(128), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("query", name="pk_cancellations"),
    )
    if op.get_bind().dialect.name == "postgresql":
        # Lost in a crash of the database, as what waited in the processes is not; whoever asked asks again.
        op.execute("ALTER TABLE cancellations SET UNLOGGED")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
