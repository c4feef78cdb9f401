"""A person behind two outer joins: missing in some of a unit's rows, and what that does to the groups of one unit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from privacy.bounds import ContributionBound
from privacy.policy import Column, ColumnType, Reference, Table
from sql_rewrite import contribution
from sql_rewrite.plan import Source
from tests.audit.generate import Scene
from tests.audit.smallest import audited, scene
from tests.audit.violation import Violation

ON = "tests AS t LEFT JOIN visits AS v ON t.visit_id = v.visit_id AND v.x > 5"
GROUPED = f"SELECT p.k, COUNT(*) FROM {ON} LEFT JOIN people AS p ON v.person_id = p.person_id GROUP BY p.k"
WITHIN = (
    "SELECT COUNT(*) FROM (SELECT w.person_id, p.k FROM tests AS t JOIN visits AS w ON t.visit_id = w.visit_id "
    "LEFT JOIN visits AS v ON t.visit_id = v.visit_id AND v.x > 5 LEFT JOIN people AS p ON v.person_id = p.person_id "
    "GROUP BY w.person_id, p.k) AS u"
)


def world() -> Scene:
    """Two people with two visits each, one of which is left out by the condition, and three tests at each visit."""
    visits = [{"person_id": person, "x": x} for person in (0, 1) for x in (3, 8)]
    made = scene([{"k": "a"}, {"k": "b"}], visits, contribution=ContributionBound(6, 6, 6))
    whole = ColumnType.INTEGER
    tests = Table(
        "tests",
        (Column("test_id", whole, nullable=False), Column("visit_id", whole, nullable=False)),
        protected=True,
        key="test_id",
        references=(Reference("visit_id", "visits", "visit_id"),),
        unit_path=(Reference("visit_id", "visits", "visit_id"),),
        contribution=ContributionBound(6, 6, 6),
    )
    rows = {**made.rows, "tests": [{"test_id": i, "visit_id": i // 3} for i in range(12)]}
    return replace(made, dataset=replace(made.dataset, tables=(*made.dataset.tables, tests)), rows=rows)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(
    "sql",
    [
        GROUPED,
        WITHIN,
        f"SELECT COUNT(DISTINCT p.person_id) FROM {ON} LEFT JOIN people AS p ON v.person_id = p.person_id",
    ],
)
@pytest.mark.parametrize("gaussian", [False, True])
def test_one_unit_stays_within_its_bound(sql: str, gaussian: bool) -> None:
    """Shows the sums of a neighbour without one person, who is in a group of her own and in that of NULL."""
    assert audited(world(), sql, 0, gaussian=gaussian).triples == 1


def test_a_person_taken_to_be_the_same_in_all_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants the rule that was here before: whoever has one row is the same in all rows, whatever joins it."""

    def every(sources: Sequence[Source]) -> Collection[str]:
        return {source.relation for source in sources if source.table.one_row}

    monkeypatch.setattr(contribution, "steady_relations", every)
    with pytest.raises(Violation):
        audited(world(), GROUPED, 0)
