"""Accounts say which unit space they protect and when they end; a root may once be put below another one.

Everything that is there is a space of its own, named like its dataset, and ends never.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_FIXED = ("id", "dataset", "principal", "filter", "created", "expires")
_ONE = "principal IS NOT NULL AND parent IS NOT NULL AND frozen = 0 AND expires IS NULL"


def upgrade() -> None:
    """Two columns, the indexes that go by space and dataset, and the trigger that lets a root be joined."""
    op.add_column("accounts", sa.Column("space", sa.Text(), nullable=False, server_default=""))
    op.add_column("accounts", sa.Column("expires", sa.BigInteger(), nullable=True))
    op.execute("DROP INDEX uq_accounts_root")
    op.execute("DROP INDEX uq_accounts_principal")
    op.execute("UPDATE accounts SET space = dataset")
    root = sa.text("parent IS NULL")
    op.create_index("uq_accounts_root", "accounts", ["space"], unique=True, sqlite_where=root, postgresql_where=root)
    one = sa.text(_ONE)
    op.create_index(
        "uq_accounts_principal",
        "accounts",
        ["parent", "principal", "dataset"],
        unique=True,
        sqlite_where=one,
        postgresql_where=one,
    )
    op.create_index("ix_accounts_space", "accounts", ["space"])
    _keep_place()
    op.execute("UPDATE ledger_meta SET schema = 11")


def _keep_place() -> None:
    """An account keeps its place, except that a root may be put below another one: then it and all below go down."""
    sqlite = op.get_context().dialect.name == "sqlite"
    distinct = "IS NOT" if sqlite else "IS DISTINCT FROM"
    moved = " OR ".join(f"NEW.{name} {distinct} OLD.{name}" for name in _FIXED)
    moved += f" OR (OLD.parent IS NOT NULL AND NEW.parent {distinct} OLD.parent) OR NEW.depth < OLD.depth"
    name = "tr_accounts_update_place"
    if sqlite:
        op.execute(f"DROP TRIGGER {name}")
        op.execute(
            f"CREATE TRIGGER {name} BEFORE UPDATE ON accounts FOR EACH ROW WHEN ({moved}) "
            "BEGIN SELECT RAISE(ABORT, 'an account keeps its place and its filter'); END"
        )
        return
    op.execute(f"DROP TRIGGER {name} ON accounts")
    op.execute(f"CREATE TRIGGER {name} BEFORE UPDATE ON accounts FOR EACH ROW WHEN ({moved}) EXECUTE FUNCTION {name}()")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
