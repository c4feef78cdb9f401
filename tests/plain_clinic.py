"""A clinic whose rows are also plain tables: the journey's own answer, and DuckDB's answer to the same text.

The real parts run in the order of the journey (lift, bound, shell check, lower, calibrate, snapshot, private engine,
release, shell) with prices that no policy allows, so that noise is far below the last digit.
"""

from __future__ import annotations

import atexit
import datetime
import functools
import random
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from engines.private import PrivateEngine
from engines.shell import ShellEngine
from engines.snapshot import build_snapshot
from engines.table_source import TableSource
from mechanisms.calibrate import Price, calibrate
from mechanisms.families import NoiseFamily
from mechanisms.release import release
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, Limits, PublicKeys, Reference, Table
from privacy.statement import StageValue
from privacy.unit import PrivacyUnit
from server import answer_rows
from server.journey.stages import stage_values
from server.public_rows import SnapshotRows
from server.public_tables import NothingDrawn, PublicTables, public_shapes
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.audit.recorder import FixedBits

__all__ = ["BEGUN", "DELTA", "EPSILON", "PEOPLE", "Clinic", "declared", "open_clinic", "open_plain"]

EPSILON = Fraction(10**9)
DELTA = Fraction(1, 10**7)
PEOPLE = 240
BEGUN = datetime.datetime(2026, 1, 1)
"""When every question begins: after all rows, as it is for DuckDB."""


_WIDTH_BUCKET = """CREATE MACRO width_bucket(x, low, high, n) AS CAST(
CASE WHEN x IS NULL THEN NULL WHEN x < low THEN 0 WHEN x >= high THEN n + 1
ELSE 1 + len(list_filter(range(1, n), lambda i: (x - low) * n >= i * (high - low))) END AS BIGINT)"""
"""What the function means, counted: how many inner ends are at or below the value. DuckDB has none of the name."""


def _column(name: str, kind: str, low: str | None = None, high: str | None = None, **more: Any) -> Column:
    bounds = None if low is None or high is None else ValueBounds(Fraction(low), Fraction(high))
    return Column(name, ColumnType(kind), bounds, **more)


def declared() -> Dataset:
    """People with visits in hospitals. Every declared cell has rows; only `weight` and `note` have NULLs."""
    people = Table(
        "people",
        (
            _column("person_id", "integer", nullable=False),
            _column("age", "integer", "0", "120", nullable=False),
            _column("weight", "number", "0", "200"),
            _column("sex", "text", keys=PublicKeys(("Female", "Male")), nullable=False),
            _column("level", "integer", "0", "3", keys=PublicKeys((0, 1, 2, 3)), nullable=False),
            _column("edu", "text", nullable=False),
            _column("born", "date", nullable=False),
            _column("member", "boolean", nullable=False),
            _column("note", "text"),
        ),
        protected=True,
        key="person_id",
        unit_column="person_id",
        contribution=ContributionBound(1, 1, 1),
    )
    visits = Table(
        "visits",
        (
            _column("visit_id", "integer", nullable=False),
            _column("person_id", "integer", nullable=False),
            _column("hospital_id", "integer", nullable=False),
            _column("cost", "number", "0", "5000", nullable=False),
            _column("days", "integer", "0", "60", nullable=False),
            _column("dept", "text", nullable=False),
            _column("kind", "text", keys=PublicKeys(("plan", "urgent")), nullable=False),
            _column("day", "date", nullable=False),
        ),
        protected=True,
        key="visit_id",
        references=(
            Reference("person_id", "people", "person_id"),
            Reference("hospital_id", "hospitals", "hospital_id"),
        ),
        unit_column="person_id",
        contribution=ContributionBound(20, 20, 20),
    )
    hospitals = Table(
        "hospitals",
        (
            _column("hospital_id", "integer", nullable=False),
            _column("region", "text", keys=PublicKeys(("north", "south")), nullable=False),
            _column("beds", "integer", "0", "1000", nullable=False),
        ),
        protected=False,
        key="hospital_id",
    )
    limits = Limits(epsilon_default=EPSILON, epsilon_max=EPSILON, delta_per_query=DELTA)
    return Dataset("clinic", PrivacyUnit("people", "person_id"), (people, visits, hospitals), 1, "v", limits=limits)


def write_rows(path: Path) -> None:
    """The plain tables."""
    r = random.Random(11)
    people: list[tuple[object, ...]] = []
    visits: list[tuple[object, ...]] = []
    for person in range(PEOPLE):
        weight = None if r.random() < 0.1 else round(r.uniform(40, 130), 2)
        born = datetime.date(1950 + r.randrange(50), 1 + person % 12, 1 + r.randrange(28))
        sex, edu = r.choice(["Female", "Male"]), r.choice(["school", "college", "none"])
        note = r.choice([None, "a", "B%", "abc"])
        people.append((person, r.randrange(18, 95), weight, sex, person % 4, edu, born, r.random() < 0.4, note))
        for _ in range(r.choice([0, 1, 1, 2, 5, 9])):
            day = datetime.date(2023, 1 + r.randrange(12), 1 + r.randrange(28))
            dept, kind = r.choice(["eye", "heart", "skin"]), r.choice(["plan", "urgent"])
            cost, days = round(r.uniform(5, 4900), 2), r.randrange(0, 40)
            visits.append((len(visits), person, r.randrange(1, 5), cost, days, dept, kind, day))
    hospitals = [(number, ["north", "south"][number % 2], number * 50) for number in range(1, 5)]
    types = {
        "people": "person_id BIGINT, age BIGINT, weight DOUBLE, sex VARCHAR, level BIGINT, edu VARCHAR, born DATE, "
        "member BOOLEAN, note VARCHAR",
        "visits": "visit_id BIGINT, person_id BIGINT, hospital_id BIGINT, cost DOUBLE, days BIGINT, dept VARCHAR, "
        "kind VARCHAR, day DATE",
        "hospitals": "hospital_id BIGINT, region VARCHAR, beds BIGINT",
    }
    with closing(duckdb.connect(str(path))) as connection:
        for name, rows in (("people", people), ("visits", visits), ("hospitals", hospitals)):
            connection.execute(f"CREATE TABLE {name} ({types[name]})")
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)


@dataclass(frozen=True)
class Clinic:
    """The engines, the snapshot, its public tables as outer queries read them, and the plain tables."""

    dataset: Dataset
    snapshot: Path
    public: PublicTables
    private: PrivateEngine
    shell: ShellEngine
    plain: duckdb.DuckDBPyConnection

    def answer(self, sql: str, parameters: dict[str, Any], *, gaussian: bool) -> list[list[Any]]:
        """The rows of the journey's answer."""
        plan = lift(sql, self.dataset, parameters, started=BEGUN)
        cores = bound(plan)
        public = self.public.of(plan)
        shapes = [*answer_rows.shapes(cores), *public_shapes(public)]
        types = None if plan.shell.trivial else self.shell.check(shapes, plan.shell.sql)
        hidden = any(core.described.keys.selection is not None for core in cores)
        delta = DELTA if hidden else Fraction(0)
        price = (
            Price(NoiseFamily.GAUSSIAN, EPSILON**2, delta) if gaussian else Price(NoiseFamily.LAPLACE, EPSILON, delta)
        )
        released = []
        values: dict[StageValue, float | bool | None] = {}
        for core in cores:
            calibration = calibrate([core.described for core in cores], price)
            exact = self.private.run(self.snapshot, lower(core).filled(values), timeout_seconds=60)
            confidence = Fraction(95, 100)
            released.append(release(core.described, calibration, exact, bits=FixedBits(5), confidence=confidence))
            values.update(stage_values(core, released[-1], plan.lists))
        answer = answer_rows.assemble(
            plan.shell,
            types,
            released,
            shell=self.shell,
            confidence=Fraction(95, 100),
            timeout_seconds=60,
            owner="analyst",
            public=public,
        )
        return answer.rows

    def directly(self, sql: str, parameters: dict[str, Any]) -> list[list[Any]]:
        """The rows of DuckDB's own answer to the same text."""
        with closing(self.plain.cursor()) as cursor:
            return [[_plain(value) for value in row] for row in cursor.execute(sql, parameters or None).fetchall()]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.date | datetime.datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


@contextmanager
def open_clinic(folder: Path) -> Iterator[Clinic]:
    """The clinic in a folder: plain rows, their snapshot and one worker of each kind."""
    with open_plain(folder, declared(), write_rows) as opened:
        yield opened


@functools.cache
def _engines() -> tuple[PrivateEngine, ShellEngine]:
    """One worker of each kind for all clinics of the process: it answers from whatever snapshot it is asked about."""
    private = PrivateEngine(workers=1, threads=1, memory_limit_mb=512)
    shell = ShellEngine(workers=1)
    atexit.register(private.close)
    atexit.register(shell.close)
    return private, shell


@contextmanager
def open_plain(folder: Path, dataset: Dataset, write: Callable[[Path], None]) -> Iterator[Clinic]:
    """A dataset in a folder, whose plain rows `write` puts into a file of DuckDB."""
    source = folder / "plain.duckdb"
    write(source)
    with closing(duckdb.connect(str(source))) as connection:
        connection.execute(_WIDTH_BUCKET)
    sources = [TableSource(table.name, source, "duckdb", table.name) for table in dataset.tables]
    snapshot = build_snapshot(dataset, sources, directory=folder / "snapshots", draw_key=bytes(range(32)))
    private, shell = _engines()
    with closing(duckdb.connect(str(source), read_only=True)) as plain:
        dataset = replace(dataset, public=SnapshotRows(snapshot.path))
        yield Clinic(
            dataset, snapshot.path, PublicTables(lambda _: snapshot.path, NothingDrawn().rows_of), private, shell, plain
        )
