"""The shape of a dataset file. The published JSON Schema is made from these classes.

What needs more than one value to judge (names that must exist, ways to the privacy unit, bounds that are reversed) is
in `check`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    Tag,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from engines.table_source import DateOrder, DecimalMark, Encoding, SourceFormat, ThousandsMark
from privacy.bounds import BOUND_MAX
from privacy.policy import LENGTH_MAX_DEFAULT, LENGTH_MAX_MOST, ROWS_STORED_DEFAULT, ROWS_STORED_MOST, ColumnType
from privacy.values import Json
from server.datasets.identifiers import IDENTIFIER

__all__ = [
    "VERSION",
    "ColumnFile",
    "ContributionFile",
    "DatasetFile",
    "KeysList",
    "KeysOfTable",
    "KeysRange",
    "PolicyFile",
    "SourceFile",
    "StatisticFile",
    "TableFile",
    "UnitFile",
]

VERSION = 2
"""The version of dataset files that this server writes. Files of version 1 are read too."""


Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER)]
Text = Annotated[str, StringConstraints(max_length=2_000)]
Amount = Annotated[
    str,
    StringConstraints(max_length=60),
    WithJsonSchema({"type": "string", "pattern": r"^\+?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?$"}),
]
Number = int | Decimal
_DECIMAL_PATTERN = r"^[-+]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,2})?$"
_DECIMAL = re.compile(_DECIMAL_PATTERN[:-1] + r"\Z", re.ASCII)


def _number(value: object) -> Number:
    """An exact finite number. A float (from JSON) is the decimal that it is written as; a decimal may be text."""
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, str) and _DECIMAL.match(value):
        value = Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise PydanticCustomError("number_type", "must be a number")
    if isinstance(value, Decimal) and not value.is_finite():
        raise PydanticCustomError("finite_number", "must be a finite number")
    return value


def _bound_end(value: object) -> Number | str:
    """An end of value bounds: a number, or a date or timestamp as text."""
    if isinstance(value, str) and _MOMENT.match(value):
        return value
    return _number(value)


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]{5,15})?\Z", re.ASCII)
_NUMBER_SCHEMAS: list[Json] = [{"type": "number"}, {"type": "string", "pattern": _DECIMAL_PATTERN}]
BoundField = Annotated[
    Number | str,
    PlainValidator(_bound_end),
    PlainSerializer(lambda value: value if isinstance(value, int) else str(value), when_used="json"),
    WithJsonSchema({"anyOf": [*_NUMBER_SCHEMAS, {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"}]}),
]
Word = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Bound = Annotated[int, Field(ge=1, le=BOUND_MAX)]
Key = str | int | bool | None
TypeName = Literal["integer", "number", "text", "boolean", "date", "timestamp"]
assert set(TypeName.__args__) == {kind.value for kind in ColumnType}  # type: ignore[attr-defined]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class UnitFile(_Part):
    """Whose presence is protected: the rows of a table that share one value of its key, or each row by itself."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["key"]}, {"required": ["rows"], "properties": {"rows": {"const": True}}}]
        }
    )

    table: Identifier = Field(description="The protected table of the units.")
    key: Identifier | None = Field(default=None, description="The column that names the unit.")
    rows: bool = Field(
        default=False,
        description="True, in place of key, when no column names the unit and each row is one: one person, one row.",
    )


class SourceFile(_Part):
    """Where a table's rows are read from when the dataset is attached."""

    model_config = ConfigDict(populate_by_name=True)

    file: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] = Field(
        description="Path of the file, relative to the dataset file; or a folder, or a pattern such as "
        "visits/*.parquet, whose files are the parts of one table."
    )
    format: SourceFormat | None = Field(
        default=None,
        description="Kind of file; by default from its suffix (.csv, .csv.gz, .tsv, .parquet, .duckdb, .db).",
    )
    table: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = Field(
        default=None, description="Table inside a DuckDB file; by default the name of this table."
    )
    decimal: DecimalMark = Field(default=".", description="Decimal mark of numbers that are written as text.")
    dates: DateOrder = Field(default="YYYY-MM-DD", description="How days are written as text.")
    encoding: Encoding = Field(default="utf-8", description="Encoding of a CSV file.")
    nulls: Annotated[list[Word], Field(max_length=20)] = Field(
        default_factory=list,
        description='Cells of a CSV file that are missing values besides empty ones, such as "NA".',
    )
    thousands: ThousandsMark | None = Field(
        default=None, description="Mark between groups of three digits in numbers that are written as text."
    )
    true_words: Annotated[list[Word], Field(max_length=20)] = Field(
        default_factory=list, alias="true", description="Words that mean true, in place of true, t, yes, y and 1."
    )
    false_words: Annotated[list[Word], Field(max_length=20)] = Field(
        default_factory=list, alias="false", description="Words that mean false, in place of false, f, no, n and 0."
    )
    zone: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_+/-]{0,63}$")] | None = Field(
        default=None,
        description="Time zone, such as Europe/Berlin or UTC, whose days and clock moments with a time zone get.",
    )


_OTHER = Field(
    default=None,
    description="Group in which rows count whose value is none of the keys. Without it such a row refuses the data.",
)


class KeysList(_Part):
    """Listed values, and the group of all others."""

    values: Annotated[list[Key], Field(min_length=1)] = Field(description="The keys.")
    other: Key = _OTHER


class KeysRange(_Part):
    """All whole numbers or days from the first to the last, both included."""

    range: Annotated[list[int | str], Field(min_length=2, max_length=2)] = Field(
        description='First and last value: whole numbers, or days as "2024-12-31".'
    )
    other: Key = _OTHER


class KeysOfTable(_Part):
    """The values of a column of a public table."""

    table: Identifier = Field(description="A public table of this dataset.")
    column: Identifier = Field(description="Its column.")
    other: Key = _OTHER


def _kind_of_keys(value: object) -> str | None:
    if isinstance(value, list):
        return "list"
    if isinstance(value, KeysList) or (isinstance(value, dict) and "values" in value):
        return "values"
    if isinstance(value, dict) and ("range" in value or not value.keys() & {"table", "column"}):
        return "range"
    if isinstance(value, KeysRange):
        return "range"
    if isinstance(value, dict | KeysOfTable):
        return "table"
    return None


Keys = Annotated[
    Annotated[Annotated[list[Key], Field(min_length=1)], Tag("list")]
    | Annotated[KeysList, Tag("values")]
    | Annotated[KeysRange, Tag("range")]
    | Annotated[KeysOfTable, Tag("table")],
    Discriminator(
        _kind_of_keys,
        custom_error_type="keys_shape",
        custom_error_message="must be a list of values, {values: [...]}, {range: [first, last]} or "
        "{table: ..., column: ...}",
    ),
]


class ColumnFile(_Part):
    """One column: its type and what is declared about its values. Never read from rows."""

    source_name: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] | None = Field(
        default=None,
        description="Name of the column in the data file, where it is another one than here.",
    )
    type: TypeName = Field(description="Type of the values; verified when the data is attached.")
    bounds: Annotated[list[BoundField], Field(min_length=2, max_length=2)] | None = Field(
        default=None,
        description="Lowest and highest value to which values are clipped: numbers, or dates and timestamps as text. "
        "Needed by SUM, AVG and VAR, also of differences between dates.",
    )
    keys: Keys | None = Field(
        default=None,
        description="Group values known without the data. Without them, groups are shown above a threshold only.",
    )
    nullable: bool = Field(default=True, description="False when every row has a value; verified.")
    length_max: Annotated[int, Field(ge=1, le=LENGTH_MAX_MOST)] | None = Field(
        default=None,
        description=f"Most characters of a text, {LENGTH_MAX_DEFAULT:,} by default. Longer ones are cut when the data "
        "is attached, those that name units or rows are refused. What texts may cost decides how soon answers appear.",
    )
    unique: bool = Field(
        default=False,
        description="True when no two rows have the same value, an e-mail address for instance; verified.",
    )
    description: Text = Field(default="", description="Shown to analysts.")


class ContributionFile(_Part):
    """How much one privacy unit may take part in an answer about this table. Beyond it, its share is scaled down."""

    rows_per_unit: Bound = Field(description="Rows of one unit that count in any answer, over all its groups together.")
    groups_per_unit: Bound = Field(description="Groups in which one unit counts.")
    rows_per_unit_and_group: Bound = Field(description="Rows of one unit that count in one group.")


AUTO = "auto"
"""The word for bounds that each question chooses."""


def _kind_of_contribution(value: object) -> str:
    return "auto" if isinstance(value, str) else "bounds"


Contribution = Annotated[
    Annotated[Literal["auto"], Tag("auto")] | Annotated[ContributionFile, Tag("bounds")],
    Discriminator(_kind_of_contribution),
]


class TableFile(_Part):
    """One table. Protected unless it is declared public; a table that is not listed does not exist."""

    source: SourceFile
    public: bool = Field(default=False, description="True when everybody may know every row.")
    key: Identifier | None = Field(default=None, description="The column whose values are unique; verified.")
    references: dict[Identifier, Annotated[str, StringConstraints(max_length=127)]] = Field(
        default_factory=dict, description='Columns that hold the key of another table: "table.column".'
    )
    unit_via: Identifier | None = Field(
        default=None, description="The reference that leads to the privacy unit, when more than one does."
    )
    contribution: Contribution | None = Field(
        default=None,
        description="Needed where one unit may have many rows: auto, or bounds. With auto, where groups are public, "
        "each question chooses from the data how much of one unit counts, at a small part of its price.",
    )
    rows_stored_per_unit: Annotated[int, Field(ge=1, le=ROWS_STORED_MOST)] | None = Field(
        default=None,
        description="Most rows of one unit that are kept when the data is attached, by a keyed choice; "
        f"{ROWS_STORED_DEFAULT:,} by default, or rows_per_unit where that is more. The more there may be, the later "
        "answers appear.",
    )
    rows_expected: Annotated[int, Field(ge=1, le=2**40)] | None = Field(
        default=None,
        description="About how many rows the table has, where everybody may know that. It sets the moment at which "
        "answers appear, and nothing else.",
    )
    columns: Annotated[dict[Identifier, ColumnFile], Field(min_length=1, max_length=1_000)]
    description: Text = Field(default="", description="Shown to analysts.")


def sharing_word(value: object) -> object:
    """YAML reads a bare no as false, and files of version 1 say true for what is called free now."""
    if isinstance(value, bool):
        return "free" if value else "no"
    return value


class PolicyFile(_Part):
    """What one query may ask. Amounts of epsilon and delta are decimals written as text."""

    epsilon_default: Amount = Field(
        default="0.1", description="Epsilon of a query that names neither accuracy nor spend."
    )
    epsilon_max: Amount = Field(default="1", description="Largest epsilon of one query.")
    epsilon_min: Amount | None = Field(
        default=None,
        description="Least epsilon of the dataset's root that an answer takes which reads rows. Default: a share that "
        "affords 100,000 of them.",
    )
    delta_per_query: Amount = Field(
        default="0.000000001", description="Delta of one query where its mechanisms need one."
    )
    cells_max: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=100_000, description="Most groups of an answer with public keys."
    )
    statistics_max: Annotated[int, Field(ge=1, le=256)] = Field(default=32, description="Most statistics of one query.")
    timeout_seconds: Annotated[int, Field(ge=1, le=3_600)] = Field(default=30, description="Longest run of one query.")
    releases_shared: Annotated[Literal["no", "charged", "free"], BeforeValidator(sharing_word)] = Field(
        default="no",
        description="Whether analysts are served by one another's releases: no; charged to the reader's own accounts; "
        "or free, and then a personal limit does not bound what the person reads. Reveals that somebody asked.",
    )
    automatic_bounds: bool = Field(
        default=True,
        description="Whether a question may choose the value bounds of columns that have none, from a noisy histogram "
        "of their values that it pays for; without it such sums and averages are refused.",
    )


class StatisticFile(_Part):
    """A statistic that is asked by name, with propose-test-release: one number of one table."""

    sql: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] = Field(
        description="One SELECT of a quantile, of a sum or difference of two, or of MODE, from one table, with a "
        "condition or without. What else it is, is refused with the reason."
    )
    description: Text = Field(default="", description="Shown to those who may ask it.")
    analysts: bool = Field(
        default=True, description="Whether analysts may ask it; without it owners and administrators alone."
    )
    rows_per_unit: Bound | None = Field(
        default=None,
        description="Rows of one unit that count, in place of the table's contribution; needed where that is auto.",
    )


class DatasetFile(_Part):
    """A dataset: its tables, its privacy unit, and the limits of its queries."""

    version: Literal[1, 2] = Field(
        default=1, description="Version of the file's format; a file without it is of version 1."
    )
    dataset: Identifier = Field(description="Name of the dataset.")
    description: Text = Field(default="", description="Shown to analysts.")
    unit: UnitFile
    unit_space: Identifier | None = Field(
        default=None,
        description="Name of what the units are, where other datasets have the same ones: their budgets then hang "
        "below one root. By default the dataset's own name, which shares nothing.",
    )
    tables: Annotated[dict[Identifier, TableFile], Field(min_length=1, max_length=200)]
    policy: PolicyFile = PolicyFile()
    statistics: Annotated[dict[Identifier, StatisticFile], Field(max_length=200)] = Field(
        default_factory=dict, description="Statistics that are asked by name."
    )
