"""A small shop whose contributions are known by hand, and the journey's answer to a text in GoogleSQL's spelling."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from privacy.bounds import AskedContribution, ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, Dataset, Limits, PublicKeys, Reference, Table
from privacy.refusal import Refused
from privacy.unit import PrivacyUnit
from server.journey.google import check_clause, check_groups
from sql_rewrite.bound import bound
from sql_rewrite.google_clause import Clause, respelled
from sql_rewrite.lift import lift
from tests.plain_clinic import DELTA, EPSILON, Clinic, open_plain

__all__ = ["CUSTOMERS", "answered", "code_of", "declared", "open_shop"]

CUSTOMERS = 60


def declared() -> Dataset:
    """Customers with sales; region is declared, item is not. No unit has more than 12 rows."""
    money = ValueBounds(Fraction(-1_000), Fraction(1_000))
    customers = Table(
        "customers",
        (
            Column("customer", ColumnType.INTEGER, nullable=False),
            Column("age", ColumnType.INTEGER, ValueBounds(Fraction(0), Fraction(100)), nullable=False),
        ),
        protected=True,
        key="customer",
        unit_column="customer",
        contribution=ContributionBound(1, 1, 1),
    )
    sales = Table(
        "sales",
        (
            Column("sale", ColumnType.INTEGER, nullable=False),
            Column("customer", ColumnType.INTEGER, nullable=False),
            Column("region", ColumnType.TEXT, keys=PublicKeys(("east", "north", "south", "west")), nullable=False),
            Column("item", ColumnType.TEXT, nullable=False),
            Column("price", ColumnType.NUMBER, money, nullable=False),
            Column("pieces", ColumnType.INTEGER, ValueBounds(Fraction(0), Fraction(50))),
            Column("gift", ColumnType.BOOLEAN, nullable=False),
        ),
        protected=True,
        key="sale",
        references=(Reference("customer", "customers", "customer"),),
        unit_column="customer",
        contribution=ContributionBound(12, 4, 12),
    )
    limits = Limits(epsilon_default=EPSILON, epsilon_max=EPSILON, delta_per_query=DELTA)
    return Dataset("shop", PrivacyUnit("customers", "customer"), (customers, sales), 1, "v", limits=limits)


def write_rows(path: Path) -> None:
    """Customer c has c % 4 rows in each of north and south, all alike in a region; nobody bought in the west.

    Whole prices from -5 to 14, no pieces for each seventh customer, and one sale for 900 in the east.
    """
    sales: list[tuple[object, ...]] = []
    for customer in range(CUSTOMERS):
        for region in ("north", "south"):
            for _ in range(customer % 4):
                price = float(customer % 10 + (5 if region == "south" else -5))
                pieces = None if customer % 7 == 0 else customer % 5
                item = "tea" if customer % 2 else "coffee"
                sales.append((len(sales), customer, region, item, price, pieces, customer % 3 == 0))
    sales.append((len(sales), 1, "east", "gold", 900.0, 1, True))
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("CREATE TABLE customers (customer BIGINT, age BIGINT)")
        connection.executemany("INSERT INTO customers VALUES (?, ?)", [(c, 20 + c) for c in range(CUSTOMERS)])
        connection.execute(
            "CREATE TABLE sales (sale BIGINT, customer BIGINT, region VARCHAR, item VARCHAR, price DOUBLE, "
            "pieces BIGINT, gift BOOLEAN)"
        )
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?, ?, ?, ?)", sales)


@contextmanager
def open_shop(folder: Path) -> Iterator[Clinic]:
    """The shop in a folder."""
    with open_plain(folder, declared(), write_rows) as opened:
        yield opened


def _asked(dataset: Dataset, clause: Clause) -> Dataset:
    """The dataset with the contribution bounds of a clause."""
    check_clause(clause, dataset)
    return dataset.bounded_by(
        AskedContribution(
            rows_per_unit=clause.rows_per_unit,
            groups_per_unit=clause.groups_per_unit,
            rows_per_unit_and_group=clause.rows_per_unit_and_group,
        )
    )


def answered(shop: Clinic, sql: str) -> list[list[Any]]:
    """The journey's rows for a text in GoogleSQL's spelling, at a huge epsilon. Errors: Refused."""
    found = respelled(sql)
    assert found is not None, "the text has something of GoogleSQL's"
    dataset = _asked(shop.dataset, found.clause)
    check_groups(found.clause, bound(lift(found.sql, dataset)))
    return replace(shop, dataset=dataset).answer(found.sql, {}, gaussian=True)


def code_of(sql: str) -> str:
    """The code of the refusal of a text; "" where it is planned."""
    dataset = declared()
    try:
        found = respelled(sql)
        clause, text = (Clause(), sql) if found is None else (found.clause, found.sql)
        dataset = _asked(dataset, clause)
        check_groups(clause, bound(lift(text, dataset)))
    except Refused as refused:
        return refused.findings[0].code
    return ""
