"""Models of answers about models that are fitted."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import AnswerModel
from server.wire.resources import ResourceAnswer, ResourceEstimate
from server.wire.words import MethodWord

__all__ = [
    "EncodingAnswer",
    "FittedAnswer",
    "HeldOutAnswer",
    "ModelAnswer",
    "ModelBoundsAnswer",
    "ModelEstimateAnswer",
    "ModelLabelAnswer",
    "ModelList",
    "ModelMeasurementAnswer",
    "ModelWarningAnswer",
    "WeightAnswer",
]


class WeightAnswer(AnswerModel):
    """One weight, of an encoded column."""

    feature: str | None = Field(description="Null for the intercept.")
    key: str | None = Field(description="Of a feature with keys, the key whose weight it is.")
    kind: str = Field(description="`intercept`, `number` or `key`.")
    weight: float
    standard_error: float = Field(description="What noise alone may do to it, to first order; of a descent a bound.")
    low: float
    high: float


class EncodingAnswer(AnswerModel):
    """How a feature becomes columns: a number is moved to [-1, 1], a text to one column for each key."""

    feature: str
    kind: str
    keys: list[str | None] | None
    low: float | None
    high: float | None


class ModelBoundsAnswer(AnswerModel):
    """To which bounds a column without declared ones was clipped, by a noisy histogram of its values."""

    table: str
    column: str
    lower: str | None = Field(description="As values are written. Null in an estimate: the model chooses it.")
    upper: str | None
    source: str = Field(
        description="`chosen`, by a histogram that was bought with the model, or `stored`, by one that was there."
    )
    certain: bool = Field(description="Whether the histogram shows somebody for certain.")
    share: str = Field(description="The part of the price that its histogram takes; 0 of a stored one.")
    cut: dict[str, float] | None = Field(description="About which part of the units has values beyond, and its error.")


class HeldOutAnswer(AnswerModel):
    """What the held-out units say, measured with noise."""

    share: float
    standard_error: float = Field(description="Of each number of the confusion, in units.")
    half_width: float
    accuracy: float | None = Field(description="Null where the counts are within their noise.")
    confusion: dict[str, float] | None = Field(description="Noisy numbers of units; those with several rows are split.")
    explained_variance: float | None = Field(description="Of a numeric label.")
    value_standard_error: float | None


class ModelLabelAnswer(AnswerModel):
    """What is predicted, and its declared bounds."""

    name: str
    low: float
    high: float


class ModelMeasurementAnswer(AnswerModel):
    """What was measured, how often and of which units."""

    measured: str
    times: int
    of: str
    mechanism: str
    scale: str
    sensitivity: str


class ModelWarningAnswer(AnswerModel):
    """What the numbers do not say by themselves."""

    code: str
    text: str


class FittedAnswer(AnswerModel):
    """A fitted model."""

    id: str
    method: MethodWord
    iterations: int
    label: ModelLabelAnswer
    intercept: WeightAnswer
    weights: list[WeightAnswer]
    encoding: list[EncodingAnswer]
    predict: str = Field(description="A SQL expression over columns that are named as the features.")
    units: float | None = Field(description="Noisy number of units that it was fitted to.")
    held_out: HeldOutAnswer | None
    confidence: str
    mechanisms: list[ModelMeasurementAnswer]
    bounds: list[ModelBoundsAnswer] = Field(
        default_factory=list, description="Bounds that were chosen for the model, of columns that have none."
    )
    warnings: list[ModelWarningAnswer]
    accounting: dict[str, object]
    policy_version: int
    data_version: str


class ModelAnswer(ResourceAnswer):
    """A model: its state, and once it is settled what was fitted."""

    method: MethodWord
    iterations: int
    held_out: float
    model: FittedAnswer | None = Field(description="Null until it is settled, and for one that failed.")


class ModelList(AnswerModel):
    """A page of models, newest first, without what was fitted."""

    models: list[ModelAnswer]
    next: str | None


class ModelEstimateAnswer(ResourceEstimate):
    """What a model would cost and measure. Nothing was read or charged."""

    columns: int = Field(description="Encoded columns, the intercept included.")
    measurements: int
    encoding: list[EncodingAnswer]
    bounds: list[ModelBoundsAnswer] = Field(description="Columns whose bounds the model would choose.")
    first_moment_seconds: float = Field(description="When it is there at the earliest.")
    tick_seconds: float
