"""Why monitors are not opened, or say nothing."""

from __future__ import annotations

from fractions import Fraction

from privacy.refusal import Finding
from server.above_floor import Shortfall
from server.errors import Problem
from server.resources import refusals
from server.resources.kinds import ResourceKind

__all__ = [
    "UnderWay",
    "above_most",
    "answer_below_floor",
    "background_stream",
    "below_floor",
    "dataset_away",
    "is_over",
    "noise_unreachable",
    "overtaken",
    "stands",
]


class UnderWay(Problem):
    """Why nothing is compared at this moment: another evaluation of the version, or of the stream, has its turn.

    Nothing was counted. Of a version, the outcome of that one will be said.
    """

    def __init__(self, *, stream: bool) -> None:
        if stream:
            what = "another evaluation of the stream is under way"
            why = "Evaluations of a stream follow one another. This one was not counted, and nothing was charged."
            instead: tuple[str, ...] = ("Send it again in a moment.", "Name wait_ms, which waits for its turn.")
        else:
            what = "this version of the data is being evaluated"
            why = "Another evaluation of the monitor has begun, and one version is compared once. Nothing was charged."
            instead = ("Evaluate it again in a moment, which says its outcome.",)
        super().__init__("conflict", what=what, why=why, instead=instead, headers={"Retry-After": "1"})


def noise_unreachable(why: str) -> Finding:
    """Why a session whose noise cannot be drawn is refused."""
    instead = ("name another epsilon, or fewer hits", "watch a count, or a sum with narrower bounds")
    return refusals.no_noise("the monitor is refused", why, *instead)


def above_most(most: Fraction) -> Finding:
    """Why a session above the policy's greatest price is refused."""
    return refusals.above_most("a monitor", most, "open several monitors")


def below_floor(evaluations: int, short: Shortfall) -> Finding:
    """Why a session below the floor is refused."""
    fewer = f'"evaluations": {short.looks}, or --evaluations {short.looks}'
    return Finding(
        code="policy_forbids",
        what=f"a monitor of {evaluations} evaluations at this epsilon is refused",
        why=f"Each evaluation reads rows, and is worth the dataset's floor at least, epsilon {short.of_one} of the "
        f"whole budget.{short.worth}",
        instead=(*((fewer,) if short.looks else ()), short.greater("epsilon")),
    )


def answer_below_floor(short: Shortfall) -> Finding:
    """Why answers below the floor are refused."""
    return Finding(
        code="policy_forbids",
        what="answers at this epsilon are refused",
        why=f"Each is worth the dataset's floor at least, epsilon {short.of_one} of the whole budget.",
        instead=(short.greater("answer_epsilon"), "leave answer_epsilon out: hits then have no number"),
    )


def is_over(why: str) -> Problem:
    """Why a monitor that is over says nothing."""
    return refusals.is_over(
        "monitor", why, stays="What it said stays, and nothing was charged", again=ResourceKind.MONITOR.path
    )


def stands() -> Problem:
    """Why a standing monitor evaluates no other question."""
    return Problem(
        "invalid_request",
        what="an evaluation of a standing question names no other one",
        why="The monitor was opened for its own question and threshold.",
        instead=("Send an empty object.", "Open a monitor with stream: true for other questions."),
    )


def background_stream() -> Problem:
    """Why a stream is not evaluated by the server itself."""
    return Problem(
        "invalid_request",
        what="a stream is not evaluated in the background",
        why="Its questions come with its evaluations, so there is nothing to ask without you.",
        instead=("Leave background out, or open a monitor without stream.",),
    )


def overtaken() -> Problem:
    """What an evaluation says that another one overtook."""
    return Problem(
        "conflict",
        what="the evaluation was overtaken by another one of the same monitor",
        why="Two outcomes at once could be one hit too many, so one of them was thrown away unseen.",
        instead=("Evaluate it again.",),
        headers={"Retry-After": "1"},
    )


def dataset_away() -> Problem:
    """What an evaluation says while the dataset is not served."""
    return refusals.dataset_away("monitor", again="Evaluate it again later.")
