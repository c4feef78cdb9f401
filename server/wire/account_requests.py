"""Requests of administrators for budgets: opening them, and changing their limits and windows."""

from __future__ import annotations

import datetime
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from accountant.calendar import ACKNOWLEDGEMENT, SLICES_MAX, WindowMode
from accountant.filter import DEFAULT_SHARES, DeltaShares, FilterKind, Limit
from accountant.window import WindowWish
from server.administration.budgets import REASON_MAX
from server.wire.requests import DATASET_PATTERN, AccountId, LimitBody, Name, Percent, RequestModel
from server.wire.words import FilterWord, WindowKindWord, WindowModeWord

__all__ = ["BudgetBody", "BudgetChangeBody", "WindowBody"]


def _day(value: object) -> datetime.date:
    if not isinstance(value, str) or len(value) != 10:
        raise ValueError('a day is written "2026-01-31"')
    try:
        return datetime.date.fromisoformat(value)
    except ValueError:
        raise ValueError('a day is written "2026-01-31"') from None


Day = Annotated[datetime.date, PlainValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
"""A day of the calendar in UTC."""


class DeltaSharesBody(RequestModel):
    """What of an account's delta is for which noise, in whole percent that add up to 100."""

    gaussian: Percent
    concentrated: Percent
    mixed: Percent = 0
    groups: Percent

    @model_validator(mode="after")
    def _whole(self) -> DeltaSharesBody:
        self.shares()
        return self

    def shares(self) -> DeltaShares:
        """As the accountant has it. Raises ValueError where they do not add up to 100."""
        return DeltaShares(gaussian=self.gaussian, concentrated=self.concentrated, mixed=self.mixed, groups=self.groups)


class WindowBody(RequestModel):
    """When how much of a limit may be spent, by the calendar in UTC. The lifetime limit bounds everything."""

    kind: Annotated[WindowKindWord, Field(description="How long a window is; weeks begin on Mondays.")]
    mode: Annotated[
        WindowModeWord,
        Field(
            description="`slices`: equal parts of the limit unlock one after another, and what was not spent stays. "
            "`reset`: each window has an amount of its own, whose losses add up to the limit."
        ),
    ] = WindowMode.SLICES
    slices: Annotated[
        int | None, Field(ge=2, le=SLICES_MAX, description="How many parts, where `ends` is not given.")
    ] = None
    starts: Annotated[Day | None, Field(description="A day of the first window; today by default.")] = None
    ends: Annotated[Day | None, Field(description="The day after the last window, in place of `slices`.")] = None
    limit: Annotated[LimitBody | None, Field(description="The amount of one window, in mode `reset`.")] = None
    acknowledge: Annotated[
        str | None, Field(max_length=100, description=f'Needed in mode `reset`: "{ACKNOWLEDGEMENT}".')
    ] = None

    def wish(self) -> WindowWish:
        """As the accountant has it. Raises ValueError for a limit that is none."""
        limit = None if self.limit is None else Limit(self.limit.epsilon, self.limit.delta)
        return WindowWish(
            kind=self.kind,
            mode=self.mode,
            starts=self.starts,
            ends=self.ends,
            slices=self.slices,
            limit=limit,
            acknowledge=self.acknowledge,
        )


class BudgetBody(RequestModel):
    """A new account. Without principal and parent it is the dataset's root, which bounds everybody together."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]
    principal: Annotated[Name | None, Field(description="Who may spend from it; null for a root or a group.")] = None
    parent: Annotated[AccountId | None, Field(description="Account above; the dataset's root by default.")] = None
    name: Annotated[str | None, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")] = None
    limit: LimitBody
    filter: Annotated[FilterWord, Field(description="How losses add up. Cannot be changed later.")] = (
        FilterKind.APPROXIMATE
    )
    delta_shares: Annotated[
        DeltaSharesBody | None,
        Field(
            description="How its delta is divided: for Gaussian noise, for noise that is counted as concentrated, for "
            "Laplace and Gaussian noise together, and for showing groups that are not public. By default "
            f"{DEFAULT_SHARES.gaussian}, {DEFAULT_SHARES.concentrated}, {DEFAULT_SHARES.mixed} and "
            f"{DEFAULT_SHARES.groups} percent. Cannot be changed later; a pure account has none."
        ),
    ] = None
    window: Annotated[
        WindowBody | None, Field(description="When how much of the limit may be spent; at once by default.")
    ] = None


class BudgetChangeBody(RequestModel):
    """Another limit, or another window, for an account, with the reason that the ledger keeps."""

    limit: LimitBody | None = None
    window: Annotated[
        WindowBody | Literal["none"] | None, Field(description='Another window; "none" takes it away.')
    ] = None
    reason: Annotated[str, Field(min_length=1, max_length=REASON_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]

    @model_validator(mode="after")
    def _one_change(self) -> BudgetChangeBody:
        if (self.limit is None) == (self.window is None):
            raise ValueError("give either limit or window: each is a change of its own, with its own entry")
        return self
