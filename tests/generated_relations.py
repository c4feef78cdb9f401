"""Random trees of relations of people's rows, as SQL text: scan, filter, project, joins, groups, windows, semi-joins.

Every tree reads a small clinic of whole numbers, whose declared bounds lie above everything that any tree makes of
them, so that an answer without noise is DuckDB's own.
"""

from __future__ import annotations

import datetime
import random
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, Limits, PublicKeys, Reference, Table
from privacy.unit import PrivacyUnit
from tests.plain_clinic import DELTA, EPSILON

__all__ = ["SMALL", "make_question", "small_rows", "write_small"]

T = ColumnType
PEOPLE, VISITS_MOST, TESTS_MOST = 24, 5, 3
_WARDS, _KINDS, _REGIONS, _SEXES = ("a", "b", "c"), ("x", "y"), ("north", "south"), ("f", "m")


def _bounds(low: int, high: int) -> ValueBounds:
    return ValueBounds(Fraction(low), Fraction(high))


def _keys(name: str, *values: object) -> Column:
    return Column(name, T.TEXT, keys=PublicKeys(values), nullable=False)  # type: ignore[arg-type]


_TABLES = (
    Table(
        "people",
        (
            Column("person_id", T.INTEGER, nullable=False),
            Column("age", T.INTEGER, _bounds(0, 99), nullable=False),
            Column("score", T.INTEGER, _bounds(-9, 9)),
            _keys("sex", *_SEXES),
        ),
        protected=True,
        key="person_id",
        unit_column="person_id",
        contribution=ContributionBound(1, 1, 1),
    ),
    Table(
        "visits",
        (
            Column("visit_id", T.INTEGER, nullable=False),
            Column("person_id", T.INTEGER, nullable=False),
            Column("hospital_id", T.INTEGER),
            Column("cost", T.INTEGER, _bounds(0, 50), nullable=False),
            Column("days", T.INTEGER, _bounds(0, 9)),
            Column("day", T.DATE, nullable=False),
            Column("began", T.TIMESTAMP, nullable=False),
            Column("ended", T.TIMESTAMP),
            _keys("ward", *_WARDS),
        ),
        protected=True,
        key="visit_id",
        references=(
            Reference("person_id", "people", "person_id"), Reference("hospital_id", "hospitals", "hospital_id"),
        ),
        unit_column="person_id",
        contribution=ContributionBound(VISITS_MOST, VISITS_MOST, VISITS_MOST),
        rows_stored_per_unit=VISITS_MOST,
    ),
    Table(
        "tests",
        (
            Column("test_id", T.INTEGER, nullable=False),
            Column("visit_id", T.INTEGER, nullable=False),
            Column("result", T.INTEGER, _bounds(0, 20)),
            _keys("kind", *_KINDS),
        ),
        protected=True,
        key="test_id",
        references=(Reference("visit_id", "visits", "visit_id"),),
        unit_path=(Reference("visit_id", "visits", "visit_id"),),
        contribution=ContributionBound(*[VISITS_MOST * TESTS_MOST] * 3),
        rows_stored_per_unit=VISITS_MOST * TESTS_MOST,
    ),
    Table(
        "hospitals",
        (
            Column("hospital_id", T.INTEGER, nullable=False),
            _keys("region", *_REGIONS),
            Column("beds", T.INTEGER, _bounds(0, 90), nullable=False),
        ),
        protected=False,
        key="hospital_id",
    ),
)  # fmt: skip

SMALL = Dataset(
    "small", PrivacyUnit("people", "person_id"), _TABLES, 1, "v",
    limits=Limits(epsilon_default=EPSILON, epsilon_max=EPSILON, delta_per_query=DELTA),
)  # fmt: skip
"""People with visits and the tests of these: a chain to the unit, a public table, and columns with NULL."""


def small_rows(seed: int = 31) -> dict[str, list[tuple[Any, ...]]]:
    """The rows: some people without visits, visits without tests, repeated values, and NULL."""
    r = random.Random(seed)
    rows: dict[str, list[tuple[Any, ...]]] = {table.name: [] for table in _TABLES}
    rows["hospitals"] = [(number, _REGIONS[number % 2], number * 20) for number in range(1, 5)]
    first = datetime.date(2024, 1, 1)
    for person in range(PEOPLE):
        score = None if r.random() < 0.2 else r.randint(-3, 3)
        rows["people"].append((person, r.randint(0, 60), score, _SEXES[person % 2]))
        for _ in range((0, 1, 2, 3, VISITS_MOST)[person % 5]):
            visit = len(rows["visits"])
            hospital = r.choice([None, 1, 2, 3, 4])
            days = None if r.random() < 0.2 else r.randint(0, 4)
            day = first + datetime.timedelta(days=r.randrange(30))
            began = datetime.datetime.combine(day, datetime.time(r.randrange(24)))
            ended = None if days is None else began + datetime.timedelta(hours=9 * days, seconds=days % 2)
            cost = r.choice([0, 3, 3, 7, 50])
            rows["visits"].append((visit, person, hospital, cost, days, day, began, ended, r.choice(_WARDS)))
            for _ in range(r.randint(0, TESTS_MOST)):
                result = None if r.random() < 0.2 else r.randint(0, 20)
                rows["tests"].append((len(rows["tests"]), visit, result, r.choice(_KINDS)))
    return rows


def write_small(path: Path) -> None:
    """The plain tables."""
    with closing(duckdb.connect(str(path))) as connection:
        for table in _TABLES:
            columns = ", ".join(f"{column.name} {column.type.sql}" for column in table.columns)
            connection.execute(f"CREATE TABLE {table.name} ({columns})")
            places = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {table.name} VALUES ({places})", small_rows()[table.name])


@dataclass(frozen=True)
class _Seen:
    """A column of a relation: `role` is `unit`, `visit`, `key` (declared values), `day`, `span`, `whole`."""

    name: str
    role: str


_ROLES = {"person_id": "unit", "visit_id": "visit", "day": "day", "sex": "key", "ward": "key", "kind": "key"}
_LEFT_OUT = ("test_id", "hospital_id", "began", "ended")


def make_question(seed: int) -> str:
    """An aggregation of a random tree. Some are refused; most are answered."""
    return _Trees(random.Random(seed)).question()


class _Trees:
    """Each relation is a bracketed query or a table, and the columns that it has."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self._names = 0

    def question(self) -> str:
        """The block above all others."""
        text, columns = self._relation(self.r.choice([1, 2, 2, 3]))
        beside = self.r.random()
        wholes = [c.name for c in columns if c.role == "whole"]
        if beside < 0.04 and {"ward", "person_id"} <= {c.name for c in columns} and wholes:
            return self._pivoted(text, wholes)
        if beside > 0.95:
            return self._kept_public()
        return self._aggregated(text, columns)

    def _pivoted(self, text: str, wholes: list[str]) -> str:
        """Released groups side by side: the first key is no column of people, so that all stand in one row."""
        one, alias = self.r.choice(wholes), self._new("y")
        inner = f"SELECT 1 AS every, {alias}.ward, {alias}.{one} AS one FROM {text} AS {alias}"
        pivoted = "PIVOT (COUNT(*) AS n, SUM(one) AS s FOR ward IN ('a', 'b', 'c') GROUP BY every)"
        return f"SELECT * EXCLUDE (every) FROM ({inner}) {pivoted}"

    def _kept_public(self) -> str:
        """Groups of a public table, also of those that nobody is in."""
        where = self._condition("v", [_Seen("cost", "whole"), _Seen("ward", "key")])
        on = f"v.hospital_id = h.hospital_id AND {where}" if self.r.random() < 0.7 else "v.hospital_id = h.hospital_id"
        both = f"hospitals AS h LEFT JOIN visits AS v ON {on}"
        if self.r.random() < 0.5:
            both = f"visits AS v RIGHT JOIN hospitals AS h ON {on}"
        return f"SELECT h.region, COUNT(v.cost), SUM(v.cost), COUNT(DISTINCT v.person_id) FROM {both} GROUP BY h.region"

    def _aggregated(self, text: str, columns: list[_Seen]) -> str:
        r = self.r
        alias = self._new("t")
        keys = [c for c in columns if c.role == "key"]
        key = f"{alias}.{r.choice(keys).name}" if keys and r.random() < 0.4 else None
        wholes = [c for c in columns if c.role == "whole"]
        listed = ["COUNT(*)"]
        if wholes and r.random() < 0.8:
            name = f"{alias}.{r.choice(wholes).name}"
            listed.append(r.choice([f"SUM({name})", f"COUNT({name})", f"SUM({name}) FILTER (WHERE {name} > 2)"]))
        units = [c for c in columns if c.role == "unit"]
        if units and r.random() < 0.3:
            listed.append(f"COUNT(DISTINCT {alias}.{units[0].name})")
        where = f" WHERE {self._condition(alias, columns)}" if r.random() < 0.4 else ""
        shown = ", ".join(([key] if key else []) + listed)
        return f"SELECT {shown} FROM {text} AS {alias}{where}" + (f" GROUP BY {key}" if key else "")

    def _new(self, letter: str) -> str:
        self._names += 1
        return f"{letter}{self._names}"

    # Relations

    def _relation(self, depth: int) -> tuple[str, list[_Seen]]:
        if depth == 0:
            return self._scan()
        makers = [
            self._filtered, self._filtered, self._projected, self._parents, self._of_units, self._of_visits,
            self._grouped, self._grouped, self._by_visit, self._different, self._semi, self._semi, self._correlated,
            self._correlated, self._both, self._windowed, self._framed, self._unpivoted, self._full, self._spanned,
        ]  # fmt: skip
        return self.r.choice(makers)(depth - 1)

    def _scan(self) -> tuple[str, list[_Seen]]:
        name = self.r.choice(["people", "visits", "visits", "visits", "tests"])
        table = SMALL.table(name)
        assert table is not None
        names = [column.name for column in table.columns if column.name not in _LEFT_OUT]
        return name, [_Seen(each, _ROLES.get(each, "whole")) for each in names]

    def _filtered(self, depth: int) -> tuple[str, list[_Seen]]:
        text, columns = self._relation(depth)
        alias = self._new("f")
        return f"(SELECT * FROM {text} AS {alias} WHERE {self._condition(alias, columns)})", columns

    def _projected(self, depth: int) -> tuple[str, list[_Seen]]:
        text, columns = self._relation(depth)
        alias = self._new("p")
        kept = [c for c in columns if c.role in ("unit", "visit") or self.r.random() < 0.6]
        listed = [f"{alias}.{c.name}" for c in kept]
        name = self._new("c")
        listed.append(f"{self._whole(alias, columns)} AS {name}")
        return f"(SELECT {', '.join(listed)} FROM {text} AS {alias})", [*kept, _Seen(name, "whole")]

    def _parents(self, depth: int) -> tuple[str, list[_Seen]]:
        join = self.r.choice(["JOIN", "LEFT JOIN"])
        if self.r.random() < 0.3:
            columns = [_Seen("ward", "key"), _Seen("cost", "whole"), _Seen("person_id", "unit"), _Seen("beds", "whole")]
            listed = "v.ward, v.cost, v.person_id, h.beds"
            on = f"v.hospital_id = h.hospital_id{self._beside(join, ('v', columns[:2]), ('h', columns[3:]))}"
            return f"(SELECT {listed} FROM visits AS v {join} hospitals AS h ON {on})", columns
        text, columns = self._relation(depth)
        units = [c for c in columns if c.role == "unit"]
        visits = [c for c in columns if c.role == "visit"]
        alias, name = self._new("j"), self._new("c")
        if units:
            on, added = f"{alias}.{units[0].name} = p.person_id", "people AS p"
            value = "p.age"
        elif visits:
            on, added, value = f"{alias}.{visits[0].name} = p.visit_id", "visits AS p", "p.cost"
        else:
            return text, columns
        on += self._beside(join, (alias, columns), ("p", [_Seen(value[2:], "whole")]))
        listed = [*(f"{alias}.{c.name}" for c in columns), f"{value} AS {name}"]
        return f"(SELECT {', '.join(listed)} FROM {text} AS {alias} {join} {added} ON {on})", [
            *columns,
            _Seen(name, "whole"),
        ]

    def _paired(self, depth: int, role: str) -> tuple[str, list[_Seen]]:
        (one, left), (two, right) = self._relation(depth), self._relation(self.r.choice([0, depth]))
        ends = [[c for c in columns if c.role == role] for columns in (left, right)]
        if not all(ends):
            return one, left
        a, b = self._new("a"), self._new("b")
        join = self.r.choice(["JOIN", "JOIN", "LEFT JOIN"])
        named = [(f"{b}.{c.name} AS {self._new('c')}", c) for c in right if c.role in ("whole", "key")]
        listed = [*(f"{a}.{c.name}" for c in left), *(text for text, _ in named)]
        # A key of the side that may be missing has NULL, which its declaration does not have.
        found = [_Seen(text.split()[-1], "whole" if c.role == "whole" else "none") for text, c in named]
        on = f"{a}.{ends[0][0].name} = {b}.{ends[1][0].name}{self._beside(join, (a, left), (b, right))}"
        return f"(SELECT {', '.join(listed)} FROM {one} AS {a} {join} {two} AS {b} ON {on})", [*left, *found]

    def _beside(self, join: str, left: tuple[str, list[_Seen]], right: tuple[str, list[_Seen]]) -> str:
        """What ON of a LEFT JOIN says beside its equality: of rows before it, or a comparison of both sides."""
        if join != "LEFT JOIN" or self.r.random() < 0.5:
            return ""
        ends = [[f"{alias}.{c.name}" for c in columns if c.role == "whole"] for alias, columns in (left, right)]
        if all(ends) and self.r.random() < 0.4:
            return f" AND {self._of_both(self.r.choice(ends[0]), self.r.choice(ends[1]))}"
        if all(ends) and self.r.random() < 0.5:
            return f" AND {self.r.choice(ends[1])} {self.r.choice(['<', '>=', '<>', '='])} {self.r.choice(ends[0])} + 1"
        return f" AND {self._condition(*left)}"

    def _of_both(self, one: str, other: str) -> str:
        """A condition of rows of both sides that is no comparison of one with the other."""
        number = self.r.randint(0, 60)
        return self.r.choice(
            [
                f"({one} > {number} OR {other} <= {number})",
                f"NOT ({one} > {number} AND {other} > {number})",
                f"({one} < {number} AND {other} < {number} OR {one} > {number})",
                f"{one} + {other} > {number}",
                f"({one} > {other} OR {other} > {number})",
            ]
        )

    def _full(self, depth: int) -> tuple[str, list[_Seen]]:
        """All rows of two relations, beside one another where they are of one unit."""
        (one, left), (two, right) = self._relation(depth), self._relation(0)
        if not all({"person_id"} <= {c.name for c in columns if c.role == "unit"} for columns in (left, right)):
            return one, left
        a, b, names = self._new("a"), self._new("b"), (self._new("c"), self._new("c"))
        first, second = f"{self._whole(a, left)} AS {names[0]}", f"{self._whole(b, right)} AS {names[1]}"
        ends = [
            [f"{alias}.{c.name}" for c in columns if c.role == "whole"] for alias, columns in ((a, left), (b, right))
        ]
        if all(ends) and self.r.random() < 0.5:
            one_end, other = self.r.choice(ends[0]), self.r.choice(ends[1])
            more = self.r.choice([f"{one_end} > {other}", f"{one_end} <> {other}", self._of_both(one_end, other)])
            on = f"{a}.person_id = {b}.person_id AND {more}"
            unit = f"COALESCE({a}.person_id, {b}.person_id) AS person_id"
            text = f"(SELECT {unit}, {first}, {second} FROM {one} AS {a} FULL JOIN {two} AS {b} ON {on})"
            return text, [_Seen("person_id", "unit"), *(_Seen(name, "whole") for name in names)]
        text = f"(SELECT person_id, {first}, {second} FROM {one} AS {a} FULL JOIN {two} AS {b} USING (person_id))"
        return text, [_Seen("person_id", "unit"), *(_Seen(name, "whole") for name in names)]

    def _spanned(self, depth: int) -> tuple[str, list[_Seen]]:
        """Rows with a column of intervals, which are read in later relations."""
        name = self._new("i")
        seen = [_Seen("visit_id", "visit"), _Seen("person_id", "unit"), _Seen("cost", "whole"), _Seen("ward", "key")]
        listed = ", ".join(f"v.{c.name}" for c in seen)
        where = self.r.choice(["", " WHERE v.ended - v.began < INTERVAL 1 DAY"])
        return f"(SELECT {listed}, v.ended - v.began AS {name} FROM visits AS v{where})", [*seen, _Seen(name, "span")]

    def _of_units(self, depth: int) -> tuple[str, list[_Seen]]:
        return self._paired(depth, "unit")

    def _of_visits(self, depth: int) -> tuple[str, list[_Seen]]:
        return self._paired(depth, "visit")

    def _grouped(self, depth: int) -> tuple[str, list[_Seen]]:
        text, columns = self._relation(depth)
        units = [c for c in columns if c.role == "unit"]
        return self._groups(text, columns, units[0]) if units else (text, columns)

    def _by_visit(self, depth: int) -> tuple[str, list[_Seen]]:
        text, columns = self._relation(depth)
        visits = [c for c in columns if c.role == "visit"]
        return self._groups(text, columns, visits[0]) if visits else (text, columns)

    def _groups(self, text: str, columns: list[_Seen], by: _Seen) -> tuple[str, list[_Seen]]:
        r = self.r
        alias = self._new("g")
        keys = [by, *(c for c in columns if c.role in ("key", "unit") and c is not by and r.random() < 0.4)]
        wholes = [f"{alias}.{c.name}" for c in columns if c.role == "whole"]
        values = ["COUNT(*)"]
        if wholes:
            values += [f"{call}({r.choice(wholes)})" for call in r.sample(["SUM", "MIN", "MAX", "COUNT"], 2)]
            # Numbers of halves and quarters, as whole numbers.
            ranked = ["2 * MEDIAN({})", "QUANTILE_DISC({}, 0.3)", "4 * QUANTILE_CONT({}, 0.75)", "4 * MAD({})"]
            ranked.append("MODE() WITHIN GROUP (ORDER BY {})")  # of several the least, as here
            values.append(f"CAST({r.choice(ranked).format(r.choice(wholes))} AS BIGINT)")
            values.append(f"COUNT(DISTINCT {r.choice(wholes)})")
        chosen = r.sample(values, min(len(values), 2))
        named = [(value, self._new("c")) for value in chosen]
        listed = [*(f"{alias}.{c.name}" for c in keys), *(f"{value} AS {name}" for value, name in named)]
        having = f" HAVING {r.choice(values)} > {r.randrange(3)}" if r.random() < 0.3 else ""
        group = ", ".join(f"{alias}.{c.name}" for c in keys)
        made = [*keys, *(_Seen(name, "whole") for _, name in named)]
        return f"(SELECT {', '.join(listed)} FROM {text} AS {alias} GROUP BY {group}{having})", made

    def _different(self, depth: int) -> tuple[str, list[_Seen]]:
        text, columns = self._relation(depth)
        units = [c for c in columns if c.role == "unit"]
        if not units:
            return text, columns
        kept = [units[0], *(c for c in columns if c is not units[0] and self.r.random() < 0.5)]
        alias = self._new("d")
        return f"(SELECT DISTINCT {', '.join(f'{alias}.{c.name}' for c in kept)} FROM {text} AS {alias})", kept

    def _semi(self, depth: int) -> tuple[str, list[_Seen]]:
        (text, columns), (other, inside) = self._relation(depth), self._relation(self.r.choice([0, depth]))
        role = self.r.choice(["unit", "visit"])
        ends = [[c.name for c in found if c.role == role] for found in (columns, inside)]
        if not all(ends):
            return text, columns
        a, b, negated = self._new("s"), self._new("i"), self.r.choice(["", "NOT "])
        where = self._condition(b, inside)
        if self.r.random() < 0.5:
            member = f"{a}.{ends[0][0]} {negated}IN (SELECT {b}.{ends[1][0]} FROM {other} AS {b} WHERE {where})"
        else:
            same = f"{b}.{ends[1][0]} = {a}.{ends[0][0]}"
            member = f"{negated}EXISTS (SELECT 1 FROM {other} AS {b} WHERE {same} AND {where})"
        return f"(SELECT * FROM {text} AS {a} WHERE {member})", columns

    def _windowed(self, depth: int) -> tuple[str, list[_Seen]]:
        """Places and sums that do not tell rows apart which are equal in the order."""
        text, columns = self._relation(depth)
        units = [c for c in columns if c.role == "unit"]
        wholes = [c.name for c in columns if c.role == "whole"]
        if not units or not wholes:
            return text, columns
        alias, name, by = self._new("n"), self._new("c"), self.r.choice(wholes)
        keys = ", ".join(f"{alias}.{c.name}" for c in [units[0], *(c for c in columns if c.role == "key")][:2])
        over = f"OVER (PARTITION BY {keys} ORDER BY {alias}.{by})"
        one = f"{alias}.{self.r.choice(wholes)}"
        call = self.r.choice(["RANK()", "DENSE_RANK()", f"SUM({one})", "COUNT(*)", f"MAX({one})", f"MIN({one})"])
        listed = [*(f"{alias}.{c.name}" for c in columns), f"{call} {over} AS {name}"]
        return f"(SELECT {', '.join(listed)} FROM {text} AS {alias})", [*columns, _Seen(name, "whole")]

    def _framed(self, depth: int) -> tuple[str, list[_Seen]]:
        """Sums over frames by values and by groups of equal ones, of an order without NULL."""
        text, columns = self._relation(depth)
        units = [c for c in columns if c.role == "unit"]
        wholes = [c.name for c in columns if c.role == "whole"]
        if not units or not wholes:
            return text, columns
        r = self.r
        alias, name, by = self._new("m"), self._new("c"), r.choice(wholes)
        start, end = (
            r.choice(["UNBOUNDED PRECEDING", "2 PRECEDING", "CURRENT ROW"]),
            r.choice(["CURRENT ROW", "1 FOLLOWING"]),
        )
        left_out = r.choice(["", "", " EXCLUDE GROUP", " EXCLUDE TIES"])
        frame = f"{r.choice(['RANGE', 'GROUPS'])} BETWEEN {start} AND {end}{left_out}"
        order = f"ORDER BY COALESCE({alias}.{by}, 0) {frame}"
        call = f"{r.choice(['SUM', 'COUNT', 'MIN', 'MAX'])}({alias}.{r.choice(wholes)})"
        listed = [*(f"{alias}.{c.name}" for c in columns),
                  f"{call} OVER (PARTITION BY {alias}.{units[0].name} {order}) AS {name}"]  # fmt: skip
        return f"(SELECT {', '.join(listed)} FROM {text} AS {alias})", [*columns, _Seen(name, "whole")]

    def _unpivoted(self, depth: int) -> tuple[str, list[_Seen]]:
        """A row for each of some columns that is not NULL."""
        text, columns = self._relation(depth)
        wholes = [c.name for c in columns if c.role == "whole"]
        if len(wholes) < 2:
            return text, columns
        alias, inner, value, name = self._new("q"), self._new("x"), self._new("c"), self._new("k")
        turned = self.r.sample(wholes, 2)
        kept = [c for c in columns if c.name not in turned]
        listed = ", ".join(
            [f"{inner}.{c.name}" for c in kept] + [f"CAST({inner}.{one} AS BIGINT) AS {one}" for one in turned]
        )
        unpivot = f"UNPIVOT ({value} FOR {name} IN ({', '.join(turned)})) AS {alias}"
        return f"(SELECT * FROM (SELECT {listed} FROM {text} AS {inner}) {unpivot})", [*kept, _Seen(value, "whole")]

    def _correlated(self, depth: int) -> tuple[str, list[_Seen]]:
        r = self.r
        (text, columns), (other, inside) = self._relation(depth), self._relation(r.choice([0, depth]))
        role = r.choice(["unit", "unit", "visit"])
        ends = [[c.name for c in found if c.role == role] for found in (columns, inside)]
        values = [[c.name for c in found if c.role == "whole"] for found in (columns, inside)]
        if not all(ends) or not all(values):
            return text, columns
        a, b = self._new("o"), self._new("w")
        parts = [f"{b}.{ends[1][0]} = {a}.{ends[0][0]}"]
        if r.random() < 0.4:
            parts.append(f"{b}.{r.choice(values[1])} = {a}.{r.choice(values[0])}")
        if r.random() < 0.4:
            parts.append(self._condition(b, inside))
        mine, theirs = f"{a}.{r.choice(values[0])}", f"{b}.{r.choice(values[1])}"
        if r.random() < 0.25:
            pair = f"{a}.{r.choice(values[0])}", f"{b}.{r.choice(values[1])}"
            parts.append(
                r.choice([f"{pair[1]} {r.choice(['<', '>=', '<>'])} {pair[0]}", f"{pair[0]} + {pair[1]} > 40"])
            )
        if r.random() < 0.5:
            parts.append(f"{theirs} {r.choice(['<', '<=', '>', '>=', '<>'])} {mine}")
            r.shuffle(parts)
            where = f"{r.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {other} AS {b} WHERE {' AND '.join(parts)})"
        else:
            call = r.choice([f"AVG({theirs})", f"MAX({theirs})", "COUNT(*)", f"SUM({theirs}) + COUNT(*)"])
            nested = f"(SELECT {call} FROM {other} AS {b} WHERE {' AND '.join(parts)})"
            where = f"{mine} {r.choice(['<', '>=', '='])} {nested}"
            if r.random() < 0.3:
                name = self._new("c")
                counted = f"(SELECT COUNT(*) FROM {other} AS {b} WHERE {' AND '.join(parts)})"
                return f"(SELECT {a}.*, {counted} AS {name} FROM {text} AS {a})", [*columns, _Seen(name, "whole")]
        return f"(SELECT * FROM {text} AS {a} WHERE {where})", columns

    def _both(self, depth: int) -> tuple[str, list[_Seen]]:
        (one, left), (two, right) = self._relation(depth), self._relation(depth)
        parts, names = [], (self._new("c"), self._new("c"))
        for text, columns in ((one, left), (two, right)):
            units = [c.name for c in columns if c.role == "unit"]
            if not units:
                return one, left
            alias = self._new("u")
            parts.append(f"SELECT {alias}.{units[0]} AS {names[0]}, {self._whole(alias, columns)} AS {names[1]} "
                         f"FROM {text} AS {alias}")  # fmt: skip
        return f"({' UNION ALL '.join(parts)})", [_Seen(names[0], "unit"), _Seen(names[1], "whole")]

    # Expressions

    def _whole(self, alias: str, columns: list[_Seen]) -> str:
        wholes = [f"{alias}.{c.name}" for c in columns if c.role == "whole"]
        wholes += [f"CAST(epoch({alias}.{c.name}) / 60 AS BIGINT) % 40" for c in columns if c.role == "span"]
        if not wholes:
            return "1"
        one = self.r.choice(wholes)
        return self.r.choice(
            [one, f"{one} % 7", f"COALESCE({one}, 2)", f"ABS({one} % 5)", f"CASE WHEN {one} > 2 THEN {one} END"]
        )

    def _condition(self, alias: str, columns: list[_Seen]) -> str:
        found = []
        for c in columns:
            name = f"{alias}.{c.name}"
            if c.role == "whole":
                found += [f"{name} > {self.r.randrange(6)}", f"{name} IS NOT NULL", f"{name} % 2 = 0"]
            elif c.role == "key":
                found += [f"{name} IN ('a', 'x', 'f', 'b')", f"{name} <> 'b'"]
            elif c.role == "span":
                found += [f"{name} > INTERVAL {self.r.randrange(20)} HOUR", f"epoch({name}) <= 32400"]
                found += [f"EXTRACT(hour FROM {name}) >= {self.r.randrange(12)}", f"{name} <= INTERVAL 1 DAY"]
            elif c.role == "day":
                found.append(f"{name} < DATE '2024-01-{self.r.randrange(1, 28):02}'")
        wholes, keys = ([f"{alias}.{c.name}" for c in columns if c.role == role] for role in ("whole", "key"))
        if wholes and keys:
            pairs = "('a', 3), ('b', 7), ('x', 3), ('f', 2), ('m', 1), ('c', 0)"
            listed = self.r.choice([pairs, f"VALUES {pairs}"])
            found.append(f"({keys[0]}, {wholes[0]}) {self.r.choice(['', 'NOT '])}IN ({listed})")
        one = self.r.choice(found) if found else "TRUE"
        other = self.r.choice(found) if found else "TRUE"
        return self.r.choice([one, one, f"({one} OR {other})", f"NOT ({one})"])
