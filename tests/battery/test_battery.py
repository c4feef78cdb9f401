"""Every question of the battery that is answered has DuckDB's own answer, and what is never answered is refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from privacy.policy import ColumnType
from sql_rewrite import apart_sides, correlated_order, full_joins, group_keys, join_order
from sql_rewrite.aggregate_calls import AggregateReader
from sql_rewrite.correlated_pairs import Pairs
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.functions import build
from tests.battery.outcomes import code_of, difference
from tests.battery.questions import Question, questions
from tests.battery.worlds import WORLDS, open_world
from tests.plain_clinic import Clinic

SHARE = 0.97
"""The least part of the questions that may be asked and are answered; issue E asks for 0.97."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Clinic]]:
    """Each world once, opened by the first question over it."""
    with ExitStack() as stack:

        class Worlds(dict[str, Clinic]):
            def __missing__(self, name: str) -> Clinic:
                self[name] = stack.enter_context(open_world(name, tmp_path_factory.mktemp(name)))
                return self[name]

        yield Worlds()


def _of(outcome: str) -> list[object]:
    found: list[Question] = [q for world in WORLDS for q in questions(world) if q.outcome == outcome]
    return [pytest.param(question, id=f"{question.world}-{question.number}") for question in found]


_select = Pairs.select


def _in_turn(self: Pairs, *given: Any, **named: Any) -> exp.Select:
    """The groups of pairs in which each row outside is one half, however many rows outside are equal."""
    select = _select(self, *given, **named)
    for distinct in list(select.find_all(exp.Distinct)):
        distinct.pop()
    return select


def _exchanged(operator: str, arguments: Any) -> Expression:
    return build(operator, arguments[::-1] if operator == "<=" else arguments)


@pytest.mark.sparse(80)
@pytest.mark.parametrize("question", _of("answered"))
def test_the_answer_is_the_engines_own(opened: dict[str, Clinic], question: Question) -> None:
    """Shows it with bounds above every contribution, at an epsilon that leaves no noise."""
    assert not difference(opened[question.world], question.text), question.text


@pytest.mark.sparse(80)
@pytest.mark.parametrize("question", _of("refused"))
def test_what_is_never_answered_is_refused(opened: dict[str, Clinic], question: Question) -> None:
    """Shows the code."""
    assert code_of(opened[question.world], question.text) == question.detail, question.text


def test_most_of_what_may_be_asked_is_answered() -> None:
    """Shows the size of both batteries, and the share that is answered over each schema and over all of them."""
    answered, asked, refused = 0, 0, 0
    for world in WORLDS:
        counts = Counter(question.outcome for question in questions(world))
        here = counts["answered"] + counts["other"]
        assert here >= 0.9 * (here + counts["not yet"]), world
        answered, asked = answered + here, asked + here + counts["not yet"]
        refused += counts["refused"]
    assert asked >= 400
    assert answered >= SHARE * asked
    assert refused >= 200


def test_no_text_is_asked_twice() -> None:
    """Shows that the batteries count different texts."""
    for world in WORLDS:
        counts = Counter(" ".join(question.text.split()).lower() for question in questions(world))
        assert not [text for text, times in counts.items() if times > 1], world


def test_a_condition_that_is_lost_is_seen(opened: dict[str, Clinic], monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the battery can fail: where conditions are true of every row, answers differ from DuckDB's."""
    asked = "SELECT smoker, COUNT(*) FROM people WHERE age >= 50 GROUP BY smoker"
    assert not difference(opened["people"], asked)
    everybody = Literal(value=True, type=ColumnType.BOOLEAN)
    monkeypatch.setattr(AggregateReader, "condition", lambda self, node, clause: everybody)
    assert difference(opened["people"], asked)


@pytest.mark.parametrize(
    ("where", "name", "planted", "asked"),
    [
        (Pairs, "may_miss", lambda *given: False,
         "SELECT COUNT(*) FROM orders v WHERE EXISTS (SELECT 1 FROM orders w WHERE w.customer_id = v.customer_id AND "
         "w.status <> v.status AND COALESCE(w.discount_opt >= v.discount_opt, TRUE))"),
        (Pairs, "select", _in_turn,
         "SELECT SUM((SELECT COUNT(*) FROM visits w WHERE w.patient_id = v.patient_id AND w.department < "
         "v.department)) FROM visits v"),
        (correlated_order, "FIRST", {**correlated_order.FIRST, exp.GT: (True, "CURRENT ROW")},
         "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND "
         "w.visit_date > v.visit_date AND w.cost >= v.cost)"),
        (join_order, "_outer", lambda source, found, dataset: found,
         "SELECT COUNT(v.c) FROM patients p LEFT JOIN (SELECT patient_id, COALESCE(cost, 3) AS c FROM visits "
         "WHERE cost > 400) v ON v.patient_id = p.patient_id"),
        (full_joins, "conjunction", lambda parts: parts[0],
         "SELECT COUNT(p.age), COUNT(*) FROM visits v FULL JOIN patients p ON v.patient_id = p.patient_id "
         "AND v.cost > p.age * 10"),
        (apart_sides, "build", _exchanged,
         "SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND "
         "(p.age > 50 OR v.cost > 400)"),
    ],
    ids=["missing values", "counted twice", "peers", "computed of nothing", "lost conditions", "exchanged sides"],
)  # fmt: skip
def test_what_is_wrong_of_pairs_is_seen(
    opened: dict[str, Clinic], monkeypatch: pytest.MonkeyPatch, where: object, name: str, planted: object, asked: str
) -> None:
    """Shows that the battery can fail for pairs of one person's rows, and outer joins that are written out."""
    world = opened["shop" if " orders " in asked else "clinic"]
    if name == "may_miss":
        assert code_of(world, asked)
    else:
        assert not difference(world, asked)
    monkeypatch.setattr(where, name, planted)
    assert difference(world, asked)


def test_keys_of_one_person_are_seen(opened: dict[str, Clinic], monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the battery of refusals can fail: where no key is known to name its unit, such groups are answered."""
    refused = [q for q in questions("people") if q.detail == "group_by_unit"]
    monkeypatch.setattr(group_keys, "identifying_column", lambda key: None)
    assert [q for q in refused if code_of(opened["people"], q.text) != q.detail]


def test_at_least_nineteen_questions_of_tpc_h_are_answered() -> None:
    """Shows the outcomes of the 22 as the table of docs/sql.md has them, with the reason of each refusal."""
    asked = list(questions("tpch"))[:22]
    answered = {f"Q{number}" for number, question in enumerate(asked, start=1) if question.outcome == "answered"}
    page = (Path(__file__).resolve().parents[2] / "docs" / "sql.md").read_text("utf-8")
    rows = [line.split(" | ", 1) for line in page.splitlines() if re.match(r"\| Q[0-9]", line)]
    said = {name: what for names, what in rows for name in names.removeprefix("| ").split(", ")}
    assert len(said) == 22
    assert len(answered) >= 19
    assert answered == {name for name, what in said.items() if what.startswith("answered")}
    for number, question in enumerate(asked, start=1):
        assert question.outcome == "answered" or f"`{question.detail}`" in said[f"Q{number}"], number
