"""What takes two administrators: `noisegate budget adjust` and the commands of `noisegate proposal`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from server.cli.client import Remote
from server.cli.listing import show_list
from server.cli.options import Here, operator, option
from server.cli.output import Json, printable

if TYPE_CHECKING:
    from server.administration.proposals import Caps
    from server.settings import Settings

__all__ = ["adjust", "caps_of", "confirm", "list_proposals", "reject", "restore", "withdraw"]

_PATH = "/v1/proposals"
_ID = "The proposal, as `noisegate proposal list` names it."


def adjust(
    *,
    account: str = option("BUDGET", "Identifier of the budget."),
    direction: str = option("--direction raise|lower", "Whether its limit grows or shrinks.", ...),
    epsilon: str = option("--epsilon E", "By how much.", "0"),
    delta: str = option("--delta D", "By how much.", "0"),
    reason: str = option("--reason TEXT", "Why; the ledger keeps it.", ...),
    remote: Remote,
    here: Here,
) -> None:
    """Propose to raise or lower a limit. Another administrator confirms it."""
    body = {"direction": direction, "epsilon": epsilon, "delta": delta, "reason": reason}
    _post(remote, here, f"/v1/budgets/{quote(account, safe='')}:adjust", body)


def restore(
    *, reason: str = option("--reason TEXT", "Why; the ledger keeps it.", ...), remote: Remote, here: Here
) -> None:
    """Propose to go on with a restored ledger, which has forgotten charges. Another administrator confirms it."""
    _post(remote, here, "/v1/ledger:acknowledge-restore", {"reason": reason})


def list_proposals(remote: Remote, here: Here) -> None:
    """List what administrators proposed, and who decided it."""
    show_list(remote, here, "proposals", _line, none="no proposals")


def confirm(
    *,
    proposal: str = option("ID", _ID),
    local: bool = option("--local", "As the sole administrator, on the server's machine; the ledger says so.", False),
    remote: Remote,
    here: Here,
) -> None:
    """Confirm what another administrator proposed: it is done now."""
    if not local:
        _decide(remote, here, proposal, "confirmed")
        return
    from server.administration.proposals import Proposals, proposal_body

    with here.place().opened() as (settings, ledger, registry):
        row = Proposals(ledger, registry, caps_of(settings)).confirm(proposal, actor=operator(), local=True)
    body = proposal_body(row)
    here.show(body, [printable(_line(body)), "Restart a server that was running."], verbatim=True)


def reject(*, proposal: str = option("ID", _ID), remote: Remote, here: Here) -> None:
    """Reject what another administrator proposed."""
    _decide(remote, here, proposal, "rejected")


def withdraw(*, proposal: str = option("ID", _ID), remote: Remote, here: Here) -> None:
    """Withdraw what you proposed."""
    _decide(remote, here, proposal, "withdrawn")


def caps_of(settings: Settings) -> Caps:
    """The most that one adjustment changes."""
    from fractions import Fraction

    from server.administration.proposals import Caps

    return Caps(Fraction(settings.adjust_max_epsilon), Fraction(settings.adjust_max_delta))


def _post(remote: Remote, here: Here, path: str, body: Json) -> None:
    with remote.connect(here.place()) as client:
        made = client.post(path, body)
    lines = [_line(made), f"Another administrator confirms it: noisegate proposal confirm {made['id']}"]
    here.show(made, [printable(line) for line in lines], verbatim=True)


def _decide(remote: Remote, here: Here, proposal: str, state: str) -> None:
    with remote.connect(here.place()) as client:
        answer = client.change(f"{_PATH}/{quote(proposal, safe='')}", {"state": state})
    here.show(answer, [printable(_line(answer))], verbatim=True)


def _line(item: Json) -> str:
    what = item["kind"].replace("_", " ")
    if item["budget"]:
        old, new = item["from"], item["to"]
        what += (
            f" {item['budget']}: epsilon {old['epsilon']} to {new['epsilon']}, delta {old['delta']} to {new['delta']}"
        )
    who = f"{item['proposed_by']}, {item['created']}: {item['reason']}"
    by = f" by {item['decided_by']}, {item['decided']}" if item["decided"] else f" until {item['expires']}"
    return f"{item['id']}  {item['state']}{by}  {what}  ({who})"
