"""Traces: how a column of the shell depends on released numbers, and never a stronger claim than holds."""

from __future__ import annotations

import pytest
from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.lift import lift
from sql_rewrite.plan import Plan
from sql_rewrite.shell import ShellNodes
from sql_rewrite.text import Text
from sql_rewrite.trace import FOLLOWED, Shape, Trace, Tracer
from tests.sql_rewrite.datasets import CLINIC

INNER = "(SELECT sex, smoker, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a FROM people GROUP BY sex, smoker)"


def plan(expression: str, rest: str = "") -> Plan:
    return lift(f"SELECT {expression} AS x FROM {INNER} {rest}", CLINIC)


@pytest.mark.parametrize(
    ("expression", "shape", "rises"),
    [
        ("n", Shape.AFFINE, 1),
        ("n * 2.0", Shape.AFFINE, 1),
        ("-n / 3", Shape.AFFINE, -1),
        ("2 - n", Shape.AFFINE, -1),
        ("n + s", Shape.AFFINE, 1),
        ("n - s", Shape.AFFINE, None),
        ("n * LENGTH(sex)", Shape.AFFINE, None),
        ("n * (2 - 3)", Shape.AFFINE, None),
        ("n * 0", Shape.AFFINE, None),
        ("CAST(n AS DOUBLE)", Shape.AFFINE, 1),
        ("CASE WHEN smoker THEN n ELSE s END", Shape.AFFINE, 1),
        ("COALESCE(a, 0)", Shape.AFFINE, 1),
        ("s / n", Shape.RATIO, None),
        ("s / n + 1", Shape.RATIO, None),
        ("s / n - n / s", Shape.SMOOTH, None),
        ("s * n", Shape.SMOOTH, None),
        ("SQRT(s)", Shape.SMOOTH, 1),
        ("-LN(n)", Shape.SMOOTH, -1),
        ("ROUND(n / 7, 1)", Shape.ROUGH, 1),
        ("CAST(n AS INTEGER)", Shape.ROUGH, 1),
        ("n // 10", Shape.ROUGH, 1),
        ("CASE WHEN n > 10 THEN 1 ELSE 0 END", Shape.ROUGH, None),
        ("n * n", Shape.FOLDED, None),
        ("n % 10", Shape.FOLDED, None),
        ("POWER(n, 2)", Shape.FOLDED, None),
        ("ABS(n)", Shape.FOLDED, None),
        ("GREATEST(n, s)", Shape.FOLDED, 1),
        ("LEAST(n, -s)", Shape.FOLDED, None),
        ("SUM(n)", Shape.AFFINE, 1),
        ("AVG(n) / 2", Shape.AFFINE, 1),
        ("SUM(n) OVER (PARTITION BY sex ORDER BY smoker)", Shape.AFFINE, 1),
        ("LAG(n) OVER (ORDER BY sex, smoker)", Shape.AFFINE, 1),
        ("n - SUM(n) OVER ()", Shape.AFFINE, None),
        ("MAX(n)", Shape.FOLDED, 1),
        ("MAX(-n)", Shape.FOLDED, -1),
        ("MEDIAN(n)", Shape.FOLDED, 1),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n)", Shape.FOLDED, 1),
        ("PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY n DESC)", Shape.FOLDED, 1),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY -n)", Shape.FOLDED, -1),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY LENGTH(sex))", Shape.CONSTANT, 0),
        ("LOG(n)", Shape.ROUGH, None),
        ("n > s", Shape.ROUGH, None),
        ("SUM(SQRT(n))", Shape.FOLDED, 1),
        ("SUM(n * n)", Shape.FOLDED, None),
        ("STDDEV(n)", Shape.FOLDED, None),
        ("COUNT(DISTINCT n)", Shape.FOLDED, None),
        ("COUNT(*)", Shape.CONSTANT, 0),
        ("MAX(sex)", Shape.CONSTANT, 0),
        ("RANK() OVER (ORDER BY sex)", Shape.CONSTANT, 0),
        ("RANK() OVER (PARTITION BY sex ORDER BY n DESC)", Shape.RANK, None),
        ("RANK() OVER (ORDER BY n) + n", Shape.FOLDED, None),
        ("DENSE_RANK() OVER (ORDER BY n)", Shape.FOLDED, None),
        ("RANK() OVER (ORDER BY n - s)", Shape.FOLDED, None),
        ("FIRST_VALUE(n) OVER (ORDER BY n)", Shape.FOLDED, None),
        ("n - (SELECT AVG(n) FROM " + INNER + ")", Shape.AFFINE, None),
    ],
)
def test_no_dependence_is_claimed_that_does_not_hold(expression: str, shape: Shape, rises: int | None) -> None:
    """Shape and direction of expressions; what is not understood has the weakest claim."""
    (output,) = plan(expression).shell.outputs
    assert (shape, rises) == (output.trace.shape, output.trace.rises)


def test_a_percentile_within_a_group_reads_all_rows() -> None:
    """It reads the number in every row of the core, not in its own: hidden groups take its interval away."""
    (output,) = plan("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n)").shell.outputs
    (read,) = output.trace.reads
    assert read[2] is None
    assert read[0] in output.trace.across


def test_a_function_that_nobody_followed_has_the_weakest_claim() -> None:
    """A node that is not named here gets no interval, and may not stand in the shell."""
    known = Trace(frozenset([("c0", "a0", 0)]), shape=Shape.AFFINE, rises=1)
    tracer = Tracer(lambda column: known, lambda query: known, rows=frozenset(["c0"]), chosen=False)
    assert exp.Sin not in FOLLOWED
    found = tracer.trace(exp.Sin(this=exp.column("a0")))
    assert (found.shape, found.rises) == (Shape.FOLDED, None)
    assert not ShellNodes(Text(""), {}).allows(exp.Sin(this=exp.column("a0")))
    with pytest.raises(Refused):
        plan("SIN(n)")


@pytest.mark.parametrize(
    ("expression", "extreme"),
    [
        ("MAX(n)", "max"),
        ("MIN(n)", "min"),
        ("MAX(-n)", "min"),
        ("-MAX(n)", "max"),
        ("ROUND(2 * MAX(n) + 1)", "max"),
        ("MAX(n) + MIN(n)", None),
        ("MAX(n + s)", None),
        ("MAX(GREATEST(n, s))", None),
        ("SUM(n)", None),
    ],
)
def test_an_extreme_is_that_of_one_number_in_each_row(expression: str, extreme: str | None) -> None:
    """Only then may one of its ends do without room for the other rows."""
    (output,) = plan(expression).shell.outputs
    assert extreme == output.trace.extreme


@pytest.mark.parametrize(
    ("sql", "chosen"),
    [
        (f"SELECT n FROM {INNER}", False),
        (f"SELECT n FROM {INNER} WHERE smoker ORDER BY n", False),
        (f"SELECT n FROM {INNER} ORDER BY sex LIMIT 2", False),
        (f"SELECT n FROM {INNER} LIMIT 2", False),
        (f"SELECT n FROM {INNER} WHERE n > 2", True),
        (f"SELECT n FROM {INNER} ORDER BY n LIMIT 2", True),
        (f"SELECT n AS m FROM {INNER} ORDER BY m LIMIT 2", True),
        (f"SELECT n FROM {INNER} ORDER BY n LIMIT 3", True),
        (f"SELECT n FROM {INNER} ORDER BY n LIMIT 4", False),
        (f"SELECT n FROM {INNER} ORDER BY n LIMIT 4 OFFSET 0", False),
        (f"SELECT n FROM {INNER} ORDER BY n LIMIT 4 OFFSET 1", True),
        (f"SELECT n FROM {INNER} ORDER BY n OFFSET 0", False),
        (f"SELECT n FROM (SELECT * FROM {INNER} ORDER BY n LIMIT 4) ORDER BY n LIMIT 4", False),
        (f"SELECT n FROM (SELECT * FROM {INNER} ORDER BY n LIMIT 3) ORDER BY n LIMIT 4", True),
        (f"SELECT t.n FROM {INNER} t LEFT JOIN {INNER} u ON t.sex = u.sex ORDER BY u.n LIMIT 24", True),
        (f"SELECT t.n FROM {INNER} t LEFT JOIN {INNER} u ON t.sex = u.sex ORDER BY u.n LIMIT 25", False),
        (f"SELECT n FROM {INNER} UNION ALL SELECT n FROM {INNER} ORDER BY n LIMIT 7", True),
        (f"SELECT n FROM {INNER} UNION ALL SELECT n FROM {INNER} ORDER BY n LIMIT 8", False),
        (f"SELECT sex, n FROM {INNER} ORDER BY 1 LIMIT 2", False),
        (f"SELECT sex, n FROM {INNER} ORDER BY 2 LIMIT 2", True),
        (f"SELECT * FROM (SELECT n FROM {INNER} ORDER BY n) LIMIT 2", True),
        (f"SELECT n FROM {INNER} QUALIFY ROW_NUMBER() OVER (ORDER BY n) < 3", True),
        (f"SELECT n FROM {INNER} QUALIFY ROW_NUMBER() OVER (ORDER BY sex, smoker) < 3", False),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 3", True),
        (f"SELECT sex, SUM(n) FROM {INNER} GROUP BY sex HAVING SUM(n) > 3", True),
        (f"SELECT n FROM {INNER} WHERE EXISTS (SELECT 1 FROM {INNER} u WHERE u.n > 9)", True),
        (f"SELECT n FROM {INNER} UNION ALL SELECT n FROM {INNER} ORDER BY n LIMIT 2", True),
        (f"SELECT t.n FROM {INNER} t JOIN {INNER} u ON t.n = u.n", True),
        (f"SELECT t.n FROM {INNER} t JOIN {INNER} u ON t.sex = u.sex", False),
    ],
)
def test_rows_that_noise_chose_are_known(sql: str, chosen: bool) -> None:
    """Conditions on noisy numbers, and limits in their order, in the block itself or below it."""
    assert chosen is lift(sql, CLINIC).shell.chosen


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT SUM(n) FROM (SELECT n FROM {INNER} WHERE n > 2)",
        f"SELECT SUM(n) FROM (SELECT n FROM {INNER} ORDER BY n LIMIT 2)",
        f"SELECT COUNT(*) FROM {INNER} WHERE n > 2",
        f"SELECT SUM(n) OVER () FROM {INNER} WHERE n > 2",
        f"SELECT SUM(n) FILTER (WHERE n > 2) FROM {INNER}",
        f"SELECT (SELECT COUNT(*) FROM {INNER} WHERE n > 2) AS x",
        f"SELECT n - (SELECT MAX(u.n) FROM {INNER} u WHERE u.sex = t.sex) FROM {INNER} t",
    ],
)
def test_numbers_made_of_rows_that_noise_chose_are_known(sql: str) -> None:
    """The trace of the column itself says so; a correlated query, which is not followed, says so too."""
    assert lift(sql, CLINIC).shell.outputs[0].trace.chosen
