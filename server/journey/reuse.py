"""Stored releases in place of fresh ones: who may use which, how old they may be, and which of them serve a query.

One rule for all who ask it: the ledger (which decides, in its own transaction), estimates, refusals and repeats.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property

from accountant.account import Account
from accountant.ledger import Ledger
from accountant.request import CoreCharge, HeldRelease, Reuse, StoredRelease
from mechanisms.families import FAMILIES
from privacy.numbers import PICO
from privacy.policy import Dataset, Sharing
from privacy.release import ColumnKind
from server.answer_rows import from_stored
from server.journey.release_key import release_key
from server.question import Question

__all__ = ["Reusable", "Stored", "serves"]

_SHARED: Mapping[Sharing, Reuse] = {Sharing.NO: Reuse.OWN, Sharing.CHARGED: Reuse.CHARGED, Sharing.FREE: Reuse.ANY}


_EPOCH = datetime.datetime.min.replace(tzinfo=datetime.UTC)


def _rank(release: StoredRelease) -> tuple[Fraction, datetime.datetime, str]:
    """The more exact one first, of equal ones the newest."""
    return release.quality, release.created or _EPOCH, release.id


class Stored:
    """The stored releases of the ledger."""

    def __init__(self, ledger: Ledger, now: Callable[[], datetime.datetime]) -> None:
        self._ledger = ledger
        self.now = now

    def serving(
        self, charges: Sequence[CoreCharge], reuse: Reuse, principal: str, account: Account
    ) -> dict[str, StoredRelease]:
        """The releases that would serve for free, by core key: also those that the account paid to read."""
        result: dict[str, StoredRelease] = {}
        if reuse is Reuse.NONE:
            return result
        owner = None if reuse is Reuse.ANY else principal
        for charge in charges:
            for key, least in charge.served_by:
                release = self._ledger.find_release(key, quality=least, principal=owner)
                if release is None and reuse is Reuse.CHARGED and charge.lent:
                    release = self._ledger.find_read(account.id, key, quality=least)
                if release is not None:
                    result[charge.core_key] = release
                    break
            else:
                result.update(self._together(charge, reuse, principal, account))
        return result

    def _together(self, charge: CoreCharge, reuse: Reuse, principal: str, account: Account) -> dict[str, StoredRelease]:
        """The releases that serve a charge together, the first one by its key; none where one of them is missing."""
        found = {}
        for place, (key, least) in enumerate(charge.joined):
            release = self.free((key,), reuse, principal, account)
            if release is None or release.quality < least:
                return {}
            found[key if place else charge.core_key] = release
        return found

    def free(self, keys: Sequence[str], reuse: Reuse, principal: str, account: Account) -> StoredRelease | None:
        """The best release of the first of these keys that has one which may be read for free; None without one."""
        if reuse is Reuse.NONE:
            return None
        for key in keys:
            release = self._ledger.find_release(key, principal=None if reuse is Reuse.ANY else principal)
            read = self._ledger.find_read(account.id, key) if reuse is Reuse.CHARGED else None
            known = [one for one in (release, read) if one is not None]
            if known:
                return max(known, key=lambda one: one.quality)
        return None

    def held(self, frame: str, reuse: Reuse, principal: str, account: Account) -> list[HeldRelease]:
        """What stored releases of a frame hold that may be read for free, the greatest quality first."""
        found = self._ledger.find_held(frame, principal=None if reuse is Reuse.ANY else principal)
        return found + (self._ledger.find_held_read(account.id, frame) if reuse is Reuse.CHARGED else [])

    def finer(self, frames: Sequence[str], reuse: Reuse, principal: str, account: Account) -> list[HeldRelease]:
        """The same of releases of any groups in frames that have none."""
        if not frames:
            return []
        found = self._ledger.find_finer(frames, principal=None if reuse is Reuse.ANY else principal)
        return found + (self._ledger.find_finer_read(account.id, frames) if reuse is Reuse.CHARGED else [])

    def best(self, keys: tuple[str, str], *, principal: str | None) -> StoredRelease | None:
        """The best release under either key, of that principal where one is given."""
        return self._ledger.find_best(keys, principal=principal)

    def most_rows(self, counting_key: str, question: Question) -> float | None:
        """The most rows that any public group has by the asker's own stored count; None without one."""
        for family in FAMILIES:
            key = release_key(counting_key, family, delta=Fraction(0))
            found = self._ledger.find_release(key, principal=question.principal)
            if found is not None:
                columns = from_stored(found.body, "c0", question.confidence).columns
                (counted,) = (column for column in columns if column.role != ColumnKind.KEY)
                return max((float(high) for high in counted.highs or () if high is not None), default=None)
        return None


def serves(release: StoredRelease, least: Fraction) -> bool:
    """Whether a stored release is good enough, as the ledger decides it: in whole picos."""
    return release.quality >= least // PICO * PICO


class Reusable:
    """The stored releases that may serve one query. They are looked up when somebody asks, and once."""

    def __init__(
        self,
        stored: Stored,
        question: Question,
        dataset: Dataset,
        charges: Sequence[CoreCharge],
        account: Account,
        *,
        cores: int,
    ) -> None:
        """`charges` begin with those of the query's cores, so many."""
        self._stored = stored
        self._question = question
        self._dataset = dataset
        self._charges = charges
        self._account = account
        self._cores = cores

    @cached_property
    def found(self) -> Mapping[str, StoredRelease]:
        """Releases that would serve for free if they are not too old, by core key."""
        return self._stored.serving(self._charges, self._allowed, self._question.principal, self._account)

    @cached_property
    def reuse(self) -> Reuse:
        """How far stored releases may serve: others' only when the policy shares them, old ones only when allowed."""
        if self._question.max_staleness_s is not None:
            oldest = self._stored.now() - datetime.timedelta(seconds=self._question.max_staleness_s)
            # A histogram of norms chooses; it is not an answer, and may be of any age.
            answers = [self.found[c.core_key] for c in self._charges[: self._cores] if c.core_key in self.found]
            if any(release.created is not None and release.created < oldest for release in answers):
                return Reuse.NONE
        return self._allowed

    @cached_property
    def serving(self) -> Mapping[str, StoredRelease]:
        """Releases that serve for free, by core key."""
        return {} if self.reuse is Reuse.NONE else self.found

    def beside(self, charges: Sequence[CoreCharge]) -> Reusable:
        """The same for charges that are served by more releases."""
        if charges == self._charges:
            return self
        return Reusable(self._stored, self._question, self._dataset, charges, self._account, cores=self._cores)

    def histogram(self, keys: Sequence[str]) -> StoredRelease | None:
        """The stored histogram of norms of the first of these keys that has one which may be read for free."""
        return self._stored.free(keys, self._allowed, self._question.principal, self._account)

    def base(self, keys: tuple[str, str], *, lent: bool) -> StoredRelease | None:
        """The best release under either key that may be read for free, to be made more precise.

        `lent` says that releases which were read for a charge count. None where the question wants none that is stored,
        or none that is so old.
        """
        allowed, principal = self._allowed, self._question.principal
        if allowed is Reuse.NONE:
            return None
        found = self._stored.best(keys, principal=None if allowed is Reuse.ANY else principal)
        if allowed is Reuse.CHARGED and lent:
            read = [self._stored.free([key], Reuse.CHARGED, principal, self._account) for key in keys]
            found = max((one for one in (found, *read) if one is not None), key=_rank, default=None)
        most = self._question.max_staleness_s
        if found is not None and found.created is not None and most is not None:
            oldest = self._stored.now() - datetime.timedelta(seconds=most)
            return None if found.created < oldest else found
        return found

    def serve(self) -> list[bool]:
        """Of each core, whether a stored release serves it for free."""
        return [charge.core_key in self.serving for charge in self._charges[: self._cores]]

    @property
    def _allowed(self) -> Reuse:
        """Which stored releases may serve, as the policy lets others' ones do."""
        if self._question.reuse in (Reuse.OWN, Reuse.NONE):
            return self._question.reuse
        asked = _SHARED[self._dataset.limits.releases_shared]
        # How old a release is that nobody chose yet is not known: one's own can be looked at. Said here for all who
        # ask: what the ledger does not reuse must not pass the floor as reusable.
        return Reuse.OWN if asked is Reuse.CHARGED and self._question.max_staleness_s is not None else asked
