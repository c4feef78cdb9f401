"""What goes over the wire: models of requests, which are enforced, and of answers, which are documentation.

Requests: strict, no unknown fields, amounts as decimal text only. Answers are built as plain objects by the routes;
the models below give the OpenAPI document its schemas and the tests something to compare with.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from accountant.filter import DELTA_MAX, EPSILON_MAX
from privacy.bounds import BOUND_MAX, AskedContribution
from privacy.numbers import ATTO, PICO, parse_decimal
from server.administration.budgets import REASON_MAX
from server.body import NOT_TEXT
from server.roles import Role

__all__ = [
    "ANSWERS",
    "REQUESTS",
    "BudgetBody",
    "BudgetChangeBody",
    "DatasetBody",
    "KeyBody",
    "LimitBody",
    "PrincipalBody",
    "PrincipalChangeBody",
    "QueryBody",
    "RequestModel",
]

HALF_WIDTH_MAX = Fraction(10**18)
CONFIDENCE_MIN = Fraction(1, 2)
CONFIDENCE_MAX = Fraction(999_999, 1_000_000)
CONFIDENCE_DEFAULT = Fraction(95, 100)
WAIT_MS_MAX = 30_000
WAIT_MS_DEFAULT = 10_000
SQL_LENGTH_MAX = 65_536

NAME_PATTERN = r"^[a-z][a-z0-9_.-]{0,62}$"
DATASET_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.-]{0,62}$"
ACCOUNT_PATTERN = r"^[A-Za-z0-9_.-]{1,80}$"
PARAMETER_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"


class RequestModel(BaseModel):
    """A part of a request: strict types, no unknown fields, no NaN, immutable."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True, validate_default=False
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        """An optional field that is null is one that is absent. Programs that fill in whole objects send both."""
        if not isinstance(value, dict):
            return value
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: part for name, part in value.items() if part is not None or name not in optional}


def _amount(name: str, *, maximum: Fraction, unit: Fraction, zero_allowed: bool = False) -> Callable[[Any], Fraction]:
    """A validator for an exact amount. JSON numbers are refused: 0.1 as a binary number is not one tenth."""

    def parse(value: Any) -> Fraction:
        if not isinstance(value, str):
            # pydantic collects ValueError only.
            raise ValueError(  # noqa: TRY004
                f'{name} must be a {NOT_TEXT}, such as "0.5": JSON numbers are not exact'
            )
        return parse_decimal(value, name=name, maximum=maximum, unit=unit, zero_allowed=zero_allowed)

    return parse


def _confidence(value: Any) -> Fraction:
    # Not an amount that is spent, so a JSON number is accepted too, and means the decimal that was written.
    if isinstance(value, float):
        value = repr(value)
    if not isinstance(value, str):
        raise ValueError('confidence must be a decimal such as "0.95"')  # noqa: TRY004
    parsed = parse_decimal(value, name="confidence", maximum=CONFIDENCE_MAX, unit=Fraction(1, 10**6))
    if parsed < CONFIDENCE_MIN:
        raise ValueError("confidence must be at least 0.5")
    return parsed


def _no_relative(_: Any) -> None:
    raise ValueError(
        "a relative width is not offered: the size of the answer is not known before the price. Use half_width"
    )


def _decimal_schema(description: str, example: str) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\+?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$",
            "description": description,
            "examples": [example],
        }
    )


Epsilon = Annotated[
    Fraction,
    PlainValidator(_amount("epsilon", maximum=EPSILON_MAX, unit=PICO)),
    _decimal_schema("Exact decimal text above 0, whole multiples of 10^-12, at most 10^6.", "0.5"),
]
Delta = Annotated[
    Fraction,
    PlainValidator(_amount("delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)),
    _decimal_schema("Exact decimal text from 0 to 0.01, whole multiples of 10^-18.", "0.000001"),
]
HalfWidth = Annotated[
    Fraction,
    PlainValidator(_amount("half_width", maximum=HALF_WIDTH_MAX, unit=PICO)),
    _decimal_schema("Half the width of the widest confidence interval, in the unit of the column.", "25"),
]
Confidence = Annotated[
    Fraction,
    PlainValidator(_confidence),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "number"}],
            "description": "Chance with which an interval covers, 0.5 to 0.999999.",
            "examples": ["0.95"],
        }
    ),
]
Relative = Annotated[
    None,
    PlainValidator(_no_relative),
    WithJsonSchema({"type": "null", "description": "Reserved. Not offered yet; a value is refused."}),
]
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="Small letters, digits, _ . -; begins with a letter.")]
AccountId = Annotated[str, Field(pattern=ACCOUNT_PATTERN, description="Identifier of a budget.")]
ParameterName = Annotated[str, Field(pattern=PARAMETER_PATTERN)]
ParameterText = Annotated[str, Field(max_length=10_000)]
ParameterValue = ParameterText | int | bool | float | None


class AccuracyBody(RequestModel):
    """How exact the answer shall be; the server finds the price."""

    half_width: HalfWidth | None = None
    relative: Relative = None
    confidence: Confidence = CONFIDENCE_DEFAULT


class SpendBody(RequestModel):
    """What the answer may cost, said in one of two ways; the server finds the accuracy."""

    epsilon: Annotated[Epsilon | None, Field(description="A part of the paying account's epsilon.")] = None
    own_epsilon: Annotated[
        Epsilon | None,
        Field(description="What the answer promises by itself, at the account's delta. The same on a pure account."),
    ] = None

    @model_validator(mode="after")
    def _one_way(self) -> SpendBody:
        if (self.epsilon is None) == (self.own_epsilon is None):
            raise ValueError("spend is either epsilon or own_epsilon: give one of them")
        return self


Bound = Annotated[int, Field(ge=1, le=BOUND_MAX)]


class ContributionBody(RequestModel):
    """Contribution bounds for this question alone. The noise follows from them; what is left out stays as declared."""

    rows_per_unit: Annotated[Bound | None, Field(description="Rows of one unit that count, over all groups.")] = None
    groups_per_unit: Annotated[Bound | None, Field(description="Groups in which one unit counts.")] = None
    rows_per_unit_and_group: Annotated[Bound | None, Field(description="Rows of one unit in one group.")] = None

    def asked(self) -> AskedContribution:
        """As the journey reads it."""
        return AskedContribution(
            rows_per_unit=self.rows_per_unit,
            groups_per_unit=self.groups_per_unit,
            rows_per_unit_and_group=self.rows_per_unit_and_group,
        )


class QueryBody(RequestModel):
    """A question, for an answer or for an estimate."""

    dataset: Annotated[str, Field(min_length=1, max_length=64, description="Name of the dataset.")]
    sql: Annotated[
        str, Field(min_length=1, max_length=SQL_LENGTH_MAX, description="One SELECT statement in DuckDB's dialect.")
    ]
    parameters: Annotated[
        dict[ParameterName, ParameterValue],
        Field(max_length=100, description="Values of the named parameters ($name) of the statement."),
    ] = {}
    accuracy: AccuracyBody | None = None
    spend: SpendBody | None = None
    contribution: ContributionBody | None = None
    accept_noise: Annotated[
        bool, Field(description="Whether an average or a sum that would surely be noise alone is answered and charged.")
    ] = False
    noise: Annotated[
        Literal["auto", "laplace", "gaussian"],
        Field(description="The only family of noise that may answer, also from a stored release. auto: the server's."),
    ] = "auto"
    delta: Annotated[
        Delta | None,
        Field(description="Delta of showing groups that are not public, at most the policy's, which is the default."),
    ] = None
    nonempty: Annotated[
        bool,
        Field(description="Leave out public groups whose noisy count may be zero; all rows are counted for it."),
    ] = False
    reuse: Annotated[
        Literal["any", "own", "none"] | None,
        Field(description="Which stored releases may answer: everybody's, the caller's, none. Default: the policy's."),
    ] = None
    max_staleness_s: Annotated[
        int | None, Field(ge=0, le=10**9, description="Greatest age in seconds of a release that may answer.")
    ] = None
    budget: AccountId | None = None
    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MS_MAX, description="How long to wait for the answer before 202.")] = (
        WAIT_MS_DEFAULT
    )

    @model_validator(mode="after")
    def _one_wish(self) -> QueryBody:
        if self.spend is not None and self.accuracy is not None and self.accuracy.half_width is not None:
            raise ValueError(
                "accuracy.half_width and spend are two ways to set one price: give one of them, or neither"
            )
        return self


class LimitBody(RequestModel):
    """What all charges of an account may be together."""

    epsilon: Epsilon
    delta: Delta = Fraction(0)


class BudgetBody(RequestModel):
    """A new account. Without principal and parent it is the dataset's root, which bounds everybody together."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    principal: Annotated[Name | None, Field(description="Who may spend from it; null for a root or a group.")] = None
    parent: Annotated[AccountId | None, Field(description="Account above; the dataset's root by default.")] = None
    name: Annotated[str | None, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")] = None
    limit: LimitBody
    filter: Annotated[
        Literal["pure", "approximate"], Field(description="How losses add up. Cannot be changed later.")
    ] = "approximate"


class BudgetChangeBody(RequestModel):
    """Another limit for an account, with the reason that the ledger keeps."""

    limit: LimitBody
    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]


class PrincipalBody(RequestModel):
    """A new principal."""

    name: Name
    role: Annotated[Literal["admin", "owner", "analyst", "dashboard", "auditor"], Field(description="One role.")]


class PrincipalChangeBody(RequestModel):
    """Changes of a principal; fields that are left out stay as they are."""

    role: Literal["admin", "owner", "analyst", "dashboard", "auditor"] | None = None
    disabled: bool | None = None


class KeyBody(RequestModel):
    """A new API key."""

    principal: Name
    label: Annotated[str, Field(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    days: Annotated[
        int | None, Field(ge=1, le=3650, description="Life of the key; the server's default if absent.")
    ] = None


class DatasetBody(RequestModel):
    """A dataset: the name of a file in the home's folder of datasets, or the file's contents as JSON."""

    path: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}\.ya?ml$", description="File in the folder of datasets."),
    ] = None
    dataset: Annotated[dict[str, Any] | None, Field(description="The dataset file as a JSON object.")] = None

    @model_validator(mode="after")
    def _one_source(self) -> DatasetBody:
        if (self.path is None) == (self.dataset is None):
            raise ValueError("give either path or dataset")
        return self


# Answers. Documentation only: what the routes return is built by hand and compared with these in tests.


class AnswerModel(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid")


class Amount(AnswerModel):
    """An amount of privacy loss, as exact decimal text."""

    epsilon: str
    delta: str


class FindingAnswer(AnswerModel):
    """One reason of a problem."""

    code: str
    what: str
    why: str
    instead: list[str]
    position: dict[str, Any] | None = None
    field: str | None = None


class ProblemAnswer(BaseModel):
    """A problem document (RFC 9457). Some codes add members, such as `budget`."""

    type: str
    title: str
    status: int
    detail: str
    code: Annotated[str, Field(description="Stable; the list is in /v1/capabilities.")]
    what: str
    why: str
    instead: list[str]
    position: dict[str, Any] | None = Field(description="line, column and fragment of the analyst's text")
    findings: list[FindingAnswer]
    charged: bool = Field(description="False only when it is certain that nothing was charged.")
    retryable: bool
    available_at: str | None
    request_id: str


class ColumnAnswer(AnswerModel):
    """A column of an answer. Kind: key, released or derived."""

    name: str
    type: str
    kind: Literal["key", "released", "derived"]
    interval: Literal["noise", "simultaneous", "mapped", "linear", "bounds", "exact", "simulated"] | None = Field(
        default=None,
        description="Where the column's intervals come from (docs/api.md); null for keys and where there are none. "
        "Answers that version 0.1.0 stored do not have it.",
    )


class IntervalReasonAnswer(AnswerModel):
    """Why cells of a column have no interval."""

    column: int = Field(description="Place of the column in `columns`.")
    rows: list[int] | None = Field(description="Places of the rows in `rows`; null for all of them.")
    code: str = Field(description="Stable; the list is in docs/api.md.")
    why: str


class ChargeAnswer(AnswerModel):
    """What one account was charged."""

    budget: str
    epsilon: str
    delta: str


class QueryAnswer(BaseModel):
    """An answer with its error bars, its price and its provenance."""

    id: str
    status: Literal["settled"]
    columns: list[ColumnAnswer]
    rows: list[list[Any]]
    standard_errors: list[list[float | None]]
    lows: list[list[float | None]]
    highs: list[list[float | None]]
    interval_reasons: list[IntervalReasonAnswer] = Field(
        default_factory=list,
        description="Why computed cells have no interval; empty when all that could have one do. Answers that version "
        "0.1.0 stored do not have it.",
    )
    confidence: float
    warnings: list[FindingAnswer] = Field(
        description="What to know beside the numbers: from the text and the declarations, never from rows."
    )
    accounting: dict[str, Any] = Field(
        description="`charged` per account; `share`, the part of the paying account's limit `of` that this answer "
        "took; `own`, what it promises by itself (not to be added up); whether it was `reused`; what remains"
    )
    provenance: dict[str, Any] = Field(description="releases, mechanisms, policy and data version")


class RunningAnswer(AnswerModel):
    """A query that has no answer yet. Poll `Location`; polling never spends."""

    id: str
    status: Literal["reserved", "running"]
    links: dict[str, str]


class QueryState(AnswerModel):
    """One query in a list."""

    id: str
    dataset: str
    principal: str
    status: Literal["reserved", "settled", "failed_charged", "failed_void"]
    charged: list[ChargeAnswer]
    created: str
    links: dict[str, str]


class QueryList(AnswerModel):
    """A page of queries, newest first."""

    queries: list[QueryState]
    next: str | None


class CancelAnswer(AnswerModel):
    """The state after a cancel. Before its start a query is voided; afterwards it stays charged."""

    id: str
    status: str
    charged: bool


class EstimateAnswer(BaseModel):
    """What a query would cost and how exact it would be. Computed without touching a private row."""

    model_config = ConfigDict(extra="allow")

    price: dict[str, Any] = Field(
        description="On the paying account `budget`: epsilon and delta, their `share` of its limit `of`, what the "
        "answer promises by itself (`own`), the `least` spend of a fresh run, and whether the price was `raised` to it."
    )
    families: list[dict[str, Any]] = Field(
        description="The wish with each family of noise that could answer it: price, errors, and how many questions of "
        "the dataset's default spend would fit afterwards, by their noise."
    )
    refusal: FindingAnswer | None = Field(description="Why the budget would not cover it, where it would not.")
    warnings: list[FindingAnswer] = Field(description="What the answer will say beside its numbers.")


class ReleaseAnswer(BaseModel):
    """A stored release: noisy, immutable, free to read."""

    id: str
    dataset: str
    created: str | None
    query: str | None = Field(description="The query that paid for it; null when it was another principal's.")
    release: Any = Field(description="The noisy table: columns, rows, error bars, mechanisms.")


class BudgetAnswer(AnswerModel):
    """An account: limit, what is spent of it, and what that means."""

    id: str
    dataset: str
    parent: str | None
    principal: str | None
    name: str
    filter: Literal["pure", "approximate"]
    limit: Amount
    used_share: str = Field(description="From 0 to 1: the least used share over the branches that are alive.")
    remaining: Amount
    reserved: bool = Field(description="Whether queries of this account are in flight.")
    queries_left: int | None = Field(description="How many queries at the dataset's default price still fit.")
    membership_guess: str = Field(
        description="Greatest chance with which anybody who sees every answer up to the greatest limit that the budget "
        "ever had could guess, from even odds, whether one unit is in the data. Of the root's limit where the policy "
        "shares releases for nothing, since then nothing else bounds what is read."
    )
    frozen: bool = Field(
        description="Whether it pays for nothing more: a second budget of one principal below one parent, from before "
        "there was only one."
    )
    created: str
    links: dict[str, str]


class BudgetList(AnswerModel):
    """Budgets that the caller may see."""

    budgets: list[BudgetAnswer]


class EntryAnswer(BaseModel):
    """One entry of the ledger."""

    sequence: int
    kind: str
    query: str | None
    created: str
    hash: str


class EntryList(AnswerModel):
    """A page of entries, oldest first."""

    entries: list[EntryAnswer]
    next: int | None


class PrincipalAnswer(AnswerModel):
    """A principal."""

    name: str
    role: Literal["admin", "owner", "analyst", "dashboard", "auditor"]
    created: str
    disabled: str | None


class PrincipalList(AnswerModel):
    """A page of principals."""

    principals: list[PrincipalAnswer]
    next: str | None


class KeyAnswer(AnswerModel):
    """An API key without its text."""

    id: str
    principal: str
    label: str
    created: str
    expires: str
    last_used_day: str | None
    revoked: str | None


class NewKeyAnswer(KeyAnswer):
    """A new API key. Its text is shown in this answer and never again."""

    key: str | None = Field(description="The text to send as a bearer token; null in a retry, because it is not kept.")


class KeyList(AnswerModel):
    """A page of keys."""

    keys: list[KeyAnswer]
    next: str | None


class TableAnswer(AnswerModel):
    """Public metadata of a table: what was declared, nothing that was counted."""

    name: str
    description: str
    protected: bool
    key: str | None
    unit_column: str | None
    references: list[dict[str, str]]
    contribution: dict[str, int] | None
    columns: list[dict[str, Any]]


class DatasetAnswer(AnswerModel):
    """Public metadata of a dataset. Never its source, its size or anything read from rows."""

    name: str
    description: str
    privacy_unit: dict[str, str | None] = Field(
        description="`table` and `key`: whose presence is protected. Without a key each row of the table is a unit."
    )
    neighbouring: str
    policy_version: int
    data_version: str
    limits: dict[str, Any]
    tables: list[TableAnswer]
    links: dict[str, str]


class DatasetList(AnswerModel):
    """Datasets that the caller may ask."""

    datasets: list[dict[str, Any]]
    unavailable: list[str] = Field(
        description="Names of attached datasets of the caller that cannot be served: the operator has to mend them."
    )


class CapabilitiesAnswer(BaseModel):
    """What this server can do."""

    version: str
    api: str
    sql: dict[str, Any]
    mechanisms: list[dict[str, str]]
    problems: list[dict[str, Any]]
    warnings: list[dict[str, str]]
    limits: dict[str, Any]
    formats: list[dict[str, Any]] = Field(
        description="Media types of results; `on` says whether this server sends it, `needs` what to install."
    )
    roles: list[str]


class MeAnswer(AnswerModel):
    """Who the caller is."""

    name: str
    role: str
    key: str
    expires: str


class HealthAnswer(AnswerModel):
    """The process answers."""

    status: Literal["ok"]


class ReadinessAnswer(AnswerModel):
    """Every check with its outcome; no detail."""

    status: Literal["ready", "not_ready"]
    checks: dict[str, Literal["ok", "failed"]]


REQUESTS: tuple[type[BaseModel], ...] = (
    QueryBody,
    BudgetBody,
    BudgetChangeBody,
    PrincipalBody,
    PrincipalChangeBody,
    KeyBody,
    DatasetBody,
)
"""Models of request bodies."""

ANSWERS: tuple[type[BaseModel], ...] = (
    ProblemAnswer,
    QueryAnswer,
    RunningAnswer,
    QueryList,
    CancelAnswer,
    EstimateAnswer,
    ReleaseAnswer,
    BudgetAnswer,
    BudgetList,
    EntryList,
    PrincipalAnswer,
    PrincipalList,
    KeyAnswer,
    NewKeyAnswer,
    KeyList,
    DatasetAnswer,
    TableAnswer,
    DatasetList,
    CapabilitiesAnswer,
    MeAnswer,
    HealthAnswer,
    ReadinessAnswer,
)
"""Models of answers."""

assert tuple(Role) == ("admin", "owner", "analyst", "dashboard", "auditor")
