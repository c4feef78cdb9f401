"""Findings: one type for the words, and one way to collect them."""

from __future__ import annotations

import ast
import itertools
import re

import pytest

from privacy.refusal import CODES, Collector, Finding, Refused
from privacy.warning import WARNINGS
from tests.trees import CHECKOUT, files_of, tree_of, walked

ROOMS = ("privacy", "sql_rewrite", "mechanisms", "engines", "accountant", "server", "migrations")
DOCUMENTS = {"server/wire/answers.py"}
"""Files whose classes describe JSON documents and carry nothing."""


def found(what: str) -> Finding:
    """A finding of that name."""
    return Finding("unsupported_sql", what, "It is so.")


def test_independent_parts_are_refused_together() -> None:
    """Shows that each finding is said once, in the order of the parts, and that parts after a refused one still run."""
    collector, ran = Collector(), []
    for part in (("one", "two"), (), ("two", "three")):
        with collector:
            ran.append(part)
            if part:
                raise Refused([found(what) for what in part])
            ran.append(("whole",))
    assert ran == [("one", "two"), (), ("whole",), ("two", "three")]
    assert collector
    with pytest.raises(Refused, match="one") as refused:
        collector.refuse()
    assert refused.value.findings == (found("one"), found("two"), found("three"))


def test_nothing_found_is_nothing_refused() -> None:
    """Shows that a collector without findings is false and refuses nothing, and that findings can be added."""
    collector = Collector()
    with collector:
        pass
    assert not collector
    collector.refuse()
    collector.add(found("one"))
    with pytest.raises(Refused, match="one"):
        collector.refuse()


def test_only_refusals_are_collected() -> None:
    """Shows that a fault of ours ends the whole, and not one part in silence."""
    with pytest.raises(ZeroDivisionError), Collector():
        raise ZeroDivisionError


def test_refusals_have_codes_of_refusals() -> None:
    """Shows that neither a misspelt code nor one of a warning can refuse a query, and that no code is both."""
    assert not CODES.keys() & WARNINGS.keys()
    for code in ("unsuported_sql", *WARNINGS):
        with pytest.raises(AssertionError, match="code of a refusal"):
            Refused([Finding(code, "a", "b")])


def test_one_type_carries_the_words() -> None:
    """Shows that no other class has fields for what and why: exceptions and documents hold or show a Finding."""
    carriers = []
    for place in itertools.chain(*map(files_of, ROOMS)):
        # Most files never write the word as a name that is declared or set: they need no parsing.
        if not re.search(r"\bwhat\s*[:=,)]", (CHECKOUT / place).read_text(encoding="utf-8")):
            continue
        for node in walked(tree_of(place)):
            if isinstance(node, ast.ClassDef) and {"what", "why"} <= _fields(node) and place not in DOCUMENTS:
                carriers.append(f"{place}: {node.name}")
    assert carriers == ["privacy/refusal.py: Finding"]


def _fields(node: ast.ClassDef) -> set[str]:
    """Names that the class declares for its instances, or that its methods set on themselves.

    A constant of a class is no field: templates of refusals make findings (server/administration/refusal.py).
    """
    declarations = [item for item in node.body if isinstance(item, ast.AnnAssign)]
    annotated = [item.target for item in declarations if not ast.unparse(item.annotation).startswith("ClassVar")]
    declared = {target.id for target in annotated if isinstance(target, ast.Name)}
    assigned = {
        target.attr
        for statement in ast.walk(node)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    }
    return declared | assigned
