"""Five thousand random trees of relations of people's rows: every answer at a huge epsilon is DuckDB's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite import correlated, unit_facts, unit_groups
from sql_rewrite.lift import lift
from tests.audit.promises import check_promises
from tests.audit.violation import Violation
from tests.generated_relations import SMALL, make_question, small_rows, write_small
from tests.plain_clinic import Clinic, open_plain
from tests.thinned import thinned

TREES = 1_000
"""The trees of one run; five runs are made."""

REFUSED_MOST = 0.1
"""The share of trees that may be refused: what is refused compares nothing."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clinic]:
    """The small clinic and its engines."""
    with open_plain(tmp_path_factory.mktemp("small"), SMALL, write_small) as opened:
        yield opened


def difference(world: Clinic, text: str) -> str:
    """The first difference between the answer and DuckDB's; empty where there is none. Errors: Refused.

    Public groups without rows are shown with zeros, which DuckDB leaves out; a sum of nothing is 0 here.
    """
    # Of PIVOT, whose GROUP BY stands within brackets, there is one row, which DuckDB leaves out where nobody is.
    grouped = " GROUP BY " in text.rpartition(")")[2]
    found, plain = (
        _by_key(rows, grouped=grouped) for rows in (world.answer(text, {}, gaussian=True), world.directly(text, {}))
    )
    if plain.keys() - found.keys():
        return f"no group {sorted(map(str, plain.keys() - found.keys()))}"
    for key, ours in found.items():
        theirs = plain.get(key, [0] * len(ours))
        if any(abs((one or 0) - (other or 0)) > 0.01 for one, other in zip(ours, theirs, strict=True)):
            return f"{key}: {ours}, DuckDB has {theirs}"
    return ""


def _by_key(rows: Sequence[Sequence[Any]], *, grouped: bool) -> dict[Any, Sequence[Any]]:
    if grouped:
        return {row[0]: row[1:] for row in rows}
    return {None: rows[0]} if rows else {}


@pytest.mark.slow
@pytest.mark.parametrize("run", range(5))
@pytest.mark.sparse(5)
@pytest.mark.timeout(600)
def test_every_tree_means_what_it_says(small: Clinic, run: int) -> None:
    """Shows that scan, filter, projection, joins, groups, windows, pivots, semi-joins mean what they do in DuckDB."""
    refused: Counter[str] = Counter()
    for seed in range(run * TREES, (run + 1) * TREES):
        text = make_question(seed)
        try:
            differs = difference(small, text)
        except Refused as refusal:
            refused[refusal.findings[0].what] += 1
            continue
        assert not differs, f"seed {seed}: {differs}\n{text}"
    assert sum(refused.values()) <= TREES * REFUSED_MOST, refused


_OWN = "FROM visits AS w WHERE w.person_id = v.person_id"


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 {_OWN} AND w.{first} {one} v.{first} AND "
            f"w.{second} {other} v.{second})"
            for first, one, second, other in (
                ("days", ">=", "cost", ">"),
                ("days", "<=", "cost", "<"),
                ("days", ">", "cost", "<>"),
                ("days", "<>", "cost", ">="),
                ("hospital_id", "<>", "days", "<"),
            )
        ),
        f"SELECT SUM((SELECT COUNT(*) {_OWN} AND w.cost <= v.cost)) FROM visits AS v",
        "SELECT COUNT(*), COUNT(w.cost) FROM visits AS v LEFT JOIN visits AS w ON w.person_id = v.person_id AND "
        "NOT (v.cost < 3 OR w.cost >= 7 AND v.cost > 3)",
        "SELECT COUNT(*), COUNT(w.days) FROM visits AS v LEFT JOIN visits AS w ON w.person_id = v.person_id AND "
        "(NOT v.cost <= 3 OR w.days = 2)",
    ],
)
def test_equal_and_missing_values_of_a_units_rows(small: Clinic, text: str) -> None:
    """Shows where ends of frames, NULL, equal rows outside and negations matter: in few rows of larger worlds."""
    assert not difference(small, text)


@pytest.mark.slow
def test_a_wrong_end_is_found(small: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants the greatest value where the least one decides a comparison."""
    monkeypatch.setattr(correlated, "_ENDS", {**correlated._ENDS, exp.LT: (exp.Max,), exp.LTE: (exp.Max,)})
    assert any(map(partial(_differs, small), range(1_000)))


def _differs(world: Clinic, seed: int) -> bool:
    text = make_question(seed)
    if "EXISTS" not in text:
        return False
    try:
        return bool(difference(world, text))
    except Refused:
        return False


def _checked(seeds: range) -> int:
    """How many relations keep their promises in the trees of these seeds, on other rows for every tenth of them."""
    checked = 0
    for seed in seeds:
        if seed % 10 == 0 or not checked:
            rows, owners = _with_owners(seed)
        try:
            cores = lift(make_question(seed), SMALL).cores
        except Refused:
            continue
        checked += sum(check_promises(core.sources, SMALL, rows, owners, within=True) for core in cores)
    return checked


def _with_owners(seed: int) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[Any]]]:
    rows = {
        table.name: [
            dict(zip((c.name for c in table.columns), row, strict=True)) for row in small_rows(seed)[table.name]
        ]
        for table in SMALL.tables
    }
    unit_of = {visit["visit_id"]: visit["person_id"] for visit in rows["visits"]}
    owners = {
        "people": [row["person_id"] for row in rows["people"]],
        "visits": [row["person_id"] for row in rows["visits"]],
        "tests": [unit_of[row["visit_id"]] for row in rows["tests"]],
        "hospitals": [None for _ in rows["hospitals"]],
    }
    return rows, owners


@thinned(2)
def test_every_node_keeps_its_promises(every: int) -> None:
    """Shows unit, types, ranges, NULL, uniqueness, rows of a unit and what is constant, of every node of many trees."""
    assert _checked(range(20_000, 20_300, every)) > 600 // every


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("_one_each", lambda source: True),
        ("constant_per_unit", lambda expression, sources: True),
        ("columns_of", lambda expression: ()),  # conditions of outer joins, as if they were of no rows
    ],
)
def test_a_broken_promise_is_found(monkeypatch: pytest.MonkeyPatch, name: str, planted: Any) -> None:
    """Plants joins that are promised to repeat no row, and groups that are promised to be one of a unit."""
    monkeypatch.setattr(unit_facts, name, planted)
    if name == "constant_per_unit":
        monkeypatch.setattr(unit_groups, name, planted)
    assert any(map(_breaks, range(20_000, 20_300)))


def _breaks(seed: int) -> bool:
    try:
        _checked(range(seed, seed + 1))
    except Violation:
        return True
    except AssertionError:  # what else is known of the tree contradicts what was planted
        return False
    return False
