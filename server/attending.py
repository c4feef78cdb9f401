"""What a server does by itself while it serves: standing monitors of new data, and events for webhooks."""

from __future__ import annotations

from accountant.ledger import utc_now
from server.monitors.background import StandingMonitors
from server.monitors.monitors import Monitors
from server.services import Services
from server.webhooks.delivering import Deliveries
from server.webhooks.webhooks import Webhooks

__all__ = ["attended"]


def attended(services: Services) -> Services:
    """The services with both, which are closed before them."""
    monitors, webhooks = services.monitors, services.webhooks
    assert isinstance(monitors, Monitors)
    assert isinstance(webhooks, Webhooks)
    standing = StandingMonitors(monitors, services.catalogue, services.jobs)
    deliveries = Deliveries(services.registry, webhooks.seal, webhooks.sender, utc_now)
    for rounds in (standing.rounds, deliveries.rounds):
        rounds.start()
        services.closing = (rounds.close, *services.closing)
    return services
