"""The small tools with which syntax trees are read: copies, and classes of nodes."""

from __future__ import annotations

import pytest
from sqlglot import exp

from privacy.refusal import Refused
from sql_rewrite.syntax import copied, kinds_of, parse
from tests.battery.questions import questions
from tests.battery.worlds import WORLDS


@pytest.mark.sparse(3)
@pytest.mark.parametrize("world", WORLDS)
def test_copies_are_those_of_the_parser_itself(world: str) -> None:
    """Shows that a copy is equal to its tree, node by node, with the same places in the text, and shares no node."""
    seen = 0
    for question in questions(world):
        try:
            tree, _ = parse(question.text)
        except Refused:
            continue
        mine, own = list(copied(tree).walk()), list(tree.copy().walk())
        assert [(type(node), node.meta) for node in mine] == [(type(node), node.meta) for node in own]
        assert mine[0] == own[0] == tree
        assert not {id(node) for node in mine} & {id(node) for node in tree.walk()}
        assert all(node.parent is not None for node in mine[1:])
        seen += 1
    assert seen > 50


def test_classes_come_with_their_subclasses() -> None:
    """Shows that a class that is looked up is found exactly where an instance of it would be."""
    wanted = (exp.Query, exp.AggFunc, exp.Column)
    found = kinds_of(*wanted)
    assert {exp.Select, exp.Union, exp.Subquery, exp.Count, exp.Column} <= found
    every = kinds_of(exp.Expr)
    assert len(every) > 500
    assert found == {kind for kind in every if issubclass(kind, wanted)}
