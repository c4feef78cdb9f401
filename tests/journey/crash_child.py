"""Asks one question in a process of its own and kills that process at a named point. Run by test_crash.py.

Each of these processes comes out of one that has imported the modules, and done nothing else: see `main`.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from accountant import faults
from mechanisms import release as releasing
from server.journey.pace import VisibleRun
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


def ask(
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


def main() -> None:
    """For each line, arguments of `ask` and two files for its output: a process; says how it ended."""
    for line in sys.stdin:
        arguments, *files = json.loads(line)
        child = os.fork()
        if child == 0:
            for descriptor, file in enumerate(files, 1):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
            ended = 1
            try:
                ask(*arguments)
                ended = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(ended)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
