"""What can go wrong at the ledger.

LedgerError
├── BudgetExhausted        an account on the path does not admit the loss; nothing was spent
├── IdempotencyConflict    the key was used before with another body; nothing was spent
├── UnknownAccount         no such account for that principal
├── AccountExists          the principal has an account below that parent; nothing was opened
├── AccountChanged         the account's limit is not the one that the change was made for; nothing was changed
├── PriceMoved             the paying account would be charged more than was agreed, or nothing; nothing was spent
├── AccountFrozen          the account pays for nothing more; nothing was spent or changed
├── AccountExpired         an account of the path has ended; nothing was spent or changed
├── HasHistory             a root, or somebody's charged account, is not ended; nothing was changed
├── SpacesNotJoined        the dataset stays in its unit space; nothing was changed
├── UnknownQuery           no such query
├── IllegalTransition      the query is not in a state from which that step leads on; nothing was changed
├── LedgerBehind           the ledger is older than its high-water mark; nothing is spent until it is acknowledged
├── LedgerRejected         the ledger does not agree with itself; nothing is spent or served from it
├── LedgerUnavailable      the database could not be reached in time; a charge may have been made
└── LedgerUnusable         the ledger does not start
    ├── WeakDurability     the database may lose a commit
    ├── NotMigrated        the schema is missing or older than the code
    └── SchemaTooNew       the schema is newer than the code

Texts name accounts and queries by identifier and amounts of budget; they never hold values, SQL or keys.
"""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import NamedTuple

from accountant.account import Shortage
from accountant.states import QueryStatus

__all__ = [
    "AccountChanged",
    "AccountExists",
    "AccountExpired",
    "AccountFrozen",
    "BudgetExhausted",
    "HasHistory",
    "IdempotencyConflict",
    "IllegalTransition",
    "LedgerBehind",
    "LedgerError",
    "LedgerRejected",
    "LedgerUnavailable",
    "LedgerUnusable",
    "Nominal",
    "NotMigrated",
    "PriceMoved",
    "SchemaTooNew",
    "SpacesNotJoined",
    "UnknownAccount",
    "UnknownQuery",
    "WeakDurability",
]


class Nominal(NamedTuple):
    """A refused charge in the words of its account: nominal epsilon and delta, asked and left. Set by the pricing."""

    epsilon: Fraction
    delta: Fraction
    epsilon_left: Fraction
    delta_left: Fraction


class LedgerError(Exception):
    """Every error of the ledger."""


class BudgetExhausted(LedgerError):
    """The filter of `account` does not admit the loss. `root` says whether it is the dataset's own account.

    `shortages` are the amounts that are short there. Where its window refuses what its limit would admit,
    `available_at` is when the window would let it through, if nothing else is charged until then. `turns_at` is when
    the account's next window begins, whatever refused: a function of its rule and of the time alone. The refusal
    depends on stored sums, the price and the ledger's time only, never on rows.
    """

    def __init__(
        self,
        account: str,
        *,
        root: bool,
        shortages: tuple[Shortage, ...],
        available_at: datetime.datetime | None = None,
        turns_at: datetime.datetime | None = None,
    ) -> None:
        self.available_at = available_at
        self.turns_at = turns_at
        self.account = account
        self.root = root
        self.shortages = shortages
        self.nominal: Nominal | None = None
        # The greatest delta that could be admitted, where that of the charge is too much: set by who priced it.
        self.delta_fits: Fraction | None = None
        super().__init__(f'the budget of account "{account}" does not cover this query')


class IdempotencyConflict(LedgerError):
    """The principal used this idempotency key before, for `query_id`, with another body."""

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id
        super().__init__("the idempotency key was used before with a different request")


class UnknownAccount(LedgerError):
    """There is no such account, or it belongs to another principal."""

    def __init__(self, account: str) -> None:
        self.account = account
        super().__init__(f'there is no account "{account}" for this principal')


class AccountExists(LedgerError):
    """The principal has the account `account` below the same parent: a second one would be a second limit."""

    def __init__(self, account: str) -> None:
        self.account = account
        super().__init__(f'the principal has account "{account}" below the same parent')


class AccountChanged(LedgerError):
    """The limit of `account` was changed since the caller read it; its revision is `revision` now."""

    def __init__(self, account: str, *, revision: int) -> None:
        self.account = account
        self.revision = revision
        super().__init__(f'the limit of account "{account}" was changed by somebody else')


class PriceMoved(LedgerError):
    """What was priced has moved: fresh measurements cost `account` more than was agreed, or nothing is charged."""

    def __init__(self, account: str) -> None:
        self.account = account
        super().__init__(f'account "{account}" has paid for another query since this one was priced')


class AccountFrozen(LedgerError):
    """`account` is frozen: what it spent stays, and it pays for nothing more."""

    def __init__(self, account: str) -> None:
        self.account = account
        super().__init__(f'account "{account}" is frozen')


class AccountExpired(LedgerError):
    """`account` has ended: what it spent stays, and it pays for nothing more."""

    def __init__(self, account: str) -> None:
        self.account = account
        super().__init__(f'account "{account}" has ended')


class HasHistory(LedgerError):
    """`account` is a root, or somebody's own that was charged: ended, it could be opened anew with a whole limit."""

    def __init__(self, account: str) -> None:
        self.account = account
        super().__init__(f'account "{account}" has a history, and stays')


class SpacesNotJoined(LedgerError):
    """A dataset was not moved to another unit space. `why` is a sentence; nothing has changed."""

    def __init__(self, dataset: str, space: str, *, why: str) -> None:
        self.dataset = dataset
        self.space = space
        self.why = why
        super().__init__(f'dataset "{dataset}" was not moved to the unit space "{space}": {why}')


class UnknownQuery(LedgerError):
    """There is no such query."""

    def __init__(self, query_id: str) -> None:
        self.query_id = query_id
        super().__init__(f'there is no query "{query_id}"')


class IllegalTransition(LedgerError):
    """`query_id` is in `state`, from which `step` does not lead on."""

    def __init__(self, query_id: str, *, state: QueryStatus, step: str) -> None:
        self.query_id = query_id
        self.state = state
        self.step = step
        super().__init__(f'query "{query_id}" is {state}: it cannot {step}')


class LedgerBehind(LedgerError):
    """The ledger has fewer (or other) entries than its high-water mark: an older copy was restored."""


class LedgerRejected(LedgerError):
    """The ledger does not agree with itself: somebody changed it, or a program with a bug did.

    `before` says that a step was refused before anything was done: nothing was charged by it.
    """

    def __init__(self, what: str, *, before: bool = False) -> None:
        self.before = before
        super().__init__(f"the ledger does not agree with itself: {what}")


class LedgerUnavailable(LedgerError):
    """The database could not be reached in time. Whether the step was made is not known to the caller.

    A reservation that was made nevertheless stays charged; asking again with the same idempotency key finds it.
    """


class LedgerUnusable(LedgerError):
    """The ledger refuses to start."""


class WeakDurability(LedgerUnusable):
    """The database is set up so that a committed charge can be lost."""


class NotMigrated(LedgerUnusable):
    """The schema is missing or older than this code."""


class SchemaTooNew(LedgerUnusable):
    """The schema was written by newer code."""
