"""What a server process does about principals who are stopped: it voids what of theirs waits to be started."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from server.rounds import Rounds
from server.services import Services

__all__ = ["StopWatch", "cancel_waiting"]


def cancel_waiting(services: Services, principals: frozenset[str]) -> int:
    """Voids what these principals asked and no engine has seen, in this process. Returns how many that was."""
    if not principals:
        return 0
    return services.journey.cancel_all(principals) + services.resources.cancel_all(principals)


@dataclass(slots=True)
class StopWatch:
    """Looks every second who is stopped, by whichever process, and again while they are: what was being admitted at
    the moment of the stop begins to wait after it.
    """

    services: Services
    rounds: Rounds = field(init=False)

    def __post_init__(self) -> None:
        self.rounds = Rounds("stops", self._looked)

    async def _looked(self) -> None:
        await asyncio.to_thread(self.look)

    def look(self) -> int:
        """Voids what waits. Returns how many that was. Errors: the database's."""
        stopped = frozenset(row.principal for row in self.services.registry.stopped())
        return cancel_waiting(self.services, stopped)
