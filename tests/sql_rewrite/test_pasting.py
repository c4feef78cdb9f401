"""Every suggestion of SQL works when it is pasted where the refusal marks the text, whatever the text was."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from sql_rewrite.bound import bound
from sql_rewrite.hints import _HINTS
from sql_rewrite.lift import lift
from sql_rewrite.plan_warnings import plan_warnings
from tests.battery.questions import questions
from tests.battery.worlds import WORLDS
from tests.hostile.corpus import refused
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.pasting import offered, pasted
from tests.sql_rewrite.test_instead import FIRST_STEPS

NEWCOMERS = (
    ("hospital", "SELECT MIN(born) FROM people"),
    ("hospital", "SELECT MIN(day) FROM visits"),
    ("shop", "SELECT MIN(joined), MAX(joined) FROM customers"),
    (
        "shop",
        "SELECT COUNT(*) FROM orders o WHERE total > "
        "(SELECT AVG(total) FROM orders i WHERE i.customer_id = o.customer_id)",
    ),
    (
        "shop",
        "SELECT COUNT(*) FROM orders o WHERE total > (SELECT AVG(total) FROM orders i WHERE i.channel = o.channel)",
    ),
    ("shop", "SELECT COUNT(*) FROM items i JOIN regions r ON i.product_id = r.region_id"),
    ("shop", "SELECT COUNT(*) FROM orders o JOIN products p ON o.order_id = p.product_id"),
    ("shop", "SELECT COUNT(*) FROM customers c JOIN products p ON c.region_id = p.product_id"),
    ("hospital", "SELECT COUNT(*) FROM people p JOIN hospitals h ON p.education = h.region"),
    ("hospital", "SELECT COUNT(*) FROM visits v JOIN hospitals h ON v.ward = h.region"),
    ("shop", "SELECT AVG(n) FROM (SELECT order_id, COUNT(*) AS n FROM items GROUP BY order_id)"),
    ("shop", "SELECT AVG(n) FROM (SELECT order_id, AVG(total) AS n FROM orders GROUP BY order_id)"),
    ("shop", "SELECT COUNT(DISTINCT channel, status) FROM orders"),
    ("shop", "SELECT COUNT(DISTINCT channel, total) FROM orders"),
    ("hospital", "SELECT COUNT(*), age FROM people"),
    ("hospital", "SELECT sex, income, COUNT(*) FROM people GROUP BY sex"),
    ("hospital", "SELECT MAX(age) FROM people"),
    ("hospital", "SELECT person_id, COUNT(*) FROM visits GROUP BY person_id"),
    ("sensors", "SELECT AVG(moment) FROM readings"),
)
"""What newcomers asked, and were advised badly."""

_OF_ROWS = frozenset(
    (
        "week_of_year to_char date_format format_date formatdatetime dateadd add_months timestampadd date_part_diff "
        "to_days to_months to_years age months_between initcap reverse repeat space strptime try_strptime to_date "
        "to_timestamp str_to_date regexp_like rlike regexp glob levenshtein jaccard similar regexp_matches "
        "regexp_full_match regexp_extract regexp_replace charindex locate find indexof divide fdiv iff decode choose "
        "zeroifnull"
    ).split()
)
_READING = ("parse_error", "unknown_table", "unknown_column", "ambiguous_column")
"""Codes of what keeps a text from being read."""

_COLUMNS = ("age", "education", "born", "smoker", "income")


def _calls() -> Iterator[tuple[str, str]]:
    """Every function that advice knows, asked of a column of each type, alone and with another one."""
    for name in sorted(_HINTS):
        for column in _COLUMNS:
            for arguments in (column, f"{column}, hours"):
                call = f"{name}({arguments})"
                where = name in _OF_ROWS
                yield (
                    "hospital",
                    f"SELECT COUNT(*) FROM people WHERE {call} IS NULL" if where else f"SELECT {call} FROM people",
                )


def _suite() -> Iterator[tuple[str, str]]:
    """Every query that a test of this room holds as it stands, of the first dataset that has its tables and columns."""
    seen: set[str] = set()
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if text in seen or not text.startswith(("SELECT ", "WITH ")) or "{" in text or "AS t (m)" in text:
                continue
            seen.add(text)
            for world in ("hospital", "clinic", "shop", "sensors"):
                codes = {one.code for one in findings(text, dataset_of(world))}
                if codes.isdisjoint(("unknown_table", "unknown_column")):
                    yield world, text
                    break


SOURCES = {
    "suite": _suite,
    "newcomers": lambda: NEWCOMERS,
    "first steps": lambda: (("hospital", text) for text in FIRST_STEPS),
    "calls": _calls,
    "hostile": lambda: (("hospital", entry.text) for entry in refused()),
    "battery": lambda: ((world, question.text) for world in WORLDS for question in questions(world)),
}


def dataset_of(world: str) -> Dataset:
    """The dataset that a text is about."""
    return CLINIC if world == "hospital" else WORLDS[world]


def findings(text: str, dataset: Dataset) -> Sequence[Finding]:
    """What a text is refused for, or warned of."""
    try:
        plan = lift(text, dataset)
        return plan_warnings(plan, bound(plan))
    except Refused as refusal:
        return refusal.findings


def works(text: str, dataset: Dataset, finding: Finding, found: Sequence[Finding]) -> bool:
    """Whether a text is accepted, or refused for nothing but what the text before it was refused for besides."""
    try:
        bound(lift(text, dataset))
    except Refused as refusal:
        left = {(one.code, one.what) for one in refusal.findings}
        if (finding.code, finding.what) in left:
            return False
        if finding.code in _READING:  # what a text is refused for once it can be read is its own
            return True
        others = {(one.code, one.what) for one in found if one is not finding}
        return all(one in others or one[0] == finding.code == "column_without_bounds" for one in left)
    return True


def failures(texts: Iterator[tuple[str, str]]) -> tuple[int, list[tuple[str, str, str]]]:
    """How many suggestions there are in the refusals of some texts, and those that are refused in their turn."""
    number, wrong = 0, []
    for world, text in texts:
        dataset = dataset_of(world)
        found = findings(text, dataset)
        for finding in found:
            for line in finding.instead:
                for candidates in pasted(text, finding, line):
                    number += 1
                    if not any(works(candidate, dataset, finding, found) for candidate in candidates):
                        wrong.append((line, text[:120], candidates[0][:120] if candidates else ""))
    return number, wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "least"),
    [("suite", 100), ("newcomers", 10), ("first steps", 15), ("calls", 400), ("hostile", 150), ("battery", 10)],
)
def test_every_suggestion_works_when_pasted(source: str, least: int) -> None:
    """Shows it for each suggestion in each refusal and warning; lines that nobody knows as words are taken for SQL."""
    number, wrong = failures(iter(SOURCES[source]()))
    assert not wrong
    assert number >= least


def test_a_bad_suggestion_is_found() -> None:
    """Shows that the test above can fail: a form with letters, an answer that is refused, words that nobody knows."""
    text = "SELECT LISTAGG(age) FROM people"
    (finding,) = findings(text, CLINIC)
    for line in ("STDDEV(x)", "SUM(income)", "SELECT age FROM people", "consider something else", "GROUP BY person_id"):
        assert offered(line), line
        ((*candidates,),) = pasted(text, finding, line)
        assert not any(works(candidate, CLINIC, finding, [finding]) for candidate in candidates), line


def test_operands_stand_in_advice_as_they_were_written() -> None:
    """Shows that forms are filled with operands of the right type, and say what their letters are elsewhere."""
    for text, line in (
        ("SELECT COUNT(*) FROM people WHERE to_char(born, 'x') = '1'", "STRFTIME(born, '%Y-%m-%d')"),
        (
            "SELECT COUNT(*) FROM people WHERE to_char(age, 'x') = '1'",
            "for a date d: STRFTIME(d, '%Y-%m-%d')",
        ),
        ("SELECT COUNT(*) FROM people WHERE ABS(age) ^ 2 > 1", "POWER(ABS(age), 2)"),
        ("SELECT std_dev(income) FROM people",
         "STDDEV(GREATEST(<lowest>, LEAST(income, <highest>))) or "
         "STDDEV_POP(GREATEST(<lowest>, LEAST(income, <highest>)))"),
        ("SELECT AVG(smoker) FROM people", "COUNT(*) FILTER (WHERE smoker) counts"),
    ):  # fmt: skip
        assert line in [one for finding in findings(text, CLINIC) for one in finding.instead], text


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ("l_orderkey, o_orderdate, o_shippriority", "o_shippriority"),
        ("ALL", "o_shippriority, o_orderpriority"),
        ("o_custkey", ""),
    ],
)
def test_groups_of_one_person_are_advised_with_what_many_share(keys: str, found: str) -> None:
    """Shows the same numbers by the keys that everybody knows, in no order, and that they are answered."""
    shown = "o_orderkey, o_shippriority, o_orderpriority, " if keys == "ALL" else ""
    rows = "FROM orders, lineitem WHERE l_orderkey = o_orderkey AND (o_totalprice > 5)"
    text = f"SELECT {shown}SUM(l_quantity) AS q {rows} GROUP BY {keys} ORDER BY q DESC LIMIT 3"
    (finding,) = findings(text, WORLDS["tpch"])
    (query,) = [offered(line) for line in finding.instead if line.startswith("by what many people share")]
    listed = f"{found}, " if found else ""
    grouped = f" GROUP BY {found}" if found else ""
    assert query == f"SELECT {listed}SUM(l_quantity) AS q {rows}{grouped}"
    assert bound(lift(query, WORLDS["tpch"]))
