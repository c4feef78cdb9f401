"""Fingerprints of some hundred lowered statements and expressions: the text, its parameters, the bounds of its sums.

    python -m tests.sql_rewrite.statements    writes tests/vectors/statements.json anew

What a statement says is argued about in proofs, priced by measurements of time and stored with releases. So how
statements are written changes on purpose, or not at all; where it is on purpose, the file is written anew.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from privacy.norms import NormPower
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
from sql_rewrite.norms import at_norms, lower_norms
from tests.audit.folds import DATASET, make_question
from tests.audit.generate import make_query, make_scene
from tests.hostile.corpus import answered
from tests.hostile.good import GOOD
from tests.sql_rewrite.datasets import AUTOMATIC, CLINIC
from tests.sql_rewrite.test_functions import CASES

__all__ = ["CORPORA", "FILE", "cores", "expressions", "found"]

FILE = Path(__file__).resolve().parents[1] / "vectors" / "statements.json"

NORMED = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT SUM(visit_id) AS s FROM visits",
    "SELECT COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS a, COUNT(cost) AS c FROM visits",
    "SELECT VAR_POP(cost) AS v FROM visits WHERE ward = 'a'",
    "SELECT p.sex, COUNT(*) AS n, STDDEV(v.cost) AS s FROM visits v JOIN people p USING (person_id) GROUP BY 1",
    "SELECT p.sex, COUNT(DISTINCT v.person_id) AS n FROM visits v JOIN people p USING (person_id) GROUP BY 1",
    "SELECT h.region, COUNT(*) AS n FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY 1",
    "SELECT h.region, SUM(v.cost) AS s FROM visits v JOIN hospitals h USING (hospital_id) GROUP BY 1",
    "SELECT h.region, SUM(v.visit_id) AS s, SUM(v.cost - 10) AS t FROM visits v JOIN hospitals h USING (hospital_id) "
    "GROUP BY 1",
    "SELECT h.region, COUNT(DISTINCT v.person_id) AS n, COUNT(v.ward) AS w FROM visits v JOIN hospitals h "
    "USING (hospital_id) GROUP BY 1",
    "SELECT h.region, COUNT(*) AS n, AVG(v.cost) AS a, VARIANCE(v.cost) FILTER (WHERE v.day IS NULL) AS v FROM "
    "visits v JOIN hospitals h USING (hospital_id) GROUP BY 1",
    "SELECT p.smoker, COUNT(*) FILTER (WHERE t.result > 0) AS n, SUM(t.result) AS s FROM tests t JOIN visits v "
    "USING (visit_id) JOIN people p USING (person_id) GROUP BY 1",
    "SELECT v.day IS NULL AS missing, COUNT(DISTINCT v.person_id) FILTER (WHERE v.cost > 5) AS n FROM visits v "
    "GROUP BY 1",
]

WITHIN_UNITS = [
    "SELECT AVG(n), AVG(s) FROM (SELECT person_id, COUNT(*) AS n, SUM(cost) AS s, MAX(cost) AS m, BOOL_AND(cost > 5) "
    "AS b, "
    "COUNT(DISTINCT ward) AS w FROM visits WHERE hospital_id = 1 GROUP BY 1 HAVING COUNT(*) > 2) AS t WHERE b AND m > "
    "7 "
    "AND w > 1",
    "SELECT ward, COUNT(*), SUM(n) FROM (SELECT person_id, ward, COUNT(*) AS n FROM visits GROUP BY 1, 2) AS t GROUP "
    "BY 1",
    "SELECT AVG(GREATEST(0, LEAST(s, 10))) FROM (SELECT person_id, SUM(income) AS s, BOOL_OR(smoker) AS b FROM people "
    "GROUP BY 1) AS t WHERE b",
    "SELECT sex, COUNT(*), AVG(cost) FROM people AS p LEFT JOIN visits AS v USING (person_id) GROUP BY 1",
    "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.person_id = b.person_id AND a.visit_id < b.visit_id",
]

SCENES = 30
QUERIES = 6
QUESTIONS = 40


def _of_texts(
    texts: Iterable[str], dataset: Dataset, power: NormPower = NormPower.L2
) -> Iterator[tuple[str, BoundedCore]]:
    """The cores of the texts that are answered, each under a name that follows from its text."""
    for text in texts:
        yield from _of_query(text, dataset, {}, "", power)


def _of_scenes() -> Iterator[tuple[str, BoundedCore]]:
    for seed in range(SCENES):
        scene = make_scene(seed)
        for number in range(QUERIES):
            query = make_query(scene, number)
            yield from _of_query(query.sql, scene.dataset, query.parameters, f"{seed}/{number}")


def _of_query(
    sql: str, dataset: Dataset, parameters: Mapping[str, Any], place: str, power: NormPower = NormPower.L2
) -> Iterator[tuple[str, BoundedCore]]:
    try:
        bounded = bound(lift(sql, dataset, parameters), power=power)
    except Refused:
        return
    for number, core in enumerate(bounded):
        yield _fingerprint(place, sql, number), core


def _normed() -> Iterator[tuple[str, BoundedCore]]:
    """Cores whose units are scaled to norms: by both powers, at norms that are not whole."""
    texts = [*GOOD, *(entry.text for entry in answered()), *NORMED]
    for power in NormPower:
        for name, core in _of_texts(texts, AUTOMATIC, power=power):
            if core.norms:
                yield f"{name}/{power.value}", at_norms(core, {n.norm.name: Fraction(7, 2) for n in core.norms})


def _answered() -> Iterator[tuple[str, BoundedCore]]:
    return _of_texts([*GOOD, *(entry.text for entry in answered()), *WITHIN_UNITS], CLINIC)


def _of_folds() -> Iterator[tuple[str, BoundedCore]]:
    return _of_texts([make_question(seed).sql for seed in range(QUESTIONS)], DATASET)


CORPORA: Mapping[str, Callable[[], Iterator[tuple[str, BoundedCore]]]] = {
    "texts that are answered": _answered,
    "scenes of the audit": _of_scenes,
    "questions of the folds": _of_folds,
    "units scaled to norms": _normed,
}
"""Together: one and several rows per unit, all bounds, public and hidden keys, joins, filters."""

OPERATORS = "cases of the operators"


@functools.cache
def cores(corpus: str) -> Mapping[str, BoundedCore]:
    """Bounded cores of one corpus."""
    return dict(CORPORA[corpus]())


def expressions() -> list[Expression]:
    """The cases of every operator, as they are and clipped."""
    plain = [build(name, arguments) for name, listed in CASES.items() for arguments in listed]
    return [form for expression in plain for form in dict.fromkeys((expression, clip_columns(expression)))]


def _fingerprint(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def _of_core(core: BoundedCore) -> str:
    statements = [lower(core), *([lower_norms(core)] if core.norms else [])]
    return _fingerprint(*(part for s in statements for part in (s.sql, s.parameters, s.keys, s.sums)))


def _of_expression(expression: Expression) -> str:
    parameters = ParameterList()
    return _fingerprint(DUCKDB.write(lower_expression(expression, parameters)), parameters.values)


def found(corpus: str) -> dict[str, str]:
    """The fingerprints of one corpus: of what is asked, and of what is written for it."""
    if corpus == OPERATORS:
        return {_fingerprint(e): _of_expression(e) for e in expressions()}
    return {name: _of_core(core) for name, core in cores(corpus).items()}


if __name__ == "__main__":
    FILE.write_text(json.dumps({corpus: found(corpus) for corpus in (*CORPORA, OPERATORS)}, indent=0) + "\n")
