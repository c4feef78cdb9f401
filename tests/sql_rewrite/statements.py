"""Fingerprints of some hundred lowered statements and expressions: the text, its parameters, the bounds of its sums.

    python -m tests.sql_rewrite.statements    writes tests/vectors/statements.json anew

What a statement says is argued about in proofs, priced by measurements of time and stored with releases. So how
statements are written changes on purpose, or not at all; where it is on purpose, the file is written anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from privacy.policy import Dataset
from privacy.refusal import Refused
from sql_rewrite.bound import BoundedCore, bound
from sql_rewrite.dialects.duckdb import DUCKDB
from sql_rewrite.expressions import Expression
from sql_rewrite.functions import build, clip_columns
from sql_rewrite.lift import lift
from sql_rewrite.lower import lower
from sql_rewrite.lower_expression import ParameterList
from sql_rewrite.lower_expression import lower as lower_expression
from tests.audit.folds import DATASET, make_question
from tests.audit.generate import make_query, make_scene
from tests.hostile.corpus import answered
from tests.hostile.good import GOOD
from tests.sql_rewrite.datasets import CLINIC
from tests.sql_rewrite.test_functions import CASES

__all__ = ["FILE", "cores", "expressions", "found"]

FILE = Path(__file__).resolve().parents[1] / "vectors" / "statements.json"

SCENES = 30
QUERIES = 6
QUESTIONS = 40


def _of_texts(texts: Iterable[str], dataset: Dataset) -> Iterator[tuple[str, BoundedCore]]:
    """The cores of the texts that are answered, each under a name that follows from its text."""
    for text in texts:
        yield from _of_query(text, dataset, {}, "")


def _of_scenes() -> Iterator[tuple[str, BoundedCore]]:
    for seed in range(SCENES):
        scene = make_scene(seed)
        for number in range(QUERIES):
            query = make_query(scene, number)
            yield from _of_query(query.sql, scene.dataset, query.parameters, f"{seed}/{number}")


def _of_query(
    sql: str, dataset: Dataset, parameters: Mapping[str, Any], place: str
) -> Iterator[tuple[str, BoundedCore]]:
    try:
        bounded = bound(lift(sql, dataset, parameters))
    except Refused:
        return
    for number, core in enumerate(bounded):
        yield _fingerprint(place, sql, number), core


def cores() -> dict[str, dict[str, BoundedCore]]:
    """Bounded cores by corpus: one and several rows per unit, all bounds, public and hidden keys, joins, filters."""
    texts = [*GOOD, *(entry.text for entry in answered())]
    questions = [make_question(seed).sql for seed in range(QUESTIONS)]
    return {
        "texts that are answered": dict(_of_texts(texts, CLINIC)),
        "scenes of the audit": dict(_of_scenes()),
        "questions of the folds": dict(_of_texts(questions, DATASET)),
    }


def expressions() -> list[Expression]:
    """The cases of every operator, as they are and clipped."""
    plain = [build(name, arguments) for name, listed in CASES.items() for arguments in listed]
    return [form for expression in plain for form in dict.fromkeys((expression, clip_columns(expression)))]


def _fingerprint(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _of_core(core: BoundedCore) -> str:
    statement = lower(core)
    return _fingerprint(statement.sql, statement.parameters, statement.keys, statement.sums)


def _of_expression(expression: Expression) -> str:
    parameters = ParameterList()
    return _fingerprint(DUCKDB.write(lower_expression(expression, parameters)), parameters.values)


def found() -> dict[str, dict[str, str]]:
    """The fingerprints by corpus: of what is asked, and of what is written for it."""
    marks = {corpus: {name: _of_core(core) for name, core in listed.items()} for corpus, listed in cores().items()}
    cases = {_fingerprint(e): _of_expression(e) for e in expressions()}
    return {**marks, "cases of the operators": cases}


if __name__ == "__main__":
    FILE.write_text(json.dumps(found(), indent=0) + "\n")
