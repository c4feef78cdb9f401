"""Streams over HTTP: `noisegate stream open`, `ask`, `list`, `show` and `close`."""

from __future__ import annotations

import re
from fractions import Fraction

from server.cli.answers import key_text
from server.cli.client import Remote
from server.cli.failure import UsageError
from server.cli.listing import show_lines, show_one
from server.cli.options import Here, amount, option
from server.cli.output import Json, printable

__all__ = ["ask", "close", "list_streams", "open_stream", "show"]

_COLUMN = re.compile(r"(?P<name>[^:]+)(:(?P<low>[^:]+?)\.\.(?P<high>[^:/]+)(/(?P<step>[0-9]{1,6}))?)?\Z")
_RANGE = re.compile(r"(?P<key>[^:=]+):(?P<low>[^:]*?)\.\.(?P<high>[^:]*)\Z")
_VALUES = re.compile(r"(?P<key>[^:=]+)=(?P<values>.+)\Z", re.DOTALL)
_COMPARING = {True: "comparing", False: "not comparing any more"}


def open_stream(
    *,
    table: str = option("TABLE", "The table about people whose rows are counted."),
    column: list[str] = option(
        "--column SPEC", "A column, again for each: NAME, NAME:LOW..HIGH or NAME:LOW..HIGH/STEP."
    ),
    epsilon: str = option("--epsilon E", "What all of it promises together."),
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the only one you may ask."),
    updates: int | None = option("--updates N", "How often the synopsis may be corrected. Default: 10.", min=1),
    queries: int | None = option("--queries N", "Most queries that are compared. Default: 1000.", min=1),
    tolerance: str | None = option("--tolerance T", "How far the synopsis may be off before it is corrected."),
    rows_per_unit: int | None = option("--rows-per-unit N", "Rows of one unit that count.", min=1),
    budget: str | None = option("--budget ID", "The account that pays, if you have several."),
    for_dataset: bool = option("--for-dataset", "For everybody with a budget, for nothing. Of owners.", False),
    price_only: bool = option(
        "--estimate", "Report what it would promise and cost, for free, and open nothing.", False
    ),
    idempotency_key: str | None = option("--idempotency-key TEXT", "The same text pays once. Default: a new one."),
    remote: Remote,
    here: Here,
) -> None:
    """Open a stream of range queries, pay, and show its terms."""
    amount(epsilon.strip(), option="--epsilon", maximum=Fraction(10**6), unit=Fraction(1, 10**12))
    body: Json = {"table": table, "columns": [_column(one) for one in column], "epsilon": epsilon.strip()}
    wishes = {"updates": updates, "queries": queries, "tolerance": tolerance, "budget": budget}
    body |= {wish: value for wish, value in wishes.items() if value is not None}
    if rows_per_unit is not None:
        body["contribution"] = dict.fromkeys(
            ("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group"), rows_per_unit
        )
    if for_dataset:
        body["shared"] = True
    with remote.connect(here.place()) as client:
        body["dataset"] = dataset or client.only_dataset("Name one with --dataset NAME.")
        if price_only:
            told = client.price_of("/v1/streams", body)
            here.show(told, [*_promises(told), f"costs epsilon {told['price']['epsilon']}"], verbatim=True)
            return
        made = client.make("/v1/streams", body, idempotency_key=idempotency_key)
    here.show(made, _lines(made), verbatim=True)


def ask(
    *,
    stream: str = option("ID", "The stream, as `noisegate stream list` names it."),
    where: list[str] = option("--where SPEC", "A condition, again for each: KEY:LOW..HIGH or KEY=VALUE,VALUE.", []),
    remote: Remote,
    here: Here,
) -> None:
    """Ask a stream for the sum of the cells that satisfy all conditions. Free."""
    conditions = [_condition(one) for one in where]
    with remote.connect(here.place()) as client:
        told = client.ask_stream(stream, {"queries": [{"where": conditions}]})
    (answer,) = told["answers"]
    reach = "nothing was compared" if answer["within"] is None else f"± {answer['within']:.4g}"
    lines = [
        f"{answer['value']:.10g}  {reach}, {answer['found'].replace('_', ' ')}",
        f"{_COMPARING[told['comparing']]}: {told['updates_left']} updates left, {told['compared']} queries compared",
        *(told.get("cut") or []),
    ]
    here.show(told, [printable(line) for line in lines], verbatim=True)


def list_streams(remote: Remote, here: Here) -> None:
    """List your streams, the newest first, and those that others opened for everybody."""
    with remote.connect(here.place()) as client:
        own = client.get("/v1/streams?count=100")["streams"]
        described = [client.get(item["links"]["self"]) for item in client.get("/v1/datasets")["datasets"]]
    known = {item["id"] for item in own}
    shared = [
        {**item, "dataset": dataset["name"]}
        for dataset in described
        for item in dataset["streams"]
        if item["id"] not in known
    ]
    lines = [
        f"{item['id']}  {item['status']}  {item['dataset']}  {item['updates_left']} of {item['updates']} updates left"
        for item in own
    ]
    lines += [
        f"{item['id']}  of {item['principal']}, for everybody  {item['dataset']}  {_COMPARING[item['comparing']]}"
        for item in shared
    ]
    show_lines(here, [*own, *shared], lines, none="no streams")


def show(
    remote: Remote,
    here: Here,
    stream: str = option("ID", "The stream, as `noisegate stream list` names it."),
) -> None:
    """Show the terms of a stream, and what is left of it."""
    show_one(remote, here, "/v1/streams", stream, _lines)


def close(
    remote: Remote,
    here: Here,
    stream: str = option("ID", "The stream, as `noisegate stream list` names it."),
) -> None:
    """Close a stream, and delete its answers. Its terms and its charge stay."""
    show_one(remote, here, "/v1/streams", stream, _lines, end=True)


def _column(text: str) -> Json:
    found = _COLUMN.match(text.strip())
    if found is None:
        raise UsageError("""the column cannot be read
            It is a name, with the ends of its range and a step where it declares no keys.
            Write --column sex, --column age:18..89, or --column age:20..89/10.""")
    column: Json = {"name": found["name"].strip()}
    if found["low"] is not None:
        column |= {"low": _value(found["low"]), "high": _value(found["high"])}
    if found["step"] is not None:
        column["step"] = int(found["step"])
    return column


def _condition(text: str) -> Json:
    found = _RANGE.match(text.strip())
    if found is not None and (found["low"] or found["high"]):
        ends = {name: _value(found[name]) for name in ("low", "high") if found[name]}
        return {"key": found["key"].strip(), **ends}
    values = _VALUES.match(text.strip())
    if values is None:
        raise UsageError("""the condition cannot be read
            It is a key with a range, or with values.
            Write --where age:30..49, --where age:30.., or --where sex=female.""")
    return {"key": values["key"].strip(), "values": [_value(one) for one in values["values"].split(",")]}


def _value(text: str) -> object:
    """A whole number or a truth value where it looks like one; else a text."""
    text = text.strip()
    if re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    return {"true": True, "false": False}.get(text, text)


def _promises(told: Json) -> list[str]:
    return [
        f"{told['cells']} cells; an answer that passes is within {told['within']:.4g}, a measured one within "
        f"{told['within_measured']:.4g}, with a chance of 95 %",
        f"corrected beyond {told['tolerance']:.4g}; noise alone uses up {told['wrong_updates']:.2g} updates on average",
        *_left_out(told),
    ]


def _left_out(told: Json) -> list[str]:
    """What the bounds of one unit leave out, and the option with which it is less."""
    bounds, cut = told.get("contribution"), told.get("cut") or []
    if not cut:
        return []
    lines = [printable(line) for line in cut]
    if bounds is not None and bounds["larger"] is not None:
        lines.append(f"--rows-per-unit {bounds['larger']} leaves out less, with greater noise in proportion.")
    return [*lines, "These numbers do not show what the bounds leave out."]


def _lines(made: Json) -> list[str]:
    lines = [f"{made['id']}  {made['status']}  epsilon {made['epsilon']}", *_promises(made)]
    lines.append(
        f"{made['updates_left']} of {made['updates']} updates left, {made['compared']} of {made['queries']} compared"
    )
    if made["why"] is not None:
        lines.append(f"{_COMPARING[made['comparing']]}: {made['why']}")
    lines += [f"{key['name']}: {key['values']} values, {_ends(key)}" for key in made["keys"] or ()]
    return [printable(line) for line in lines]


def _ends(key: Json) -> str:
    return f"{key_text(key['first'])} to {key_text(key['last'])}"
