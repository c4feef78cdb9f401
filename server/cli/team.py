"""An administrator's day over HTTP: `noisegate team stop`, `resume`, `spent`, `running-out` and `left`."""

from __future__ import annotations

from urllib.parse import quote

from server.cli.client import Remote
from server.cli.options import Here, option
from server.cli.output import Json, printable

__all__ = ["resume", "stop"]


def stop(
    *,
    principal: str = option("PRINCIPAL", "Who is stopped."),
    reason: str = option("--reason TEXT", "Why; the ledger keeps it.", ...),
    remote: Remote,
    here: Here,
) -> None:
    """Stop somebody now: budgets frozen, keys suspended, what was not started cancelled."""
    with remote.connect(here.place(), stored="admin") as client:
        answer = client.post(f"/v1/principals/{quote(principal, safe='')}:stop", {"reason": reason})
    cancelled = f"{answer['cancelled']} cancelled" if answer["cancelled"] else "nothing waited"
    here.show(answer, [*_lines(answer, "frozen"), f"keys suspended, {cancelled}"], verbatim=True)


def resume(
    *,
    principal: str = option("PRINCIPAL", "Who goes on."),
    reason: str = option("--reason TEXT", "Why; the ledger keeps it.", ...),
    remote: Remote,
    here: Here,
) -> None:
    """Take a stop back: budgets pay again, keys work."""
    with remote.connect(here.place(), stored="admin") as client:
        answer = client.post(f"/v1/principals/{quote(principal, safe='')}:resume", {"reason": reason})
    here.show(answer, _lines(answer, "pays again"), verbatim=True)


def _lines(answer: Json, what: str) -> list[str]:
    name = printable(answer["principal"])
    return [f"{name} is {'stopped' if answer['stopped'] else 'not stopped any more'}"] + [
        f"{printable(budget)}  {what}" for budget in answer["budgets"]
    ]
