"""`noisegate budget window`, and what `noisegate budget show` says of lifetimes and windows."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from accountant.calendar import SLICES_MAX, WindowKind, WindowMode
from accountant.filter import DELTA_MAX, EPSILON_MAX, Limit
from server.cli.failure import UsageError
from server.cli.options import Here, amount, operator, option
from server.cli.output import Json, short

__all__ = ["set_window", "statement_lines"]


def set_window(
    *,
    account: str = option("--account ID", "The account; `budget show` lists them.", ...),
    kind: WindowKind | None = option("--kind", "How long a window is, in UTC. Without: the window is taken away."),
    mode: WindowMode = option("--mode", "Parts of the limit, or an amount each time.", WindowMode.SLICES),
    slices: int | None = option("--slices N", "How many parts.", min=2, max=SLICES_MAX),
    starts: str | None = option("--starts DAY", "A day of the first window. Default: today."),
    ends: str | None = option("--ends DAY", "The day after the last window, where no number of parts is given."),
    epsilon: str | None = option("--epsilon E", "The amount of one window, with --mode reset."),
    delta: str | None = option("--delta D", "The same of delta. Not for pure."),
    acknowledge: str | None = option("--acknowledge TEXT", "Needed with --mode reset; the refusal says what."),
    reason: str = option("--reason TEXT", "Why; the ledger keeps it.", ...),
    here: Here,
) -> None:
    """Say when how much of a limit may be spent: parts that unlock by the calendar, or an amount for each window."""
    from accountant.window import WindowWish
    from privacy.numbers import ATTO, PICO
    from server.administration.budgets import Budgets, account_body
    from server.administration.registered import RegisteredDatasets
    from server.administration.windows import ChangeWindow, Windows

    limit = None
    if epsilon is not None:
        exact = amount(delta or "0", option="--delta", maximum=DELTA_MAX, unit=ATTO, zero_allowed=True)
        limit = Limit(amount(epsilon, option="--epsilon", maximum=EPSILON_MAX, unit=PICO), exact)
    wish = None
    if kind is not None:
        wish = WindowWish(
            kind=kind,
            mode=mode,
            starts=_day(starts, "--starts"),
            ends=_day(ends, "--ends"),
            slices=slices,
            limit=limit,
            acknowledge=acknowledge,
        )
    with here.place().opened() as (_, ledger, registry):
        budgets = Budgets(ledger, registry, RegisteredDatasets(registry).names)
        change = ChangeWindow(account=account, wish=wish, reason=reason)
        changed = account_body(Windows(budgets).change(change, actor=operator()))
    said = "The window is set." if wish is not None else "The whole limit may be spent at any time now."
    here.show(changed, [said, *statement_lines([changed])])


def _day(text: str | None, name: str) -> datetime.date | None:
    try:
        return None if text is None else datetime.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{name} is not accepted\n    A day is written 2026-01-31.") from None


def statement_lines(budgets: Sequence[Json]) -> list[str]:
    """What each account has lost in its lifetime, where its pace leads to, and what its window says."""
    return [line for item in budgets for line in _statement(item)]


def _statement(item: Json) -> list[str]:
    if "lifetime" not in item:
        return []  # an older server
    lost, limit = short(item["lifetime"]["loss"]["epsilon"]), short(item["limit"]["epsilon"])
    pace = item["projection"]
    runs_out = "" if pace["exhausted_on"] is None else f", nothing left on {pace['exhausted_on']}"
    days = pace["grounds"]["days"]
    lines = [
        f"{item['id']}: lost {lost} of {limit} in its lifetime; at the pace of its {days} day{'s' * (days > 1)} "
        f"{short(pace['in_a_year'])} in a year{runs_out}."
    ]
    window = item["window"]
    if window is not None:
        turn = window["next"]
        later = "" if turn is None else f"; {short(turn['epsilon'])} more on {turn['at'][:10]}"
        parts = "" if window["slices"] is None else f", {window['unlocked']} of {window['slices']} slices unlocked"
        lines.append(
            f"  {window['kind']} {window['mode']}{parts}: lost {short(window['loss']['epsilon'])} in this window, "
            f"{short(window['remaining']['epsilon'])} may be spent now{later}."
        )
    return lines
