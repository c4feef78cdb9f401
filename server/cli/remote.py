"""Which server is asked, and as whom: options of the commands that work over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.home import Home
from server.cli.options import option

if TYPE_CHECKING:
    from server.cli.client import Client

__all__ = ["Remote"]

_URL = "Address of the server. Default: the one that serves this home, else http://127.0.0.1:8765."
_KEY = "API key. Others on this machine may see arguments: prefer the variable or --key-file."


@dataclass(frozen=True, slots=True)
class Remote:
    """Which server is asked, and as whom."""

    url: str | None = option("--url URL", _URL, envvar="NOISEGATE_URL")
    key: str | None = option("--key KEY", _KEY, envvar="NOISEGATE_KEY")
    key_file: Path | None = option("--key-file FILE", "File that holds the API key, and nothing else.")

    def connect(self, place: Home) -> Client:
        """A connection to the server that is meant. Errors: CommandFailed."""
        from server.cli.client import Client, choose_key, choose_url

        address = choose_url(self.url, place)
        return Client(address, choose_key(self.key, self.key_file, place, address))
