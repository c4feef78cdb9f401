"""The web server's options that fit the settings. Imports the web server, which most commands do not need."""

from __future__ import annotations

from typing import Any

from server.connections import limited_protocol
from server.settings import CONNECTION_BACKLOG, Settings
from server.shutdown import rest_of

__all__ = ["uvicorn_options"]


def uvicorn_options(settings: Settings) -> dict[str, Any]:
    """Arguments for uvicorn that fit these settings: no access log (it prints query strings), bounded waiting."""
    return {
        "host": settings.host,
        "port": settings.port,
        "workers": settings.workers,
        "access_log": False,
        "log_config": None,
        "server_header": False,
        "date_header": True,
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": ",".join(settings.trusted_proxies) or "127.0.0.1",
        "timeout_keep_alive": 15,
        # Requests leave by themselves before this moment (server/shutdown.py); what is left is answered and closed.
        "timeout_graceful_shutdown": settings.shutdown_seconds - rest_of(settings.shutdown_seconds) / 2,
        # Limits of connections are ours (server/connections.py): uvicorn's would refuse health checks first.
        "http": limited_protocol(settings),
        "ws": "none",
        "backlog": CONNECTION_BACKLOG,
        "lifespan": "on",
    }
