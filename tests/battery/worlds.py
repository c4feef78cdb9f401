"""Schemas of the battery, and small data for them: every value follows from its column's declaration."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb

from privacy.bounds import ContributionBound, ValueBounds, number_of_date
from privacy.policy import Column, ColumnType, Dataset, Limits, PublicKeys, Reference, Table
from privacy.unit import PrivacyUnit
from tests.plain_clinic import DELTA, EPSILON, Clinic, open_plain

__all__ = ["WORLDS", "open_world"]


def _column(
    name: str,
    kind: str,
    low: object = None,
    high: object = None,
    *,
    keys: tuple[object, ...] = (),
    nullable: bool = False,
) -> Column:
    bounds = None
    if low is not None and high is not None:
        ends = (number_of_date(end) if isinstance(end, datetime.date) else Fraction(str(end)) for end in (low, high))
        bounds = ValueBounds(*ends)
    public = PublicKeys(keys) if keys else None  # type: ignore[arg-type]
    return Column(name, ColumnType(kind), bounds, keys=public, nullable=nullable or name.endswith("_opt"))


def _table(
    name: str,
    columns: list[Column],
    *,
    key: str | None = None,
    refers: Mapping[str, str] | None = None,
    unit: str | None = None,
    path: str | None = None,
    rows: int = 0,
) -> Table:
    """`unit` is the column that holds the unit, or `path` the reference that leads to a table which does."""
    references = {}
    for column, target in (refers or {}).items():
        table, _, parent = target.partition(".")
        references[column] = Reference(column, table, parent)
    protected = unit is not None or path is not None
    return Table(
        name,
        tuple(columns),
        protected=protected,
        key=key,
        references=tuple(references.values()),
        unit_column=unit,
        unit_path=() if path is None else (references[path],),
        contribution=ContributionBound(rows, rows, rows) if protected else None,
    )


def _days(first: int, years: int) -> tuple[object, ...]:
    """Each day of so many years."""
    start, end = datetime.date(first, 1, 1), datetime.date(first + years, 1, 1)
    return tuple(start + datetime.timedelta(days=day) for day in range((end - start).days))


def _dataset(name: str, unit: PrivacyUnit, tables: list[Table]) -> Dataset:
    limits = Limits(epsilon_default=EPSILON, epsilon_max=EPSILON, delta_per_query=DELTA)
    return Dataset(name, unit, tuple(tables), 1, "v", limits=limits)


_REGIONS = ("east", "north", "south", "west")
_MONEY = (0, 2000)

SHOP = _dataset(
    "shop",
    PrivacyUnit("customers", "customer_id"),
    [
        _table(
            "customers",
            [
                _column("customer_id", "integer"),
                _column("region_id", "integer", 1, 4, keys=(1, 2, 3, 4)),
                _column("segment", "text", keys=("business", "home", "school")),
                _column("age", "integer", 18, 90),
                _column("joined", "date"),
                _column("newsletter", "boolean"),
                _column("referrer_opt", "text", keys=("friend", "search")),
            ],
            key="customer_id",
            unit="customer_id",
            refers={"region_id": "regions.region_id"},
            rows=1,
        ),
        _table(
            "orders",
            [
                _column("order_id", "integer"),
                _column("customer_id", "integer"),
                _column("ordered", "date"),
                _column("status", "text", keys=("cancelled", "open", "paid")),
                _column("total", "number", *_MONEY),
                _column("discount_opt", "number", 0, 0.5),
                _column("channel", "text"),
            ],
            key="order_id",
            unit="customer_id",
            refers={"customer_id": "customers.customer_id"},
            rows=12,
        ),
        _table(
            "items",
            [
                _column("order_id", "integer"),
                _column("product_id", "integer"),
                _column("quantity", "integer", 1, 9),
                _column("price", "number", 0, 300),
                _column("returned", "boolean"),
            ],
            refers={"order_id": "orders.order_id", "product_id": "products.product_id"},
            path="order_id",
            rows=60,
        ),
        _table(
            "products",
            [
                _column("product_id", "integer"),
                _column("category", "text", keys=("books", "games", "tools", "toys")),
                _column("weight", "number", 0, 50),
            ],
            key="product_id",
        ),
        _table(
            "regions",
            [_column("region_id", "integer"), _column("region", "text", keys=_REGIONS)],
            key="region_id",
        ),
    ],
)

SENSORS = _dataset(
    "sensors",
    PrivacyUnit("homes", "home"),
    [
        _table(
            "homes",
            [
                _column("home", "text"),
                _column("city", "text", keys=("Aalen", "Bonn", "Celle")),
                _column("persons", "integer", 1, 8),
                _column("area", "number", 10, 400),
            ],
            key="home",
            unit="home",
            rows=1,
        ),
        _table(
            "readings",
            [
                _column("home", "text"),
                _column("kind", "text", keys=("heat", "power", "water")),
                _column("moment", "timestamp"),
                _column("value", "number", 0, 100),
                _column("quality_opt", "integer", 0, 3, keys=(0, 1, 2, 3)),
                _column("fault", "boolean"),
            ],
            refers={"home": "homes.home"},
            unit="home",
            rows=40,
        ),
    ],
)

_NATIONS = ("BRAZIL", "CANADA", "FRANCE", "GERMANY", "INDIA", "JAPAN")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")

TPCH = _dataset(
    "tpch",
    PrivacyUnit("customer", "c_custkey"),
    [
        _table(
            "customer",
            [
                _column("c_custkey", "integer"),
                _column("c_nationkey", "integer", 1, 6, keys=(1, 2, 3, 4, 5, 6)),
                _column("c_acctbal", "number", -1000, 10000),
                _column("c_mktsegment", "text", keys=("AUTOMOBILE", "BUILDING", "FURNITURE")),
                _column("c_name", "text"),
                _column("c_phone", "text"),
                _column("c_address", "text"),
                _column("c_comment", "text"),
            ],
            key="c_custkey",
            unit="c_custkey",
            refers={"c_nationkey": "nation.n_nationkey"},
            rows=1,
        ),
        _table(
            "orders",
            [
                _column("o_orderkey", "integer"),
                _column("o_custkey", "integer"),
                _column("o_orderstatus", "text", keys=("F", "O", "P")),
                _column("o_totalprice", "number", 0, 600000),
                _column("o_orderdate", "date"),
                _column("o_orderpriority", "text", keys=_PRIORITIES),
                _column("o_shippriority", "integer", 0, 1, keys=(0, 1)),
                _column("o_comment", "text"),
            ],
            key="o_orderkey",
            unit="o_custkey",
            refers={"o_custkey": "customer.c_custkey"},
            rows=12,
        ),
        _table(
            "lineitem",
            [
                _column("l_orderkey", "integer"),
                _column("l_partkey", "integer"),
                _column("l_suppkey", "integer"),
                _column("l_quantity", "number", 1, 50),
                _column("l_extendedprice", "number", 0, 110000),
                _column("l_discount", "number", 0, "0.1"),
                _column("l_tax", "number", 0, "0.08"),
                _column("l_returnflag", "text", keys=("A", "N", "R")),
                _column("l_linestatus", "text", keys=("F", "O")),
                _column("l_shipdate", "date"),
                _column("l_commitdate", "date"),
                _column("l_receiptdate", "date"),
                _column("l_shipinstruct", "text"),
                _column("l_shipmode", "text", keys=("AIR", "AIR REG", "MAIL", "SHIP")),
            ],
            refers={
                "l_orderkey": "orders.o_orderkey",
                "l_partkey": "part.p_partkey",
                "l_suppkey": "supplier.s_suppkey",
            },
            path="l_orderkey",
            rows=60,
        ),
        _table(
            "nation",
            [
                _column("n_nationkey", "integer"),
                _column("n_name", "text", keys=_NATIONS),
                _column("n_regionkey", "integer"),
            ],
            key="n_nationkey",
            refers={"n_regionkey": "region.r_regionkey"},
        ),
        _table(
            "region",
            [_column("r_regionkey", "integer"), _column("r_name", "text", keys=("AMERICA", "ASIA", "EUROPE"))],
            key="r_regionkey",
        ),
        _table(
            "part",
            [
                _column("p_partkey", "integer"),
                _column("p_name", "text"),
                _column("p_mfgr", "text"),
                _column("p_brand", "text"),
                _column("p_type", "text"),
                _column("p_size", "integer", 1, 50),
                _column("p_container", "text"),
            ],
            key="p_partkey",
        ),
        _table(
            "supplier",
            [
                _column("s_suppkey", "integer"),
                _column("s_name", "text"),
                _column("s_address", "text"),
                _column("s_nationkey", "integer"),
                _column("s_phone", "text"),
                _column("s_acctbal", "number", -1000, 10000),
                _column("s_comment", "text"),
            ],
            key="s_suppkey",
            refers={"s_nationkey": "nation.n_nationkey"},
        ),
        _table(
            "partsupp",
            [
                _column("ps_partkey", "integer"),
                _column("ps_suppkey", "integer"),
                _column("ps_availqty", "integer", 0, 10000),
                _column("ps_supplycost", "number", 0, 1000),
            ],
            refers={"ps_partkey": "part.p_partkey", "ps_suppkey": "supplier.s_suppkey"},
        ),
    ],
)

_STATES = ("AZ", "MA", "NY", "OH", "WA")

PEOPLE = _dataset(
    "people",
    PrivacyUnit("people", "person_id"),
    [
        _table(
            "people",
            [
                _column("person_id", "integer"),
                _column("age", "integer", 16, 95, keys=tuple(range(16, 96))),
                _column("sex", "text", keys=("female", "male")),
                _column("education", "text", keys=("college", "none", "school")),
                _column("occupation", "text"),
                _column("state_code", "text", keys=_STATES),
                _column("income", "number", 0, 200000, nullable=True),
                _column("hours", "integer", 0, 80),
                _column("children", "integer", 0, 6),
                _column("height", "number", 140, 210),
                _column("weight", "number", 40, 150),
                _column("born", "date", datetime.date(1920, 1, 1), datetime.date(2020, 1, 1)),
                _column("smoker", "boolean"),
                _column("insured", "boolean", nullable=True),
                _column("registered", "timestamp"),
            ],
            key="person_id",
            unit="person_id",
            refers={"state_code": "states.state_code"},
            rows=1,
        ),
        _table(
            "states",
            [
                _column("state_code", "text", keys=_STATES),
                _column("state", "text", keys=("Arizona", "Massachusetts", "New York", "Ohio", "Washington")),
                _column("area", "number", 0, 1000),
                _column("coast", "boolean"),
            ],
            key="state_code",
        ),
    ],
)

_PLACES = ("Coast", "Hills", "North", "South")
_DEPARTMENTS = ("Cardiology", "Emergency", "General", "Oncology")

CLINIC = _dataset(
    "clinic",
    PrivacyUnit("patients", "patient_id"),
    [
        _table(
            "patients",
            [
                _column("patient_id", "integer"),
                _column("birth_year", "integer", 1925, 2025),
                _column("age", "integer", 0, 100, keys=tuple(range(101))),
                _column("sex", "text", keys=("female", "male")),
                _column("region", "text", keys=_PLACES),
                _column("smoker", "boolean"),
                _column("income", "integer", 0, 200000),
            ],
            key="patient_id",
            unit="patient_id",
            rows=1,
        ),
        _table(
            "visits",
            [
                _column("visit_id", "integer"),
                _column("patient_id", "integer"),
                _column("hospital_id", "integer", keys=tuple(range(1, 13))),
                _column(
                    "visit_date", "date", datetime.date(2023, 1, 1), datetime.date(2024, 12, 31), keys=_days(2023, 2)
                ),
                _column("department", "text", keys=_DEPARTMENTS),
                _column("length_of_stay_days", "integer", 0, 90),
                _column("cost", "number", 0, 20000),
            ],
            key="visit_id",
            unit="patient_id",
            refers={"patient_id": "patients.patient_id", "hospital_id": "hospitals.hospital_id"},
            rows=20,
        ),
        _table(
            "hospitals",
            [
                _column("hospital_id", "integer", keys=tuple(range(1, 13))),
                _column("name", "text", keys=tuple(f"Hospital {number}" for number in range(1, 13))),
                _column("region", "text", keys=_PLACES),
                _column("beds", "integer", 0, 900),
            ],
            key="hospital_id",
        ),
    ],
)
"""The demo's tables (`server/demo.py`), with fewer rows and values."""

WORLDS = {"shop": SHOP, "sensors": SENSORS, "tpch": TPCH, "people": PEOPLE, "clinic": CLINIC}

_ROWS = {
    "customers": 150, "orders": 450, "items": 1100, "products": 30, "regions": 4, "homes": 120, "readings": 1500,
    "customer": 120, "lineitem": 900, "nation": 6, "region": 3, "part": 40, "supplier": 15, "partsupp": 600,
    "people": 260, "states": 5, "patients": 160, "visits": 640, "hospitals": 12,
}  # fmt: skip
_WORDS = (
    "green apple",
    "special requests",
    "blue",
    "Brand#12",
    "Brand#23",
    "MED BOX",
    "ECONOMY",
    "PROMO tin",
    "web",
    "DELIVER IN PERSON",
)


def _value(column: Column, row: int, draw: random.Random, first: datetime.date) -> object:
    if column.nullable and draw.random() < 0.15:
        return None
    if column.keys is not None:
        listed = column.keys.values
        return listed[row] if row < len(listed) < 200 else draw.choice(listed)
    day = first + datetime.timedelta(days=draw.randrange(730))
    low = 0.0 if column.bounds is None else float(column.bounds.lower)
    high = 100.0 if column.bounds is None else float(column.bounds.upper)
    match column.type:
        case ColumnType.INTEGER:
            return draw.randint(int(low), int(high))
        case ColumnType.NUMBER:
            return round(draw.uniform(low, high), 2)
        case ColumnType.BOOLEAN:
            return draw.random() < 0.3
        case ColumnType.DATE:
            return day if column.name != "born" else day.replace(year=day.year - draw.randint(18, 80), day=1)
        case ColumnType.TIMESTAMP:
            return datetime.datetime.combine(day, datetime.time(draw.randrange(24), draw.randrange(60)))
        case _:
            return draw.choice(_WORDS)


def _rows(dataset: Dataset) -> dict[str, list[tuple[object, ...]]]:
    """Rows for every table: keys count from one, references name a row of their table."""
    draw = random.Random(dataset.name)
    first = datetime.date(1994 if dataset is TPCH else 2023, 1, 1)
    found: dict[str, list[tuple[object, ...]]] = {}
    for table in dataset.tables:
        refers = {reference.column: reference for reference in table.references}
        rows: list[tuple[object, ...]] = []
        for row in range(_ROWS[table.name]):
            values: list[object] = []
            for column in table.columns:
                if column.type is ColumnType.TEXT and column.name in {*refers, table.key} and column.keys is not None:
                    values.append(_value(column, row, draw, first))
                elif column.name == table.key:
                    values.append(f"h{row + 1}" if column.type is ColumnType.TEXT else row + 1)
                elif column.name in refers:
                    number = draw.randint(1, _ROWS[refers[column.name].table])
                    if table.name == "partsupp":  # every pair once
                        number = row % 40 + 1 if column.name == "ps_partkey" else row // 40 + 1
                    values.append(f"h{number}" if column.type is ColumnType.TEXT else number)
                else:
                    values.append(_value(column, row, draw, first))
            rows.append(tuple(values))
        found[table.name] = rows
    return found


def _write(dataset: Dataset, path: Path) -> None:
    with closing(duckdb.connect(str(path))) as connection:
        for table in dataset.tables:
            columns = ", ".join(f"{column.name} {column.type.sql}" for column in table.columns)
            connection.execute(f"CREATE TABLE {table.name} ({columns})")
            places = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {table.name} VALUES ({places})", _rows(dataset)[table.name])


@contextmanager
def open_world(name: str, folder: Path) -> Iterator[Clinic]:
    """A world in a folder: plain rows, their snapshot and one worker of each kind."""
    with open_plain(folder, WORLDS[name], lambda path: _write(WORLDS[name], path)) as opened:
        yield opened
