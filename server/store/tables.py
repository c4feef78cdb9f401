"""Tables of the registry. They live in the ledger's database and in the one chain of migrations."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from accountant.tables import NAMING_CONVENTION

__all__ = [
    "account_days",
    "api_keys",
    "batches",
    "budget_requests",
    "cancellations",
    "collector_tallies",
    "collector_tokens",
    "collectors",
    "dashboard_links",
    "dashboard_readers",
    "dashboard_refreshes",
    "dashboard_tiles",
    "dashboards",
    "dataset_versions",
    "earlier_secrets",
    "metadata",
    "monitor_evaluations",
    "monitors",
    "principals",
    "proposals",
    "rate_buckets",
    "replies",
    "resources",
    "stops",
    "stream_answers",
    "streams",
    "synthetic_tables",
    "told",
    "webhook_deliveries",
    "webhooks",
]

metadata = MetaData(naming_convention=NAMING_CONVENTION)

# Times are ISO 8601 texts in UTC: the same on every database, sortable, and readable in a dump.

principals = Table(
    "principals",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("created", String(32), nullable=False),
    Column("disabled", String(32)),
    CheckConstraint("role IN ('admin', 'owner', 'analyst', 'dashboard', 'auditor')", name="role_known"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("principal", String(64), ForeignKey("principals.name"), nullable=False),
    Column("label", String(100), nullable=False),
    Column("salt", LargeBinary, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created", String(32), nullable=False),
    Column("expires", String(32), nullable=False),
    Column("last_used_day", String(10)),
    Column("revoked", String(32)),
    Column("scopes", String(200)),
    Column("previous_salt", LargeBinary),
    Column("previous_digest", LargeBinary),
    Column("previous_until", String(32)),
    Index("ix_api_keys_principal", "principal"),
)
"""API keys. `scopes` are words, none for the whole role; `previous_*` the secret before the last rotation."""

rate_buckets = Table(
    "rate_buckets",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("full_at", Float(53), nullable=False),
)
"""Rates that several processes share: when each bucket will be full again, in seconds since 1970."""

earlier_secrets = Table(
    "earlier_secrets",
    metadata,
    Column("fingerprint", String(32), primary_key=True),
    Column("until", String(32), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
)
"""Secrets that API keys are still accepted under, encrypted with the newest one (server/store/rotation.py)."""

dataset_versions = Table(
    "dataset_versions",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("name", String(64), nullable=False),
    Column("policy_version", Integer, nullable=False),
    Column("data_version", String(128), nullable=False),
    Column("snapshot", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("current", Boolean, nullable=False),
    Column("created", String(32), nullable=False),
    Column("actor", String(64), nullable=False),
    UniqueConstraint("name", "policy_version", "data_version"),
    CheckConstraint("policy_version >= 1", name="policy_version_positive"),
    Index("ix_dataset_versions_name_current", "name", "current"),
)

replies = Table(
    "replies",
    metadata,
    Column("principal", String(64), primary_key=True),
    Column("idempotency_key", String(200), primary_key=True),
    Column("request_hash", String(64), nullable=False),
    Column("status", Integer),
    Column("headers", Text),
    Column("body", Text),
    Column("created", String(32), nullable=False),
)
"""Answers to administrators under an Idempotency-Key, without secrets; no status while the act is under way."""

resources = Table(
    "resources",
    metadata,
    Column("id", String(80), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("principal", String(64), nullable=False),
    Column("dataset", String(64), nullable=False),
    Column("account", String(80), nullable=False),
    Column("created", String(32), nullable=False),
    Column("price", Text),
    Column("terms", Text, nullable=False),
    Column("closed", String(32)),
    Index("ix_resources_kind", "kind", "created", "id"),
    Index("ix_resources_kind_principal", "kind", "principal", "created", "id"),
)
"""What was charged once and is used or read afterwards: whose it is, what was asked for and the price that was agreed.

State, charge and answer are those of the query of the same identifier; a kind has what is its own in another table.
"""

monitors = Table(
    "monitors",
    metadata,
    Column("id", String(80), primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("left", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("background", Boolean, nullable=False),
    CheckConstraint('"left" >= 0', name="left_not_negative"),
    Index("ix_monitors_background", "background"),
)
"""Monitors: what they are for is encrypted with the noise of their threshold (server/monitors/sealing.py)."""

batches = Table(
    "batches",
    metadata,
    Column("id", String(80), primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
)
"""Batches: their texts, encrypted."""

monitor_evaluations = Table(
    "monitor_evaluations",
    metadata,
    Column("monitor", String(80), ForeignKey("monitors.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("version", String(200), nullable=False),
    Column("at", String(32), nullable=False),
    Column("outcome", String(16)),
    Column("detail", Text),
    Column("instance", String(200)),
    CheckConstraint("outcome IN ('passed', 'not_passed', 'failed')", name="outcome_known"),
    Index("ix_monitor_evaluations_instance", "instance"),
)
"""Evaluations. `instance` is the process that makes one, by the ledger's name for it; none once it is over."""

streams = Table(
    "streams",
    metadata,
    Column("id", String(80), primary_key=True),
    Column("frame", LargeBinary, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("left", Integer, nullable=False),
    Column("made", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("shared", Boolean, nullable=False),
    Column("instance", String(200)),
    CheckConstraint('"left" >= 0', name="left_not_negative"),
    CheckConstraint("made >= 0", name="made_not_negative"),
    Index("ix_streams_instance", "instance"),
)
"""Streams: what they are about and where they stand is encrypted (server/streams/sealing.py).

`instance` is the process that compares at this moment, by the ledger's name for it. `shared`: others may ask it.
"""

stream_answers = Table(
    "stream_answers",
    metadata,
    Column("stream", String(80), ForeignKey("streams.id"), primary_key=True),
    Column("key", String(64), primary_key=True),
    Column("detail", Text, nullable=False),
)
"""Answers of streams, under keys that do not say what was asked."""

synthetic_tables = Table(
    "synthetic_tables",
    metadata,
    Column("id", String(80), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("slot", String(200)),
    Column("data_version", String(200), nullable=False),
    Column("report", Text),
    Column("content", LargeBinary),
    UniqueConstraint("slot", name="uq_synthetic_tables_slot"),
)
"""Synthetic tables. `slot` is dataset, owner and name while the table holds its name; `content` are its rows."""

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("principal", String(64), ForeignKey("principals.name"), nullable=False),
    Column("host", String(300), nullable=False),
    Column("events", Text, nullable=False),
    Column("subjects", Text),
    Column("sealed", LargeBinary, nullable=False),
    Column("created", String(32), nullable=False),
    Column("removed", String(32)),
    Index("ix_webhooks_principal", "principal", "created", "id"),
)
"""Webhooks. Address and secret are encrypted; `events` and `subjects` are JSON lists, no subjects stand for all."""

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False),
    Column("webhook", String(32), ForeignKey("webhooks.id"), nullable=False),
    Column("event", String(32), nullable=False),
    Column("subject", String(80), nullable=False),
    Column("body", Text, nullable=False),
    Column("created", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("due", String(32), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("status", Integer),
    Column("failure", String(32)),
    UniqueConstraint("id", name="uq_webhook_deliveries_id"),
    CheckConstraint("state IN ('waiting', 'delivered', 'failed')", name="state_known"),
    Index("ix_webhook_deliveries_state", "state", "webhook", "sequence"),
    Index("ix_webhook_deliveries_webhook", "webhook", "sequence"),
)
"""The outbox: what is to be sent, stored in the transaction of what happened; `due` is the next attempt."""

budget_requests = Table(
    "budget_requests",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("principal", String(64), ForeignKey("principals.name"), nullable=False),
    Column("dataset", String(64), nullable=False),
    Column("account", String(80)),
    Column("epsilon", String(40), nullable=False),
    Column("delta", String(40), nullable=False),
    Column("state", String(16), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created", String(32), nullable=False),
    Column("decided", String(32)),
    Column("decider", String(64)),
    Column("reason", Text),
    CheckConstraint("state IN ('open', 'approved', 'rejected', 'withdrawn')", name="state_known"),
    CheckConstraint("(state = 'open') = (decided IS NULL)", name="decided"),
    Index("ix_budget_requests_principal", "principal", "created", "id"),
    Index("ix_budget_requests_state", "state", "created", "id"),
)
"""Requests for a limit, of an account or, where there is none yet, of a new one.

`epsilon` and `delta` are the whole limit that is asked for, or was given. Question, estimate and reason are encrypted.
"""

proposals = Table(
    "proposals",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("subject", String(80), nullable=False),
    Column("terms", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("proposer", String(64), nullable=False),
    Column("created", String(32), nullable=False),
    Column("expires", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("decided", String(32)),
    Column("decider", String(64)),
    CheckConstraint("kind IN ('adjust', 'acknowledge_restore')", name="kind_known"),
    CheckConstraint("state IN ('open', 'confirmed', 'rejected', 'withdrawn')", name="state_known"),
    CheckConstraint("(state = 'open') = (decided IS NULL)", name="decided"),
    Index("ix_proposals_state", "state", "created", "id"),
)
"""What one administrator proposes and another one confirms. `terms` is canonical JSON; acts vouch for each row."""

stops = Table(
    "stops",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("principal", String(64), ForeignKey("principals.name"), nullable=False),
    Column("accounts", Text, nullable=False),
    Column("disabled", Boolean, nullable=False),
    Column("created", String(32), nullable=False),
    Column("ended", String(32)),
    Index("ix_stops_principal", "principal", "created", "id"),
)
"""Principals who were stopped: which accounts were frozen by it, as a JSON list, and whether it disabled them."""

told = Table(
    "told",
    metadata,
    Column("subject", String(80), primary_key=True),
    Column("occasion", String(80), primary_key=True),
    Column("at", String(32), nullable=False),
)
"""What notices were given of, each once."""

account_days = Table(
    "account_days",
    metadata,
    Column("account", String(80), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("amounts", Text, nullable=False),
)
"""What an account had spent at the beginning of a day in UTC: the ledger's amounts, a JSON list of whole numbers."""

cancellations = Table(
    "cancellations",
    metadata,
    Column("query", String(80), primary_key=True),
    Column("instance", String(128), nullable=False),
    Column("created", String(32), nullable=False),
)
"""Queries that are to be cancelled by the process in which they wait, until it has looked."""

collectors = Table(
    "collectors",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("question", Text, nullable=False),
    Column("domain", Text, nullable=False),
    Column("missing", Text),
    Column("encoding", String(32), nullable=False),
    Column("epsilon", String(40), nullable=False),
    Column("account", Text, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("reports", Integer, nullable=False),
    Column("created", String(32), nullable=False),
    Column("closed", String(32)),
    Column("actor", String(64), nullable=False),
    CheckConstraint("tokens >= 0 AND reports >= 0 AND reports <= tokens", name="reports"),
)
"""Questions of local collection. `domain` is a JSON list of texts; `account` the root of the ledger that paid."""

collector_tokens = Table(
    "collector_tokens",
    metadata,
    Column("collector", String(32), ForeignKey("collectors.id"), primary_key=True),
    Column("digest", String(64), primary_key=True),
    Column("used", Boolean, nullable=False),
)
"""SHA-256 of each token. Neither when one was used nor with which report is kept."""

collector_tallies = Table(
    "collector_tallies",
    metadata,
    Column("collector", String(32), ForeignKey("collectors.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    CheckConstraint("number >= 0 AND count >= 1", name="count"),
)
"""How often each number is in the reports of a collector: all that is kept of them."""

dashboards = Table(
    "dashboards",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("principal", String(64), ForeignKey("principals.name"), nullable=False),
    Column("dataset", String(64), nullable=False),
    Column("account", String(80), nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("created", String(32), nullable=False),
    Column("paused", String(32)),
    Column("closed", String(32)),
    Index("ix_dashboards_principal", "principal", "created", "id"),
)
"""Dashboards. `account` is their envelope; the title is encrypted."""

dashboard_readers = Table(
    "dashboard_readers",
    metadata,
    Column("dashboard", String(32), ForeignKey("dashboards.id"), primary_key=True),
    Column("principal", String(64), primary_key=True),
)
"""Who may read a dashboard beside its owner. A name need not be that of a principal."""

dashboard_tiles = Table(
    "dashboard_tiles",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("dashboard", String(32), ForeignKey("dashboards.id"), nullable=False),
    Column("name", String(40), nullable=False),
    Column("slot", String(80)),
    Column("place", Integer, nullable=False),
    Column("sealed", LargeBinary, nullable=False),
    Column("schedule", Text, nullable=False),
    Column("created", String(32), nullable=False),
    Column("wanted", String(32)),
    Column("handled", String(32), nullable=False),
    Column("version", String(200)),
    Column("due", String(240)),
    Column("due_at", String(32)),
    Column("claim", String(32)),
    Column("lease", String(32)),
    Column("state", String(16), nullable=False),
    Column("code", String(40)),
    Column("answered", String(200)),
    Column("query", String(80)),
    Column("digest", String(64)),
    Column("as_of", String(32)),
    Column("refreshed", String(32)),
    Column("number", Integer, nullable=False),
    UniqueConstraint("slot", name="uq_dashboard_tiles_slot"),
    CheckConstraint("state IN ('waiting', 'current', 'exhausted', 'refused', 'failed')", name="state_known"),
    Index("ix_dashboard_tiles_dashboard", "dashboard", "place"),
)
"""Tiles. `slot` is dashboard and name while the tile stands there; text and title are encrypted.

`due` is the refresh that is under way, or that a process left: its key in the ledger. `claim` is whose it is, until
`lease`. `handled` and `version` are the last moment of the schedule, and the last version of the data, that were due.
`query` is the query whose answer is shown, `digest` what is shown of it, `answered` the version it was asked of.
"""

dashboard_refreshes = Table(
    "dashboard_refreshes",
    metadata,
    Column("tile", String(32), ForeignKey("dashboard_tiles.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", String(32), nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("query", String(80)),
    Column("charged", String(40)),
    CheckConstraint("outcome IN ('answered', 'unchanged', 'exhausted', 'refused', 'failed')", name="outcome_known"),
)
"""What came of each refresh: the query whose answer is shown from then on, and what the envelope was charged."""

dashboard_links = Table(
    "dashboard_links",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("dashboard", String(32), ForeignKey("dashboards.id"), nullable=False),
    Column("label", String(100), nullable=False),
    Column("created", String(32), nullable=False),
    Column("expires", String(32), nullable=False),
    Column("revoked", String(32)),
    Index("ix_dashboard_links_dashboard", "dashboard", "created", "id"),
)
"""Read-only links. Their tokens are signed and not stored."""
