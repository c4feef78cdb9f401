"""A receiver of webhooks on this machine, which behaves as a test wants it to, and remembers what it got."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

__all__ = ["Got", "Receiver", "receiver_beside", "receiving", "status"]

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Got:
    """One request: its first line, its headers by their names in lower case, and its body."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Receiver:
    """What a receiver got. `behave` answers, and may be exchanged."""

    port: int
    behave: Behaviour
    got: list[Got] = field(default_factory=list)


def status(code: int, *headers: str, body: bytes = b"") -> Behaviour:
    """Answers with a status."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {code} Word", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()

    return answer


@asynccontextmanager
async def receiving(behave: Behaviour) -> AsyncIterator[Receiver]:
    """A receiver on a free port of this machine."""
    receiver = Receiver(0, behave)

    serving: set[asyncio.Task[object]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *rest = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (part.partition(":") for part in rest)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            receiver.got.append(Got(line, headers, body))
            await receiver.behave(writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            serving.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in serving.copy():
            task.cancel()
        await asyncio.gather(*serving)


@contextmanager
def receiver_beside(behave: Behaviour) -> Iterator[Receiver]:
    """A receiver on a thread of its own, for tests without an event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = receiving(behave)
    try:
        yield asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
