"""Local collection: the error of encoders and decoders on the table of Acharya, Sun and Zhang 2019, and their times.

    python -m benchmarks.local_collection [--runs 30] [--encoders hadamard,randomised_response]

Prints one JSON object: for k = 1,000 and n = 100,000 the summed absolute error of each encoder, population, epsilon and
way of post-processing, mean over the runs; and the milliseconds of 100,000 reports encoded and decoded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np

from mechanisms.local.encoder import LocalEncoder
from mechanisms.local.encodings import ENCODINGS
from mechanisms.local.hadamard import HadamardResponse
from mechanisms.local.postprocess import Postprocess
from mechanisms.randomness import SystemBits
from tests.mechanisms.local_populations import POPULATIONS, errors_of, exact, population

SIZE, REPORTS = 1000, 100_000
EPSILONS = (0.5, 1.0, 2.0, 5.0)


def encoders(epsilon: float, names: set[str]) -> dict[str, LocalEncoder]:
    """By name; the printed layout of Hadamard Response beside ours."""
    made = {kind.name: kind(size=SIZE, epsilon=exact(epsilon)) for kind in ENCODINGS if kind.name in names}
    if "hadamard" in made:
        made["hadamard, printed"] = HadamardResponse(size=SIZE, epsilon=exact(epsilon), printed=True)
    return made


def milliseconds(encoder: LocalEncoder) -> dict[str, float]:
    """Encoding of 100,000 values, and decoding of their tally to unbiased shares; the median of seven rounds."""
    bits, values = SystemBits(), np.random.default_rng().integers(0, SIZE, REPORTS)
    found: dict[str, list[float]] = {"encode": [], "decode": []}
    for _ in range(7):
        start = time.perf_counter()
        tally = encoder.simulate(values, bits)
        middle = time.perf_counter()
        encoder.shares(tally, REPORTS)
        found["encode"].append(middle - start)
        found["decode"].append(time.perf_counter() - middle)
    return {name: round(1000 * statistics.median(times), 3) for name, times in found.items()}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--encoders", default=",".join(kind.name for kind in ENCODINGS))
    asked = parser.parse_args()
    names = set(asked.encoders.split(","))
    bits, generator, ways = SystemBits(), np.random.default_rng(), tuple(Postprocess)
    errors: dict[str, dict[str, float]] = {}
    for name in POPULATIONS:
        shares = population(name, SIZE)
        for epsilon in EPSILONS:
            for label, encoder in encoders(epsilon, names).items():
                runs = [errors_of(encoder, shares, REPORTS, ways, bits, generator) for _ in range(asked.runs)]
                means = np.mean(runs, axis=0)
                errors[f"{name}, epsilon {epsilon}, {label}"] = {
                    way.value: round(float(mean), 4) for way, mean in zip(ways, means, strict=True)
                }
    times = {label: milliseconds(encoder) for label, encoder in encoders(1.0, names).items()}
    print(json.dumps({"error": errors, "milliseconds": times}, indent=1))


if __name__ == "__main__":
    main()
