"""Which questions a monitor answers: one sum without groups, compared as the session was charged for."""

from __future__ import annotations

import math
from fractions import Fraction

from mechanisms.comparing import Comparable, comparable
from privacy.refusal import Finding, Refused
from privacy.unit import Neighbouring
from server.journey.named_bounds import require_named_bounds
from server.journey.query import Prepared
from server.monitors.terms import Direction, Terms
from server.profile_types import Profile
from server.resources import refusals

__all__ = ["CLOCK", "compared_sum", "require_terms", "threshold_steps"]

_WHAT = "the question of a monitor is refused"


def compared_sum(prepared: Prepared, profile: Profile | None = None) -> Comparable:
    """The sum that the question asks for. Errors: Refused for one that asks for anything else."""
    plan = prepared.plan
    require_named_bounds(prepared, profile, what=_WHAT, why="a monitor is charged for a bound that is known")
    simple = (
        len(prepared.cores) == 1
        and plan.shell.trivial
        and len(plan.shell.outputs) == 1
        and not (plan.stages or plan.public or plan.chosen or prepared.values)
    )
    found = comparable(prepared.cores[0].described) if simple else None
    if found is None:
        raise Refused([_NOT_ONE_SUM])
    if found.statistic.sensitivity.relation is not Neighbouring.ADD_REMOVE:
        raise Refused([_OTHER_RELATION])
    return found


def require_terms(found: Comparable, terms: Terms) -> None:
    """Refuses a sum that the session was not charged for. Errors: Refused.

    Declarations may have changed since the monitor was opened, and another question of a stream has its own sum.
    """
    one_way = not terms.one_way or (found.one_way and found.upwards == terms.upwards)
    if found.step != terms.step or found.change > terms.change or not one_way:
        raise Refused([_BEYOND_TERMS])


def threshold_steps(threshold: Fraction, found: Comparable, direction: Direction) -> int:
    """The threshold in whole steps of the sum: at least it means the same as before, and at most too."""
    steps = threshold / found.step
    return math.floor(steps) if direction is Direction.BELOW else math.ceil(steps)


_NOT_ONE_SUM = Finding(
    code="unsupported_sql",
    what=_WHAT,
    why="A monitor compares one number with its threshold: a COUNT or a SUM, without groups or arithmetic on it.",
    instead=(
        "write SELECT COUNT(*) FROM a_table WHERE ..., or SUM of a column with bounds",
        "open one monitor for each group, with the group in WHERE",
    ),
)
_OTHER_RELATION = refusals.other_relation(_WHAT, "monitors", "ask it with POST /v1/queries")
_BEYOND_TERMS = Finding(
    code="policy_forbids",
    what="the evaluation is refused",
    why="One unit may change this sum by more, or in other directions or steps, than the monitor was charged for.",
    instead=(
        "ask for a count with the same or smaller contribution bounds",
        "open another monitor: declarations that changed make another session",
    ),
)
CLOCK = Finding(
    code="volatile_function",
    what=_WHAT,
    why="It reads the clock: a standing question is evaluated once for each version of the data, whatever the day.",
    instead=("write a date in its place", "evaluate a stream, with the date in each question"),
)
"""Why a standing question may not read the clock."""
