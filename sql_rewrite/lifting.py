"""What the readers of one text's blocks may ask of each other. Implemented by `sql_rewrite.lift`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Protocol

from sqlglot import exp

from privacy.policy import Dataset, Table
from privacy.refusal import Finding
from sql_rewrite.known_queries import KnownQueries
from sql_rewrite.lift_expression import Member
from sql_rewrite.lifter import ParameterValue
from sql_rewrite.plan import Core
from sql_rewrite.public import PublicRelations
from sql_rewrite.released import Released
from sql_rewrite.rows import Rows
from sql_rewrite.rows_block import RowsSeeker
from sql_rewrite.scope import Scope
from sql_rewrite.shell import ShellNodes
from sql_rewrite.shell_block import ShellBlocks
from sql_rewrite.sources import SourceNames
from sql_rewrite.stages import Stages
from sql_rewrite.text import Text

__all__ = ["SELECT_SLOTS", "Items", "Lifting", "Listing", "Tables"]

SELECT_SLOTS = (
    "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "order", "limit", "offset",
    "distinct", "with_",
)  # fmt: skip
"""The clauses of a SELECT that are read."""

Tables = list[tuple[exp.Expr, Table | Rows]]
"""Items of FROM that are a table, or rows of people."""

Items = tuple[Tables, list[tuple[str, Released]]]
"""All items of FROM: those, and relations of released numbers with their names."""


class ByAtoms(enum.Enum):
    """Whether conditions of one block may be measured as the groups that they make (atoms.py)."""

    SUMS = "sums"
    """Also where a number that the text asks for is the sum of several."""

    ALONE = "alone"
    """Where each number is one released number: what is asked of errors of these is then true of it."""

    NONE = "none"
    """Not at all: the text is asked as it is written."""


class Listing(Protocol):
    """Reads what FROM lists: `FromItems.listed`."""

    def __call__(self, node: exp.Select, scope: Scope, first: int, *, people: bool) -> Items:
        """The items of a block; `first` is the number of its first table. Errors: Refused."""
        ...


class Lifting(Protocol):
    """One text while it is lifted. The lists grow as blocks are read, and all readers share them."""

    text: Text
    dataset: Dataset
    parameters: Mapping[str, ParameterValue]
    nonempty: bool
    choose: bool
    atoms: ByAtoms
    nodes: ShellNodes
    cores: list[Core]
    warnings: list[Finding]
    public: PublicRelations
    blocks: ShellBlocks
    seeker: RowsSeeker
    known: KnownQueries
    stages: Stages

    def query(self, node: exp.Expr, scope: Scope) -> Released:
        """A query of any form as a relation of released numbers. Errors: Refused."""
        ...

    def with_(self, node: exp.Expr, scope: Scope) -> Scope:
        """What a query with a WITH of its own can see. Errors: Refused."""
        ...

    @property
    def listed(self) -> Listing:
        """Reads what FROM lists."""
        ...

    @property
    def new_name(self) -> Callable[[str], str]:
        """Names a relation that has no name: `FromItems.new_name`."""
        ...

    @property
    def rows(self) -> Callable[[exp.Expr, Scope, int], Rows]:
        """Reads the rows of a nested query: `NestedRows.rows`."""
        ...

    @property
    def member(self) -> Callable[[exp.Select, SourceNames, Scope], Member]:
        """Makes what reads nested queries in expressions: `NestedRows.member`."""
        ...
