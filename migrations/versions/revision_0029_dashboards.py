"""Dashboards: their tiles, who reads them, what came of each refresh, and links."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_TILE_STATES = "state IN ('waiting', 'current', 'exhausted', 'refused', 'failed')"
_OUTCOMES = "outcome IN ('answered', 'unchanged', 'exhausted', 'refused', 'failed')"


def upgrade() -> None:
    """Five tables; nothing that is there changes."""
    _dashboards()
    _tiles()
    op.create_table(
        "dashboard_links",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("dashboard", sa.String(32), nullable=False),
        sa.Column("label", sa.String(100), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("expires", sa.String(32), nullable=False),
        sa.Column("revoked", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_dashboard_links"),
        sa.ForeignKeyConstraint(["dashboard"], ["dashboards.id"], name="fk_dashboard_links_dashboard_dashboards"),
    )
    op.create_index("ix_dashboard_links_dashboard", "dashboard_links", ["dashboard", "created", "id"])


def _dashboards() -> None:
    op.create_table(
        "dashboards",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.Column("dataset", sa.String(64), nullable=False),
        sa.Column("account", sa.String(80), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("paused", sa.String(32), nullable=True),
        sa.Column("closed", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_dashboards"),
        sa.ForeignKeyConstraint(["principal"], ["principals.name"], name="fk_dashboards_principal_principals"),
    )
    op.create_index("ix_dashboards_principal", "dashboards", ["principal", "created", "id"])
    op.create_table(
        "dashboard_readers",
        sa.Column("dashboard", sa.String(32), nullable=False),
        sa.Column("principal", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("dashboard", "principal", name="pk_dashboard_readers"),
        sa.ForeignKeyConstraint(["dashboard"], ["dashboards.id"], name="fk_dashboard_readers_dashboard_dashboards"),
    )


def _tiles() -> None:
    op.create_table(
        "dashboard_tiles",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("dashboard", sa.String(32), nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("slot", sa.String(80), nullable=True),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("wanted", sa.String(32), nullable=True),
        sa.Column("handled", sa.String(32), nullable=False),
        sa.Column("version", sa.String(200), nullable=True),
        sa.Column("due", sa.String(240), nullable=True),
        sa.Column("due_at", sa.String(32), nullable=True),
        sa.Column("claim", sa.String(32), nullable=True),
        sa.Column("lease", sa.String(32), nullable=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("code", sa.String(40), nullable=True),
        sa.Column("answered", sa.String(200), nullable=True),
        sa.Column("query", sa.String(80), nullable=True),
        sa.Column("digest", sa.String(64), nullable=True),
        sa.Column("as_of", sa.String(32), nullable=True),
        sa.Column("refreshed", sa.String(32), nullable=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_dashboard_tiles"),
        sa.UniqueConstraint("slot", name="uq_dashboard_tiles_slot"),
        sa.ForeignKeyConstraint(["dashboard"], ["dashboards.id"], name="fk_dashboard_tiles_dashboard_dashboards"),
        sa.CheckConstraint(_TILE_STATES, name="ck_dashboard_tiles_state_known"),
    )
    op.create_index("ix_dashboard_tiles_dashboard", "dashboard_tiles", ["dashboard", "place"])
    op.create_table(
        "dashboard_refreshes",
        sa.Column("tile", sa.String(32), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("query", sa.String(80), nullable=True),
        sa.Column("charged", sa.String(40), nullable=True),
        sa.PrimaryKeyConstraint("tile", "number", name="pk_dashboard_refreshes"),
        sa.ForeignKeyConstraint(["tile"], ["dashboard_tiles.id"], name="fk_dashboard_refreshes_tile_dashboard_tiles"),
        sa.CheckConstraint(_OUTCOMES, name="ck_dashboard_refreshes_outcome_known"),
    )


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
