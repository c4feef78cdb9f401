"""The ledger's tables, the same on SQLite and PostgreSQL. Created by `migrations`, never from here.

Amounts are whole units in 64-bit integers: picos of epsilon, rho and mu squared, attos of delta. Times are whole
microseconds since 1970 in UTC. Texts that start with JSON hold canonical JSON (sorted keys, no spaces), because some of
them are hashed.

An amount that has no finite bound is not a number in a column: the account counts such charges in `unbounded_*` and
adds up the others, so that a void takes back exactly what a reserve added, in any order.

The migrations add triggers that this module cannot express: entries and releases are never changed; entries, queries
and accounts are never deleted; an account keeps its place and its filter; a query never leaves a final state; and no
update may raise what an account has spent beyond its budgets.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from accountant.states import EntryKind, QueryStatus

__all__ = [
    "ENTRY_KINDS",
    "NAMING_CONVENTION",
    "SCHEMA",
    "STATES",
    "accounts",
    "acts",
    "entries",
    "instances",
    "ledger_meta",
    "metadata",
    "queries",
    "readings",
    "releases",
]

SCHEMA = 12
"""Version of the ledger's tables that this code reads and writes; `ledger_meta.schema` must be equal."""

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
"""Names of constraints; the server's tables use the same, so that one migration chain can find them all."""

ENTRY_KINDS = tuple(kind.value for kind in EntryKind)
"""Movements in the ledger."""

STATES = tuple(state.value for state in QueryStatus)
"""States of a query."""

metadata = MetaData(naming_convention=NAMING_CONVENTION)


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


ledger_meta = Table(
    "ledger_meta",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("schema", Integer, nullable=False),
    Column("ledger", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("timed_from", BigInteger, nullable=False, server_default="0"),
    CheckConstraint("id = 1", name="one_row"),
    CheckConstraint("sequence >= 0", name="sequence"),
)
"""One row: which ledger this is and its head. PostgreSQL transactions lock it first, so writers follow one another.

`epoch` is the ledger's time: the latest moment of any entry, which never falls. `timed_from` is the last entry that was
written before the ledger kept its time: the moments of later ones do not fall either.
"""

instances = Table(
    "instances",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
)
"""One row for every start of a process that writes: its lease, and the number of its last committed batch."""

acts = Table(
    "acts",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Index("ix_acts_action", "action", "sequence"),
)
"""Acts of administrators, append-only, numbered and chained together with the entries (accountant/acts.py)."""

_ONE_ACCOUNT = "principal IS NOT NULL AND parent IS NOT NULL AND frozen = 0 AND expires IS NULL"

accounts = Table(
    "accounts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("parent", Text, ForeignKey("accounts.id"), nullable=True),
    Column("depth", Integer, nullable=False),
    Column("principal", Text, nullable=True),
    Column("name", Text, nullable=False),
    Column("filter", Text, nullable=False),
    Column("limit_epsilon", BigInteger, nullable=False),
    Column("limit_delta", BigInteger, nullable=False),
    Column("budget_pure", BigInteger, nullable=False),
    Column("budget_delta", BigInteger, nullable=False),
    Column("budget_rho", BigInteger, nullable=True),
    Column("budget_mu_squared", BigInteger, nullable=True),
    Column("budget_gaussian_delta", BigInteger, nullable=False),
    Column("budget_concentrated_delta", BigInteger, nullable=False),
    Column("spent_pure", BigInteger, nullable=False),
    Column("spent_delta", BigInteger, nullable=False),
    Column("spent_rho", BigInteger, nullable=False),
    Column("spent_mu_squared", BigInteger, nullable=False),
    Column("unbounded_pure", BigInteger, nullable=False),
    Column("unbounded_rho", BigInteger, nullable=False),
    Column("unbounded_mu_squared", BigInteger, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("frozen", Integer, nullable=False, server_default="0"),
    Column("revision", BigInteger, nullable=False, server_default="1"),
    Column("greatest_epsilon", BigInteger, nullable=False, server_default="0"),
    Column("greatest_delta", BigInteger, nullable=False, server_default="0"),
    Column("share_gaussian", Integer, nullable=False, server_default="25"),
    Column("share_concentrated", Integer, nullable=False, server_default="25"),
    Column("share_mixed", Integer, nullable=False, server_default="0"),
    Column("budget_mixed_pure", BigInteger, nullable=True),
    Column("budget_mixed_mu_squared", BigInteger, nullable=True),
    Column("budget_mixed_delta", BigInteger, nullable=False, server_default="0"),
    Column("spent_mixed_pure", BigInteger, nullable=False, server_default="0"),
    Column("spent_mixed_mu_squared", BigInteger, nullable=False, server_default="0"),
    Column("unbounded_mixed", BigInteger, nullable=False, server_default="0"),
    Column("window_rule", Text, nullable=True),
    Column("window_spent", Text, nullable=True),
    Column("space", Text, nullable=False, server_default=""),
    Column("expires", BigInteger, nullable=True),
    CheckConstraint("(parent IS NULL) = (depth = 0)", name="root"),
    CheckConstraint(_one_of("filter", ("pure", "approximate")), name="filter"),
    CheckConstraint("limit_epsilon > 0 AND limit_delta >= 0", name="limit"),
    CheckConstraint(
        "filter <> 'pure' OR (limit_delta = 0 AND budget_delta = 0 AND spent_delta = 0 "
        "AND budget_rho IS NULL AND budget_mu_squared IS NULL)",
        name="pure",
    ),
    CheckConstraint(
        "budget_delta >= 0 AND budget_gaussian_delta >= 0 AND budget_concentrated_delta >= 0 "
        "AND budget_delta <= limit_delta - budget_gaussian_delta - budget_concentrated_delta "
        "AND budget_pure > 0 AND budget_pure <= limit_epsilon",
        name="budget",
    ),
    CheckConstraint("spent_pure >= 0 AND spent_delta >= 0 AND spent_rho >= 0 AND spent_mu_squared >= 0", name="spent"),
    CheckConstraint("unbounded_pure >= 0 AND unbounded_rho >= 0 AND unbounded_mu_squared >= 0", name="unbounded"),
    CheckConstraint(
        "budget_mixed_delta >= 0 AND budget_mixed_delta <= "
        "limit_delta - budget_delta - budget_gaussian_delta - budget_concentrated_delta "
        "AND (budget_mixed_pure IS NULL) = (budget_mixed_mu_squared IS NULL) "
        "AND (budget_mixed_pure IS NULL OR (filter <> 'pure' AND budget_mixed_pure < budget_pure))",
        name="budget_mixed",
    ),
    CheckConstraint(
        "spent_mixed_pure >= 0 AND spent_mixed_mu_squared >= 0 AND unbounded_mixed >= 0", name="spent_mixed"
    ),
    # Of roots only (WHERE parent IS NULL): said in the migration, for naming a database here loads its dialect.
    Index("uq_accounts_root", "space", unique=True),
    Index(
        "uq_accounts_principal",
        "parent",
        "principal",
        "dataset",
        unique=True,
        sqlite_where=text(_ONE_ACCOUNT),
        postgresql_where=text(_ONE_ACCOUNT),
    ),
    Index("ix_accounts_dataset", "dataset"),
    Index("ix_accounts_parent", "parent"),
    Index("ix_accounts_principal", "principal"),
    Index("ix_accounts_space", "space"),
)
"""The tree of accounts. `budget_*` are the branches of the filter; `spent_*`, `unbounded_*` a cache of the entries.

`frozen` is 1 for an account that pays for nothing more, and one with `expires` ends at that moment; `revision` counts
the limits it had, and `greatest_*` are the greatest epsilon and the greatest delta among them. `space` is the unit
space, the same in a whole tree, which bounds what is lost of its units in whichever dataset.
"""

queries = Table(
    "queries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("principal", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("account", Text, ForeignKey("accounts.id"), nullable=False),
    Column("idempotency_key", Text, nullable=True),
    Column("body_hash", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("cores", Text, nullable=False),
    Column("charged", Text, nullable=False),
    Column("answer", LargeBinary, nullable=True),
    Column("instance", Text, ForeignKey("instances.id"), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("finished", BigInteger, nullable=True),
    Column("answer_of", Text, nullable=True),
    Column("answer_at", BigInteger, nullable=True),
    Column("answer_from", BigInteger, nullable=True),
    Column("answer_to", BigInteger, nullable=True),
    UniqueConstraint("principal", "idempotency_key"),
    CheckConstraint(_one_of("state", STATES), name="state"),
    CheckConstraint("(state = 'settled') = (answer IS NOT NULL)", name="answer"),
    CheckConstraint("(state = 'reserved') = (finished IS NULL)", name="finished"),
    Index("ix_queries_principal", "principal", "created", "id"),
    Index("ix_queries_state", "state"),
)
"""One row for every query that got as far as a reservation.

`answer` is whole, or, with `answer_of`, what the row has of its own: the bytes from `answer_from` to `answer_to` of
that query's answer, which is whole, belong at `answer_at`.
"""

entries = Table(
    "entries",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("account", Text, ForeignKey("accounts.id"), nullable=False),
    Column("account_sequence", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=True),
    Column("pure", BigInteger, nullable=False),
    Column("delta", BigInteger, nullable=False),
    Column("rho", BigInteger, nullable=False),
    Column("mu_squared", BigInteger, nullable=False),
    Column("unbounded_pure", BigInteger, nullable=False),
    Column("unbounded_rho", BigInteger, nullable=False),
    Column("unbounded_mu_squared", BigInteger, nullable=False),
    Column("mixed_pure", BigInteger, nullable=False, server_default="0"),
    Column("mixed_mu_squared", BigInteger, nullable=False, server_default="0"),
    Column("unbounded_mixed", BigInteger, nullable=False, server_default="0"),
    Column("details", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("account_previous", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    UniqueConstraint("account", "account_sequence"),
    CheckConstraint(_one_of("kind", ENTRY_KINDS), name="kind"),
    CheckConstraint("kind IN ('grant', 'adjust') OR query_id IS NOT NULL", name="query"),
    Index("ix_entries_query_id", "query_id"),
)
"""The entries, append-only. Amounts are signed: a reserve adds, a void takes the same away, all others are zero."""

releases = Table(
    "releases",
    metadata,
    Column("id", Text, primary_key=True),
    Column("core_key", Text, nullable=False),
    Column("quality", BigInteger, nullable=False),
    Column("principal", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("events", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("frame", Text, nullable=True),
    Column("coarse", Text, nullable=True),
    Column("held", Text, nullable=True),
    Index("ix_releases_best", "core_key", "quality", "created"),
    Index("ix_releases_query_id", "query_id"),
    Index("ix_releases_frame", "frame", "quality", "created"),
    Index("ix_releases_frame_own", "frame", "principal", "quality", "created"),
    Index("ix_releases_coarse", "coarse", "quality", "created"),
    Index("ix_releases_coarse_own", "coarse", "principal", "quality", "created"),
)
"""Noisy tables that may be returned again for free.

`frame` says of which rows, in which groups, and `coarse` the same without the groups: other questions of them may be
answered from the sums that are `held`, which say what they measure and with which noise. None where no other question
may, and of releases that were stored before other questions were looked for.
"""

readings = Table(
    "readings",
    metadata,
    Column("account", Text, ForeignKey("accounts.id"), nullable=False, primary_key=True),
    Column("release", Text, ForeignKey("releases.id"), nullable=False, primary_key=True),
    Column("core_key", Text, nullable=False),
    Column("query_id", Text, ForeignKey("queries.id"), nullable=False),
    Column("created", BigInteger, nullable=False),
    Index("ix_readings_core", "account", "core_key"),
)
"""Which account was charged, by which query, for a release that another account had paid for."""
