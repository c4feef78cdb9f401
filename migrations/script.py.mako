"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """Changes the schema; rows are kept."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """There is no way back: an older program must not spend from a newer ledger."""
    raise NotImplementedError("migrations only go forward")
