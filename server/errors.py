"""Problems: every answer that is not a success, as RFC 9457 documents with what, why and what to do instead.

    Exception
      Problem                 anything this room refuses; carries its code and its words
      SumsRefused             an ExecutionFailed that released numbers explain, and that carries a Problem
      privacy.refusal.Refused         -> problem_of_refusal
      privacy.refusal.ExecutionFailed -> problem_of_execution
      accountant.errors.LedgerError   -> problem_of_ledger

`charged` is in every problem. It is false only when it is certain that nothing was reserved: a charge whose fate is
unknown counts as spent. Texts are written here or come from a refusal; no text of a library's exception is ever
passed on.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from starlette.responses import Response

from accountant.errors import (
    AccountExpired,
    AccountFrozen,
    BudgetExhausted,
    IdempotencyConflict,
    IllegalTransition,
    LedgerError,
    LedgerRejected,
    LedgerUnavailable,
    Nominal,
    PriceMoved,
    UnknownAccount,
    UnknownQuery,
)
from privacy.numbers import decimal_text
from privacy.refusal import CODES, ExecutionFailed, Finding, Position, Refused
from privacy.warning import WARNINGS
from server.problem_kinds import PROBLEMS, ProblemKind

__all__ = [
    "Problem",
    "SumsRefused",
    "exhausted_words",
    "finding_body",
    "problem_body",
    "problem_of_execution",
    "problem_of_ledger",
    "problem_of_refusal",
    "problem_response",
    "window_words",
]

PROBLEM_MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """A request that is not served: a finding in words, and with `findings` every independent reason.

    `why` and `instead` may be left out: the problem's kind says them then.
    """

    def __init__(
        self,
        code: str,
        what: str,
        why: str = "",
        instead: tuple[str, ...] = (),
        *,
        position: Position | None = None,
        findings: tuple[Finding, ...] = (),
        charged: bool = False,
        available_at: datetime.datetime | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        assert code in PROBLEMS, code
        super().__init__(code)
        self.finding = Finding(code, what, why, instead, position)
        self.findings = findings
        self.charged = charged
        self.available_at = available_at
        self.headers = headers or {}
        self.extra = extra or {}

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Problem:
        """The problem of several findings: the first one gives code, words and position."""
        first = findings[0]
        return cls(first.code, first.what, first.why, first.instead, position=first.position, findings=tuple(findings))

    @property
    def code(self) -> str:
        """The code of the finding."""
        return self.finding.code

    @property
    def kind(self) -> ProblemKind:
        """The entry of `PROBLEMS` for this code."""
        return PROBLEMS[self.code]


class SumsRefused(ExecutionFailed):
    """A query of two charges whose second one is refused, for a reason that released numbers give."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.problem = problem


def _position_body(position: Position | None) -> dict[str, object] | None:
    if position is None:
        return None
    return {"line": position.line, "column": position.column, "text": position.text}


def finding_body(finding: Finding) -> dict[str, object]:
    """A finding of a problem, or a warning of an answer, as JSON. What a problem lacks is filled in from its kind.

    Refusals and warnings of a query have no field: only findings about the request and about dataset files say one.
    """
    body: dict[str, object] = {
        "code": finding.code,
        "what": finding.what,
        "why": finding.why,
        "instead": list(finding.instead or (() if finding.code in WARNINGS else PROBLEMS[finding.code].instead)),
        "position": _position_body(finding.position),
    }
    if finding.code not in CODES and finding.code not in WARNINGS:
        body["field"] = finding.field
    return body


def problem_body(problem: Problem, *, request_id: str) -> dict[str, object]:
    """The problem document, all members always present; members of `extra` come last."""
    kind, finding = problem.kind, problem.finding
    why = finding.why or kind.meaning
    instead = finding.instead or kind.instead
    alone = {**finding_body(replace(finding, why=why, position=None)), "field": None}
    body: dict[str, object] = {
        "type": f"/problems/{problem.code}",
        "title": kind.meaning,
        "status": kind.status,
        "detail": f"{finding.what}. {why}",
        "code": problem.code,
        "what": finding.what,
        "why": why,
        "instead": list(instead),
        "position": _position_body(finding.position),
        "findings": [finding_body(one) for one in problem.findings] or [alone],
        "charged": problem.charged,
        # Whoever says after how long it is to be sent again says that it may work then.
        "retryable": kind.retryable or "Retry-After" in problem.headers,
        "available_at": None if problem.available_at is None else problem.available_at.isoformat(),
        "request_id": request_id,
    }
    for name, value in problem.extra.items():
        body.setdefault(name, value)
    return body


def problem_response(problem: Problem, *, request_id: str) -> Response:
    """The problem as a response that no cache keeps."""
    headers = {"Cache-Control": "no-store", **problem.headers}
    if problem.code == "unauthenticated":
        headers.setdefault("WWW-Authenticate", 'Bearer realm="noisegate"')
    return Response(
        json.dumps(problem_body(problem, request_id=request_id), ensure_ascii=False).encode(errors="replace"),
        status_code=problem.kind.status,
        media_type=PROBLEM_MEDIA_TYPE,
        headers=headers,
    )


def problem_of_refusal(refused: Refused) -> Problem:
    """A refusal with all its findings; the first one gives code, words and position. Nothing was spent."""
    return Problem.of(refused.findings)


def problem_of_execution(failed: ExecutionFailed) -> Problem:
    """The one constant outcome after the start of the engine; a query that read no row was not charged, and says so."""
    if isinstance(failed, SumsRefused):
        return failed.problem
    if not failed.started:
        # Not 503: a client that repeats it by itself would get the same outcome forever under one Idempotency-Key.
        return Problem(
            "query_void",
            what="the query ended without an answer",
            why="It was cancelled, no worker could take it, or the part above its aggregates failed on numbers that "
            "were released before. Nothing was charged.",
        )
    return Problem(
        "execution_failed",
        what="the query could not be completed",
        why="It was started, so it stays charged. The reason is not disclosed, because it may depend on rows.",
        charged=True,
    )


def exhausted_words(nominal: Nominal | None, delta_fits: Fraction | None) -> tuple[str, tuple[str, ...]]:
    """Why a budget does not cover a query, and what to do.

    `nominal` is the price and what is left, where the reader may know it; `delta_fits` the greatest delta that could be
    admitted, where that of selecting groups is too much.
    """
    why = "Every answer uses up a part of the budget, and what is left is less than this query's price."
    if nominal is not None:
        why = (
            f"It costs epsilon {decimal_text(nominal.epsilon, places=6)} and delta {decimal_text(nominal.delta)}; "
            f"epsilon {decimal_text(nominal.epsilon_left, places=6, up=False)} and delta "
            f"{decimal_text(nominal.delta_left, up=False)} are left."
        )
    if delta_fits is not None:
        why += " Its groups are not public, and showing them takes more delta than the budget has for that."
        fits = decimal_text(delta_fits, up=False)
        return why, (
            *(
                (f'"delta": "{fits}" in the request, or --delta {fits} on a command line; less leaves some for later.',)
                if delta_fits > 0
                else ()
            ),
            "Group by public keys, which need no delta.",
            "Ask an administrator for a budget with more delta.",
        )
    return why, (
        "Ask for less: a smaller spend, or a wider half_width. POST /v1/estimates shows the price for free.",
        "Read stored releases: they cost nothing.",
        "Ask an administrator to raise the limit.",
    )


def window_words(available: datetime.datetime | None, turns: datetime.datetime | None) -> tuple[str, tuple[str, ...]]:
    """What a window adds to a refusal: when it would let the query through, or at least when it turns."""
    if available is not None:
        return (
            " That is what the window of the budget lets through now; its limit would cover this query.",
            (f"Wait until {available.isoformat()}: it fits then, if nothing else is spent until then.",),
        )
    if turns is not None:
        return "", (f"The next window of the budget begins at {turns.isoformat()}, and may cover more.",)
    return "", ()


def problem_of_ledger(error: LedgerError, *, spending: bool, own_account: bool = False) -> Problem:
    """What the ledger said, for the caller. `spending` is whether the request could have made a reservation.

    `own_account` is whether the account that is exhausted belongs to the caller: only then it is named and its
    remainder reported, because the remainder of other accounts reveals what others asked.
    """
    if isinstance(error, BudgetExhausted):
        return _exhausted(error, own_account=own_account)
    if isinstance(error, IdempotencyConflict):
        return Problem(
            "idempotency_conflict",
            what="the Idempotency-Key was used before with another body",
            why="A key stands for one request for as long as the ledger exists.",
            instead=("Use a new key for a new request.", "Send the same body to get the stored answer."),
        )
    if isinstance(error, UnknownAccount):
        return Problem(
            "no_budget",
            what="there is no such budget for this dataset",
            why="A query is paid from an account of the caller.",
            instead=("Leave out the field budget.", "List your budgets with GET /v1/budgets."),
        )
    if isinstance(error, AccountFrozen):
        return Problem(
            "no_budget",
            what="the budget is frozen",
            why="An administrator stopped it, or it was a second budget of one principal below one parent: it pays for "
            "nothing.",
            instead=("Leave out the field budget.", "List your budgets with GET /v1/budgets."),
        )
    if isinstance(error, AccountExpired):
        return Problem(
            "no_budget",
            what="the budget has ended",
            why="It was lent until a moment that has passed. What was spent stays spent.",
            instead=("Leave out the field budget.", "List your budgets with GET /v1/budgets."),
        )
    if isinstance(error, PriceMoved):
        return Problem(
            "conflict",
            what="the account paid for another query since this one was priced",
            instead=("Send the request again.",),
            headers={"Retry-After": "1"},
        )
    if isinstance(error, UnknownQuery):
        return Problem("not_found", what="there is no such query")
    if isinstance(error, IllegalTransition):
        return Problem("conflict", what="the query is in a state that does not allow this step")
    if isinstance(error, LedgerRejected) and spending and not error.before:
        return Problem(
            "charge_unknown",
            what="the ledger does not agree with itself, and is not spent from",
            why="It was found out during this request. The charge may have been made, so it counts as made.",
            charged=True,
        )
    if isinstance(error, LedgerUnavailable) and spending:
        return Problem(
            "charge_unknown",
            what="the ledger did not answer in time",
            why="The charge may have been made, so it counts as made.",
            charged=True,
        )
    # LedgerBehind, LedgerUnusable, or a read that found no connection: nothing can have been reserved.
    return Problem(
        "unavailable",
        what="the ledger cannot be used at the moment",
        why="Nothing was charged.",
        instead=("Try again later.", "Ask the operator to look up the request id."),
        headers={"Retry-After": "5"},
    )


def _exhausted(error: BudgetExhausted, *, own_account: bool) -> Problem:
    """A refusal for want of budget: what is missing of an account is said to its owner alone."""
    whose = "your budget" if own_account else "the dataset's budget, which you share with others,"
    why, instead = exhausted_words(error.nominal if own_account else None, error.delta_fits)
    available = error.available_at if own_account else None
    words, waiting = window_words(available, error.turns_at)
    why, instead = f"{why}{words}", (*waiting, *instead)
    return Problem(
        "budget_exhausted",
        what=f"{whose} does not cover this query",
        why=why,
        instead=instead,
        available_at=available,
        extra={
            "budget": error.account if own_account else None,
            "turns_at": None if error.turns_at is None else error.turns_at.isoformat(),
            "short": [
                {
                    "measure": shortage.measure,
                    "asked": None if shortage.asked is None else decimal_text(shortage.asked),
                    "remaining": None if shortage.remaining is None else decimal_text(shortage.remaining, up=False),
                }
                for shortage in (error.shortages if own_account else ())
            ],
        },
    )
