"""What is charged once and used afterwards, in one table: monitors, batches, models and synthetic tables.

What all of them have moves there, each row as it is. The price that was agreed was not stored before, so it stays
empty; a batch gets the account of its query. What is used up or deleted is closed: at its creation, where nobody noted
when.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_COMMON = ("principal", "dataset", "account", "created", "terms")
_ACCOUNT_OF_BATCH = "COALESCE((SELECT queries.account FROM queries WHERE queries.id = batches.id), '')"
_MOVED = {
    "monitor": ("monitors", "account", "NULL"),
    "batch": ("batches", _ACCOUNT_OF_BATCH, "NULL"),
    "model": ("models", "account", "NULL"),
    "synthetic": ("synthetic_tables", "account", "archived"),
}


def upgrade() -> None:
    """One table more, with the rows of four."""
    op.create_table(
        "resources",
        sa.Column("id", sa.String(80), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("account", sa.String(80), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("price", sa.Text(), nullable=True),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("closed", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_resources"),
    )
    op.create_index("ix_resources_kind", "resources", ["kind", "created", "id"])
    op.create_index("ix_resources_kind_principal", "resources", ["kind", "principal", "created", "id"])
    for kind, (table, account, closed) in _MOVED.items():
        op.execute(
            "INSERT INTO resources (id, kind, principal, dataset, account, created, terms, closed) "
            f"SELECT id, '{kind}', principal, dataset, {account}, created, terms, {closed} FROM {table}"
        )
    _close_used_up()
    op.drop_index("ix_monitors_principal", "monitors")
    op.drop_index("ix_monitors_background", "monitors")
    op.create_index("ix_monitors_background", "monitors", ["background"])
    op.drop_index("ix_batches_principal", "batches")
    op.drop_index("ix_synthetic_tables_principal", "synthetic_tables")
    op.drop_index("ix_synthetic_tables_dataset", "synthetic_tables")
    op.drop_table("models")
    for table, columns in (
        ("monitors", _COMMON),
        ("batches", ("principal", "dataset", "created", "terms")),
        ("synthetic_tables", (*_COMMON, "archived")),
    ):
        for column in columns:
            op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")


def _close_used_up() -> None:
    """Closes monitors without hits or evaluations left, of which nothing said so until now."""
    connection = op.get_bind()
    made = "(SELECT MAX(number) FROM monitor_evaluations WHERE monitor = monitors.id)"
    for row in connection.execute(sa.text(f'SELECT id, terms, created, "left", {made} AS made FROM monitors')).all():
        if row.left < 1 or (row.made or 0) >= json.loads(row.terms)["evaluations"]:
            closing = sa.text("UPDATE resources SET closed = :at WHERE id = :id")
            connection.execute(closing, {"at": row.created, "id": row.id})


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
