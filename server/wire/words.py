"""Words of requests and answers: members of enums that have one home each, spelt out in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, StrEnum
from typing import Annotated

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from accountant.account import FilterKind
from accountant.calendar import WindowKind, WindowMode
from accountant.request import Reuse
from accountant.simulation import Kind, Standing
from accountant.states import QueryStatus
from mechanisms.families import NoiseFamily
from mechanisms.private_descent import Method
from mechanisms.streams.asking import Found
from privacy.rank_tree import QuantileMechanism
from privacy.release import ColumnKind
from server.batches.strategy import Strategy
from server.derived.cells import IntervalMethod
from server.journey.wire_estimate import Verdict
from server.monitors.terms import Direction
from server.resources.kinds import ResourceState
from server.roles import Role
from server.scopes import Scope
from server.store.budget_requests import RequestState
from server.store.proposals import ProposalKind, ProposalState
from server.webhooks.events import EventType

__all__ = [
    "ColumnKindWord",
    "DecisionWord",
    "DeliveryState",
    "DeliveryWord",
    "DirectionWord",
    "EvaluationOutcome",
    "EvaluationWord",
    "EventWord",
    "FilterWord",
    "FoundWord",
    "IntervalWord",
    "KindWord",
    "MechanismWord",
    "MethodWord",
    "NoiseWord",
    "Outcome",
    "OutcomeWord",
    "ProposalDecisionWord",
    "ProposalKindWord",
    "ProposalStateWord",
    "RequestStateWord",
    "ResourceStateWord",
    "ReuseWord",
    "RoleWord",
    "ScopeWord",
    "StandingWord",
    "State",
    "StateWord",
    "StrategyWord",
    "TileState",
    "TileStateWord",
    "VerdictWord",
    "Weekday",
    "WeekdayWord",
    "WindowKindWord",
    "WindowModeWord",
]


class State(StrEnum):
    """The state of a query towards clients. What the ledger calls reserved is running: it has no answer yet."""

    RUNNING = "running"
    SETTLED = QueryStatus.SETTLED.value
    FAILED_CHARGED = QueryStatus.FAILED_CHARGED.value
    FAILED_VOID = QueryStatus.FAILED_VOID.value

    @classmethod
    def of(cls, status: QueryStatus) -> State:
        """The state of a query that the ledger has with this status."""
        return cls.RUNNING if status == QueryStatus.RESERVED else cls(status)


class Outcome(StrEnum):
    """What a check of readiness found."""

    OK = "ok"
    FAILED = "failed"


class EvaluationOutcome(StrEnum):
    """What an evaluation of a monitor said."""

    RUNNING = "running"
    PASSED = "passed"
    NOT_PASSED = "not_passed"
    FAILED = "failed"


class DeliveryState(StrEnum):
    """What became of an event for a webhook."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class TileState(StrEnum):
    """What a tile shows: nothing yet, its newest answer, or its last one, and why there is no newer one."""

    WAITING = "waiting"
    CURRENT = "current"
    EXHAUSTED = "exhausted"
    REFUSED = "refused"
    FAILED = "failed"


class Weekday(StrEnum):
    """A day of the week."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class _OneOf:
    """Reads a word as the member that it is the value of; `none` is a word for None."""

    def __init__(self, members: Iterable[Enum], *, none: str | None = None) -> None:
        self._words = {**({} if none is None else {none: None}), **{member.value: member for member in members}}

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._read)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"enum": list(self._words), "type": "string"}

    def _read(self, value: object) -> Enum | None:
        if not isinstance(value, str) or value not in self._words:
            *others, last = (repr(word) for word in self._words)
            raise ValueError(f"the value must be one of {', '.join(others)} or {last}")
        return self._words[value]


RoleWord = Annotated[Role, _OneOf(Role)]
ScopeWord = Annotated[Scope, _OneOf(Scope)]
FilterWord = Annotated[FilterKind, _OneOf(FilterKind)]
WindowKindWord = Annotated[WindowKind, _OneOf(WindowKind)]
WindowModeWord = Annotated[WindowMode, _OneOf(WindowMode)]
KindWord = Annotated[Kind, _OneOf(Kind)]
MethodWord = Annotated[Method, _OneOf(Method)]
StandingWord = Annotated[Standing, _OneOf(Standing)]
NoiseWord = Annotated[NoiseFamily | None, _OneOf(NoiseFamily, none="auto")]
"""None is the server's choice."""

MechanismWord = Annotated[QuantileMechanism, _OneOf(QuantileMechanism)]
ReuseWord = Annotated[Reuse, _OneOf((Reuse.ANY, Reuse.OWN, Reuse.NONE))]
"""Whether reading what others paid for is charged is the policy's to say."""

StateWord = Annotated[State, _OneOf(State)]
ColumnKindWord = Annotated[ColumnKind, _OneOf(ColumnKind)]
OutcomeWord = Annotated[Outcome, _OneOf(Outcome)]
IntervalWord = Annotated[IntervalMethod, _OneOf(IntervalMethod)]
DirectionWord = Annotated[Direction, _OneOf(Direction)]
StrategyWord = Annotated[Strategy, _OneOf(Strategy)]
FoundWord = Annotated[Found, _OneOf(Found)]
ResourceStateWord = Annotated[ResourceState, _OneOf(ResourceState)]
VerdictWord = Annotated[Verdict, _OneOf(Verdict)]
EvaluationWord = Annotated[EvaluationOutcome, _OneOf(EvaluationOutcome)]
ProposalKindWord = Annotated[ProposalKind, _OneOf(ProposalKind)]
ProposalStateWord = Annotated[ProposalState, _OneOf(ProposalState)]
ProposalDecisionWord = Annotated[
    ProposalState, _OneOf(state for state in ProposalState if state is not ProposalState.OPEN)
]
RequestStateWord = Annotated[RequestState, _OneOf(RequestState)]
DecisionWord = Annotated[RequestState, _OneOf(state for state in RequestState if state is not RequestState.OPEN)]
TileStateWord = Annotated[TileState, _OneOf(TileState)]
WeekdayWord = Annotated[Weekday, _OneOf(Weekday)]
DeliveryWord = Annotated[DeliveryState, _OneOf(DeliveryState)]
EventWord = Annotated[EventType, _OneOf(kind for kind in EventType if kind is not EventType.WEBHOOK_TEST)]
"""A test is sent on request; nobody subscribes to it."""
