"""Which stored histogram a question may choose by: the one that the ledger would serve for free, and no other."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast

import pytest

from accountant.account import Account
from accountant.request import Reuse, StoredRelease
from privacy.numbers import PICO
from server.journey.reuse import Stored, serves


class Release:
    """As much of a stored release as is looked at."""

    def __init__(self, quality: object) -> None:
        self.quality = Fraction(str(quality))


class Kept:
    """A ledger with a release of one's own, and one that the account was charged for reading."""

    def __init__(self, own: Release | None, read: Release | None) -> None:
        self._own = own
        self._read = read

    def find_release(self, key: str, *, principal: str | None) -> Release | None:
        """One's own."""
        del key
        assert principal == "anna"
        return self._own

    def find_read(self, account: str, key: str) -> Release | None:
        """What was paid for."""
        del account, key
        return self._read


class Leaf:
    """An account."""

    id = "b"


@pytest.mark.parametrize(
    ("own", "read", "best"), [("0.1", "0.4", "0.4"), ("0.4", "0.1", "0.4"), ("0.1", None, "0.1"), (None, "0.4", "0.4")]
)
def test_a_poor_release_of_ones_own_never_hides_a_better_one_that_was_paid_for(
    own: str | None, read: str | None, best: str
) -> None:
    """The ledger serves the better one: a question that does not see it would be priced as two charges."""
    kept: Any = Kept(None if own is None else Release(own), None if read is None else Release(read))
    found = Stored(kept, cast("Any", None)).free(["k"], Reuse.CHARGED, "anna", cast("Account", Leaf()))
    assert found is not None
    assert found.quality == Fraction(best)


def test_what_is_read_for_a_charge_serves_only_where_the_policy_lends() -> None:
    """Under `no` a release that was read before serves nobody else."""
    kept: Any = Kept(None, Release("0.4"))
    assert Stored(kept, cast("Any", None)).free(["k"], Reuse.OWN, "anna", cast("Account", Leaf())) is None


def test_a_quarter_of_whole_picos_serves_as_the_ledger_says() -> None:
    """The ledger keeps qualities, and compares them, in whole picos rounded down."""
    quality = 7 * PICO / 4
    assert serves(cast("StoredRelease", Release(quality // PICO * PICO)), quality)
    assert not serves(cast("StoredRelease", Release("0")), quality)
