"""The typed plan of a query: private cores below, one public shell above.

A *core* is one aggregation of one protected table (with many-to-one joins to its parents). It is all that touches
rows. The *shell* is SQL over the released tables of the cores. The only doors from private to public are the
measurements of the cores' statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from privacy.aggregate import AggregateFunction
from privacy.by_slots import by_slots
from privacy.policy import Dataset, Table
from privacy.rank_tree import QuantileMechanism
from privacy.refusal import Finding, Position
from privacy.release import ColumnKind
from sql_rewrite.expressions import ColumnRef, Expression, Value
from sql_rewrite.trace import CONSTANT, Trace
from sql_rewrite.unit_plan import Placement, UnitFunction, UnitPlace, UnitValue, UnitWindow, WindowFrame, WindowTerm

__all__ = [
    "GROUPS",
    "KEY_CHARACTERS_MAX",
    "Aggregate",
    "Arrangement",
    "Chosen",
    "Constants",
    "Core",
    "Counting",
    "FilteredArrangement",
    "Join",
    "Kept",
    "Placement",
    "Plan",
    "PublicRelation",
    "Running",
    "Shell",
    "ShellOutput",
    "Simulation",
    "SortTerm",
    "Source",
    "UnitBranch",
    "UnitFunction",
    "UnitGroups",
    "UnitPlace",
    "UnitRows",
    "UnitUnion",
    "UnitValue",
    "UnitWindow",
    "WindowFrame",
    "WindowTerm",
    "computed_parts",
    "joined_when",
]


@by_slots
@dataclass(frozen=True, slots=True)
class Join:
    """A many-to-one join along a declared reference: `child` holds the unique `parent` key.

    `outer` keeps child rows without a parent (LEFT JOIN); it never adds rows, because the parent key is unique.

    With `on_unit` both sides are rows about people, which meet where they belong to one unit: a row may meet several.
    Every row of the join belongs to that unit, and follows from the unit's own rows alone.

    `also` are further equalities of a column of an earlier source and one of the joined source: fewer rows meet.

    A row meets `most` rows of a public table by columns that are no key of it, of the `tried` that agree in these.

    With `when`, of an outer join alone, two rows meet only where this condition is true besides, on columns of earlier
    sources, and in comparisons with columns of the joined source: fewer rows meet, and no more are kept.
    """

    child: ColumnRef
    parent: ColumnRef
    outer: bool
    on_unit: bool = False
    also: tuple[tuple[ColumnRef, ColumnRef], ...] = ()
    most: int = 1
    tried: int = 1
    when: Expression | None = None


@by_slots
@dataclass(frozen=True, slots=True)
class Source:
    """One table that a core reads under a generated relation name; the first source has no join.

    With `groups` it is no stored table but rows that are computed within each unit, with `windows` rows beside others
    of their unit, with `union` the rows of several branches, and with `constants` rows that everybody knows, each
    beside all rows of the sources before it; `table` describes them. With `only` those of its rows alone are read, and
    joined, for which this condition on its own columns is true.
    """

    relation: str
    table: Table
    join: Join | None = None
    groups: UnitGroups | None = None
    only: Expression | None = None
    union: UnitUnion | None = None
    constants: Constants | None = None
    windows: UnitRows | None = None

    @property
    def stored(self) -> bool:
        """Whether its rows are those of a table that is stored, all of them or some."""
        return self.groups is None and self.union is None and self.constants is None and self.windows is None

    @property
    def made(self) -> Mapping[str, Expression]:
        """The columns of rows that are not stored, and what is known of each."""
        if self.union is not None:
            return dict(self.union.columns)
        if self.constants is not None:
            return {ref.name: ref for ref in self.constants.columns}
        computed = self.windows or self.groups
        return {} if computed is None else dict(computed.columns)


@dataclass(frozen=True, slots=True)
class UnitGroups:
    """Rows that are computed within each unit: one for each group of its rows (sql_rewrite/unit_groups.py).

    The rows of `sources` that satisfy `where` are grouped by their unit and `keys`; of each group there are `values`,
    and of the groups that satisfy `having` the `columns`. These two read keys and values under the relation `GROUPS`.
    """

    sources: tuple[Source, ...]
    where: Expression | None
    keys: tuple[tuple[str, Expression], ...]
    values: tuple[UnitValue, ...]
    having: Expression | None
    columns: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class UnitBranch:
    """One branch of a union: the rows of `sources` that satisfy `where`, with a value for each column of the union."""

    sources: tuple[Source, ...]
    where: Expression | None
    columns: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class UnitUnion:
    """The rows of all branches, each as often as the branches have it (sql_rewrite/row_unions.py).

    `columns` are their names and what is known of their values, whichever branch a row is from.
    """

    branches: tuple[UnitBranch, ...]
    columns: tuple[tuple[str, ColumnRef], ...]


@dataclass(frozen=True, slots=True)
class Constants:
    """Rows of constants (sql_rewrite/constant_rows.py), with what is known of their columns.

    The conditions of the block let a row about people meet `most` of them, and not more. With `stored` they are all
    rows of a public table (sql_rewrite/public_joins.py), which the engine has.
    """

    columns: tuple[ColumnRef, ...]
    rows: tuple[tuple[Value, ...], ...]
    most: int
    stored: bool = False


@dataclass(frozen=True, slots=True)
class UnitRows:
    """The rows of `sources` that satisfy `where`, with windows within their unit (sql_rewrite/unit_windows.py).

    `cells` are what the block reads of each row; `windows` and `columns` read them under the relation `GROUPS`.
    """

    sources: tuple[Source, ...]
    where: Expression | None
    cells: tuple[tuple[str, Expression], ...]
    windows: tuple[UnitWindow, ...]
    columns: tuple[tuple[str, Expression], ...]


KEY_CHARACTERS_MAX = 256
"""Characters of all hidden text keys of one group together. Every group that occurs is passed to the mechanism, so an
answer's size reveals how many there are: long keys would let a query choose the number at which it fails."""

GROUPS = "g$"
"""The relation of the keys and values of groups, and of the cells and windows of rows."""


def joined_when(sources: Sequence[Source]) -> list[Expression]:
    """The conditions of outer joins beside their equalities."""
    joins = [source.join for source in sources if source.join is not None]
    return [join.when for join in joins if join.when is not None]


def computed_parts(computed: UnitGroups | UnitRows) -> list[Expression]:
    """Every expression of what is computed within each unit, except those of its sources."""
    parts = [computed.where, *(column for _, column in computed.columns)]
    values: list[UnitValue | UnitPlace] = []
    if isinstance(computed, UnitGroups):
        parts += [computed.having, *(key for _, key in computed.keys)]
        values += computed.values
    else:
        parts += [cell for _, cell in computed.cells]
        for window in computed.windows:
            parts += [*window.partition, *(term.expression for term in window.order)]
            values.append(window.value)
    for value in values:
        parts += value.read if isinstance(value, UnitValue) else (value.argument, value.otherwise)
    return [part for part in parts if part is not None]


@by_slots
@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate call of a core. `argument` is unclipped; `filter` is the FILTER clause or COUNT_IF's condition.

    With `distinct` each different value of the argument in a group counts once, whoever has it.
    An aggregate of pairs reads the values of `argument` and `second` of each row: y and x, in this order.
    """

    name: str
    function: AggregateFunction
    argument: Expression | None
    filter: Expression | None
    position: Position | None
    text: str
    distinct: bool = False
    second: Expression | None = None
    fraction: Fraction | None = None
    """Of a quantile, the part of the rows that lie below it."""

    @property
    def values(self) -> tuple[Expression, ...]:
        """The expressions whose values it reads."""
        return tuple(part for part in (self.argument, self.second) if part is not None)


@dataclass(frozen=True, slots=True)
class Chosen:
    """That a core releases keys alone: those of the `count` groups with the greatest `score`, or the `least`.

    With `within`, which are names of keys, so many in each part of the groups that agree in these.
    """

    score: Aggregate
    count: int
    within: tuple[str, ...]
    least: bool


@by_slots
@dataclass(frozen=True, slots=True)
class Running:
    """That the outer query adds up neighbouring groups in the order of a key, within each combination of the others.

    `key` is the place of the key, `frames` from how many groups before its own to how many behind it each sum reaches
    (None: all), in ascending order. `cells`: whether it shows numbers of single groups too.
    """

    key: int
    frames: tuple[tuple[int | None, int | None], ...]
    cells: bool


@by_slots
@dataclass(frozen=True, slots=True)
class Core:
    """One private aggregation: rows of `sources` that satisfy `where`, grouped by `keys`.

    `keys` and `aggregates` are in canonical order and named k0, k1 ... and a0, a1 ..., so that two texts of one
    question give equal cores. With a `choice` there are no aggregates.

    `met` are parts of `where` that an outer join says of rows which meet: a public row that meets nobody is a group
    all the same, so they rule out no group (sql_rewrite/preserved.py).
    """

    name: str
    sources: tuple[Source, ...]
    where: Expression | None
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[Aggregate, ...]
    choice: Chosen | None = None
    levels: tuple[tuple[int, ...], ...] = ()
    """The levels of groups that the outer query reads, each as the places of its keys; none where the finest alone."""
    running: Running | None = None
    """The sums over neighbouring groups that the outer query reads; None where none were found."""
    counted: bool = False
    """Whether counts bound a unit with very many rows in hidden groups: a norm over them all would take too long."""
    met: tuple[Expression, ...] = ()
    quantiles: QuantileMechanism | None = None
    """By which mechanism its quantiles are asked for; None for the one that fits."""
    atoms: str | None = None
    """The key over whose values a unit's rows are bounded together: sql_rewrite/atoms.py. None where it has none."""


@by_slots
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
    total: tuple[str, str, int] | None = None
    """Of a computed column that adds up so many numbers of one column of a core, each of another row: these three."""


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
class Kept:
    """A comparison of a column of a released table with a number, which NULL does not fulfil."""

    column: str
    operator: str
    """As SQL writes it: `=`, `<>`, `<`, `<=`, `>`, `>=`."""
    number: int | float


@dataclass(frozen=True, slots=True)
class FilteredArrangement(Arrangement):
    """An arrangement of the rows that fulfil all comparisons. A class of its own: other lists keep their names."""

    kept: tuple[Kept, ...]


@by_slots
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


@by_slots
@dataclass(frozen=True, slots=True)
class Plan:
    """A query after the lift: what touches rows, and what happens to the released numbers afterwards.

    `warnings` are about the text itself; `plan_warnings` adds what follows from the cores.
    `counting` is what depends on the number of groups. `nonempty` names for each core the aggregate that counts all its
    rows, by which empty groups are left out; it is empty when the request does not ask for that. `public` are the
    public tables that the shell reads. `stages` names each core that reads released numbers, and the cores before it
    that release them; `lists` names lists of groups that such cores read: of which core, and what is done to its table.
    `unshown` are the cores that later stages alone read.
    """

    dataset: Dataset
    cores: tuple[Core, ...]
    shell: Shell
    warnings: tuple[Finding, ...] = ()
    counting: tuple[Counting, ...] = ()
    nonempty: tuple[tuple[str, str], ...] = ()
    public: tuple[PublicRelation, ...] = ()
    stages: tuple[tuple[str, tuple[str, ...]], ...] = ()
    lists: tuple[tuple[str, str, Arrangement], ...] = ()
    unshown: tuple[str, ...] = ()
    chosen: bool = False
    """Whether a choice of keys stands for counts, which would answer the query as well (choices.py)."""
