"""What a data owner declares about a dataset: tables, columns, the privacy unit, bounds and limits.

Everything here is public to the analysts of the dataset. Nothing here is read from rows.
"""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field, replace
from fractions import Fraction

from privacy.bounds import AskedContribution, AutomaticContribution, ContributionBound, ValueBounds
from privacy.public_rows import PublicRows
from privacy.stored_norms import KeptTotal
from privacy.unit import Neighbouring, PrivacyUnit

__all__ = [
    "LENGTH_MAX_DEFAULT",
    "LENGTH_MAX_MOST",
    "ROWS_STORED_DEFAULT",
    "ROWS_STORED_MOST",
    "Column",
    "ColumnType",
    "Dataset",
    "KeyValue",
    "Limits",
    "Other",
    "OwnStatistic",
    "PublicKeys",
    "Reference",
    "Sharing",
    "Table",
    "key_as_json",
]

LENGTH_MAX_DEFAULT = 1_000
"""Most characters of a stored text where nothing is declared."""

LENGTH_MAX_MOST = 1_000_000

ROWS_STORED_DEFAULT = 1_000
"""Most rows of one unit that a snapshot keeps of a table where nothing is declared (`rows_per_unit`, if that is more).

A plain question about a table with this limit costs less than a millisecond for all rows of one unit (0.3 microseconds
each, doubled for safety), which makes its tick some six milliseconds; with 10,000 rows answers would take 100 ms.
"""

ROWS_STORED_MOST = 2**30

KeyValue = str | int | bool | datetime.date | datetime.datetime | None
"""A group value as it appears in answers. NULL is a value of its own."""


def key_as_json(value: KeyValue) -> str | int | bool | None:
    """A group value as JSON holds it: dates and timestamps as ISO text."""
    return value.isoformat() if isinstance(value, datetime.date | datetime.datetime) else value


_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def _folded(name: str) -> str:
    """The name with ASCII letters in lower case; other letters keep their case, as in the SQL dialect."""
    return name.lower() if name.isascii() else name.translate(_LOWER)


class ColumnType(enum.Enum):
    """Types of the query language; the value is the word in dataset files. Snapshots store exactly these."""

    INTEGER = "integer"
    NUMBER = "number"  # finite
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"  # 0001-01-01 to 9999-12-31
    TIMESTAMP = "timestamp"  # without zone, same years

    @property
    def sql(self) -> str:
        """The type's name in queries and answers."""
        return _SQL_AND_PYTHON[self][0]

    @property
    def python(self) -> tuple[type, ...]:
        """The types that its values have here; True is not an integer."""
        return _SQL_AND_PYTHON[self][1]


_SQL_AND_PYTHON: dict[ColumnType, tuple[str, tuple[type, ...]]] = {
    ColumnType.INTEGER: ("BIGINT", (int,)),
    ColumnType.NUMBER: ("DOUBLE", (float, int)),
    ColumnType.TEXT: ("VARCHAR", (str,)),
    ColumnType.BOOLEAN: ("BOOLEAN", (bool,)),
    ColumnType.DATE: ("DATE", (datetime.date,)),
    ColumnType.TIMESTAMP: ("TIMESTAMP", (datetime.datetime,)),
}


@dataclass(frozen=True, slots=True)
class Other:
    """The group value in which rows count whose value is none of the public keys. It may be NULL."""

    value: KeyValue


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """Group values known without looking at rows, in the order in which answers list them, without repeats.

    Without `other` it was verified when the data was attached that every value is one of them or NULL. NULL is a
    group value of every column that is not declared `nullable: false`, listed or not.
    """

    values: tuple[KeyValue, ...]
    other: Other | None = None

    def __post_init__(self) -> None:
        assert self.values, "public keys need at least one value"
        assert len(set(self.values)) == len(self.values), "public keys repeat a value"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type and what is declared about its values.

    `length_max` is the most characters of a stored text; None is the default. Snapshots keep no longer ones.
    `keys_from` names a public table and its column: every value is one of theirs, which is verified when the data is
    attached, before `keys` can be known. No two rows of a `unique` column have the same value, which is verified too.
    """

    name: str
    type: ColumnType
    bounds: ValueBounds | None = None
    keys: PublicKeys | None = None
    nullable: bool = True
    description: str = ""
    length_max: int | None = None
    keys_from: tuple[str, str] | None = None
    unique: bool = False

    def __post_init__(self) -> None:
        assert self.length_max is None or 1 <= self.length_max <= LENGTH_MAX_MOST

    @property
    def length_stored(self) -> int:
        """The most characters of a text that a snapshot keeps of this column.

        Listed keys keep their length. Where other values have a group of their own, longer texts are cut, though never
        to one of the keys.
        """
        longest = LENGTH_MAX_DEFAULT if self.length_max is None else self.length_max
        if self.keys is None:
            return longest
        listed = max((len(value) for value in self.keys.values if isinstance(value, str)), default=0)
        return listed if self.keys.other is None else max(longest, listed + 1)


@dataclass(frozen=True, slots=True)
class Reference:
    """A declared many-to-one reference: `column` of this table holds `key`, the unique key of `table`."""

    column: str
    table: str
    key: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table. A protected table is owned by privacy units; a public table is known to everybody.

    `unit_path` is empty when the table holds the unit's key itself in `unit_column`, or when its rows are the units
    (then there is no such column); otherwise it is the chain of references that leads to a table which does.
    Snapshots resolve the chain once: every protected table stores its rows' unit as `snapshot unit` columns, see
    engines/snapshot.py.

    `rows_stored_per_unit` is the most rows of one unit that a snapshot keeps (None: the default, see `rows_stored`);
    `rows_expected` is about how many rows the table has, as far as the owner says so in public. It sets the moment at
    which answers appear, and nothing else.

    `stored_norms` are the columns by which the snapshot keeps the squares of each unit's rows (see stored_norms.py);
    None where it keeps no norms: an older snapshot, or a table of which a unit has one row. No number depends on it,
    nor on `stored_totals`, the totals that it keeps beside them, and on `stored_units`: whether it keeps units' tables.

    `drawn` identifies a synthetic table, which is public and in no snapshot: outer queries read it, and nothing else.
    """

    name: str
    columns: tuple[Column, ...]
    protected: bool
    key: str | None = None
    references: tuple[Reference, ...] = ()
    unit_column: str | None = None
    unit_path: tuple[Reference, ...] = ()
    contribution: ContributionBound | AutomaticContribution | None = None
    description: str = ""
    rows_stored_per_unit: int | None = None
    rows_expected: int | None = None
    stored_norms: tuple[str, ...] | None = None
    drawn: str | None = None
    stored_totals: tuple[KeptTotal, ...] = ()
    stored_units: bool = False

    def __post_init__(self) -> None:
        assert self.drawn is None or not self.protected
        names = [column.name.lower() for column in self.columns]
        assert len(set(names)) == len(names), "column names repeat"
        assert not self.protected or self.contribution is not None

    @property
    def rows_stored(self) -> int:
        """The most rows of one unit in a snapshot; for a public table, whose rows belong to nobody, one."""
        if self.contribution is None or self.one_row:
            return 1
        if self.rows_stored_per_unit is not None:
            return self.rows_stored_per_unit
        assert self.counted is not None
        return max(ROWS_STORED_DEFAULT, self.counted.rows_per_unit)

    @property
    def counted(self) -> ContributionBound | None:
        """The bounds that hold where groups are hidden, or everywhere unless questions choose; None: a public table."""
        if isinstance(self.contribution, AutomaticContribution):
            return self.contribution.counted
        return self.contribution

    @property
    def one_row(self) -> bool:
        """Whether each unit owns at most one row, as the attach verified: the rows are the units, or the table's unique
        key is the column that holds the unit's key. A contribution bound of one row is something else.
        """
        if not self.protected or self.unit_path:
            return False
        if self.unit_column is None:
            return True
        return self.key is not None and _folded(self.key) == _folded(self.unit_column)

    def column(self, name: str) -> Column | None:
        """The column of that name (ASCII case does not matter), or None."""
        for column in self.columns:
            if column.name == name:
                return column
        folded = _folded(name)
        for column in self.columns:
            own = column.name
            if (own.lower() if own.isascii() else _folded(own)) == folded:
                return column
        return None


class Sharing(enum.Enum):
    """Whether an analyst is served by a release that another one paid for."""

    NO = "no"
    """Only by their own releases."""

    CHARGED = "charged"
    """For a charge to the reader's own accounts: everybody's limit bounds what they read, and the root pays once."""

    FREE = "free"
    """For free: then an analyst's own limit does not bound what they read. Only the root's limit does."""

    @property
    def said(self) -> str:
        """What it means, in a sentence for people."""
        return _SHARING_SAID[self]


_SHARING_SAID = {
    Sharing.NO: "Releases are not shared: an analyst is served by their own releases only.",
    Sharing.CHARGED: "Releases are shared for a charge: whoever reads what another analyst paid for is charged on "
    "their own accounts below the first one that both have in common, so a personal limit bounds what they read.",
    Sharing.FREE: "Releases are shared for free: a personal limit does not bound what the person reads, only the "
    "root's limit does.",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query of this dataset may ask. Amounts of epsilon and delta are exact.

    `epsilon_min` is the least that a fresh run takes, in epsilon of the dataset's root; None for a share of the root
    (server/floor.py). With `automatic_bounds` questions choose the bounds of columns that have none.
    """

    epsilon_default: Fraction = Fraction(1, 10)
    epsilon_max: Fraction = Fraction(1)
    epsilon_min: Fraction | None = None
    delta_per_query: Fraction = Fraction(1, 10**9)
    cells_max: int = 100_000
    statistics_max: int = 32
    timeout_seconds: int = 30
    releases_shared: Sharing = Sharing.NO
    automatic_bounds: bool = False


@dataclass(frozen=True, slots=True)
class OwnStatistic:
    """A statistic that the owner registered by name: one number of one table, asked with propose-test-release.

    `contribution` is how much of one unit counts, in place of what the table declares. `analysts` says whether analysts
    may ask it, or owners and administrators alone.
    """

    name: str
    sql: str
    description: str = ""
    analysts: bool = True
    contribution: AskedContribution | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset as analysts see it, at one version of its policy and one version of its data.

    `public` is what is known of the rows of its public tables; it follows from the version of the data. `unit_space` is
    declared where its units are those of other datasets too.
    """

    name: str
    unit: PrivacyUnit
    tables: tuple[Table, ...]
    policy_version: int
    data_version: str
    neighbouring: Neighbouring = Neighbouring.ADD_REMOVE
    limits: Limits = field(default_factory=Limits)
    description: str = ""
    public: PublicRows | None = field(default=None, compare=False, repr=False)
    statistics: tuple[OwnStatistic, ...] = ()
    unit_space: str | None = None

    @property
    def space(self) -> str:
        """The unit space: datasets about the same units name the same one, and share one root account."""
        return self.unit_space or self.name

    @property
    def version(self) -> str:
        """The versions of policy and data, as answers name them."""
        return f"{self.policy_version}:{self.data_version}"

    @property
    def drawn(self) -> tuple[str, ...]:
        """The synthetic tables that stand beside those of its data."""
        return tuple(table.drawn for table in self.tables if table.drawn is not None)

    def table(self, name: str) -> Table | None:
        """The table of that name (ASCII case does not matter), or None."""
        folded = _folded(name)
        return next((table for table in self.tables if _folded(table.name) == folded), None)

    def statistic(self, name: str) -> OwnStatistic | None:
        """The registered statistic of that name (ASCII case does not matter), or None."""
        folded = _folded(name)
        return next((one for one in self.statistics if _folded(one.name) == folded), None)

    def bounded_by(self, asked: AskedContribution | None) -> Dataset:
        """The dataset under the contribution bounds of a request.

        Tables in which each unit has one row stay as they are, and no table stores more rows of a unit than it did.
        """
        if asked is None:
            return self
        return replace(self, tables=tuple(_bounded(table, asked) for table in self.tables))


def _bounded(table: Table, asked: AskedContribution) -> Table:
    if table.contribution is None or table.one_row:
        return table
    bound = asked.over(table.contribution)
    if bound == table.contribution:
        return table
    return replace(table, contribution=bound, rows_stored_per_unit=table.rows_stored)
