"""Models of requests and answers about dashboards."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from privacy.bounds import AskedContribution
from server.dashboards.schedule import EACH_VERSION, Schedule
from server.dashboards.terms import Envelope, MakeDashboard, TileText, TileWish
from server.wire.answers import AnswerModel
from server.wire.requests import (
    DATASET_PATTERN,
    NAME_PATTERN,
    SQL_LENGTH_MAX,
    ContributionBody,
    Delta,
    Epsilon,
    RequestModel,
    SpendBody,
)
from server.wire.words import TileStateWord, Weekday, WeekdayWord

__all__ = [
    "TILE_PATTERN",
    "DashboardAnswer",
    "DashboardBody",
    "DashboardChangeBody",
    "DashboardList",
    "EnvelopeBody",
    "LinkAnswer",
    "LinkBody",
    "LinkList",
    "NewLinkAnswer",
    "ScheduleBody",
    "TileAnswer",
    "TileBody",
    "TileHistory",
    "TileTable",
]

TILES_MAX = 24
READERS_MAX = 50
TIMES_MAX = 48
LINK_DAYS_MAX = 366
TILE_PATTERN = r"^[a-z][a-z0-9_-]{0,39}$"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TIME = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"


def _printable(text: str) -> str:
    if not text.strip() or _CONTROL.search(text):
        raise ValueError("it has no letters, or control characters")
    return text


Title = Annotated[
    str,
    Field(min_length=1, max_length=200, description="For people, without control characters."),
    AfterValidator(_printable),
]


class ScheduleBody(RequestModel):
    """When a tile is refreshed: at times of the day, or for each version of the data."""

    times: Annotated[
        list[Annotated[str, Field(pattern=_TIME)]] | None,
        Field(min_length=1, max_length=TIMES_MAX, description="Times of the day in UTC, such as 06:00."),
    ] = None
    days: Annotated[
        list[WeekdayWord] | None,
        Field(min_length=1, max_length=7, description="The days on which these times count; without it every day."),
    ] = None
    each: Annotated[
        Literal["data_version"] | None, Field(description="In place of times: once for each version of the data.")
    ] = None

    @model_validator(mode="after")
    def _one_way(self) -> ScheduleBody:
        if (self.times is None) == (self.each is None) or (self.days is not None and self.times is None):
            raise ValueError('a schedule is either times, with days if it needs them, or "each": "data_version"')
        return self

    def asked(self) -> Schedule:
        """As the schedule reads it."""
        if self.times is None:
            return EACH_VERSION
        minutes = sorted({int(time[:2]) * 60 + int(time[3:]) for time in self.times})
        days = range(7) if self.days is None else sorted({list(Weekday).index(day) for day in self.days})
        return Schedule(tuple(minutes), tuple(days))


class EnvelopeBody(RequestModel):
    """The limit of the account that pays for a dashboard, which lies below the caller's own."""

    epsilon: Epsilon
    delta: Annotated[Delta | None, Field(description="Without it that of the caller's budget.")] = None


class TileBody(RequestModel):
    """One tile."""

    name: Annotated[str, Field(pattern=TILE_PATTERN, description="Its name in addresses, one of its dashboard's.")]
    title: Title
    sql: Annotated[
        str, Field(min_length=1, max_length=SQL_LENGTH_MAX, description="One SELECT, as of a query. Kept encrypted.")
    ]
    spend: Annotated[SpendBody, Field(description="What each refresh that reads rows may cost.")]
    schedule: ScheduleBody
    contribution: Annotated[
        ContributionBody | Literal["auto"] | None,
        Field(description="How much of one unit counts, as of a query."),
    ] = None

    def asked(self) -> TileWish:
        """As dashboards read it."""
        bounds = self.contribution
        return TileWish(
            name=self.name,
            title=self.title,
            text=TileText(
                sql=self.sql,
                epsilon=self.spend.epsilon,
                own_epsilon=self.spend.own_epsilon,
                contribution=AskedContribution(automatic=True)
                if bounds == "auto"
                else None
                if bounds is None
                else bounds.asked(),
            ),
            schedule=self.schedule.asked(),
        )


class DashboardChangeBody(RequestModel):
    """What a dashboard shall be from now on."""

    title: Title
    envelope: EnvelopeBody
    tiles: Annotated[
        list[TileBody],
        Field(
            min_length=1,
            max_length=TILES_MAX,
            description="All of them, in their order. One whose text, spend or bounds change begins anew.",
        ),
    ]
    readers: Annotated[
        list[Annotated[str, Field(pattern=NAME_PATTERN)]],
        Field(
            max_length=READERS_MAX,
            default_factory=list,
            description="Principals of the role dashboard that may read it.",
        ),
    ]

    @model_validator(mode="after")
    def _names_differ(self) -> DashboardChangeBody:
        if len({tile.name for tile in self.tiles}) != len(self.tiles):
            raise ValueError("two tiles have the same name")
        return self

    def asked(self, principal: str, dataset: str) -> MakeDashboard:
        """As dashboards read it."""
        return MakeDashboard(
            principal=principal,
            dataset=dataset,
            title=self.title,
            envelope=Envelope(epsilon=self.envelope.epsilon, delta=self.envelope.delta),
            tiles=tuple(tile.asked() for tile in self.tiles),
            readers=tuple(self.readers),
        )


class DashboardBody(DashboardChangeBody):
    """A dashboard to make."""

    dataset: Annotated[str, Field(pattern=DATASET_PATTERN, description="Name of the dataset.")]


class LinkBody(RequestModel):
    """A read-only link to make."""

    label: Annotated[
        str,
        Field(max_length=100, description="What it is for, without control characters."),
        AfterValidator(_printable),
    ]
    days: Annotated[int, Field(ge=1, le=LINK_DAYS_MAX, description="After so many days it opens nothing.")] = 30


class TileAnswer(AnswerModel):
    """A tile of a dashboard."""

    name: str
    title: str | None = Field(description="Null where it cannot be read: the server has another key_secret.")
    state: TileStateWord = Field(
        description="`waiting` for its first answer; `current`; or it shows its last answer: `exhausted` where the "
        "envelope, or an account above it, did not cover the last refresh, `refused` where it would not be answered "
        "any more, `failed` where it ended without an answer."
    )
    as_of: str | None = Field(description="The moment of the schedule from which on its numbers are shown.")
    refreshed: str | None = Field(description="The moment of its last refresh.")
    next: str | None = Field(description="The next moment of its schedule; null where it follows the data.")
    schedule: dict[str, object]
    sql: str | None = Field(description="For its owner.")
    spend: dict[str, str | None] | None = Field(description="For its owner and overseers.")
    refused: str | None = Field(description="The problem of its last refresh, for its owner and overseers.")
    query: str | None = Field(description="The query whose answer is shown, for its owner and overseers.")
    links: dict[str, str]


class DashboardAnswer(AnswerModel):
    """A dashboard."""

    id: str
    title: str | None
    dataset: str
    principal: str | None = Field(description="Its owner, for the owner and overseers.")
    created: str
    paused: str | None = Field(description="Since when its schedule rests.")
    readers: list[str] | None = Field(description="For its owner and overseers.")
    envelope: dict[str, object] | None = Field(description="The account that pays, for its owner and overseers.")
    exhausted_on: str | None = Field(
        description="The day on which the envelope will not cover a refresh, if data come as often as in the last 30 "
        "days; null where none is foreseen."
    )
    tiles: list[TileAnswer]
    links: dict[str, str]


class DashboardList(AnswerModel):
    """A page of dashboards, newest first."""

    dashboards: list[DashboardAnswer]
    next: str | None


class TileColumn(AnswerModel):
    """A column of a tile."""

    name: str = Field(description="As the query wrote it; the ends of the interval of x are x_low and x_high.")
    type: str
    kind: str = Field(description="key, released, derived, low or high.")


class TileTable(AnswerModel):
    """A tile: its last answer as a list of objects."""

    dashboard: str
    tile: str
    title: str | None
    state: TileStateWord
    paused: bool
    as_of: str | None
    data_version: str | None
    confidence: float | None = Field(description="Chance with which each interval covers.")
    warnings: list[str] = Field(description="Codes of the answer's warnings.")
    columns: list[TileColumn]
    rows: list[dict[str, object]] = Field(description="Each row by the names of the columns.")


class TileHistory(AnswerModel):
    """The last answers of a tile, one after the other, the oldest first."""

    dashboard: str
    tile: str
    title: str | None
    columns: list[TileColumn]
    rows: list[dict[str, object]] = Field(
        description="Each row by the names of the columns, with the moment (`at`) and `data_version`."
    )


class LinkAnswer(AnswerModel):
    """A read-only link, without its token."""

    id: str
    label: str
    created: str
    expires: str
    revoked: str | None


class NewLinkAnswer(LinkAnswer):
    """A link that was made, with its token."""

    token: str | None = Field(
        description="Shown once: the value of the parameter `link` of the tiles' addresses. Null in a repeated request."
    )
    urls: dict[str, str] | None = Field(description="By tile, the address of its CSV with this link. Shown once.")


class LinkList(AnswerModel):
    """The links of a dashboard, newest first."""

    links: list[LinkAnswer]
