"""When an answer shows: moments that follow from the plan and from public facts, and a dither that hides one unit.

How long a query ran is a fact about rows. What shows of it is which of a few moments came next:

    first, 2 first, 4 first, ...        first = the expected work of the plan plus its tick, in ticks of the server

Before the next moment is chosen, a part of the plan's tick is added to the running time, drawn anew and uniformly for
each run. A run that outlasts the time limit fails; the same draw moves that limit, so that failures tell no more.

Claim. Let T and T' be the running times on two data sets that differ in one unit, with |T - T'| <= d
(`sql_rewrite.cost` bounds it), and let the plan's tick be w >= 10 d. Then anyone who sees one moment, and whether the
run failed, distinguishes the data sets with an accuracy of at most 1/2 + d / (2 w) <= 0.55.

Proof. All that shows is a function of T + U, with U uniform on [0, w): the moment is the first one that is not below
T + U, and the run fails when T + U is beyond the time limit plus w. T + U and T' + U are uniform on intervals of length
w that are shifted by at most d, so their total variation distance is at most d / w; a function of them has no
greater one (post-processing), and neither has a mixture over everything else that moves running times (load, caches)
as long as it moves both alike. The best test between two equally likely laws is right with probability 1/2 + TV / 2.

A run of several statements shows one thing more: which of them reached the time limit, because what was released
before is stored with that failure. The claim stays. Let T_k be the time of the first k statements, and b = limit + w.
The run fails in the k-th one when T_(k-1) + U <= b < T_k + U: what shows is a label of U, which changes where U passes
b - T_k, or a moment less T_n. Let the i-th statement take e longer, all else alike. Then U up to b - T_i - e has the
label that U + e had, U beyond b - T_i has the one it had, and between them the run fails in the i-th. So both laws have
all in common but a share of e / w. One statement after another, the laws of two data sets are at most
(d_1 + ... + d_n) / w apart, and `Work.unit_nanoseconds` bounds that sum, because it adds up the statements of a
question. Each statement follows from its question and from numbers released before it.

What fails before the limit (memory, a worker that dies) is in no claim: nothing bounds what one unit does to it. Such
a failure stores nothing of the run, so that it does not show which statement it was.

The claim is about one look. A question of two charges is two runs, one after the other, each with a draw of its own:
its answer is two looks, with an accuracy of at most 0.60. Independent looks add up: three hundred at 0.55 give 0.96 or
more. The price of a look and the floor under it (`epsilon_min`) limit how many there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["OVERHEAD_SECONDS", "SHARE", "Moments", "moments_of"]

SHARE = 10
"""A plan's tick is this many times what the rows of one unit may take."""

OVERHEAD_SECONDS = 0.003
"""From the question to the engine and back: reading the text, the reservation, noise.

Measured with one small statement (`benchmarks.moments`): 1 ms beside its plan, on a machine that others used as well.
"""


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments of one plan: in seconds after the start of the count."""

    first: float
    tick: float

    def __post_init__(self) -> None:
        assert self.tick > 0
        assert self.first >= self.tick

    def next(self, elapsed: float, part: float) -> float:
        """The moment at which a run that ended after `elapsed` seconds shows. `part` is the draw, from 0 up to 1."""
        moment = self.first
        while elapsed + part * self.tick > moment:
            moment *= 2
        return moment

    def limit(self, timeout_seconds: float, part: float) -> float:
        """The time limit of the run with the same draw: it fails when it ends later than this."""
        return timeout_seconds + (1 - part) * self.tick


def moments_of(*, unit_seconds: float, expected_seconds: float, tick_seconds: float) -> Moments:
    """The moments of a plan in which one unit's rows may take `unit_seconds`, and all rows about `expected_seconds`.

    `tick_seconds` is the server's tick: the least tick, and the grid of first moments.
    """
    tick = max(tick_seconds, SHARE * unit_seconds)
    ticks = math.ceil((OVERHEAD_SECONDS + expected_seconds + tick) / tick_seconds)
    return Moments(first=ticks * tick_seconds, tick=tick)
