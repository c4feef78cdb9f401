"""How often the best groups are found: by a choice of keys, and by noisy counts of all groups at the same price.

    python -m benchmarks.choices [--draws N]

The counts are those of the 14 occupations of the Adult data (Becker and Kohavi 1996), whose first three are 41 and 33
persons apart. Where a person has several rows, each count is one of rows, at most so many of a person in each group.
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from mechanisms.calibrate import calibrate
from mechanisms.families import NoiseFamily, Price
from mechanisms.measurement import integers
from mechanisms.randomness import SystemBits
from privacy.aggregate import AggregateFunction
from privacy.policy import ColumnType
from privacy.statistic import (
    Choice,
    CoreStatistics,
    Estimate,
    KeyColumn,
    Keys,
    Sensitivity,
    Statistic,
    StatisticKind,
)
from privacy.unit import Neighbouring

OCCUPATIONS = (4140, 4099, 4066, 3770, 3650, 3295, 2002, 1597, 1370, 994, 928, 649, 149, 9)


PRICES = {NoiseFamily.LAPLACE: ("0.01", "0.03", "0.1"), NoiseFamily.GAUSSIAN: ("0.0001", "0.001")}


def cores(
    groups: int, rows: int, number: int, *, keys: int = len(OCCUPATIONS)
) -> tuple[CoreStatistics, CoreStatistics]:
    """The question by counts of all keys, and by a choice of so many of them, where a unit has these bounds."""
    bound = Sensitivity(
        Neighbouring.ADD_REMOVE, groups, Fraction(groups * rows), Fraction(groups * rows**2), Fraction(rows)
    )
    statistic = Statistic("n", StatisticKind.COUNT, bound)
    domain = tuple((place,) for place in range(keys))
    grouped = Keys((KeyColumn("k", ColumnType.INTEGER),), domain, groups_per_unit=groups)
    counted = CoreStatistics("c", grouped, (statistic,), (Estimate("a0", AggregateFunction.ROWS, "n", integer=True),))
    choice = Choice(count=number, within=(), least=False, parts_per_unit=1, one_way=True)
    return counted, CoreStatistics("c", grouped, (statistic,), (), choice=choice)


def found(core: CoreStatistics, price: Price, scores: tuple[int, ...], number: int, draws: int) -> float:
    """How often the first groups are the right ones, in any order."""
    (measurement,) = calibrate([core], price).measurements
    exact, bits, right = integers([[score] for score in scores]), SystemBits(), 0
    for _ in range(draws):
        noisy = measurement.perturb(exact, bits)
        shown = np.argsort(-noisy.sums[:, 0])[:number].tolist() if noisy.chosen is None else noisy.chosen
        right += set(shown) == set(range(number))
    return right / draws


def main() -> None:
    """Prints the table of docs/sql.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2_000)
    draws = parser.parse_args().draws
    print("| groups x rows of a person | keys | price | choice | counts |\n|---|---|---|---|---|")
    for groups, rows in ((1, 1), (6, 3)):
        counts = tuple(count * rows for count in OCCUPATIONS)
        for number in (1, 3):
            counted, chosen = cores(groups, rows, number)
            for family, amounts in PRICES.items():
                for amount in amounts:
                    price = Price(family, Fraction(amount), Fraction(0))
                    shares = [found(core, price, counts, number, draws) for core in (chosen, counted)]
                    unit = "epsilon" if family is NoiseFamily.LAPLACE else "mu²"
                    print(
                        f"| {groups} x {rows} | {number} | {unit} {amount} | {shares[0]:.2f} | {shares[1]:.2f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
