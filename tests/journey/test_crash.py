"""kill -9 at every named point between reserve and reply, and what a restart finds."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privacy.refusal import ExecutionFailed
from server.admitted import InFlight
from tests.journey.clinic import clinic_in, open_account, question, services_of, stored, told
from tests.journey.crash_child import SQL
from tests.journey.norm_clinic import auto_clinic

POINTS = (
    "reserve.decided",
    "reserve.written",
    "reserve.before_commit",
    "reserve.after_commit",
    "reserve.answered",
    "run.before",
    "run.after",
    "release.before",
    "release.after",
    "visible.before",
    "visible.after",
    "post.decided",
    "post.written",
    "post.before_commit",
    "post.after_commit",
    "post.answered",
    "reply.before",
    "none",
)
"""In the order of the journey. Up to the commit of the reservation nothing is spent; from there on it stays spent."""

RESERVED_FROM = POINTS.index("reserve.after_commit")
SETTLED_FROM = POINTS.index("post.after_commit")


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    returncode: int
    stdout: bytes
    stderr: str


class Crashes:
    """Processes that ask a question and may die of it, forked from one that has imported what they need."""

    def __init__(self, started: subprocess.Popen[str], folder: Path) -> None:
        self._started = started
        self._files = [folder / "stdout", folder / "stderr"]

    def ask(self, *arguments: str) -> Ended:
        """One of them, with these arguments of `crash_child.ask`."""
        assert self._started.stdin is not None
        assert self._started.stdout is not None
        self._started.stdin.write(json.dumps([arguments, *map(str, self._files)]) + "\n")
        self._started.stdin.flush()
        returncode = int(self._started.stdout.readline())
        out, error = (file.read_bytes() for file in self._files)
        return Ended(returncode, out, error.decode())


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashes]:
    """Where processes that die come from."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.journey.crash_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    ) as started:
        yield Crashes(started, tmp_path_factory.mktemp("crashes"))
        assert started.stdin is not None
        started.stdin.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the clinic and one account, closed."""
    folder = tmp_path_factory.mktemp("crash")
    with clinic_in(folder) as (services, _):
        open_account(services.ledger, "crash")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_query_is_charged_or_never_happened(home: Path, crashes: Crashes, point: str) -> None:
    """Shows that what was released is a subset of what was charged, and that a retry gets the same bytes."""
    key = f"key-{point}"
    with services_of(home) as services:
        before = services.ledger.accounts(dataset="clinic", principal="crash")[0].remaining_epsilon()
    child = crashes.ask(str(home), point, key)
    assert child.returncode == (0 if point == "none" else -signal.SIGKILL), child.stderr[-2000:]
    place = POINTS.index(point)
    with services_of(home) as services:
        account = services.ledger.accounts(dataset="clinic", principal="crash")[0]
        spent = before - account.remaining_epsilon()
        asked = question(SQL, "crash", idempotency_key=key, reuse="none")
        if place < RESERVED_FROM:
            assert spent == 0
            assert not isinstance(services.journey.admit(asked), InFlight)
        elif place < SETTLED_FROM:
            assert spent > Fraction(9, 10)
            with pytest.raises(ExecutionFailed):
                services.journey.admit(asked)
        else:
            assert spent > Fraction(9, 10)
            again = stored(services.journey.admit(asked))
            assert again is not None
            if point == "none":
                assert again == child.stdout
            assert stored(services.journey.admit(asked)) == again
            after = services.ledger.accounts(dataset="clinic", principal="crash")[0]
            assert before - after.remaining_epsilon() == spent
        assert not services.ledger.audit().findings


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["decided", "written", "before_commit", "after_commit", "answered"])
def test_a_killed_repeat_is_settled_or_never_happened(home: Path, crashes: Crashes, stage: str) -> None:
    """Shows that a repeat costs nothing wherever it dies, and that a retry gets the stored bytes or a new repeat."""
    key = f"repeat-{stage}"
    child = crashes.ask(str(home), f"repeat.{stage}", key)
    assert child.returncode == -signal.SIGKILL, child.stderr[-2000:]
    with services_of(home) as services:
        known = [q for q in services.ledger.queries("crash") if q.idempotency_key == key]
        assert [q.state for q in known] == (["settled"] if stage in ("after_commit", "answered") else [])
        before = services.ledger.accounts(dataset="clinic", principal="crash")[0]
        asked = question(SQL, "crash", idempotency_key=key, reuse="own")
        answer = told(services.journey, asked)
        assert stored(services.journey.admit(asked)) == answer
        assert services.ledger.accounts(dataset="clinic", principal="crash")[0] == before
        assert not services.ledger.audit().findings


STAGES = (
    ("run.before", 1),
    ("run.after", 1),
    ("release.before", 1),
    ("release.after", 1),
    ("run.before", 2),
    ("run.after", 2),
    ("release.before", 2),
    ("release.after", 2),
    ("visible.before", 1),
    ("post.before_commit", 1),
    ("post.after_commit", 1),
)
"""Of a question that releases a histogram of norms, then its sums: in the order of the journey."""

BETWEEN = (("release.after", 2), ("run.before", 3), ("run.before", 4), ("visible.before", 1), ("post.after_commit", 1))
"""Of one whose later stage reads the number of an earlier one: each of them a histogram, then its sums."""

WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
ABOVE = "SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)"


@pytest.fixture(scope="module")
def wards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose questions choose norms, and one account, closed."""
    folder = tmp_path_factory.mktemp("crash-norms")
    with auto_clinic(folder) as (services, _):
        open_account(services.ledger, "crash", dataset="wards")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "releases", "point", "stage"), [(WARD, 2, *at) for at in STAGES] + [(ABOVE, 4, *at) for at in BETWEEN]
)
def test_a_question_killed_between_its_stages_is_charged_and_stores_nothing(
    wards: Path, crashes: Crashes, sql: str, releases: int, point: str, stage: int
) -> None:
    """Shows one charge for all stages, the same end for every retry, and that nothing of them is free afterwards."""
    key = f"key-{releases}-{point}-{stage}"
    with services_of(wards) as services:
        before = services.ledger.accounts(dataset="wards", principal="crash")[0]
        admitted: Any = services.journey.admit(question(sql, "crash", dataset="wards", reuse="none"))
        services.journey.abandon(admitted)
        losses = [event.loss().mu_squared for charge in admitted.asked.charges for event in charge.events]
    assert len(losses) == releases
    child = crashes.ask(str(wards), point, key, "wards", sql, str(stage))
    assert child.returncode == -signal.SIGKILL, child.stderr[-2000:]
    with services_of(wards) as services:
        after = services.ledger.accounts(dataset="wards", principal="crash")[0]
        assert (after.spent.mu_squared or 0) - (before.spent.mu_squared or 0) >= sum(losses) * 10**12 - 2
        asked = question(sql, "crash", dataset="wards", idempotency_key=key, reuse="none")
        (record,) = [query for query in services.ledger.queries("crash") if query.idempotency_key == key]
        for _ in range(2):
            if point == "post.after_commit":
                assert stored(services.journey.admit(asked)) is not None
            else:
                with pytest.raises(ExecutionFailed):
                    services.journey.admit(asked)
        kept = releases if point == "post.after_commit" else 0
        assert record.state == ("settled" if kept else "failed_charged")
        assert services.ledger.accounts(dataset="wards", principal="crash")[0] == after
        assert len(services.ledger.releases_of(record.id)) == kept
        assert not services.ledger.audit().findings


CHARGES = (
    ("release.after", 1),
    ("visible.after", 1),
    ("reserve.before_commit", 2),
    ("reserve.after_commit", 2),
    ("run.after", 2),
    ("visible.after", 2),
    ("post.before_commit", 1),
    ("post.after_commit", 1),
    ("post.before_commit", 2),
    ("post.after_commit", 2),
)
"""Of a width whose histogram is not stored: the first charge buys it, the second one the sums."""

SECOND_FROM = CHARGES.index(("reserve.after_commit", 2))
SUMS_FROM = CHARGES.index(("post.after_commit", 1))
WIDTH = "400"


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(CHARGES)), ids=[f"{point} {stage}" for point, stage in CHARGES])
def test_a_width_killed_between_its_charges_keeps_those_that_were_made(
    wards: Path, crashes: Crashes, place: int
) -> None:
    """Shows how many charges there are, that nothing unpaid is stored, and the same end for every retry."""
    (point, stage), key = CHARGES[place], f"width-{place}"
    sql = f"SELECT ward, COUNT(*) AS n FROM visits WHERE cost <> {2000 + place} GROUP BY ward"
    with services_of(wards) as services:
        earlier = {query.id for query in services.ledger.queries("crash")}
    child = crashes.ask(str(wards), point, key, "wards", sql, str(stage), WIDTH)
    assert child.returncode == -signal.SIGKILL, child.stderr[-2000:]
    asked = question(
        sql, "crash", dataset="wards", idempotency_key=key, reuse="none", epsilon=None, half_width=Fraction(WIDTH)
    )
    with services_of(wards) as services:
        after = services.ledger.accounts(dataset="wards", principal="crash")[0]
        made = [query for query in services.ledger.queries("crash") if query.id not in earlier]
        assert len(made) == (2 if place >= SECOND_FROM else 1)
        (first,) = [query for query in made if query.idempotency_key == key]
        whole = place == len(CHARGES) - 1
        for _ in range(2):
            if whole:
                assert stored(services.journey.admit(asked)) is not None
            else:
                with pytest.raises(ExecutionFailed):
                    services.journey.admit(asked)
        assert services.ledger.accounts(dataset="wards", principal="crash")[0] == after
        for query in made:
            settled = whole or (query is not first and place >= SUMS_FROM)
            assert query.state == ("settled" if settled else "failed_charged")
            assert len(services.ledger.releases_of(query.id)) == (1 if settled else 0)
        assert not services.ledger.audit().findings
