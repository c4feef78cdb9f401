"""Which connection gives way: the rule, without sockets. With sockets: tests/cli/test_connections.py."""

from __future__ import annotations

import uvicorn

from server.connections import RESERVE, ConnectionLimits, Connections
from server.settings import load_settings
from server.web_server import uvicorn_options


class Wire:
    """A connection that notes whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def give_way(self) -> None:
        self.closed = True


def limited(total: int = 4, per_address: int = 2, *trusted: str) -> Connections:
    """Limits for a test."""
    return Connections(ConnectionLimits(total=total, per_address=per_address, header_seconds=1.0, trusted=trusted))


def entered(all_: Connections, *addresses: str) -> list[Wire]:
    """New connections of these addresses."""
    wires = []
    for address in addresses:
        wires.append(Wire())
        assert all_.enter(wires[-1], address)
    return wires


def test_one_address_takes_its_own_connections_only() -> None:
    """The address with too many loses its oldest waiting one; the others' stay."""
    all_ = limited()
    wires = entered(all_, "a", "b", "a", "a", "a")
    assert [wire.closed for wire in wires] == [True, False, True, False, False]
    assert all_.count == 3


def test_the_connection_that_waited_longest_gives_way() -> None:
    """In all, too: and a busy one is not waiting, and begins to wait anew after its response."""
    all_ = limited()
    wires = entered(all_, "a", "b", "c", "d")
    all_.busy(wires[0])
    all_.busy(wires[1])
    all_.waits(wires[1])
    entered(all_, "e", "f")
    assert [wire.closed for wire in wires] == [False, False, True, True]
    entered(all_, "g")
    assert wires[1].closed
    assert all_.count == 4


def test_when_all_are_busy_new_ones_are_in_a_reserve_of_bounded_size() -> None:
    """They are not counted among the others, and the oldest of them gives way to the newest."""
    all_ = limited(total=2)
    for wire in entered(all_, "a", "b"):
        all_.busy(wire)
    spare = [Wire() for _ in range(RESERVE + 1)]
    assert not any(all_.enter(wire, "c") for wire in spare)
    assert (all_.count, all_.reserved) == (2, RESERVE)
    assert [wire.closed for wire in spare] == [True] + [False] * RESERVE
    for wire in spare:
        all_.leave(wire)
        all_.leave(wire)
    assert all_.reserved == 0


def test_a_proxy_is_not_one_address() -> None:
    """Everybody behind a trusted proxy has its address."""
    all_ = limited(10, 2, "10.0.0.0/8", "2001:db8::1", "a-name")
    assert not any(wire.closed for wire in entered(all_, *["10.1.2.3"] * 4, *["2001:db8::1"] * 4))
    assert entered(all_, "9.9.9.9", "9.9.9.9", "9.9.9.9")[0].closed


def test_what_left_is_forgotten() -> None:
    """Counts fall back to nothing."""
    all_ = limited()
    for wire in entered(all_, "a", "a", "b"):
        all_.leave(wire)
    assert all_.count == 0
    assert not any(wire.closed for wire in entered(all_, "a", "a"))


def test_the_web_server_has_no_limit_of_its_own_that_comes_first() -> None:
    """Its limit answered everybody with 503, and its websockets were not counted."""
    config = uvicorn.Config("server.asgi:application", factory=True, **{**uvicorn_options(load_settings()), "port": 0})
    assert config.limit_concurrency is None
    assert config.ws == "none"
