"""Why an act on a collector was not carried out: refusals that `refusal.py` describes. They come over HTTP alone."""

from __future__ import annotations

from dataclasses import dataclass

from server.administration.refusal import Absent, Refusal

__all__ = [
    "ClosedCollector",
    "FullCollector",
    "NoCollector",
    "NoReports",
    "RefusedToken",
    "UnsuitableCollector",
    "UnsuitableReport",
]


@dataclass(frozen=True, slots=True)
class NoCollector(Absent):
    """There is no collector of that identifier."""

    thing = "collector"
    what = "there is no such collector"
    why = "No question of local collection has this identifier."
    instead = "See: GET /v1/collectors"


@dataclass(frozen=True, slots=True)
class UnsuitableCollector(Refusal):
    """The question cannot be asked so; `rule` is the one that it breaks, `advice` what to do."""

    rule: str
    advice: str

    code = "invalid_request"
    what = "could not open the collector"
    why = "{it.rule}."
    instead = "{it.advice}"


@dataclass(frozen=True, slots=True)
class ClosedCollector(Refusal):
    """The collector takes no more reports or tokens."""

    what = "the collector is closed"
    why = "It takes no more reports and gives no more tokens. No token was used."
    instead = "Its estimates stay: GET /v1/collectors/{{collector}}/estimates\nA new question needs a new collector."


@dataclass(frozen=True, slots=True)
class FullCollector(Refusal):
    """The collector would have too many tokens."""

    most: int

    what = "could not make the tokens"
    why = "A collector has at most {it.most} tokens."
    instead = "Ask for fewer, or open another collector."


@dataclass(frozen=True, slots=True)
class RefusedToken(Refusal):
    """The token of the report at `place` does not work."""

    place: int
    used: bool

    code = "token_refused"
    what = "the token of report {it.place} is not accepted"
    why = "{it.reason} None of the reports of this request was counted, and no token was used."
    instead = "{it.advice}"

    @property
    def reason(self) -> str:
        """What is known to whoever holds a token."""
        return "It was used before, or twice in this request." if self.used else "It is not a token of this collector."

    @property
    def advice(self) -> str:
        """What to do."""
        if self.used:
            return "If an earlier reply was lost, the report arrived then: do not send another."
        return "Copy the whole token again, or ask whoever gave it for another."


@dataclass(frozen=True, slots=True)
class UnsuitableReport(Refusal):
    """The report at `place` is none that the collector's encoding makes; `rule` says what one is."""

    place: int
    rule: str

    code = "invalid_request"
    what = "report {it.place} is not accepted"
    why = "{it.rule} None of the reports of this request was counted, and no token was used."
    instead = "Make it with a client of this version, from the law of this collector."


@dataclass(frozen=True, slots=True)
class NoReports(Refusal):
    """There is nothing to estimate from."""

    what = "the collector has no reports yet"
    why = "A share of no reports has no meaning."
    instead = "Wait for the first report, then ask again."
