"""Local collection: questions, single-use tokens by their digests, and the tallies of reports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Three tables; reports are kept as counts alone."""
    op.create_table(
        "collectors",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("domain", sa.Text(), nullable=False),
        sa.Column("missing", sa.Text(), nullable=True),
        sa.Column("encoding", sa.String(32), nullable=False),
        sa.Column("epsilon", sa.String(40), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("reports", sa.Integer(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("closed", sa.String(32), nullable=True),
        sa.Column("actor", sa.String(64), nullable=False),
        sa.CheckConstraint("tokens >= 0 AND reports >= 0 AND reports <= tokens", name="ck_collectors_reports"),
        sa.PrimaryKeyConstraint("id", name="pk_collectors"),
    )
    op.create_table(
        "collector_tokens",
        sa.Column("collector", sa.String(32), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("used", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["collector"], ["collectors.id"], name="fk_collector_tokens_collector_collectors"),
        sa.PrimaryKeyConstraint("collector", "digest", name="pk_collector_tokens"),
    )
    op.create_table(
        "collector_tallies",
        sa.Column("collector", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.CheckConstraint("number >= 0 AND count >= 1", name="ck_collector_tallies_count"),
        sa.ForeignKeyConstraint(["collector"], ["collectors.id"], name="fk_collector_tallies_collector_collectors"),
        sa.PrimaryKeyConstraint("collector", "number", name="pk_collector_tallies"),
    )


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
