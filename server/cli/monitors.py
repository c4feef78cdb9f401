"""Monitors over HTTP: `noisegate monitor open`, `check`, `list` and `show`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from server.cli.asking import read_sql
from server.cli.client import Remote
from server.cli.failure import CommandFailed
from server.cli.listing import show_list, show_one
from server.cli.options import Here, amount, option
from server.cli.output import Json, printable

__all__ = ["check", "list_monitors", "open_monitor", "show"]

_WAIT_MS_MAX = 30_000


def open_monitor(
    *,
    sql: str | None = option("[SQL]", 'One SELECT of one COUNT or SUM; "-", or a pipe, reads it from the input.'),
    file: Path | None = option("--file -f FILE", 'Read the statement from this file; "-" is the input.'),
    threshold: str = option("--threshold T", "Passed means at least this, or with --direction below at most."),
    epsilon: str = option("--epsilon E", "What all comparisons promise together. Charged now, in whole."),
    evaluations: int = option("--evaluations N", "The most comparisons there will be.", min=1, max=100_000),
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the only one you may ask."),
    direction: Literal["above", "below"] | None = option("--direction", "Default: above."),
    hits: int | None = option("--hits N", "Outcomes `passed` after which it is over. Default: 1.", min=1, max=1_000),
    answer_epsilon: str | None = option("--answer-epsilon E", "Answer each hit with a number, charged at that moment."),
    rows_per_unit: int | None = option("--rows-per-unit N", "Rows of one unit that count.", min=1),
    stream: bool = option("--stream", "Checks may name other questions and thresholds.", False),
    when_asked: bool = option("--when-asked", "Compare when somebody asks, not by itself on new data.", False),
    budget: str | None = option("--budget ID", "The account that pays, if you have several."),
    price_only: bool = option("--estimate", "Report price and error, for free, and open nothing.", False),
    idempotency_key: str | None = option("--idempotency-key TEXT", "The same text pays once. Default: a new one."),
    remote: Remote,
    here: Here,
) -> None:
    """Open a monitor: say when a count passes a threshold, for one charge."""
    amounts = {"threshold": threshold, "epsilon": epsilon, "answer_epsilon": answer_epsilon}
    given = {name: text.strip() for name, text in amounts.items() if text is not None}
    for name, text in given.items():
        most = Fraction(10**15 if name == "threshold" else 10**6)
        amount(text, option=f"--{name.replace('_', '-')}", maximum=most, unit=Fraction(1, 10**12))
    body: Json = {"sql": read_sql(sql, file), "evaluations": evaluations, **given}
    wishes = {"direction": direction, "hits": hits, "budget": budget}
    body |= {name: wish for name, wish in wishes.items() if wish is not None}
    if rows_per_unit is not None:
        body["contribution"] = {"rows_per_unit": rows_per_unit}
    if stream:
        body["stream"] = True
    if when_asked:
        body["background"] = False
    with remote.connect(here.place()) as client:
        body["dataset"] = dataset or client.only_dataset("Name one with --dataset NAME.")
        if price_only:
            answer = client.price_of("/v1/monitors", body)
            here.show(answer, _price_lines(answer), verbatim=True)
            return
        opened = client.make("/v1/monitors", body, idempotency_key=idempotency_key)
    here.show(opened, _monitor_lines(opened), verbatim=True)


def check(
    monitor: str = option("ID", "The monitor, as `noisegate monitor list` names it."),
    sql: str | None = option("[SQL]", "Of a stream, the question of this check."),
    *,
    threshold: str | None = option("--threshold T", "Of a stream, the threshold of this check."),
    after: int | None = option("--after N", "The last evaluation that you have seen: wait for a later one.", min=0),
    wait: float | None = option("--wait SECONDS", "How long to wait for new data. Default: not at all.", min=0, max=30),
    remote: Remote,
    here: Here,
) -> None:
    """Compare now, or say again what was said of these data. Exit code 0 whatever the outcome."""
    body: Json = {}
    wishes = {"sql": sql, "threshold": threshold, "after": after}
    body |= {name: wish for name, wish in wishes.items() if wish is not None}
    if wait is not None:
        body["wait_ms"] = min(_WAIT_MS_MAX, int(wait * 1000))
    with remote.connect(here.place()) as client:
        answer = client.post(f"/v1/monitors/{quote(monitor, safe='')}/evaluations", body)
    if answer["outcome"] == "failed":
        raise CommandFailed("""the evaluation failed
            It is counted, and says nothing. What went wrong is not said, for it may depend on rows.""")
    here.show(answer, [printable(_evaluation_line(answer))], verbatim=True)


def list_monitors(remote: Remote, here: Here) -> None:
    """List your monitors, the newest first."""

    def line(item: Json) -> str:
        hits = item["hits"] - item["hits_left"]
        return f"{item['id']}  {item['status']}  {item['dataset']}  {hits} of {item['hits']} hits"

    show_list(remote, here, "monitors", line, none="no monitors")


def show(
    remote: Remote,
    here: Here,
    monitor: str = option("ID", "The monitor, as `noisegate monitor list` names it."),
) -> None:
    """Show a monitor: its terms, its hits, and what it said last."""
    show_one(remote, here, "/v1/monitors", monitor, _monitor_lines)


def _price_lines(answer: Json) -> list[str]:
    """What an estimate says."""
    price, within = answer["price"], answer["within"]
    lines = [
        f"{answer['verdict']}: epsilon {price['epsilon']} of the account, charged once",
        f"with a chance of 95 % no outcome is wrong by more than {within:,.1f}"
        f" (by the textbook's bound: {answer['textbook_within']:,.1f})",
    ]
    if answer["answer"] is not None:
        each = answer["answer"]
        lines.append(f"each answer to a hit: epsilon {each['epsilon']}, standard error {each['standard_error']:,.1f}")
    return [printable(line) for line in lines]


def _monitor_lines(answer: Json) -> list[str]:
    """A monitor for people."""
    lines = [
        f"{answer['id']}  {answer['status']}  {answer['dataset']}",
        f"{answer['hits_left']} of {answer['hits']} hits left, {answer['evaluations_made']} of {answer['evaluations']} "
        f"evaluations made, within {answer['within']:,.1f}",
        "compared on each version of the data" if answer["background"] else "compared when somebody asks",
    ]
    said = [*answer["passed"], *([answer["last"]] if answer["last"] else [])]
    lines += [f"  {_evaluation_line(one)}" for one in {one["number"]: one for one in said}.values()]
    return [printable(line) for line in lines]


def _evaluation_line(one: Json) -> str:
    numbers = [f"{name} {one[name]:,.1f}" for name in ("gap", "beyond", "combined") if one[name] is not None]
    return "  ".join([f"{one['number']}", one["outcome"], one["at"], *numbers])
