"""One attempt to send a body: the name is resolved once, every address is looked at, and that address is connected to.

What is checked is what is used: the connection goes to an address that was checked, while certificate and `Host` are
those of the name. Nothing else resolves the name, follows a redirection, reads a proxy from the environment or reads
the body of the response. The attempt as a whole has a time limit, however slowly the receiver answers.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from socket import IPPROTO_TCP, SOCK_STREAM, gaierror, getaddrinfo
from typing import TYPE_CHECKING

from server.webhooks.addresses import Network, may_be_reached
from server.webhooks.destinations import Destination, Target, read_target

if TYPE_CHECKING:
    import httpx

__all__ = ["Attempt", "Failure", "Resolve", "Sender", "system_resolver"]

SECONDS_MAX = 10.0
_ADDRESSES_MAX = 4
_RESOLVING_THREADS = 16

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Addresses of a name and a port, as texts. Errors: OSError."""


class Failure(StrEnum):
    """Why an attempt did not arrive, as the owner of the webhook reads it."""

    NOT_ALLOWED = "not_allowed"
    """No entry of `webhook_destinations` allows the address any more."""

    ADDRESS_REFUSED = "address_refused"
    """The name stands for an address that is neither public nor named in `webhook_networks`."""

    NAME_UNKNOWN = "name_unknown"
    UNREACHABLE = "unreachable"
    """No connection, or one that broke, or whose certificate is not that of the name."""

    TIMED_OUT = "timed_out"
    REDIRECTED = "redirected"
    STATUS = "status"
    """The receiver answered with another status than 200 to 299."""

    NOT_WRITTEN = "not_written"
    """The folder of messages could not be written."""

    UNREADABLE = "unreadable"
    """Address and secret are encrypted under another `key_secret`."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of an attempt: the receiver's status, if there was one, and why it counts as failed, if it does."""

    status: int | None = None
    failure: Failure | None = None

    @property
    def arrived(self) -> bool:
        """Whether the receiver has taken it."""
        return self.failure is None


def system_resolver() -> Resolve:
    """Names as the system resolves them, on threads of their own: a resolver that hangs holds up nothing else."""
    threads = ThreadPoolExecutor(_RESOLVING_THREADS, thread_name_prefix="resolve")

    async def resolve(name: str, port: int) -> Sequence[str]:
        look = partial(getaddrinfo, name, port, type=SOCK_STREAM, proto=IPPROTO_TCP)
        found = await asyncio.get_running_loop().run_in_executor(threads, look)
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))

    return resolve


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends bodies to addresses that are allowed. Used on one event loop at a time."""

    destinations: tuple[Destination, ...]
    networks: tuple[Network, ...]
    resolve: Resolve
    seconds_max: float = SECONDS_MAX

    def allows(self, target: Target) -> bool:
        """Whether an entry of the settings allows this address."""
        return any(entry.admits(target) for entry in self.destinations)

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """One attempt. Raises nothing but a cancellation."""
        try:
            target = read_target(url)
        except ValueError:
            return Attempt(failure=Failure.NOT_ALLOWED)
        if not self.allows(target):
            return Attempt(failure=Failure.NOT_ALLOWED)
        try:
            async with asyncio.timeout(self.seconds_max):
                return await self._sent(target, body, headers)
        except TimeoutError:
            return Attempt(failure=Failure.TIMED_OUT)

    async def _sent(self, target: Target, body: bytes, headers: Mapping[str, str]) -> Attempt:
        import httpx

        try:
            addresses = await self.resolve(target.name, target.port)
        except (gaierror, UnicodeError):
            return Attempt(failure=Failure.NAME_UNKNOWN)
        except OSError:
            return Attempt(failure=Failure.UNREACHABLE)
        if not addresses or not all(may_be_reached(address, self.networks) for address in addresses):
            # One address that may not be reached is enough: a name that stands for both is not what it was named for.
            return Attempt(failure=Failure.ADDRESS_REFUSED)
        for address in addresses[:_ADDRESSES_MAX]:
            try:
                return await self._sent_to(address, target, body, headers)
            except httpx.ConnectError:
                continue
            except httpx.TimeoutException:
                return Attempt(failure=Failure.TIMED_OUT)
            except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError):
                return Attempt(failure=Failure.UNREACHABLE)
        return Attempt(failure=Failure.UNREACHABLE)

    async def _sent_to(self, address: str, target: Target, body: bytes, headers: Mapping[str, str]) -> Attempt:
        """Errors: httpx's."""
        host = f"[{address}]" if ":" in address else address
        own = {"Host": target.authority, "Content-Type": "application/json", "Connection": "close"}
        async with _client(self.seconds_max) as client:
            request = client.build_request(
                "POST",
                f"{target.scheme}://{host}:{target.port}{target.path}",
                content=body,
                headers={**own, **headers},
                # The certificate is that of the name, not of the address.
                extensions={"sni_hostname": target.name},
            )
            response = await client.send(request, stream=True, follow_redirects=False)
            # Its body is never read: it may be long, and nobody would look at it.
            await response.aclose()
        status = response.status_code
        if 300 <= status < 400:
            return Attempt(status, Failure.REDIRECTED)
        return Attempt(status, None if 200 <= status < 300 else Failure.STATUS)


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that this machine trusts, read once."""
    return ssl.create_default_context()


def _client(seconds: float) -> httpx.AsyncClient:
    """A client for one request: nothing of the environment, and nothing that is kept from one receiver to another."""
    import httpx

    return httpx.AsyncClient(verify=_trusted(), trust_env=False, timeout=seconds, headers={"User-Agent": "noisegate"})
