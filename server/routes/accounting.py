"""Figures about adding up privacy loss, from the numbers of the request alone: no account, no row."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from accountant.filter import DELTA_MAX, EPSILON_MAX, Limit
from accountant.simulation import Figures, Kind, Repeated, simulate
from privacy.numbers import ATTO, PICO, decimal_text, parse_decimal
from server.auth import Caller, roles, services_of
from server.errors import Problem
from server.roles import Role
from server.routes.common import describe, json_response
from server.wire.accounting import SimulationAnswer
from server.wire.words import KindWord

__all__ = ["router"]

router = APIRouter()

_AMOUNT = r"^[0-9.eE+-]{1,60}$"
_SIZE_MAX = Fraction(100)
_DEVIATION_MAX = Fraction(10**6)
_COUNTS = "1,10,100,1000,10000"
_COUNTS_MAX = 24
_EXAMPLE = {
    "limit": {"epsilon": "1", "delta": "0.000001"},
    "question": {"kind": "gaussian", "epsilon": None, "mu": 0.01, "standard_deviation": 100.0},
    "counts": [1, 10],
    "ways": [
        {
            "name": "gaussian",
            "means": "The squares of mu of Gaussian differential privacy added up, converted exactly.",
            "source": "Dong, Roth and Su 2022, Corollary 3.3; Smith and Thakurta 2022",
            "standing": "filter",
            "here": True,
            "questions": 560,
            "epsilon": [0.034, 0.117],
        }
    ],
}


@router.get(
    "/v1/accounting/simulate",
    **describe(
        "simulateAccounting",
        "Simulate how many questions a limit affords",
        "Under each way of adding up privacy loss, and what so many questions promise together. Reads no account.",
        tag="Budgets",
        answers={200: (SimulationAnswer, _EXAMPLE)},
    ),
)
async def simulate_accounting(
    request: Request,
    caller: Annotated[Caller, Depends(roles(*Role))],
    kind: Annotated[KindWord, Query(description="What a question is answered with.")] = Kind.LAPLACE,
    epsilon: Annotated[str, Query(pattern=_AMOUNT, description="Epsilon of the limit.")] = "1",
    delta: Annotated[str, Query(pattern=_AMOUNT, description="Delta of the limit; 0 for a pure one.")] = "0.000001",
    each: Annotated[
        str | None, Query(pattern=_AMOUNT, description="Epsilon of one question; of a Gaussian one its mu.")
    ] = None,
    standard_deviation: Annotated[
        str | None, Query(pattern=_AMOUNT, description="Or: of the noise of a count, one row per unit.")
    ] = None,
    counts: Annotated[str, Query(max_length=240, description="Numbers of questions, with commas.")] = _COUNTS,
) -> Response:
    """GET /v1/accounting/simulate."""
    try:
        limit = Limit(
            parse_decimal(epsilon, name="epsilon", maximum=EPSILON_MAX, unit=PICO),
            parse_decimal(delta, name="delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True),
        )
        question = _question(kind, each, standard_deviation)
        numbers = _numbers(counts)
        # A second of arithmetic, where counts are large: in turn with estimates, so that nobody's requests wait for it.
        figures = await services_of(request).jobs.call(lambda: _simulate(question, limit, numbers), owner=caller.name)
    except ValueError as error:
        raise Problem(
            "invalid_request",
            what=str(error),
            why="The simulation takes a limit, a kind of question and its size.",
            instead=("GET /v1/accounting/simulate?kind=laplace&epsilon=1&delta=0.000001&each=0.01",),
        ) from None
    size = float(question.size)
    return json_response(
        {
            "limit": {"epsilon": decimal_text(limit.epsilon), "delta": decimal_text(limit.delta)},
            "question": {
                "kind": kind.value,
                "epsilon": question.epsilon,
                "mu": size if question.kind is Kind.GAUSSIAN else None,
                "standard_deviation": question.deviation,
            },
            "counts": numbers,
            "ways": [_way(figure) for figure in figures],
        }
    )


def _question(kind: Kind, each: str | None, deviation: str | None) -> Repeated:
    if each is not None and deviation is not None:
        raise ValueError("each and standard_deviation say the same thing: name one of them")
    if deviation is not None:
        size = parse_decimal(deviation, name="standard_deviation", maximum=_DEVIATION_MAX, unit=PICO)
        return Repeated.with_deviation(kind, size)
    return Repeated(kind, parse_decimal(each or "0.01", name="each", maximum=_SIZE_MAX, unit=PICO))


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) > _COUNTS_MAX or not all(re.fullmatch(r"\s*[0-9]{1,9}\s*", part, re.ASCII) for part in parts):
        raise ValueError(f"counts must be at most {_COUNTS_MAX} whole numbers with commas between them")
    return tuple(int(part) for part in parts)


_simulate = lru_cache(maxsize=256)(simulate)


def _way(figure: Figures) -> dict[str, object]:
    way = figure.way
    return {
        "name": way.name,
        "means": way.means,
        "source": way.source,
        "standing": way.standing.value,
        "here": way.here,
        "questions": figure.questions,
        "epsilon": figure.epsilons,
    }
