"""Random texts against the lift: only refusals and valid plans come out, with DuckDB's meaning, with little work.

Everything is drawn from fixed seeds, so a failure is the same on every machine.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
import sqlglot
from sqlglot.tokenizer_core import TokenType

from privacy.refusal import Refused
from server.jobs import STACK_BYTES
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.plan import Plan
from sql_rewrite.syntax import TEXT_BYTES_MAX
from tests.hostile.corpus import refused
from tests.hostile.duck import Clinic, Expressions, Reader, same_rows, same_values
from tests.hostile.families import FAMILIES, LEGITIMATE
from tests.hostile.good import GOOD
from tests.sql_rewrite.datasets import CLINIC
from tests.thinned import thinned
from tests.work import counting_calls

MUTATIONS = 4_000
EXPRESSIONS = 7_500
CALLS_MAX = 5_000_000
"""About two seconds of work on a usual machine."""

_PIECE = re.compile(r"\s+|'[^']*'|\"[^\"]*\"|\w+|.", re.DOTALL)
_FOREIGN = (
    "ALL DISTINCT NOT NULL FIRST LAST ONLY FINAL IS IN AS ON ASC DESC TABLE VALUES WITH RECURSIVE SYMMETRIC LATERAL "
    "OUTER CROSS NATURAL ANY SOME ROW ROWS SET TO BY LIMIT OFFSET FETCH NEXT FOR UPDATE IGNORE NULLS EXCLUDE REPLACE "
    "COLLATE ESCAPE AT TIME ZONE INTERVAL CASE END UNION EXCEPT INTERSECT BETWEEN LIKE ILIKE GLOB SIMILAR UNIQUE KEY "
    "MATERIALIZED VARYING TOP START CONNECT PIVOT UNPIVOT SAMPLE USING FILTER WITHIN GROUP OVER PARTITION RANGE "
    "UNBOUNDED PRECEDING CURRENT WINDOW QUALIFY HAVING DESCRIBE SUMMARIZE ; ( ) , . * + - / // % = == <> != < > <= >= "
    "|| :: : ? $1 $x @ ! ~ ^ ** & | << >> -> ->> [ ] { } {# #} # ` \\ 1 0.5 'a' \"b\" age sex n x TRUE FALSE DATE "
    "TIMESTAMP é \u200b \u00a0 \u2028 \x00 \ufeff \U0001f4a9 random() error('x') read_csv('x') mod(age,2,3) nvl(age,1)"
).split(" ")
_UNREADABLE = (
    "SELECT COUNT(*) AT  FROM people",
    "SELECT COUNT(*), SUM(age),, AVG(age) FROM people",
    "SELECT SUM(CASE WHEN age BETWEEN 18  64 THEN age ELSE 0 END) FROM people",
)
"""Malformed texts that the parser reads and DuckDB does not."""
_UNITS = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})
_GENERATED = re.compile(
    r"(?:main|[a-z]{1,2}|[a-z]\d+|s\d+[tfhnxyvklas]?\d*_?\d*(?:_high|_low)?|rank|[a-z]_[0-9a-f]{16}(?:[a-z]\d*)?|"
    r"unit\$id|unit\$draw|[a-z]{1,6}\$\d*)\Z"
)


@pytest.fixture(scope="module")
def clinic() -> Iterator[Clinic]:
    """The clinic's rows in DuckDB."""
    made = Clinic()
    yield made
    made.close()


def mutations(seed: int, count: int) -> Iterator[str]:
    """Texts made from good and hostile ones: words deleted, doubled, swapped, spliced, replaced; cut off; joined."""
    source = random.Random(seed)
    good = [_PIECE.findall(text) for text in GOOD]
    hostile = [_PIECE.findall(entry.text) for entry in refused()]
    made: set[str] = set()
    while len(made) < count:
        pieces = list(source.choice(good if source.random() < 0.8 else hostile))
        for _ in range(source.choice((1, 1, 1, 2, 3, 6))):
            place = source.randrange(len(pieces)) if pieces else 0
            match source.randrange(8):
                case 0:
                    del pieces[place : place + source.choice((1, 1, 2, 5))]
                case 1:
                    pieces[place:place] = [" ", source.choice(_FOREIGN), " "]
                case 2:
                    pieces[place : place + 1] = [source.choice(_FOREIGN)]
                case 3:
                    other = source.choice(good + hostile)
                    begin = source.randrange(len(other)) if other else 0
                    pieces[place:place] = other[begin : begin + source.randrange(1, 8)]
                case 4 if len(pieces) > 1:
                    second = source.randrange(len(pieces))
                    pieces[place], pieces[second] = pieces[second], pieces[place]
                case 5:
                    pieces[place:place] = pieces[place : place + 1]
                case 6:
                    pieces = pieces[:place]
                case 7:
                    text = "".join(pieces)
                    at = source.randrange(len(text) + 1)
                    pieces = _PIECE.findall(
                        text[:at] + chr(source.choice((32, 39, 34, 40, 59, 0x301, 0x10FFFF))) + text[at:]
                    )
        text = "".join(pieces)
        if text not in made:
            made.add(text)
            yield text


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """What reads texts before anything is charged."""
    made = Reader()
    yield made
    made.close()


def planned(text: str) -> Plan | None:
    """The plan of a text, or None when the lift refuses it as it should. Other exceptions go through."""
    try:
        plan = lift(text, CLINIC)
        bound(plan)
    except Refused:
        return None
    return plan


def check_statements(plan: Plan, text: str, clinic: Clinic) -> None:
    """Asserts that what would run reads the catalogue's tables only and holds no piece of the analyst's text."""
    dialect = sqlglot.Dialect.get_or_raise("duckdb")
    tables = {table.name for table in CLINIC.tables}
    names = {column.name for table in CLINIC.tables for column in table.columns}
    # Shorter texts are part of the generated guards, such as the space that a cast from text cuts off.
    written = {t.text for t in dialect.tokenize(text) if t.token_type is TokenType.STRING and len(t.text) > 2}
    for bounded in bound(plan):
        statement = lower(bounded)
        assert {
            name.rpartition(".")[2].strip('"')
            for name in clinic.connection.get_table_names(re.sub(r"\$\d+", "NULL", statement.sql))
        } <= tables
        assert statement.sql.isascii()
        assert "--" not in statement.sql
        assert "/*" not in statement.sql
        assert ";" not in statement.sql
        for token in dialect.tokenize(statement.sql):
            if token.token_type is TokenType.STRING:
                assert token.text not in written or token.text in _UNITS, (token.text, text)
            elif token.token_type is TokenType.IDENTIFIER:
                assert token.text in tables | names or _GENERATED.match(token.text), (token.text, text)


@thinned(20, by_day=2)
@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_texts_are_refused_or_planned(seed: int, clinic: Clinic, reader: Reader, every: int) -> None:
    """Shows that no text gives another exception, and that an accepted one means what DuckDB says it means.

    Also what the lift accepts and the engine does not read has to have sound statements.
    """
    accepted = unread = 0
    differences: list[object] = []
    for text in (*_UNREADABLE, *mutations(seed, MUTATIONS // every)):
        plan = planned(text)
        if plan is None:
            continue
        check_statements(plan, text, clinic)
        try:
            reader.judge(text)
        except Refused:
            unread += 1
            continue
        accepted += 1
        differences.append(clinic.difference(text, excused=documented))
    assert [difference for difference in differences if difference is not None] == []
    assert accepted > MUTATIONS // every // 40
    # What the parser reads and DuckDB does not has to be refused by the reader.
    assert unread >= len(_UNREADABLE)


def documented(text: str, theirs: list[tuple[object, ...]], ours: list[tuple[object, ...]]) -> bool:
    """Whether a difference is one that docs/functions.md or docs/sql.md announces."""
    if re.search(r"least|greatest", text, re.IGNORECASE) and re.search(
        r"null|hours|income|salary", text, re.IGNORECASE
    ):
        return True  # NULL is no bound
    if re.search(r"count_?if", text, re.IGNORECASE):
        return True  # no rows: 0 here, NULL there
    missing = [row for row in theirs if None not in row and not any(same_rows([row], [other]) for other in ours)]
    extra = [row for row in ours if not any(same_rows([row], [other]) for other in theirs)]
    public = all(any(value in (0, None, False) for value in row) for row in extra)
    return not missing and public  # public keys appear where nobody is, and rows with other keys (NULL) do not


def expressions(seed: int, count: int) -> Iterator[str]:
    """Expressions of the accepted grammar, written without a bracket that the grammar does not demand."""
    source = random.Random(seed)

    def choose(*makers: Callable[[int], str]) -> Callable[[int], str]:
        return lambda depth: source.choice(makers)(depth)

    def leaf(*texts: str) -> Callable[[int], str]:
        return lambda depth: source.choice(texts)

    numbers = leaf("age", "hours", "age", "hours", "2", "3", "7", "0", "1", "100", "income", "0.5", "2.5", "salary")
    texts = leaf("sex", "education", "'a'", "'school'", "'3'", "''", "'%a%'")
    truths = leaf("smoker", "TRUE", "FALSE", "NULL")
    dates = leaf("born", "DATE '1990-02-28'", "DATE '2024-02-29'")

    def number(depth: int) -> str:
        if depth <= 0:
            return numbers(0)
        match source.randrange(12):
            case 0:
                return f"-{number(depth - 2)}"
            case 1:
                return f"CASE WHEN {truth(depth - 1)} THEN {number(depth - 1)} ELSE {number(depth - 1)} END"
            case 2:
                return f"COALESCE({number(depth - 1)}, {number(depth - 2)})"
            case 3:
                return f"CAST({source.choice((number, truth))(depth - 1)} AS {source.choice(('BIGINT', 'DOUBLE'))})"
            case 4:
                return f"{source.choice(('ABS', 'SIGN', 'ROUND', 'FLOOR', 'CEIL'))}({number(depth - 1)})"
            case 5:
                return f"CASE {number(depth - 2)} WHEN {number(0)} THEN {number(depth - 2)} END"
            case 6:
                return source.choice((f"LENGTH({text(depth - 1)})", f"YEAR({dates(0)})", f"MONTH({dates(0)})"))
            case _:
                operator = source.choice(("+", "-", "*", "/", "//", "%", "+", "-", "*"))
                return f"{number(depth - 1)} {operator} {number(depth - 1)}"

    def text(depth: int) -> str:
        match source.randrange(6):
            case 0 if depth > 0:
                return f"{text(depth - 1)} || {text(depth - 1)}"
            case 1 if depth > 0:
                return f"{source.choice(('LOWER', 'UPPER', 'TRIM'))}({text(depth - 1)})"
            case 2 if depth > 0:
                return f"CAST({source.choice(('age', 'hours', 'smoker', 'born'))} AS VARCHAR)"
            case _:
                return texts(0)

    def truth(depth: int) -> str:
        if depth <= 0:
            return truths(0)
        kind = source.choice((number, number, number, text, lambda _: dates(0)))
        match source.randrange(14):
            case 0:
                return f"NOT {truth(depth - 1)}"
            case 1 | 2:
                return f"{truth(depth - 1)} {source.choice(('AND', 'OR'))} {truth(depth - 1)}"
            case 3:
                wanted = source.choice(("NULL", "NOT NULL", "TRUE", "FALSE", "NOT TRUE", "NOT FALSE"))
                return f"{truth(depth - 1) if 'E' in wanted else kind(depth - 1)} IS {wanted}"
            case 4:
                return f"{kind(depth - 1)} IS {source.choice(('', 'NOT '))}DISTINCT FROM {kind(depth - 1)}"
            case 5:
                listed = ", ".join(source.choice(("1", "2", "34", "50", "NULL", "7")) for _ in range(3))
                return f"{number(depth - 1)} {source.choice(('', 'NOT '))}IN ({listed})"
            case 6:
                operator = source.choice(("", "NOT "))
                return f"{number(depth - 1)} {operator}BETWEEN {number(depth - 2)} AND {number(depth - 2)}"
            case 7:
                pattern = source.choice(("'%a%'", "'s_%'", "'%'", "''", "'School'"))
                return f"{text(depth - 1)} {source.choice(('', 'NOT '))}{source.choice(('LIKE', 'ILIKE'))} {pattern}"
            case 8:
                return f"CASE WHEN {truth(depth - 1)} THEN {truth(depth - 1)} ELSE {truth(depth - 2)} END"
            case 9:
                return f"COALESCE({truth(depth - 1)}, {truth(0)})"
            case 10:
                return f"{truth(depth - 1)} {source.choice(('=', '<>', '>='))} {truth(0)}"
            case _:
                comparison = source.choice(("=", "<>", "<", "<=", ">", ">=", "!=", "=="))
                return f"{kind(depth - 1)} {comparison} {kind(depth - 1)}"

    roots = choose(truth, truth, number, text)
    for _ in range(count):
        yield roots(source.choice((1, 2, 2, 3, 4)))


def announced(text: str) -> bool:
    """Whether a difference follows from the types that docs/functions.md announces.

    A constant with a fraction is a double, not a DECIMAL, so its halves round to even; FLOOR and its kin keep an
    INTEGER, so that // divides integers.
    """
    halves = "AS BIGINT" in text and re.search(r"\d\.\d", text)
    kept = "//" in text and re.search("FLOOR|CEIL|ROUND", text)
    return bool(halves or kept)


@thinned(20, by_day=2)
def test_expressions_mean_what_duckdb_means(clinic: Clinic, every: int) -> None:
    """Shows 0 differences over more than 4,500 accepted expressions, value by value, where DuckDB does not raise."""
    engine = Expressions(clinic)
    accepted = compared = 0
    differences: list[object] = []
    for text in dict.fromkeys(expressions(7, EXPRESSIONS // every)):
        try:
            expression = engine.lifted(text)
        except Refused:
            continue
        ours = engine.planned(expression)
        try:
            theirs = engine.direct(text)
        except (duckdb.BinderException, duckdb.ParserException) as error:
            differences.append((text, str(error)[:80]))
            continue
        accepted += 1
        compared += sum(not isinstance(value, type) for value in theirs)
        if not announced(text) and not same_values(theirs, ours):
            differences.append((text, theirs, ours))
    assert differences == []
    assert accepted >= 4_500 / every
    assert compared >= 10_000 / every


SELECT = "SELECT COUNT(*) FROM people WHERE "
LIMITS: dict[str, str] = {
    "casts": f"{SELECT}age{'::BIGINT' * 90} > 1",
    "many casts": SELECT + " AND ".join(f"age{'::BIGINT' * 40} > {i}" for i in range(20)),
    "alternatives": SELECT + " OR ".join(f"age = {i}" for i in range(600)),
    "conjunctions": SELECT + " AND ".join(f"age <> {i}" for i in range(600)),
    "alternating": SELECT + " ".join(f"age = {i} {('AND', 'OR')[i % 2]}" for i in range(500)) + " smoker",
    "signs": f"{SELECT}age > {'- ' * 90}1",
    "negations": f"{SELECT}{'NOT ' * 90}smoker",
    "nested CASE": f"{SELECT}{'CASE WHEN smoker THEN ' * 31}TRUE{' END' * 31}",
    "wide CASE": f"{SELECT}CASE {' '.join(f'WHEN age = {i} THEN {i}' for i in range(500))} END = 3",
    "nested functions": f"{SELECT}{'ABS(' * 31}age{')' * 31} > 1",
    "brackets": f"{SELECT}{'(' * 31}age > 1{')' * 31}",
    "opened brackets": SELECT + "(" * 4_900,
    "closed brackets": SELECT + ")" * 4_900,
    "bracket pairs": SELECT + " AND ".join(["((((((((((smoker))))))))))"] * 200),
    "bracketed rows": f"{SELECT}age IN ({', '.join(['((((1))))'] * 400)})",
    "square brackets": f"{SELECT}age > {'[' * 31}1{']' * 31}",
    "braces": f"{SELECT}age > {'{' * 2_000}1{'}' * 2_000}",
    "lambdas": f"{SELECT}{'x -> ' * 1_600}x",
    "arrows": f"{SELECT}age{' -> 1' * 2_000}",
    "dots": f"{SELECT}a{'.a' * 2_400} > 1",
    "subscripts": f"{SELECT}age{'[1]' * 1_600} > 1",
    "IN list": f"{SELECT}age IN ({', '.join(map(str, range(1_000)))})",
    "IN lists": SELECT + " OR ".join(f"age IN ({', '.join(map(str, range(i, i + 20)))})" for i in range(100)),
    "texts in a list": f"{SELECT}education IN ({', '.join(repr('x' * 50 + str(i)) for i in range(900))})",
    "betweens": SELECT + " AND ".join(f"age BETWEEN {i} AND {i + 9}" for i in range(500)),
    "additions": SELECT + " + ".join(["age"] * 90) + " > 1",
    "products": SELECT + " * ".join(["salary"] * 90) + " > 1",
    "divisions": SELECT + " / ".join(["age"] * 90) + " > 1",
    "exact products": SELECT + " * ".join(["age"] * 90) + " > 1",
    "roundings": f"{SELECT}{'ROUND(SQRT(' * 15}salary{'), 2)' * 15} > 1",
    "columns": "SELECT " + ", ".join(["COUNT(*)"] * 700) + " FROM people",
    "other columns": "SELECT " + ", ".join(f"SUM(age + {i})" for i in range(500)) + " FROM people",
    "aliases": "SELECT " + ", ".join(f"COUNT(*) AS a{i}" for i in range(700)) + " FROM people",
    "chained aliases": "SELECT COUNT(*) AS a0"
    + "".join(f", a{i - 1} + a{i - 1} AS a{i}" for i in range(1, 200))
    + " FROM people",
    "shell aliases": "SELECT n AS a0"
    + "".join(f", a{i - 1} + a{i - 1} AS a{i}" for i in range(1, 200))
    + " FROM (SELECT COUNT(*) AS n FROM people)",
    "keys": "SELECT COUNT(*) FROM people GROUP BY " + ", ".join(f"age + {i}" for i in range(16)),
    "many keys": "SELECT COUNT(*) FROM people GROUP BY " + ", ".join(f"age + {i}" for i in range(900)),
    "key expressions": "SELECT "
    + ", ".join(f"age + {i} + 1" for i in range(15))
    + ", COUNT(*) FROM people GROUP BY "
    + ", ".join(f"age + {i}" for i in range(15)),
    "domains": "SELECT hours, hours % 7, hours // 2, COUNT(*) FROM people GROUP BY ALL",
    "CASE domain": f"SELECT CASE {' '.join(f'WHEN hours = {i} THEN {i * 2}' for i in range(300))} END, COUNT(*) "
    "FROM people GROUP BY 1",
    "CTEs": "WITH a0 AS (SELECT COUNT(*) AS n FROM people)"
    + "".join(f", a{i} AS (SELECT n + 1 AS n FROM a{i - 1})" for i in range(1, 300))
    + " SELECT n FROM a299",
    "doubling CTEs": "WITH a0 AS (SELECT COUNT(*) AS n FROM people)"
    + "".join(f", a{i} AS (SELECT x.n FROM a{i - 1} x, a{i - 1} y)" for i in range(1, 60))
    + " SELECT n FROM a59",
    "renamed CTEs": "WITH a0(n) AS (SELECT COUNT(*) FROM people)"
    + "".join(f", a{i}(n) AS (SELECT n + 1 FROM a{i - 1})" for i in range(1, 200))
    + " SELECT n FROM a199",
    "doubling subqueries": "WITH a0 AS (SELECT COUNT(*) AS n FROM people)"
    + "".join(
        f", a{i} AS (SELECT (SELECT MAX(n) FROM a{i - 1}) + (SELECT MIN(n) FROM a{i - 1}) AS n)" for i in range(1, 60)
    )
    + " SELECT n FROM a59",
    "derived tables": "SELECT n FROM " * 30 + "(SELECT COUNT(*) AS n FROM people)",
    "nested queries": f"{'SELECT n FROM (' * 30}SELECT COUNT(*) AS n FROM people{')' * 30}",
    "unions": "SELECT COUNT(*) FROM people" + " UNION ALL SELECT COUNT(*) FROM people" * 300,
    "mixed set operations": "SELECT COUNT(*) FROM people"
    + "".join(f" {('UNION', 'EXCEPT', 'INTERSECT')[i % 3]} SELECT COUNT(*) FROM people" for i in range(300)),
    "windows": "SELECT "
    + ", ".join("SUM(n) OVER (ORDER BY n)" for _ in range(200))
    + " FROM (SELECT COUNT(*) AS n FROM people)",
    "joins": "SELECT COUNT(*) FROM visits" + " JOIN people USING (person_id)" * 500,
    "released joins": "SELECT 1 AS x FROM " + ", ".join(f"(SELECT COUNT(*) AS n FROM people) t{i}" for i in range(31)),
    "long name": f"SELECT COUNT(*) AS {'x' * 65_000} FROM people",
    "long names": "SELECT " + ", ".join(f"COUNT(*) AS {'x' * 600}{i}" for i in range(100)) + " FROM people",
    "long unknown name": f"{SELECT}{'x' * 65_000} > 1",
    "unknown names": SELECT + " AND ".join(f"{'x' * 100}{i} > 1" for i in range(500)),
    "unknown tables": "SELECT COUNT(*) FROM " + ", ".join(f"{'x' * 100}{i}" for i in range(500)),
    "long text": f"{SELECT}education = '{'x' * 65_000}'",
    "long pattern": f"{SELECT}education LIKE '{'%a' * 499}'",
    "long number": f"{SELECT}age = {'9' * 65_000}",
    "long fraction": f"{SELECT}age = 0.{'9' * 65_000}",
    "many numbers": f"{SELECT}age = {' '.join(['1'] * 4_900)}",
    "spaces": f"SELECT{' ' * 65_000}COUNT(*) FROM people",
    "lines": f"SELECT{chr(10) * 60_000}" + ", ".join(f"SUM(age + {i})" for i in range(300)) + " FROM people",
    "trailing lines": SELECT + " OR ".join(f"x{i} = 1" for i in range(300)) + "\n" * 60_000,
    "line comments": "SELECT COUNT(*) FROM people " + "--\n" * 21_000,
    "comments": "SELECT COUNT(*) FROM people " + "/**/" * 16_000,
    "nested comments": f"SELECT COUNT(*) FROM people {'/*' * 16_000}{'*/' * 16_000}",
    "open comments": f"SELECT COUNT(*) FROM people {'/*' * 32_000}",
    "quotes": f"{SELECT}education = {chr(39) * 65_000}",
    "open quotes": f"{SELECT}education = {(chr(39) + 'a' + chr(39) + ' ') * 4_000}",
    "double quotes": f"{SELECT}{chr(34) * 65_000}",
    "dollars": f"{SELECT}education = {'$' * 65_000}",
    "dollar tags": f"{SELECT}education = {'$a$' * 21_000}",
    "semicolons": "SELECT 1" + ";" * 4_900,
    "statements": "SELECT 1;" * 1_600,
    "commas": f"SELECT {',' * 4_900} FROM people",
    "stars": f"SELECT {'*' * 4_900} FROM people",
    "selects": "SELECT " * 4_900,
    "froms": "FROM people " * 2_400,
    "withs": "WITH a AS (" * 30,
    "cases": f"{SELECT}{'CASE ' * 4_000}",
    "intervals": f"{SELECT}born > {'INTERVAL ' * 4_000}",
    "nots": f"{SELECT}{'NOT ' * 4_900}",
    "exclamations": f"{SELECT}{'!' * 60_000}smoker",
    "tildes": f"{SELECT}{'~' * 4_900}age > 1",
    "ats": f"{SELECT}{'@' * 4_900}age > 1",
    "wide letters": f"{SELECT}education = '{'💩' * 900}'",
    "combining": f"{SELECT}education = 'e{chr(0x301) * 900}'",
    "types": f"{SELECT}CAST(age AS {'STRUCT(a ' * 30}BIGINT{')' * 30}) IS NULL",
    "arrays of arrays": f"{SELECT}CAST(age AS BIGINT{'[]' * 2_000}) IS NULL",
    "pivots": "SELECT * FROM people " + "PIVOT (SUM(age) FOR sex IN ('a')) " * 300,
    "aggregates in aggregates": f"SELECT {'SUM(' * 31}age{')' * 31} FROM people",
    "filters": "SELECT COUNT(*)" + " FILTER (WHERE smoker)" * 900 + " FROM people",
    "parameters": SELECT + " OR ".join(f"age = $p{i}" for i in range(900)),
}


@pytest.mark.sparse(12)
@pytest.mark.parametrize("name", list(LIMITS))
def test_texts_at_the_limits_take_little_work(name: str) -> None:
    """Shows that a text up to the limits is refused or planned, and lowered, with a bounded amount of work."""

    def size() -> int:
        plan = planned(LIMITS[name])
        return 0 if plan is None else sum(len(lower(core).sql) for core in bound(plan)) + len(plan.shell.sql)

    written, calls = counting_calls(size)
    assert written < 2_000_000
    assert calls < CALLS_MAX


def fate(text: str) -> str:
    """The codes of a text's refusal, or "answered" when its statements could be written."""
    try:
        for bounded in bound(lift(text, CLINIC)):
            lower(bounded)
    except Refused as refusal:
        return " ".join(sorted({finding.code for finding in refusal.findings}))
    return "answered"


@pytest.mark.sparse(24)
@pytest.mark.parametrize("name", list(FAMILIES))
def test_constructs_repeated_without_end_meet_their_fate_soon(name: str) -> None:
    """Shows that a construct repeated as often as a text can hold it gets its code with a bounded amount of work."""
    text, expected = FAMILIES[name]
    assert len(text.encode()) <= TEXT_BYTES_MAX
    found, calls = counting_calls(lambda: fate(text))
    assert expected == found
    assert calls < CALLS_MAX


@pytest.mark.sparse(6)
@pytest.mark.parametrize("name", list(LEGITIMATE))
def test_long_texts_of_analysts_are_answered(name: str) -> None:
    """Shows that the limits leave room for hundreds of terms, branches, list entries, columns and CTEs."""
    found, calls = counting_calls(lambda: fate(LEGITIMATE[name]))
    assert found == "answered"
    assert calls < CALLS_MAX


@pytest.mark.sparse(2)
@pytest.mark.parametrize(
    "name", ["alternatives", "conjunctions", "alternatives of conjunctions", "groups of alternatives"]
)
def test_long_chains_mean_what_duckdb_means(name: str, clinic: Clinic) -> None:
    """Shows that a long chain, which is read as a balanced tree, counts the people that DuckDB counts."""
    text = LEGITIMATE[name]
    assert same_rows(clinic.direct(text), clinic.planned(text))
    assert clinic.direct(text) != [(0,)]


# Lifts every large text in a thread of a given stack.
_LARGE = """
import sys, threading
from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.hostile.corpus import large
from tests.hostile.families import FAMILIES, LEGITIMATE
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.test_fuzz import LIMITS

def work():
    texts = [*LIMITS.values(), *(entry.text for entry in large())]
    for text in [*texts, *(text for text, _ in FAMILIES.values()), *LEGITIMATE.values()]:
        try:
            for core in bound(lift(text, CLINIC)):
                lower(core)
        except Refused:
            pass
    print("lifted")

threading.stack_size(int(sys.argv[1]))
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.slow
def test_large_texts_need_a_quarter_of_the_stack_at_most() -> None:
    """Shows that no large text ends the process when its thread has a quarter of the stack that the server gives.

    Its twin is `test_more_words_would_run_over_the_end_of_the_stack`: without the limit of words the process ends.
    """
    done = subprocess.run(
        [sys.executable, "-c", _LARGE, str(STACK_BYTES // 4)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stdout) == (0, "lifted\n"), done.stderr
