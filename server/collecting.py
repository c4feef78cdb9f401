"""The garbage collector of a server: how often it looks for objects that nothing reaches any more."""

from __future__ import annotations

import gc

__all__ = ["settle"]

_YOUNG_MAX = 10_000
"""New objects until the next look. A question makes thousands, most of them in rings (a node of a syntax tree and its
parent), and needs nearly all of them until it is priced: with the 700 of the language the collector looked ten times
in the middle of each question, and found nothing. With 50,000 it looked at each fortieth question, all threads waited
30 to 45 ms for it, and it cost each question 0.6 ms: what it looks through then is in no near memory any more. Now
it is each ninth, 3 ms, and 0.26 ms."""


def settle() -> None:
    """Has the collector look rarely, and never at what is loaded by now, which stays until the end."""
    gc.freeze()
    gc.set_threshold(_YOUNG_MAX, *gc.get_threshold()[1:])
