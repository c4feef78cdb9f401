"""What a refusal says to write instead is accepted: every piece of SQL in it is run through lift and bound."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.hints import _HINTS
from sql_rewrite.lift import lift
from tests.hostile.corpus import refused
from tests.sql_rewrite.datasets import CLINIC

FIRST_STEPS = (
    "SELECT MEDIAN(age) FROM people",
    "SELECT MAX(salary) FROM people",
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
    "SELECT COUNT(*) FROM people WHERE age ^ 2 > 4",
    "SELECT COUNT(*) FROM hospitals",
    *(f"SELECT {name}(age) FROM people" for name in sorted(_HINTS)),
)

PLACEHOLDERS = {
    "x": ("age", "education", "born", "smoker"),
    "y": ("hours", "education"),
    "a": ("age", "born", "smoker"),
    "b": ("hours", "born", "smoker"),
    "c": ("age", "smoker"),
    "p": ("smoker",),
    "d": ("born",),
    "unit": ("person_id",),
    "lowest": ("0",),
    "highest": ("100",),
}
"""Columns of the table of people that a form of SQL may stand for."""

FORM = re.compile(r"(?:[A-Z][A-Z_]+|date_trunc|date_diff)\(.*|CASE .*|DATE '.*|[xy] .*'.*|x // y.*|a < b.*")
WORDS = (" is ", " counts", ", with ", " for whole ", " where ", ": ", " and hours")


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


def statements(line: str) -> list[list[str]]:
    """The SQL of a line of advice: of each piece the statements of which one must be accepted."""
    if "SELECT " in line and "SELECT ..." not in line:
        return [[line[line.index("SELECT ") :]]] if re.search(r"SELECT .* FROM ", line) else []
    if re.match(r"\w+ JOIN \w+ ON ", line) and not line.startswith("a JOIN"):
        return [[f"SELECT COUNT(*) FROM {line}"]]
    if line.startswith("GROUP BY "):
        return [[f"SELECT COUNT(*) FROM people {line}"]]
    if not FORM.match(line):
        return []
    for word in WORDS:
        line = line.partition(word)[0]
    pieces = _apart(line.replace("<lowest>", "lowest").replace("<highest>", "highest"))
    return [list(_filled(piece)) for piece in pieces]


def _apart(line: str) -> list[str]:
    """The pieces of a line between commas and "or" that stand in no bracket."""
    pieces, depth, begun = [], 0, 0
    for place, sign in enumerate(line):
        depth += (sign == "(") - (sign == ")")
        parting = next((word for word in (", ", " or ") if depth == 0 and line.startswith(word, place)), None)
        if parting is not None:
            pieces.append(line[begun:place])
            begun = place + len(parting)
    return [piece for piece in (*pieces, line[begun:]) if piece]


def _filled(piece: str) -> Iterator[str]:
    names = sorted({name for name in re.findall(r"\b[a-z]+\b", re.sub(r"'[^']*'", "", piece)) if name in PLACEHOLDERS})
    for choice in itertools.product(*(PLACEHOLDERS[name] for name in names)):
        filled = piece
        for name, column in zip(names, choice, strict=True):
            filled = re.sub(rf"(?<!')\b{name}\b(?!')", column, filled)
        yield f"SELECT {filled} FROM people"
        yield f"SELECT COUNT(*) FROM people WHERE {filled}"
        yield f"SELECT COUNT(*) FROM people WHERE ({filled}) IS NULL"
        yield f"SELECT {filled} FROM visits"


def accepted(sql: str) -> bool:
    """Whether a text gets as far as noise."""
    try:
        bound(lift(sql, CLINIC))
    except Refused:
        return False
    return True


def test_no_advice_is_refused_in_its_turn() -> None:
    """Shows that all SQL in advice is accepted: queries as they stand, forms with columns in place of their letters."""
    wrong, run = [], 0
    for line, text in suggestions():
        for candidates in statements(line):
            run += 1
            if not any(map(accepted, candidates)):
                wrong.append((line, candidates[:1], text[:80]))
    assert not wrong
    assert run > 60


def test_no_advice_holds_half_a_query() -> None:
    """Shows that a query in advice is whole: three dots stand for what nobody can run."""
    halves = [line for line, _ in suggestions() if re.search(r"SELECT .*\.\.\.", line) or "FROM ..." in line]
    assert set(halves) <= {
        "name an intermediate result with WITH name AS (SELECT ...)",
        "put intermediate results into WITH name AS (SELECT ...)",
        "(SELECT ...)",
    }


@pytest.mark.parametrize("line", ["SELECT MEDIAN(age) FROM people", "SUM(<lowest>, x)", "GROUP BY person_id"])
def test_bad_advice_would_be_found(line: str) -> None:
    """Shows that advice which is refused, or is no SQL, fails the test above."""
    (candidates,) = statements(line)
    assert not any(map(accepted, candidates))
