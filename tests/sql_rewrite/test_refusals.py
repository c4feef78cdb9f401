"""Refusals name what the analyst wrote, point at it, and say what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import duckdb
import pytest

from privacy.refusal import Finding, Refused
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from tests.hostile.duck import Reader
from tests.sql_rewrite.datasets import CLINIC
from tests.thinned import thinned


@cache
def reader() -> Reader:
    """What reads texts before anything is charged."""
    return Reader()


def findings(sql: str) -> Sequence[Finding]:
    """The findings of a text that must be refused."""
    with pytest.raises(Refused) as caught:
        reader().read(sql)
    return caught.value.findings


def finding(sql: str) -> Finding:
    """The first finding of a text that must be refused."""
    return findings(sql)[0]


def help_of(sql: str) -> str:
    """All that the first finding says."""
    found = finding(sql)
    return " ".join((found.what, found.why, *found.instead))


# --- statements that are no query --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "help_"),
    [
        ("EXPLAIN SELECT COUNT(*) FROM people", "POST /v1/estimates"),
        ("explain analyze SELECT COUNT(*) FROM people", "POST /v1/estimates"),
        ("DESCRIBE people", "GET /v1/datasets"),
        ("DESC people", "GET /v1/datasets"),
        ("SHOW TABLES", "GET /v1/datasets"),
        ("SHOW ALL TABLES", "GET /v1/datasets"),
        ("SUMMARIZE people", "COUNT(*), AVG(x)"),
        ("PRAGMA table_info('people')", "GET /v1/datasets"),
        ("SET threads = 4", "options of a query"),
        ("USE clinic", '"dataset" of the request'),
        ("INSERT INTO people VALUES (1)", "no query can change data"),
        ("UPDATE people SET age = 1", "no query can change data"),
        ("DELETE FROM people", "no query can change data"),
        ("CREATE TABLE x AS SELECT COUNT(*) FROM people", "WITH name AS"),
        ("DROP TABLE people", "make, change or drop"),
        ("COPY people TO 'x.csv'", "header Accept"),
        ("EXPORT DATABASE 'x'", "header Accept"),
        ("BEGIN", "stands alone"),
        ("PREPARE q AS SELECT 1", '"parameters" of the request'),
        ("PIVOT_WIDER people ON sex USING COUNT(*)", "FILTER (WHERE"),
        ("VALUES (1)", "SELECT 1"),
    ],
)
def test_other_statements_say_what_to_do_instead(sql: str, help_: str) -> None:
    """Shows the code, the statement's own word with its place, and the way out."""
    found = finding(sql)
    word = sql.split(None, 1)[0]
    assert ("not_a_query", f"{word.upper()} is refused") == (found.code, found.what)
    assert help_ in help_of(sql)
    assert found.position is not None
    assert (1, 1, word) == (found.position.line, found.position.column, found.position.text)


@pytest.mark.parametrize("sql", ["", "  \n\t", ";", " ; ;\n"])
def test_nothing_is_called_empty(sql: str) -> None:
    """Shows that a text without any word is empty."""
    assert ("parse_error", "the text is empty") == (finding(sql).code, finding(sql).what)


@pytest.mark.parametrize("sql", ["-- a comment", "/* a comment */", "-- one\n/* two */ ;"])
def test_a_comment_is_called_a_comment(sql: str) -> None:
    """Shows that a text of comments is not called empty."""
    assert ("parse_error", "the text contains only comments") == (finding(sql).code, finding(sql).what)


@pytest.mark.parametrize("second", ["SELECT 1", "DROP TABLE people", "EXPLAIN SELECT 1", "nonsense ("])
def test_a_second_statement_is_marked(second: str) -> None:
    """Shows that two statements are refused as such, whatever the second is, at the second one's first word."""
    found = finding(f"SELECT COUNT(*) FROM people;\n{second};")
    assert found.code == "many_statements"
    assert found.position is not None
    assert (2, 1, second.split()[0]) == (found.position.line, found.position.column, found.position.text)


def test_a_semicolon_at_the_end_is_no_statement() -> None:
    """Shows that semicolons before and behind one query are accepted."""
    bound(lift(";SELECT COUNT(*) FROM people;;", CLINIC))


@pytest.mark.parametrize(
    ("sql", "help_"),
    [
        ("SELEC COUNT(*) FROM people", 'did you mean "SELECT"?'),
        ("SELECT COUNT(*) FORM people", 'did you mean "FROM" instead of "FORM"?'),
        ("SELECT COUNT(*) FROM people WERE age > 3", 'did you mean "WHERE" instead of "WERE"?'),
        ("SELECT sex COUNT(*) FROM people GROUP BY sex", 'a comma missing before "COUNT"'),
        ("how many people are there?", "A query begins with SELECT"),
        ("SELECT COUNT(*) FROM", "ends where more was expected"),
        ("SELECT TOP 10 COUNT(*) FROM people", "LIMIT 10"),
        ("SELECT COUNT(*) FROM people WHERE age => 20", "x >= 1"),
        ("SELECT `sex`, COUNT(*) FROM people GROUP BY 1", "double quotes"),
        ("SELECT COUNT(*) FROM people WHERE age > ?", "$age"),
        ("SELECT COUNT(*) FROM people WHERE age > :least", "$age"),
    ],
)
def test_slips_of_the_pen_are_recognised(sql: str, help_: str) -> None:
    """Shows the suggestion for common mistakes, in words of the analyst and not of the parser."""
    assert finding(sql).code == "parse_error"
    assert help_ in help_of(sql)
    assert "Token" not in help_of(sql)


# --- functions ---------------------------------------------------------------------------------------------------


def _functions() -> list[str]:
    with duckdb.connect() as connection:
        kinds = "('scalar', 'aggregate', 'macro')"
        rows = connection.execute(
            f"SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN {kinds}"
        ).fetchall()
    return sorted(name for (name,) in rows if name.isidentifier())


_PLACES = (
    "SELECT COUNT(*) FROM people WHERE {} = 1",
    "SELECT SUM({}) FROM people",
    "SELECT 'a' AS a, {} FROM people",
    "SELECT n, {} FROM (SELECT sex AS sex, COUNT(*) AS age, COUNT(*) AS hours, COUNT(*) AS n FROM people GROUP BY sex)",
)


@pytest.mark.sparse(3)
@thinned(25)
@pytest.mark.parametrize("place", _PLACES)
def test_a_refused_function_is_named_as_it_was_written(place: str, every: int) -> None:
    """Shows for every function of the dialect, with no argument up to three, that its refusal has its name and place.

    The parser has names of its own for many of them (TIME_TO_STR for strftime), and for some no place at all.
    """
    wrong = []
    names = _functions()
    for name in names[::every]:
        for count in range(4):
            call = f"{name}({', '.join(['age', 'sex', 'hours'][:count])})"
            sql = place.format(call)
            try:
                reader().read(sql)
                continue
            except Refused as refused:
                found = refused.findings[0]
            if found.code not in ("unsupported_function", "volatile_function", "parse_error"):
                continue
            place_ = found.position
            at = sql.index(call) + 1
            if name.lower() not in (found.what + found.why).lower() or place_ is None or place_.column != at:
                wrong.append((name, sql, found.what, place_))
    assert len(names) > 500
    assert not [w for w in wrong if not w[2].startswith("the text could not be read")]
    # Calls of a syntax of their own, and words that are operators too, are not read at all with other arguments.
    assert {name for name, *_ in wrong} <= {"apply", "json_object", "like", "max", "min", "position", "trim", "xor"}


@pytest.mark.parametrize(
    ("sql", "written", "column", "text"),
    [
        ("SELECT ANY_VALUE(age) FROM people", "ANY_VALUE()", 8, "ANY_VALUE(age)"),
        ("SELECT sex, any_value( age ) FROM people GROUP BY sex", "any_value()", 13, "any_value( age )"),
        ("SELECT Mad(FLOOR(salary)) FROM people GROUP BY age > 3", "Mad()", 8, "Mad(FLOOR(salary))"),
        ("SELECT Arg_Min(CAST(sex AS BIGINT), age) FROM people", "Arg_Min()", 8, "Arg_Min(CAST(sex AS BIGINT), age)"),
        ("SELECT 1 + ANY_VALUE((age)) FROM people", "ANY_VALUE()", 12, "ANY_VALUE((age))"),
        ("SELECT string_agg(sex, ')') FROM people", "string_agg()", 8, "string_agg(sex, ')')"),
        ("SELECT strptime(sex, '%Y'), COUNT(*) FROM people GROUP BY 1", "strptime()", 8, "strptime(sex, '%Y')"),
        ("SELECT COUNT(*) FROM people WHERE MIN(age) > 3", "MIN()", 35, "MIN(age)"),
        ("SELECT COUNT(*) FROM people WHERE born < Current_Date", "Current_Date", 42, "Current_Date"),
        ("SELECT SUM(MIN(age)) FROM people", "MIN()", 12, "MIN(age)"),
        ("SELECT COUNT(*) FROM people WHERE lcase(age) = 'x'", "lcase()", 35, "lcase(age)"),
        ("SELECT COUNT(*) FROM people WHERE mod(sex, 2) = 1", "mod()", 35, "mod(sex, 2)"),
    ],
)
def test_positions_of_refused_functions(sql: str, written: str, column: int, text: str) -> None:
    """Shows that a refusal points at the function's own word, and marks the whole call."""
    found = finding(sql)
    assert written in found.what
    assert found.position is not None
    assert (column, text) == (found.position.column, found.position.text)


@pytest.mark.parametrize(
    ("condition", "written"),
    [("age & 1 = 1", '"&"'), ("age | 1 = 2", '"|"'), ("age[1] = 2", "[...]")],
)
def test_refused_operators_are_named_as_they_were_written(condition: str, written: str) -> None:
    """Shows that an operator is named by its sign, not by the parser's class."""
    what = finding(f"SELECT COUNT(*) FROM people WHERE {condition}").what
    assert written in what or "square brackets" in what


@pytest.mark.parametrize(
    ("call", "help_"),
    [
        ("SUM(MAD(age))", "SELECT FLOOR(age / 10) * 10 AS bucket, COUNT(*) AS n FROM people GROUP BY bucket"),
        ("BIT_XOR(age)", "COUNT_IF(age % 2 = 1)"),
        ("list(sex)", "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"),
        ("ARG_MAX(sex, age)", "SELECT sex FROM people GROUP BY sex ORDER BY COUNT(*) DESC LIMIT 1"),
        ("to_char(born, '%Y')", "STRFTIME"),
        ("levenshtein(sex, 'f')", "LIKE"),
        ("strftim(born, '%Y')", "STRFTIME"),
    ],
)
def test_refused_functions_have_a_way_out(call: str, help_: str) -> None:
    """Shows that well-known functions come with what to write instead."""
    assert help_ in help_of(f"SELECT {call} FROM people")


# --- sums without bounds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "why"),
    [
        ("CAST(education AS INTEGER)", "CAST(education AS BIGINT) reads text as a number"),
        ("education::DOUBLE", "CAST(education AS DOUBLE) reads text as a number"),
        ("age * TRY_CAST(education AS INTEGER)", "CAST(education AS BIGINT) reads text as a number"),
        ("income", 'No value bounds are declared for "income"'),
        ("income + age", 'No value bounds are declared for "income"'),
        ("income * person_id", 'No value bounds are declared for "income", "person_id"'),
        ("CASE WHEN smoker THEN age ELSE person_id END", 'No value bounds are declared for "person_id"'),
        ("1 / (age - 3.5)", "1.0 / (age - 3.5) has no range"),
        ("age * 9223372036854775807", "age * 9223372036854775807 has no range below 1e15"),
    ],
)
def test_a_sum_without_bounds_blames_what_has_none(argument: str, why: str) -> None:
    """Shows that the cast, the operator or the columns are named from which the missing range comes."""
    found = finding(f"SELECT AVG({argument}) FROM people")
    assert found.code == "column_without_bounds"
    assert found.why.startswith(why)
    assert any(line.startswith("AVG(GREATEST(") for line in found.instead)


def test_no_administrator_can_give_a_cast_its_bounds() -> None:
    """Shows that declaring bounds is suggested for columns only."""
    assert "declare bounds" in help_of("SELECT SUM(income) FROM people")
    assert "declare bounds" not in help_of("SELECT SUM(CAST(education AS BIGINT)) FROM people")


# --- what a newcomer writes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "code", "help_"),
    [
        ("SELECT COUNT(*) FROM people WHERE age = '30'", "unsupported_type", "without quotes"),
        ("SELECT COUNT(*) FROM people WHERE smoker = 1", "unsupported_type", "condition by itself"),
        ("SELECT COUNT(*) FROM people WHERE sex = female", "unknown_column", "single quotes"),
        ('SELECT COUNT(*) FROM people WHERE sex = "female"', "unknown_column", "'female'"),
        ("SELECT COUNT(*) FROM people WHERE sex IS 'male'", "unsupported_sql", "sex = 'male'"),
        ("SELECT AVG(smoker) FROM people", "unsupported_type", "CASE WHEN smoker THEN 1"),
        ("SELECT AVG(education) FROM people", "unsupported_type", "COUNT(*) AS n FROM people GROUP BY education"),
        ("SELECT COUNT(*) AS n FROM people WHERE n > 3", "unsupported_sql", "use HAVING"),
        (
            "SELECT age // 10 AS d, COUNT(*) FROM people WHERE d > 3 GROUP BY d",
            "unsupported_sql",
            "age // 10 in place of the alias",
        ),
        ("SELECT COUNT(*) FROM people NATURAL JOIN hospitals", "join_not_on_key", "JOIN ... ON"),
        (
            "WITH v AS (SELECT * FROM visits LIMIT 9) SELECT COUNT(*) FROM v",
            "private_row_limit",
            "query that aggregates",
        ),
        ("SELECT person_id, COUNT(*) FROM visits GROUP BY 1", "group_by_unit", "COUNT(DISTINCT person_id)"),
        (
            "SELECT COUNT(*) FROM people WHERE age > (SELECT MAX(age) FROM people LIMIT 1)",
            "correlated_subquery",
            "$name",
        ),
        ("SELECT COUNT(*) FROM people WHERE age > $least", "unsupported_sql", '"parameters": {"least": 65}'),
        ("SELECT COUNT(*) FROM visits WHERE day > INTERVAL 3 DAY", "unsupported_sql", "date_diff"),
        ("SELECT COUNT(*) FROM people WHERE CAST(age AS BLOB) IS NULL", "unsupported_type", "BIGINT"),
    ],
)
def test_first_steps_get_help(sql: str, code: str, help_: str) -> None:
    """Shows code and suggestion of what newcomers write, always with a place in the text."""
    found = finding(sql)
    assert code == found.code
    assert help_ in help_of(sql)
    assert found.position is not None


def test_a_query_for_rows_points_at_its_columns() -> None:
    """Shows the place of SELECT * and of FROM without SELECT."""
    for sql, text in (("SELECT age, sex FROM people", "age"), ("SELECT * FROM people", "*"), ("FROM people", "people")):
        place = finding(sql).position
        assert place is not None
        assert text == place.text


def test_documented_date_and_text_functions_are_answered() -> None:
    """Shows that functions of docs/functions.md which have a node of their own in the parser are read."""
    for condition in (
        "dayname(day) = 'Monday'", "monthname(day) = 'May'", "isoyear(day) = 2024", "epoch(day) > 1.5",
        "replace(ward, 'a', '') = 'x'",
    ):  # fmt: skip
        bound(lift(f"SELECT COUNT(*) FROM visits WHERE {condition}", CLINIC))


# --- what newcomers meet -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT age, COUNT(*) AS n FROM people GROUP BY age ORDER BY (n)",
        "SELECT sex, COUNT(*), RANK() OVER (PARTITION BY (sex) ORDER BY (COUNT(*))) FROM people GROUP BY sex",
        "SELECT sex, COUNT(*) FROM people GROUP BY (sex)",
        "SELECT sex, smoker, COUNT(*) FROM people GROUP BY (sex, smoker)",
        "SELECT COUNT(a.age) FROM (people) AS a",
        "SELECT AVG(age * age + 1) FROM people",
        "SELECT AVG(age * age * age * age), VARIANCE(hours * hours * hours) FROM people",
        "SELECT AVG(CASE WHEN age > 30 THEN age * age * age END) FROM people",
        "SELECT COUNT(*) FROM people WHERE SUBSTRING(education FROM 1 FOR 4) = 'Bach'",
        "SELECT COUNT(*) FROM people WHERE POSITION('a' IN education) > 0",
        "SELECT COUNT(*) FROM people WHERE EXTRACT(EPOCH FROM born) > 0",
        "SELECT COUNT(*) FROM main.people",
    ],
)
def test_brackets_words_and_bounded_products_are_not_refused(sql: str) -> None:
    """Shows that brackets without a meaning, words between arguments and products of bounded columns are answered."""
    assert bound(lift(sql, CLINIC))


def test_a_condition_on_a_product_sees_stored_values() -> None:
    """Shows that only an aggregate's value is read clipped: a condition that needs the clip is refused."""
    assert finding("SELECT AVG(CASE WHEN age * age * age > 5 THEN age END) FROM people").code == "too_large"
    assert finding("SELECT AVG(LENGTH(CAST(age * age * age AS VARCHAR))) FROM people").code == "too_large"


@pytest.mark.parametrize(
    ("sql", "code", "help_"),
    [
        ("SELECT foo(age), COUNT(*) FROM people", "unsupported_function", "foo() is refused"),
        ("SELECT sex, foo(age) FROM people GROUP BY sex", "unsupported_function", "foo() is refused"),
        ("SELECT STD(age) FROM people", "unsupported_function", "STDDEV(age)"),
        ("SELECT STDEV(age) FROM people", "unsupported_function", "STDDEV(x)"),
        ("SELECT VAR(age) FROM people", "unsupported_function", "VARIANCE(age)"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM people", "parse_error", "leave the clause out"),
        ("SELECT COUNT(*) FROM visits, people", "join_not_on_key", "visits JOIN people ON"),
        ("SELECT COUNT(*) FROM temp.people", "unknown_table", "The dataset has no schemas"),
    ],
)
def test_the_reason_that_helps_is_named(sql: str, code: str, help_: str) -> None:
    """Shows that a refusal names what is wrong, not what it would be if the rest were right."""
    assert code == finding(sql).code
    assert help_ in help_of(sql)


def test_did_you_mean_only_when_near() -> None:
    """Shows that a name is suggested for a slip in it, and not for another word of some of its letters."""
    assert "did you mean" in help_of("SELECT COUNT(*) FROM peopel")
    assert "did you mean" in help_of("SELECT COUNT(*) FROM people WHERE educaton = 'x'")
    for other in ("salaries_total", "weight", "hour_count", "son", "occupation", "location", "outcome", "income_total"):
        assert "did you mean" not in help_of(f"SELECT COUNT(*) FROM people WHERE {other} = 1")


@pytest.mark.parametrize("digits", [19, 5_000])
@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY {}", "unknown_column"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY {}", "unsupported_sql"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex LIMIT {}", "unsupported_sql"),
        ("SELECT SUM(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t ORDER BY {}", "unsupported_sql"),
    ],
)
def test_numbers_that_are_too_long_for_a_position_are_refused(sql: str, code: str, digits: int) -> None:
    """Shows that a number of any length is a refusal where a position or a limit is meant, and no fault."""
    assert finding(sql.format("9" * digits)).code == code


@pytest.mark.parametrize("where", ["FALSE", "1 = 2", "NULL = 1", "sex = 'male' AND 1 > 2"])
@pytest.mark.parametrize("key", ["sex", "education"])
def test_conditions_that_are_never_true_leave_no_group(where: str, key: str) -> None:
    """Shows that groups of no row are refused before anything is charged, and that a count without groups is not."""
    assert finding(f"SELECT {key}, COUNT(*) FROM people WHERE {where} GROUP BY {key}").code == "no_groups"
    reader().read(f"SELECT {key}, COUNT(*) FROM people WHERE 1 = 1 GROUP BY {key}")
    reader().read(f"SELECT COUNT(*) FROM people WHERE {where}")


@pytest.mark.parametrize("clause", ["LIMIT -1", "LIMIT 3 OFFSET -1", "LIMIT 1.5"])
def test_limits_say_from_where_they_count(clause: str) -> None:
    """Shows the clause that is refused, and that zero is the least of its numbers."""
    found = finding(f"SELECT sex, COUNT(*) FROM people GROUP BY sex {clause}")
    assert found.what == f"{'OFFSET' if 'OFFSET' in clause else 'LIMIT'} is refused"
    assert found.why == "Its value must be a whole number, 0 or more."


@pytest.mark.parametrize(
    ("condition", "place"),
    [
        ("born + INTERVAL 1.5 DAY > DATE '2008-12-31'", "INTERVAL 1.5 DAY"),
        ("born > DATE '2008-12-31' - INTERVAL '1 year 2'", "INTERVAL '1 year 2'"),
        ("born - interval 2.5 months > DATE '2008-12-31'", "interval 2.5 months"),
        ("INTERVAL 1.5 DAY + born > DATE '2008-12-31'", "INTERVAL 1.5 DAY"),
    ],
)
def test_an_interval_is_marked_itself(condition: str, place: str) -> None:
    """Shows that the place of a refused INTERVAL is not the date beside it."""
    found = finding(f"SELECT COUNT(*) FROM people WHERE {condition}")
    assert (found.what, found.position and found.position.text) == ("this INTERVAL is refused", place)


def test_a_public_table_without_a_reference_is_not_advised_a_query_of_its_own() -> None:
    """Queries of public tables alone are refused, so the advice led to another refusal."""
    sql = "SELECT COUNT(*) AS n FROM people WHERE sex IN (SELECT region FROM hospitals)"
    with pytest.raises(Refused) as caught:
        lift(sql, CLINIC)
    (finding,) = caught.value.findings
    assert finding.code == "correlated_subquery"
    assert not any("query of its own" in line for line in finding.instead)
    assert "as a list" in finding.instead[0]
    # Of a table of people the number can be asked for.
    with pytest.raises(Refused) as caught:
        lift("SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT MAX(age) FROM people LIMIT 1)", CLINIC)
    assert any("query of its own" in line for line in caught.value.findings[0].instead)
