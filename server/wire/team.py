"""Models of answers about all accounts, for overseers."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import Amount, AnswerModel

__all__ = ["QuestionsLeftList", "RunningOutList", "SpendingList"]


class BudgetNamed(AnswerModel):
    """Which budget it is."""

    budget: str
    dataset: str
    principal: str | None = Field(description="Whose it is; null for the root and for groups.")
    name: str
    limit: Amount


class SpendingAnswer(BudgetNamed):
    """What a budget spent in a month."""

    share: str = Field(description="Of the limit that it has now, from 0 to 1.")
    epsilon: str


class SpendingList(AnswerModel):
    """Who spent what in a month, the greatest share first. Budgets below others count in those too."""

    month: str
    budgets: list[SpendingAnswer]


class PaceAnswer(AnswerModel):
    """How fast a budget is spent."""

    share_per_day: str
    days: int = Field(description="Over how many last days, or since the budget was opened.")


class RunningOutAnswer(BudgetNamed):
    """A budget that is about to run out."""

    used_share: str
    pace: PaceAnswer
    projected: str | None = Field(description="When it is used up at that pace; null where nothing is spent.")


class RunningOutList(AnswerModel):
    """What is about to run out, the soonest first."""

    within_days: int
    budgets: list[RunningOutAnswer]


class QuestionsLeftAnswer(BudgetNamed):
    """What a budget could still answer."""

    remaining: str = Field(description="Nominal epsilon that may be spent now.")
    default_epsilon: str
    questions_left: dict[str, int] = Field(
        description="How many counts at the default spend fit one after another, by their noise, also in the budgets "
        "above."
    )
    standard_error: float | None = Field(description="That of such a count; null where none is left.")


class QuestionsLeftList(AnswerModel):
    """What the team could still ask."""

    budgets: list[QuestionsLeftAnswer]
