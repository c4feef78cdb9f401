"""What a reader of one class of syntax nodes may ask for. Implemented by `sql_rewrite.lift_expression`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from sql_rewrite.expressions import Expression
from sql_rewrite.hints import About
from sql_rewrite.text import Text

__all__ = ["Lifter", "ParameterValue", "Reader", "bare"]

ParameterValue = str | int | float | bool | None | Fraction


class Lifter(Protocol):
    """Lifts the scalar expressions of one SELECT block."""

    @property
    def text(self) -> Text:
        """The text that the nodes are of."""
        ...

    @property
    def parameters(self) -> Mapping[str, ParameterValue]:
        """The named parameters of the request."""
        ...

    @property
    def column(self) -> Callable[[exp.Column], Expression]:
        """Gives the column that a name refers to, or refuses."""
        ...

    @property
    def joins_to(self) -> Callable[[str], tuple[str, ...] | None]:
        """How a public table is joined to those that are read; empty where no reference says so, None for others."""
        ...

    def lift(self, node: exp.Expr, *, like: Expression | None = None) -> Expression:
        """The typed form of a node. `like` is a sibling whose type an untyped NULL takes."""
        ...

    def nested(self, node: exp.Expr) -> Expression | None:
        """What a node with a nested query in it stands for, None where it is not read as one."""
        ...

    def siblings(self, nodes: Sequence[exp.Expr]) -> list[Expression]:
        """Operands that must share a type: NULLs and text literals take the type of the others."""
        ...

    def make(self, node: exp.Expr, operator: str, *arguments: Expression) -> Expression:
        """An operator; its refusal gets the node's place in the text."""
        ...

    def about(self, node: exp.Expr) -> About | None:
        """The column that a call was asked about, when it is one column."""
        ...


Reader = Callable[[Lifter, exp.Expr], Expression]
"""Reads one class of nodes: it names every slot that it understands (`consume`)."""


def bare(node: exp.Expr) -> exp.Expr:
    """The node without brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
