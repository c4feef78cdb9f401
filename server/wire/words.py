"""Words of requests and answers: members of enums that have one home each, spelt out in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, StrEnum
from typing import Annotated, TypeVar

from pydantic import PlainValidator, WithJsonSchema

from accountant.account import FilterKind
from accountant.request import Reuse
from accountant.states import QueryStatus
from mechanisms.families import NoiseFamily
from privacy.release import ColumnKind
from server.derived.cells import IntervalMethod
from server.roles import Role

__all__ = [
    "ColumnKindWord",
    "FilterWord",
    "IntervalWord",
    "NoiseWord",
    "Outcome",
    "OutcomeWord",
    "Progress",
    "ProgressWord",
    "ReuseWord",
    "RoleWord",
    "StatusWord",
]

Word = TypeVar("Word")
Kind = TypeVar("Kind", bound=Enum)


class Progress(StrEnum):
    """How far a query is that has no answer yet: admitted, or taken up by this process."""

    RESERVED = QueryStatus.RESERVED.value
    RUNNING = "running"


class Outcome(StrEnum):
    """What a check of readiness found."""

    OK = "ok"
    FAILED = "failed"


def _one_of(words: Mapping[str, Word]) -> PlainValidator:
    """Reads one of the words as what it stands for."""
    *others, last = (repr(word) for word in words)

    def parse(value: object) -> Word:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"the value must be one of {', '.join(others)} or {last}")
        return words[value]

    return PlainValidator(parse)


def _spelt(words: Iterable[str]) -> WithJsonSchema:
    return WithJsonSchema({"enum": list(words), "type": "string"})


def _by_word(kind: type[Kind]) -> dict[str, Kind]:
    return {member.value: member for member in kind}


_ROLES = _by_word(Role)
_FILTERS = _by_word(FilterKind)
_NOISES = {"auto": None, **_by_word(NoiseFamily)}
_REUSES = {reuse.value: reuse for reuse in (Reuse.ANY, Reuse.OWN, Reuse.NONE)}
_STATES = _by_word(QueryStatus)
_PROGRESS = _by_word(Progress)
_KINDS = _by_word(ColumnKind)
_OUTCOMES = _by_word(Outcome)
_INTERVALS = _by_word(IntervalMethod)

RoleWord = Annotated[Role, _one_of(_ROLES), _spelt(_ROLES)]
FilterWord = Annotated[FilterKind, _one_of(_FILTERS), _spelt(_FILTERS)]
NoiseWord = Annotated[NoiseFamily | None, _one_of(_NOISES), _spelt(_NOISES)]
"""None is "auto": the server's choice."""

ReuseWord = Annotated[Reuse, _one_of(_REUSES), _spelt(_REUSES)]
"""Whether reading what others paid for is charged is the policy's to say."""

StatusWord = Annotated[QueryStatus, _one_of(_STATES), _spelt(_STATES)]
ProgressWord = Annotated[Progress, _one_of(_PROGRESS), _spelt(_PROGRESS)]
ColumnKindWord = Annotated[ColumnKind, _one_of(_KINDS), _spelt(_KINDS)]
OutcomeWord = Annotated[Outcome, _one_of(_OUTCOMES), _spelt(_OUTCOMES)]
IntervalWord = Annotated[IntervalMethod, _one_of(_INTERVALS), _spelt(_INTERVALS)]
