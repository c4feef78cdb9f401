"""Families of texts that nest or repeat one construct as often as a text can hold it, each with its fate.

All fit the limit of 64 KiB. The fate is the code of the refusal, or "answered".
"""

from __future__ import annotations

__all__ = ["FAMILIES", "LEGITIMATE"]

_WHERE = "SELECT COUNT(*) FROM people WHERE "
_BYTES = 64 * 1024


def _filled(start: str, piece: str, end: str = "", *, closing: str = "", words: int | None = None) -> str:
    """`start`, then as many pieces as fit the text or the number of words, each with its closing at the end."""
    room = (_BYTES - len(start) - len(end)) // (len(piece) + len(closing))
    count = room if words is None else min(room, 4_800 // words)
    return f"{start}{piece * count}{end}{closing * count}"


def _nested(start: str, opening: str, middle: str, closing: str, *, depth: int) -> str:
    return f"{start}{opening * depth}{middle}{closing * depth}"


_PIECES: dict[str, tuple[str, str, str, int, str]] = {
    # name: start, piece, end, words of the piece, fate
    "powers": (_WHERE, "age ** ", "1 > 1", 2, "too_large"),
    "carets": (_WHERE, "age ^ ", "1 > 1", 2, "too_large"),
    "signed powers": (_WHERE, "- age ** ", "1 > 1", 3, "too_large"),
    "powers of signs": (_WHERE, "age ** - ", "1 > 1", 3, "too_large"),
    "negated comparisons": (_WHERE, "smoker = NOT ", "smoker", 3, "too_large"),
    "negated conjunctions": (_WHERE, "NOT smoker AND ", "smoker", 3, "too_large"),
    "IS NULL chain": (f"{_WHERE}age", " IS NULL", "", 2, "too_large"),
    "IS NOT NULL chain": (f"{_WHERE}age", " IS NOT NULL", "", 3, "too_large"),
    "IS DISTINCT FROM chain": (f"{_WHERE}age", " IS DISTINCT FROM age", "", 4, "too_large"),
    "ISNULL chain": (f"{_WHERE}age", " ISNULL", "", 1, "too_large"),
    "NOTNULL chain": (f"{_WHERE}age", " NOTNULL", "", 1, "too_large"),
    "IN chain": (f"{_WHERE}age", " IN (1)", "", 4, "too_large"),
    "NOT IN chain": (f"{_WHERE}age", " NOT IN (1)", "", 5, "too_large"),
    "bare IN chain": (f"{_WHERE}age", " IN x", "", 2, "too_large"),
    "LIKE chain": (f"{_WHERE}education", " LIKE 'a'", "", 2, "too_large"),
    "ESCAPE chain": (f"{_WHERE}education", " LIKE 'a' ESCAPE 'b'", "", 4, "too_large"),
    "SIMILAR TO chain": (f"{_WHERE}education", " SIMILAR TO 'a'", "", 2, "too_large"),
    "BETWEEN chain": (f"{_WHERE}age", " BETWEEN 1 AND 2", "", 4, "too_large"),
    "nested BETWEEN": (_WHERE, "age BETWEEN ", "1", 2, "parse_error"),
    "concatenations": (f"{_WHERE}'x'", " || 'x'", " = 'x'", 2, "too_large"),
    "casts": (f"{_WHERE}age", "::BIGINT", " > 1", 2, "too_large"),
    "collations": (f"{_WHERE}education", " COLLATE NOCASE", " = 'a'", 2, "too_large"),
    "time zones": (f"{_WHERE}born", " AT TIME ZONE 'UTC'", " > DATE '2000-01-01'", 4, "too_large"),
    "nested time zones": (f"{_WHERE}born", " AT TIME ZONE born", " > DATE '2000-01-01'", 4, "too_large"),
    "ANY chain": (f"{_WHERE}age", " = ANY (1)", "", 5, "too_large"),
    "ALL chain": (f"{_WHERE}age", " = ALL (1)", "", 5, "too_large"),
    "prefix ANY": (_WHERE, "ANY ", "age", 1, "too_large"),
    "DATE before names": (_WHERE, "DATE age ", "", 2, "parse_error"),
    "DATE before DATE": (_WHERE, "DATE ", "age", 1, "too_large"),
    "INTERVAL before names": (_WHERE, "INTERVAL age ", "", 2, "parse_error"),
    "INTERVAL sums": (_WHERE, "INTERVAL age DAY + ", "age > 1", 4, "too_large"),
    "bitwise operators": (_WHERE, "age & ", "1 > 1", 2, "too_large"),
    "shifts": (_WHERE, "age << ", "1 > 1", 2, "too_large"),
    "comparisons": (_WHERE, "age < ", "1", 2, "too_large"),
    "equalities": (_WHERE, "age = ", "1", 2, "too_large"),
    "assignments": (_WHERE, "age := ", "1", 2, "parse_error"),
    "method calls": (f"{_WHERE}age", ".abs()", " > 1", 4, "too_large"),
    "method calls with arguments": (f"{_WHERE}age", ".mod(2)", " > 1", 5, "too_large"),
    "dots": (f"{_WHERE}a", ".a", " > 1", 2, "too_large"),
    "colons": (f"{_WHERE}age", ":a", " > 1", 2, "parse_error"),
    "slices": (f"{_WHERE}age[1", " : 1", "] > 1", 2, "parse_error"),
    "subscripts": (f"{_WHERE}age", "[1]", " > 1", 3, "too_large"),
    "lambdas": (f"{_WHERE}abs(", "x -> ", "x) > 1", 2, "too_large"),
    "bare lambdas": (_WHERE, "x -> ", "x", 2, "too_large"),
    "words of lambdas": (f"{_WHERE}abs(", "LAMBDA x : ", "x) > 1", 3, "parse_error"),
    "double arrows": (f"{_WHERE}age", " ->> 'a'", " > 1", 2, "too_large"),
    "struct literals": (_WHERE, "{'a': ", "1", 3, "too_large"),
    "map literals": (_WHERE, "MAP {'a': ", "1", 4, "too_large"),
    "list literals": (_WHERE, "[1, ", "1", 3, "too_large"),
    "tuples": (_WHERE, "(1, ", "1", 3, "too_large"),
    "joins without ON": ("SELECT COUNT(*) FROM people", " JOIN visits", "", 2, "too_large"),
    "left joins without ON": ("SELECT COUNT(*) FROM people", " LEFT JOIN visits", "", 3, "too_large"),
    "joins with ON": ("SELECT COUNT(*) FROM people", " JOIN visits ON 1 = 1", "", 6, "too_large"),
    "cross joins": ("SELECT COUNT(*) FROM people", " CROSS JOIN visits", "", 3, "too_large"),
    "natural joins": ("SELECT COUNT(*) FROM people", " NATURAL JOIN visits", "", 3, "too_large"),
    "asof joins": ("SELECT COUNT(*) FROM people", " ASOF JOIN visits", "", 3, "too_large"),
    "lateral joins": ("SELECT COUNT(*) FROM people", ", LATERAL (SELECT 1)", "", 5, "too_large"),
    "commas of tables": ("SELECT COUNT(*) FROM people", ", visits", "", 2, "too_large"),
    "unions": ("SELECT 1 AS x", " UNION ALL SELECT 1", "", 4, "too_large"),
    "unions by name": ("SELECT 1 AS x", " UNION BY NAME SELECT 1", "", 5, "too_large"),
    "selects": ("", "SELECT ", "1", 1, "too_large"),
    "froms": ("", "FROM people ", "", 2, "parse_error"),
    "froms and selects": ("", "FROM people SELECT ", "1", 3, "parse_error"),
    "CTEs": ("WITH a AS (SELECT 1 AS x)", ", a AS (SELECT 1 AS x)", " SELECT x FROM a", 9, "unsupported_sql"),
    "WITH before WITH": ("", "WITH a AS (SELECT 1) ", "SELECT 1", 6, "too_large"),
    "windows": ("SELECT 1", ", SUM(1) OVER (ORDER BY 1)", " FROM people", 10, "private_row_limit"),
    "window frames": ("SELECT SUM(1) OVER (", "ROWS BETWEEN 1 PRECEDING AND ", "1 FOLLOWING)", 5, "parse_error"),
    "named windows": ("SELECT 1 FROM people WINDOW w AS ()", ", w AS (w)", "", 6, "raw_rows"),
    "QUALIFY": ("SELECT 1 FROM people", " QUALIFY smoker", "", 2, "parse_error"),
    "clauses": ("SELECT 1 FROM people", " ORDER BY 1 LIMIT 1", "", 4, "parse_error"),
    "VALUES": ("SELECT * FROM (VALUES (1)", ", (1)", ") t", 4, "answered"),
    "EXCLUDE": ("SELECT * EXCLUDE (a", ", a", ") FROM people", 2, "too_large"),
    "star REPLACE": ("SELECT * REPLACE (1 AS a", ", 1 AS a", ") FROM people", 4, "raw_rows"),
    "pivots": ("SELECT * FROM people ", "PIVOT (SUM(age) FOR sex IN ('a')) ", "", 13, "unsupported_sql"),
    "unpivots": ("SELECT * FROM people ", "UNPIVOT (a FOR b IN (c)) ", "", 9, "too_large"),
    "pivot statements": ("", "PIVOT people ON sex ", "", 4, "parse_error"),
    "samples": ("SELECT COUNT(*) FROM people", " TABLESAMPLE 1%", "", 3, "parse_error"),
    "explains": ("", "EXPLAIN ", "SELECT 1", 1, "not_a_query"),
    "describes": ("", "DESCRIBE ", "SELECT 1", 1, "not_a_query"),
    "creates": ("", "CREATE TABLE a AS ", "SELECT 1", 4, "not_a_query"),
    "inserts": ("", "INSERT INTO a ", "SELECT 1", 3, "not_a_query"),
    "merges": ("", "MERGE INTO a USING b ON c WHEN MATCHED THEN DELETE ", "", 10, "not_a_query"),
    "pragmas": ("", "PRAGMA ", "a", 1, "not_a_query"),
    "sets": ("", "SET a = ", "1", 3, "not_a_query"),
    "copies": ("", "COPY (SELECT 1) TO 'a' ", "", 6, "not_a_query"),
    "adjacent texts": (f"{_WHERE}education = ", "'a'\n", "", 1, "too_large"),
    "dollar texts": (f"{_WHERE}education = ", "$$a$$ || ", "'a'", 2, "too_large"),
    "escaped texts": (f"{_WHERE}education = ", "e'a' || ", "'a'", 2, "too_large"),
    "hex texts": (f"{_WHERE}education = ", "x'aa' || ", "'a'", 2, "too_large"),
    "parameters": (_WHERE, "age = $p AND ", "smoker", 5, "too_large"),
    "question marks": (_WHERE, "age = ? AND ", "smoker", 4, "too_large"),
    "nested function names": (_WHERE, "DATE(", "age", 2, "too_large"),
    "IF words": (_WHERE, "IF ", "age", 1, "too_large"),
    "CASE words": (_WHERE, "CASE WHEN smoker THEN ", "age", 4, "too_large"),
    "CASE ELSE": (_WHERE, "CASE WHEN smoker THEN 1 ELSE ", "age", 6, "too_large"),
    "EXISTS": (_WHERE, "EXISTS (SELECT 1 FROM people WHERE ", "smoker", 7, "too_large"),
    "subqueries": (_WHERE, "age > (SELECT MAX(age) FROM people WHERE ", "smoker", 11, "too_large"),
    "derived tables": ("SELECT * FROM ", "(SELECT * FROM ", "people", 4, "too_large"),
    "filters": ("SELECT COUNT(*)", " FILTER (WHERE smoker)", " FROM people", 5, "parse_error"),
    "overs": ("SELECT COUNT(*)", " OVER ()", " FROM people", 3, "too_large"),
    "within groups": ("SELECT COUNT(*)", " WITHIN GROUP (ORDER BY age)", " FROM people", 7, "parse_error"),
    "rollups": ("SELECT COUNT(*) FROM people GROUP BY ", "ROLLUP (", "sex", 2, "too_large"),
    "grouping sets": ("SELECT COUNT(*) FROM people GROUP BY ", "GROUPING SETS (", "sex", 2, "too_large"),
    "distincts on": ("SELECT ", "DISTINCT ON (sex) ", "1 FROM people", 5, "parse_error"),
    "connections": ("SELECT 1 FROM people ", "CONNECT BY PRIOR a = b ", "", 5, "parse_error"),
    "pipes": ("FROM people ", "|> WHERE smoker ", "", 3, "too_large"),
    "aliases": ("SELECT 1", " AS a", " FROM people", 2, "parse_error"),
    "semicolons and words": ("SELECT 1", "; SELECT 1", "", 3, "many_statements"),
    "line comments": ("SELECT COUNT(*) FROM people ", "-- a\n", "", 0, "answered"),
    "comments": ("SELECT COUNT(*) FROM people ", "/* a */", "", 0, "answered"),
}

_CASTS = "CAST(age AS "

FAMILIES: dict[str, tuple[str, str]] = {
    **{
        name: (_filled(start, piece, end, words=words or None), fate)
        for name, (start, piece, end, words, fate) in _PIECES.items()
    },
    "joins with all ON at the end": (
        f"SELECT COUNT(*) FROM people{' JOIN visits' * 900}{' ON 1 = 1' * 700}",
        "too_large",
    ),
    "closed types as functions": (_nested(_WHERE, "DATE(", "age", ")", depth=31), "too_large"),
    "closed brackets and types": (_nested(_WHERE, "(CHAR(", "age", "))", depth=15), "too_large"),
    "closed casts": (_nested(_WHERE, "CAST(", "age", " AS BIGINT)", depth=31), "too_large"),
    "closed functions": (_nested(_WHERE, "ABS(", "age", ")", depth=31), "unsupported_type"),
    "closed brackets of types": (
        f"{_WHERE}{_nested(_CASTS, 'STRUCT(a ', 'BIGINT', ')', depth=31)}) > 1",
        "unsupported_type",
    ),
    "closed types in angles": (f"{_WHERE}{_nested(_CASTS, 'ARRAY<', 'BIGINT', '>', depth=900)}) > 1", "too_large"),
    "long name": (f"{_WHERE}{'x' * 65_000} > 1", "unknown_column"),
    "long quoted name": (f'{_WHERE}"{"x" * 65_000}" > 1', "unknown_column"),
    "long number": (f"{_WHERE}age > {'9' * 65_000}", "too_large"),
    "long exponent": (f"{_WHERE}age > 1e{'9' * 65_000}", "too_large"),
    "nested comment": (f"SELECT COUNT(*) FROM people {'/*' * 15_000}{'*/' * 15_000}", "too_large"),
    "open comment": (f"SELECT COUNT(*) FROM people {'/*' * 32_000}", "parse_error"),
    "open text": (f"{_WHERE}education = '{'x' * 65_000}", "parse_error"),
    "open dollar text": (f"{_WHERE}education = $${'x' * 65_000}", "parse_error"),
}

LEGITIMATE: dict[str, str] = {
    "alternatives": _WHERE + " OR ".join(f"age = {i}" for i in range(600)),
    "conjunctions": _WHERE + " AND ".join(f"age <> {i + 40}" for i in range(600)),
    "alternatives of conjunctions": _WHERE + " OR ".join(f"age = {i} AND hours > {i}" for i in range(300)),
    "groups of alternatives": _WHERE
    + " AND ".join(f"({' OR '.join(f'age <> {i + j}' for j in range(10))})" for i in range(40)),
    "alternatives with NULL": _WHERE + " OR ".join(f"age IS NULL OR hours = {i}" for i in range(300)),
    "ranges": _WHERE + " OR ".join(f"age BETWEEN {i} AND {i + 1}" for i in range(300)),
    "dates": _WHERE + " OR ".join(f"born = DATE '19{i:02}-01-01'" for i in range(100)),
    "IN list": f"{_WHERE}age IN ({', '.join(map(str, range(1_000)))})",
    "IN lists": _WHERE + " OR ".join(f"age IN ({', '.join(map(str, range(i, i + 90)))})" for i in range(20)),
    "texts": f"{_WHERE}education IN ({', '.join(repr(f'text {i}') for i in range(1_000))})",
    "long CASE": "SELECT CASE "
    + " ".join(f"WHEN age = {i} THEN '{i // 10}'" for i in range(200))
    + " ELSE 'other' END AS bin, COUNT(*) AS n FROM people GROUP BY 1",
    "CASE of ranges": "SELECT SUM(CASE "
    + " ".join(f"WHEN age >= {i} AND age < {i + 1} THEN {i}" for i in range(100))
    + " ELSE 0 END) AS total FROM people",
    "CTEs": "WITH "
    + ",\n".join(f"a{i} AS (SELECT COUNT(*) AS n FROM people WHERE age = {i})" for i in range(30))
    + "\nSELECT "
    + " + ".join(f"(SELECT n FROM a{i})" for i in range(30))
    + " AS n",
    "chained CTEs": "WITH a0 AS (SELECT COUNT(*) AS n FROM people)"
    + "".join(f",\na{i} AS (SELECT n + 1 AS n FROM a{i - 1})" for i in range(1, 50))
    + "\nSELECT n FROM a49",
    "unions": " UNION ALL\n".join(f"SELECT {i} AS k, COUNT(*) AS n FROM people WHERE age = {i}" for i in range(30)),
    "columns": "SELECT "
    + ",\n".join(f"COUNT(*) AS column_{i}" for i in range(300))
    + "\nFROM people\nWHERE age > 1\nGROUP BY sex",
    "brackets": f"{_WHERE}{'(' * 30}age > 1{')' * 30}",
}
"""Long texts as analysts and their tools write them. All are answered."""
