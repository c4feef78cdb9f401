"""Accounts get a mixed branch, and entries its two sums; accounts that are there have none, and theirs stay zero."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


_SPENT = (
    *("spent_pure", "spent_delta", "spent_rho", "spent_mu_squared"),
    *("unbounded_pure", "unbounded_rho", "unbounded_mu_squared"),
    *("spent_mixed_pure", "spent_mixed_mu_squared", "unbounded_mixed"),
)


def upgrade() -> None:
    """Columns that are zero or empty for everything that is there, and the trigger that knows the branch."""
    op.add_column("accounts", sa.Column("share_mixed", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("accounts", sa.Column("budget_mixed_pure", sa.BigInteger(), nullable=True))
    op.add_column("accounts", sa.Column("budget_mixed_mu_squared", sa.BigInteger(), nullable=True))
    op.add_column(
        "accounts",
        _counted(
            "budget_mixed_delta",
            "budget_mixed_delta >= 0 AND budget_mixed_delta <= "
            "limit_delta - budget_delta - budget_gaussian_delta - budget_concentrated_delta "
            "AND (budget_mixed_pure IS NULL) = (budget_mixed_mu_squared IS NULL) "
            "AND (budget_mixed_pure IS NULL OR (filter <> 'pure' AND budget_mixed_pure < budget_pure))",
            "ck_accounts_budget_mixed",
        ),
    )
    op.add_column("accounts", _counted("spent_mixed_pure"))
    op.add_column("accounts", _counted("spent_mixed_mu_squared"))
    op.add_column(
        "accounts",
        _counted(
            "unbounded_mixed",
            "spent_mixed_pure >= 0 AND spent_mixed_mu_squared >= 0 AND unbounded_mixed >= 0",
            "ck_accounts_spent_mixed",
        ),
    )
    for name in ("mixed_pure", "mixed_mu_squared", "unbounded_mixed"):
        op.add_column("entries", _counted(name))
    _cover()
    op.execute("UPDATE ledger_meta SET schema = 7")


def _counted(name: str, check: str | None = None, constraint: str | None = None) -> sa.Column[int]:
    """A column that is zero in what is there. A check of the whole row comes with the last of its columns."""
    checks = () if check is None else (sa.CheckConstraint(check, name=constraint),)
    return sa.Column(name, sa.BigInteger(), *checks, nullable=False, server_default="0")


def _cover() -> None:
    """No update may raise what an account has spent beyond its budgets: as before, or within the mixed branch."""
    grows = " OR ".join(f"NEW.{name} > OLD.{name}" for name in _SPENT)
    fits = (
        "NEW.spent_delta <= NEW.budget_delta AND ("
        "(NEW.unbounded_pure = 0 AND NEW.spent_pure <= NEW.budget_pure) OR "
        "(NEW.unbounded_rho = 0 AND NEW.budget_rho IS NOT NULL AND NEW.spent_rho <= NEW.budget_rho) OR "
        "(NEW.unbounded_mu_squared = 0 AND NEW.budget_mu_squared IS NOT NULL "
        "AND NEW.spent_mu_squared <= NEW.budget_mu_squared) OR "
        "(NEW.unbounded_mixed = 0 AND NEW.budget_mixed_pure IS NOT NULL "
        "AND NEW.spent_mixed_pure <= NEW.budget_mixed_pure "
        "AND NEW.spent_mixed_mu_squared <= NEW.budget_mixed_mu_squared))"
    )
    name, when = "tr_accounts_update_covered", f"WHEN (({grows}) AND NOT ({fits}))"
    if op.get_context().dialect.name == "sqlite":
        op.execute(f"DROP TRIGGER {name}")
        op.execute(
            f"CREATE TRIGGER {name} BEFORE UPDATE ON accounts FOR EACH ROW {when} "
            "BEGIN SELECT RAISE(ABORT, 'the account does not cover this'); END"
        )
        return
    op.execute(f"DROP TRIGGER {name} ON accounts")
    op.execute(f"CREATE TRIGGER {name} BEFORE UPDATE ON accounts FOR EACH ROW {when} EXECUTE FUNCTION {name}()")


def downgrade() -> None:
    """There is no way back, as for the ledger."""
    raise NotImplementedError("migrations only go forward")
