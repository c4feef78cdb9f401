"""Queries that failed, or not, depending on one person's row: an exact answer for the smallest price."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from privacy.policy import Dataset
from privacy.refusal import Refused
from server.journey.moments import moments_of
from server.services import Services
from sql_rewrite.bound import bound
from sql_rewrite.cost import work_of
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from tests.journey.clinic import question


def clinic(services: Services) -> Dataset:
    """The attached dataset."""
    dataset = services.catalogue.get("clinic")
    assert dataset is not None
    return dataset


@pytest.mark.parametrize("bound_text", ["1e-315", "1e-320", "5e-324"])
@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "VARIANCE"])
def test_bounds_below_normal_doubles_do_not_raise_for_the_rows_that_are_there(
    services: Services, attacker: Callable[..., str], aggregate: str, bound_text: str
) -> None:
    """A step that read as zero made 0 / 0, whose cast raised: the query failed exactly when the person existed."""
    name = attacker()
    for person in (5, -5):
        asked = question(
            f"SELECT {aggregate}(GREATEST(0e0, LEAST(salary, {bound_text}))) AS s FROM people "
            f"WHERE person_id = {person}",
            name,
            epsilon="1",
        )
        answer = json.loads(services.journey.complete(services.journey.admit(asked)))
        assert answer["status"] == "settled"


@pytest.mark.parametrize("bound_text", ["1e-300", "1e-315", "5e-324"])
def test_the_step_of_an_encoding_is_a_normal_double(services: Services, bound_text: str) -> None:
    """Dividing by the step as a double must be the division that was proved."""
    plan = lift(f"SELECT SUM(GREATEST(0e0, LEAST(salary, {bound_text}))) AS s FROM people", clinic(services))
    (core,) = bound(plan)
    encoding = core.described.statistics[0].encoding
    assert encoding is not None
    assert 0 < float(encoding.step)
    assert 1 / float(encoding.step) < float("inf")
    assert encoding.step == type(encoding.step)(float(encoding.step))


def test_constants_cannot_be_joined_to_a_large_value(services: Services) -> None:
    """Nested CONCAT of one parameter made megabytes for chosen rows: the answer's size told how many there were."""
    joined = "concat( " + " , ".join(["$p"] * 16) + " )"
    twice = "concat( " + " , ".join([joined] * 16) + " )"
    for sql in (
        f"SELECT COUNT(*) FROM people WHERE {twice} LIKE '%z'",
        f"SELECT concat( town , {twice} ) AS k, COUNT(*) AS n FROM people GROUP BY 1",
        f"SELECT COUNT(*) FROM people WHERE upper( {twice} ) = 'x'",
    ):
        with pytest.raises(Refused) as refused:
            lift(sql, clinic(services), {"p": "a" * 1000})
        assert refused.value.findings[0].code == "too_large"
    cut = "concat( " + " , ".join(["left(town, 1000)"] * 5) + " )"
    with pytest.raises(Refused):
        lift(f"SELECT COUNT(*) FROM people WHERE {cut} = 'x'", clinic(services))
    assert lift("SELECT COUNT(*) FROM people WHERE concat(town, '-', $p) = 'x'", clinic(services), {"p": "a" * 1000})


def test_a_hidden_text_key_travels_in_a_bounded_length(services: Services) -> None:
    """All groups that occur leave the engine: their texts are cut there, and the answer has no limit to meet."""
    plan = lift(
        "SELECT concat(town, $p) AS k, concat(town, sex) AS j, COUNT(*) AS n FROM people GROUP BY 1, 2",
        clinic(services),
        {"p": "a" * 1000},
    )
    sql = lower(bound(plan)[0]).sql
    assert sql.count("left(CAST(") == 2
    assert sql.count("AS VARCHAR), 128)") == 2
    public = lower(bound(lift("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", clinic(services)))[0]).sql
    assert "left(" not in public


def test_many_long_keys_do_not_fail(services: Services, attacker: Callable[..., str]) -> None:
    """Three thousand groups with kilobytes of key text each are answered like one."""
    asked = question(
        "SELECT concat(CAST(person_id % 2999 AS VARCHAR), $p, town, town, town) AS k, COUNT(*) AS n FROM people "
        "GROUP BY 1",
        attacker(),
        parameters={"p": "\U0001f600" * 1000},
    )
    assert json.loads(services.journey.complete(services.journey.admit(asked)))["rows"] == []


@pytest.mark.slow
def test_one_row_is_not_worth_watching(services: Services) -> None:
    """Patterns over long constants, read for one person's row only, took half a second: the time told the row."""
    matches = " OR ".join(f"concat(town, $p, $p, $p) LIKE '%{'_a' * 45}{i}%{'_a' * 45}b%'" for i in range(40))
    chosen = f"CASE WHEN person_id = 5 THEN ({matches}) ELSE FALSE END"
    spread = ", ".join(
        f"COUNT(*) FILTER (WHERE CASE WHEN person_id = 5 THEN concat(town, $p) LIKE '%{'_a' * 20}{i}%b' END) AS n{i}"
        for i in range(30)
    )
    for sql in (f"SELECT COUNT(*) FROM people WHERE {chosen}", f"SELECT {spread} FROM people"):
        # Refused, or what it takes is what its tick hides.
        try:
            work = work_of(bound(lift(sql, clinic(services), {"p": "a" * 1000})))
        except Refused as refused:
            assert refused.findings[0].code == "too_large"
            continue
        moments = moments_of(unit_seconds=work.unit_nanoseconds / 1e9, expected_seconds=0, tick_seconds=0.01)
        assert moments.tick > 0.05
    plain = "SELECT COUNT(*) FROM people WHERE concat(town, ' ', sex) LIKE '%a%' AND upper(town) IN ('A', 'B')"
    assert bound(lift(plain, clinic(services)))
