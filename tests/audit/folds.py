"""Worlds that differ in one person at the edge of every column, and expressions that optimizers love to fold.

The base world's columns hold a small range each. The one person holds, in every column, the greatest value, or the
least, or NULL, or a value that nobody else has: statistics of columns are different in each of the worlds, and so
is every fold that reads them. Expressions are built around the edges of those ranges: contradictions, `x = x`, CASE
WHEN FALSE, IN over CASE, COALESCE over columns without NULL, casts of extremes, prefixes, branches of other types.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from engines.declaration import described_column
from engines.described import DescribedColumn
from engines.handlers.connection import identifier
from engines.handlers.layout import stored_type
from engines.records import read_record
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, Limits, PublicKeys, Reference, Table
from privacy.unit import PrivacyUnit
from tests.audit.grammar import DEAD, REALS, TRUTHS, WHOLES, WORDS, Grammar

__all__ = [
    "CROWDS",
    "DATASET",
    "PEOPLE",
    "VARIANTS",
    "Question",
    "make_normed_question",
    "make_question",
    "write_crowded_world",
    "write_world",
]

T = ColumnType
PEOPLE = 40
"""People of the base world."""

_COLUMNS = (
    Column("n", T.INTEGER),
    Column("m", T.INTEGER, ValueBounds(Fraction(0), Fraction(50)), nullable=False),
    Column("same", T.INTEGER),
    Column("x", T.NUMBER),
    Column("y", T.NUMBER, ValueBounds(Fraction(-5), Fraction(5)), nullable=False),
    Column("s", T.TEXT, length_max=16),
    Column("k", T.TEXT, keys=PublicKeys(("b", "a", "c"))),
    Column("j", T.INTEGER, keys=PublicKeys((1, 2, 3))),
    Column("f", T.BOOLEAN),
    Column("d", T.DATE),
    Column("t", T.TIMESTAMP),
)
DATASET = Dataset(
    "folds",
    PrivacyUnit("people", "person_id"),
    (
        Table(
            "people",
            (Column("person_id", T.INTEGER, nullable=False), *_COLUMNS),
            protected=True,
            key="person_id",
            unit_column="person_id",
            contribution=ContributionBound(1, 1, 1),
        ),
        Table(
            "visits",
            (Column("visit_id", T.INTEGER, nullable=False), Column("person_id", T.INTEGER, nullable=False), *_COLUMNS),
            protected=True,
            key="visit_id",
            references=(Reference("person_id", "people", "person_id"),),
            unit_column="person_id",
            contribution=ContributionBound(4, 2, 3),
        ),
    ),
    policy_version=1,
    data_version="folds",
    limits=Limits(epsilon_max=Fraction(10), cells_max=10_000),
)

_DAY = datetime.date(2020, 6, 1)
_NOON = datetime.datetime(2020, 6, 1, 12)
_GREATEST: Mapping[str, Any] = {
    "n": 2**63 - 1, "m": 99, "same": 8, "x": 1.7e308, "y": 99.5, "s": "\U0010ffff\U0010ffff", "k": "c", "j": 3,
    "f": True, "d": datetime.date(9999, 12, 31), "t": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
}  # fmt: skip
_LEAST: Mapping[str, Any] = {
    "n": -(2**63), "m": -99, "same": -8, "x": -1.7e308, "y": -99.5, "s": "", "k": "b", "j": 1,
    "f": False, "d": datetime.date(1, 1, 1), "t": datetime.datetime(1, 1, 1),
}  # fmt: skip
_NEW: Mapping[str, Any] = {
    "n": 15, "m": 26, "same": 6, "x": 12.5, "y": 0.0625, "s": "ward 5\u00e9", "k": "c", "j": 2,
    "f": True, "d": datetime.date(2020, 6, 20), "t": datetime.datetime(2020, 6, 20, 3),
}  # fmt: skip
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "greatest": _GREATEST,
    "least": _LEAST,
    "null": dict.fromkeys(_GREATEST),
    "new": _NEW,
    # Just beyond the base world's edges: where a fold changes its mind.
    "beyond": {
        **_NEW,
        "n": 31,
        "m": 31,
        "same": 8,
        "x": 30.5,
        "y": 4.0,
        "s": "ward 99",
        "d": datetime.date(2020, 7, 9),
    },
}
"""What the one person holds in every column, in the table of people and in one visit."""


CROWDS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "greatest": (_GREATEST,),
    "least": (_LEAST,),
    "null": (VARIANTS["null"],),
    "both": (_GREATEST, _LEAST, VARIANTS["null"]),
    "groups": tuple({**_GREATEST, "n": 10**18 + i, "s": f"{i}", "k": "abc"[i % 3], "j": i % 4} for i in range(600)),
}
"""What the visits of one person hold, in turn, in worlds where that person has as many as a snapshot keeps."""


def _base(number: int) -> Mapping[str, Any]:
    """A row of the base world: no value at an edge, a column that is constant, no NULL anywhere."""
    return {
        "n": 10 + number % 21 + (number % 21 == 5),
        "m": 10 + number % 16,
        "same": 7,
        "x": 10.25 + number % 20,
        "y": -2.0 + (number % 5) / 2,
        "s": f"ward {number % 5}",
        "k": "ba"[number % 2],
        "j": (1, 3)[number % 2],
        "f": False,
        "d": _DAY + datetime.timedelta(days=number % 9),
        "t": _NOON + datetime.timedelta(hours=number % 9),
    }


def write_world(path: Path, variant: str | None) -> None:
    """A snapshot of the base world, with the one person of a variant when there is one."""
    _write(path, () if variant is None else (VARIANTS[variant],))


def write_crowded_world(path: Path, crowd: str, *, visits: int) -> None:
    """A snapshot of the base world and one more person with so many visits."""
    rows = CROWDS[crowd]
    _write(path, tuple(rows[i % len(rows)] for i in range(visits)))


def _write(path: Path, more: Sequence[Mapping[str, Any]]) -> None:
    """The base world, and one more person with these visits where there are any."""
    people = [{"person_id": number, **_base(number)} for number in range(PEOPLE)]
    visits = [{"visit_id": i, "person_id": i // 3, **_base(i)} for i in range(3 * PEOPLE)]
    people += [{"person_id": PEOPLE, **row} for row in more[:1]]
    visits += [{"visit_id": 3 * PEOPLE + i, "person_id": PEOPLE, **row} for i, row in enumerate(more)]
    with closing(duckdb.connect(str(path))) as connection:
        for table, rows in zip(DATASET.tables, (people, visits), strict=True):
            parts = [
                f"CAST({_literal(name)} AS {stored_type(_described(column))}) AS {identifier(name)}"
                for column in table.columns
                for name in (column.name,)
            ]
            values = [[row[column.name] for row in rows] for column in table.columns]
            units = [row["person_id"] for row in rows]
            lists = ", ".join(
                f"unnest(CAST(${i + 1} AS {_plain(column)}[])) AS {_literal(column.name)}"
                for i, column in enumerate(table.columns)
            )
            place = len(values) + 1
            connection.execute(
                f"CREATE TABLE {table.name} AS SELECT {', '.join(parts)}, "
                f'CAST(unit AS INTEGER) AS "unit$id", hash(unit) AS "unit$draw" '
                f"FROM (SELECT {lists}, unnest(CAST(${place} AS BIGINT[])) AS unit) ORDER BY unit",
                [*values, units],
            )


def _literal(name: str) -> str:
    return identifier(f"in {name}")


def _plain(column: Column) -> str:
    return stored_type(replace(_described(column), keys=None))


def _described(column: Column) -> DescribedColumn:
    return read_record(DescribedColumn, described_column(column))


@dataclass(frozen=True)
class Question:
    """A question of several expressions; `expressions` is how many were generated for it."""

    sql: str
    expressions: int


def make_question(seed: int, *, filters: int = 10) -> Question:
    """A question with expressions in WHERE, GROUP BY, FILTER and sums. Deterministic in the seed."""
    return _Folds(random.Random(seed)).question(filters)


def make_normed_question(seed: int, *, aggregates: int = 8) -> Question:
    """A question that chooses norms, and often value bounds, for all that is summed. Deterministic in the seed."""
    return _Normed(random.Random(seed)).question(aggregates)


_NUMBERS = ("n", "m", "same", "j")

_WHOLES = (
    *(form for form in WHOLES if "*" not in form),
    "({wholecase})",
    "(CASE WHEN {truth0} THEN {whole0} WHEN {never} THEN {whole0} ELSE NULL END)",
    "NULLIF({whole}, {whole0})",
    "[year|month|dayofyear|week]({moment})",
    "date_diff('[day|month|year]', {day}, {dayedge})",
    "[LEAST|GREATEST]({whole}, {whole0})",
)
_REALS = (
    *REALS,
    "({realcase})",
    "(CASE WHEN {truth0} THEN {whole0} ELSE {real0} END)",
    "COALESCE({real}, {real0})",
    "[EXP|LN]({real})",
)
_WORDS = (
    *WORDS,
    "({wordcase})",
    "SUBSTR({words}, [1|2|6], [0|1|4])",
    "NULLIF({words}, {wordedge})",
    "CAST({moment} AS VARCHAR)",
    "REPLACE({words}, 'ward', 'w')",
    "dayname({moment})",
)
_TRUTHS = (
    *TRUTHS,
    "({wordcases} IN ([NULL, |]{wordedges}))",
    "({wordcases} NOT IN ({wordedges}))",
    "({numbercases} IN ({numberedges}))",
    "({numbercases} {compare} {whole0})",
    "({daycases} {compare} {dayedge})",
    "({truthcase})",
    "({whole} {compare} {whole0})",
    "({real} {compare} {real0})",
    "({words} {compare} {words0})",
    "({words} LIKE '[ward%|w_rd 4|%9|1%]')",
    "(COALESCE({truth}, {truth0}))",
    "({whole} IN ({numberedges}))",
)
_DEAD = (*DEAD, "'a' = 'b'", "({d} < DATE '0001-01-01' OR {d} IS DISTINCT FROM {d})")


class _Folds(Grammar):
    """One question; its forms are those of the other generator, and more around the worlds' edges."""

    def __init__(self, r: random.Random) -> None:
        super().__init__(r)
        self.scope = ["v"]

    def question(self, filters: int) -> Question:
        r = self.r
        source = r.choice(["people", "people", "visits", "join", "left"])
        if source in ("join", "left"):
            kind = "JOIN" if source == "join" else "LEFT JOIN"
            text = f"visits v {kind} people p ON v.person_id = p.person_id"
            self.scope = ["v", "p"]
        else:
            text = f"{source} v"
        keys = [self._key() for _ in range(r.choice([0, 1, 1, 2]))]
        where = [self.truth(3) for _ in range(r.choice([0, 1, 1, 2]))]
        parts = [self._aggregate() for _ in range(filters)]
        listed = [f"{key} AS g{i}" for i, key in enumerate(keys)] + [f"{part} AS a{i}" for i, part in enumerate(parts)]
        sql = f"SELECT {', '.join(listed)} FROM {text}"
        if where:
            sql += " WHERE " + f" {r.choice(['AND', 'OR'])} ".join(where)
        if keys:
            sql += " GROUP BY " + ", ".join(f"g{i}" for i in range(len(keys)))
        return Question(sql, len(keys) + len(where) + len(parts))

    def _aggregate(self) -> str:
        r = self.r
        return r.choice(
            [
                lambda: f"COUNT_IF({self.truth(2)})",
                lambda: f"COUNT(*) FILTER (WHERE {self.truth(2)})",
                lambda: f"COUNT({self.words(2)})",
                lambda: f"SUM(GREATEST(0, LEAST({self.whole(2)}, 9)))",
            ]
        )()

    def _key(self) -> str:
        return self.r.choice(
            [
                lambda: self._of("k"),
                lambda: self._of("j"),
                lambda: f"CASE WHEN FALSE THEN 'a' WHEN {self.truth(2)} THEN 'b' END",
                lambda: f"CASE WHEN {self.truth(1)} THEN 1 WHEN {self.never()} THEN 2 ELSE 3 END",
                lambda: f"({self.truth(2)})",
                lambda: f"month({self._of('d')})",
                lambda: f"COALESCE({self._of('k')}, 'none')",
                lambda: f"({self._of('n')}) % 3",
                lambda: self.words(2),
                lambda: f"NULLIF({self._of('j')}, 2)",
            ]
        )()

    def _of(self, *names: str) -> str:
        return f"{self.r.choice(self.scope)}.{self.r.choice(names)}"

    # Constants around the edges

    def _number(self) -> str:
        edges = [
            0,
            1,
            7,
            6,
            8,
            9,
            10,
            11,
            14,
            15,
            16,
            25,
            26,
            30,
            31,
            32,
            50,
            99,
            -99,
            2**31,
            2**62,
            2**63 - 1,
            1 - 2**63,
        ]
        return str(self.r.choice(edges))

    def _real(self) -> str:
        return self.r.choice(
            ["0.5", "10.25", "10.0", "12.5", "29.25", "30.5", "1e300", "-1e300", "98.5", "4.0", "-2.0"]
        )

    def _word(self) -> str:
        return self.r.choice(["'a'", "'b'", "'c'", "'d'", "'ward 0'", "'ward 4'", "'ward 99'", "''", "'x'", "'12'"])

    def _day(self) -> str:
        days = ["2020-06-01", "2020-05-31", "2020-06-09", "2020-06-10", "0001-01-01", "9999-12-31", "2020-07-09"]
        return f"DATE '{self.r.choice(days)}'"

    def _moment(self) -> str:
        moments = ["2020-06-01 12:00:00", "2020-06-01 20:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"]
        return f"TIMESTAMP '{self.r.choice(moments)}'"

    # Typed expressions

    def never(self, depth: int = 0) -> str:
        """A condition that no row meets, seen or unseen by the optimizer."""
        return self.r.choice(_DEAD).format(n=self._of(*_NUMBERS), x=self._of("x"), w=self._of("s"), d=self._of("d"))

    def always(self, depth: int = 0) -> str:
        """A condition that every row without NULL meets."""
        return self.r.choice(
            [
                lambda: "TRUE",
                lambda: f"{(n := self._of(*_NUMBERS, 'x', 's', 'd', 't', 'k', 'f'))} = {n}",
                lambda: f"{(m := self._of(*_NUMBERS))} >= {m}",
                lambda: f"({self._of('n')} >= 0 OR {self._of('n')} < 0)",
                lambda: f"{self._of('k')} IN ('a', 'b', 'c')",
                lambda: f"{self._of('m')} IS NOT NULL",
                lambda: f"{self._of('n')} BETWEEN {1 - 2**63} AND {2**63 - 1}",
            ]
        )()

    def edge(self) -> str:
        """A condition that the extremes of a column decide for all rows, or nearly."""
        r = self.r
        first, second = (
            r.choice(
                [
                    lambda: f"{self._of(*_NUMBERS)} {r.choice(['<', '>', '<=', '>=', '='])} {self._number()}",
                    lambda: f"{self._of('x', 'y')} {r.choice(['<', '>', '<=', '>='])} {self._real()}",
                    lambda: f"{self._of('d')} {r.choice(['<', '>', '='])} {self._day()}",
                    lambda: f"{self._of(*_NUMBERS)} IS {r.choice(['', 'NOT '])}NULL",
                ]
            )()
            for _ in range(2)
        )
        return r.choice([first, f"{first} AND {second}", f"({first} OR {second})", f"NOT ({first})"])

    def _folded(self) -> str:
        """IN or a comparison over a CASE whose first branch is dead and whose second one hangs on an edge."""
        r = self.r
        value = r.choice([self._word, self._word, self._number])
        dead = f"WHEN {self.never()} THEN {value()}" if r.random() < 0.8 else ""
        body = f"CASE {dead} WHEN {self.edge()} THEN {value()}{r.choice(['', f' ELSE {value()}'])} END"
        listed = ", ".join(value() for _ in range(r.choice([1, 2, 2, 3, 6])))
        return r.choice([f"({body} IN ({listed}))", f"({body} NOT IN ({listed}))", f"({body} = {value()})"])

    def truth(self, depth: int) -> str:
        """A BOOLEAN."""
        r = self.r
        if depth > 0 and r.random() < 0.25:
            return self._folded()
        compare = self.compare(0)
        simple: list[Callable[[], str]] = [
            lambda: f"{self._of(*_NUMBERS)} {compare} {self._number()}",
            lambda: f"{self._of('x', 'y')} {compare} {self._real()}",
            lambda: f"{self._of('s', 'k')} {compare} {self._word()}",
            lambda: f"{self._of('d')} {compare} {self._day()}",
            lambda: f"{self._of('t')} {compare} {self._moment()}",
            lambda: f"{self._of(*_NUMBERS)} BETWEEN {self._number()} AND {self._number()}",
            lambda: f"{self._of('d')} NOT BETWEEN {self._day()} AND {self._day()}",
            lambda: f"{self._of('s', 'k')} LIKE '{r.choice(['ward%', 'ward _', '%', 'a', 'w%9', ''])}'",
            lambda: f"{self._of('n', 'm', 'same', 'x', 's', 'k', 'd', 't', 'f')} IS {r.choice(['', 'NOT '])}NULL",
            lambda: f"{self._of('k', 's')} IN ({', '.join(self._word() for _ in range(r.choice([1, 2, 3, 6, 9])))})",
            lambda: f"{self._of(*_NUMBERS)} IN ({', '.join(self._number() for _ in range(r.choice([1, 2, 6, 9])))})",
            lambda: self._of("f"),
            self.never,
            self.always,
        ]
        if depth <= 0 or r.random() < 0.2:
            return f"({r.choice(simple)()})"
        return self.one_of(_TRUTHS, depth)

    def whole(self, depth: int) -> str:
        """An INTEGER."""
        if depth <= 0 or self.r.random() < 0.3:
            return self._of(*_NUMBERS) if self.r.random() < 0.8 else self._number()
        return self.one_of(_WHOLES, depth)

    def real(self, depth: int) -> str:
        """A NUMBER."""
        if depth <= 0 or self.r.random() < 0.3:
            return self._of("x", "y") if self.r.random() < 0.8 else self._real()
        return self.one_of(_REALS, depth)

    def words(self, depth: int) -> str:
        """A TEXT."""
        if depth <= 0 or self.r.random() < 0.3:
            return self._of("s", "s", "k") if self.r.random() < 0.8 else self._word()
        return self.one_of(_WORDS, depth)

    def day(self, depth: int) -> str:
        """A DATE of a row."""
        return self._of("d")

    def moment(self, depth: int) -> str:
        """A DATE or TIMESTAMP of a row."""
        return self._of("d", "t")

    def compare(self, depth: int) -> str:
        """A comparison."""
        return self.r.choice(["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])

    # Constants and lists of them

    def dayedge(self, depth: int) -> str:
        """A DATE near an edge."""
        return self._day()

    def wordedge(self, depth: int) -> str:
        """A TEXT near an edge."""
        return self._word()

    def wordedges(self, depth: int) -> str:
        """A list of texts."""
        return ", ".join(self._word() for _ in range(self.r.choice([1, 2, 2, 5, 8])))

    def numberedges(self, depth: int) -> str:
        """A list of numbers."""
        return ", ".join(self._number() for _ in range(self.r.choice([1, 2, 2, 5, 8])))

    # CASE with branches that are dead, or alive for all, or decided by an edge

    def _case(self, depth: int, value: Callable[[], str]) -> str:
        r = self.r
        whens = [
            (r.choice([self.never, self.always, lambda: self.truth(depth - 1), lambda: self.truth(0)])(), value())
            for _ in range(r.choice([1, 2, 2, 3]))
        ]
        body = " ".join(f"WHEN {condition} THEN {then}" for condition, then in whens)
        return f"CASE {body}{r.choice(['', ' ELSE NULL', f' ELSE {value()}'])} END"

    def wholecase(self, depth: int) -> str:
        """Of INTEGERs."""
        return self._case(depth, lambda: self.whole(0))

    def realcase(self, depth: int) -> str:
        """Of NUMBERs."""
        return self._case(depth, lambda: self.real(0))

    def wordcase(self, depth: int) -> str:
        """Of TEXTs."""
        return self._case(depth, lambda: self.words(0))

    def truthcase(self, depth: int) -> str:
        """Of BOOLEANs."""
        return self._case(depth, lambda: self.truth(0))

    def wordcases(self, depth: int) -> str:
        """Of constant texts."""
        return self._case(depth, self._word)

    def numbercases(self, depth: int) -> str:
        """Of constant numbers."""
        return self._case(depth, self._number)

    def daycases(self, depth: int) -> str:
        """Of constant dates."""
        return self._case(depth, self._day)


class _Normed(_Folds):
    """The same with sums that no text clips, averages and variances, and groups of which a unit has many."""

    def _aggregate(self) -> str:
        r = self.r
        value = r.choice(
            [
                lambda: self._of("n", "m", "same"),
                lambda: f"(-{self._of('n')})",
                lambda: f"({self._of('n', 'm')} * {r.choice(['7', '-2', '100000'])})",
                lambda: f"(1 - 2 * ({self._of('n', 'm')} % 2))",
                lambda: self.whole(1),
                lambda: self._of("x", "y"),
                lambda: self.real(1),
                lambda: f"GREATEST(-1e12, LEAST({self._of('x')}, 1e9))",
                lambda: f"GREATEST(1e-300, LEAST({self._of('x')}, 1e-299))",
                lambda: f"GREATEST(-900000000000, LEAST({self._of('n')}, 1000000000000))",
            ]
        )
        condition = f" FILTER (WHERE {self.truth(1)})" if r.random() < 0.35 else ""
        made = r.choice(
            [
                lambda: f"SUM({value()})",
                lambda: f"SUM({value()})",
                lambda: f"AVG({value()})",
                lambda: f"{r.choice(['VARIANCE', 'STDDEV', 'VAR_POP'])}({value()})",
                lambda: f"COUNT({value()})",
                lambda: "COUNT(*)",
                lambda: f"COUNT(DISTINCT {self.scope[0]}.person_id)",
                lambda: f"SUM(date_diff('day', {self._of('d')}, {self._of('d')}))",
            ]
        )()
        return f"{made}{condition}"

    def _key(self) -> str:
        many = [lambda: self._of("k"), lambda: self._of("j"), lambda: self._of("n"), lambda: self._of("s")]
        return self.r.choice([*many, super()._key])()
