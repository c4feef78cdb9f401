"""Where webhooks may go: addresses of the web that an administrator allows, read strictly and compared in parts.

An entry is scheme, host and, where it says one, port and the beginning of a path: `https://hooks.example.com`,
`https://hooks.example.com/teams/`, `https://*.example.com`, `http://10.1.2.3:9000`. Without a port it is that of the
scheme. A beginning of a path ends where a segment ends. Nothing is compared as text from the left: a longer name that
begins alike is another host.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

__all__ = ["URL_LENGTH_MAX", "Destination", "Target", "read_destination", "read_target"]

URL_LENGTH_MAX = 2_000

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"(?:{_LABEL}\.){{0,20}}{_LABEL}|\[[0-9A-Fa-f:.]{{2,45}}\]"
_REST = r"(?::(?P<port>[0-9]{1,5}))?(?P<path>/[!-\"$-;=?-\[\]-~]*)?"
_URL = re.compile(rf"(?P<scheme>https?)://(?P<host>{_HOST}){_REST}\Z", re.ASCII)
_ENTRY = re.compile(rf"(?P<scheme>https?)://(?P<host>(?:\*\.)?(?:{_HOST})){_REST}\Z", re.ASCII)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """An address of the web in its parts. `path` is what is sent, with its query: many receivers take it for a key."""

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)

    @property
    def name(self) -> str:
        """The host as a resolver and a certificate name it."""
        return self.host.strip("[]")

    @property
    def authority(self) -> str:
        """The host, with the port where it is not that of the scheme: the header `Host`."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Destination:
    """One entry of what is allowed. A host that begins with `*.` stands for every name below it."""

    scheme: str
    host: str
    port: int
    path: str

    def admits(self, target: Target) -> bool:
        """Whether the entry allows this address."""
        if self.host.startswith("*."):
            named = target.host.endswith(self.host[1:]) and target.host != self.host[1:]
        else:
            named = target.host == self.host
        path = target.path.partition("?")[0]
        begins = path == self.path or path.startswith(self.path if self.path.endswith("/") else f"{self.path}/")
        return named and begins and (target.scheme, target.port) == (self.scheme, self.port)


def _parts(found: re.Match[str]) -> tuple[str, str, int, str]:
    """Errors: ValueError for a port or a path that different programs read in different ways."""
    scheme, path = found["scheme"], found["path"] or "/"
    port = _PORTS[scheme] if found["port"] is None else int(found["port"])
    if not 1 <= port <= 65_535:
        raise ValueError("its port is not between 1 and 65535")
    # Decoded twice: what is decoded once by a proxy and again behind it.
    plain = unquote(unquote(path.partition("?")[0]))
    # What follows a semicolon is a parameter of the segment to some programs, which then see the dots alone.
    dots = any(segment.partition(";")[0] in (".", "..") for segment in plain.split("/"))
    if dots or "\\" in plain or not plain.isprintable():
        raise ValueError("its path has segments of dots or characters that programs read in different ways")
    return scheme, found["host"].lower(), port, path


def read_target(text: str) -> Target:
    """The address that a webhook names. Errors: ValueError, with a sentence without the text."""
    found = _URL.match(text) if len(text) <= URL_LENGTH_MAX else None
    if found is None:
        raise ValueError(
            "it is no address such as https://hooks.example.com/path, in visible ASCII characters, without a user, a "
            "password or a fragment"
        )
    return Target(*_parts(found))


def read_destination(text: str) -> Destination:
    """An entry of the setting. Errors: ValueError, with a sentence without the text."""
    found = _ENTRY.match(text) if len(text) <= URL_LENGTH_MAX else None
    if found is None or "?" in (found["path"] or ""):
        raise ValueError(
            "it is no beginning of an address such as https://hooks.example.com or https://*.example.com/in/"
        )
    if found["host"].startswith("*.") and "." not in found["host"][2:]:
        raise ValueError("its host stands for every name below one word")
    return Destination(*_parts(found))
