"""The battery's texts with words left out, doubled, swapped and taken from one another: refused or planned.

Every kind of question that is answered is in the battery, so its mutations reach what reads it. A fault of ours reveals
nothing, because it follows from the text alone; but it costs the caller the explanation.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.cost import check_work
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.memory import check_memory
from tests.battery.questions import questions
from tests.battery.worlds import WORLDS

MUTATIONS = 30_000
"""Of each seed: half a minute of a usual machine, and the seeds together two minutes."""
SEEDS = range(4)
AT_NIGHT = 300_000

FAULTS = (
    (
        "clinic",
        "SELECT COUNT(*) FROM (SELECT patient_id, QUANTILE_DISC( , 0.5) AS m FROM visits GROUP BY patient_id) t",
    ),
    (
        "shop",
        "SELECT (*) FROM orders * WHERE EXISTS (SELECT   FROM items i WHERE i.order_id = o.order_id AND i.returned)",
    ),
    ("clinic", "PIVOT (SELECT region, sex FROM patients) ON USING COUNT(*)"),
    ("clinic", "PIVOT (SELECT region, sex FROM patients) sex USING COUNT(*)"),
    ("people", "SELECT DISTINCT FROM people"),
    ("sensors", "SELECT COUNT(*) FROM (SELECT home, kind, MAX( AS peak FROM readings GROUP BY home, kind) t"),
    ("shop", "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP () FROM customers"),
    ("shop", "SELECT MODE() WITHIN GROUP () FROM customers"),
    ("shop", "SELECT QUANTILE_CONT(age, NULL) FROM customers"),
    ("shop", "SELECT PERCENTILE_CONT(NULL) WITHIN GROUP (ORDER BY age) FROM customers"),
    ("shop", "SELECT QUANTILE_CONT(age, [0.5, CAST(NULL AS BIGINT)]) AS q FROM customers"),
    ("tpch", "SELECT * - lineitem FETCH FIRST 5 ROWS ONLY"),
    (
        "sensors",
        "SELECT COUNT(*) FROM readings r JOIN (SELECT SUM(value) AS mean FROM readings GROUP BY ) m ON m.kind = r.kind "
        "WHERE r.value > m.mean",
    ),
    (
        "shop",
        "SELECT i.least, COUNT(*) FROM customers c, range(2020, 90, 10) AS i(least) WHERE c.age >= i.least GROUP BY 1",
    ),
    (
        "clinic",
        "SELECT region, patients / hospitals AS per_hospital FROM (SELECT hospital_id, COUNT(*) AS hospitals "
        "FROM hospitals GROUP BY region) h JOIN (SELECT region, COUNT(*) AS patients FROM patients GROUP BY region) p "
        "USING (region)",
    ),
    (
        "clinic",
        "SELECT COUNT(*) FROM visits v JOIN patients p ON h.patient_id = p.patient_id "
        "JOIN hospitals h ON h.hospital_id = v.hospital_id",
    ),
)
"""Texts that gave an error of ours in place of a refusal."""

_PIECE = re.compile(r"\s+|'[^']*'|\"[^\"]*\"|\w+|.", re.DOTALL)
_WORDS = (
    "DISTINCT NOT NULL ALL ON USING AS IN EXISTS OVER PARTITION BY ORDER FILTER WHERE GROUP HAVING QUALIFY UNION "
    "EXCEPT INTERSECT JOIN LEFT FULL SEMI ANTI VALUES UNNEST CASE END BETWEEN INTERVAL ( ) , . * - / = < > :: [ ] "
    "0 -1 1e999 ''"
).split(" ")


def mutations(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Worlds and texts of them."""
    drawn = random.Random(seed)
    texts = {world: [_PIECE.findall(question.text) for question in questions(world)] for world in WORLDS}
    for _ in range(count):
        world = drawn.choice(list(WORLDS))
        pieces = list(drawn.choice(texts[world]))
        for _ in range(drawn.choice((1, 1, 1, 2, 3))):
            place = drawn.randrange(len(pieces) + 1)
            match drawn.randrange(6):
                case 0:
                    del pieces[place : place + drawn.choice((1, 2, 5))]
                case 1:
                    pieces[place:place] = [" ", drawn.choice(_WORDS), " "]
                case 2:
                    pieces[place:place] = pieces[place : place + drawn.choice((1, 3, 7))]
                case 3 if place < len(pieces):
                    other = drawn.randrange(len(pieces))
                    pieces[place], pieces[other] = pieces[other], pieces[place]
                case _:
                    source = drawn.choice(texts[world])
                    begin, size = drawn.randrange(len(source)), drawn.choice((1, 1, 3, 5, 9))
                    pieces[place : place + size] = source[begin : begin + size]
        yield world, "".join(pieces)


def _planned(world: str, text: str) -> bool:
    try:
        cores = bound(lift(text, WORLDS[world]))
        for core in cores:
            lower(core)
        check_work(cores)
        check_memory(cores)
    except Refused:
        return False
    return True


@pytest.mark.parametrize(("world", "text"), FAULTS)
def test_what_was_a_fault_is_refused(world: str, text: str) -> None:
    """Shows a refusal."""
    assert not _planned(world, text)


def _all_planned_or_refused(seed: int, count: int) -> int:
    planned = 0
    for world, text in mutations(seed, count):
        try:
            planned += _planned(world, text)
        except Exception as error:
            raise AssertionError(f"{world}: {text}") from error
    return planned


@pytest.mark.timeout(900)
@pytest.mark.slow
@pytest.mark.parametrize("seed", [*SEEDS[:2], *(pytest.param(seed, marks=pytest.mark.nightly) for seed in SEEDS[2:])])
def test_mutated_questions_are_refused_or_planned(seed: int) -> None:
    """Shows that no text gives another exception."""
    assert _all_planned_or_refused(seed, MUTATIONS) > MUTATIONS // 50


def test_some_mutated_questions_are_refused_or_planned() -> None:
    """Shows the same of a few texts in every check."""
    assert _all_planned_or_refused(len(SEEDS), MUTATIONS // 50) > MUTATIONS // 50 // 50


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_very_many_mutated_questions_are_refused_or_planned() -> None:
    """Shows the same of other texts every night."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    assert _all_planned_or_refused(seed, AT_NIGHT) > AT_NIGHT // 50
