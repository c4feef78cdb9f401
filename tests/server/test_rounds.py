"""Threads that look now and then, and end when they are told to."""

from __future__ import annotations

import threading

from server.rounds import Rounds


def test_a_long_pause_does_not_keep_the_end() -> None:
    """What looks once an hour ends at once; every stop of a server waited for each of them."""
    looked = threading.Event()

    async def look() -> None:
        looked.set()

    rounds = Rounds("test", look, seconds=3600)
    rounds.start()
    assert looked.wait(30)
    rounds.close()
    assert rounds._thread is not None
    assert not rounds._thread.is_alive()
