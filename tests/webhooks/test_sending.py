"""One attempt, over the network of this machine: pinned to the address that was checked, and bounded in every way."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import pytest

from server.webhooks.addresses import read_network
from server.webhooks.destinations import read_destination
from server.webhooks.sending import Attempt, Failure, Sender, system_resolver
from tests.webhooks.receiving import Receiver, receiving, status

LOOPBACK = (read_network("127.0.0.0/8"),)


class Names:
    """A resolver that says what a test wants, another thing each time, and counts how often it was asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, name: str, port: int) -> Sequence[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def sender(*entries: str, resolve: Names | None = None, seconds: float = 5.0, private: bool = True) -> Sender:
    """A sender with these destinations, on a network that is named or is not."""
    return Sender(
        destinations=tuple(map(read_destination, entries)),
        networks=LOOPBACK if private else (),
        resolve=resolve or Names(["127.0.0.1"]),
        seconds_max=seconds,
    )


async def attempt(receiver: Receiver, **options: object) -> Attempt:
    """Sends a body to a receiver under a name of its own."""
    entry = f"http://hooks.test:{receiver.port}"
    return await sender(entry, **options).send(f"{entry}/in?a=b", b'{"a":1}', {"webhook-id": "d_1"})  # type: ignore[arg-type]


def test_a_body_arrives_under_the_name_at_the_address() -> None:
    """Shows path, `Host`, headers and body, and that every status of success counts as received."""

    async def act() -> None:
        async with receiving(status(204)) as receiver:
            assert (await attempt(receiver)) == Attempt(204)
            (got,) = receiver.got
            assert got.line == "POST /in?a=b HTTP/1.1"
            assert got.headers["host"] == f"hooks.test:{receiver.port}"
            assert (got.headers["webhook-id"], got.headers["content-type"]) == ("d_1", "application/json")
            assert not {"authorization", "cookie", "accept-language"} & set(got.headers)
            assert got.body == b'{"a":1}'

    asyncio.run(act())


def test_a_redirection_is_not_followed() -> None:
    """Shows that a receiver cannot send the server elsewhere."""

    async def act() -> None:
        async with receiving(status(200)) as inner:
            for code in (301, 302, 303, 307, 308):
                behave = status(code, f"Location: http://127.0.0.1:{inner.port}/secret")
                async with receiving(behave) as receiver:
                    assert (await attempt(receiver)) == Attempt(code, Failure.REDIRECTED)
            assert inner.got == []

    asyncio.run(act())


def test_a_name_is_resolved_once_and_every_address_is_looked_at() -> None:
    """Shows that a name that answers with a public address first and with this machine next reaches nothing."""

    async def act() -> None:
        async with receiving(status(200)) as receiver:
            # What was checked is what is connected to: the second answer of the name is never asked for.
            names = Names(["127.0.0.1"], ["127.0.0.9"])
            assert (await attempt(receiver, resolve=names)).arrived
            assert names.asked == 1
            for addresses in (["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["::ffff:127.0.0.1"]):
                refused = await attempt(receiver, resolve=Names(addresses), private=False)
                assert refused == Attempt(failure=Failure.ADDRESS_REFUSED)
            assert len(receiver.got) == 1

    asyncio.run(act())


def test_an_address_that_is_checked_and_resolved_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the test above sees a sender that lets the library resolve the name once more: the planted bug."""

    async def bug(self: Sender, address: str, target: object, body: bytes, headers: object) -> Attempt:
        again = (await self.resolve("hooks.test", 0))[0]
        return Attempt(200) if again == address else Attempt(failure=Failure.UNREACHABLE)

    monkeypatch.setattr(Sender, "_sent_to", bug)
    with pytest.raises(AssertionError):
        test_a_name_is_resolved_once_and_every_address_is_looked_at()


def test_destinations_are_looked_at_again() -> None:
    """Shows that an address is not sent to any more once the setting does not allow it."""

    async def act() -> None:
        async with receiving(status(200)) as receiver:
            url = f"http://hooks.test:{receiver.port}/in"
            for one in (sender(), sender("http://hooks.test"), sender(f"https://hooks.test:{receiver.port}")):
                assert await one.send(url, b"", {}) == Attempt(failure=Failure.NOT_ALLOWED)
            assert receiver.got == []

    asyncio.run(act())


async def _endless_head(writer: asyncio.StreamWriter) -> None:
    """Answers one byte at a time, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-A: b\r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _endless_body(writer: asyncio.StreamWriter) -> None:
    """Answers with a body that never ends."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        await writer.drain()


async def _silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def _broken(writer: asyncio.StreamWriter) -> None:
    writer.write(b"no HTTP at all\r\n\r\n")


async def _hangs_up(writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.mark.parametrize(
    ("behave", "seconds", "expected"),
    [
        (status(500), 60, Attempt(500, Failure.STATUS)),
        (status(404, body=b"x" * 100_000), 60, Attempt(404, Failure.STATUS)),
        (_endless_body, 60, Attempt(200)),
        (_endless_head, 0.2, Attempt(failure=Failure.TIMED_OUT)),
        (_silent, 0.2, Attempt(failure=Failure.TIMED_OUT)),
        (_broken, 60, Attempt(failure=Failure.UNREACHABLE)),
        (_hangs_up, 60, Attempt(failure=Failure.UNREACHABLE)),
    ],
)
def test_a_receiver_cannot_hold_an_attempt(behave: object, seconds: float, expected: Attempt) -> None:
    """Shows that each attempt ends in its time, whatever the receiver does, and reads no body.

    Where the time of an attempt were not kept, the silent receiver would hang up, and the endless head never end.
    """

    async def act() -> Attempt:
        async with receiving(behave) as receiver:  # type: ignore[arg-type]
            return await attempt(receiver, seconds=seconds)

    assert asyncio.run(act()) == expected


def test_names_and_ports_without_anybody() -> None:
    """Shows a name that does not exist, and a port where nobody listens."""

    async def act() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            entry = f"http://127.0.0.1:{port}"
            nobody = await sender(entry).send(f"{entry}/", b"", {})
            assert nobody == Attempt(failure=Failure.UNREACHABLE)

        async def unknown(name: str, port: int) -> Sequence[str]:
            raise socket.gaierror

        entry = "https://nowhere.invalid"
        one = Sender((read_destination(entry),), (), unknown)
        assert await one.send(f"{entry}/", b"", {}) == Attempt(failure=Failure.NAME_UNKNOWN)
        assert "127.0.0.1" in await system_resolver()("127.0.0.1", 80)

    asyncio.run(act())
