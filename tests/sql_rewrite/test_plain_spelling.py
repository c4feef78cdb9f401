"""Spellings that are written out in plainer words: the same releases, and what has another meaning stays refused."""

from __future__ import annotations

import re

import pytest

from privacy.refusal import Refused
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import canonical_core
from sql_rewrite.text import folded
from tests.sql_rewrite.datasets import CLINIC

COUNTED = "SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY sex, smoker"

SAME = [
    ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n FETCH FIRST 1 ROWS ONLY",
     "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n LIMIT 1"),
    ("SELECT COUNT(*) FROM people WHERE (sex, age) IN (('male', 3), ('female', 4))",
     "SELECT COUNT(*) FROM people WHERE (sex IS NOT DISTINCT FROM 'male' AND age IS NOT DISTINCT FROM 3) "
     "OR (sex IS NOT DISTINCT FROM 'female' AND age IS NOT DISTINCT FROM 4)"),
    ("SELECT COUNT(*) FROM people WHERE (sex, age) IN (('male', 3), ('female', -4))",
     "SELECT COUNT(*) FROM people WHERE (sex IS NOT DISTINCT FROM 'male' AND age IS NOT DISTINCT FROM 3) "
     "OR (sex IS NOT DISTINCT FROM 'female' AND age IS NOT DISTINCT FROM -4)"),
    (f"SELECT * FROM ({COUNTED}) PIVOT (SUM(n) FOR sex IN ('male', 'female')) AS p",
     "SELECT * FROM (SELECT smoker, SUM(n) FILTER (WHERE sex = 'male') AS male, SUM(n) FILTER (WHERE sex = 'female') "
     f"AS female FROM ({COUNTED}) AS pivoted GROUP BY smoker) AS p"),
    (f"SELECT * FROM ({COUNTED}) PIVOT (SUM(n) FOR smoker IN (true, false)) AS p",
     'SELECT * FROM (SELECT sex, SUM(n) FILTER (WHERE smoker = true) AS "true", SUM(n) FILTER (WHERE smoker = false) '
     f'AS "false" FROM ({COUNTED}) AS pivoted GROUP BY sex) AS p'),
    ("SELECT * FROM (SELECT SUM(age) AS a, SUM(hours) AS h FROM people) UNPIVOT (x FOR what IN (a, h)) AS p",
     "SELECT * FROM (SELECT what, CASE what WHEN 'a' THEN a WHEN 'h' THEN h END AS x FROM (SELECT SUM(age) AS a, "
     "SUM(hours) AS h FROM people) AS unpivoted, (VALUES ('a'), ('h')) AS labels(what) "
     "WHERE NOT (CASE what WHEN 'a' THEN a WHEN 'h' THEN h END) IS NULL) AS p"),
    ("SELECT COUNT(*) AS n, 'a' AS k FROM people UNION ALL BY NAME SELECT 'b' AS k, COUNT(*) AS n FROM visits",
     "SELECT COUNT(*) AS n, 'a' AS k FROM people UNION ALL SELECT n, k FROM (SELECT 'b' AS k, COUNT(*) AS n "
     "FROM visits) AS named"),
    (f"SELECT DISTINCT ON (sex) sex, n FROM ({COUNTED}) AS t ORDER BY sex, n DESC",
     f"SELECT sex, n FROM ({COUNTED}) AS t QUALIFY ROW_NUMBER() OVER (PARTITION BY sex ORDER BY sex, n DESC) = 1 "
     "ORDER BY sex, n DESC"),
    (f"SELECT * REPLACE (n * 2 AS n) FROM ({COUNTED}) AS t",
     f"SELECT t.sex, t.smoker, n * 2 AS n FROM ({COUNTED}) AS t"),
    ("SELECT age || '!' AS k, COUNT(*) FROM people GROUP BY k",
     "SELECT CAST(age AS VARCHAR) || '!' AS k, COUNT(*) FROM people GROUP BY k"),
    ("SELECT CONCAT(smoker, born) AS k, COUNT(*) FROM people GROUP BY k",
     "SELECT CONCAT(CAST(smoker AS VARCHAR), CAST(born AS VARCHAR)) AS k, COUNT(*) FROM people GROUP BY k"),
    ("SELECT COUNT(*) FROM people AS p SEMI JOIN visits AS v USING (person_id) WHERE age > 3",
     "SELECT COUNT(*) FROM people AS p WHERE (age > 3) AND EXISTS (SELECT 1 FROM visits AS v "
     "WHERE v.person_id = p.person_id)"),
    ("SELECT COUNT(*) FROM people AS p ANTI JOIN visits AS v ON v.person_id = p.person_id AND v.cost > 9",
     "SELECT COUNT(*) FROM people AS p WHERE NOT EXISTS (SELECT 1 FROM visits AS v "
     "WHERE v.person_id = p.person_id AND v.cost > 9)"),
    ("SELECT COUNT(*) FROM people WHERE sex = ANY(['male', 'female']) AND age <> ALL (ARRAY[-3, 4])",
     "SELECT COUNT(*) FROM people WHERE sex IN ('male', 'female') AND age NOT IN (-3, 4)"),
    ("SELECT COUNT(*) FROM people WHERE age / (hours + 1) ** 2 < 3 AND age ^ 2 > 4",
     "SELECT COUNT(*) FROM people WHERE age / POWER((hours + 1), 2) < 3 AND POWER(age, 2) > 4"),
    ("SELECT smoker IS NULL AS unknown, COUNT(*) AS n FROM people GROUP BY unknown ORDER BY unknown",
     'SELECT smoker IS NULL AS "unknown", COUNT(*) AS n FROM people GROUP BY "unknown" ORDER BY "unknown"'),
    (f"SELECT COLUMNS('s.*') FROM ({COUNTED}) AS t", f"SELECT t.sex, t.smoker FROM ({COUNTED}) AS t"),
    (f"SELECT COLUMNS('^sex|n$') FROM ({COUNTED}) AS t", f"SELECT t.sex, t.n FROM ({COUNTED}) AS t"),
]  # fmt: skip


def test_words_are_found_in_lower_case_wherever_a_pattern_without_regard_to_case_finds_them() -> None:
    """Shows it letter by letter: beyond ASCII there are four that such a pattern takes for letters of ASCII."""
    every = "".join(map(chr, range(1, 0x3000)))
    letters = {letter for letter in every if folded(letter) in set("abcdefghijklmnopqrstuvwxyz")}
    assert letters == set(re.findall("[a-z]", every, re.IGNORECASE))
    assert len(letters) == 2 * 26 + 4


@pytest.mark.parametrize(("spelled", "plain"), SAME)
def test_both_spellings_are_one_plan(spelled: str, plain: str) -> None:
    """Shows the same cores, so the same releases, and the same outer query."""
    ours, theirs = lift(spelled, CLINIC), lift(plain, CLINIC)
    assert [canonical_core(core) for core in ours.cores] == [canonical_core(core) for core in theirs.cores]
    assert ours.shell.sql == theirs.shell.sql
    assert [output.name for output in ours.shell.outputs] == [output.name for output in theirs.shell.outputs]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex FETCH FIRST 1 ROWS WITH TIES", "unsupported_sql"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex FETCH FIRST 10 PERCENT ROWS ONLY", "unsupported_sql"),
        ("SELECT * FROM people FETCH FIRST 5 ROWS ONLY", "raw_rows"),
        ("SELECT COUNT(*) FROM (SELECT * FROM people FETCH FIRST 5 ROWS ONLY) t", "private_row_limit"),
        ("SELECT COUNT(*) FROM people WHERE (sex, age) IN (('male', NULL))", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people WHERE (sex, age) IN (('male', 3, 4))", "unsupported_sql"),
        ("SELECT * FROM people PIVOT (COUNT(*) FOR sex IN ('male'))", "group_by_unit"),
        ("SELECT * FROM (SELECT age FROM people) PIVOT (COUNT(*) FOR age IN (3) age IN (4))", "unsupported_sql"),
        (f"SELECT * FROM ({COUNTED}) PIVOT (SUM(n) AS s, MAX(n) AS m FOR sex IN ('male'))", "unsupported_sql"),
        (f"SELECT * FROM ({COUNTED}) PIVOT (SUM(m) FOR sex IN ('male'))", "unsupported_sql"),
        (f"SELECT * FROM ({COUNTED}) PIVOT (SUM(n) FOR sex IN ('male' AS m))", "unsupported_sql"),
        ("SELECT * FROM (SELECT age, hours FROM people) UNPIVOT (x FOR k IN (age, hours))", "raw_rows"),
        ("SELECT COUNT(*) AS n FROM people UNION ALL BY NAME SELECT COUNT(*) AS m FROM visits", "unsupported_sql"),
        (f"SELECT DISTINCT ON (sex) sex, n * 2 AS n FROM ({COUNTED}) AS t ORDER BY n", "unsupported_sql"),
        ("SELECT DISTINCT ON (sex) sex, age FROM people ORDER BY age", "private_row_limit"),
        (f"SELECT * REPLACE (1 AS m) FROM ({COUNTED}) AS t", "unsupported_sql"),
        ("SELECT * REPLACE (0 AS age) FROM people", "raw_rows"),
        (f"SELECT FIRST(sex) FROM ({COUNTED}) AS t", "unsupported_function"),
        ("SELECT COUNT(*) FROM people WHERE sex = ANY(['male', NULL])", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people WHERE sex = ANY(['male', 3])", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people SEMI JOIN people USING (person_id)", "ambiguous_column"),
        ("SELECT COUNT(*) FROM people NATURAL SEMI JOIN visits", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people SEMI JOIN visits USING (person_id) SEMI JOIN visits AS v USING (person_id)",
         "unsupported_sql"),
        ("SELECT COUNT(*) FROM people SEMI JOIN visits ON visits.cost = people.age", "correlated_subquery"),
        ("SELECT education, MAD(age) FROM people GROUP BY education", "unsupported_function"),
        ("SELECT ENTROPY(sex), COUNT(*) FROM people", "unsupported_function"),
        ("SELECT COUNT(*) FROM people WHERE -age ** 2 > 4", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people WHERE age ** 2 ** 2 > 4", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people WHERE age ** 2::INTEGER > 4", "unsupported_sql"),
        ("SELECT COUNT(*) FROM people WHERE age ** -2 > 4", "unsupported_sql"),
        ("SELECT COLUMNS('.*') FROM people", "unsupported_function"),
        (f"SELECT COLUMNS('(s).*') AS '\\1' FROM ({COUNTED}) AS t", "unsupported_function"),
        (f"SELECT COLUMNS('zz') FROM ({COUNTED}) AS t", "unsupported_function"),
        (f"SELECT MAX(COLUMNS('n')) FROM ({COUNTED}) AS t", "unsupported_function"),
        ("SELECT FORMAT('{:99999999}', COUNT(*)) FROM people", "unsupported_function"),
        ("SELECT FORMAT('{:d}', COUNT(*)) FROM people", "unsupported_function"),
        ("SELECT FORMAT('{} {}', COUNT(*)) FROM people", "unsupported_function"),
        ("SELECT FORMAT(sex, n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) t", "unsupported_function"),
        ("SELECT COUNT(*) FROM people WHERE REPEAT(sex, 2) = 'ff'", "unsupported_function"),
        ("SELECT REPEAT(REPEAT('abc', 900), COUNT(*)::INTEGER) FROM people", "too_large"),
        ("SELECT salary || '!' AS k, COUNT(*) FROM people GROUP BY k", "unsupported_type"),
        ("SELECT person_id || '!' AS k, COUNT(*) FROM people GROUP BY k", "group_by_unit"),
    ],
)  # fmt: skip
def test_what_means_something_else_is_refused(text: str, code: str) -> None:
    """Shows that nothing is written out whose meaning is not exactly that."""
    with pytest.raises(Refused) as caught:
        lift(text, CLINIC)
    assert caught.value.findings[0].code == code


def test_entropy_of_people_is_warned_of() -> None:
    """Shows that ENTROPY of people says what its groups leave out, and that of a public table, which is exact, not."""
    private = lift("SELECT ENTROPY(education) FROM people", CLINIC)
    assert [warning.code for warning in private.warnings] == ["entropy_of_counts"]
    assert lift("SELECT ENTROPY(region) FROM hospitals", CLINIC).warnings == ()
