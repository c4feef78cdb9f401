"""What is summed of public tables without declared bounds lies within their values, which everybody knows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from privacy.policy import Dataset
from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.expressions import ColumnRef, columns_of
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.sql_rewrite.datasets import AUTOMATIC
from tests.sql_rewrite.test_public_joins import Rows


def clinic(rows: Rows | None) -> Dataset:
    """Nobody declared how many beds a hospital has, and questions choose how much of a unit counts."""
    tables = [
        replace(table, columns=tuple(replace(one, bounds=None) if one.name == "beds" else one for one in table.columns))
        for table in AUTOMATIC.tables
    ]
    return replace(AUTOMATIC, tables=tuple(tables), public=rows)


KNOWN, NOTHING = clinic(Rows()), clinic(None)
VISITS = "visits AS v JOIN hospitals AS h ON v.hospital_id = h.hospital_id"


def ranges(sql: str, dataset: Dataset = KNOWN) -> set[tuple[Fraction, Fraction] | None]:
    """What is declared, or known, of the beds that aggregates sum."""
    (core,) = lift(sql, dataset).cores
    values = [value for aggregate in core.aggregates for value in aggregate.values]
    columns = [column for value in values for column in columns_of(value) if column.name == "beds"]
    assert all(isinstance(column, ColumnRef) for column in columns)
    known = [column.declared for column in columns]
    return {None if one is None else (one.lower, one.upper) for one in known}  # type: ignore[misc]


@pytest.mark.parametrize(
    "call",
    ["AVG(h.beds)", "SUM(h.beds * 0.5)", "STDDEV(h.beds)", "MEDIAN(h.beds)", "CORR(h.beds, v.cost)", "AVG(h.beds * 2)"],
)
def test_what_is_summed_lies_within_the_values_of_the_table(call: str) -> None:
    """Shows that such a question is answered where the rows are known, and refused where they are not."""
    sql = f"SELECT {call} FROM {VISITS}"
    assert ranges(sql) == {(10, 60)}
    (core,) = bound(lift(sql, KNOWN))
    assert lower(core).sql
    with pytest.raises(Refused) as refused:
        bound(lift(sql, NOTHING))
    assert refused.value.findings[0].code == "column_without_bounds"


@pytest.mark.parametrize(
    "call",
    ["SUM(h.beds)", "AVG(LEAST(GREATEST(h.beds, 0), 40))", "COUNT(h.beds)", "COUNT(DISTINCT h.beds)", "SUM(v.cost)"],
)
def test_what_was_answered_before_is_the_same_question(call: str) -> None:
    """Shows that questions which need no such range do not get one: stored releases go on serving them."""
    with_rows, without = (lift(f"SELECT {call} FROM {VISITS}", one).cores[0] for one in (KNOWN, NOTHING))
    assert with_rows == without


def test_the_range_follows_the_rows() -> None:
    """Shows another range of other rows, and none of one value or of too many rows."""
    sql = f"SELECT AVG(h.beds) FROM {VISITS}"
    more = clinic(Rows(((1, "north", 5), (2, "south", 70))))
    assert ranges(sql, more) == {(5, 70)}
    assert ranges(sql, clinic(Rows(((1, "north", 5), (2, "south", 5))))) == {None}
    assert ranges(sql, clinic(Rows(large=True))) == {None}
