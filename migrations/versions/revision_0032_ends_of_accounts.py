"""An account may end earlier than it was to end, and one that was to end never may end: never the other way round."""

from __future__ import annotations

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_FIXED = ("id", "dataset", "principal", "filter", "created")


def upgrade() -> None:
    """The trigger that keeps an account's place lets its end come nearer."""
    sqlite = op.get_context().dialect.name == "sqlite"
    distinct = "IS NOT" if sqlite else "IS DISTINCT FROM"
    moved = " OR ".join(f"NEW.{name} {distinct} OLD.{name}" for name in _FIXED)
    moved += f" OR (OLD.parent IS NOT NULL AND NEW.parent {distinct} OLD.parent) OR NEW.depth < OLD.depth"
    moved += " OR (OLD.expires IS NOT NULL AND (NEW.expires IS NULL OR NEW.expires > OLD.expires))"
    name = "tr_accounts_update_place"
    if sqlite:
        op.execute(f"DROP TRIGGER {name}")
        op.execute(
            f"CREATE TRIGGER {name} BEFORE UPDATE ON accounts FOR EACH ROW WHEN ({moved}) "
            "BEGIN SELECT RAISE(ABORT, 'an account keeps its place and its filter'); END"
        )
    else:
        op.execute(f"DROP TRIGGER {name} ON accounts")
        op.execute(
            f"CREATE TRIGGER {name} BEFORE UPDATE ON accounts FOR EACH ROW WHEN ({moved}) EXECUTE FUNCTION {name}()"
        )
    op.execute("UPDATE ledger_meta SET schema = 12")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
