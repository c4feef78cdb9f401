"""The composition of a server: settings to services, in one place.

Nothing else constructs engines, the ledger or the journey; tests build their own services.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from accountant.account import Limit
from accountant.ledger import Ledger, utc_now
from accountant.reader import LedgerReader
from engines.incidents import Incidents
from engines.private import PrivateEngine
from engines.shell import ShellEngine
from mechanisms.randomness import SystemBits
from migrations.upgrade import upgrade
from privacy.policy import Dataset
from server.administration.budget_requests import BudgetRequests
from server.administration.budgets import Budgets
from server.administration.preview import Bench
from server.administration.profiles import Profiles
from server.administration.spaces import settle_space
from server.answer import Journey
from server.batches.batches import Batches
from server.catalogue import ServedDatasets
from server.dashboards.dashboards import Dashboards
from server.dashboards.links import Signer
from server.dashboards.reading import Reader
from server.datasets.invented import Invented, with_sources
from server.free_answers import SharedFreeAnswers
from server.jobs import JobPool
from server.journey.pace import Pace
from server.journey.reuse import Stored
from server.log import logger
from server.matrix import sql_matrix
from server.models.models import Models
from server.models.quoting import Quotes
from server.monitors.monitors import Monitors
from server.monitors.recovery import Recovery
from server.opening import open_registry
from server.resources.resources import Resources
from server.sealing import BATCHES, DASHBOARDS, MONITORS, REQUESTS, STREAMS, WEBHOOKS, Seal
from server.self_audit import SelfAudit
from server.services import Check, Services, TokenSteps
from server.settings import Settings
from server.shutdown import Pause
from server.statistics.asking import Statistics
from server.statistics.quoting import StatisticQuotes
from server.store.registry import Registry
from server.streams.streams import Streams
from server.synthetic.making import Synthetics
from server.synthetic.tables import DrawnTables
from server.webhooks.addresses import read_network
from server.webhooks.destinations import read_destination
from server.webhooks.mail import Mailbox, read_mail_entry
from server.webhooks.sending import Sender, system_resolver
from server.webhooks.webhooks import Webhooks
from sql_rewrite.dialects import DIALECTS

__all__ = ["build_services", "open_catalogue", "open_preview", "open_profiles", "self_audit"]


def self_audit(settings: Settings, ledger: Ledger) -> SelfAudit:
    """The audits of a server's own ledger."""
    mark = settings.high_water()
    file = mark.with_name(f"{mark.name}.checkpoint")
    return SelfAudit(ledger, lambda: LedgerReader(settings.database()), file, found_before=ledger.rejected)


def open_catalogue(settings: Settings, registry: Registry, ledger: Ledger | None = None) -> ServedDatasets:
    """The served datasets of a home. Who attaches one gives the ledger: its accounts follow its unit space."""
    return ServedDatasets(
        registry,
        datasets_directory=settings.datasets_directory,
        snapshots_directory=settings.snapshots_directory,
        draw_secret=settings.own_secret("draw_key"),
        settle=None if ledger is None else partial(settle_space, ledger),
    )


def _pace(settings: Settings, private: PrivateEngine, *, sleep: Callable[[float], None] = time.sleep) -> Pace:
    return Pace(
        tick_seconds=settings.answer_tick_ms / 1000,
        engine_threads=settings.engine_threads,
        slowness=lambda: private.probe_nanoseconds() / DIALECTS[private.capabilities.dialect].costs.probe,
        sleep=sleep,
    )


@contextlib.contextmanager
def open_profiles(settings: Settings, ledger: Ledger, registry: Registry) -> Iterator[Profiles]:
    """The act that makes profiles, for a process that serves nothing: with engines of its own, ended afterwards."""
    with contextlib.ExitStack() as started:
        private = PrivateEngine(workers=1, threads=settings.engine_threads, memory_limit_mb=settings.engine_memory_mb)
        started.callback(private.close)
        shell = ShellEngine(workers=1)
        started.callback(shell.close)
        private.measure()
        yield Profiles(
            ledger=ledger,
            served=open_catalogue(settings, registry),
            private=private,
            twins=shell,
            bits=SystemBits(),
            pace=_pace(settings, private),
        )


@contextlib.contextmanager
def open_preview(dataset: Dataset, document: Mapping[str, object], invented: Invented, limit: Limit) -> Iterator[Bench]:
    """Where questions are tried on invented rows: a home of its own, with engines of its own, thrown away afterwards.

    `document` is the dataset file of `dataset`, whose sources are replaced. Nobody but its caller sees an answer, and
    no row of people is there, so answers wait for no visible moment.
    Errors: DatasetRefused for declarations that invented rows do not fulfil.
    """
    with contextlib.ExitStack() as started:
        home = Path(started.enter_context(tempfile.TemporaryDirectory(prefix="noisegate-preview-")))
        settings = Settings(home=home)
        settings.datasets_directory.mkdir(parents=True)
        upgrade(settings.database())
        for made in invented.tables:
            made.write(settings.datasets_directory / f"{made.table.name}.csv")
        private = PrivateEngine(workers=1, threads=settings.engine_threads, memory_limit_mb=settings.engine_memory_mb)
        started.callback(private.close)
        shell = ShellEngine(workers=1)
        started.callback(shell.close)
        ledger = Ledger(settings.database(), instance="preview", high_water=settings.high_water())
        started.callback(ledger.close)
        registry = Registry(settings.database(), secret=settings.keys_secret(), clock=utc_now)
        started.callback(registry.close)
        catalogue = open_catalogue(settings, registry)
        tried = catalogue.register(with_sources(document), actor="preview")
        journey = Journey(
            ledger=ledger,
            private=private,
            shell=shell,
            served=catalogue,
            bits=SystemBits(),
            pace=Pace(sleep=lambda _: None),
        )
        yield Bench(tried, invented, journey, ledger, shell, limit)


def _checks(private: PrivateEngine, shell: ShellEngine, ledger: Ledger, catalogue: ServedDatasets) -> tuple[Check, ...]:
    """What says whether the server can answer. Anybody may ask.

    None may take a worker or wait for one, which would reveal running times.
    """
    return (
        Check("ledger", ledger.check_writable),
        Check("high_water", lambda: _ready(not ledger.high_water_failed, "the high-water mark cannot be written")),
        Check("engine", lambda: _ready(private.usable())),
        Check("shell", lambda: _ready(shell.usable())),
        Check("snapshots", catalogue.require_snapshots),
        Check("datasets", catalogue.require_readable),
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """What everything that a server offers is made of."""

    ledger: Ledger
    registry: Registry
    private: PrivateEngine
    shell: ShellEngine
    catalogue: ServedDatasets
    pace: Pace
    pause: Pause
    bits: SystemBits


def _started(settings: Settings, incidents: Incidents, started: contextlib.ExitStack) -> _Parts:
    """The engines, the ledger and what is served; each is closed with the stack."""
    private = PrivateEngine(
        workers=settings.engine_workers,
        threads=settings.engine_threads,
        memory_limit_mb=settings.engine_memory_mb,
        incidents=incidents,
    )
    started.callback(private.close)
    shell = ShellEngine(workers=2, incidents=incidents)
    started.callback(shell.close)
    url, instance = settings.database(), settings.instance or f"{os.getpid()}-{secrets.token_hex(4)}"
    ledger = Ledger(url, instance=instance, high_water=settings.high_water(), lease_seconds=settings.lease_seconds)
    started.callback(ledger.close)
    if not ledger.behind:
        self_audit(settings, ledger).at_start()
    if ledger.mark_made:
        logger().warning("high_water_missing", file=str(settings.high_water()))
    registry = open_registry(settings, serving=True)
    started.callback(registry.close)
    catalogue = open_catalogue(settings, registry, ledger)
    for dataset in catalogue.all():
        private.warm(catalogue.snapshot(dataset))
    pause = Pause()
    pace = _pace(settings, private, sleep=pause.sleep)
    return _Parts(ledger, registry, private, shell, catalogue, pace, pause, SystemBits())


def _webhooks(settings: Settings, registry: Registry, seal: Seal) -> Webhooks:
    sender = Sender(
        destinations=tuple(map(read_destination, settings.webhook_destinations)),
        networks=tuple(map(read_network, settings.webhook_networks)),
        resolve=system_resolver(),
    )
    mailbox = Mailbox(settings.mail_directory, settings.mail_from, tuple(map(read_mail_entry, settings.mail_addresses)))
    return Webhooks(registry=registry, seal=seal, sender=sender, mailbox=mailbox)


def _tokens(settings: Settings, registry: Registry) -> TokenSteps | None:
    if settings.oidc_issuer is None:
        return None
    # Only here: a server without an issuer need not load the library of tokens.
    from server.tokens import open_tokens

    return open_tokens(settings, registry, clock=time.monotonic)


def _requests(
    ledger: Ledger, registry: Registry, catalogue: ServedDatasets, seal: Seal, *, raises_need_two: bool
) -> BudgetRequests:
    def served() -> list[str]:
        return sorted([*(dataset.name for dataset in catalogue.all()), *catalogue.unavailable()])

    budgets = Budgets(ledger, registry, served, raises_need_two=raises_need_two)
    return BudgetRequests(ledger, registry, budgets, seal)


def _dashboards(secret: bytes, ledger: Ledger, registry: Registry, journey: Journey) -> Dashboards:
    seal, signer = Seal(secret, DASHBOARDS), Signer.of(secret, registry.earlier_secrets(secret))
    return Dashboards(ledger, registry, journey, seal, signer, utc_now, Reader(registry, ledger, seal))


def build_services(settings: Settings) -> Services:
    """Everything a server process needs, started. Undoes what it started when a later part fails.

    Errors: the ledger's (NotMigrated, SchemaTooNew, WeakDurability, ...), SettingsRefused.
    """
    with contextlib.ExitStack() as started:
        incidents = Incidents()
        it = _started(settings, incidents, started)
        ledger, registry, private, shell, catalogue = it.ledger, it.registry, it.private, it.shell, it.catalogue
        drawn = DrawnTables(registry, ledger)
        journey = Journey(
            ledger=ledger,
            private=private,
            shell=shell,
            served=catalogue,
            bits=it.bits,
            pace=it.pace,
            drawn=drawn,
            free_answers=SharedFreeAnswers(registry) if registry.shared else None,
        )
        if not ledger.behind and ledger.rejected is None:
            Recovery(ledger, registry).recover()
        secret = settings.keys_secret()
        resources = Resources(ledger=ledger, private=private, pace=it.pace, bits=it.bits)
        dialect = DIALECTS[private.capabilities.dialect]
        quotes = Quotes(
            journey.admission, shell, dialect, Stored(ledger, utc_now), rows_bytes_max=settings.engine_memory_mb << 20
        )
        # Beside the start, which it would lengthen; until it is done, ticks are those of a slow machine.
        threading.Thread(target=private.measure, name="noisegate-probe", daemon=True).start()
        jobs = JobPool(threads=settings.query_threads, queue=settings.query_queue)
        # Closed in this order, after the jobs: the engine first, so that nothing can be released any more; then the
        # queries that waited for it are void, and those that wait for their visible moment end without a trace.
        closing: tuple[Callable[[], object], ...] = (
            *(private.close, it.pause.close, jobs.settle),
            *(shell.close, ledger.close, registry.close),
        )
        services = Services(
            settings=settings,
            registry=registry,
            ledger=ledger,
            catalogue=catalogue,
            journey=journey,
            registrar=catalogue,
            jobs=jobs,
            profiles=Profiles(
                ledger=ledger, served=catalogue, private=private, twins=shell, bits=it.bits, pace=it.pace
            ),
            resources=resources,
            monitors=Monitors(resources, registry, journey, catalogue, Seal(secret, MONITORS)),
            models=Models(resources, registry, quotes, catalogue),
            statistics=Statistics(resources, StatisticQuotes(journey.admission, shell, dialect), catalogue),
            synthetic=Synthetics(resources, registry, journey, catalogue, shell, drawn),
            batches=Batches(ledger, registry, journey, Seal(secret, BATCHES)),
            streams=Streams(resources, registry, journey, catalogue, Seal(secret, STREAMS)),
            webhooks=_webhooks(settings, registry, Seal(secret, WEBHOOKS)),
            dashboards=_dashboards(secret, ledger, registry, journey),
            tokens=_tokens(settings, registry),
            requests=_requests(
                ledger, registry, catalogue, Seal(secret, REQUESTS), raises_need_two=settings.raises_need_two
            ),
            checks=_checks(private, shell, ledger, catalogue),
            sql_matrix=sql_matrix(),
            incidents=incidents,
            closing=closing,
        )
        started.pop_all()
        return services


def _ready(ready: bool, why: str = "no engine worker is ready") -> None:  # noqa: FBT001 - a check raises
    if not ready:
        raise RuntimeError(why)
