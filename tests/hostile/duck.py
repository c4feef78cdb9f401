"""A small clinic in DuckDB: what a text means there, and what the plan of the same text means without noise.

The tables have the layout of a snapshot. All contributions stay within their bounds and every public key occurs, so
that a plan's exact answer is the answer of the text itself.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb
from sqlglot import exp

from engines.handlers.judge import judge
from engines.handlers.plan import open_twin
from engines.texts import AskedText, encode_text, read_stopped
from engines.twin import twin_of
from privacy.aggregate import AggregateFunction
from privacy.policy import Dataset, KeyValue
from privacy.statement import StageValue
from privacy.statistic import Estimate, Statistic, StatisticKind
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.expressions import Expression
from sql_rewrite.foreign import foreign_text
from sql_rewrite.joins import resolve_sources
from sql_rewrite.lift import lift
from sql_rewrite.lift_expression import ExpressionLift
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.lower import lower
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from sql_rewrite.plan import Plan
from sql_rewrite.refuse import refuse
from sql_rewrite.spelling import check_gaps, check_words
from sql_rewrite.syntax import parse
from tests.sql_rewrite.datasets import CLINIC

__all__ = ["Clinic", "Expressions", "Raised", "Reader", "Row", "same_rows", "same_values"]

Row = tuple[Any, ...]


def _day(year: int, month: int, day: int) -> datetime.date:
    return datetime.date(year, month, day)


PEOPLE: tuple[Row, ...] = (
    # person_id, age, sex, income, salary, education, hours, born, smoker
    (1, 34, "female", 1200.5, 1000.0, "school", 40, _day(1990, 2, 28), True),
    (2, 0, "male", None, 2500.25, "", 0, _day(2024, 2, 29), False),
    (3, 71, "female", -3.0, 0.0, None, 20, None, False),
    (4, 18, "male", 0.0, None, "university", 38, _day(2006, 12, 31), True),
    (5, 50, "male", 7.5, 199_999.5, "School", None, _day(1974, 1, 1), False),
    (6, 99, "female", 2.5, 12.0, "%_\\", 80, _day(1925, 7, 4), True),
    (7, 2, "male", 1e6, 64.0, "école", 5, _day(2022, 5, 15), False),
    (8, 64, "female", 0.5, 3000.0, "a'b\"c", 33, _day(1960, 10, 10), False),
)
VISITS: tuple[Row, ...] = (
    # visit_id, person_id, hospital_id, cost, day, ward
    (10, 1, 100, 20.0, _day(2024, 1, 5), "eyes"),
    (11, 1, 100, 40.0, _day(2024, 1, 6), "eyes"),
    (12, 1, 101, 12.5, _day(2024, 3, 1), "heart"),
    (13, 2, 102, 0.0, _day(2023, 12, 31), "heart"),
    (14, 4, 101, 4999.0, None, None),
    (15, 5, None, None, _day(2024, 2, 29), "bones"),
    (16, 6, 102, 64.0, _day(2024, 2, 29), "eyes"),
    (17, 6, 100, 128.0, _day(2022, 8, 1), "eyes"),
)
TESTS: tuple[Row, ...] = ((20, 10, 1.5), (21, 10, -2.0), (22, 13, None), (23, 17, 10.0))
HOSPITALS: tuple[Row, ...] = ((100, "north", 12), (101, "south", 700), (102, "west", None))

_ROWS: Mapping[str, tuple[Row, ...]] = {"people": PEOPLE, "visits": VISITS, "tests": TESTS, "hospitals": HOSPITALS}
_OWNERS = {row[0]: row[1] for row in VISITS}


def _unit(table: str, row: Row) -> int:
    return {"people": lambda: row[0], "visits": lambda: row[1], "tests": lambda: _OWNERS[row[1]]}[table]() - 1


class Clinic:
    """The clinic's tables in one connection, which is never a server's."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1, "enable_external_access": False})
        self.connection.execute("ATTACH ':memory:' AS clinic")
        self.connection.execute("USE clinic")
        self.connection.execute("SET python_enable_replacements = false")
        # Division by zero and overflow of doubles raise: they are errors here, which the lowered SQL makes NULL.
        self.connection.execute("SET ieee_floating_point_ops = false")
        for table in CLINIC.tables:
            columns = [f'"{column.name}" {column.type.sql}' for column in table.columns]
            rows: Sequence[Row] = _ROWS[table.name]
            if table.protected:
                columns += ['"unit$id" INTEGER', '"unit$draw" UBIGINT']
                rows = [(*row, _unit(table.name, row), 97 * (_unit(table.name, row) + 1)) for row in rows]
            self.connection.execute(f'CREATE TABLE "{table.name}" ({", ".join(columns)})')
            places = ", ".join("?" * len(columns))
            self.connection.executemany(f'INSERT INTO "{table.name}" VALUES ({places})', rows)

    def close(self) -> None:
        """Ends the connection."""
        self.connection.close()

    def direct(self, sql: str, parameters: Mapping[str, ParameterValue] | None = None) -> list[Row]:
        """The rows of the analyst's own text. Errors: duckdb.Error."""
        cursor = self.connection.execute(sql, dict(parameters)) if parameters else self.connection.execute(sql)
        return cursor.fetchall()

    def difference(self, text: str, excused: Callable[[str, list[Row], list[Row]], bool]) -> tuple[object, ...] | None:
        """What a text that is read means in DuckDB and by its plan, where these differ and nothing excuses it.

        A shell that does not bind is refused by the shell engine's check; a text that raises on a row has no rows to
        compare, where the plan gives NULL.
        """
        try:
            ours = self.planned(text)
        except duckdb.Error:
            return None
        try:
            theirs = self.direct(text)
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
            return text, str(error)[:80]
        except duckdb.Error:
            return None
        return None if same_rows(theirs, ours) or excused(text, theirs, ours) else (text, theirs[:3], ours[:3])

    def planned(self, sql: str, parameters: Mapping[str, ParameterValue] | None = None) -> list[Row]:
        """The rows of the plan with exact instead of noisy numbers. Errors: Refused."""
        plan = lift(sql, CLINIC, parameters)
        tables: dict[str, tuple[list[str], list[Row]]] = {}
        for bounded in bound(plan):
            tables[bounded.core.name] = self.released(bounded, tables)
        if plan.shell.trivial:
            return self._trivial(plan, tables)
        cursor = self.connection.cursor()
        cursor.execute("USE clinic")
        for bounded in bound(plan):
            names, rows = tables[bounded.core.name]
            types = [f'"{name}" {key.type.sql}' for name, key in bounded.core.keys]
            types += [
                f'"{estimate.name}" {"BIGINT" if estimate.integer else "DOUBLE"}'
                for estimate in bounded.described.estimates
            ]
            cursor.execute(f'CREATE OR REPLACE TEMP TABLE "{bounded.core.name}" ({", ".join(types)}, "row$" BIGINT)')
            for row in rows:
                cursor.execute(f'INSERT INTO "{bounded.core.name}" VALUES ({", ".join("?" * len(names))})', list(row))
        for relation in plan.public:
            cursor.execute(
                f'CREATE OR REPLACE TEMP TABLE "{relation.name}" AS '
                f'SELECT *, row_number() OVER () - 1 AS "row$" FROM "{relation.table.name}"'
            )
        result = cursor.execute(plan.shell.sql).fetchall()
        cursor.close()
        visible = len(plan.shell.outputs)
        return [row[:visible] for row in result]

    def _trivial(self, plan: Plan, tables: Mapping[str, tuple[list[str], list[Row]]]) -> list[Row]:
        (names, rows) = tables[plan.cores[0].name]
        places = [names.index(str(output.column)) for output in plan.shell.outputs]
        return [tuple(row[place] for place in places) for row in rows]

    def released(
        self, bounded: BoundedCore, earlier: Mapping[str, tuple[list[str], list[Row]]]
    ) -> tuple[list[str], list[Row]]:
        """One core's table without noise: its columns (keys, estimates, row$) and rows."""
        statement = lower(bounded)
        read = [one for one in statement.parameters if isinstance(one, StageValue)]
        if read:
            found = [(one, earlier[one.core]) for one in read]
            values = {one: rows[0][names.index(one.column)] for one, (names, rows) in found}
            statement = statement.filled({one: None if x is None else float(x) for one, x in values.items()})
        listed = self.connection.execute(statement.sql, list(statement.parameters)).fetchall()
        keys = len(statement.keys)
        cells: dict[tuple[KeyValue, ...], dict[str, int]] = {}
        for row in listed:
            pairs = row[keys:]
            cells[row[:keys]] = {
                total.name: pairs[2 * i] * 2**62 + pairs[2 * i + 1] for i, total in enumerate(statement.sums)
            }
        domain = bounded.described.keys.domain
        order = list(cells) if domain is None else list(domain)
        statistics = {statistic.name: statistic for statistic in bounded.described.statistics}
        rows = []
        for number, cell in enumerate(order):
            sums = cells.get(cell, {})
            values = [
                _estimate(estimate, statistics[estimate.statistic], sums) for estimate in bounded.described.estimates
            ]
            rows.append((*cell, *values, number))
        names = [key.name for key in statement.keys]
        return [*names, *(estimate.name for estimate in bounded.described.estimates), "row$"], rows


class Reader:
    """Reads texts as the journey does before it charges: lifted, bounded, and judged by the engine on empty tables."""

    def __init__(self, dataset: Dataset = CLINIC) -> None:
        self.dataset = dataset
        self._twin = open_twin(twin_of(dataset).tables, dataset.name)

    def close(self) -> None:
        """Ends the connection."""
        self._twin.close()

    def read(self, text: str, parameters: Mapping[str, ParameterValue] | None = None) -> Plan:
        """The plan of a text. Errors: Refused."""
        plan = lift(text, self.dataset, parameters)
        bound(plan)
        self.judge(text, parameters)
        return plan

    def judge(self, text: str, parameters: Mapping[str, ParameterValue] | None = None) -> None:
        """Refuses what the engine does not read. Errors: Refused."""
        asked = AskedText(text, dict(parameters or {}))  # type: ignore[arg-type]
        stopped = judge(self._twin.seen, encode_text(asked))
        if stopped is not None:
            refusal = read_stopped(stopped).refusal(asked)
            raise foreign_text(text, refusal.step, refusal.place)


class Raised:
    """Stands for the value of an expression whose evaluation raises in the dialect itself."""


class Expressions:
    """Row expressions over the clinic's people, in the dialect's own meaning and in the plan's."""

    def __init__(self, clinic: Clinic) -> None:
        self.connection = clinic.connection
        self._reader = Reader()
        people = CLINIC.table("people")
        assert people is not None
        self._people = people
        for place in range(len(PEOPLE)):
            self.connection.execute(
                f"CREATE OR REPLACE TEMP VIEW person{place} AS "
                f"SELECT * FROM people WHERE person_id = {PEOPLE[place][0]}"
            )

    def lifted(self, text: str) -> Expression:
        """The typed form of an expression's text. Errors: Refused."""
        tree, parsed = parse(f"SELECT {text} FROM people")
        assert isinstance(tree, exp.Select)
        if len(tree.expressions) != 1:
            raise refuse("parse_error", "not one expression", "A comma or an alias stands in it.")
        check_words(parsed.tokens, parsed)
        names = resolve_sources(tree, [(tree.args["from_"].this, self._people)], CLINIC, parsed)
        expression = ExpressionLift(parsed, names.resolve, {}).lift(tree.expressions[0])
        check_gaps(parsed.tokens, parsed)
        self._reader.judge(f"SELECT {text} FROM people")
        return expression

    def planned(self, expression: Expression) -> list[Any]:
        """The value for every person, from the lowered SQL, which may never raise."""
        parameters = ParameterList()
        sql = DUCKDB.write(lower_expression(expression, parameters))
        rows = self.connection.execute(
            f'SELECT {sql} FROM "main"."people" AS "r0" ORDER BY "r0"."person_id"', list(parameters.values)
        ).fetchall()
        return [row[0] for row in rows]

    def direct(self, text: str) -> list[Any]:
        """The value for every person from the text itself, `Raised` where it raises. Errors: duckdb.Error."""
        try:
            found = self.connection.execute(f"SELECT ({text}) FROM people ORDER BY person_id").fetchall()
        except (
            duckdb.BinderException,
            duckdb.ParserException,
            duckdb.CatalogException,
            duckdb.NotImplementedException,
        ):
            raise
        except duckdb.Error:
            return [self._alone(text, place) for place in range(len(PEOPLE))]
        return [row[0] for row in found]

    def _alone(self, text: str, place: int) -> Any:
        try:
            row = self.connection.execute(f"SELECT ({text}) FROM person{place} AS people").fetchone()
        except duckdb.Error:
            return Raised
        assert row is not None
        return row[0]


def same_values(direct: Sequence[Any], planned: Sequence[Any], *, tolerance: float = 1e-9) -> bool:
    """Whether two lists of values are equal where the first did not raise or leave the finite numbers."""
    return all(
        one is Raised or (isinstance(one, float) and not math.isfinite(one)) or _same(one, two, tolerance)
        for one, two in zip(direct, planned, strict=True)
    )


def _estimate(estimate: Estimate, statistic: Statistic, sums: Mapping[str, int]) -> Any:
    """One aggregate from exact sums (mechanisms/moments.md without noise)."""
    parts = [sums.get(f"{statistic.name}_{i}", 0) for i in range(statistic.coordinates)]
    if statistic.kind in (StatisticKind.UNITS, StatisticKind.COUNT):
        return parts[0] if statistic.encoding is None else round(parts[0] * statistic.encoding.step)
    encoding = statistic.encoding
    assert encoding is not None
    if statistic.kind is StatisticKind.SUM:
        return _number(parts[0] * encoding.step, integer=estimate.integer)
    width, degree = encoding.highest, statistic.degree
    nulls = Fraction(parts.pop(), width**degree) if statistic.counts_nulls else Fraction(0)
    values = Fraction(sum(parts), width**degree)
    raised = parts[2] if statistic.raised else 0
    lowered = parts[-1] if statistic.lowered else 0
    if degree == 1:
        first, second = (
            Fraction(parts[1] + (raised if estimate.kind is AggregateFunction.SUM else lowered)),
            Fraction(0),
        )
    else:
        first, second = Fraction(parts[1], 2 * width) + Fraction(parts[2], width), Fraction(parts[2])
    match estimate.kind:
        case AggregateFunction.ROWS:
            return int(values + nulls)
        case AggregateFunction.VALUES:
            return int(values)
        case AggregateFunction.SUM:
            total = encoding.offset * values + encoding.step * first
            return _number(total, integer=estimate.integer) if values else None
        case AggregateFunction.AVERAGE:
            return float(encoding.offset + encoding.step * first / values) if values else None
        case AggregateFunction.VARIANCE_POPULATION | AggregateFunction.DEVIATION_POPULATION:
            least = 0
        case AggregateFunction.VARIANCE_SAMPLE | AggregateFunction.DEVIATION_SAMPLE:
            least = 1
        case _:
            raise AssertionError(f"moments do not hold {estimate.kind}")
    if values <= least:
        return None
    spread = encoding.step**2 * (second / values - (first / values) ** 2) * values / (values - least)
    deviation = estimate.kind in (AggregateFunction.DEVIATION_POPULATION, AggregateFunction.DEVIATION_SAMPLE)
    return math.sqrt(spread) if deviation else float(spread)


def _number(value: Fraction, *, integer: bool) -> int | float:
    return int(value) if integer else float(value)


def same_rows(one: Sequence[Row], two: Sequence[Row], *, tolerance: float = 1e-6) -> bool:
    """Whether two answers hold the same rows in any order; numbers may differ by a relative `tolerance`."""
    if len(one) != len(two):
        return False
    left = list(two)
    for row in one:
        match = next((other for other in left if _same_row(row, other, tolerance)), None)
        if match is None:
            return False
        left.remove(match)
    return True


def _same_row(one: Row, two: Row, tolerance: float) -> bool:
    return len(one) == len(two) and all(_same(a, b, tolerance) for a, b in zip(one, two, strict=True))


def _same(one: Any, two: Any, tolerance: float) -> bool:
    if isinstance(one, bool) or isinstance(two, bool) or one is None or two is None:
        return one is two
    if isinstance(one, str) or isinstance(two, str):
        return bool(one == two)
    if isinstance(one, datetime.date) or isinstance(two, datetime.date):
        return str(one)[:10] == str(two)[:10]
    try:
        return math.isclose(float(one), float(two), rel_tol=tolerance, abs_tol=tolerance)
    except (TypeError, ValueError):
        return bool(one == two)
