"""The shapes of a statement: layers of named columns, each over the one before, which a dialect writes as text.

A layer is a node as a value is one (sql_rewrite/scalars.py): it says which rows and columns it has, not how an
engine computes them. The values that only layers have are in layer_values.py. Names of columns are ours: `u` is a
unit's dense number, `d` its secret draw, `s` the salt of hidden keys; `k0`, `k1` are keys.
"""

from __future__ import annotations

from sql_rewrite.scalars import Column, Node, Scalar, node
from sql_rewrite.window_nodes import OrderedBy, Placed, PlacedName, RowFrame, WithinUnit

__all__ = [
    "Appended",
    "BesideNobody",
    "Binned",
    "Blocked",
    "CalledRows",
    "ChosenGroups",
    "ChosenValues",
    "ComputedOnce",
    "ConstantRows",
    "Extended",
    "Grouped",
    "HiddenKey",
    "JoinOn",
    "JoinedSources",
    "Kept",
    "Listed",
    "LoweredSource",
    "Masked",
    "Merged",
    "OrderedBy",
    "Output",
    "Placed",
    "PlacedName",
    "Projected",
    "Relation",
    "RowFrame",
    "RowsSource",
    "Salted",
    "SharedRows",
    "SquaredTotal",
    "SquaredTotals",
    "TableRows",
    "TableSource",
    "Unfolded",
    "UnitFactors",
    "UnitTotals",
    "WithTotals",
    "WithinUnit",
]


class Relation(Node):
    """A layer of a statement."""

    __slots__ = ()


@node
class Output:
    """A column that a layer makes."""

    value: Scalar
    name: str


@node
class JoinOn:
    """A join of equal values, those of `also` included, where the comparisons `beside` are true as well.

    `outer` keeps rows without a partner. With `alike` NULL equals NULL.
    """

    child: Scalar
    parent: Column
    outer: bool
    also: tuple[tuple[Column, Column], ...] = ()
    beside: tuple[Scalar, ...] = ()
    alike: bool = False


@node
class TableSource:
    """A stored table under the name that columns refer to it by. The first source of a statement has no join; another
    one without a join meets every row of those before it."""

    table: str
    relation: str
    join: JoinOn | None


@node
class RowsSource:
    """Rows that the statement computes, under the name that columns refer to them by."""

    rows: Relation
    relation: str
    join: JoinOn | None


@node
class JoinedSources:
    """Sources that are joined to one another before they are joined to others: `join` is of columns of any of them."""

    sources: tuple[LoweredSource, ...]
    join: JoinOn | None


LoweredSource = TableSource | RowsSource | JoinedSources
"""What a layer of rows reads."""


@node
class TableRows(Relation):
    """One row for each row of the joined sources that meets the condition."""

    outputs: tuple[Output, ...]
    sources: tuple[LoweredSource, ...]
    where: Scalar | None


@node
class BesideNobody(Relation):
    """The rows in which no key is NULL, and a row of nobody: these values, and NULL in all other columns."""

    rows: Relation
    keys: tuple[str, ...]
    nobody: tuple[Output, ...]


@node
class ConstantRows(Relation):
    """Rows of constants, with these names of their columns."""

    names: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]


@node
class Appended(Relation):
    """The rows of all parts, each as often as the parts have it. The parts have the same columns, of the same types."""

    parts: tuple[Relation, ...]


@node
class SharedRows(Relation):
    """The rows of a table that statements share (privacy/statement.py), with its columns."""

    table: str


@node
class CalledRows(Relation):
    """The rows that a `ComputedOnce` around this relation calls so, with their columns."""

    name: str


@node
class ComputedOnce(Relation):
    """What `made` makes of rows that it reads several times, as `CalledRows` of that name: they are computed once."""

    rows: Relation
    name: str
    made: Relation


@node
class ChosenGroups(Relation):
    """The rows of at most `groups` groups of each unit, chosen by a hash that is keyed with the unit's draw.

    The choice is a function of the unit's own rows and its draw alone: groups are ranked by the hash of draw and keys,
    with the keys themselves as tie-break, because two keys with one hash must not share a rank. The rows may be grouped
    by unit and keys before: which keys a unit has is all that is ranked. Those in `texts` are ranked as texts, whatever
    they are stored as.
    """

    rows: Relation
    keys: tuple[str, ...]
    groups: int
    texts: tuple[str, ...] = ()


@node
class ChosenValues(Relation):
    """The rows of at most `values` values of each unit and group, and of `total` of each unit (None: of all).

    The rows are one for each unit, group and value; those whose value is NULL are left out. Values are ranked by a hash
    that is keyed with the unit's draw, with the values themselves as tie-break, so that the choice is a function of the
    unit's own values and its draw alone. However ranks come about, no more rows of a unit are left.
    """

    rows: Relation
    keys: tuple[str, ...]
    value: str
    values: int
    total: int | None


@node
class Merged(Relation):
    """The rows of several relations, each with the keys and with columns of its own, NULL in rows of the others."""

    parts: tuple[tuple[Relation, tuple[str, ...]], ...]
    keys: tuple[str, ...]
    names: tuple[str, ...]
    placed: tuple[str, ...] = ()
    """Those of the names that are numbers by place (`PlaceCounts`); all others are sums."""


@node
class HiddenKey:
    """A key whose values are not public: a unit may have chosen all of its own."""

    name: str
    text: bool
    whole: bool = False
    """Whether it is an INTEGER."""


@node
class Masked(Relation):
    """The rows with a whole number in place of the one in this column, by a number that is drawn for each run.

    Twice gives the rows. The place of a group cannot be computed in advance (sql_rewrite/masked_keys.py says why).
    """

    rows: Relation
    name: str


@node
class Salted(Relation):
    """The rows with a column that follows from their hidden keys and a number that is drawn for each run.

    With it as one more key, the place of a group cannot be computed in advance (sql_rewrite/lower.py says why).
    """

    rows: Relation
    keys: tuple[HiddenKey, ...]
    name: str = "s"


@node
class Blocked(Relation):
    """The rows with the block of their unit, a number below `blocks`, in a column of this name.

    A keyed hash of the unit's secret draw `d`, whose key is drawn for each run: of the unit alone, never of its place
    among others, so that a unit that is added moves nobody to another block.
    """

    rows: Relation
    blocks: int
    name: str


@node
class Grouped(Relation):
    """One row for each group: the columns `shown` of the keys `by`, and aggregates. Without keys one row in all."""

    rows: Relation
    alias: str
    shown: tuple[str, ...]
    by: tuple[str, ...]
    outputs: tuple[Output, ...]
    small: bool = False
    """Whether the only key is a `SmallPlace`: then its type says how many groups there may be."""
    hidden: bool = False
    """Whether the keys are hidden, and so salted or masked."""


@node
class Listed(Relation):
    """One row for each row and each of the columns: the number of the column as `k0`, and its value as `k1`."""

    rows: Relation
    alias: str
    columns: tuple[str, ...]


@node
class WithTotals(Relation):
    """The rows, one for each unit and group, with totals of the unit over all its groups.

    The totals are NULL for units that are not beyond the limit. They are aggregates of 64 bits.
    """

    rows: Relation
    totals: tuple[Output, ...]
    limit: int


@node
class Extended(Relation):
    """The rows with more columns."""

    rows: Relation
    alias: str
    outputs: tuple[Output, ...]


@node
class Unfolded(Relation):
    """Of each row as many as there are values, each with one of them, which all have one type."""

    rows: Relation
    alias: str
    values: tuple[Scalar, ...]
    name: str


@node
class Projected(Relation):
    """The rows with these columns alone."""

    rows: Relation
    alias: str
    outputs: tuple[Output, ...]


@node
class Kept(Relation):
    """The rows that meet a condition (all of them without one), with these columns alone."""

    rows: Relation
    alias: str
    where: Scalar | None
    outputs: tuple[Output, ...]


@node
class UnitTotals(Relation):
    """The rows, one for each unit and group, with sums over all groups of the unit."""

    rows: Relation
    alias: str
    outputs: tuple[Output, ...]


@node
class SquaredTotal:
    """A sum of whole numbers that are not negative, NULL left out; with `one` each of them is 1, or NULL.

    With `wide` the square of the unit's whole sum may be of 128 bits.
    """

    value: Scalar
    name: str
    one: bool
    wide: bool


@node
class SquaredTotals(Relation):
    """One row for each unit: of each total the sum over the unit's cells, by the keys, of the squares of its sums.

    With `whole` there is one key, an INTEGER. With `null` too, the last six bits of any two keys are different, and
    NULL, if there is one, has these.
    """

    rows: Relation
    keys: tuple[str, ...]
    totals: tuple[SquaredTotal, ...]
    whole: bool
    null: int | None = None


@node
class UnitFactors(Relation):
    """The rows with these columns of their units: `units` has one row of each, or none, and then leaves its rows out.

    With `by` one row for each unit and group, by the columns of these names, which may be NULL. With `usual`, a number
    for each name, every row has a unit of `units`, and only units with another number are looked up.
    """

    rows: Relation
    units: Relation
    names: tuple[str, ...]
    by: tuple[str, ...] = ()
    usual: tuple[int, ...] = ()


@node
class Binned(Relation):
    """One row for each bin that occurs, with the number of units in it, for each of several columns of bins.

    `columns` are pairs: a column of bins, NULL for units that are in none, and the name of the numbers of units.
    `alike` is the column that has of how many units a row is, None where each row is of one.
    """

    units: Relation
    bin: str
    columns: tuple[tuple[str, str], ...]
    alike: str | None = None
