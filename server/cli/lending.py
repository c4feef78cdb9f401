"""`noisegate budget lend` and `budget recall`, over HTTP with the lender's own key."""

from __future__ import annotations

from urllib.parse import quote

from accountant.filter import DELTA_MAX, EPSILON_MAX
from server.cli.access import budget_table
from server.cli.client import Remote
from server.cli.options import Here, amount, option
from server.cli.output import printable

__all__ = ["lend", "recall"]

_PATH = "/v1/budgets"


def lend(
    *,
    account: str = option("ID", "Your budget, as `noisegate budget show` names it."),
    principal: str = option("--principal NAME", "Who may spend it.", ...),
    epsilon: str = option("--epsilon E", "At most this much of it.", ...),
    delta: str | None = option("--delta D", "At most this delta. Not for pure."),
    expires: str = option("--until DAY", "The first day (UTC) on which it pays no more: YYYY-MM-DD.", ...),
    remote: Remote,
    here: Here,
) -> None:
    """Lend a part of your budget until a day. Every charge of it is charged to yours."""
    from privacy.numbers import ATTO, PICO

    amount(epsilon, option="--epsilon", maximum=EPSILON_MAX, unit=PICO)
    if delta is not None:
        amount(delta, option="--delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)
    limit = {"epsilon": epsilon.strip(), **({} if delta is None else {"delta": delta.strip()})}
    body = {"principal": principal, "limit": limit, "expires": expires}
    with remote.connect(here.place()) as client:
        made = client.post(f"{_PATH}/{quote(account, safe='')}:lend", body)
    lines = [
        f"Account {made['id']} is lent to {printable(principal)} until {printable(expires)}.",
        budget_table([made]),
        "It pays for queries that name it, of somebody who has a budget of the dataset:",
        f"  noisegate query --budget {made['id']} ...",
    ]
    here.show(made, lines)


def recall(
    *,
    account: str = option("ID", "What was lent, as `noisegate budget show` names it."),
    reason: str = option("--reason TEXT", "Kept by the ledger.", ...),
    remote: Remote,
    here: Here,
) -> None:
    """Take back what was lent, now and for good. What was spent stays spent."""
    with remote.connect(here.place()) as client:
        ended = client.post(f"{_PATH}/{quote(account, safe='')}:recall", {"reason": reason})
    here.show(ended, [f"Account {ended['id']} pays for nothing more.", budget_table([ended])])
