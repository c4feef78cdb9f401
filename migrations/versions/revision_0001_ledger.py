"""The ledger: accounts, entries, queries, releases, instances, and the triggers that keep them honest."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SPENT = (
    "spent_pure",
    "spent_delta",
    "spent_rho",
    "spent_mu_squared",
    "unbounded_pure",
    "unbounded_rho",
    "unbounded_mu_squared",
)
_PLACE = ("id", "dataset", "parent", "depth", "principal", "filter", "created")


def _big(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def upgrade() -> None:
    """Creates the ledger's tables and triggers."""
    op.create_table(
        "ledger_meta",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("schema", sa.Integer(), nullable=False),
        _text("ledger"),
        _big("sequence"),
        _text("hash"),
        sa.PrimaryKeyConstraint("id", name="pk_ledger_meta"),
        sa.CheckConstraint("id = 1", name="ck_ledger_meta_one_row"),
        sa.CheckConstraint("sequence >= 0", name="ck_ledger_meta_sequence"),
    )
    op.create_table(
        "instances",
        _text("id"),
        _text("name"),
        _big("batch"),
        _big("started"),
        _big("expires"),
        sa.PrimaryKeyConstraint("id", name="pk_instances"),
    )
    op.create_table(
        "accounts",
        _text("id"),
        _text("dataset"),
        _text("parent", nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        _text("principal", nullable=True),
        _text("name"),
        _text("filter"),
        _big("limit_epsilon"),
        _big("limit_delta"),
        _big("budget_pure"),
        _big("budget_delta"),
        sa.Column("budget_rho", sa.BigInteger(), nullable=True),
        sa.Column("budget_mu_squared", sa.BigInteger(), nullable=True),
        _big("budget_gaussian_delta"),
        _big("budget_concentrated_delta"),
        *(_big(name) for name in _SPENT),
        _big("entries"),
        _text("hash"),
        _big("created"),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.ForeignKeyConstraint(["parent"], ["accounts.id"], name="fk_accounts_parent_accounts"),
        sa.CheckConstraint("(parent IS NULL) = (depth = 0)", name="ck_accounts_root"),
        sa.CheckConstraint("filter IN ('pure', 'approximate')", name="ck_accounts_filter"),
        sa.CheckConstraint("limit_epsilon > 0 AND limit_delta >= 0", name="ck_accounts_limit"),
        sa.CheckConstraint(
            "filter <> 'pure' OR (limit_delta = 0 AND budget_delta = 0 AND spent_delta = 0 "
            "AND budget_rho IS NULL AND budget_mu_squared IS NULL)",
            name="ck_accounts_pure",
        ),
        sa.CheckConstraint(
            "budget_delta >= 0 AND budget_gaussian_delta >= 0 AND budget_concentrated_delta >= 0 "
            "AND budget_delta <= limit_delta - budget_gaussian_delta - budget_concentrated_delta "
            "AND budget_pure > 0 AND budget_pure <= limit_epsilon",
            name="ck_accounts_budget",
        ),
        sa.CheckConstraint(
            "spent_pure >= 0 AND spent_delta >= 0 AND spent_rho >= 0 AND spent_mu_squared >= 0",
            name="ck_accounts_spent",
        ),
        sa.CheckConstraint(
            "unbounded_pure >= 0 AND unbounded_rho >= 0 AND unbounded_mu_squared >= 0", name="ck_accounts_unbounded"
        ),
    )
    op.create_index(
        "uq_accounts_root",
        "accounts",
        ["dataset"],
        unique=True,
        sqlite_where=sa.text("parent IS NULL"),
        postgresql_where=sa.text("parent IS NULL"),
    )
    op.create_index("ix_accounts_dataset", "accounts", ["dataset"])
    op.create_index("ix_accounts_parent", "accounts", ["parent"])
    op.create_index("ix_accounts_principal", "accounts", ["principal"])
    op.create_table(
        "queries",
        _text("id"),
        _text("principal"),
        _text("dataset"),
        _text("account"),
        _text("idempotency_key", nullable=True),
        _text("body_hash"),
        _text("state"),
        _text("description"),
        _text("cores"),
        _text("charged"),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        _text("instance"),
        _big("created"),
        sa.Column("finished", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_queries"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_queries_account_accounts"),
        sa.ForeignKeyConstraint(["instance"], ["instances.id"], name="fk_queries_instance_instances"),
        sa.UniqueConstraint("principal", "idempotency_key", name="uq_queries_principal_idempotency_key"),
        sa.CheckConstraint(
            "state IN ('reserved', 'running', 'settled', 'failed_charged', 'failed_void')", name="ck_queries_state"
        ),
        sa.CheckConstraint("(state = 'settled') = (answer IS NOT NULL)", name="ck_queries_answer"),
        sa.CheckConstraint("(state IN ('reserved', 'running')) = (finished IS NULL)", name="ck_queries_finished"),
    )
    op.create_index("ix_queries_principal", "queries", ["principal", "created", "id"])
    op.create_index("ix_queries_state", "queries", ["state"])
    op.create_table(
        "entries",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        _text("account"),
        _big("account_sequence"),
        _text("kind"),
        _text("query_id", nullable=True),
        _big("pure"),
        _big("delta"),
        _big("rho"),
        _big("mu_squared"),
        _big("unbounded_pure"),
        _big("unbounded_rho"),
        _big("unbounded_mu_squared"),
        _text("details"),
        _big("created"),
        _text("account_previous"),
        _text("previous"),
        _text("hash"),
        sa.PrimaryKeyConstraint("sequence", name="pk_entries"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_entries_account_accounts"),
        sa.ForeignKeyConstraint(["query_id"], ["queries.id"], name="fk_entries_query_id_queries"),
        sa.UniqueConstraint("account", "account_sequence", name="uq_entries_account_account_sequence"),
        sa.CheckConstraint("kind IN ('grant', 'reserve', 'post', 'void', 'fail', 'adjust')", name="ck_entries_kind"),
        sa.CheckConstraint("kind IN ('grant', 'adjust') OR query_id IS NOT NULL", name="ck_entries_query"),
    )
    op.create_index("ix_entries_query_id", "entries", ["query_id"])
    op.create_table(
        "releases",
        _text("id"),
        _text("core_key"),
        _big("quality"),
        _text("principal"),
        _text("dataset"),
        _text("query_id"),
        _text("events"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        _big("created"),
        sa.PrimaryKeyConstraint("id", name="pk_releases"),
        sa.ForeignKeyConstraint(["query_id"], ["queries.id"], name="fk_releases_query_id_queries"),
    )
    op.create_index("ix_releases_core_key", "releases", ["core_key"])
    op.create_index("ix_releases_query_id", "releases", ["query_id"])

    # A random name for this ledger: a high-water mark of another ledger is not a mark of this one.
    ledger = secrets.token_hex(16)
    op.get_bind().execute(
        sa.text("INSERT INTO ledger_meta (id, schema, ledger, sequence, hash) VALUES (1, 1, :ledger, 0, :hash)"),
        {"ledger": ledger, "hash": "0" * 64},
    )

    grows = " OR ".join(f"NEW.{name} > OLD.{name}" for name in _SPENT)
    fits = (
        "NEW.spent_delta <= NEW.budget_delta AND ("
        "(NEW.unbounded_pure = 0 AND NEW.spent_pure <= NEW.budget_pure) OR "
        "(NEW.unbounded_rho = 0 AND NEW.budget_rho IS NOT NULL AND NEW.spent_rho <= NEW.budget_rho) OR "
        "(NEW.unbounded_mu_squared = 0 AND NEW.budget_mu_squared IS NOT NULL "
        "AND NEW.spent_mu_squared <= NEW.budget_mu_squared))"
    )
    distinct = "IS NOT" if op.get_context().dialect.name == "sqlite" else "IS DISTINCT FROM"
    moved = " OR ".join(f"NEW.{name} {distinct} OLD.{name}" for name in _PLACE)
    final = "OLD.state IN ('settled', 'failed_charged', 'failed_void')"
    _trigger("entries", "UPDATE", None, "entries are never changed")
    _trigger("entries", "DELETE", None, "entries are never deleted")
    _trigger("releases", "UPDATE", None, "releases are never changed")
    _trigger("queries", "DELETE", None, "queries are never deleted")
    _trigger("queries", "UPDATE", final, "the query is in a final state")
    _trigger("accounts", "DELETE", None, "accounts are never deleted")
    _trigger("accounts", "UPDATE", moved, "an account keeps its place and its filter", name="place")
    _trigger("accounts", "UPDATE", f"({grows}) AND NOT ({fits})", "the account does not cover this", name="covered")
    _trigger("ledger_meta", "DELETE", None, "the head is never deleted")


def _trigger(table: str, event: str, condition: str | None, message: str, *, name: str = "kept") -> None:
    """Refuses `event` on rows of `table` that meet `condition`."""
    trigger = f"tr_{table}_{event.lower()}_{name}"
    when = f" WHEN ({condition})" if condition else ""
    if op.get_context().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {trigger} BEFORE {event} ON {table} FOR EACH ROW{when} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )
        return
    op.execute(
        f"CREATE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = 'check_violation'; END $$"
    )
    op.execute(f"CREATE TRIGGER {trigger} BEFORE {event} ON {table} FOR EACH ROW{when} EXECUTE FUNCTION {trigger}()")
    if event == "DELETE":
        op.execute(
            f"CREATE TRIGGER tr_{table}_truncate_{name} BEFORE TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {trigger}()"
        )


def downgrade() -> None:
    """There is no way back: an older program must not spend from a newer ledger."""
    raise NotImplementedError("migrations only go forward")
