"""Answers that are returned again hold a reference to what they share with an earlier answer, not a copy of it.

A row with `answer_of` holds only what is its own; the bytes from `answer_from` to `answer_to` of that query's answer
belong at `answer_at`. Earlier answers stay whole.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Columns that are NULL for every answer that there is."""
    op.execute("ALTER TABLE queries ADD COLUMN answer_of TEXT")
    for name in ("answer_at", "answer_from", "answer_to"):
        op.execute(f"ALTER TABLE queries ADD COLUMN {name} BIGINT")
    # A program that does not know of references would tell half an answer.
    op.execute("UPDATE ledger_meta SET schema = 3")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
