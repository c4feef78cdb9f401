"""Every question of the battery that is answered has DuckDB's own answer, and what is never answered is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.battery.outcomes import code_of, difference
from tests.battery.questions import Question, questions
from tests.battery.worlds import WORLDS, open_world
from tests.plain_clinic import Clinic


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


@pytest.mark.sparse(6)
@pytest.mark.parametrize("question", _of("answered"))
def test_the_answer_is_the_engines_own(opened: dict[str, Clinic], question: Question) -> None:
    """Shows it with bounds above every contribution, at an epsilon that leaves no noise."""
    assert not difference(opened[question.world], question.text), question.text


@pytest.mark.parametrize("question", _of("refused"))
def test_what_is_never_answered_is_refused(opened: dict[str, Clinic], question: Question) -> None:
    """Shows the code."""
    assert code_of(opened[question.world], question.text) == question.detail, question.text
