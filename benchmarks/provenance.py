"""Questions that a budget answers: DProvDB's workload of ranges on UCI Adult, beside its additive Gaussian mechanism.

    python -m benchmarks.provenance [--epsilon 0.4 0.8 1.6 3.2 6.4] [--seeds 1] [--questions 4000] [--shared free]

The workload (Zhang and He, SIGMOD 2023, "randomized range queries"): the six numeric columns of Adult in 50 bins each
(the file that NOISEGATE_ADULT_CSV names); two analysts who take turns, 4,000 counts each of a range of bins, half of
them of one column; the i-th count of an analyst must have a variance of at most max(3000 - i, 1). All of it must stay
within (epsilon, 0.00001) for both together, and one analyst has a limit of a ninth of epsilon.

`ours`: the whole way of a server within this process, with a real ledger: a root of the total, an account of each
analyst below it, and releases that both may read (`releases_shared: free`; with `--shared charged` whoever reads what
the other paid for pays as well). An analyst's program asks for the range, for nothing (`max_cost`). Where no stored
release holds it so exactly, it asks for the histogram of the column, a little more exactly than the range needs; what
is stored of it is paid for already, so that only the missing precision is bought. Then it asks for the range again. It
counts what was answered with a standard error whose square is at most the request's: the error that the answer states.

`additive`: the paper's rules as we read them, simulated over the same questions: a histogram for each column, whose
missing precision is one more release; the epsilons of releases, each at delta 1e-9, add up over releases and columns,
for all and for each analyst. It draws no noise and is asked nothing that it would not answer exactly enough; an answer
that a stored histogram covers needs nothing of the analyst's own limit, in both. `over` is the same where each
purchase is a fifth more precise than it need be, as ours are. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from accountant.account import FilterKind, Limit
from accountant.errors import BudgetExhausted
from mechanisms.families import NoiseFamily
from privacy.numbers import PICO
from privacy.refusal import Refused
from server.question import Question
from server.services import Services
from tests.journey.clinic import attach, question, services_of, told

COLUMNS = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
WEIGHTS = (1, 10, 1, 1, 1, 1)
BINS, LOOSEST = 50, 3_000
PRIVILEGES = (1, 9)
DELTA, DELTA_EACH = Fraction(1, 10**5), 1e-9
MORE, ENOUGH = Fraction(6, 5), Fraction(1_001, 1_000)
"""How much more precise a histogram is bought than a range needs, as a mean is made of at most 64 releases; and the
least where the budget holds no more: a mean is a hair less precise than what it was paid for."""

DATASET = """\
version: 2
dataset: {name}
unit: {{table: people, key: person_id}}
tables:
  people:
    source: {{file: adult.csv}}
    key: person_id
    columns:
      person_id: {{type: integer, nullable: false}}
{columns}
policy: {{epsilon_default: "0.01", epsilon_max: "100", releases_shared: {shared}}}
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A count of a range of bins of a column, and the variance that it may have."""

    analyst: int
    column: int
    low: int
    high: int
    variance: int

    @property
    def bins(self) -> int:
        """How many bins are added up."""
        return self.high - self.low + 1


def workload(seed: int, questions: int) -> list[Asked]:
    """The questions in their order, of all analysts in turn."""
    source = np.random.default_rng(seed)
    weights = np.array(WEIGHTS) / sum(WEIGHTS)
    found = []
    for place in range(questions):
        for analyst in range(len(PRIVILEGES)):
            column = int(source.choice(len(COLUMNS), p=weights))
            start, width = source.normal(BINS / 3, BINS / 15), abs(source.normal(BINS / 8, BINS / 40))
            low = min(max(round(start), 0), BINS - 1)
            high = min(max(round(start + width), low), BINS - 1)
            found.append(Asked(analyst, column, low, high, max(LOOSEST - place, 1)))
    return found


@lru_cache(maxsize=100_000)
def epsilon_at(mu_squared: float) -> float:
    """The epsilon of one Gaussian release at the delta of each."""
    mu = math.sqrt(mu_squared)

    def delta(epsilon: float) -> float:
        first, second = (-epsilon / mu + sign * mu / 2 for sign in (1, -1))
        return (math.erfc(-first / math.sqrt(2)) - math.exp(epsilon) * math.erfc(-second / math.sqrt(2))) / 2

    low, high = 0.0, 20 * mu + mu_squared
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > DELTA_EACH else (low, middle)
    return high


def additive(asked: Sequence[Asked], epsilon: float, *, more: float = 1.0) -> int:
    """How many the additive mechanism answers. `more` is how much more precision is bought where something is."""
    precision, spent = [0.0] * len(COLUMNS), [0.0] * len(COLUMNS)
    own: dict[tuple[int, int], float] = {}
    answered = 0
    for one in asked:
        need = one.bins / one.variance
        if precision[one.column] < need:
            for wish in (need * more, need):
                added = epsilon_at(wish - precision[one.column])
                mine = min(spent[one.column] + added, epsilon_at(wish))
                others = sum(own.get((one.analyst, column), 0.0) for column in range(len(COLUMNS)))
                others += max(0.0, mine - own.get((one.analyst, one.column), 0.0))
                limit = epsilon * PRIVILEGES[one.analyst] / max(PRIVILEGES)
                if sum(spent) + added <= epsilon and others <= limit:
                    spent[one.column] += added
                    precision[one.column] = wish
                    own[one.analyst, one.column] = max(mine, own.get((one.analyst, one.column), 0.0))
                    break
            else:
                continue
        answered += 1
    return answered


def write_bins(source: Path, folder: Path, name: str, shared: str) -> Path:
    """The file with a bin for each numeric value, and its dataset file; returns the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    values = {column: np.array([float(row[column]) for row in rows]) for column in COLUMNS}
    bins = {}
    for column, own in values.items():
        lowest, highest = own.min(), own.max()
        bins[column] = np.minimum((own - lowest) / (highest - lowest) * BINS, BINS - 1).astype(int)
    with (folder / "adult.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person_id", *COLUMNS])
        writer.writerows(zip(range(len(rows)), *(bins[column].tolist() for column in COLUMNS), strict=True))
    range_of = f"{{type: integer, bounds: [0, {BINS - 1}], keys: {{range: [0, {BINS - 1}]}}, nullable: false}}"
    columns = "\n".join(f"      {column}: {range_of}" for column in COLUMNS)
    path = folder / f"{name}.yaml"
    path.write_text(DATASET.format(name=name, columns=columns, shared=shared))
    return path


@contextmanager
def adult_of(source: Path, shared: str) -> Iterator[Services]:
    """Services with the binned table, as the dataset `adult`."""
    with tempfile.TemporaryDirectory() as folder, services_of(Path(folder)) as services:
        attach(services, write_bins(source, Path(folder) / "sources", "adult", shared))
        yield services


class Analysts:
    """The analysts' programs, and what they learned of stored histograms."""

    def __init__(self, services: Services, epsilon: Fraction) -> None:
        self._services = services
        root = services.ledger.create_account(
            dataset="adult", parent=None, principal=None, name="root",
            limit=Limit(epsilon, DELTA), filter=FilterKind.APPROXIMATE, actor="benchmark",
        )  # fmt: skip
        for place, privilege in enumerate(PRIVILEGES):
            services.ledger.create_account(
                dataset="adult", parent=root.id, principal=f"analyst{place}", name=f"analyst{place}",
                limit=Limit(epsilon * privilege / max(PRIVILEGES) // PICO * PICO, DELTA), filter=FilterKind.APPROXIMATE,
                actor="benchmark",
            )  # fmt: skip
        self._unit = [self._variance_of_unit(place) for place in range(len(PRIVILEGES))]

    def _variance_of_unit(self, analyst: int) -> Fraction:
        """The variance of a count times its spend on an analyst's account, from an estimate."""
        spend = self._limit(analyst) / 100 // PICO * PICO
        asked = self._question(analyst, f"SELECT COUNT(*) FROM people WHERE {COLUMNS[0]} = 0", spend)
        told: Any = self._services.journey.estimate(asked)
        return spend * Fraction(told["columns"][0]["standard_error"]) ** 2

    def _limit(self, analyst: int) -> Fraction:
        """The epsilon of an analyst's account."""
        (own,) = [one for one in self._services.ledger.accounts() if one.principal == f"analyst{analyst}"]
        return own.limit.epsilon

    def _question(self, analyst: int, sql: str, spend: Fraction, **options: Any) -> Question:
        return question(sql, f"analyst{analyst}", dataset="adult", epsilon=spend, noise=NoiseFamily.GAUSSIAN, **options)

    def _spend(self, analyst: int, precision: Fraction) -> Fraction:
        """What so precise a count takes of an analyst's account, in whole picos and a hair more."""
        return math.ceil(self._unit[analyst] * precision * Fraction(1_000_001, 1_000_000) / PICO) * PICO

    def answers(self, one: Asked) -> bool:
        """Whether an analyst gets an answer whose stated error meets the request."""
        column = COLUMNS[one.column]
        text = f"SELECT COUNT(*) FROM people WHERE {column} BETWEEN {one.low} AND {one.high}"
        # What rounding adds to the variance of noise: a twelfth for each bin, and as much again where one was raised.
        variance = max(one.variance - Fraction(one.bins + 1, 6), Fraction(one.variance, 3))
        wish = self._question(one.analyst, text, self._spend(one.analyst, 1 / variance), max_cost=PICO)
        answer = self._told(wish)
        need = one.bins / variance
        for more in (MORE, ENOUGH):
            if _meets(answer, one):
                break
            histogram = f"SELECT {column}, COUNT(*) FROM people GROUP BY {column}"
            if self._told(self._question(one.analyst, histogram, self._spend(one.analyst, need * more))) is not None:
                answer = self._told(wish)
        return _meets(answer, one)

    def _told(self, asked: Question) -> dict[str, Any] | None:
        """An answer; None where it is refused."""
        try:
            return dict(json.loads(told(self._services.journey, asked)))
        except (Refused, BudgetExhausted):
            return None


def _meets(answer: dict[str, Any] | None, one: Asked) -> bool:
    """Whether an answer states an error that meets the request."""
    return answer is not None and answer["standard_errors"][0][0] ** 2 <= one.variance


def ours(asked: Sequence[Asked], services: Services, epsilon: Fraction) -> int:
    """How many questions this server answers."""
    analysts = Analysts(services, epsilon)
    return sum(analysts.answers(one) for one in asked)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", nargs="+", default=["0.4", "0.8", "1.6", "3.2", "6.4"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--questions", type=int, default=4_000)
    parser.add_argument("--shared", choices=("free", "charged"), default="free")
    options = parser.parse_args()
    source = Path(os.environ["NOISEGATE_ADULT_CSV"])
    print("| epsilon | additive | over | ours | of | seconds of a question |\n|---|---|---|---|---|---|", flush=True)
    for epsilon in options.epsilon:
        found: dict[str, list[float]] = {"additive": [], "over": [], "ours": [], "seconds": []}
        for seed in range(options.seeds):
            asked = workload(seed, options.questions)
            found["additive"].append(additive(asked, float(epsilon)))
            found["over"].append(additive(asked, float(epsilon), more=float(MORE)))
            with adult_of(source, options.shared) as services:
                began = time.process_time()
                found["ours"].append(ours(asked, services, Fraction(epsilon)))
                found["seconds"].append((time.process_time() - began) / len(asked))
        means = {name: statistics.fmean(values) for name, values in found.items()}
        counts = " | ".join(f"{means[name]:,.0f}" for name in ("additive", "over", "ours"))
        print(f"| {epsilon} | {counts} | {len(asked):,} | {means['seconds']:.4f} |", flush=True)


if __name__ == "__main__":
    main()
