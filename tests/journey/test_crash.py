"""kill -9 at every named point between reserve and reply, and what a restart finds."""

from __future__ import annotations

import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from privacy.refusal import ExecutionFailed
from server.admitted import InFlight
from tests.journey.clinic import clinic_in, open_account, question, services_of, stored, told
from tests.journey.crash_child import SQL

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


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the clinic and one account, closed."""
    folder = tmp_path_factory.mktemp("crash")
    with clinic_in(folder) as (services, _):
        open_account(services.ledger, "crash")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_query_is_charged_or_never_happened(home: Path, point: str) -> None:
    """Shows that what was released is a subset of what was charged, and that a retry gets the same bytes."""
    key = f"key-{point}"
    with services_of(home) as services:
        before = services.ledger.accounts(dataset="clinic", principal="crash")[0].remaining_epsilon()
    child = subprocess.run(
        [sys.executable, "-m", "tests.journey.crash_child", str(home), point, key],
        capture_output=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert child.returncode == (0 if point == "none" else -signal.SIGKILL), child.stderr.decode()[-2000:]
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
def test_a_killed_repeat_is_settled_or_never_happened(home: Path, stage: str) -> None:
    """Shows that a repeat costs nothing wherever it dies, and that a retry gets the stored bytes or a new repeat."""
    key = f"repeat-{stage}"
    child = subprocess.run(
        [sys.executable, "-m", "tests.journey.crash_child", str(home), f"repeat.{stage}", key],
        capture_output=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()[-2000:]
    with services_of(home) as services:
        known = [q for q in services.ledger.queries("crash") if q.idempotency_key == key]
        assert [q.state for q in known] == (["settled"] if stage in ("after_commit", "answered") else [])
        before = services.ledger.accounts(dataset="clinic", principal="crash")[0]
        asked = question(SQL, "crash", idempotency_key=key, reuse="own")
        answer = told(services.journey, asked)
        assert stored(services.journey.admit(asked)) == answer
        assert services.ledger.accounts(dataset="clinic", principal="crash")[0] == before
        assert not services.ledger.audit().findings
