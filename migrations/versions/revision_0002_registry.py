"""The registry: principals, API keys, dataset versions and the log of administrative acts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def _text(name: str, length: int, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=nullable)


def upgrade() -> None:
    """Creates the registry's tables; its log can only grow."""
    op.create_table(
        "principals",
        _text("name", 64),
        _text("role", 16),
        _text("created", 32),
        _text("disabled", 32, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_principals"),
        sa.CheckConstraint(
            "role IN ('admin', 'owner', 'analyst', 'dashboard', 'auditor')", name="ck_principals_role_known"
        ),
    )
    op.create_table(
        "api_keys",
        _text("id", 16),
        _text("principal", 64),
        _text("label", 100),
        sa.Column("salt", sa.LargeBinary(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        _text("created", 32),
        _text("expires", 32),
        _text("last_used_day", 10, nullable=True),
        _text("revoked", 32, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(["principal"], ["principals.name"], name="fk_api_keys_principal_principals"),
    )
    op.create_index("ix_api_keys_principal", "api_keys", ["principal"])
    op.create_table(
        "dataset_versions",
        sa.Column("sequence", sa.Integer(), autoincrement=True, nullable=False),
        _text("name", 64),
        sa.Column("policy_version", sa.Integer(), nullable=False),
        _text("data_version", 128),
        sa.Column("snapshot", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        _text("created", 32),
        _text("actor", 64),
        sa.PrimaryKeyConstraint("sequence", name="pk_dataset_versions"),
        sa.UniqueConstraint(
            "name", "policy_version", "data_version", name="uq_dataset_versions_name_policy_version_data_version"
        ),
        sa.CheckConstraint("policy_version >= 1", name="ck_dataset_versions_policy_version_positive"),
    )
    op.create_index("ix_dataset_versions_name_current", "dataset_versions", ["name", "current"])
    op.create_table(
        "registry_events",
        sa.Column("sequence", sa.Integer(), autoincrement=True, nullable=False),
        _text("at", 32),
        _text("actor", 64),
        _text("action", 32),
        _text("subject", 128),
        sa.PrimaryKeyConstraint("sequence", name="pk_registry_events"),
    )
    for event in ("UPDATE", "DELETE"):
        _refuse(event)


def _refuse(event: str) -> None:
    """Refuses `event` on the log of administrative acts."""
    trigger = f"tr_registry_events_{event.lower()}_kept"
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE {event} ON registry_events FOR EACH ROW "
            "BEGIN SELECT RAISE(ABORT, 'registry events are kept as they are'); END"
        )
        return
    op.execute(
        f"CREATE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'registry events are kept as they are' USING ERRCODE = 'check_violation'; END $$"
    )
    op.execute(f"CREATE TRIGGER {trigger} BEFORE {event} ON registry_events FOR EACH ROW EXECUTE FUNCTION {trigger}()")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
