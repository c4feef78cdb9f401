"""Ends of queries say what was kept of them ("entry/3"): a program that does not know that form must not open these."""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing that is there changes: what ended before says nothing, and keeps its hash."""
    op.execute("UPDATE ledger_meta SET schema = 8")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
