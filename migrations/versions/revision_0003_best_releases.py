"""An index that finds the best release of a core at once, however many of the same core there are."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The new index begins with the column of the old one and takes its place."""
    op.create_index("ix_releases_best", "releases", ["core_key", "quality", "created"])
    op.drop_index("ix_releases_core_key", "releases")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
