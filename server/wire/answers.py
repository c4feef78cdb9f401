"""Models of answers: the schemas of the OpenAPI document. The routes build plain objects, and tests compare them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from accountant.states import QueryStatus
from server.wire.words import (
    ColumnKindWord,
    FilterWord,
    IntervalWord,
    OutcomeWord,
    RoleWord,
    ScopeWord,
    State,
    StateWord,
    WindowKindWord,
    WindowModeWord,
)

__all__ = [
    "Amount",
    "BudgetAnswer",
    "BudgetList",
    "CancelAnswer",
    "CapabilitiesAnswer",
    "ChargeAnswer",
    "ColumnAnswer",
    "EntryAnswer",
    "EntryList",
    "EstimateAnswer",
    "FindingAnswer",
    "HealthAnswer",
    "IntervalReasonAnswer",
    "KeyAnswer",
    "KeyList",
    "MeAnswer",
    "NewKeyAnswer",
    "PrincipalAnswer",
    "PrincipalList",
    "ProblemAnswer",
    "QueryAnswer",
    "QueryList",
    "QueryState",
    "ReadinessAnswer",
    "ReleaseAnswer",
    "ReportAnswer",
    "RunningAnswer",
    "StopAnswer",
]


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
    position: dict[str, object] | None = None
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
    position: dict[str, object] | None = Field(description="line, column and fragment of the analyst's text")
    findings: list[FindingAnswer]
    charged: bool = Field(description="False only when it is certain that nothing was charged.")
    retryable: bool
    available_at: str | None
    request_id: str


class ColumnAnswer(AnswerModel):
    """A column of an answer. Kind: key, released or derived."""

    name: str
    type: str
    kind: ColumnKindWord
    interval: IntervalWord | None = Field(
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
    status: Literal[QueryStatus.SETTLED]
    columns: list[ColumnAnswer]
    rows: list[list[object]]
    standard_errors: list[list[float | None]]
    lows: list[list[float | None]]
    highs: list[list[float | None]]
    interval_reasons: list[IntervalReasonAnswer] = Field(
        default_factory=list,
        description="Why computed cells have no interval; empty when all that could have one do. Answers that version "
        "0.1.0 stored do not have it.",
    )
    confidence: float
    with_cut: dict[str, object] | None = Field(
        default=None,
        description="Only where the request asked for it: `lows` and `highs` of the interval of the noise widened by "
        "what a histogram says is cut, `reasons` of columns without them, and what they do not promise (`words`).",
    )
    merged: dict[str, object] | None = Field(
        default=None,
        description="Only where the request asked for it: which groups were merged, by `row` (place in `rows`), and "
        "what that row stands for; `unmet` are the rows that are less exact than asked all the same.",
    )
    adjusted: dict[str, object] | None = Field(
        default=None,
        description="Only where the request asked for it: which counts are shown as the nearest ones that are not "
        "negative (`by`, `columns`), and what their intervals are those of (`words`).",
    )
    warnings: list[FindingAnswer] = Field(
        description="What to know beside the numbers: from the text and the declarations, never from rows."
    )
    accounting: dict[str, object] = Field(
        description="`charged` per account; `share`, the part of the paying account's limit `of` that this answer "
        "took; `own`, what it promises by itself (not to be added up); whether it was `reused`; where it adds "
        "precision to a stored release, `sharpened` as the estimate's `sharpening`; what remains"
    )
    provenance: dict[str, object] = Field(description="releases, mechanisms, policy and data version")


class RunningAnswer(AnswerModel):
    """A query that has no answer yet. Poll `Location`; polling never spends."""

    id: str
    status: Literal[State.RUNNING]
    links: dict[str, str]


class QueryState(AnswerModel):
    """One query in a list."""

    id: str
    dataset: str
    principal: str
    status: StateWord
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


class ReportAnswer(BaseModel):
    """The plan of a query as an estimate reports it: from declarations, balances and stored releases alone."""

    model_config = ConfigDict(extra="allow")

    nodes: dict[str, object] = Field(
        description="The tree, outermost node first: `kind`, `text` and `inputs` of each, and of its rows the `unit`, "
        "the most `rows_per_unit`, the columns of which no two rows share the values (`unique`), and `ranges`."
    )
    stages: list[dict[str, object]] = Field(description="What runs after what, and which of it is `paid`.")
    bounds: list[dict[str, object]] = Field(
        description="Contribution and value bounds, each with its `source`: declared, request, key (a unit has one "
        "row), chosen by the question or stored from an earlier one."
    )
    statistics: list[dict[str, object]] = Field(
        description="Each measurement: what it answers, the most that one unit moves its sums by (`sensitivity`, L1 "
        "and L2), mechanism, scale of the noise, and share of the price. Null where a bound is chosen first."
    )
    alternatives: list[dict[str, object]] = Field(
        description="Cheaper forms: `stored_release`, `fewer_groups`, `fewer_columns`, each with its `epsilon` for the "
        "same half widths; where another accuracy is to be asked for, `accuracy` is what the request has to say."
    )
    quantiles: list[dict[str, object]] = Field(
        description="Of MEDIAN and quantiles, what each `mechanism` that a request may name would be off by at this "
        "price, in groups of some numbers of rows (`columns`), or why it is `refused`."
    )
    curve: dict[str, object] = Field(
        description="Prices and half widths: `by_epsilon` is a spend with the widths of each column, `by_half_width` a "
        "width of the widest column with the least spend that promises it. Of ratios the width in a group of "
        "`in_a_group_of_rows` rows."
    )
    text: str = Field(description="All of it as text that fits on one screen.")


class EstimateAnswer(BaseModel):
    """What a query would cost and how exact it would be. Computed without touching a private row."""

    model_config = ConfigDict(extra="allow")

    price: dict[str, object] = Field(
        description="On the paying account `budget`: epsilon and delta, their `share` of its limit `of`, what the "
        "answer promises by itself (`own`), the `least` spend of a fresh run, and whether the price was `raised` to it."
    )
    families: list[dict[str, object]] = Field(
        description="The wish with each family of noise that could answer it: price, errors, and how many questions of "
        "the dataset's default spend would fit afterwards, by their noise."
    )
    refusal: FindingAnswer | None = Field(description="Why the budget would not cover it, where it would not.")
    warnings: list[FindingAnswer] = Field(description="What the answer will say beside its numbers.")
    sharpening: dict[str, object] | None = Field(
        default=None,
        description="Where precision is added to stored releases: of each what is `stored` and what is `bought`, both "
        "mu squared, and what all of it would cost `anew`. Null where none is.",
    )
    expected: list[dict[str, object]] = Field(
        default_factory=list,
        description="Of counts whose groups the dataset's profile knows: rows of the least, median and greatest group "
        "that is surely not empty, and the half widths of counts as parts of these; `assumed` says what is assumed "
        "where the groups are those of a table that the rows refer to.",
    )
    plan: ReportAnswer | None = Field(
        default=None, description='The report of the plan, where `detail` of the request is "plan"; absent otherwise.'
    )


class ReleaseAnswer(BaseModel):
    """A stored release: noisy, immutable, free to read."""

    id: str
    dataset: str
    created: str | None
    query: str | None = Field(description="The query that paid for it; null when it was another principal's.")
    release: object = Field(description="The noisy table: columns, rows, error bars, mechanisms.")


class AccountLifetime(AnswerModel):
    """What a budget has lost of its limit since it was opened, and what is left of it, whatever its window says."""

    loss: Amount
    remaining: Amount


class WindowTurn(AnswerModel):
    """When the next window begins, and the epsilon that it brings."""

    at: str
    epsilon: str


class AccountWindow(AnswerModel):
    """A budget's window now, by the calendar in UTC. Amounts are in the epsilon of the budget's own limit."""

    kind: WindowKindWord
    mode: WindowModeWord = Field(
        description="`slices`: equal parts of the limit unlock one after another; `reset`: each window has its own "
        "amount, and losses of windows add up to the limit."
    )
    first: str = Field(description="The first day of the first window.")
    slices: int | None
    limit: Amount | None = Field(description="The amount of one window, in mode `reset`.")
    begins: str
    ends: str
    unlocked: int | None = Field(description="How many slices may be spent by now.")
    loss: Amount = Field(description="What was lost in this window.")
    remaining: Amount = Field(description="What may be spent now.")
    next: WindowTurn | None = Field(description="The next window that brings something; null after the last one.")


class ProjectionGrounds(AnswerModel):
    """What a projection rests on: the days since the budget was opened, and what was lost in them."""

    days: int
    loss: str


class Projection(AnswerModel):
    """Where the pace until now leads to, if it stays."""

    in_a_year: str = Field(description="Epsilon lost of the limit in a year from now, at most the limit.")
    exhausted_on: str | None = Field(description="The day on which nothing is left; null where none is in sight.")
    grounds: ProjectionGrounds


class BudgetAnswer(AnswerModel):
    """An account: limit, what is spent of it, and what that means."""

    id: str
    dataset: str
    unit_space: str = Field(description="Whose loss the tree of this budget bounds, in whichever dataset.")
    parent: str | None
    principal: str | None
    name: str
    filter: FilterWord
    delta_shares: dict[str, int] | None = Field(
        description="How the delta is divided, in percent: for Gaussian noise, for noise that is counted as "
        "concentrated, for Laplace and Gaussian noise together, for showing groups that are not public. Null for a "
        "pure account."
    )
    limit: Amount
    used_share: str = Field(description="From 0 to 1: the least used share over the branches that are alive.")
    remaining: Amount = Field(description="What may be spent now: of the limit, what the window lets through.")
    lifetime: AccountLifetime
    window: AccountWindow | None = Field(description="Null where the whole limit may be spent at any time.")
    projection: Projection
    reserved: bool = Field(description="Whether queries of this account are in flight.")
    queries_left: int | None = Field(
        description="How many queries at the dataset's default price this budget still affords; one above it may "
        "afford fewer. 0 once it is frozen or has ended."
    )
    membership_guess: str = Field(
        description="Greatest chance with which anybody who sees every answer up to the greatest limit that the budget "
        "ever had could guess, from even odds, whether one unit is in the data. Of the root's limit where the policy "
        "shares releases for free, since then nothing else bounds what is read. A published profile of the data is "
        "none of these answers: the root alone paid for it."
    )
    frozen: bool = Field(
        description="Whether it pays for nothing more: an administrator stopped its principal, or it is a second "
        "budget of one principal below one parent, from before there was only one."
    )
    expires: str | None = Field(description="From when on it pays for nothing more; null where it never ends.")
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
    role: RoleWord
    created: str
    disabled: str | None


class StopAnswer(AnswerModel):
    """A principal who was stopped, or goes on."""

    principal: str
    stopped: bool
    budgets: list[str] = Field(description="The budgets that were frozen by this act, or pay again.")
    cancelled: int = Field(description="What waited in this process and was voided; others do it by themselves.")


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
    scopes: list[ScopeWord] | None = Field(
        description="What it may be used for, of what its principal's role serves; null for all of that, except "
        "`impersonate`."
    )
    previous_until: str | None = Field(description="Until when the secret before the last rotation works too.")


class NewKeyAnswer(KeyAnswer):
    """A new API key. Its text is shown in this answer and never again."""

    key: str | None = Field(description="The text to send as a bearer token; null in a retry, because it is not kept.")


class KeyList(AnswerModel):
    """A page of keys."""

    keys: list[KeyAnswer]
    next: str | None


class CapabilitiesAnswer(BaseModel):
    """What this server can do."""

    version: str
    api: str
    sql: dict[str, object]
    mechanisms: list[dict[str, str]]
    local_encodings: list[dict[str, str]] = Field(description="How reports of collectors can be randomised.")
    problems: list[dict[str, object]]
    warnings: list[dict[str, str]]
    limits: dict[str, object]
    formats: list[dict[str, object]] = Field(
        description="Media types of results; `on` says whether this server sends it, `needs` what to install."
    )
    roles: list[str]


class MeAnswer(AnswerModel):
    """Who the caller is."""

    name: str
    role: str
    key: str | None = Field(description="The identifier of the key; null for a token of a provider.")
    expires: str
    scopes: list[ScopeWord] | None = Field(description="What the key may be used for; null for all of the role.")
    actor: str | None = Field(description="The service that acts on the caller's behalf; null when nobody does.")


class HealthAnswer(AnswerModel):
    """The process answers."""

    status: Literal["ok"]


class ReadinessAnswer(AnswerModel):
    """Every check with its outcome; no detail."""

    status: Literal["ready", "not_ready"]
    checks: dict[str, OutcomeWord]
