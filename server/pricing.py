"""Which noise a query gets and what it costs: step 4 of the journey, a pure function of plan and balances.

Two families of noise can answer every query: Laplace (pays pure epsilon) and Gaussian (pays mu squared). A nominal
epsilon buys the same share of the branch that each family pays with. An approximate account gets Gaussian noise as
long as every account of the path admits it: a Laplace release would also take a large part of the Gaussian branch,
and every later Gaussian release would then cost far more than was asked. Otherwise, as on pure accounts, it is
Laplace. Balances are not private: they are functions of earlier questions only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from accountant.account import Account
from mechanisms.calibrate import Calibration, GaussianPrice, LaplacePrice, calibrate, calibrate_for_half_width
from privacy.loss import Loss, compose
from privacy.numbers import PICO
from privacy.policy import Dataset
from privacy.refusal import Finding, Refused
from privacy.statistic import CoreStatistics

__all__ = ["Calibrations", "Priced", "cost_on", "price_for_epsilon", "price_for_half_width"]


_PRICES_KEPT = 64


@dataclass(frozen=True, slots=True)
class Priced:
    """A calibrated query. `admitted` is the filters' verdict now.

    `epsilon` is what was asked, in nominal epsilon of the paying account; `cost` is how much less of that account
    would remain, which is what the ledger will say it charged.
    """

    family: str
    epsilon: Fraction
    cost: Fraction
    calibration: Calibration
    loss: Loss
    admitted: bool

    @property
    def delta(self) -> Fraction:
        """Delta of partition selection, charged beside epsilon."""
        return self.loss.delta


def cost_on(account: Account, loss: Loss) -> Fraction:
    """What the ledger would say that a loss costs on this account, also of a loss that no longer fits.

    The remainder cannot fall below zero, so of a loss that does not fit the difference of remainders would show what
    is left as its price. Such a loss has the price that it has on an account of this limit that spent nothing.
    """
    if account.admits(loss):
        return account.cost(loss)
    unspent = Account.opened(
        id=account.id,
        dataset=account.dataset,
        parent=account.parent,
        principal=account.principal,
        name=account.name,
        limit=account.limit,
        filter=account.filter,
        created=account.created,
    )
    return max(account.cost(loss), unspent.cost(loss))


class Calibrations:
    """Calibrations and losses of one plan by price, so that a repeated question is not calibrated again."""

    def __init__(self) -> None:
        self._known: dict[LaplacePrice | GaussianPrice, tuple[Calibration, Loss]] = {}

    def get(self, cores: Sequence[CoreStatistics], price: LaplacePrice | GaussianPrice) -> tuple[Calibration, Loss]:
        """The calibration of the plan's cores and its loss. Errors: ValueError as `calibrate`."""
        found = self._known.get(price)
        if found is None:
            calibration = calibrate(cores, price)
            found = (calibration, compose(calibration.events()))
            if len(self._known) >= _PRICES_KEPT:
                self._known.clear()
            self._known[price] = found
        return found


def price_for_epsilon(
    cores: Sequence[CoreStatistics],
    epsilon: Fraction,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> Priced:
    """The calibration that costs `epsilon` on the first account of `path` (leaf first, root last).

    When no family is admitted one is returned with `admitted` False; the ledger then refuses, unless stored releases
    answer the query for nothing. Errors: Refused (policy_forbids, accuracy_unreachable).
    """
    _within_policy(epsilon, dataset)
    delta = _delta(cores, dataset)
    candidates: list[Priced] = []
    reasons: list[str] = []
    if not any(core.keys.selection is not None and core.keys.groups_per_unit > 1 for core in cores):
        _try(candidates, reasons, "laplace", cores, LaplacePrice(epsilon, delta), epsilon, path, known)
    try:
        mu_squared = path[0].gaussian_mu_squared(epsilon)
    except ValueError as error:
        reasons.append(str(error))
    else:
        _try(candidates, reasons, "gaussian", cores, GaussianPrice(mu_squared, delta), epsilon, path, known)
    return _best(candidates, reasons)


def price_for_half_width(
    cores: Sequence[CoreStatistics],
    half_width: Fraction,
    confidence: Fraction,
    *,
    path: Sequence[Account],
    dataset: Dataset,
    known: Calibrations,
) -> Priced:
    """The cheapest calibration whose linear estimates stay within `half_width` at `confidence`.

    Errors: Refused (accuracy_unreachable when there is no linear estimate or the price exceeds the policy).
    """
    delta = _delta(cores, dataset)
    leaf = path[0]
    candidates: list[Priced] = []
    reasons: list[str] = []
    if not any(core.keys.selection is not None and core.keys.groups_per_unit > 1 for core in cores):
        try:
            laplace = calibrate_for_half_width(cores, half_width, confidence, "laplace", delta=delta)
            assert isinstance(laplace, LaplacePrice)
            _try(candidates, reasons, "laplace", cores, laplace, laplace.epsilon, path, known)
        except ValueError as error:
            reasons.append(str(error))
    if leaf.branches.mu_squared:
        try:
            gaussian = calibrate_for_half_width(cores, half_width, confidence, "gaussian", delta=delta)
            assert isinstance(gaussian, GaussianPrice)
            whole = leaf.gaussian_mu_squared(leaf.limit.epsilon)
            nominal = leaf.limit.epsilon * gaussian.mu_squared / whole
            nominal = Fraction(math.ceil(nominal * 10**12), 10**12)
            _try(candidates, reasons, "gaussian", cores, gaussian, nominal, path, known)
        except ValueError as error:
            reasons.append(str(error))
    best = _best(candidates, reasons)
    if best.epsilon > dataset.limits.epsilon_max:
        raise Refused(
            [
                Finding(
                    code="accuracy_unreachable",
                    what="the asked accuracy is refused",
                    why=f"It needs epsilon {float(best.epsilon):.6g}; one query may spend at most "
                    f"{float(dataset.limits.epsilon_max):.6g}.",
                    instead=(
                        "ask for a wider half_width; the narrowest stands in an estimate with "
                        f'"spend": {{"epsilon": "{float(dataset.limits.epsilon_max):.6g}"}}',
                        "ask for fewer statistics at once",
                    ),
                )
            ]
        )
    return best


def _delta(cores: Sequence[CoreStatistics], dataset: Dataset) -> Fraction:
    return dataset.limits.delta_per_query if any(core.keys.selection is not None for core in cores) else Fraction(0)


def _within_policy(epsilon: Fraction, dataset: Dataset) -> None:
    limit = dataset.limits.epsilon_max
    if epsilon > limit:
        most = f"{float(limit):.6g}"
        raise Refused(
            [
                Finding(
                    code="policy_forbids",
                    what="the asked spend is refused",
                    why=f"One query of this dataset may spend at most epsilon {most}.",
                    instead=(f'"spend": {{"epsilon": "{most}"}}, or --epsilon {most} on a command line',),
                )
            ]
        )


def _try(
    candidates: list[Priced],
    reasons: list[str],
    family: str,
    cores: Sequence[CoreStatistics],
    price: LaplacePrice | GaussianPrice,
    epsilon: Fraction,
    path: Sequence[Account],
    known: Calibrations,
) -> None:
    try:
        calibration, loss = known.get(cores, price)
    except ValueError as error:
        reasons.append(str(error))
        return
    candidates.append(
        Priced(
            family=family,
            epsilon=epsilon,
            # More than the whole limit cannot show as a share of it, so what was asked is the price then.
            cost=cost_on(path[0], loss) if path[0].admits(loss) else max(cost_on(path[0], loss), epsilon),
            calibration=calibration,
            loss=loss,
            admitted=all(account.admits(loss) for account in path),
        )
    )


def _best(candidates: Sequence[Priced], reasons: Sequence[str]) -> Priced:
    if not candidates:
        raise _unreachable(reasons)
    # Among those admitted: first those that cost no more than was asked, then Gaussian noise, then the cheaper.
    return min(
        candidates,
        key=lambda c: (not c.admitted, c.cost > c.epsilon + PICO, c.family != "gaussian", c.cost),
    )


def _unreachable(reasons: Sequence[str]) -> Refused:
    return Refused(
        [
            Finding(
                code="accuracy_unreachable",
                what="the query cannot be priced",
                why=("; ".join(dict.fromkeys(reasons)) or "No kind of noise fits it") + ".",
                instead=("spend more epsilon", "group by public keys, which need no delta", "ask for less at once"),
            )
        ]
    )
