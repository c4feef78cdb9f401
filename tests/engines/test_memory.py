"""Memory that the engine does not count: bounded by the plan, measured as resident size, watched in the worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from engines.incidents import Incidents
from engines.memory import resident_limit_mb
from engines.private import PrivateEngine
from privacy.bounds import ContributionBound
from privacy.policy import Column, ColumnType, Dataset, Table
from privacy.refusal import ExecutionFailed, Refused
from privacy.statement import TEXT_ROW_BYTES_MAX, Statement, StatementSum
from privacy.unit import PrivacyUnit
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.memory import check_memory, text_bytes
from tests.engines.logs import capture_logs

LENGTH = 500
PERSON = 2_048
"""Messages of the one person, who is in one world only: all at the limit of their length, in four-byte characters."""

MESSAGES = Dataset(
    "messages",
    PrivacyUnit("messages", "person"),
    (
        Table(
            "messages",
            (Column("person", ColumnType.INTEGER, nullable=False), Column("body", ColumnType.TEXT, length_max=LENGTH)),
            protected=True,
            unit_column="person",
            contribution=ContributionBound(8, 8, 8),
            rows_stored_per_unit=PERSON,
        ),
    ),
    policy_version=1,
    data_version="messages",
)
MEMORY_MB = 256
THREADS = 2


def nested(times: int, text: str = "body") -> str:
    for i in range(times):
        text = f"REPLACE({text}, '{'abcdef'[i % 6]}', '{'ghijkl'[i % 6]}')"
    return text


def lowered(sql: str) -> Statement:
    (core,) = bound(lift(sql, MESSAGES, {}))
    check_memory((core,))
    return lower(core)


def worst() -> list[str]:
    """Texts of the families that hold most text, each as long as it is answered."""
    families = [
        lambda n: f"SELECT COUNT(*) FROM messages WHERE {nested(n)} = 'x'",
        lambda n: (
            "SELECT COUNT(*) FROM messages WHERE " + " OR ".join(f"REPLACE(body, '{i}', '') = ''" for i in range(n))
        ),
        lambda n: f"SELECT COUNT(*) FROM messages WHERE {nested(n, 'UPPER(body)')} || 'x' = 'x'",
        lambda n: (
            "SELECT "
            + ", ".join(f"COUNT_IF(LOWER(body || '{i}') = 'y') AS c{i}" for i in range(min(n, 30)))
            + " FROM messages"
        ),
        lambda n: f"SELECT COUNT(*) FROM messages WHERE {' || '.join(['body'] * min(n, 16))} = 'x'",
    ]
    found = []
    for family in families:
        answered = None
        for n in range(1, 200):
            try:
                lowered(family(n))
            except Refused:
                break
            answered = family(n)
        assert answered is not None
        found.append(answered)
    return found


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same rows with and without the person's messages."""
    folder = tmp_path_factory.mktemp("memory")
    paths = []
    for name, count in (("without", 0), ("with", PERSON)):
        path = folder / f"{name}.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                'CREATE TABLE messages AS SELECT *, person::INTEGER AS "unit$id", hash(person) AS "unit$draw" '
                "FROM (SELECT i AS person, 'short ' || i AS body FROM range(20000) r(i) UNION ALL SELECT 20000, "
                f"rpad(chr(128512 + (i % 50)::INTEGER), {LENGTH}, chr(128513)) FROM range({count}) r(i)) ORDER BY 1"
            )
        paths.append(path)
    return paths[0], paths[1]


@pytest.fixture
def engine() -> Iterator[PrivateEngine]:
    with closing(PrivateEngine(workers=1, threads=THREADS, memory_limit_mb=MEMORY_MB)) as engine:
        assert engine.wait_ready(timeout_seconds=30)
        yield engine


def peak_mb(engine: PrivateEngine, stop: threading.Event, found: list[float]) -> None:
    """The greatest resident size of any worker until the event."""
    while not stop.wait(0.005):
        for process in engine.process_ids():
            try:
                pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
            except (OSError, IndexError, ValueError):
                continue
            found[0] = max(found[0], pages * 4096 / 2**20)


@pytest.mark.timeout(300)
@pytest.mark.slow
def test_texts_of_one_person_do_not_decide_about_memory(engine: PrivateEngine, snapshots: tuple[Path, Path]) -> None:
    """2,048 messages of one person at their full length: answered with and without them, below the resident limit."""
    found, stop = [0.0], threading.Event()
    watch = threading.Thread(target=peak_mb, args=(engine, stop, found))
    watch.start()
    try:
        for sql in worst():
            for path in snapshots:
                engine.run(path, lowered(sql), timeout_seconds=120)
    finally:
        stop.set()
        watch.join()
    print(f"peak {found[0]:.0f} MB")
    assert 0 < found[0] < resident_limit_mb(MEMORY_MB, threads=THREADS, snapshots=2)


def test_nested_replace_over_long_texts_is_refused_by_the_plan() -> None:
    """What made 4 MB for each operator is refused before the charge, whatever the rows are; longer texts sooner."""
    # No text is too large or too deep by itself: 72 operators would make 144 KB of one row.
    many = "SELECT COUNT(*) FROM messages WHERE " + " OR ".join(f"{nested(25 - i)} = 'x'" for i in range(3))
    cores = bound(lift(many, MESSAGES, {}))
    assert text_bytes(cores) > TEXT_ROW_BYTES_MAX
    with pytest.raises(Refused) as refused:
        check_memory(cores)
    assert [finding.code for finding in refused.value.findings] == ["too_large"]
    (core,) = bound(lift(f"SELECT COUNT(*) FROM messages WHERE {nested(5)} = 'x'", MESSAGES, {}))
    assert text_bytes((core,)) == 5 * 4 * LENGTH <= TEXT_ROW_BYTES_MAX
    table = MESSAGES.tables[0]
    longer = replace(
        MESSAGES,
        tables=(replace(table, columns=(table.columns[0], Column("body", ColumnType.TEXT, length_max=10_000))),),
    )
    (core,) = bound(lift(f"SELECT COUNT(*) FROM messages WHERE {nested(5)} = 'x'", longer, {}))
    with pytest.raises(Refused):
        check_memory((core,))


def test_conditions_and_copies_are_counted() -> None:
    """Branches, filters, folded patterns, conversions and keys make texts too; constants and references make none."""

    def made(sql: str) -> Fraction:
        (core,) = bound(lift(sql, MESSAGES, {}))
        return Fraction(text_bytes((core,)), 4 * LENGTH)

    assert made("SELECT COUNT(*) FROM messages WHERE body = 'x'") == 0
    assert made("SELECT COUNT(*) FROM messages WHERE CASE WHEN body = 'x' THEN body END = 'y'") == 0
    assert made("SELECT COUNT(*) FROM messages WHERE body ILIKE 'x%'") == 1
    assert made("SELECT COUNT(*) FROM messages WHERE CASE WHEN FALSE THEN UPPER(body) ELSE LOWER(body) END = 'y'") == 2
    assert made("SELECT COUNT_IF(UPPER(body) = 'x'), COUNT_IF(LOWER(body) = 'x') FROM messages") == 2
    assert made("SELECT COUNT(*) FROM messages WHERE TRY_CAST(body AS BIGINT) = 1") == 2
    assert made("SELECT UPPER(body), COUNT(*) FROM messages GROUP BY 1") == 3
    assert made("SELECT COUNT(*) FROM messages WHERE body || body = 'x'") == 2
    assert made("SELECT COUNT(*) FROM messages WHERE UPPER(LEFT(body, 5)) = 'x'") == Fraction(10, LENGTH)


@pytest.mark.timeout(120)
@pytest.mark.slow
def test_a_worker_above_its_resident_limit_ends_as_a_lack_of_memory(snapshots: tuple[Path, Path]) -> None:
    """The watch: texts that no plan allows end the worker, which is no incident; the next statement is answered."""
    text = "body"
    for i in range(300):
        text = f"replace({text}, '{i}', 'q')"
    greedy = Statement(
        f'SELECT CAST(0 AS BIGINT) AS "s_high", COUNT(*) AS "s_low" FROM messages WHERE {text} = \'x\'',
        (),
        (),
        (StatementSum("s", 2**40),),
    )
    incidents = Incidents()
    with closing(PrivateEngine(workers=1, threads=1, memory_limit_mb=64, incidents=incidents)) as engine:
        assert engine.wait_ready(timeout_seconds=30)
        with capture_logs() as logs, pytest.raises(ExecutionFailed):
            engine.run(snapshots[1], greedy, timeout_seconds=60)
        assert [log["category"] for log in logs] == ["memory"]
        assert incidents.counts()["engine_error"] == 0
        engine.run(snapshots[1], lowered("SELECT COUNT(*) FROM messages"), timeout_seconds=30)
