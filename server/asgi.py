"""The application for a web server that wants to make it by itself: `uvicorn --factory server.asgi:application`."""

from __future__ import annotations

from fastapi import FastAPI

from server.app import create_app
from server.attending import attended
from server.build import build_services
from server.settings import Settings, load_settings
from server.watching import watched

__all__ = ["application"]


def application(settings: Settings | None = None) -> FastAPI:
    """The application with the real services; settings come from the environment when none are given.

    Datasets that another process attaches or removes are noticed, as by every server.
    """
    return create_app(settings or load_settings(), build=lambda chosen: attended(watched(build_services(chosen))))
