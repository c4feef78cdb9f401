"""What a server does by itself: standing monitors, refreshes of dashboards, notices and their sending, old copies,
audits of its ledger."""

from __future__ import annotations

from accountant.ledger import utc_now
from server.administration.overview import Overview
from server.build import self_audit
from server.cancelling import Cancelling
from server.dashboards.dashboards import Dashboards
from server.dashboards.refreshing import Refreshing
from server.monitors.background import StandingMonitors
from server.monitors.monitors import Monitors
from server.noticing import Noticing
from server.retiring import Retirement
from server.services import Services
from server.stopping import StopWatch
from server.webhooks.delivering import Deliveries
from server.webhooks.webhooks import Webhooks

__all__ = ["attended"]


def attended(services: Services) -> Services:
    """The services with all of these, which are closed before them."""
    monitors, webhooks, dashboards = services.monitors, services.webhooks, services.dashboards
    assert isinstance(monitors, Monitors)
    assert isinstance(webhooks, Webhooks)
    assert isinstance(dashboards, Dashboards)
    standing = StandingMonitors(monitors, services.catalogue, services.jobs)
    deliveries = Deliveries(services.registry, webhooks.seal, webhooks.sender, utc_now, webhooks.mailbox)
    refreshing = Refreshing(dashboards, services.journey, services.catalogue, services.jobs, dashboards.now)
    settings = services.settings
    retirement = Retirement(
        services.registry, settings.snapshots_directory, after_seconds=settings.old_snapshots_minutes * 60.0
    )
    overview = Overview(services.ledger, services.registry, services.catalogue.get)
    noticing = Noticing(services.ledger, services.registry, services.incidents, utc_now, overview)
    stops = StopWatch(services)
    # SQLite is for one process: nothing waits in another one.
    several = () if settings.database().startswith("sqlite") else (Cancelling(services).rounds,)
    for rounds in (
        *(standing.rounds, refreshing.rounds, noticing.rounds, stops.rounds, deliveries.rounds, retirement.rounds),
        *several,
    ):
        rounds.start()
        services.closing = (rounds.close, *services.closing)
    audit = self_audit(settings, services.ledger)
    audit.start()
    services.closing = (audit.close, *services.closing)
    return services
