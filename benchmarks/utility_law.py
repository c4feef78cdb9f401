"""What the laws of noise say of the rows of benchmarks.utility that few runs cannot tell apart.

    python -m benchmarks.utility_law

No row of people is read but the sizes of Adult's 16 groups of education, and nothing is drawn: errors are those of the
noise that is bought, of a group that is not shown its own size. Prints two Markdown tables: one count for a whole
account, and counts by hidden keys for a tenth of one. A whole account with ten groups of each unit has the same noise
and the same threshold as a tenth of it with one group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from statistics import NormalDist

from accountant.account import DeltaShares, FilterKind, Limit
from accountant.filter import Branches, split_limit
from mechanisms.interval import rounded_laplace_variance
from privacy.currency import PURE
from privacy.events import LaplaceEvent
from privacy.events.approximate import DiscreteLaplaceEvent

EDUCATION = (51, 168, 333, 413, 433, 514, 576, 646, 933, 1067, 1175, 1382, 1723, 5355, 7291, 10501)
"""UCI Adult: how many people have each level of education."""

LIMIT = Limit(Fraction(1), Fraction(1, 10**6))
SHARES = tuple(
    DeltaShares(gaussian=gaussian, concentrated=concentrated, mixed=mixed, groups=groups)
    for gaussian, concentrated, mixed, groups in ((70, 7, 8, 15), (60, 0, 0, 40), (25, 25, 0, 50))
)


def branches_of(shares: DeltaShares) -> Branches:
    """The budgets of an account (1, 10^-6) that divides its delta so."""
    return split_limit(LIMIT, FilterKind.APPROXIMATE, shares)


def threshold(*, sigma: float, delta: float) -> float:
    """The noisy count from which on a group is shown, where a unit has one group: gaussian_threshold.md."""
    return 1.5 - sigma * NormalDist().inv_cdf(delta)


def hidden_error(sigma: float, delta: float) -> float:
    """The root-mean-square error over the groups of education, of those that are not shown their own size."""
    edge, law = threshold(sigma=sigma, delta=delta), NormalDist()
    squares = 0.0
    for size in EDUCATION:
        far = (edge - size) / sigma
        shown, tail = 1 - law.cdf(far), law.pdf(far)
        # E of the squared noise given that it is beyond the edge, times how often it is.
        squares += sigma**2 * (shown + far * tail) + (1 - shown) * size**2
    return math.sqrt(squares / len(EDUCATION))


def counts() -> Iterator[str]:
    """Rows of the first table: the noise of one count, its standard error, and what it takes of a Gaussian budget."""
    for epsilon in (1, 2, 5):
        scale = Fraction(1, epsilon)
        rounded, discrete = (
            kind(l1_sensitivity=Fraction(1), scale=scale).loss() for kind in (LaplaceEvent, DiscreteLaplaceEvent)
        )
        assert PURE.amount_of(rounded) == PURE.amount_of(discrete) == epsilon
        errors = math.sqrt(rounded_laplace_variance(float(scale))), math.sqrt(0.5) / math.sinh(epsilon / 2)
        assert rounded.mu_squared is not None
        assert discrete.mu_squared is not None
        taken = float(rounded.mu_squared), float(discrete.mu_squared)
        ratios = errors[1] / errors[0], taken[1] / taken[0]
        yield f"| {epsilon} | {errors[0]:.3f} | {errors[1]:.3f} | {ratios[0]:.2f} | {ratios[1]:.2f} |"


def hidden() -> Iterator[str]:
    """Rows of the second table: the threshold of a group and the error, by the shares of delta."""
    for shares in SHARES:
        branches = branches_of(shares)
        assert branches.mu_squared is not None
        sigma, delta = math.sqrt(10e12 / branches.mu_squared), shares.groups / 100 * 1e-7
        yield (
            f"| {shares.gaussian}, {shares.concentrated}, {shares.mixed}, {shares.groups} | {sigma:.1f} "
            f"| {math.ceil(threshold(sigma=sigma, delta=delta))} | {hidden_error(sigma, delta):.1f} |"
        )


def main() -> None:
    """Prints the tables."""
    print("| epsilon | rounded Laplace | two-sided geometric | error | mu squared |\n|---|---|---|---|---|")
    print("\n".join(counts()))
    print("\n| delta: Gaussian, concentrated, mixed, groups | noise | shown from | error |\n|---|---|---|---|")
    print("\n".join(hidden()))


if __name__ == "__main__":
    main()
