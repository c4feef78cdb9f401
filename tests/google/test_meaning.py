"""GoogleSQL's spelling: the same release as the plain text, the same numbers as plain DuckDB, the same refusals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sql_rewrite.google_clause import respelled
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import canonical_core
from tests.google.cases import DECIDED, ERRORS, MEANT, spellings
from tests.google.shop import CUSTOMERS, answered, code_of, declared, open_shop
from tests.plain_clinic import Clinic
from tests.test_huge_epsilon import compare


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """One snapshot for all cases."""
    with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


@pytest.mark.parametrize(("plain", "google"), list(spellings()))
def test_a_spelling_is_the_plain_question(plain: str, google: str) -> None:
    """Shows the same cores, so that one release serves both."""
    found = respelled(google)
    assert found is not None
    said, meant = ([canonical_core(core) for core in lift(text, declared()).cores] for text in (found.sql, plain))
    assert said == meant
    assert said


@pytest.mark.sparse(4)
@pytest.mark.parametrize(("google", "plain"), [*MEANT, *DECIDED])
def test_the_meaning_is_that_of_the_plain_text(shop: Clinic, google: str, plain: str) -> None:
    """Shows the numbers of DuckDB at a huge epsilon."""
    compare(shop.directly(plain, {}), answered(shop, google), ordered=False)


@pytest.mark.parametrize(("code", "sql"), ERRORS)
def test_errors_are_refusals_with_a_code(code: str, sql: str) -> None:
    """Shows that nothing of a text is ignored, and that no option makes a text lawful."""
    assert code_of(sql) == code


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_unit_counts_in_as_many_groups_as_are_asked_for(shop: Clinic, groups: int) -> None:
    """Shows that all groups together hold no more than each customer's groups, and hold them where that is enough."""
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = {groups}) item, region, "
    sql += "COUNT(DISTINCT customer) AS n FROM sales WHERE item <> 'gold' GROUP BY item, region"
    present = sum(1 for customer in range(CUSTOMERS) if customer % 4)
    assert sum(row[2] for row in answered(shop, sql)) == present * min(groups, 2)


@pytest.mark.parametrize("rows", [1, 3, 12])
def test_a_unit_counts_with_as_many_rows_as_are_asked_for(shop: Clinic, rows: int) -> None:
    """Shows the rows of each customer, at most as many."""
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {rows}) COUNT(*) FROM sales "
    sql += "WHERE region <> 'east'"
    assert answered(shop, sql) == [[sum(min(rows, 2 * (customer % 4)) for customer in range(CUSTOMERS))]]


def test_the_cases_are_as_many_as_they_were() -> None:
    """Nobody has thinned out the lists."""
    listed = [google for _, google in spellings()] + [google for google, _ in (*MEANT, *DECIDED)]
    listed += [sql for _, sql in ERRORS]
    assert len(set(listed)) == len(listed) >= 190
