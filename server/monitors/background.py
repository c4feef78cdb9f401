"""Standing monitors of a new version of the data, evaluated by the server itself.

Each is evaluated once for each version that is served while it is open: counted, compared and shown as one that its
owner asks for, in the queue of queries and in the owner's name. One that fails is not made again here. When that
happens follows from when versions are attached and how busy the server is.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial

from accountant.errors import LedgerError
from privacy.refusal import ExecutionFailed, Refused
from server.errors import Problem
from server.jobs import JobPool
from server.monitors.monitors import Monitors
from server.monitors.recovery import Recovery
from server.monitors.refusals import UnderWay
from server.monitors.terms import Evaluated, EvaluateMonitor
from server.rounds import Rounds
from server.services import Catalogue
from server.store.resources import MonitorRow

__all__ = ["StandingMonitors"]

_AT_ONCE = 4
"""Most evaluations of this process at a time, of which a principal has one: the rest of the queue is for questions."""

_RECOVERY_LOOKS = 15
_LATER = frozenset({"rate_limited", "unavailable"})
"""Problems after which the same evaluation is tried again."""


@dataclass(slots=True)
class StandingMonitors:
    """What this process evaluates without being asked. Several processes share the work: each evaluation is one's."""

    monitors: Monitors
    catalogue: Catalogue
    jobs: JobPool
    rounds: Rounds = field(init=False)
    _looks: int = 0
    _refused: dict[str, str] = field(default_factory=dict)
    """By monitor, the version that was refused: what refuses it follows from the version and what is over."""

    def __post_init__(self) -> None:
        self.rounds = Rounds("monitors", self.look)

    async def look(self) -> int:
        """Begins evaluations that are to be made now. Returns how many. Errors: the database's."""
        self._looks += 1
        if self._looks % _RECOVERY_LOOKS == 0:
            monitors = self.monitors
            await asyncio.to_thread(Recovery(monitors.resources.ledger, monitors.registry).recover)
            await asyncio.to_thread(monitors.end_left)
        begun = 0
        for row, version in await asyncio.to_thread(self._to_evaluate):
            if len(self.rounds.under_way) >= _AT_ONCE:
                break
            if row.principal not in self.rounds.under_way:
                self.rounds.spawn(row.principal, self._evaluate(row, version))
                begun += 1
        return begun

    def _to_evaluate(self) -> list[tuple[MonitorRow, str]]:
        """Monitors without an evaluation of the version that is served, those that wait longest first."""
        found = []
        registry = self.monitors.registry
        for name in registry.watched_datasets():
            dataset = self.catalogue.get(name)
            if dataset is not None:
                version = dataset.version
                found += [(row, version) for row in registry.unevaluated(name, version=version)]
        return [(row, version) for row, version in found if self._refused.get(row.id) != version]

    async def _evaluate(self, row: MonitorRow, version: str) -> None:
        try:
            begin = partial(self.monitors.begin, row, EvaluateMonitor(), again=False)
            begun = await self.jobs.call(begin, owner=row.principal)
            if not isinstance(begun, Evaluated):
                await self.jobs.run(partial(self.monitors.complete, begun), owner=row.principal)
        except (LedgerError, ExecutionFailed, UnderWay):
            # Not begun, or counted: the next look finds which.
            return
        except Problem as problem:
            if problem.code not in _LATER:
                self._refused[row.id] = version
        except Refused:
            self._refused[row.id] = version
