"""Models of requests: strict, no unknown fields, amounts as decimal text only."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from accountant.filter import DELTA_MAX, EPSILON_MAX
from privacy.bounds import BOUND_MAX, AskedContribution
from privacy.numbers import ATTO, PICO, parse_decimal
from server.administration.budgets import REASON_MAX
from server.body import NOT_TEXT
from server.scopes import Scope
from server.store.people import GRACE_MINUTES_MAX
from server.wire.words import MechanismWord, NoiseWord, ReuseWord, RoleWord, ScopeWord

__all__ = [
    "ACCOUNT_PATTERN",
    "CONFIDENCE_DEFAULT",
    "DATASET_PATTERN",
    "NAME_PATTERN",
    "SQL_LENGTH_MAX",
    "WAIT_MS_DEFAULT",
    "WAIT_MS_MAX",
    "DatasetBody",
    "EstimateBody",
    "KeyBody",
    "PrincipalBody",
    "PrincipalChangeBody",
    "ProfileBody",
    "QueryBody",
    "RotateKeyBody",
    "SharpenBody",
    "StopBody",
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
    def _without_nulls(cls, value: object) -> object:
        """An optional field that is null is one that is absent. Programs that fill in whole objects send both."""
        if not isinstance(value, dict):
            return value
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: part for name, part in value.items() if part is not None or name not in optional}


def read_amount(
    name: str, *, maximum: Fraction, unit: Fraction, zero_allowed: bool = False
) -> Callable[[object], Fraction]:
    """A validator for an exact amount. JSON numbers are refused: 0.1 as a binary number is not one tenth."""

    def parse(value: object) -> Fraction:
        if not isinstance(value, str):
            # pydantic collects ValueError only.
            raise ValueError(  # noqa: TRY004
                f'{name} must be a {NOT_TEXT}, such as "0.5": JSON numbers are not exact'
            )
        return parse_decimal(value, name=name, maximum=maximum, unit=unit, zero_allowed=zero_allowed)

    return parse


def _confidence(value: object) -> Fraction:
    # Not an amount that is spent, so a JSON number is accepted too, and means the decimal that was written.
    if isinstance(value, float):
        value = repr(value)
    if not isinstance(value, str):
        raise ValueError('confidence must be a decimal such as "0.95"')  # noqa: TRY004
    parsed = parse_decimal(value, name="confidence", maximum=CONFIDENCE_MAX, unit=Fraction(1, 10**6))
    if parsed < CONFIDENCE_MIN:
        raise ValueError("confidence must be at least 0.5")
    return parsed


def decimal_schema(description: str, example: str) -> WithJsonSchema:
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
    PlainValidator(read_amount("epsilon", maximum=EPSILON_MAX, unit=PICO)),
    decimal_schema("Exact decimal text above 0, whole multiples of 10^-12, at most 10^6.", "0.5"),
]
MaxCost = Annotated[
    Fraction,
    PlainValidator(read_amount("max_cost", maximum=EPSILON_MAX, unit=PICO, zero_allowed=True)),
    decimal_schema("Exact decimal text from 0, whole multiples of 10^-12, at most 10^6.", "0.5"),
]
Delta = Annotated[
    Fraction,
    PlainValidator(read_amount("delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)),
    decimal_schema("Exact decimal text from 0 to 0.01, whole multiples of 10^-18.", "0.000001"),
]
HalfWidth = Annotated[
    Fraction,
    PlainValidator(read_amount("half_width", maximum=HALF_WIDTH_MAX, unit=PICO)),
    decimal_schema("Half the width of the widest confidence interval, in the unit of the column.", "25"),
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
    Fraction,
    PlainValidator(read_amount("relative", maximum=Fraction(1), unit=PICO)),
    decimal_schema(
        "Half the width of the widest confidence interval as a part of the smallest number of the answer, where the "
        "dataset's profile or a stored release of the caller says how large that is.",
        "0.05",
    ),
]
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="Small letters, digits, _ . -; begins with a letter.")]
AccountId = Annotated[str, Field(pattern=ACCOUNT_PATTERN, description="Identifier of a budget.")]
ParameterName = Annotated[str, Field(pattern=PARAMETER_PATTERN)]
ParameterText = Annotated[str, Field(max_length=10_000)]
ParameterValue = ParameterText | int | bool | float | None


class AccuracyBody(RequestModel):
    """How exact the answer shall be; the server finds the price."""

    half_width: HalfWidth | None = None
    relative: Relative | None = None
    confidence: Confidence = CONFIDENCE_DEFAULT
    at_most: Annotated[
        Epsilon | None,
        Field(description="The greatest part of the paying account's epsilon for it; at most the policy's."),
    ] = None

    @model_validator(mode="after")
    def _one_width(self) -> AccuracyBody:
        if self.half_width is not None and self.relative is not None:
            raise ValueError("half_width and relative are two ways to say one accuracy: give one of them")
        if self.at_most is not None and self.half_width is None and self.relative is None:
            raise ValueError("at_most is the greatest price of a half_width or a relative accuracy: give one of them")
        return self


class AskedAccuracyBody(AccuracyBody):
    """How exact the answer shall be, or how exact each of its rows."""

    merge: Annotated[
        bool,
        Field(
            description="With relative, which then sets no price: that is spend, or the default. Public groups that "
            "are less exact are merged into coarser ones by their noisy numbers, until all are as exact or no level "
            "is left."
        ),
    ] = False

    @model_validator(mode="after")
    def _merged_by(self) -> AskedAccuracyBody:
        if self.merge and self.relative is None:
            raise ValueError("merge needs relative: the part of a number that half its interval may be")
        if self.merge and self.at_most is not None:
            raise ValueError("at_most is the greatest price of an accuracy, which sets no price with merge: give spend")
        return self


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
    accuracy: AskedAccuracyBody | None = None
    spend: SpendBody | None = None
    contribution: Annotated[
        ContributionBody | Literal["auto"] | None,
        Field(
            description="Contribution bounds for this question alone, or auto: where groups are public the question "
            "chooses a norm, to which each unit's whole contribution is scaled."
        ),
    ] = None
    accept_noise: Annotated[
        bool, Field(description="Whether an average or a sum that would surely be noise alone is answered and charged.")
    ] = False
    noise: Annotated[
        NoiseWord,
        Field(
            description="The only family of noise that may answer, also from a stored release. auto: the server's.",
            json_schema_extra={"default": "auto"},
        ),
    ] = None
    mechanism: Annotated[
        MechanismWord | None,
        Field(
            description="By which mechanism MEDIAN and quantiles are drawn; refused where its proof does not hold. "
            "Default: the server's choice."
        ),
    ] = None
    delta: Annotated[
        Delta | None,
        Field(description="Delta of showing groups that are not public, at most the policy's, which is the default."),
    ] = None
    nonempty: Annotated[
        bool,
        Field(description="Leave out public groups whose noisy count may be zero; all rows are counted for it."),
    ] = False
    nonnegative: Annotated[
        bool,
        Field(
            description="Show counts of public groups as the nearest ones that are not negative and have the same sum."
        ),
    ] = False
    with_cut: Annotated[
        bool,
        Field(description="Give intervals with the cut beside those of the noise: empirical, without a promise."),
    ] = False
    reuse: Annotated[
        ReuseWord | None,
        Field(description="Which stored releases may answer: everybody's, the caller's, none. Default: the policy's."),
    ] = None
    max_staleness_s: Annotated[
        int | None, Field(ge=0, le=10**9, description="Greatest age in seconds of a release that may answer.")
    ] = None
    budget: AccountId | None = None
    max_cost: Annotated[
        MaxCost | None,
        Field(
            description="The greatest part of the paying account's epsilon that all charges of the question may take; "
            "where it would be more, the question is refused. 0 allows a free answer only. "
            "Default: what the policy allows."
        ),
    ] = None
    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MS_MAX, description="How long to wait for the answer before 202.")] = (
        WAIT_MS_DEFAULT
    )

    @model_validator(mode="after")
    def _one_wish(self) -> QueryBody:
        accuracy = self.accuracy
        named = "half_width" if accuracy is not None and accuracy.half_width is not None else "relative"
        priced = accuracy is not None and not accuracy.merge and getattr(accuracy, named) is not None
        if self.spend is not None and priced:
            raise ValueError(f"accuracy.{named} and spend are two ways to set one price: give one of them, or neither")
        return self


class SharpenBody(RequestModel):
    """A better wish for a question that was asked before: either an accuracy or a spend, of the whole answer."""

    accuracy: AccuracyBody | None = None
    spend: SpendBody | None = None
    max_cost: Annotated[
        MaxCost | None,
        Field(description="The greatest part of the paying account's epsilon that this may take; 0 allows nothing."),
    ] = None
    wait_ms: Annotated[int, Field(ge=0, le=WAIT_MS_MAX, description="How long to wait for the answer before 202.")] = (
        WAIT_MS_DEFAULT
    )

    @model_validator(mode="after")
    def _one_wish(self) -> SharpenBody:
        accuracy = self.accuracy
        width = accuracy is not None and (accuracy.half_width is not None or accuracy.relative is not None)
        if width == (self.spend is not None):
            raise ValueError("say the whole precision in one way: a half_width or relative accuracy, or a spend")
        return self


class EstimateBody(QueryBody):
    """A question, for an estimate: as it would be asked, and how much is said of it."""

    detail: Annotated[
        Literal["price", "plan"],
        Field(
            description="plan: also the report of the plan, with its tree, bounds, noise, cheaper forms and the curve "
            "of prices and widths, as fields and as text."
        ),
    ] = "price"


Percent = Annotated[int, Field(ge=0, le=100)]


class LimitBody(RequestModel):
    """What all charges of an account may be together."""

    epsilon: Epsilon
    delta: Delta = Fraction(0)


class PrincipalBody(RequestModel):
    """A new principal."""

    name: Name
    role: Annotated[RoleWord, Field(description="One role.")]


class StopBody(RequestModel):
    """Why somebody is stopped, or goes on."""

    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]


class PrincipalChangeBody(RequestModel):
    """Changes of a principal; fields that are left out stay as they are."""

    role: RoleWord | None = None
    disabled: bool | None = None


class KeyBody(RequestModel):
    """A new API key."""

    principal: Name
    label: Annotated[str, Field(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    days: Annotated[
        int | None, Field(ge=1, le=3650, description="Life of the key; the server's default if absent.")
    ] = None
    scopes: Annotated[
        list[ScopeWord] | None,
        Field(
            min_length=1,
            max_length=len(Scope),
            description="What the key may be used for, of what its principal's role serves; all of that if absent, "
            "except `impersonate`.",
        ),
    ] = None


class RotateKeyBody(RequestModel):
    """A new secret of an API key."""

    grace_minutes: Annotated[
        int,
        Field(ge=0, le=GRACE_MINUTES_MAX, description="For how long the secret before works too; 0 stops it at once."),
    ] = 0
    days: Annotated[
        int | None, Field(ge=1, le=3650, description="A new life of the key from now on; the old expiry if absent.")
    ] = None


class DatasetBody(RequestModel):
    """A dataset: the name of a file in the home's folder of datasets, or the file's contents as JSON."""

    path: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}\.ya?ml$", description="File in the folder of datasets."),
    ] = None
    dataset: Annotated[dict[str, object] | None, Field(description="The dataset file as a JSON object.")] = None

    @model_validator(mode="after")
    def _one_source(self) -> DatasetBody:
        if (self.path is None) == (self.dataset is None):
            raise ValueError("give either path or dataset")
        return self


class ProfileBody(RequestModel):
    """A profile of the data: what it takes of the root's epsilon."""

    epsilon: Epsilon
