"""Unit spaces: one root for all datasets about the same people, and what moves a dataset from one to another.

A root bounds what is learned of the units of its space, in whichever of its datasets. Joining two spaces puts the root
of the one below that of the other, which is debited with all that the lower one ever admitted and takes the stricter of
the two limits (spaces.md has the theorem).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from accountant.batch import Batch, Needs
from accountant.entry import ZERO, Amounts, canonical_json, limit_json
from accountant.errors import SpacesNotJoined
from accountant.filter import AMOUNT_MAX, Branches, Limit, fits, forgets_charges, split_limit
from accountant.operations import DEPTH_MAX
from accountant.rows import AccountState
from accountant.states import EntryKind
from privacy.values import Json

__all__ = ["JoinSpace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSpace:
    """Moves a dataset, with all that was ever charged for it, to another unit space. Returns whether anything moved.

    A dataset without accounts is in no space yet: nothing moves. Where the other space has no root, this one's keeps
    its place and gets the other name.
    """

    dataset: str
    space: str
    actor: str
    reason: str
    name: str = "join_space"
    query_ids: tuple[str, ...] = ()

    def needs(self, needs: Needs) -> None:
        """All accounts of both spaces."""
        needs.moved.add((self.dataset, self.space))

    def apply(self, batch: Batch) -> bool:
        """Checks everything, then moves the accounts. Errors: SpacesNotJoined."""
        known = batch.accounts()
        before = next((account.space for account in known if account.dataset == self.dataset), None)
        if before in (None, self.space):
            return False
        moved = [account for account in known if account.space == before]
        others = sorted({account.dataset for account in moved} - {self.dataset})
        if others:
            self._refuse(f'its budget is shared with "{others[0]}", which would stay, so what was spent would be left')
        if batch.is_open({account.id for account in moved}):
            self._refuse("a query of it is under way: try again when it has ended")
        lower = next(account for account in moved if account.parent is None)
        upper = next((one for one in known if one.space == self.space and one.parent is None), None)
        if upper is None:
            details: dict[str, Json] = {"action": "space", "actor": self.actor, "reason": self.reason}
            details["space"] = self.space
            self._move(batch, moved, deeper=0)
            batch.add_entry(lower, EntryKind.ADJUST, query_id=None, details=canonical_json(details))
            return True
        amounts, limit, branches = self._judge(moved, lower, upper)
        self._move(batch, moved, deeper=1)
        batch.move_account(lower, parent=upper.id, deeper=0, space=self.space)
        details = {"action": "joined", "actor": self.actor, "parent": upper.id, "reason": self.reason}
        details["space"] = self.space
        batch.add_entry(lower, EntryKind.ADJUST, query_id=None, details=canonical_json(details))
        said: dict[str, Json] = {
            "account": lower.id,
            "action": "join",
            "actor": self.actor,
            "from": limit_json(upper.limit),
            "reason": self.reason,
            "to": limit_json(limit),
        }
        batch.set_limit(upper, limit, branches)
        batch.add_entry(upper, EntryKind.ADJUST, query_id=None, details=canonical_json(said), amounts=amounts)
        return True

    def _judge(
        self, moved: Sequence[AccountState], lower: AccountState, upper: AccountState
    ) -> tuple[Amounts, Limit, Branches]:
        """What the upper root is debited with, and its limit and budgets from now on. Errors: SpacesNotJoined."""
        if lower.filter is not upper.filter:
            self._refuse(f"its root is {lower.filter.value} and that of the space is {upper.filter.value}")
        if lower.frozen or upper.frozen:
            self._refuse("one of the two roots is frozen")
        if max(account.depth for account in moved) + 1 >= DEPTH_MAX:
            self._refuse(f"accounts are nested at most {DEPTH_MAX} deep")
        limit = Limit(
            epsilon=min(lower.limit.epsilon, upper.limit.epsilon), delta=min(lower.limit.delta, upper.limit.delta)
        )
        branches = split_limit(limit, upper.filter, upper.shares)
        if upper.window is not None:
            try:
                upper.window.check(limit, upper.filter, upper.shares)
            except ValueError as error:
                self._refuse(f"the window of its root does not suit the stricter limit: {error}")
        if forgets_charges(upper.spent.sums(), upper.branches, branches, mixed=upper.shares.mixed):
            self._refuse("its root would get a branch that earlier charges are not in")
        amounts = lower.spent.carried(
            mixed_there=lower.branches.mixed_pure is not None, mixed_here=branches.mixed_pure is not None
        )
        after = upper.spent.plus(amounts)
        if max(after) > AMOUNT_MAX or (amounts != ZERO and not fits(after.sums(), branches)):
            self._refuse(
                "what both roots have spent together is above the stricter of their limits. Raise the lower one of the "
                "two with a reason first: that says what these people are asked to bear"
            )
        return amounts, limit, branches

    def _move(self, batch: Batch, moved: Sequence[AccountState], *, deeper: int) -> None:
        for account in moved:
            batch.move_account(account, parent=account.parent, deeper=deeper, space=self.space)

    def _refuse(self, why: str) -> NoReturn:
        raise SpacesNotJoined(self.dataset, self.space, why=why)
