"""Asks one question in a process of its own and kills that process at a named point. Run by test_crash.py."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from accountant import faults
from mechanisms import release as releasing
from server.journey.visible import VisibleRun
from tests.journey.clinic import question, services_of, told

SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def die() -> None:
    """Ends this process as a power cut would: no handler, no clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying(function: Callable[..., Any], *, before: bool, call: int = 1) -> Callable[..., Any]:
    """The function, with the process killed before or after one of its calls."""
    calls = itertools.count(1)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        at = next(calls) == call
        if at and before:
            die()
        result = function(*arguments, **options)
        if at:
            die()
        return result

    return wrapped


def main(
    home: str, point: str, key: str, dataset: str = "clinic", sql: str = SQL, stage: str = "1", width: str = ""
) -> None:
    """Asks, and dies when `point` is reached for the `stage`-th time; prints the answer otherwise.

    With a `width`, that is what is asked for in place of a spend.
    """
    with services_of(Path(home)) as services:
        journey: Any = services.journey
        if point in ("run.before", "run.after"):
            journey.running._private.run = dying(
                journey.running._private.run, before=point == "run.before", call=int(stage)
            )
        elif point in ("release.before", "release.after"):
            releasing.release = dying(releasing.release, before=point == "release.before", call=int(stage))
        elif point in ("visible.before", "visible.after"):
            VisibleRun.wait = dying(VisibleRun.wait, before=point == "visible.before", call=int(stage))  # type: ignore[method-assign]
        elif point == "reply.before":
            journey.complete = dying(journey.complete, before=False)
        else:
            if point.startswith("repeat."):
                journey.complete(journey.admit(question(SQL, "crash", idempotency_key=f"{key}-first", reuse="none")))
            left = itertools.count(1)
            faults.install(lambda reached: die() if reached == point and next(left) == int(stage) else None)
        reuse = "own" if point.startswith("repeat.") else "none"
        wish: dict[str, Any] = {"epsilon": None, "half_width": Fraction(width)} if width else {}
        answer = told(journey, question(sql, "crash", dataset=dataset, idempotency_key=key, reuse=reuse, **wish))
        faults.install(None)
        sys.stdout.buffer.write(answer)
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
