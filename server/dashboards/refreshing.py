"""The schedule of dashboards: the only thing of them that spends.

A refresh is a question of its owner, asked from the envelope, in the queue of queries like every other one.

Claim. A refresh is charged at most once, whatever processes die, race or see the clock step.

Proof. Each refresh has a key that follows from its tile and from what made it due: a moment of the schedule, a version
of the data, or the moment at which its owner asked (`schedule.py`). The key is stored with the tile before the question
is asked, and it is the question's idempotency key, of which the ledger charges one. A process that takes over a refresh
asks under the stored key, and gets the first answer or its end. A key has a space in it, which no key of a request has.
A moment is due only after the last handled one, so a clock that steps makes no second refresh of it; where the last
one is more than eight days ahead, the schedule goes on from the clock, under keys that are charged once all the same.
Where the first attempt was void, nothing was charged, and the refresh goes on under another key.
"""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from accountant.errors import AccountExpired, AccountFrozen, BudgetExhausted, LedgerError, UnknownAccount
from privacy.numbers import decimal_text
from privacy.policy import Dataset
from privacy.refusal import ExecutionFailed, Refused
from server.admitted import Settled
from server.dashboards.content import digest_of, shown_of
from server.dashboards.dashboards import Dashboards, question_of, text_of
from server.dashboards.schedule import Due, due_of, read_schedule
from server.errors import Problem
from server.jobs import JobPool
from server.rounds import Rounds
from server.services import Catalogue, JourneySteps
from server.store.dashboards import RefreshEnd, Standing, TileRow
from server.store.transactions import iso
from sql_rewrite.lift_clock import started as clock_of

__all__ = ["Refreshing"]

_AT_ONCE = 4
"""Most refreshes of this process at a time, of which a principal has one: the rest of the queue is for questions."""

_LEASE_SECONDS = 120
_LATER_SECONDS = 10
_FAR_AHEAD = datetime.timedelta(days=8)
"""A moment that was handled and is further ahead comes from a clock that was wrong."""

_AGAIN = " again"
_AGAIN_MAX = 3
"""How often a refresh is asked once more whose question was void: nobody ran it, and it was not charged."""

_LATER = frozenset({"rate_limited", "unavailable", "charge_unknown", "conflict"})
"""Problems after which the same refresh is tried again, under the same key; a price that moved is a conflict."""


class _Later(Exception):
    """The refresh is tried again; with another key where the one that was used is void."""

    def __init__(self, due: str | None = None) -> None:
        self.due = due


@dataclass(slots=True)
class Refreshing:
    """What this process refreshes. Several processes share the work: each refresh is one's at a time."""

    dashboards: Dashboards
    journey: JourneySteps
    catalogue: Catalogue
    jobs: JobPool
    now: Callable[[], datetime.datetime]
    rounds: Rounds = field(init=False)

    def __post_init__(self) -> None:
        self.rounds = Rounds("dashboards", self.look)

    async def look(self) -> int:
        """Begins the refreshes that are due now. Returns how many. Errors: the database's."""
        by_owner: dict[str, list[_Found]] = {}
        for found in await asyncio.to_thread(self._due):
            by_owner.setdefault(found[0].principal, []).append(found)
        begun = 0
        for owner, due in by_owner.items():
            if len(self.rounds.under_way) >= _AT_ONCE:
                break
            if owner not in self.rounds.under_way:
                self.rounds.spawn(owner, self._one_after_another(due))
                begun += len(due)
        return begun

    async def _one_after_another(self, due: list[_Found]) -> None:
        """The refreshes of one owner. What one of them cannot store is left to a later look, with those behind it."""
        for found in due:
            await self._refresh(*found)

    def _due(self) -> list[_Found]:
        """Tiles with a refresh that is due, or that a process left, those first whose last one is oldest."""
        now = self.now()
        found = []
        for standing in self.dashboards.registry.standing_tiles():
            tile = standing.tile
            dataset = self.catalogue.get(standing.dataset)
            if dataset is None or _held(tile, now):
                continue
            due = (
                Due(tile.due, tile.due_at)
                if tile.due is not None and tile.due_at is not None
                else due_of(
                    read_schedule(tile.schedule),
                    now=now,
                    wanted=tile.wanted,
                    handled="" if _ahead(tile, now) else tile.handled,
                    handled_version=tile.version,
                    version=dataset.version,
                )
            )
            if due is not None:
                found.append((standing, dataset, due))
        return found

    async def _refresh(self, standing: Standing, dataset: Dataset, due: Due) -> None:
        """One refresh, and what its tile shows afterwards. Where that cannot be stored its lease ends."""
        registry, tile = self.dashboards.registry, standing.tile
        claim = await asyncio.to_thread(
            partial(registry.claim_refresh, tile, due=due.key, at=due.at, now=self.now(), lease_seconds=_LEASE_SECONDS)
        )
        if claim is None:
            return
        try:
            end = await self._ended(standing, dataset, due)
        except _Later as later:
            until = iso(self.now() + datetime.timedelta(seconds=_LATER_SECONDS))
            give_back = partial(registry.release_refresh, tile.id, claim, until=until, due=later.due)
            await asyncio.to_thread(give_back)
            return
        await asyncio.to_thread(partial(registry.end_refresh, tile, claim, end, at=due.at))
        self.dashboards.reader.forget(tile.dashboard)

    async def _ended(self, standing: Standing, dataset: Dataset, due: Due) -> RefreshEnd:
        """What a refresh finds. Errors: _Later."""
        tile = await asyncio.to_thread(self.dashboards.registry.tile_text, standing.tile)
        version = due.key.partition(" ")[2].split(_AGAIN)[0] if due.key.startswith("version ") else dataset.version
        handled = due.at if due.key.startswith("at ") else tile.handled
        end = partial(RefreshEnd, handled=handled, version=version)
        text = text_of(self.dashboards.seal, tile)
        if text is None:
            return end(outcome="refused", code="unavailable")
        moment = datetime.datetime.fromisoformat(due.at)
        if tile.query is not None and tile.answered == dataset.version and clock_of(text.sql, moment) is None:
            # The same text of the same data: the ledger would find the release that is shown.
            return end(outcome="unchanged", digest=tile.digest, answered=dataset.version, charged="0")
        key = f"dashboard {tile.id} {due.key}"
        question = question_of(standing.principal, standing.dataset, standing.account, text, moment, key=key)
        try:
            started = await self.jobs.start(
                partial(self.journey.admit, question),
                self.journey.complete,
                self.journey.abandon,
                owner=standing.principal,
            )
            if isinstance(started.query, Settled):
                answer: bytes | None = started.query.answer
            elif started.answer is None:
                raise _Later  # another process runs it
            else:
                answer = await self.jobs.wait(started.answer, seconds=_LEASE_SECONDS)
        except BudgetExhausted:
            return end(outcome="exhausted", code="budget_exhausted")
        except (AccountFrozen, AccountExpired, UnknownAccount):
            return end(outcome="refused", code="no_budget")
        except LedgerError:
            raise _Later from None
        except Refused as refused:
            return end(outcome="refused", code=refused.findings[0].code)
        except ExecutionFailed as failed:
            if not failed.started and not due.key.endswith(_AGAIN * _AGAIN_MAX):
                raise _Later(due.key + _AGAIN) from None
            return end(outcome="failed")
        except Problem as problem:
            if problem.code in _LATER:
                raise _Later from None
            return end(outcome="refused", code=problem.code)
        if answer is None:
            raise _Later  # the server stops, or it takes longer: its answer is found under the same key
        body = json.loads(answer)
        # An answer that was found under the key may be of a version before the one that is served.
        version_of = f"{body['provenance']['policy_version']}:{body['provenance']['data_version']}"
        return end(
            outcome="answered",
            query=str(body["id"]),
            digest=digest_of(shown_of(answer)),
            answered=version_of,
            charged=_charged(body, standing.account),
        )


_Found = tuple[Standing, Dataset, Due]
"""A tile with the version of its data that is served, and the refresh that is due."""


def _ahead(tile: TileRow, now: datetime.datetime) -> bool:
    """Whether the last handled moment came from a clock that was far ahead: the schedule does not wait for it."""
    return tile.handled > iso(now + _FAR_AHEAD)


def _held(tile: TileRow, now: datetime.datetime) -> bool:
    """Whether a process has the tile's refresh, or it is not to be tried yet: a lease from a clock ahead is none."""
    until = iso(now + datetime.timedelta(seconds=_LEASE_SECONDS))
    return tile.lease is not None and iso(now) < tile.lease <= until


def _charged(answer: dict[str, Any], account: str) -> str:
    """What an answer says that it took of an account."""
    parts = answer["accounting"]["charged"]
    epsilon = sum((Fraction(part["epsilon"]) for part in parts if part["budget"] == account), Fraction(0))
    return decimal_text(epsilon, places=12)
