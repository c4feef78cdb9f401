"""Identities of cores as version 0.2.0 made them: a release that it stored is found by every later version.

tests/vectors/core_keys.json was written by the release commit of 0.2.0. An identity may change only with `VERSION` of
sql_rewrite/plan_key.py, because the same plan then has another meaning; what was stored before is sold again. Two texts
with one FILTER for all aggregates are not in it: since 0.13.0 they have the identity of WHERE (test_predicates.py).
Nor is a sum by hidden keys of one row per unit, whose groups are selected by its own rows since (own_threshold.md).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sql_rewrite.bound import bound
from sql_rewrite.lift import lift
from sql_rewrite.plan_key import VERSION, core_key
from tests.sql_rewrite.datasets import CLINIC

VECTOR = json.loads((Path(__file__).resolve().parents[1] / "vectors" / "core_keys.json").read_text("utf-8"))


def test_the_vector_is_of_this_version() -> None:
    """Shows that the vector belongs to the identities that are in force."""
    assert VECTOR["version"] == VERSION
    assert len(VECTOR["keys"]) > 20


@pytest.mark.parametrize("sql", VECTOR["keys"])
def test_identities_are_those_of_0_2_0(sql: str) -> None:
    """Shows that every core of a text has the identity that 0.2.0 gave it."""
    assert VECTOR["keys"][sql] == [core_key(core, CLINIC) for core in bound(lift(sql, CLINIC))]
