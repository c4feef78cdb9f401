"""Whose words a text is made of: what the lift reads and DuckDB reads otherwise, or not at all, is refused.

Until version 0.2.0 the lift imitated DuckDB's parser, rule by rule. `CLASSES` are those rules: each of them is now kept
by DuckDB itself, by the lift, or not needed, because both readers mean the same.
"""

from __future__ import annotations

import itertools
import random
import re

import duckdb
import pytest
import sqlglot

from privacy.refusal import Refused
from sql_rewrite.lift import lift
from sql_rewrite.spelling import RESERVED_BARE
from tests.hostile.calls import CALLS
from tests.hostile.duck import Clinic, Expressions, Reader, same_rows, same_values
from tests.sql_rewrite.datasets import CLINIC
from tests.thinned import thinned

SYNTAX = {"cast", "coalesce", "extract", "ifnull", "percentile_cont", "percentile_disc", "try_cast"}
"""Calls that DuckDB's grammar knows, so that they are not in its list of functions."""

ARGUMENTS = ("age", "hours", "income", "education", "born", "smoker", "2", "'a'", "'year'")
DIFFERENT = {"least", "greatest"}
"""Functions that treat NULL otherwise than DuckDB (docs/functions.md)."""

COUNT = "SELECT COUNT(*) FROM people WHERE "
SUMS = "SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY sex "
TWO = "FROM (SELECT COUNT(*) AS n FROM people) AS x JOIN (SELECT COUNT(*) AS m FROM visits) AS y"

CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "clauses in another order": (
        "engine",
        (
            "SELECT COUNT(*) FROM people LIMIT 2 WHERE age > 1",
            "SELECT sex FROM people HAVING COUNT(*) > 1 GROUP BY sex",
            "SELECT COUNT(*) FROM people WHERE age > 1 WHERE smoker", SUMS + "LIMIT 1 ORDER BY sex",
            "SELECT sex, COUNT(*) FROM people GROUP BY sex WHERE smoker", SUMS + "ORDER BY n ORDER BY sex",
        ),
    ),
    "values side by side": ("engine", (COUNT + "age = 1 2", COUNT + "sex = 'a' 'b'", COUNT + "age 1 > 2")),
    "numbers and names that touch": ("engine", (COUNT + "age = 5age", COUNT + "age = 1e", COUNT + "age = 1__0")),
    "signs in a row": ("engine", (COUNT + "education = 'a' ||- age", COUNT + "age %- 2 = 1", COUNT + "age @- 1 = 1")),
    "nothing where something is needed": (
        "engine",
        (
            "SELECT , COUNT(*) FROM people", "SELECT COUNT(*),, SUM(age) FROM people", COUNT + "age IN (1,,2)",
            COUNT + "age > 1 AND", "SELECT COUNT(*) FROM people WHERE", "SELECT COUNT(*) FROM people GROUP BY",
            "SELECT sex, COUNT(*) FROM people GROUP BY sex, , smoker", "SELECT COUNT(*) AS FROM people",
            COUNT + "CASE WHEN smoker THEN ELSE TRUE END", COUNT + "age BETWEEN 1 5", COUNT + "age IN",
            "SELECT COUNT(*) FROM people, WHERE smoker, GROUP BY ALL", "SELECT ALL FROM people",
            COUNT + "CASE WHEN smoker 1 ELSE 2 END = 1", "WITH a(n) (SELECT COUNT(*) FROM people) SELECT n FROM a",
        ),
    ),
    "a word of the dialect as a name": (
        "engine",
        tuple(f"SELECT COUNT(*) {word} FROM people" for word in ("end", "left", "year", "order", "semi", "at"))
        + tuple(f"SELECT COUNT(*) FROM people {word}" for word in ("end", "asof", "qualify", "isnull"))
        + ("SELECT n AS m FROM (SELECT COUNT(*) AS n FROM people) AS select", "SELECT order: COUNT(*) FROM people"),
    ),
    "a text as a name": ("engine", ("SELECT COUNT(*) 'name' FROM people", 'SELECT COUNT(*) AS "" FROM people')),
    "comparisons in a chain": (
        "engine",
        (COUNT + "age > 1 = TRUE", COUNT + "age = hours = TRUE", COUNT + "1 < age < 5"),
    ),
    "a star where there is none": ("engine", ("SELECT COUNT(*) FROM people*", "SELECT COUNT(* *) FROM people")),
    "NOT and ALL out of place": (
        "engine",
        (
            COUNT + "smoker NOT IS NULL", "SELECT COUNT(ALL) FROM people", SUMS + "ORDER BY 1 ASC DESC",
            "SELECT COUNT(*) FROM people GROUP BY DISTINCT sex", SUMS + "ORDER BY ALL, n",
        ),
    ),
    "LIMIT with a comma": ("engine", ("SELECT COUNT(*) FROM people LIMIT 5, 3",)),
    "a join of released numbers without ON": ("engine", ("SELECT n, m " + TWO, "SELECT n, m " + TWO + " WHERE n > m")),
    "a window without its name": ("engine", ("SELECT SUM(n) OVER w FROM (SELECT COUNT(*) AS n FROM people) WINDOW w",)),
    "a query behind a name": ("engine", (COUNT + "EXISTS2 (SELECT 1)", "SELECT COUNT(*) FROM people p (SELECT 1)")),
    "functions of other systems": (
        "engine",
        (
            COUNT + "nvl(age, 0) > 1", COUNT + "signum(age) = 1", COUNT + "iif(smoker, 1, 2) = 1",
            COUNT + "mod(age, 2, 3) = 1", "SELECT nvl(n, 0) AS x FROM (SELECT COUNT(*) AS n FROM people)",
        ),
    ),
    "templates": ("engine", ("SELECT COUNT(*) FROM people {# WHERE smoker #}", "SELECT COUNT(*) {# x #} FROM people")),
    "brackets that do not match": ("engine", ("SELECT COUNT(*) FROM people)", "SELECT (COUNT(*) FROM people")),
    "signs that mean something else": (
        "lift",
        (COUNT + "!smoker", "SELECT 5! IS NULL", COUNT + "@age > 1", COUNT + "age <=> 1", COUNT + "age DIV 2 = 1"),
    ),
    "a plus that is dropped": ("lift", (SUMS + "ORDER BY +1", SUMS + "ORDER BY n, +2", COUNT + "age = + 1")),
    "UNKNOWN": ("lift", (COUNT + "smoker IS UNKNOWN", COUNT + "smoker IS NOT UNKNOWN")),
    "parameters of other systems": ("lift", (COUNT + "age > ?", COUNT + "age > :least")),
    "spaces and comments that only one reader sees": (
        "lift",
        (
            "SELECT COUNT(*) FROM people /*/* */ WHERE smoker -- */", "SELECT COUNT(*) FROM people\u00a0WHERE smoker",
            'SELECT COUNT(*) AS "n\u00a0", SUM(age) AS n FROM people GROUP BY sex ORDER BY n\u00a0',
            'SELECT COUNT(*) AS "n\u2028DESC", SUM(age) AS n FROM people GROUP BY sex ORDER BY n\u2028DESC',
            'SELECT COUNT(*) AS "n\u200bDESC", SUM(age) AS n FROM people GROUP BY sex ORDER BY n\u200bDESC',
            "SELECT COUNT(*) /* ' */ FROM people WHERE education = 'a\u00a0b'",
        ),
    ),
    "both mean the same": (
        "same",
        (
            "SELECT COUNT(*) AS n, FROM people", "SELECT COUNT(ALL age) FROM people", COUNT + "age IN (1, 34,)",
            "SELECT ALL sex, COUNT(*) FROM people GROUP BY sex,", "SELECT COUNT(*) FROM people over",
            "SELECT COUNT(*) FROM people --\rWHERE smoker", "SELECT COUNT(*) FROM people /* /* */ */ WHERE smoker",
            "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY ALL", COUNT + "education !~~ 's%'",
        ),
    ),
}  # fmt: skip


def accepted(clinic: Clinic, sql: str) -> bool:
    """Whether DuckDB runs a text."""
    try:
        clinic.connection.execute(sql)
    except duckdb.Error:
        return False
    return True


def is_refused(reader: Reader, text: str) -> bool:
    """Whether a text is refused before anything is charged, by the lift or by the engine."""
    try:
        reader.read(text)
    except Refused:
        return True
    return False


@pytest.mark.parametrize("name", list(CLASSES))
def test_every_class_of_words_has_its_judge(clinic: Clinic, reader: Reader, name: str) -> None:
    """Shows of each rule that DuckDB keeps it, or that the lift does, or that both readers mean the same."""
    judge, texts = CLASSES[name]
    for text in texts:
        if judge == "engine":
            assert is_refused(reader, text), text
            assert not accepted(clinic, text), text
        elif judge == "lift":
            with pytest.raises(Refused):
                lift(text, CLINIC)
        else:
            reader.read(text)
            assert same_rows(clinic.direct(text), clinic.planned(text)), text


def test_a_reader_of_spaces_would_be_deceived(clinic: Clinic) -> None:
    """Shows why the lift looks between the words: DuckDB reads these texts, and does not mean what they show."""
    hidden = "SELECT COUNT(*) FROM people /*/* */ WHERE smoker -- */"
    assert clinic.direct(hidden) == clinic.direct("SELECT COUNT(*) FROM people")
    assert clinic.direct(hidden) != clinic.direct("SELECT COUNT(*) FROM people WHERE smoker")
    assert clinic.direct("SELECT /* ' */ 'a\u00a0b' = 'a b'") == [(True,)]
    assert clinic.direct("SELECT 'a\u00a0b' = 'a b'") == [(False,)]


SEEDS = (
    "SELECT COUNT(*) AS n FROM people WHERE age > 30 AND NOT smoker",
    "SELECT sex, SUM(age) FROM people AS p WHERE age BETWEEN 1 AND 50 OR sex IN ('male', 'x') GROUP BY sex "
    "HAVING COUNT(*) > 1 ORDER BY sex DESC LIMIT 5",
    "SELECT n + 1 AS m FROM (SELECT sex AS s, COUNT(*) AS n FROM people GROUP BY ALL) AS t WHERE n >= 2 ORDER BY m",
    "SELECT CASE WHEN age < 40 THEN 1 ELSE 2 END AS k, COUNT(*) FROM people GROUP BY 1",
    "WITH a AS (SELECT sex AS s, COUNT(*) AS n FROM people GROUP BY sex) "
    "SELECT s, rank() OVER (PARTITION BY s ORDER BY n) AS r FROM a UNION ALL SELECT 'z', 0",
    "SELECT COUNT(*) FROM visits v JOIN people p ON v.person_id = p.person_id WHERE cost % 2 = 0 AND day IS NOT NULL",
    "SELECT COUNT(*) FILTER (WHERE CAST(age AS DOUBLE) / 2 > 7.5) AS a FROM people WHERE SUBSTRING(sex, 1, 2) = 'ma'",
    "SELECT x.n, y.n FROM (SELECT COUNT(*) AS n FROM people) x JOIN (SELECT COUNT(*) AS n FROM visits) y ON x.n <> y.n",
)
SIGNS = (
    *"; ( ) , . * + - / // % = == <> != < > <= >= || :: : ? $1 @ ! ~ ^ ** & | << >> -> ->> [ ] { } # `".split(),
    *("\\", "&&", "=>", "=<"),
    *"!~~ ~~ ~~* ^@ <=> .. ?? 1 0.5 'a' \"b\" age sex n 1e2 1_0 5age $$x$$ E'x' X'41' é () (1) [1] x: :x".split(),
    *"::BIGINT COUNT(*) +1 -1 unknown div mod xor top final notnull u&".split(),
    *("\u2028", "\u00a0", "\u200b", "\x85", "\r", "--\r", "-- x\n", "/* x */", "/*", "*/", "/*/* */", "{# x #}"),
)
_PIECE = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|[<>=!]+|.")


@thinned(10)
def test_any_word_in_any_place_is_refused_or_means_what_duckdb_means(
    clinic: Clinic, reader: Reader, every: int
) -> None:
    """Shows a sample of all words of both readers, put between and in place of the words of texts of every construct.

    A larger sample (74,000 texts, 4,400 of them accepted by the lift alone) was compared once: no difference.
    """
    words = [row[0] for row in clinic.direct("SELECT keyword_name FROM duckdb_keywords()")]
    keywords = sqlglot.Dialect.get_or_raise("duckdb").tokenizer_class.KEYWORDS
    vocabulary = [*sorted({*words, *(word.lower() for word in keywords if word.isalpha())}), *SIGNS]
    source = random.Random(4)
    read = unread = 0
    differences: list[object] = []
    for _ in range(3_000 // every):
        pieces = _PIECE.findall(source.choice(SEEDS))
        place, word = source.randrange(len(pieces) + 1), source.choice(vocabulary)
        space = source.choice(("", " "))
        replaced = source.random() < 0.3
        text = "".join([*pieces[:place], space, word, space, *pieces[place + replaced :]])
        try:
            lift(text, CLINIC)
            read += 1
            reader.read(text)
        except Refused:
            unread += 1
            continue
        differences.append(clinic.difference(text, excused=lambda *_: False))
    assert [difference for difference in differences if difference is not None] == []
    assert read > 100 / every
    assert unread > 2_000 / every


def test_the_list_of_words_is_duckdbs_own(clinic: Clinic) -> None:
    """Shows that a hint puts exactly those names into quotes that DuckDB does not take as a column's name."""
    words = [row[0] for row in clinic.direct("SELECT keyword_name FROM duckdb_keywords()")]
    assert {word for word in words if not accepted(clinic, f"SELECT 1 {word}")} == RESERVED_BARE


def test_every_call_of_the_list_is_duckdbs(clinic: Clinic) -> None:
    """Shows that no function of the list is another system's."""
    names = {row[0].lower() for row in clinic.direct("SELECT function_name FROM duckdb_functions()")}
    assert CALLS - names == SYNTAX


WRITTEN_OUT = {"approx_top_k", "histogram", "mad"}
"""Read as the aggregates and the order that they stand for; the engine's functions of these names are never called."""


@thinned(20)
def test_calls_outside_the_list_are_refused(clinic: Clinic, reader: Reader, every: int) -> None:
    """Shows that each name that either reader knows, and the list does not, is refused in core and shell."""
    parser = sqlglot.Dialect.get_or_raise("duckdb").parser()
    names = {row[0].lower() for row in clinic.direct("SELECT function_name FROM duckdb_functions()")}
    names |= {name.lower() for name in parser.FUNCTIONS} | {name.lower() for name in parser.FUNCTION_PARSERS}
    unknown = sorted(name for name in names - CALLS - WRITTEN_OUT if name.isidentifier())
    assert len(unknown) > 800
    answered = [
        text
        for name in unknown[::every]
        for arguments in ("", "age", "age, 2", "age, 2, 3")
        for text in (
            f"SELECT COUNT(*) FROM people WHERE {name}({arguments}) IS NULL",
            f"SELECT {name}({arguments}) FROM (SELECT COUNT(*) AS age FROM people)",
        )
        if not is_refused(reader, text)
    ]
    assert answered == []


@thinned(10)
def test_every_call_means_what_duckdb_means(clinic: Clinic, every: int) -> None:
    """Shows that each listed function that is answered on rows has DuckDB's values, whatever its arguments are."""
    engine = Expressions(clinic)
    compared, differences = 0, []
    for name in sorted(CALLS - DIFFERENT)[::every]:
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
    assert compared > 200 / every
