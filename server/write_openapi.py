"""Writes the OpenAPI document: python -m server.write_openapi docs/openapi.json"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from server.app import create_app
from server.openapi import document_text
from server.settings import Settings

__all__: list[str] = []


def _write(path: Path) -> None:
    """Writes the document of the application; no service is needed for it."""

    def build(_: Settings) -> NoReturn:
        raise AssertionError("the document is made without services")

    path.write_text(document_text(create_app(Settings(), build=build)), "utf-8")


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
