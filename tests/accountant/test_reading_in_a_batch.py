"""Two requests in one batch: what one may read for having paid must not serve the other, which asked for its own."""

from __future__ import annotations

import threading
import time

import pytest

from accountant.ledger import Ledger
from accountant.operations import Touch
from tests.accountant.making import core, request
from tests.accountant.test_reading import Tree


@pytest.mark.parametrize("together", [False, True])
def test_own_means_own_whoever_shares_the_batch(ledger: Ledger, together: bool) -> None:
    """`own` (which is what `max_staleness_s` makes of a charged policy) never takes a release of somebody else."""
    tree = Tree(ledger)
    tree.ask("anna")
    assert tree.ask("ben"), "ben paid for reading anna's release"
    charged = request(tree.ben, core("core"), principal="ben", reuse="charged")
    own = request(tree.ben, core("core"), principal="ben", reuse="own")
    found: dict[str, int] = {}

    def reserve(name: str, asked: object) -> None:
        found[name] = len(ledger.reserve(asked).reused)  # type: ignore[arg-type]

    class Slow(Touch):
        def apply(self, batch: object) -> None:
            time.sleep(0.4)

    threads = [
        threading.Thread(target=reserve, args=("charged", charged)),
        threading.Thread(target=reserve, args=("own", own)),
    ]
    if together:
        threading.Thread(target=ledger._write, args=(Slow(),)).start()
        time.sleep(0.1)
    for thread in threads:
        thread.start()
        if not together:
            thread.join()
    for thread in threads:
        thread.join()
    assert found == {"charged": 1, "own": 0}
