"""Random declarations, rows and queries, all from one seed.

A scene is a dataset with awkward rows: people (the unit, one row each), visits (heavy tail), items (their unit is found
over visits) and hospitals (public). Queries come from a grammar over everything that the private core supports.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from privacy.aggregate import AggregateFunction
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, Limits, Other, PublicKeys, Reference, Table
from privacy.unit import PrivacyUnit
from tests.audit.grammar import DEAD, REALS, TRUTHS, WHOLES, WORDS, Grammar

__all__ = [
    "Query",
    "Row",
    "Scene",
    "make_query",
    "make_query_of_products",
    "make_scene",
    "owner_of",
    "restricted",
    "without_rows",
]

Row = Mapping[str, Any]
T = ColumnType

_WHOLE_BOUNDS = [(0, 100), (50, 60), (-3, 4), (-20, -10), (0, 0), (7, 7), (0, 1), (-(10**12), 10**12), (0, 2**30 + 5)]
_REAL_BOUNDS = [
    ("0", "1"),
    ("-50.5", "60.25"),
    ("0.1", "99.5"),
    ("10", "10"),
    ("-1000000", "-1"),
    ("0", "0"),
    ("-3", "5e9"),
    ("0", "128"),
]
_WHOLE_EDGES = [0, 1, -1, 7, 50, 60, 2**53 - 1, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]
_REAL_EDGES = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -7.25,
    1e-300,
    5e-324,
    2.0**53 + 2,
    1e300,
    -1e308,
    math.nan,
    math.inf,
    -math.inf,
]
_TEXTS = [
    "",
    " ",
    "a",
    "A",
    "ab",
    "B%_",
    "é",
    "e\u0301",
    "ß",
    "日本",
    "'",
    '"',
    "x\ty",
    "Straße",
    "0",
    "12",
    "\U0010ffff",
]
_DATES = [
    datetime.date(1, 1, 1),
    datetime.date(1582, 10, 4),
    datetime.date(1969, 12, 31),
    datetime.date(2000, 2, 29),
    datetime.date(2024, 12, 30),
    datetime.date(9999, 12, 31),
]
_MOMENTS = [
    datetime.datetime(1, 1, 1),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(2020, 1, 5, 12),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999),
]


@dataclass(frozen=True)
class Query:
    """A query text with its named parameters."""

    sql: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Scene:
    """A declaration and its rows. `spare` is a unit that is not in the data, but whose rows are: a neighbour has it."""

    seed: int
    dataset: Dataset
    rows: Mapping[str, Sequence[Row]]
    units: tuple[Any, ...]
    spare: Any

    def table(self, name: str) -> Table:
        """A table that is there."""
        table = self.dataset.table(name)
        assert table is not None
        return table


def owner_of(scene: Scene, table: str) -> list[Any]:
    """The unit's key of every row of a table, None where it leads to nobody (a public table: always None)."""
    declared = scene.table(table)
    known = {row["person_id"] for row in scene.rows["people"]}
    if not declared.protected:
        return [None] * len(scene.rows[table])
    if declared.unit_path:
        parents = {row["visit_id"]: row["person_id"] for row in scene.rows["visits"]}
        owners = [parents.get(row["visit_id"]) for row in scene.rows[table]]
    else:
        owners = [row["person_id"] for row in scene.rows[table]]
    return [owner if owner in known else None for owner in owners]


def restricted(scene: Scene, units: frozenset[Any]) -> Mapping[str, list[Row]]:
    """The rows of these units in all tables, and everything that belongs to nobody."""
    kept: dict[str, list[Row]] = {}
    for name, rows in scene.rows.items():
        if not scene.table(name).protected:
            kept[name] = list(rows)
            continue
        owners = owner_of(scene, name)
        kept[name] = [row for row, owner in zip(rows, owners, strict=True) if owner is not None and owner in units]
    return kept


def without_rows(scene: Scene, table: str, places: frozenset[int]) -> Scene:
    """The scene without some rows of a table; for making counterexamples smaller."""
    rows = [row for place, row in enumerate(scene.rows[table]) if place not in places]
    return replace(scene, rows={**scene.rows, table: rows})


# Scenes


def make_scene(seed: int) -> Scene:
    """A declaration and rows. Deterministic in the seed."""
    r = random.Random(seed)
    dataset = _dataset(r)
    count = r.randint(5, 12)
    keys = _unit_keys(r, dataset, count + 1)
    rows: dict[str, list[Row]] = {name: [] for name in ("people", "visits", "items", "hospitals")}
    hospitals = [1, 2, 3, 2**53 + 1][: r.randint(1, 4)]
    tables = {table.name: table for table in dataset.tables}
    rows["hospitals"] = [_row(r, tables["hospitals"], hospital_id=key) for key in hospitals]
    sizes = [0, 1, 5, 50] + [r.choice([0, 1, 1, 2, 3, 5, 8]) for _ in range(count)]
    visit = item = 0
    for place, key in enumerate(keys):
        rows["people"].append(_row(r, tables["people"], person_id=key, hospital_id=r.choice([*hospitals, None, 99])))
        size = sizes[place % len(sizes)]
        habit = _row(r, tables["visits"], visit_id=0, person_id=key, hospital_id=None)
        for _ in range(size):
            visit += 1
            stay = _row(
                r, tables["visits"], visit_id=visit, person_id=key, hospital_id=r.choice([*hospitals, None, 99])
            )
            if r.random() < 0.3:  # several rows of a unit in one group
                stay = {**habit, **{name: stay[name] for name in ("visit_id", "hospital_id", "cost", "days")}}
            rows["visits"].append(stay)
            for _ in range(r.choice([0, 1, 1, 3] if size < 20 else [0, 0, 1, 2])):
                item += 1
                rows["items"].append(_row(r, tables["items"], item_id=item, visit_id=visit))
    for table in rows.values():
        r.shuffle(table)
    spare = keys[r.randrange(len(keys))]
    return Scene(seed, dataset, rows, tuple(key for key in keys if key != spare), spare)


def _unit_keys(r: random.Random, dataset: Dataset, count: int) -> list[Any]:
    table = dataset.table("people")
    assert table is not None
    column = table.column("person_id")
    assert column is not None
    pool: list[Any]
    if column.type is T.TEXT:
        pool = [text for text in _TEXTS if text] + [f"p{i}" for i in range(30)]
    else:
        pool = [*_WHOLE_EDGES, *range(2, 30)]
    return r.sample(list(dict.fromkeys(pool)), count)


def _dataset(r: random.Random) -> Dataset:
    key = r.choice([T.INTEGER, T.INTEGER, T.TEXT])

    def whole(name: str, *, keys: tuple[Any, ...] | None = None) -> Column:
        low, high = r.choice(_WHOLE_BOUNDS)
        bounds = ValueBounds(Fraction(low), Fraction(high))
        return Column(name, T.INTEGER, bounds, _keys(keys), nullable=r.random() < 0.7)

    def real(name: str) -> Column:
        low, high = r.choice(_REAL_BOUNDS)
        return Column(name, T.NUMBER, ValueBounds(Fraction(low), Fraction(high)), nullable=r.random() < 0.7)

    def words(name: str, *keys: str) -> Column:
        declared = (*keys, None) if keys and r.random() < 0.5 else keys
        other = r.choice([None, None, Other(None), Other("other")])
        return Column(name, T.TEXT, keys=_keys(declared or None, other), nullable=r.random() < 0.6)

    levels: tuple[Any, ...] = r.choice([tuple(range(-2, 4)), (1, 5, 9), (2**53 + 1, 0), (3,), (1, None)])
    people = Table(
        "people",
        (
            Column("person_id", key, nullable=False),
            whole("age"),
            real("score"),
            Column("income", T.NUMBER),
            Column("big", T.INTEGER),
            words("Gesch_lecht", "Female", "Male", "né"),
            replace(
                whole("level", keys=levels),
                keys=PublicKeys(levels, r.choice([None, Other(None), Other(77)])),
                nullable=r.random() < 0.8,
            ),
            words("edu"),
            Column("born", T.DATE, nullable=r.random() < 0.7),
            Column("seen", T.TIMESTAMP),
            Column("member", T.BOOLEAN, nullable=r.random() < 0.6),
            Column("hospital_id", T.INTEGER),
        ),
        protected=True,
        key="person_id",
        references=(Reference("hospital_id", "hospitals", "hospital_id"),),
        unit_column="person_id",
        contribution=ContributionBound(1, 1, 1),
    )
    visits = Table(
        "visits",
        (
            Column("visit_id", T.INTEGER, nullable=False),
            Column("person_id", key, nullable=False),
            Column("hospital_id", T.INTEGER),
            real("cost"),
            whole("days"),
            words("dept"),
            words("kind", "a", "b", "日本"),
            Column("day", T.DATE, nullable=r.random() < 0.5),
            Column("urgent", T.BOOLEAN, nullable=r.random() < 0.5),
        ),
        protected=True,
        key="visit_id",
        references=(
            Reference("person_id", "people", "person_id"),
            Reference("hospital_id", "hospitals", "hospital_id"),
        ),
        unit_column="person_id",
        contribution=_many(r, once=r.random() < 0.08),
    )
    items = Table(
        "items",
        (
            Column("item_id", T.INTEGER, nullable=False),
            Column("visit_id", T.INTEGER, nullable=False),
            real("price"),
            whole("qty"),
            words("code", "x", "y"),
            words("note"),
        ),
        protected=True,
        key="item_id",
        references=(Reference("visit_id", "visits", "visit_id"),),
        unit_path=(Reference("visit_id", "visits", "visit_id"),),
        contribution=_many(r),
    )
    hospitals = Table(
        "hospitals",
        (
            Column("hospital_id", T.INTEGER, nullable=False),
            words("region", "north", "south"),
            replace(whole("beds"), nullable=True),
        ),
        protected=False,
        key="hospital_id",
    )
    return Dataset(
        "audit",
        PrivacyUnit("people", "person_id"),
        (people, visits, items, hospitals),
        policy_version=1,
        data_version="v",
        limits=Limits(epsilon_max=Fraction(10), cells_max=2_000),
    )


def _many(r: random.Random, *, once: bool = False) -> ContributionBound:
    if once:  # a bound like another: the units have more rows
        return ContributionBound(1, 1, 1)
    if r.random() < 0.2:  # bounds that do not bind, and sums beyond 64 bits
        return ContributionBound(200, r.randint(1, 5), 200)
    return ContributionBound(r.randint(2, 5), r.randint(1, 5), r.randint(1, 5))


def _keys(values: Sequence[Any] | None, other: Other | None = None) -> PublicKeys | None:
    return None if values is None else PublicKeys(tuple(values), other)


def _row(r: random.Random, table: Table, **given: Any) -> Row:
    return {column.name: given[column.name] if column.name in given else _value(r, column) for column in table.columns}


def _value(r: random.Random, column: Column) -> Any:
    if column.nullable and r.random() < 0.15:
        return None
    value = _some(r, column)
    if not column.nullable and isinstance(value, float) and not math.isfinite(value):
        return 0.25
    return value


def _some(r: random.Random, column: Column) -> Any:
    chance = r.random()
    if column.keys is not None and (column.keys.other is None or chance < 0.7):
        return r.choice([key for key in column.keys.values if key is not None])
    match column.type:
        case T.INTEGER:
            if column.bounds is not None and chance < 0.7:
                return r.randint(int(column.bounds.lower), int(column.bounds.upper))
            return r.choice(_WHOLE_EDGES) if chance < 0.85 else r.randint(-20, 120)
        case T.NUMBER:
            if column.bounds is not None and chance < 0.7:
                low, high = float(column.bounds.lower), float(column.bounds.upper)
                return r.uniform(low, high) if chance < 0.45 else r.choice([low, high, high])
            return r.choice(_REAL_EDGES) if chance < 0.85 else round(r.uniform(-100, 100), 2)
        case T.TEXT:
            return r.choice(_TEXTS)
        case T.BOOLEAN:
            return chance < 0.5
        case T.DATE:
            return r.choice(_DATES) if chance < 0.3 else datetime.date(2020 + r.randint(0, 3), r.randint(1, 12), 3)
        case T.TIMESTAMP:
            return (
                r.choice(_MOMENTS) if chance < 0.3 else datetime.datetime(2021, r.randint(1, 12), 5, r.randint(0, 23))
            )


# Queries


def make_query(scene: Scene, seed: int) -> Query:
    """A query about the scene's tables. Some are refused; most are answered."""
    return _Grammar(random.Random(seed), scene.dataset).query()


def make_query_of_products(scene: Scene, seed: int) -> Query:
    """A query whose aggregates are mostly of two values, or of higher moments."""
    return _Products(random.Random(seed), scene.dataset).query()


class _Grammar(Grammar):
    """One query."""

    def __init__(self, r: random.Random, dataset: Dataset) -> None:
        super().__init__(r)
        self.dataset = dataset
        self.columns: list[tuple[str, Column]] = []
        self.parameters: dict[str, Any] = {}

    def query(self) -> Query:
        source = self._from()
        keys = [self._key() for _ in range(self.r.choice([0, 0, 1, 1, 1, 2]))]
        aggregates = [self._aggregate() for _ in range(self.r.choice([1, 1, 2, 3, 4]))]
        where = f" WHERE {self.truth(2)}" if self.r.random() < 0.5 else ""
        listed = [f"{key} AS g{i}" for i, key in enumerate(keys)] + [f"{a} AS m{i}" for i, a in enumerate(aggregates)]
        group = f" GROUP BY {', '.join(f'g{i}' for i in range(len(keys)))}" if keys else ""
        having = f" HAVING {aggregates[0]} > 3" if keys and self.r.random() < 0.1 else ""
        order = " ORDER BY 1" if self.r.random() < 0.1 else ""
        text = f"SELECT {', '.join(listed)} FROM {source}{where}{group}{having}{order}"
        if self.r.random() < 0.06:
            text = f"WITH q AS ({text}), w AS (SELECT COUNT(*) AS n FROM people) SELECT q.*, w.n FROM q, w"
        return Query(text, self.parameters)

    def _from(self) -> str:
        root = self.r.choice(["people", "visits", "visits", "visits", "items"])
        parts, letter = [f"{root} {root[0]}"], root[0]
        self._see(root, letter)
        if root == "items" and self.r.random() < 0.5:
            parts.append(f"{self._join()} visits v ON i.visit_id = v.visit_id")
            self._see("visits", "v")
            letter = "v"
        if letter == "v" and self.r.random() < 0.45:
            parts.append(f"{self._join()} people p ON v.person_id = p.person_id")
            self._see("people", "p")
        if letter in "pv" and self.r.random() < 0.35:
            parts.append(f"{self._join()} hospitals h ON {letter}.hospital_id = h.hospital_id")
            self._see("hospitals", "h")
        return " ".join(parts)

    def _join(self) -> str:
        return self.r.choice(["JOIN", "LEFT JOIN"])

    def _see(self, table: str, letter: str) -> None:
        declared = self.dataset.table(table)
        assert declared is not None
        self.columns += [(f'{letter}."{column.name}"', column) for column in declared.columns]

    # Aggregates and keys

    def _aggregate(self) -> str:
        kind = self.r.choice(
            ["COUNT(*)"] * 3 + ["unit", "value", "if"] + ["SUM"] * 4 + ["AVG"] * 3 + ["V"] * 3 + ["SA"] * 3
        )
        if kind == "COUNT(*)":
            text = kind
        elif kind == "unit":
            units = [name for name, column in self.columns if column.name == "person_id"]
            text = f"COUNT(DISTINCT {units[0]})" if units else "COUNT(*)"
        elif kind == "value":
            text = f"COUNT({self.r.choice([self.whole, self.real, self.words])(1)})"
        elif kind == "if":
            return f"COUNT_IF({self.truth(1)})"
        elif kind == "SA":
            value = self.bounded(self.r.choice([0, 0, 2]))
            text = f"SUM({value}), {self.r.choice(['AVG', 'AVG', 'AVG', 'STDDEV'])}({value})"
        elif kind == "V":
            name = self.r.choice(["VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV", "STDDEV_POP", "STDDEV_SAMP"])
            text = f"{name}({self.bounded(1)})"
        else:
            text = f"{kind}({self.bounded(2)})"
        filtered = f" FILTER (WHERE {self.truth(1)})" if self.r.random() < 0.25 else ""
        return f"{text}{filtered}"

    def _key(self) -> str:
        makers: list[Callable[[], str]] = [
            lambda: self._of(lambda c: c.keys is not None) or "1 + 1",
            lambda: self._of(lambda c: c.keys is not None) or "1 + 1",
            lambda: self._of(lambda c: c.type in (T.TEXT, T.DATE, T.BOOLEAN)) or "'x'",
            lambda: self._of(lambda c: c.type is T.INTEGER and c.name in ("age", "days", "qty", "beds")) or "TRUE",
            lambda: f"({self.truth(1)})",
            lambda: f"month({self.day(0)})",
            lambda: f"CASE WHEN {self.truth(1)} THEN 'low' WHEN {self.truth(0)} THEN 'mid' END",
            lambda: f"CASE WHEN FALSE THEN 'a' WHEN {self._folded()} THEN 'b' END",
            lambda: f"({self.whole(1)}) % 3",
            lambda: f"substr({self.words(0)}, 1, 1)",
            lambda: f"COALESCE({self.words(0)}, 'none')",
            lambda: f"({self._of(lambda c: c.keys is not None) or '1'} IS NULL)",
            lambda: f"COALESCE({self._of(lambda c: c.keys is not None and c.type is T.INTEGER) or '1'}, -9)",
            lambda: f"COALESCE({self._of(lambda c: c.keys is not None and c.type is T.TEXT) or '1'}, 'none')",
            lambda: f"CASE WHEN {self._of(lambda c: c.keys is not None) or '1'} IS NULL THEN 'none' ELSE 'some' END",
            lambda: f"date_trunc('month', {self.day(0)})",
            lambda: f"({self.whole(1)}) // 10",
            lambda: f"{self.r.choice(['FLOOR', 'CEIL', 'ROUND', 'TRUNC'])}(({self.bounded(1)}) / 10) * 10",
        ]
        return self.r.choice(makers)()

    def _of(self, wanted: Callable[[Column], bool]) -> str | None:
        found = [name for name, column in self.columns if wanted(column) and column.name != "person_id"]
        return self.r.choice(found) if found else None

    def bounded(self, depth: int) -> str:
        """A number with proved bounds."""
        column = self._of(lambda c: c.bounds is not None)
        r = self.r
        if depth == 0 or r.random() < 0.45:
            return column or "1"
        some = self.bounded
        return r.choice(
            [
                lambda: f"({some(depth - 1)} + {some(depth - 1)})",
                lambda: f"({some(depth - 1)} - {some(0)})",
                lambda: f"({some(depth - 1)} * {r.choice(['2', '-3', '0.5', '0'])})",
                lambda: f"({some(depth - 1)} / {r.choice(['7', '-0.25'])})",
                lambda: f"-({some(depth - 1)})",
                lambda: f"ABS({some(depth - 1)})",
                lambda: f"COALESCE({some(depth - 1)}, {r.choice(['0', '5', '-1.5'])})",
                lambda: f"CASE WHEN {self.truth(1)} THEN {some(depth - 1)} ELSE {r.choice(['0', '1', 'NULL'])} END",
                lambda: (
                    f"GREATEST(-3, LEAST({r.choice([self.whole, self.real])(2)}, {r.choice(['9', '0.75', '1000'])}))"
                ),
                lambda: f"GREATEST(-3, LEAST({self.real(0)} * {self.real(0)}, 0.75))",
                lambda: f"year({self.day(0)})",
                lambda: f"CAST({some(depth - 1)} AS BIGINT)",
                lambda: f"ROUND({some(depth - 1)}, 1)",
                lambda: f"NULLIF({some(depth - 1)}, {r.choice(['0', '7'])})",
            ]
        )()

    # Expressions

    def whole(self, depth: int) -> str:
        """An INTEGER."""
        column = self._of(lambda c: c.type is T.INTEGER)
        r = self.r
        if depth == 0 or r.random() < 0.4:
            return column if column is not None and r.random() < 0.75 else self._constant([0, 1, -1, 3, 50, 2**53 + 1])
        return self.one_of(WHOLES, depth)

    def real(self, depth: int) -> str:
        """A NUMBER."""
        column = self._of(lambda c: c.type is T.NUMBER)
        r = self.r
        if depth == 0 or r.random() < 0.4:
            return column if column is not None and r.random() < 0.75 else r.choice(["0.5", "1e6", "-2.25", "1e200"])
        return self.one_of(REALS, depth)

    def words(self, depth: int) -> str:
        """A TEXT."""
        column = self._of(lambda c: c.type is T.TEXT)
        r = self.r
        if depth == 0 or r.random() < 0.5:
            return column if column is not None and r.random() < 0.8 else self._constant(_TEXTS)
        return self.one_of(WORDS, depth)

    def day(self, depth: int) -> str:
        """A DATE."""
        column = self._of(lambda c: c.type is T.DATE)
        moment = self._of(lambda c: c.type is T.TIMESTAMP)
        if moment is not None and self.r.random() < 0.2:
            return f"CAST({moment} AS DATE)"
        if column is None or self.r.random() < 0.1:
            return f"DATE '{self.r.choice(_DATES)}'"
        return (
            f"date_trunc('{self.r.choice(['month', 'year'])}', {column})" if depth and self.r.random() < 0.4 else column
        )

    def truth(self, depth: int) -> str:
        """A BOOLEAN."""
        column = self._of(lambda c: c.type is T.BOOLEAN)
        r = self.r
        compare = r.choice(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"])
        simple: list[Callable[[], str]] = [
            lambda: f"{self.whole(depth)} {compare} {self.whole(0)}",
            lambda: f"{self.real(depth)} {compare} {self.real(0)}",
            lambda: f"{self.real(0)} * {self.real(0)} {compare} 0.5",
            lambda: f"{self.words(depth)} {compare} {self.words(0)}",
            lambda: f"{self.day(depth)} {compare} {self.day(0)}",
            lambda: f"{self.whole(0)} BETWEEN -5 AND 55",
            lambda: f"{self.whole(0)} IN (1, 50, {self._constant([0, 3, 7])})",
            lambda: f"{self.words(0)} LIKE '{r.choice(['%a%', 'A_', '%', '_'])}'",
            lambda: f"{r.choice([self.real, self.words, self.whole])(depth)} IS {r.choice(['', 'NOT '])}NULL",
            lambda: column or "TRUE",
            lambda: self._folded(),
        ]
        if depth == 0 or r.random() < 0.55:
            return r.choice(simple)()
        return self.one_of(TRUTHS, depth)

    def _folded(self) -> str:
        """What optimizers fold by the extremes of columns: dead branches, contradictions, comparisons at the edges."""
        r = self.r
        n, x, w = self.whole(0), self.real(0), self.words(0)
        dead = r.choice(DEAD).format(n=n, x=x, w=w)
        edge = r.choice(
            [
                f"{x} > {r.choice(['1e200', '-1e200', '60.25', '128'])} AND {n} >= 0",
                f"{n} < {r.choice(['-20', '0', '1000000000001'])} OR {n} IS NULL",
                f"{n} = {n} AND {w} IS NOT NULL",
                f"{n} BETWEEN -3 AND 1073741829",
                f"COALESCE({n}, 0) = NULLIF({n}, 7)",
            ]
        )
        text = f"CASE WHEN {dead} THEN 'a' WHEN {edge} THEN 'b'{r.choice(['', ' ELSE NULL', f' ELSE {w}'])} END"
        number = f"CASE WHEN {dead} THEN 1 WHEN {edge} THEN {n} ELSE 3 END"
        return r.choice(
            [
                f"{text} IN ('a', 'b')",
                f"{text} NOT IN ('a', 'b', 'ab', 'A', '')",
                f"{number} IN (1, 3, 50)",
                f"{number} {r.choice(['=', '<', '>='])} {n}",
                f"COALESCE({text}, 'none') LIKE 'b%'",
                f"(NOT {dead}) AND {edge}",
            ]
        )

    def _constant(self, values: Sequence[Any]) -> str:
        value = self.r.choice(values)
        if self.r.random() < 0.1:
            name = f"v{len(self.parameters)}"
            self.parameters[name] = value
            return f"${name}"
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


_OF_PAIRS = [name for function in AggregateFunction if function.described.of_pairs for name in function.described.names]
_HIGHER = [name for function in AggregateFunction if function.degree > 2 for name in function.described.names]


class _Products(_Grammar):
    """Queries for products of two values and for moments of degree 3 and 4."""

    def _aggregate(self) -> str:
        filtered = f" FILTER (WHERE {self.truth(1)})" if self.r.random() < 0.25 else ""
        kind = self.r.choice(["pair", "pair", "pair", "higher", "other"])
        if kind == "pair":
            first, second = self.bounded(1), self.bounded(1)
            names = self.r.sample(_OF_PAIRS, self.r.choice([1, 1, 2]))
            return ", ".join(f"{name}({first}, {second}){filtered}" for name in names)
        if kind == "higher" and _HIGHER:
            return f"{self.r.choice(_HIGHER)}({self.bounded(1)}){filtered}"
        return super()._aggregate()
