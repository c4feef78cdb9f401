"""Metrics for the operator: counts of requests and outcomes. No label names a principal, a dataset or a text.

Numbers of rows, values and engine times are not here: they are facts about private data.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric

__all__ = ["CONTENT_TYPE_LATEST", "USED_SHARES", "Metrics", "Standing"]

USED_SHARES = ("0.5", "0.75", "0.9", "0.99")
"""Shares of limits above which budgets are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is read of ledger and registry for one look: numbers of the whole server, none of a person."""

    head: int
    mark: int | None
    rejected: bool
    open_queries: int
    lost_queries: int
    recovered: int
    budgets_used: Mapping[str, int]
    requests_waiting: int
    deliveries_waiting: int
    principals_stopped: int


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
        self._of_the_server()
        self._incidents_seen: dict[str, int] = {}
        self._ended_seen: dict[str, int] = {}
        self._lock = threading.Lock()

    def _of_the_server(self) -> None:
        """Gauges of what all processes share, read when somebody asks."""
        self.head = self._gauge("ledger_head", "Number of the ledger's last entry or act.")
        self.mark = self._gauge(
            "high_water_mark", "The number that the high-water mark knows; above ledger_head entries are missing."
        )
        self.rejected = self._gauge(
            "ledger_rejected", "1 while an audit found that the ledger does not agree with itself: nothing is spent."
        )
        self.queries_open = self._gauge("queries_open", "Queries of all processes that are charged and not ended.")
        self.queries_lost = self._gauge(
            "queries_lost", "Open queries whose process is dead: they are failed, charged, within a lease."
        )
        self.queries_recovered = self._gauge(
            "queries_recovered", "Queries of dead processes that this process has failed since it began."
        )
        self.queries_room = self._gauge("queries_room", "Queries that this process runs and keeps waiting at most.")
        self.requests_waiting = self._gauge("budget_requests_waiting", "Requests for budgets that nobody has decided.")
        self.deliveries_waiting = self._gauge("deliveries_waiting", "Notices that were not received yet.")
        self.principals_stopped = self._gauge("principals_stopped", "Principals who are stopped.")
        self.budgets_used = Gauge(
            "noisegate_budgets_used",
            "Budgets of whose limits at least this share is used.",
            ("at_least",),
            registry=self._registry,
        )

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"noisegate_{name}", text, registry=self._registry)

    def show(self, standing: Standing) -> None:
        """Sets the gauges of what was read."""
        self.head.set(standing.head)
        self.mark.set(-1 if standing.mark is None else standing.mark)
        self.rejected.set(standing.rejected)
        self.queries_open.set(standing.open_queries)
        self.queries_lost.set(standing.lost_queries)
        self.queries_recovered.set(standing.recovered)
        self.requests_waiting.set(standing.requests_waiting)
        self.deliveries_waiting.set(standing.deliveries_waiting)
        self.principals_stopped.set(standing.principals_stopped)
        for share, count in standing.budgets_used.items():
            self.budgets_used.labels(share).set(count)

    def count_incidents(self, counts: Mapping[str, int]) -> None:
        """Bring the counter of incidents up to these totals."""
        self._count(self.incidents, self._incidents_seen, counts)

    def count_ended(self, counts: Mapping[str, int]) -> None:
        """Bring the counter of queries up to these totals of queries that ended."""
        self._count(self.queries, self._ended_seen, counts)

    def _count(self, counter: Counter, seen: dict[str, int], counts: Mapping[str, int]) -> None:
        with self._lock:
            for kind, count in counts.items():
                counter.labels(kind).inc(max(0, count - seen.get(kind, 0)))
                seen[kind] = max(count, seen.get(kind, 0))

    def render(self, *, several: bool = False) -> bytes:
        """The metrics in Prometheus' text format; with the process in a label, where `several` serve one address."""
        return generate_latest(_OfProcess(self._registry) if several else self._registry)


class _OfProcess(CollectorRegistry):
    """The metrics of a registry, each with the number of this process: counts of several are distinguished by it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._whole = registry

    def collect(self) -> Iterator[Metric]:
        """Every metric."""
        process = {"process": str(os.getpid())}
        for metric in self._whole.collect():
            metric.samples = [sample._replace(labels={**sample.labels, **process}) for sample in metric.samples]
            yield metric
