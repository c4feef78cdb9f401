"""The typed plan of a query: private cores below, one public shell above.

A *core* is one aggregation of one protected table (with many-to-one joins to its parents). It is all that touches
rows. The *shell* is SQL over the released tables of the cores. The only doors from private to public are the
measurements of the cores' statistics.
"""

from __future__ import annotations

from dataclasses import dataclass

from privacy.aggregate import AggregateFunction
from privacy.policy import Dataset, Table
from privacy.refusal import Finding, Position
from privacy.release import ColumnKind
from sql_rewrite.expressions import ColumnRef, Expression
from sql_rewrite.trace import CONSTANT, Trace

__all__ = [
    "Aggregate",
    "Arrangement",
    "Core",
    "Counting",
    "Join",
    "Plan",
    "PublicRelation",
    "Shell",
    "ShellOutput",
    "Simulation",
    "SortTerm",
    "Source",
]


@dataclass(frozen=True, slots=True)
class Join:
    """A many-to-one join along a declared reference: `child` holds the unique `parent` key.

    `outer` keeps child rows without a parent (LEFT JOIN); it never adds rows, because the parent key is unique.
    """

    child: ColumnRef
    parent: ColumnRef
    outer: bool


@dataclass(frozen=True, slots=True)
class Source:
    """One table that a core reads under a generated relation name; the first source has no join."""

    relation: str
    table: Table
    join: Join | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate call of a core. `argument` is unclipped; `filter` is the FILTER clause or COUNT_IF's condition."""

    name: str
    function: AggregateFunction
    argument: Expression | None
    filter: Expression | None
    position: Position | None
    text: str


@dataclass(frozen=True, slots=True)
class Core:
    """One private aggregation: rows of `sources` that satisfy `where`, grouped by `keys`.

    `keys` and `aggregates` are in canonical order and named k0, k1 ... and a0, a1 ..., so that two texts of one
    question give equal cores.
    """

    name: str
    sources: tuple[Source, ...]
    where: Expression | None
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[Aggregate, ...]


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """One column of the answer.

    A released column names its core and column, and `identity` says which hidden identity column holds the row of
    that core's table. `trace` is how it depends on released numbers. In a UNION ALL the hidden identity column
    `branch` holds the number of the branch that a row comes from, and `branches` are the outputs of those.
    """

    name: str
    kind: ColumnKind
    core: str | None = None
    column: str | None = None
    identity: int | None = None
    trace: Trace = CONSTANT
    branch: int | None = None
    branches: tuple[ShellOutput, ...] = ()


@dataclass(frozen=True, slots=True)
class Simulation:
    """How the error of derived columns is propagated: the shell again, over replicates of the released tables.

    `sql` reads the same tables with one more column, `replicate$`. Its columns are the answer's columns, then
    `replicate$` and the identity of the answer's row. Rows that the answer does not show may appear.
    """

    sql: str


@dataclass(frozen=True, slots=True)
class SortTerm:
    """A column of a released table in an ORDER BY."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What an outer query does that only selects columns of one released table, sorts its rows and limits them.

    `columns` are those of the released table in the order of the answer, hidden ones (`row$`) last.
    """

    columns: tuple[str, ...]
    order: tuple[SortTerm, ...]
    limit: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class Shell:
    """The public part: SQL over the cores' released tables, which are named like their cores.

    Each released table has its columns k0.., a0.. and `row$`, the position of the row. `sql` returns the answer's
    columns, then `identities` hidden columns that name the row. `trivial` is set when the answer is one
    core's table in its own order, so that no engine is needed: `outputs` then name its columns. `identified` is False
    where rows have no identity, so that no cell can be found again; `chosen` is True where noisy numbers decide which
    rows the answer shows. `arrangement` says the same as `sql` where that only selects columns, sorts and limits.
    """

    sql: str
    outputs: tuple[ShellOutput, ...]
    identities: int
    trivial: bool
    simulation: Simulation | None
    identified: bool = True
    chosen: bool = False
    arrangement: Arrangement | None = None


@dataclass(frozen=True, slots=True)
class Counting:
    """A part of the outer query whose result depends on how many groups of some cores there are."""

    what: str
    cores: tuple[str, ...]
    position: Position | None


@dataclass(frozen=True, slots=True)
class PublicRelation:
    """A public table that the shell reads beside released ones, with all its columns, under a generated name."""

    name: str
    table: Table


@dataclass(frozen=True, slots=True)
class Plan:
    """A query after the lift: what touches rows, and what happens to the released numbers afterwards.

    `warnings` are about the text itself; `plan_warnings` adds what follows from the cores.
    `counting` is what depends on the number of groups. `nonempty` names for each core the aggregate that counts all its
    rows, by which empty groups are left out; it is empty when the request does not ask for that. `public` are the
    public tables that the shell reads.
    """

    dataset: Dataset
    cores: tuple[Core, ...]
    shell: Shell
    warnings: tuple[Finding, ...] = ()
    counting: tuple[Counting, ...] = ()
    nonempty: tuple[tuple[str, str], ...] = ()
    public: tuple[PublicRelation, ...] = ()
