"""Streams of range queries, with the state of their sessions, and their answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Two tables."""
    op.create_table(
        "streams",
        sa.Column("id", sa.String(80), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("account", sa.String(80), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("frame", sa.LargeBinary(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("left", sa.Integer(), nullable=False),
        sa.Column("made", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("closed", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_streams"),
        sa.CheckConstraint('"left" >= 0', name="ck_streams_left_not_negative"),
        sa.CheckConstraint("made >= 0", name="ck_streams_made_not_negative"),
    )
    op.create_index("ix_streams_principal", "streams", ["principal", "created", "id"])
    op.create_table(
        "stream_answers",
        sa.Column("stream", sa.String(80), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("stream", "key", name="pk_stream_answers"),
        sa.ForeignKeyConstraint(["stream"], ["streams.id"], name="fk_stream_answers_stream_streams"),
    )


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
