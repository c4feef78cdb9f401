"""How fast this machine is: the time of one fixed piece of work of the engine.

The table of costs (`sql_rewrite/dialects/duckdb_costs.py`) holds nanoseconds of a reference machine. A slower machine
needs longer for the same rows, so its times are those of the table times the quotient of both probes.
"""

from __future__ import annotations

import time

import duckdb

__all__ = ["PROBE", "probe_nanoseconds"]

PROBE = (
    "SELECT sum(sqrt(k + 0.5)), count(upper('ß' || CAST(k AS VARCHAR))), count(CAST(k AS HUGEINT) * k // 7) "
    "FROM range(20000) t(k)"
)
"""Arithmetic, wide integers and strings, on made-up rows. It reads no data."""

_RUNS = 5


def probe_nanoseconds() -> float:
    """Processor time of the probe on one thread: the least of a few runs, so that other work counts little."""
    with duckdb.connect(":memory:", config={"threads": "1"}) as connection:
        best = float("inf")
        for _ in range(_RUNS):
            start = time.process_time_ns()
            connection.execute(PROBE).fetchall()
            best = min(best, float(time.process_time_ns() - start))
    return best
