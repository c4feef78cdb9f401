"""The identity of every question of the battery that an earlier version answered: stored releases go on serving.

`python -m tests.battery.test_identity` writes tests/vectors/battery_keys.json anew. What it changes there are
questions that are charged again after an upgrade, so each has to be meant, and to stand in docs/upgrading.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from privacy.refusal import Refused
from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import core_key
from tests.battery.questions import questions
from tests.battery.worlds import WORLDS

KEPT = Path(__file__).parents[1] / "vectors" / "battery_keys.json"


def keys_of(world: str, text: str) -> str:
    """The first digits of the keys of a question's cores, in their order."""
    dataset = WORLDS[world]
    return " ".join(core_key(core, dataset)[:12] for core in bound(lift(text, dataset)))


def _answered() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for world in WORLDS:
        for question in questions(world):
            try:
                found.setdefault(world, {})[question.text] = keys_of(world, question.text)
            except Refused:
                continue
    return found


@pytest.mark.sparse(3)
@pytest.mark.parametrize("world", WORLDS)
def test_questions_keep_their_identity(world: str) -> None:
    """Shows that a field of a plan that came later, and is not used, changes no key."""
    kept: dict[str, str] = json.loads(KEPT.read_text("utf-8"))[world]
    assert len(kept) > 50
    now = {text: keys_of(world, text) for text in kept}
    assert now == kept


if __name__ == "__main__":
    KEPT.write_text(json.dumps(_answered(), indent=0, sort_keys=True) + "\n", "utf-8")
