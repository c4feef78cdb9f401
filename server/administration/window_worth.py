"""Whether what one window of a budget brings is enough for any answer that reads rows."""

from __future__ import annotations

from fractions import Fraction

from accountant.account import Account
from accountant.entry import to_micros
from accountant.filter import NOTHING, split_limit
from accountant.ledger import Ledger
from accountant.window import View, Window, WindowWish
from server.administration.budget_refusals import SmallWindow
from server.administration.refusal import ActRefused
from server.floor import Floor, least_of_root
from server.store.registry import Registry

__all__ = ["require_worth"]


def require_worth(wish: WindowWish, account: Account, root: Account, *, ledger: Ledger, registry: Registry) -> None:
    """Nothing where one window of an account below this root holds the least price of its dataset.

    Refused: SmallWindow. Errors: ValueError for a window that the account cannot have; LedgerUnavailable.
    """
    window = wish.at(to_micros(ledger.time()))
    window.check(account.limit, account.filter, account.shares)
    least = least_of_root(_declared(registry, account.dataset), root)
    if not _holds(window, account, Floor.of_root(least, root)):
        raise ActRefused(SmallWindow(account.id, _nominal(window, account), least))


def _declared(registry: Registry, dataset: str) -> Fraction | None:
    """The least price that the policy of a served dataset names."""
    for version in registry.datasets():
        policy = (version.document or {}).get("policy")
        if version.name == dataset and isinstance(policy, dict) and policy.get("epsilon_min") is not None:
            return Fraction(str(policy["epsilon_min"]))
    return None


def _nominal(window: Window, account: Account) -> Fraction:
    """The epsilon that one window brings."""
    return window.limit.epsilon if window.limit is not None else account.limit.epsilon / (window.slices or 1)


def _holds(window: Window, account: Account, floor: Floor) -> bool:
    """Whether some branch of what the first window brings holds the least that a run takes of it."""
    own = None if window.limit is None else split_limit(window.limit, account.filter, account.shares)
    brings = View(window, window.first, NOTHING, own).budgets(account.branches)
    if brings is None:
        return False
    pairs = (
        (floor.pure, brings.pure),
        (floor.mu_squared, brings.mu_squared),
        (floor.rho, brings.rho),
        (floor.pure, brings.mixed_pure),
        (floor.mu_squared, brings.mixed_mu_squared),
    )
    return any(most is not None and least <= most for least, most in pairs)
