"""Public tables of more than 1,000 rows in nested queries beside people: every answer is DuckDB's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from privacy.bounds import ContributionBound, ValueBounds
from privacy.policy import Column, ColumnType, PublicKeys, Reference, Table
from privacy.refusal import Refused
from privacy.unit import PrivacyUnit
from sql_rewrite import public_values
from tests.battery.outcomes import difference
from tests.plain_clinic import Clinic, open_plain
from tests.sql_rewrite.datasets import CLINIC

_ROWS = 3_000
_T = ColumnType
_PARTS = Table(
    "parts",
    (
        Column("part_id", _T.INTEGER, nullable=False),
        Column("kind", _T.TEXT, keys=PublicKeys(("a", "b", "c")), nullable=False),
        Column("price", _T.NUMBER, ValueBounds(Fraction(0), Fraction(1000))),
        Column("maker", _T.INTEGER, ValueBounds(Fraction(0), Fraction(2000)), nullable=False),
    ),
    protected=False,
    key="part_id",
)
_SALES = Table(
    "sales",
    (
        Column("person_id", _T.INTEGER, nullable=False),
        Column("part_id", _T.INTEGER, nullable=False),
        Column("paid", _T.NUMBER, ValueBounds(Fraction(0), Fraction(1000))),
    ),
    protected=True,
    references=(Reference("person_id", "buyers", "person_id"), Reference("part_id", "parts", "part_id")),
    unit_column="person_id",
    contribution=ContributionBound(50, 5, 50),
    rows_stored_per_unit=50,
)
_BUYERS = Table(
    "buyers",
    (Column("person_id", _T.INTEGER, nullable=False),),
    protected=True,
    key="person_id",
    unit_column="person_id",
    contribution=ContributionBound(1, 1, 1),
)
_SHOP = replace(CLINIC, name="shop", unit=PrivacyUnit("buyers", "person_id"), tables=(_BUYERS, _SALES, _PARTS))


def _write(path: Path) -> None:
    with closing(duckdb.connect(str(path))) as rows:
        rows.execute(
            f"CREATE TABLE parts AS SELECT i AS part_id, ['a', 'b', 'c'][1 + i % 3] AS kind, "
            f"CASE WHEN i % 11 > 0 THEN (i * 37 % 9000) / 10.0 END AS price, i % 1500 AS maker FROM range({_ROWS}) r(i)"
        )
        rows.execute("CREATE TABLE buyers AS SELECT i AS person_id FROM range(90) r(i)")
        rows.execute(
            "CREATE TABLE sales AS SELECT i % 90 AS person_id, i * 13 % 3000 AS part_id, i * 7 % 900 AS paid "
            "FROM range(2000) r(i)"
        )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """Sales of ninety people, and three thousand parts."""
    with open_plain(tmp_path_factory.mktemp("shop"), _SHOP, _write) as opened:
        yield opened


_ANSWERED = """
SELECT p.dear, COUNT(*) FROM sales s JOIN (SELECT part_id, price > 400 AS dear FROM parts WHERE kind <> 'b') p ON p.part_id = s.part_id GROUP BY p.dear
SELECT COUNT(*), COUNT(p.double), SUM(p.double) FROM sales s LEFT JOIN (SELECT part_id, COALESCE(price, 1) * 2 AS double FROM parts WHERE kind = 'a') p ON p.part_id = s.part_id
WITH p AS (SELECT part_id, kind FROM parts WHERE price > 100) SELECT kind, SUM(paid) FROM sales JOIN p USING (part_id) GROUP BY kind
SELECT COUNT(*) FROM sales s JOIN (SELECT maker, price FROM parts WHERE price > 300) p ON p.maker = s.part_id
SELECT COUNT(*) FROM sales s JOIN (SELECT a.part_id, b.price FROM parts a JOIN parts b ON a.maker = b.part_id WHERE b.kind = 'c') p USING (part_id)
SELECT COUNT(*) FROM sales WHERE paid > (SELECT AVG(price) FROM parts WHERE kind = 'a')
SELECT k.n > 900, COUNT(*) FROM sales s JOIN parts p USING (part_id) JOIN (SELECT kind, COUNT(price) AS n FROM parts GROUP BY kind) k ON k.kind = p.kind GROUP BY 1
SELECT COUNT(*) FROM sales WHERE part_id IN (SELECT part_id FROM parts ORDER BY price DESC NULLS LAST, part_id LIMIT 200)
SELECT COUNT(*) FROM sales s JOIN parts p USING (part_id) WHERE p.price > (SELECT AVG(q.price) FROM parts q WHERE q.kind = p.kind)
"""  # noqa: E501 - a text a line


@pytest.mark.parametrize("text", _ANSWERED.strip().split("\n"))
def test_the_answer_is_the_engines_own(shop: Clinic, text: str) -> None:
    """Shows scans, joined by their key or by equal columns, and aggregates of them as constants."""
    assert not difference(shop, text)


def test_larger_tables_are_no_constants(shop: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that an aggregate of a table with too many values is refused, and a scan of it is still answered."""
    scan, aggregate = (_ANSWERED.strip().split("\n")[place] for place in (0, 5))
    monkeypatch.setattr(public_values, "_CELLS_READ", 4 * _ROWS - 1)
    assert not difference(shop, scan)
    with pytest.raises(Refused):
        difference(shop, aggregate)
