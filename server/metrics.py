"""Metrics for the operator: counts of requests and outcomes. No label names a principal, a dataset or a text.

Numbers of rows, values and engine times are not here: they are facts about private data.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]


class Metrics:
    """The metrics of one application; each application has its own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "noisegate_http_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self.request_seconds = Histogram(
            "noisegate_http_request_seconds",
            "Time of requests by route.",
            ("route",),
            buckets=(0.01, 0.1, 1.0, 10.0),
            registry=self._registry,
        )
        self.problems = Counter("noisegate_problems", "Problems by code.", ("code",), registry=self._registry)
        self.queries = Counter(
            "noisegate_queries",
            "Queries by outcome: settled, stored, failed_charged, failed_void.",
            ("outcome",),
            registry=self._registry,
        )
        self.queries_running = Gauge(
            "noisegate_queries_running", "Queries that are admitted and not finished.", registry=self._registry
        )
        self.failed_keys = Counter(
            "noisegate_failed_keys", "Requests whose API key was not accepted.", registry=self._registry
        )
        self.checks = Gauge(
            "noisegate_check",
            "1 where a check of /readyz passes, 0 where it fails.",
            ("check",),
            registry=self._registry,
        )
        self.ledger_behind = Gauge(
            "noisegate_ledger_behind",
            "1 while the ledger is older than its high-water mark and nothing is spent.",
            registry=self._registry,
        )
        self.home_free = Gauge(
            "noisegate_home_free_gibibytes",
            "Whole GiB that are free where ledger and copies of data are: what queries write beside them moves it.",
            registry=self._registry,
        )
        self.high_water_failed = Gauge(
            "noisegate_high_water_failed",
            "1 while the ledger's high-water mark cannot be written: a restored backup might go unnoticed.",
            registry=self._registry,
        )
        self.incidents = Counter(
            "noisegate_incidents",
            "Faults of the server on generated statements: engine_error, unplannable. Each has an incident in the log.",
            ("kind",),
            registry=self._registry,
        )
        self._incidents_seen: dict[str, int] = {}
        self._lock = threading.Lock()

    def count_incidents(self, counts: Mapping[str, int]) -> None:
        """Bring the counter of incidents up to these totals."""
        with self._lock:
            for kind, count in counts.items():
                self.incidents.labels(kind).inc(max(0, count - self._incidents_seen.get(kind, 0)))
                self._incidents_seen[kind] = max(count, self._incidents_seen.get(kind, 0))

    def render(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self._registry)
