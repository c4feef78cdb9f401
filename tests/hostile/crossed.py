"""Hostile fragments, each in places where a query can hold one: what is refused somewhere is refused everywhere.

A fragment has one code, wherever it stands. Where a family has many of both, each fragment stands in one place of so
many (`every`), the next fragment in the next places, so that all of them meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["CROSSED", "Family"]


@dataclass(frozen=True, slots=True)
class Family:
    """Fragments by their code, and texts in which @ is such a fragment."""

    fragments: Mapping[str, tuple[str, ...]]
    places: tuple[str, ...]
    every: int = 1

    def texts(self) -> Iterator[tuple[str, str]]:
        """The texts, with their codes."""
        flat = [(code, fragment) for code, listed in self.fragments.items() for fragment in listed]
        for number, (code, fragment) in enumerate(flat):
            for place in self.places[number % self.every :: self.every]:
                yield place.replace("@", fragment), code


_VALUES = Family(
    {
        "volatile_function": (
            "random()", "uuid()", "gen_random_uuid()", "nextval('s')", "currval('s')", "setseed(0.5)",
            "current_setting('threads')", "current_database()", "current_schema()", "current_user", "version()",
            "txid_current()", "current_query()", "getvariable('x')",
        ),
        "unsupported_function": (
            "getenv('HOME')", "session_user", "error('x')", "hash(1)", "md5('a')", "sha256('a')", "typeof(1)",
            "pg_typeof(1)", "stats(1)", "[1, 2]", "{'a': 1}", "MAP {'a': 1}", "json('1')", "to_json(1)",
            "list_transform([1], x -> x)", "range(10)", "unnest([1, 2])", "'a' COLLATE NOCASE",
            "repeat('a', 1000000000)", "printf('%d', 1)", "format('{:d}', 1)", "TRY(1)", "pg_sleep(10)",
            "read_text('/etc/passwd')", "parse_path('/etc/passwd')", "system('ls')", "enum_range(NULL::mood)",
            "write_log('x')", "string_split('a,b', ',')", "levenshtein('a', 'b')", "strptime('2020', '%Y')",
            "to_base64('a')", "url_encode('a')", "bar(1, 0, 10)",
        ),
        "unsupported_type": ("'a'::BLOB", "CAST('a' AS UUID)", "CAST(1 AS BIT)", "TIME '10:00'"),
        "unsupported_sql": ("~1", "xor(5, 3)", "$missing"),
        "parse_error": ("?",),
    },
    (
        "SELECT COUNT(*) FROM people WHERE @ IS NOT NULL",
        "SELECT COUNT(*) FROM people WHERE NOT (smoker AND @ IS NULL)",
        "SELECT SUM(@) FROM people",
        "SELECT sex, COUNT(@) FROM people GROUP BY sex",
        "SELECT @ AS k, COUNT(*) FROM people GROUP BY 1",
        "SELECT SUM(CASE WHEN @ IS NULL THEN 1 ELSE 0 END) FROM people",
        "SELECT COUNT(*) FROM people WHERE CASE WHEN smoker THEN TRUE ELSE @ IS NULL END",
        "SELECT COUNT(*) FILTER (WHERE @ IS NULL) FROM people",
        "SELECT COUNT(*) FROM people WHERE age IN (1, @)",
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 1 AND @",
        "SELECT COUNT(*) FROM people WHERE COALESCE(@, 0) > 1",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > @",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY @",
        "SELECT sex, SUM(COUNT(*)) OVER (ORDER BY @) FROM people GROUP BY sex",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex QUALIFY ROW_NUMBER() OVER (ORDER BY sex) < @",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT @",
        "SELECT n + @ FROM (SELECT COUNT(*) AS n FROM people) t",
        "WITH t AS (SELECT person_id, @ AS x FROM people) SELECT COUNT(x) FROM t",
        "SELECT COUNT(*) FROM (SELECT * FROM people WHERE @ IS NULL) t",
        "SELECT AVG(x) FROM (SELECT person_id, MAX(@) AS x FROM visits GROUP BY person_id) t",
        "SELECT COUNT(*) FROM visits v JOIN hospitals h ON v.hospital_id = h.hospital_id AND @ IS NOT NULL",
        "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person_id = p.person_id AND @ = 1)",
        "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM visits WHERE @ IS NULL)",
        "SELECT COUNT(*) AS n FROM people UNION ALL SELECT @",
        "SELECT x, n FROM (SELECT COUNT(*) AS n FROM people) t, (VALUES (@)) v(x)",
        "SELECT COUNT(*) + (SELECT @) FROM people",
        "SELECT region FROM hospitals WHERE @ IS NOT NULL",
        "SELECT CORR(age, @) FROM people",
    ),
    every=4,
)  # fmt: skip

_NAMES = Family(
    {
        "unknown_column": ("nocolumn", "rowid", "ctid", '"unit$id"', '"unit$draw"'),
        "unknown_table": ("nobody.age", '"r0"."unit$id"', "s.nextval", "excluded.age", "information_schema.tables"),
    },
    tuple(place for place in _VALUES.places if "VALUES" not in place),
    every=3,
)  # fmt: skip

_RELATIONS = Family(
    {
        "unsupported_sql": (
            "read_csv('/etc/passwd')", "read_csv_auto('people.csv')", "read_parquet('s3://bucket/people.parquet')",
            "read_json_auto('people.json')", "read_text('/etc/hostname')", "read_blob('/etc/shadow')",
            "glob('/home/*')", "query('SELECT * FROM people')", "query_table('people')", "duckdb_tables()",
            "duckdb_secrets()", "duckdb_settings()", "pragma_table_info('people')", "pragma_storage_info('people')",
            "sniff_csv('people.csv')", "seq_scan('people')", "arrow_scan(1, 2, 3)", "other.main.people",
            "memory.main.people", "postgres_scan('host=db', 'public', 'people')", "people TABLESAMPLE 10%",
            "people TABLESAMPLE BERNOULLI (1)", "people UNPIVOT ((v, w) FOR k IN ((age, hours)))",
            "people PIVOT (COUNT(*) FOR sex IN ('male') GROUP BY age + 1)", "people AT (VERSION => 1)",
            "repeat_row(1, num_rows = 1000000000)", "test_all_types()", "checkpoint()", "summary(people)", "people(1)",
            "json_each('[1]')",
        ),
        "unknown_table": (
            "'people.csv'", '"people.parquet"', "'https://example.org/people.csv'", "information_schema.tables",
            "information_schema.columns", "pg_catalog.pg_class", "sqlite_master", "temp.people", "persons",
            '"people$rows"', "people_1",
        ),
        "private_row_limit": (
            "(SELECT * FROM people LIMIT 5)", "(SELECT * FROM people ORDER BY age DESC LIMIT 1)",
            "(SELECT * FROM people OFFSET 3)", "(SELECT *, ROW_NUMBER() OVER (ORDER BY age) AS r FROM people)",
            "(SELECT *, LAG(age) OVER (ORDER BY person_id) AS x FROM people)",
            "(SELECT *, SUM(age) OVER () AS x FROM people)", "(SELECT * FROM visits FETCH FIRST 2 ROWS ONLY)",
            "(SELECT *, COUNT(*) OVER (PARTITION BY born) AS twins FROM people)",
        ),
        "parse_error": ("(DELETE FROM people RETURNING *)", "(INSERT INTO people VALUES (1) RETURNING *)"),
    },
    (
        "SELECT COUNT(*) FROM @",
        "SELECT COUNT(*) FROM @ WHERE TRUE",
        "FROM @ SELECT COUNT(*)",
        "WITH t AS (SELECT * FROM @) SELECT COUNT(*) FROM t",
        "SELECT COUNT(*) FROM (SELECT * FROM @) t",
        "SELECT COUNT(*) FROM people p, @",
        "SELECT COUNT(*) FROM hospitals h JOIN @ ON TRUE",
        "SELECT COUNT(*) FROM people p LEFT JOIN @ ON p.age = 1",
        "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM @",
        "SELECT COUNT(*) FROM people EXCEPT SELECT COUNT(*) FROM @",
        "SELECT COUNT(*) - (SELECT COUNT(*) FROM @) FROM people",
        "SELECT COUNT(*) FROM people WHERE person_id IN (SELECT person_id FROM @)",
        "SELECT AVG(age) FROM people WHERE person_id NOT IN (SELECT person_id FROM @)",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > (SELECT COUNT(*) FROM @)",
        "SELECT CASE WHEN (SELECT COUNT(*) FROM @) > 1 THEN COUNT(*) ELSE 0 END FROM people",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY (SELECT COUNT(*) FROM @)",
        "SELECT COUNT(*) FILTER (WHERE person_id IN (SELECT person_id FROM @)) FROM people",
        "SELECT sex, COUNT(*) FROM @ GROUP BY sex",
    ),
    every=3,
)  # fmt: skip

_ROWS = Family(
    {
        "raw_rows": (
            "SELECT * FROM people", "SELECT age FROM people", "SELECT education FROM people WHERE age > 90",
            "SELECT person_id, salary FROM people", "SELECT age + 1 AS x FROM people", "SELECT 1 AS x FROM people",
            "SELECT p.age, v.cost FROM people p JOIN visits v USING (person_id)",
            "SELECT salary FROM people WHERE person_id = 7", "SELECT CASE WHEN smoker THEN age END AS x FROM people",
            "SELECT t.result FROM tests t JOIN visits v USING (visit_id)",
            "SELECT p.* FROM people p JOIN visits v USING (person_id)",
            "SELECT x FROM (SELECT salary * 2 AS x FROM people) t",
            "SELECT age FROM people WHERE person_id IN (SELECT person_id FROM visits)",
        ),
    },
    (
        "@",
        "@ ORDER BY 1",
        "SELECT * FROM (@) t LIMIT 3",
        "SELECT * FROM (@) t",
        "WITH t AS (@) SELECT * FROM t",
        "WITH t AS (@), u AS (SELECT * FROM t) SELECT * FROM u",
        "SELECT *, ROW_NUMBER() OVER () AS r FROM (@) t",
        "@ UNION ALL @",
        "SELECT * FROM (@) t QUALIFY ROW_NUMBER() OVER () = 1",
        "/* SELECT COUNT(*) */ @ -- GROUP BY sex",
        "(@)",
    ),
)  # fmt: skip

_KEYS = Family(
    {
        "group_by_unit": (
            "person_id", "person_id + 0", "CAST(person_id AS VARCHAR)", "'p' || CAST(person_id AS VARCHAR)",
            "-person_id", "person_id * 2", "person_id::DOUBLE", "((person_id))", "visits.person_id", "visit_id",
            "CONCAT('id ', CAST(person_id AS VARCHAR))", "1000 - person_id", "person_id + 1000000",
            "CAST(visit_id AS VARCHAR)", "visit_id - 1", "7 * visit_id", "TRY_CAST(visit_id AS VARCHAR) || '!'",
        ),
    },
    (
        "SELECT @ AS k, COUNT(*) FROM visits GROUP BY @",
        "SELECT @ AS k, COUNT(*) FROM visits GROUP BY 1",
        "SELECT @ AS k, COUNT(*) FROM visits GROUP BY ALL",
        "SELECT @ AS k, AVG(cost) FROM visits GROUP BY k",
        "SELECT ward, @ AS k, COUNT(*) FROM visits GROUP BY ward, k",
        "SELECT COUNT(*) FROM visits GROUP BY @",
        "SELECT @ AS k, COUNT(*) FROM visits GROUP BY k HAVING COUNT(*) > 5",
        "SELECT @ AS k, COUNT(*) AS n FROM visits GROUP BY k ORDER BY n DESC LIMIT 1",
        "SELECT DISTINCT @ AS k FROM visits",
        "SELECT @ AS k FROM visits GROUP BY k",
        "SELECT 0 AS k, COUNT(*) AS n FROM visits UNION ALL SELECT @, COUNT(*) FROM visits GROUP BY ALL",
        "SELECT @ AS k, SUM(cost) FROM visits WHERE person_id = 7 GROUP BY k",
    ),
    every=2,
)  # fmt: skip

_CONDITIONS = Family(
    {
        "correlated_subquery": (
            "age > (SELECT q.age FROM people q WHERE q.person_id = 7)",
            "EXISTS (SELECT 1 FROM people q WHERE q.age = people.age AND q.person_id <> people.person_id)",
            "(SELECT COUNT(*) FROM people q WHERE q.age > people.age) < 3",
            "salary IN (SELECT cost FROM visits)",
            "age NOT IN (SELECT q.age FROM people q WHERE q.smoker)",
            "EXISTS (SELECT 1 FROM visits v WHERE v.person_id > people.person_id)",
            "EXISTS (SELECT 1 FROM visits v WHERE v.visit_id = people.person_id)",
            "(age, hours) IN (SELECT q.age, q.hours FROM people q)",
            "age = (SELECT q.age FROM people q ORDER BY q.salary DESC LIMIT 1)",
            "EXISTS (SELECT 1 FROM people q WHERE q.person_id = people.person_id + 1 AND q.smoker)",
            "(SELECT COUNT(*) FROM people q JOIN visits v USING (person_id) WHERE q.age < people.age) > 0",
            "person_id NOT IN (SELECT v.visit_id FROM visits v)",
            "education = (SELECT q.education FROM people q WHERE q.born < people.born LIMIT 1)",
            "EXISTS (SELECT 1 FROM people q WHERE q.born = people.born AND q.sex = people.sex)",
            "EXISTS (SELECT 1 FROM visits v WHERE v.ward = people.education)",
            "person_id IN (SELECT person_id FROM visits WHERE cost > (SELECT result FROM tests WHERE test_id = 3))",
        ),
        "unsupported_sql": ("age >= ALL (SELECT q.age FROM people q)", "age > ANY (SELECT q.hours FROM people q)"),
        "private_row_limit": (
            "ROW_NUMBER() OVER (ORDER BY age) = 1", "LAG(age) OVER (ORDER BY age) = age",
            "NTILE(4) OVER (ORDER BY salary) = 4", "RANK() OVER (PARTITION BY sex ORDER BY age DESC) = 1",
            "SUM(age) OVER () > 100", "COUNT(*) OVER (PARTITION BY age, education) = 1",
            "FIRST_VALUE(age) OVER (ORDER BY person_id) = age",
        ),
    },
    (
        "SELECT COUNT(*) FROM people WHERE @",
        "SELECT COUNT(*) FROM people WHERE NOT (@)",
        "SELECT SUM(age) FROM people WHERE sex = 'male' AND @",
        "SELECT COUNT(*) FROM people WHERE smoker OR @",
        "SELECT sex, COUNT(*) FILTER (WHERE @) FROM people GROUP BY sex",
        "SELECT SUM(CASE WHEN @ THEN 1 ELSE 0 END) FROM people",
        "SELECT @ AS k, COUNT(*) FROM people GROUP BY 1",
        "SELECT COUNT_IF(@) FROM people",
        "WITH t AS (SELECT sex FROM people WHERE @) SELECT COUNT(*) FROM t",
        "SELECT n * 2 FROM (SELECT COUNT(*) AS n FROM people WHERE @) t",
        "SELECT COUNT(*) FROM people WHERE COALESCE(@, FALSE)",
        "SELECT 1 AS n UNION ALL SELECT COUNT(*) FROM people WHERE @",
    ),
    every=2,
)  # fmt: skip

_PATTERNS = Family(
    {
        "unsupported_function": (
            "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", "(?P<n>a)", "(?P<n>a)(?P=n)", "(?i)a", "[[:alpha:]]",
            r"\Ba", "(a*)*", "(a*)+", "(?:)*", "a{0,1000000}", r"\p{L}", "(?R)", "[a", "(a", "*a", "a**", "\\", "(?#c)",
            "(?>a)", "((((a+)*)+)*)+", r"\cA", r"\Qa\E", "a++", r"\077", r"\C", "((a{50}){50}){50}",
        ),
        "too_large": ("a" * 3_000,),
    },
    (
        "SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(education, '@')",
        "SELECT COUNT(*) FROM people WHERE REGEXP_FULL_MATCH(education, '@')",
        "SELECT COUNT(*) FROM people WHERE REGEXP_EXTRACT(education, '@') = 'x'",
        "SELECT COUNT(*) FROM people WHERE REGEXP_REPLACE(education, '@', 'x') = 'x'",
        "SELECT COUNT(*) FROM people WHERE education ~ '@'",
        "SELECT COUNT(*) FROM people WHERE education SIMILAR TO '@'",
        "SELECT REGEXP_EXTRACT(education, '@') AS k, COUNT(*) FROM people GROUP BY k",
        "SELECT COUNT(*) FILTER (WHERE REGEXP_MATCHES(education, '@')) FROM people",
        "SELECT SUM(CASE WHEN education ~ '@' THEN 1 ELSE 0 END) FROM people",
    ),
    every=3,
)  # fmt: skip

_STATEMENTS = (
    "INSERT INTO people VALUES (1)", "UPDATE people SET age = 1", "DELETE FROM people", "TRUNCATE people",
    "DROP TABLE people", "ALTER TABLE people ADD COLUMN x INTEGER", "CREATE TABLE t AS SELECT * FROM people",
    "CREATE VIEW v AS SELECT * FROM people", "CREATE MACRO f(x) AS (SELECT COUNT(*) FROM people)",
    "CREATE INDEX i ON people(age)", "COPY people TO 'x.csv'", "COPY people FROM 'x.csv'",
    "ATTACH 'x.db' AS x", "DETACH x", "USE x", "SET threads = 100", "RESET threads", "PRAGMA database_list",
    "INSTALL httpfs", "LOAD httpfs", "EXPORT DATABASE 'x'", "IMPORT DATABASE 'x'", "VACUUM", "ANALYZE people",
    "CHECKPOINT", "BEGIN", "COMMIT", "ROLLBACK", "CALL pragma_version()", "EXECUTE q",
    "PREPARE q AS SELECT * FROM people", "DEALLOCATE q", "DESCRIBE people", "SHOW ALL TABLES", "SUMMARIZE people",
    "EXPLAIN SELECT COUNT(*) FROM people", "MERGE INTO people USING visits ON TRUE WHEN MATCHED THEN DELETE",
    "GRANT ALL ON people TO x", "KILL 1", "COMMENT ON TABLE people IS 'x'", "CREATE SEQUENCE s",
    "CREATE TYPE m AS ENUM ('a')", "CREATE SECRET s (TYPE s3)", "PIVOT_WIDER people ON sex USING COUNT(*)",
    "PIVOT_LONGER people ON age, hours",
)  # fmt: skip

CROSSED = {
    "values": _VALUES,
    "names": _NAMES,
    "relations": _RELATIONS,
    "rows": _ROWS,
    "keys": _KEYS,
    "conditions": _CONDITIONS,
    "patterns": _PATTERNS,
    "statements": Family(
        {"not_a_query": _STATEMENTS},
        ("/* SELECT COUNT(*) FROM people */ @ -- x", "\n\t@\n;", "EXPLAIN @", "EXPLAIN ANALYZE @"),
        every=2,
    ),
    "two statements": Family(
        {"many_statements": _STATEMENTS}, ("SELECT COUNT(*) FROM people; @", "@; SELECT COUNT(*) FROM people"), every=2
    ),
}
