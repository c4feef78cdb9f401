"""Free SQL over released numbers that took everything: workers, the queue, memory, the disk, a paid answer."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from accountant.request import QueryRecord
from engines.pool import Pool
from engines.process import Failure
from engines.shell import CHECK_SECONDS, ShellColumn, ShellEngine, ShellSlow, ShellTable
from engines.turns import HALF_LIFE_SECONDS, Slots, Turns
from privacy.policy import ColumnType
from privacy.refusal import ExecutionFailed, Refused
from server import answer_rows
from server.errors import Problem
from server.jobs import FairThreads, JobPool
from server.journey.running import SHELL_SECONDS
from server.services import Services
from tests.clocks import Clock
from tests.engines.logs import capture_logs
from tests.engines.workers import ENDED
from tests.journey.clinic import question

TABLE = ShellTable("t", (ShellColumn("n", ColumnType.INTEGER, tuple(range(2000))),))
QUICK = "SELECT sum(n) AS s FROM t"
SLOW = "SELECT count(*) AS c FROM t AS a, t AS b, t AS c, t AS d WHERE a.n * b.n % 7 + c.n * d.n % 11 = 5"
GROUPS = "WITH t AS (SELECT age, COUNT(*) AS n FROM people GROUP BY age) "


def test_turns_go_by_arrival_until_somebody_used_much() -> None:
    """Light owners are served in order; whoever used seconds goes last; used time is forgotten."""
    clock = Clock(0.0)
    turns = Turns(1, clock=clock)
    for owner in "abc":
        turns.arrive(owner)
    assert turns.choose(["b", "a", "b", "c"]) == 0
    turns.begin("b")
    assert turns.choose(["a"]) is None
    clock.now = 4.0
    turns.end("b")
    assert turns.choose(["b", "b", "a", "c"]) == 2
    assert turns.choose(["b"]) == 0
    clock.now += 4 * HALF_LIFE_SECONDS
    assert turns.choose(["b", "a"]) == 0


def test_the_last_place_is_not_for_whoever_used_much_while_others_are_about() -> None:
    """An owner alone may use every place; with somebody else about, one place stays free for them."""
    clock = Clock(0.0)
    turns = Turns(2, clock=clock)
    turns.arrive("busy")
    turns.begin("busy")
    clock.now = 2.0
    assert turns.choose(["busy"]) == 0
    turns.arrive("other")
    turns.arrive("busy")
    assert turns.choose(["busy", "busy"]) is None
    assert turns.choose(["busy", "other"]) == 1
    clock.now += 61
    assert turns.choose(["busy"]) == 0


def test_no_place_stays_idle_where_everybody_used_much() -> None:
    """Two owners who both used much left the last of two places free for nobody, and ran one after the other."""
    clock = Clock(0.0)
    turns = Turns(2, clock=clock)
    for owner in ("first", "second"):
        turns.arrive(owner)
        turns.begin(owner)
    clock.now = 2.0
    for owner in ("first", "second"):
        turns.end(owner)
    assert turns.choose(["first", "second"]) == 0
    turns.begin("first")
    assert turns.choose(["second"]) == 0
    turns.arrive("light")
    assert turns.choose(["second"]) is None
    assert turns.choose(["second", "light"]) == 1


def test_checks_of_one_owner_do_not_keep_those_of_others_waiting() -> None:
    """Estimates are free, and one slot checks them all: whoever asked for much of it lately goes after the others."""
    clock = Clock(0.0)
    turns = Turns(1, clock=clock)
    waiting = ["greedy"] * 6
    for _ in range(4):
        turns.arrive("greedy")
        assert turns.choose(waiting) == 0
        turns.begin("greedy")
        clock.now += 1.0
        # Others arrive behind all of them, while one of them runs.
        turns.arrive("other")
        assert turns.choose([*waiting, "other"]) is None
        turns.end("greedy")
        place = turns.choose([*waiting, "other"])
        assert place == len(waiting)
        turns.begin("other")
        clock.now += 0.01
        turns.end("other")


def test_a_check_waits_longer_than_others_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waited as long as one check may take was told that no worker was free, though the turn was his next."""
    shell = ShellEngine(workers=1)
    try:
        assert shell.wait_ready()
        patience: list[float] = []
        take = shell._pool._brief.take

        def taking(owner: str, *, seconds: float | None) -> bool:
            patience.append(seconds or 0)
            return take(owner, seconds=seconds)

        monkeypatch.setattr(shell._pool._brief, "take", taking)
        assert shell.check((TABLE,), QUICK) == (("s", "HUGEINT"),)
        assert min(patience) > 5 * CHECK_SECONDS
    finally:
        shell.close()


def longer(times: int, text: str = "'x'") -> str:
    """A constant of sixteen times as many characters for each REPLACE."""
    return "REPLACE(" * times + text + ", 'x', 'xxxxxxxxxxxxxxxx')" * times


COUNTED = "WITH t AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT "


@pytest.mark.parametrize(
    "sql",
    [
        # Seven of them took six seconds of the slot that checks all texts, and were answered; twelve were killed.
        f"SELECT COUNT(*) + LENGTH({longer(7)}) AS n FROM people",
        f"SELECT COUNT(*) + LENGTH({longer(12)}) AS n FROM people",
        f"{COUNTED} LENGTH({longer(4, 'sex')}) AS k FROM t",
        f"{COUNTED} n FROM t WHERE {longer(7)} = 'x'",
        f"{COUNTED} n FROM t ORDER BY LENGTH({longer(7)})",
        f"SELECT LENGTH(x || x || x || x) AS k FROM ({COUNTED} {longer(5)} AS x FROM t) AS u",
        f"SELECT LENGTH({longer(3, 'x')}) AS k FROM ({COUNTED} {longer(3)} AS x FROM t UNION ALL SELECT 'y') AS u",
        f"{COUNTED} " + ", ".join(f"LENGTH({longer(4)}) AS k{i}" for i in range(70)) + " FROM t",
    ],
)
def test_strings_of_the_outer_part_do_not_keep_the_checks_busy(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """Binding computes constants: what could become long is refused by the lift, and no engine reads it."""
    name = attacker()

    def unread(*arguments: Any, **options: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(Pool, "call", unread)
    with pytest.raises(Refused) as caught:
        services.journey.estimate(question(sql, name))
    (finding,) = caught.value.findings
    assert finding.code == "too_large"
    assert finding.position is not None


@pytest.mark.parametrize(
    "sql",
    [
        f"{COUNTED} sex || ': ' || CAST(n AS VARCHAR) AS v FROM t",
        f"{COUNTED} REPLACE(REPLACE(sex, 'e', 'ee'), 'fee', 'FEE') AS v FROM t",
        f"{COUNTED} CONCAT(sex, '-', n, '-', sex) AS v FROM t",
    ],
)
def test_ordinary_strings_of_the_outer_part_are_answered(
    services: Services, attacker: Callable[..., str], sql: str
) -> None:
    """Names and labels are far from the limits."""
    assert services.journey.estimate(question(sql, attacker()))


def test_what_makes_longer_strings_is_tried_before_the_charge_too(
    services: Services, attacker: Callable[..., str]
) -> None:
    """A cast that fails on every row was left to the charged run where a REPLACE stood beside it."""
    sql = f"{COUNTED} CAST(REPLACE(sex, 'e', 'x') AS DATE) AS d FROM t"
    with pytest.raises(Refused) as caught:
        services.journey.admit(question(sql, attacker()))
    assert caught.value.findings[0].code == "unsupported_sql"


def test_a_check_without_end_is_refused_with_its_reason(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes too long was called a text that does not fit the names and types."""

    def slow(*arguments: Any, **options: Any) -> Any:
        raise ShellSlow

    monkeypatch.setattr(ShellEngine, "check", slow)
    with pytest.raises(Refused) as caught:
        services.journey.estimate(question(f"{COUNTED} n + 1.25 AS m FROM t", attacker()))
    (finding,) = caught.value.findings
    assert finding.code == "too_large"
    assert "5 seconds" in finding.why


def test_places_are_given_back_and_waiting_ends() -> None:
    """Whoever waits longer than allowed gets nothing and takes nothing; whoever waits long enough gets the place."""
    clock = Clock(0.0)
    places = Slots(1, clock=clock)
    changed = places._changed = _Waits(clock)
    assert places.take("a", seconds=None)
    assert not places.take("b", seconds=2)
    assert clock.now == 2
    changed.at[4.0] = lambda: places.give("a")
    assert places.take("b", seconds=5)
    assert clock.now == 4
    places.give("b")
    assert places.take("a", seconds=0)
    assert clock.now == 4


class _Waits(threading.Condition):
    """A condition in whose waits nobody sleeps: the clock moves on by them, and what is due happens."""

    def __init__(self, clock: Clock[float]) -> None:
        super().__init__()
        self._clock = clock
        self.at: dict[float, Callable[[], None]] = {}

    def wait(self, timeout: float | None = None) -> bool:
        """Moves the clock."""
        assert timeout is not None
        self._clock.now += timeout
        for moment in [moment for moment in self.at if moment <= self._clock.now]:
            self.at.pop(moment)()
        return True


@pytest.mark.slow
def test_slow_shells_of_one_analyst_do_not_keep_another_waiting() -> None:
    """Two slow queries kept both workers: everybody else waited for them, and was told to come back."""
    shell = ShellEngine(workers=2)
    try:
        assert shell.wait_ready()
        clock = Clock(0.0)
        runs, checks = _Recorded(2, clock), _Recorded(1, clock)
        shell._pool._slots._turns, shell._pool._brief._turns = runs, checks
        stop = threading.Event()

        def keep_asking() -> None:
            while not stop.is_set():
                with pytest.raises(ExecutionFailed):
                    shell.run([TABLE], SLOW, timeout_seconds=1.5, owner="attacker")

        with ThreadPoolExecutor(6) as threads:
            attacks = [threads.submit(keep_asking) for _ in range(6)]
            try:
                assert runs.full.wait(30)
                clock.now = 2.0
                for _ in range(8):
                    assert shell.run([TABLE], QUICK, timeout_seconds=30, owner="victim").rows == [(1999000,)]
                    assert shell.check([TABLE], QUICK, timeout_seconds=30, owner="victim") == (("s", "HUGEINT"),)
            finally:
                stop.set()
            for attack in attacks:
                attack.result(timeout=60)
        # Whenever the victim came, it was next: the attacker, who had used much by then, began nothing before it.
        log = runs.log
        came = [place for place, step in enumerate(log) if step == ("arrive", "victim")]
        assert len(came) == 8
        for place in came:
            assert next(step for step in log[place:] if step[0] == "begin") == ("begin", "victim")
        # Slow queries do not take the place in which statements are checked.
        assert {owner for _, owner in checks.log} == {"victim"}
    finally:
        shell.close()


class _Recorded(Turns):
    """Turns that are written down. `full` is set once every place was taken at the same time."""

    def __init__(self, slots: int, clock: Clock[float]) -> None:
        super().__init__(slots, clock=clock)
        self.log: list[tuple[str, str]] = []
        self.full = threading.Event()

    def arrive(self, owner: str) -> None:
        """Somebody asks."""
        self.log.append(("arrive", owner))
        super().arrive(owner)

    def begin(self, owner: str) -> None:
        """Somebody's turn."""
        self.log.append(("begin", owner))
        super().begin(owner)
        if self.running == self._slots:
            self.full.set()


def test_slow_queries_of_one_analyst_do_not_fill_the_server() -> None:
    """One owner cannot take every thread or the whole queue: another one's query is taken in and answered at once."""
    clock = Clock(0.0)
    threads = FairThreads(ThreadPoolExecutor(2), 2)
    turns = threads._turns = _Recorded(2, clock)
    free = threading.Event()
    threads.submit("victim", lambda: None).result(timeout=60)
    turns.full.clear()
    slow = [threads.submit("attacker", free.wait, 60) for _ in range(2)]
    assert turns.full.wait(60)
    clock.now = 1.2
    later = [threads.submit("attacker", free.wait, 60) for _ in range(20)]
    assert all(not work.done() for work in (*slow, *later))
    asked = threads.submit("victim", lambda: "answered")
    free.set()
    assert asked.result(timeout=60) == "answered"
    for work in (*slow, *later):
        assert work.result(timeout=60)
    threads.close(cancel=False)
    begun = [owner for step, owner in turns.log if step == "begin"]
    assert begun == ["victim", "attacker", "attacker", "victim", *["attacker"] * 20]

    pool = JobPool(threads=1, queue=31)

    stopped = threading.Event()

    async def fill() -> int:
        taken = 0
        try:
            for i in range(100):
                await pool.start(lambda i=i: _Admitted(f"q{i}"), _until(stopped), _nothing, owner="attacker")  # type: ignore[misc]
                taken += 1
        except Problem as problem:
            assert problem.code == "rate_limited"
        assert await pool.call(lambda: 7, owner="victim") == 7
        await pool.start(lambda: _Admitted("v"), _until(stopped), _nothing, owner="victim")
        stopped.set()
        return taken

    assert asyncio.run(fill()) == 24
    pool.close(seconds=5)


class _Admitted:
    def __init__(self, query_id: str) -> None:
        self.query_id = query_id


def _until(stopped: threading.Event) -> Callable[[_Admitted], bytes]:
    def complete(_: _Admitted) -> bytes:
        stopped.wait(20)
        return b""

    return complete


def _nothing(_: object) -> None:
    return None


@pytest.mark.slow
def test_joins_of_released_numbers_do_not_make_answers_without_measure(
    services: Services, attacker: Callable[..., str]
) -> None:
    """Seventy released groups joined with themselves made 400 MB of answer and 40 s of work, for nothing, each time."""
    name = attacker()
    ask = services.journey
    first = json.loads(ask.complete(ask.admit(question(GROUPS + "SELECT * FROM t ORDER BY n", name))))
    assert len(first["rows"]) > 40
    spent = _charges(services, name)
    wide = ", ".join(f"x.n + {i} AS a{i}" for i in range(60))
    with capture_logs() as logs:
        for columns, joins in (("x.n", 3), (wide, 3), ("x.n", 5)):
            tables = " CROSS JOIN ".join(("t AS x", "t AS y", "t AS z", "t AS v", "t AS w")[:joins])
            with pytest.raises(ExecutionFailed):
                ask.complete(ask.admit(question(f"{GROUPS} SELECT {columns} FROM {tables}", name)))
    ended = [line["category"] for line in logs if line["event"] == "engine_worker"]
    assert len(ended) == 3
    assert set(ended) <= ENDED
    pairs = json.loads(ask.complete(ask.admit(question(GROUPS + "SELECT x.n - y.n AS d FROM t AS x, t AS y", name))))
    assert len(pairs["rows"]) == len(first["rows"]) ** 2
    assert _charges(services, name) == spent


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "expression",
    [
        "length(concat({many}))",
        "(SELECT COUNT(*) FROM t AS a, t AS b, t AS c, t AS d, t AS e WHERE a.n * b.n % 7 + c.n * d.n % 5 + e.n = x.n)",
        "round(x.n / 3, 2000000000)",
        "quantile(x.n, 0.5) OVER (ORDER BY x.n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    ],
)
def test_bombs_of_allowed_functions_end_and_harm_nobody(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    """Time and memory of a shell end at its own worker: the next question is answered."""
    ones = "1" * 1900
    expression = expression.format(ones=ones, many=", ".join([f"concat(x.n, '{ones}')"] * 12))
    name = attacker()
    ask = services.journey
    pool = ask.running._shell._pool  # type: ignore[attr-defined]
    call, allowed = pool.call, []

    def counted(*arguments: Any, timeout_seconds: float, **options: Any) -> Any:
        allowed.append(timeout_seconds)
        return call(*arguments, timeout_seconds=timeout_seconds, **options)

    monkeypatch.setattr(pool, "call", counted)
    try:
        answer = ask.complete(ask.admit(question(f"{GROUPS} SELECT {expression} AS v FROM t AS x", name)))
        assert len(answer) < 1 << 20
    except ExecutionFailed:
        pass
    # That a worker ends when this is over, tests/engines/test_shell.py shows.
    assert allowed
    assert max(allowed) <= SHELL_SECONDS
    other = attacker()
    assert ask.complete(ask.admit(question(GROUPS + "SELECT MAX(n) AS m FROM t", other)))


def test_a_shell_that_fails_does_not_lose_what_was_paid(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer lost between release and reply was charged and gone: the release stays, and asking again is free."""
    name = attacker()
    asked = question("SELECT COUNT(*) * 3 AS n FROM people WHERE age < 41", name)
    with monkeypatch.context() as patch:
        admitted = services.journey.admit(asked)
        patch.setattr(services.journey.running._shell._pool, "call", lambda *_, **__: Failure.TIMEOUT)  # type: ignore[attr-defined]
        with pytest.raises(ExecutionFailed) as failed:
            services.journey.complete(admitted)
    assert failed.value.started
    record = services.ledger.query(admitted.query_id)
    assert isinstance(record, QueryRecord)
    assert record.state == "failed_charged"
    (release,) = services.ledger.releases_of(admitted.query_id)
    spent = _charges(services, name)
    answer = json.loads(services.journey.complete(services.journey.admit(asked)))
    assert answer["accounting"]["reused"] is True
    assert answer["provenance"]["releases"] == [release.id]
    assert _charges(services, name) == spent
    assert services.ledger.audit().findings == ()


def test_an_answer_that_cannot_be_written_does_not_lose_what_was_paid(
    services: Services, attacker: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for any fault after the release, here in making the rows; the fault says nothing of itself."""
    name = attacker()
    asked = question("SELECT COUNT(*) AS n FROM people WHERE age < 42", name)

    def broken(*_: object, **__: object) -> None:
        raise UnicodeEncodeError("utf-8", "x", 0, 1, "secret")

    with monkeypatch.context() as patch:
        patch.setattr(answer_rows, "assemble", broken)
        admitted = services.journey.admit(asked)
        with pytest.raises(ExecutionFailed) as failed:
            services.journey.complete(admitted)
    assert failed.value.__cause__ is None
    assert "secret" not in str(failed.value)
    (release,) = services.ledger.releases_of(admitted.query_id)
    answer = json.loads(services.journey.complete(services.journey.admit(asked)))
    assert answer["provenance"]["releases"] == [release.id]
    assert answer["accounting"]["charged"] == []


def _charges(services: Services, principal: str) -> int:
    (account,) = services.ledger.accounts(dataset="clinic", principal=principal)
    return len([entry for entry in services.ledger.entries(account.id, count=1000) if entry.kind == "reserve"])
