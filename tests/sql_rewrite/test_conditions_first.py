"""Conditions before joins, and joins in another order: the rows of every core are those of its plan as it was."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest
import sqlglot

from engines.handlers.connection import private_settings
from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, PublicKeys, Reference, Table
from privacy.refusal import Refused
from privacy.statement import Statement
from privacy.unit import PrivacyUnit
from sql_rewrite import conditions_first as first
from sql_rewrite import join_tree, late_units, lower, lower_rows, lower_unit_groups, training
from sql_rewrite.bound import bound
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.cost import work_of
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.join_tree import Branch, asked, branches_of
from sql_rewrite.lift import lift
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.plan import Core, Source
from sql_rewrite.relations import JoinedSources, LoweredSource, RowsSource, TableSource
from tests.generated_relations import SMALL, make_question, small_rows
from tests.thinned import thinned

T = ColumnType
MOST = 6


def _whole(name: str, high: int = 99, *, nullable: bool = True) -> Column:
    return Column(name, T.INTEGER, ValueBounds(Fraction(0), Fraction(high)), nullable=nullable)


def _number(name: str) -> Column:
    return Column(name, T.INTEGER, nullable=False)


def _people(name: str, columns: tuple[Column, ...], most: int, *references: Reference) -> Table:
    return Table(
        name, columns, protected=True, key=columns[0].name, references=references, rows_stored_per_unit=most,
        contribution=ContributionBound(most, min(2, most), most),
        unit_column="person_id" if name != "items" else None,
        unit_path=() if name != "items" else (Reference("order_id", "orders", "order_id"),),
    )  # fmt: skip


SHOP = Dataset(
    "shop", PrivacyUnit("people", "person_id"),
    (
        _people(
            "people", (_number("person_id"), _whole("age"), Column("city_id", T.INTEGER)), 1,
            Reference("city_id", "cities", "city_id"),
        ),
        _people(
            "orders", (_number("order_id"), _number("person_id"), _whole("cost")), MOST,
            Reference("person_id", "people", "person_id"),
        ),
        _people(
            "items", (_number("item_id"), _number("order_id"), Column("shop_id", T.INTEGER), _whole("price")), MOST**2,
            Reference("order_id", "orders", "order_id"), Reference("shop_id", "shops", "shop_id"),
        ),
        Table(
            "shops", (_number("shop_id"), Column("city_id", T.INTEGER), _whole("size")), protected=False, key="shop_id",
            references=(Reference("city_id", "cities", "city_id"),),
        ),
        Table(
            "cities",
            (
                _number("city_id"), Column("country", T.TEXT, keys=PublicKeys(("N", "S")), nullable=False),
                _whole("rank"),
            ),
            protected=False, key="city_id",
        ),
    ), 1, "v",
)  # fmt: skip
"""People in cities with orders of items from shops in cities: a chain to the unit, and one of public tables."""

_CHAIN = (
    "FROM items i JOIN orders o ON i.order_id = o.order_id JOIN people p ON o.person_id = p.person_id "
    "JOIN shops s ON i.shop_id = s.shop_id JOIN cities c ON s.city_id = c.city_id "
)
TEXTS = (
    f"SELECT c.country, SUM(i.price) {_CHAIN} WHERE p.city_id = s.city_id AND c.rank > 2 AND o.cost < 60 GROUP BY 1",
    f"SELECT COUNT(*), SUM(o.cost) {_CHAIN} WHERE s.city_id = p.city_id AND c.country = 'N' AND i.price % 2 = 0",
    f"SELECT COUNT(*), SUM(i.price) {_CHAIN} WHERE p.age > 20 AND (c.rank > 2 OR s.size > 30) AND s.size <> 7",
    "SELECT SUM(o.cost) FROM orders o JOIN people p ON o.person_id = p.person_id WHERE p.age > 40",
    "SELECT SUM(i.price), COUNT(*) FROM items i JOIN orders o ON i.order_id = o.order_id WHERE o.cost > 50",
    "SELECT AVG(i.price), COUNT(DISTINCT o.cost) FROM items i JOIN orders o ON i.order_id = o.order_id "
    "JOIN people p ON o.person_id = p.person_id WHERE p.age < 50",
    "SELECT o.cost % 5 AS k, COUNT(*) FROM orders o JOIN people p ON o.person_id = p.person_id WHERE p.age < 70 "
    "GROUP BY 1",
    "SELECT COUNT(*) FROM orders a JOIN orders b ON a.person_id = b.person_id WHERE a.cost > 50",
    "SELECT COUNT(*), COUNT(DISTINCT a.person_id) FROM orders a JOIN orders b ON a.person_id = b.person_id "
    "WHERE a.cost > 50",
    "SELECT i.price % 5 AS k, COUNT(*) FROM items i LEFT JOIN shops s ON i.shop_id = s.shop_id JOIN orders o "
    "ON i.order_id = o.order_id JOIN people p ON o.person_id = p.person_id WHERE s.size IS NULL GROUP BY 1",
    "SELECT COUNT(*) FROM orders a JOIN orders b ON a.person_id = b.person_id WHERE b.cost > 50 AND a.cost <> b.cost",
    "SELECT COUNT(*), SUM(b.cost) FROM orders a JOIN people p ON a.person_id = p.person_id "
    "JOIN orders b ON a.person_id = b.person_id WHERE p.age > 30",
    "SELECT COUNT(*) FROM items i LEFT JOIN shops s ON i.shop_id = s.shop_id WHERE s.size > 50 OR s.size IS NULL",
    "SELECT COUNT(*) FROM items i LEFT JOIN shops s ON i.shop_id = s.shop_id LEFT JOIN cities c "
    "ON s.city_id = c.city_id WHERE COALESCE(c.rank, 9) > 3 AND i.price > 10 AND s.size IS NOT NULL",
    "SELECT COUNT(*) FROM items i JOIN shops s ON i.shop_id = s.shop_id LEFT JOIN cities c ON s.city_id = c.city_id "
    "WHERE c.rank IS NULL AND s.size > 10",
    "SELECT SUM(n) FROM (SELECT o.person_id, COUNT(*) AS n FROM orders o JOIN people p ON o.person_id = p.person_id "
    "WHERE p.age > 30 AND o.cost > 5 GROUP BY o.person_id)",
    "SELECT COUNT(*) FROM (SELECT person_id, cost AS x FROM orders WHERE cost > 3 UNION ALL SELECT o.person_id, p.age "
    "FROM orders o JOIN people p ON o.person_id = p.person_id WHERE p.age > 3)",
)


def _shop_rows() -> dict[str, list[tuple[Any, ...]]]:
    """Rows with their unit: people without orders or city, orders without items, items without shop, and NULL."""
    r = random.Random(5)
    rows: dict[str, list[tuple[Any, ...]]] = {table.name: [] for table in SHOP.tables}
    rows["cities"] = [(number, "NS"[number % 2], number) for number in range(6)]
    rows["shops"] = [(number, r.choice([None, *range(6)]), r.choice([None, 7, 20, 80])) for number in range(9)]
    for person in range(30):
        age = r.choice([None, *range(99)])
        rows["people"].append((person, age, r.choice([None, *range(6)]), person))
        for _ in range(r.choice([0, 1, 3, MOST])):
            order = len(rows["orders"])
            rows["orders"].append((order, person, r.choice([None, *range(99)]), person))
            for _ in range(r.choice([0, 1, 2, MOST])):
                shop = r.choice([None, *range(9)])
                rows["items"].append((len(rows["items"]), order, shop, r.choice([None, *range(99)]), person))
    return rows


def _small_rows() -> dict[str, list[tuple[Any, ...]]]:
    rows = small_rows()
    person_of = {visit[0]: visit[1] for visit in rows["visits"]}
    owner: dict[str, Callable[[tuple[Any, ...]], int]] = {
        "people": lambda row: row[0], "visits": lambda row: row[1], "tests": lambda row: person_of[row[1]],
    }  # fmt: skip
    return {name: [(*row, owner[name](row)) if name in owner else row for row in found] for name, found in rows.items()}


def _opened(dataset: Dataset, rows: dict[str, list[tuple[Any, ...]]]) -> duckdb.DuckDBPyConnection:
    """The tables as a snapshot has them, with the settings of private connections."""
    connection = duckdb.connect(":memory:", config=private_settings(threads=1, memory_limit_mb=512))
    for table in dataset.tables:
        columns = [f"{column.name} {column.type.sql}" for column in table.columns]
        columns += ['"unit$id" INTEGER'] if table.protected else []
        connection.execute(f"CREATE TABLE {table.name} ({', '.join(columns)})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table.name} VALUES ({places})", rows[table.name])
        if table.protected:
            connection.execute(f'ALTER TABLE {table.name} ADD COLUMN "unit$draw" UBIGINT')
            connection.execute(f'UPDATE {table.name} SET "unit$draw" = hash("unit$id")')
    return connection


@pytest.fixture(scope="module")
def shop() -> Iterator[duckdb.DuckDBPyConnection]:
    """The shop."""
    with closing(_opened(SHOP, _shop_rows())) as connection:
        yield connection


@pytest.fixture(scope="module")
def small() -> Iterator[duckdb.DuckDBPyConnection]:
    """The small clinic of random trees."""
    with closing(_opened(SMALL, _small_rows())) as connection:
        yield connection


def _unchanged(core: Core) -> Core:
    return core


def _one_after_another(sources: Sequence[Any]) -> tuple[Branch, ...]:
    return tuple(Branch(source) for source in sources[1:])


def _rows(connection: duckdb.DuckDBPyConnection, statement: Statement) -> list[str]:
    return sorted(map(repr, connection.execute(statement.sql, list(statement.parameters)).fetchall()))


def _cores(text: str, dataset: Dataset) -> tuple[BoundedCore, ...]:
    return bound(lift(text, dataset, {}))


def _differs(connection: duckdb.DuckDBPyConnection, text: str, dataset: Dataset) -> bool:
    """Whether the statements of a question differ in what they find from those of its plan as the text has it."""
    for core in _cores(text, dataset):
        now = lower.lower(core)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lower_rows, "conditions_first", _unchanged)
            patch.setattr(lower_unit_groups, "branches_of", _one_after_another)
            patch.setattr(lower, "late_units", lambda core, read: ())
            patch.setattr(lower_unit_groups, "turned", lambda before, branch: False)
            plain = lower.lower(core)
        if now.sql != plain.sql and _rows(connection, now) != _rows(connection, plain):
            return True
    return False


@pytest.mark.parametrize("text", TEXTS)
def test_the_rows_are_those_of_the_plan(shop: duckdb.DuckDBPyConnection, text: str) -> None:
    """Shows it of chains, of pairs, of outer joins, and below groups and unions."""
    assert not _differs(shop, text, SHOP)


@thinned(4)
def test_the_rows_of_random_trees_are_those_of_their_plans(small: duckdb.DuckDBPyConnection, every: int) -> None:
    """Shows it of trees that nobody wrote."""
    moved = 0
    for seed in range(40_000, 40_120, every):
        text = make_question(seed)
        try:
            cores = _cores(text, SMALL)
        except Refused:
            continue
        moved += any(first.conditions_first(core.core) is not core.core for core in cores)
        assert not _differs(small, text, SMALL), f"seed {seed}: {text}"
    assert moved * every >= 12


def _always(*_: object) -> bool:
    return True


def _of_one_row(source: Source) -> Source:
    return replace(source, table=replace(source.table, unit_column=None, unit_path=()))


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    ("module", "name", "planted"),
    [
        (first, "_kept_with_it", _always),
        (first, "_equal_columns", lambda part: tuple(part.arguments) if part.operator in ("=", "<>") else None),
        (join_tree, "_one_row_of", lambda source, beside: source.join is not None and not source.join.outer),
        (late_units, "of_unit", lambda source: source.table.protected),
        (late_units, "of_unit", lambda source: join_tree.of_unit(_of_one_row(source))),
    ],
)
def test_a_condition_or_join_in_the_wrong_place_is_found(
    shop: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, planted: Any
) -> None:
    """Plants conditions behind outer joins, equality of columns that differ, joins below outer ones, a late table."""
    texts = [
        *TEXTS,
        f"SELECT COUNT(*) {_CHAIN} WHERE p.city_id <> s.city_id AND c.rank > 2",
        "SELECT COUNT(*) FROM items i LEFT JOIN shops s ON i.shop_id = s.shop_id JOIN cities c "
        "ON s.city_id = c.city_id WHERE c.rank > 1",
    ]
    assert not any(_differs(shop, text, SHOP) for text in texts)
    monkeypatch.setattr(module, name, planted)
    assert any(_differs(shop, text, SHOP) for text in texts)


def test_every_source_is_joined_by_columns_of_sources_before_it() -> None:
    """Shows it of a public table that an equal column of people, written after it, could join."""
    text = (
        "SELECT COUNT(*) FROM items i JOIN shops s ON i.shop_id = s.shop_id JOIN cities c ON s.city_id = c.city_id "
        "JOIN orders o ON i.order_id = o.order_id JOIN people p ON o.person_id = p.person_id "
        "LEFT JOIN cities d ON p.city_id = d.city_id WHERE s.city_id = p.city_id AND c.rank > 2"
    )
    (core,) = _cores(text, SHOP)
    before: set[str] = set()
    for source in first.conditions_first(core.core).sources:
        assert source.join is None or source.join.child.relation in before
        before.add(source.relation)


def test_a_table_that_is_joined_to_another_first_stays_there() -> None:
    """Shows that equal columns of the first table and of people do not make every order ask for its person twice.

    Where a table is joined by columns of two others, it comes after both.
    """
    (core,) = _cores(f"SELECT COUNT(*) {_CHAIN} WHERE i.price = p.age AND p.age > 40", SHOP)
    sources = first.conditions_first(core.core).sources
    assert [[source.table.name for source in branch.sources] for branch in branches_of(sources)] == [
        ["orders", "people"],
        ["shops", "cities"],
    ]
    people = next(source for source in sources if source.table.name == "people")
    assert people.join is not None
    other = replace(people.join.child, relation=sources[0].relation, name="price")
    twice = replace(people, join=replace(people.join, also=((other, people.join.parent),)))
    moved = branches_of(tuple(twice if source is people else source for source in sources))
    assert ["people"] in [[source.table.name for source in branch.sources] for branch in moved]


def test_few_public_rows_leave_out_people_first(shop: duckdb.DuckDBPyConnection) -> None:
    """Shows the order of the first text: cities with people, people with orders, orders with items, then shops."""
    (core,) = _cores(TEXTS[0], SHOP)
    branches = branches_of(first.conditions_first(core.core).sources)
    assert [[source.table.name for source in branch.sources] for branch in branches] == [
        ["orders", "people", "cities"],
        ["shops"],
    ]
    sql = lower.lower(core).sql
    assert sql.index('"orders"') < sql.index('"people"') < sql.index('"cities"') < sql.index('"shops"')


def test_a_table_that_says_which_units_count_comes_late() -> None:
    """Shows that units are grouped first where only the person decides, and that draws are read of people."""
    (late,) = _cores(TEXTS[3], SHOP)
    assert lower.lower(late).sql.index("GROUP BY") < lower.lower(late).sql.index('"people"')
    (drawn,) = _cores(TEXTS[6], SHOP)
    assert '"r1"."unit$draw" AS "d"' in lower.lower(drawn).sql
    assert '"r0"."unit$' not in lower.lower(drawn).sql


def test_a_second_time_changes_nothing() -> None:
    """Shows that lowering a part of a core moves nothing again."""
    for text in TEXTS:
        for core in _cores(text, SHOP):
            once = first.conditions_first(core.core)
            assert first.conditions_first(once) is once


def test_the_rows_that_are_asked_for_are_counted() -> None:
    """Shows that each row below the first table is counted once for itself and once for each table that it asks for."""
    (core,) = _cores(TEXTS[0], SHOP)
    sources = first.conditions_first(core.core).sources
    assert asked(sources) == MOST * (1 + 1) + 1 * (1 + 1)
    (pairs,) = _cores(TEXTS[7], SHOP)
    assert asked(first.conditions_first(pairs.core).sources) == MOST + MOST
    assert asked(pairs.core.sources) == MOST


def _counted(parts: Sequence[LoweredSource], rows: dict[str, int]) -> int:
    """How often rows of a unit are hashed, or ask for others, of tables that are joined in brackets."""
    head, *others = parts
    return _rows_of(head, rows) * (1 + len(others)) + sum(
        _counted(one.sources, rows) if isinstance(one, JoinedSources) else _rows_of(one, rows) for one in others
    )


def _rows_of(part: LoweredSource, rows: dict[str, int]) -> int:
    assert isinstance(part, TableSource | RowsSource)
    return rows.get(part.relation, 0)


def _all_are_counted(text: str) -> bool:
    """Whether what is counted of a core is at least what its statement's joins, in their brackets, ask for."""
    for core in _cores(text, SHOP):
        sources = first.conditions_first(core.core).sources
        rows = {source.relation: source.table.rows_stored for source in sources[1:] if source.table.protected}
        parts = lower_unit_groups.lowered_sources(sources, set(), ParameterList(), draw=False)
        root = sources[0].relation
        others = [part for part in parts if isinstance(part, JoinedSources) or part.relation != root]
        found = sum(_counted(part.sources if isinstance(part, JoinedSources) else (part,), rows) for part in others)
        hashed = isinstance(parts[0], JoinedSources) or parts[0].relation != root
        found += sources[0].table.rows_stored if hashed else 0
        if asked(sources) < found:
            return False
    return True


@pytest.mark.parametrize("planted", [False, True])
def test_no_row_that_asks_is_left_out(monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    """Shows it of the brackets of every text; plants rows that are counted once, however many they ask for."""
    if planted:
        monkeypatch.setattr(join_tree, "_of_branch", lambda branch: ((source, 1) for source in branch.sources))
    assert all(map(_all_are_counted, TEXTS)) is not planted


def test_a_condition_of_every_row_costs_what_it_did_and_more() -> None:
    """Shows that the bound of one unit's work counts a moved condition for each row of its table."""
    (core,) = _cores(TEXTS[3], SHOP)
    without = replace(core, core=replace(core.core, where=None))
    assert work_of([core]).unit_nanoseconds > work_of([without]).unit_nanoseconds


@pytest.mark.parametrize("arranged", [True, False])
def test_rows_of_a_model_are_read_by_the_plan_whose_cost_is_counted(
    arranged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that nothing of a joined table is computed once for each row that refers to it; plants that it is."""
    if not arranged:
        monkeypatch.setattr(training, "conditions_first", lambda core: core)
    text = f"SELECT i.price AS x, o.cost > 9 AS label {_CHAIN} WHERE p.age % 7 > 2 AND c.rank > 2 AND i.price > 5"
    rows = training.lift_training(text, SHOP, DUCKDB).statement.rows
    above = sqlglot.parse_one(rows.sql, dialect="duckdb").args.get("where")
    assert (above is None) == arranged
