"""The word lists of `sql_rewrite.spelling` against DuckDB itself, and every function name against both readers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import duckdb
import pytest
import sqlglot

from privacy.refusal import Refused
from sql_rewrite.lift import lift
from sql_rewrite.spelling import CALLS, RESERVED, RESERVED_BARE, RESERVED_RELATION
from tests.hostile.duck import Clinic, Expressions, same_values
from tests.sql_rewrite.datasets import CLINIC

SYNTAX = {"cast", "coalesce", "extract", "ifnull", "percentile_cont", "percentile_disc", "try_cast"}
"""Calls that DuckDB's grammar knows, so that they are not in its list of functions."""

ARGUMENTS = ("age", "hours", "income", "education", "born", "smoker", "2", "'a'", "'year'")
DIFFERENT = {"least", "greatest"}
"""Functions that treat NULL otherwise than DuckDB (docs/functions.md)."""


@pytest.fixture(scope="module")
def clinic() -> Iterator[Clinic]:
    """The clinic's rows in DuckDB."""
    made = Clinic()
    yield made
    made.close()


def accepted(clinic: Clinic, sql: str) -> bool:
    """Whether DuckDB runs a text."""
    try:
        clinic.connection.execute(sql)
    except duckdb.Error:
        return False
    return True


def test_the_lists_of_words_are_duckdbs_own(clinic: Clinic) -> None:
    """Shows that the words which cannot be names are exactly those that DuckDB does not take as names."""
    words = [row[0] for row in clinic.direct("SELECT keyword_name FROM duckdb_keywords()")]
    reserved = clinic.direct("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
    assert {row[0] for row in reserved} == RESERVED
    assert {word for word in words if not accepted(clinic, f"SELECT 1 {word}")} == RESERVED_BARE
    relations = {
        word for word in words if not accepted(clinic, f"SELECT x.a FROM (SELECT 1 AS a) {word}, (SELECT 1 AS a) x")
    }
    assert relations == RESERVED_RELATION


def test_every_call_of_the_list_is_duckdbs(clinic: Clinic) -> None:
    """Shows that no function of the list is another system's."""
    names = {row[0].lower() for row in clinic.direct("SELECT function_name FROM duckdb_functions()")}
    assert set(CALLS) - names == SYNTAX


def test_calls_outside_the_list_are_refused(clinic: Clinic) -> None:
    """Shows that each name that either reader knows, and the list does not, is refused in core and shell."""
    parser = sqlglot.Dialect.get_or_raise("duckdb").parser()
    names = {row[0].lower() for row in clinic.direct("SELECT function_name FROM duckdb_functions()")}
    names |= {name.lower() for name in parser.FUNCTIONS} | {name.lower() for name in parser.FUNCTION_PARSERS}
    unknown = sorted(name for name in names - set(CALLS) if name.isidentifier())
    assert len(unknown) > 800
    for name in unknown:
        for arguments in ("", "age", "age, 2", "age, 2, 3"):
            for text in (
                f"SELECT COUNT(*) FROM people WHERE {name}({arguments}) IS NULL",
                f"SELECT {name}({arguments}) FROM (SELECT COUNT(*) AS age FROM people)",
            ):
                with pytest.raises(Refused):
                    lift(text, CLINIC)


def test_every_call_means_what_duckdb_means(clinic: Clinic) -> None:
    """Shows that each listed function that is answered on rows has DuckDB's values, whatever its arguments are."""
    engine = Expressions(clinic)
    compared, differences = 0, []
    for name in sorted(set(CALLS) - DIFFERENT):
        for count in (1, 2):
            for arguments in itertools.product(ARGUMENTS, repeat=count):
                text = f"{name}({', '.join(arguments)})"
                try:
                    expression = engine.lifted(text)
                except Refused:
                    continue
                compared += 1
                if not same_values(engine.direct(text), engine.planned(expression)):
                    differences.append(text)
    assert differences == []
    assert compared > 200
