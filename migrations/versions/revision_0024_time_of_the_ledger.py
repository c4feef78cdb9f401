"""The ledger keeps its time, which never falls, and accounts may have a window."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The time goes on from the latest entry; entries that are there may be of a clock that was set back."""
    for name in ("epoch", "timed_from"):
        op.add_column("ledger_meta", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    for name in ("window_rule", "window_spent"):
        op.add_column("accounts", sa.Column(name, sa.Text(), nullable=True))
    op.execute(
        "UPDATE ledger_meta SET schema = 9, timed_from = sequence, "
        "epoch = (SELECT COALESCE(MAX(created), 0) FROM entries)"
    )


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
