"""What a refusal says to write instead is read by the engine too; `test_pasting.py` pastes all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from privacy.bounds import ContributionBound
from privacy.policy import Column, Other, PublicKeys, Reference, Table
from privacy.refusal import Finding, Refused
from privacy.unit import PrivacyUnit
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_warnings import plan_warnings
from tests.hostile.corpus import refused
from tests.hostile.duck import Reader
from tests.sql_rewrite.datasets import CLINIC, T, bounds

FIRST_STEPS = (
    "SELECT MAD(age) FROM people GROUP BY ROLLUP (sex)",
    "SELECT MEDIAN(salary) FROM people",
    "SELECT MIN(born) FROM people",
    "SELECT sex, MODE(education) FROM people GROUP BY sex",
    "SELECT MEDIAN(cost) FROM visits JOIN people ON visits.person_id = people.person_id",
    "SELECT MEDIAN(people.age) FROM visits JOIN people ON visits.person_id = people.person_id",
    "SELECT list(smoker) FROM people",
    "SELECT * FROM people",
    "SELECT sex, smoker FROM people",
    "SELECT DISTINCT sex, education FROM people",
    "SELECT person_id, COUNT(*) FROM visits GROUP BY person_id",
    "SELECT AVG(education) FROM people",
    "SELECT AVG(smoker) FROM people",
    "SELECT AVG(born) FROM people",
    "SELECT AVG(income) FROM people",
    "SELECT COUNT(*) FROM people, visits",
    "SELECT COUNT(*) FROM visits, people WHERE visits.person_id = people.person_id",
    "SELECT salary, COUNT(*) FROM people GROUP BY salary",
    "SELECT age / 2, COUNT(*) FROM people GROUP BY 1",
    "SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)",
    "SELECT COUNT(*) FROM people WHERE ABS(age) ^ 2 > 4",
    "SELECT COUNT(*) FROM hospitals LEFT JOIN visits ON visits.hospital_id = hospitals.hospital_id",
)


def suggestions() -> Iterator[tuple[str, str]]:
    """Every different line of advice with the text that earned it."""
    seen: set[str] = set()
    for text in (*FIRST_STEPS, *(entry.text for entry in refused())):
        try:
            bound(lift(text, CLINIC))
        except Refused as refusal:
            for finding in refusal.findings:
                for line in finding.instead:
                    if line not in seen:
                        seen.add(line)
                        yield line, text


@pytest.mark.slow
def test_no_advice_holds_half_a_query() -> None:
    """Shows that a query in advice is whole: three dots stand for what nobody can run."""
    halves = [line for line, _ in suggestions() if re.search(r"SELECT .*\.\.\.", line) or "FROM ..." in line]
    assert set(halves) <= {
        "name an intermediate result with WITH name AS (SELECT ...)",
        "put intermediate results into WITH name AS (SELECT ...)",
        "(SELECT ...)",
    }


PUPILS = Table(
    "pupils",
    (
        Column("pupil_id", T.INTEGER, nullable=False),
        Column("class_id", T.INTEGER, nullable=False),
        Column("born", T.DATE, nullable=False),
        Column("entered", T.TIMESTAMP, nullable=False),
        Column("gender", T.TEXT, keys=PublicKeys(("female", "male"), Other("diverse")), nullable=False),
        Column("mark", T.INTEGER, bounds(1, 6)),
        Column("grade", T.NUMBER, bounds(1, 6)),
        Column("fees", T.NUMBER, bounds(0, 3_000)),
    ),
    protected=True,
    key="pupil_id",
    references=(Reference("class_id", "classes", "class_id"),),
    unit_column="pupil_id",
    contribution=ContributionBound(1, 1, 1),
)
CLASSES = Table(
    "classes",
    (Column("class_id", T.INTEGER, nullable=False), Column("size", T.INTEGER, nullable=False)),
    protected=False,
    key="class_id",
)
SCHOOL = replace(CLINIC, name="school", unit=PrivacyUnit("pupils", "pupil_id"), tables=(PUPILS, CLASSES))
JOINED = "FROM pupils p JOIN classes c ON p.class_id = c.class_id"


@pytest.mark.sparse(4)
@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (f"SELECT SUM(p.class_id * c.size) {JOINED}", "SUM(GREATEST(<lowest>, LEAST(p.class_id * c.size, <highest>)))"),
        (f"SELECT SUM(class_id) {JOINED}", "write it with its table: p.class_id or c.class_id"),
        (f"SELECT class_id, COUNT(*) {JOINED} GROUP BY class_id", "write it with its table: p.class_id or c.class_id"),
        ("SELECT COUNT(*) FROM pupils WHERE born > 2008", "YEAR(born) > 2008"),
        ("SELECT COUNT(*) FROM pupils WHERE 2008 <= entered", "2008 <= YEAR(entered)"),
        ("SELECT COUNT(*) FROM pupils WHERE born BETWEEN 2007 AND 2008", "YEAR(born) >= 2007"),
        ("SELECT COUNT(*) FROM pupils WHERE born IN (2007, 2008)", "YEAR(born) IN (2007, 2008)"),
        (f"SELECT COUNT(*) {JOINED} WHERE p.born = 2008", "YEAR(p.born) = 2008"),
        (f"SELECT COUNT(*) {JOINED} WHERE p.born = 2008", "p.born = DATE '2008-12-31'"),
        (
            "SELECT COUNT(*) FROM pupils WHERE class_id IN (SELECT class_id FROM classes WHERE size > 20 LIMIT 3)",
            "pupils JOIN classes ON pupils.class_id = classes.class_id",
        ),
        (
            "SELECT MAD(mark) FROM pupils GROUP BY fees > 3",
            "their spread: SELECT mark AS bucket, COUNT(*) AS n FROM pupils GROUP BY bucket",
        ),
        (
            "SELECT MAD(grade) FROM pupils GROUP BY fees > 3",
            "their spread: SELECT FLOOR(grade / 0.5) AS bucket, COUNT(*) AS n FROM pupils GROUP BY bucket",
        ),
        (
            "SELECT MAD(fees) FROM pupils GROUP BY fees > 3",
            "their spread: SELECT FLOOR(fees / 500) * 500 AS bucket, COUNT(*) AS n FROM pupils GROUP BY bucket",
        ),
        (f"SELECT COUNT(*) {JOINED} GROUP BY p.grade", "GROUP BY FLOOR(p.grade)"),
        (f"SELECT COUNT(*) {JOINED} GROUP BY p.grade", "GROUP BY CASE WHEN p.grade < 3.5 THEN 'low' ELSE 'high' END"),
        ("SELECT entered, COUNT(*) FROM pupils GROUP BY entered", "GROUP BY date_trunc('day', entered)"),
        (
            "SELECT COUNT(*) FROM pupils WHERE gender = 'diverse'",
            "gender NOT IN ('female', 'male') is true of the rows that are gathered",
        ),
    ],
)
def test_advice_is_accepted_by_the_engine_too(text: str, advice: str) -> None:
    """Shows that advice followed to the letter is read, by the lift and by DuckDB, in the very query it is about."""
    reader = Reader(SCHOOL)
    assert advice in "\n".join(line for finding in findings(reader, text) for line in finding.instead).split("\n")
    for followed in followings(text, advice):
        reader.read(followed)
    reader.close()


def findings(reader: Reader, text: str) -> tuple[Finding, ...]:
    """What a text is refused for, or warned of."""
    try:
        plan = reader.read(text)
    except Refused as refused:
        return tuple(refused.findings)
    return plan_warnings(plan, bound(plan))


def followings(text: str, advice: str) -> list[str]:
    """The queries that an analyst makes of a query and the advice about it."""
    (read,) = re.findall(r"(FROM .*?)(?: WHERE .*| GROUP .*|)$", text)
    advice = advice.partition(" is ")[0].replace("<lowest>", "0").replace("<highest>", "100")
    if "SELECT " in advice:
        return [advice[advice.index("SELECT ") :]]
    if advice.startswith("write it with its table: "):
        names = advice.partition(": ")[2].split(" or ")
        return [re.sub(r"(?<![.\w])class_id", name, text).replace("SUM(", "COUNT(") for name in names]
    if " JOIN " in advice:
        return [f"SELECT COUNT(*) FROM {advice} WHERE size > 20"]
    if advice.startswith("GROUP BY "):
        return [f"SELECT COUNT(*) {read} {advice}"]
    if advice.startswith("SUM("):
        return [f"SELECT {advice} {read}"]
    return [f"SELECT COUNT(*) {read} WHERE ({advice}) IS NOT NULL"]


def test_advice_about_dates_without_a_comparison_is_accepted() -> None:
    """Shows that where nothing is compared both ways out of a date beside a number are forms that are answered."""
    reader = Reader(SCHOOL)
    (found,) = findings(reader, "SELECT COUNT(*) FROM pupils WHERE COALESCE(born, 0) IS NULL")
    assert found.instead == ("YEAR(born) is the number of a date's year", "DATE '2008-12-31' is a date")
    for line in found.instead:
        for followed in followings("SELECT COUNT(*) FROM pupils", line):
            reader.read(followed)
    reader.close()
