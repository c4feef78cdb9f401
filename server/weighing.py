"""Which family of noise a large spend takes: the one that is worth more together with what it leaves.

On an approximate account Laplace noise is the more exact one for a large part of the account, Gaussian noise for many
small ones, and a Laplace answer takes more of what later Gaussian answers need (docs/decisions/0048). So a spend of at
least an eighth of what remains is weighed: with the part s of what remains that is asked for, the weight of a family is

    s ln(error of this answer) + (1 - s) ln(error of the next answer),

and the least one answers. The error of this answer is the geometric mean over its columns (of a ratio, in the largest
groups that an estimate shows), with how many units a hidden group needs; that of the next one is a count's with the
policy's default spend, in whichever family is better then. Both follow from plan, policy and the paying account, never
from data; the account's balance is a function of its earlier questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from accountant.account import Account
from mechanisms.calibrate import Calibration, is_histogram
from mechanisms.families import FAMILIES
from privacy.statistic import CoreStatistics
from server.calibrations import Calibrated
from server.spends import rooms

__all__ = ["next_error", "questions_left", "weight"]

_CONFIDENCE = Fraction(95, 100)
_LOST = 50.0
"""The logarithm of the error of a next answer that nothing is left for."""


def weight(
    calibrated: Calibrated, cores: Sequence[CoreStatistics], *, asked: Fraction, default: Fraction, leaf: Account
) -> float | None:
    """The weight of a candidate for a large spend, less is better; None where no error is known.

    `default` is the policy's spend for a question, which what remains is counted in. `leaf` pays.
    """
    left = leaf.remaining_epsilon()
    if left <= 0:
        return None
    now = _error(calibrated.calibration, cores)
    if now is None:
        return None
    part = min(float(asked / left), 1.0)
    return part * now + (1 - part) * _next_error(leaf.after(calibrated.loss), default)


def _error(calibration: Calibration, cores: Sequence[CoreStatistics]) -> float | None:
    """The mean logarithm of the errors of the columns; None where one of them, or what it is of, is not known yet."""
    found: list[float] = []
    for core in cores:
        if core.norms or is_histogram(core, cores):
            return None  # the error follows from a norm that is chosen later
        errors = dict(calibration.predicted_errors(core.name))
        for name, by_rows in calibration.expected_errors(core.name, _CONFIDENCE).items():
            errors[name] = by_rows[-1].standard_error if by_rows else None
        selection = core.keys.selection
        if selection is not None:
            shown = calibration.measurement(core.name, selection).half_shown(1)
            errors["\0shown"] = None if shown is None else float(shown)
        for error in errors.values():
            if error is None or not 0 < error < math.inf:
                return None
            found.append(math.log(error))
    return math.fsum(found) / len(found) if found else None


def questions_left(path: Sequence[Account], epsilon: Fraction) -> dict[str, int]:
    """How many counts of this nominal epsilon, in public groups, a path admits one after another, by their noise.

    The first of the path pays; the others are above it.
    """
    left: dict[str, int] = {}
    for family, entry in FAMILIES.items():
        if not entry.currency.pays(path[0]):
            continue
        try:
            loss = entry.loss(entry.currency.nominal_amount(epsilon, path[0]))
        except ValueError:
            left[family] = 0
            continue
        left[family] = min(account.charges_left(loss) for account in path)
    return left


def next_error(after: Account, default: Fraction) -> float | None:
    """The standard error of a count for a default spend of what is left, by the better noise; None without any."""
    error = _next_error(after, default)
    return None if error == _LOST else math.exp(error)


def _next_error(after: Account, default: Fraction) -> float:
    """Its logarithm."""
    room = {measure: units / 1e12 for measure, units in rooms(after, default).items()}
    precisions = [
        # Of Gaussian noise rho is half of mu squared, of Laplace noise the variance is 2 / epsilon^2.
        room.get("mu_squared", 0.0),
        2 * room.get("rho", 0.0),
        room.get("pure", 0.0) ** 2 / 2,
    ]
    best = max(precisions)
    return min(-math.log(best) / 2, _LOST) if best > 0 else _LOST
