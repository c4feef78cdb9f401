"""Rates of exact noise against numpy's float generator, and OpenDP where it is installed, in one run on one core.

    python -m benchmarks.noise [--count 1000000] [--rounds 7]

Prints one JSON object: million samples a second (median of the rounds) and ratios. The rounds of all samplers
alternate, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from mechanisms.randomness import SystemBits
from mechanisms.samplers import rounded_gaussian, rounded_laplace

SCALES = (1, 2**13, 2**20)


def opendp_samplers(scale: int, count: int) -> dict[str, tuple[int, Callable[[], Any]]]:
    """OpenDP's integer noise on a small vector, or nothing when it is not installed."""
    try:
        prelude = importlib.import_module("opendp.prelude")
    except ImportError:
        return {}
    prelude.enable_features("contrib")
    space = prelude.vector_domain(prelude.atom_domain(T="i64"))
    size = min(count, 20_000)
    zeros = [0] * size
    laplace = prelude.m.make_laplace(space, prelude.l1_distance(T="i64"), scale=float(scale))
    gaussian = prelude.m.make_gaussian(space, prelude.l2_distance(T="f64"), scale=float(scale))
    return {"opendp laplace": (size, lambda: laplace(zeros)), "opendp gaussian": (size, lambda: gaussian(zeros))}


def samplers(scale: int, count: int) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Name, number of draws and call of each sampler."""
    bits, generator, exact = SystemBits(), np.random.default_rng(), Fraction(scale)
    return {
        "exact laplace": (count, lambda: rounded_laplace(scale=exact, count=count, bits=bits)),
        "numpy laplace": (count, lambda: generator.laplace(0, scale, count)),
        "exact gaussian": (count, lambda: rounded_gaussian(sigma=exact, count=count, bits=bits)),
        "numpy gaussian": (count, lambda: generator.normal(0, scale, count)),
        **opendp_samplers(scale, count),
    }


def rates(scale: int, *, count: int, rounds: int) -> dict[str, float]:
    """Million samples a second, median over the rounds."""
    times: dict[str, list[float]] = {}
    calls = samplers(scale, count)
    for _, call in calls.values():
        call()
    for _ in range(rounds):
        for name, (size, call) in calls.items():
            start = time.perf_counter()
            call()
            times.setdefault(name, []).append((time.perf_counter() - start) / size)
    return {name: 1e-6 / statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    result: dict[str, Any] = {"count": asked.count, "unit": "million samples a second"}
    for scale in SCALES:
        found = rates(scale, count=asked.count, rounds=asked.rounds)
        ratios = {
            f"{family} over {other}": round(found[f"exact {family}"] / found[f"{other} {family}"], 3)
            for family in ("laplace", "gaussian")
            for other in ("numpy", "opendp")
            if f"{other} {family}" in found
        }
        result[f"scale {scale}"] = {name: round(rate, 3) for name, rate in found.items()} | {"ratios": ratios}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
