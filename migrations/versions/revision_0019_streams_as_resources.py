"""Streams are resources: what they have in common with others moves into the one table of all of them.

Each row moves as it is. The price that was agreed was not stored before, so it stays empty. Streams that are there
already are their owners' alone.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_COMMON = ("principal", "dataset", "account", "created", "terms", "closed")


def upgrade() -> None:
    """Moves the columns of all resources, and says of each stream whether others may ask it."""
    columns = ", ".join(_COMMON)
    op.execute(f"INSERT INTO resources (id, kind, {columns}) SELECT id, 'stream', {columns} FROM streams")
    op.drop_index("ix_streams_principal", "streams")
    for column in _COMMON:
        op.execute(f"ALTER TABLE streams DROP COLUMN {column}")
    op.add_column("streams", sa.Column("shared", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
