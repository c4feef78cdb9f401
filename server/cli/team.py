"""An administrator's day over HTTP: `noisegate team stop`, `resume`, `spent`, `running-out` and `left`."""

from __future__ import annotations

from urllib.parse import quote

from server.cli.client import Remote
from server.cli.options import Here, option
from server.cli.output import Json, printable, short, table

__all__ = ["left", "resume", "running_out", "spent", "stop"]


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


def spent(
    *,
    month: str | None = option("--month YYYY-MM", "Default: the present one, in UTC."),
    dataset: str | None = option("--dataset NAME", "Of this dataset only."),
    remote: Remote,
    here: Here,
) -> None:
    """Show who spent what in a month."""
    answer = _asked(remote, here, "spending", month=month, dataset=dataset)
    rows = [[*_named(one), short(one["epsilon"]), _percent(one["share"]), one["budget"]] for one in answer["budgets"]]
    head = ["dataset", "whose", "epsilon", "of the limit", "account"]
    here.show(answer, [f"Spent in {printable(answer['month'])}:", _table(head, rows)], verbatim=True)


def running_out(
    *,
    within_days: int | None = option("--within-days N", "How far to look. Default: 30.", min=1, max=3650),
    dataset: str | None = option("--dataset NAME", "Of this dataset only."),
    remote: Remote,
    here: Here,
) -> None:
    """Show which budgets are about to run out, at what pace, and when."""
    wanted = None if within_days is None else str(within_days)
    answer = _asked(remote, here, "running-out", within_days=wanted, dataset=dataset)
    rows = [
        [
            *_named(one),
            _percent(one["used_share"]),
            f"{_percent(one['pace']['share_per_day'])} a day",
            one["projected"] or "",
            one["budget"],
        ]
        for one in answer["budgets"]
    ]
    none = f"Nothing runs out within {answer['within_days']} days."
    head = ["dataset", "whose", "used", "pace", "used up", "account"]
    here.show(answer, [_table(head, rows) if rows else none], verbatim=True)


def left(
    *,
    dataset: str | None = option("--dataset NAME", "Of this dataset only."),
    remote: Remote,
    here: Here,
) -> None:
    """Show how many questions at the default accuracy everybody could still ask."""
    answer = _asked(remote, here, "questions-left", dataset=dataset)
    rows = [
        [
            *_named(one),
            ", ".join(f"{count} {family}" for family, count in one["questions_left"].items()),
            "" if one["standard_error"] is None else f"{one['standard_error']:.3g}",
            one["budget"],
        ]
        for one in answer["budgets"]
    ]
    here.show(answer, [_table(["dataset", "whose", "counts left", "error of one", "account"], rows)], verbatim=True)


def _asked(remote: Remote, here: Here, what: str, **wanted: str | None) -> Json:
    given = "&".join(f"{name}={quote(value, safe='')}" for name, value in wanted.items() if value is not None)
    with remote.connect(here.place(), stored="admin") as client:
        return client.get(f"/v1/team/{what}" + (f"?{given}" if given else ""))


def _table(head: list[str], rows: list[list[str]]) -> str:
    return table(head, [[printable(cell) for cell in row] for row in rows])


def _named(one: Json) -> list[str]:
    return [one["dataset"], one["principal"] or f"({one['name']})"]


def _percent(share: str) -> str:
    return f"{float(share) * 100:.3g} %"


def _lines(answer: Json, what: str) -> list[str]:
    name = printable(answer["principal"])
    return [f"{name} is {'stopped' if answer['stopped'] else 'not stopped any more'}"] + [
        f"{printable(budget)}  {what}" for budget in answer["budgets"]
    ]
