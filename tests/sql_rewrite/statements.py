"""Fingerprints of some hundred lowered statements and expressions: the text, its parameters, the bounds of its sums.

    python -m tests.sql_rewrite.statements    writes tests/vectors/statements.json anew

What a statement says is argued about in proofs, priced by measurements of time and stored with releases. So how
statements are written changes on purpose, or not at all; where it is on purpose, the file is written anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

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


def _of_texts(texts: Iterable[str], dataset: Dataset) -> Iterator[BoundedCore]:
    """The cores of the texts that are answered."""
    for text in texts:
        try:
            yield from bound(lift(text, dataset))
        except Refused:
            continue


def _of_scenes() -> Iterator[BoundedCore]:
    for seed in range(SCENES):
        scene = make_scene(seed)
        for number in range(QUERIES):
            query = make_query(scene, number)
            try:
                yield from bound(lift(query.sql, scene.dataset, query.parameters))
            except Refused:
                continue


def cores() -> dict[str, list[BoundedCore]]:
    """Bounded cores by corpus: one and several rows per unit, all bounds, public and hidden keys, joins, filters."""
    texts = [*GOOD, *(entry.text for entry in answered())]
    questions = [make_question(seed).sql for seed in range(QUESTIONS)]
    return {
        "texts that are answered": list(_of_texts(texts, CLINIC)),
        "scenes of the audit": list(_of_scenes()),
        "questions of the folds": list(_of_texts(questions, DATASET)),
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


def found() -> dict[str, list[str]]:
    """The fingerprints by corpus, each in the order of its statements."""
    marks = {corpus: [_of_core(core) for core in listed] for corpus, listed in cores().items()}
    return {**marks, "cases of the operators": [_of_expression(expression) for expression in expressions()]}


if __name__ == "__main__":
    FILE.write_text(json.dumps(found(), indent=0) + "\n")
