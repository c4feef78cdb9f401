"""Webhooks over HTTP: `noisegate webhook add`, `test`, `list`, `show` and `remove`."""

from __future__ import annotations

from urllib.parse import quote

from server.cli.client import Remote
from server.cli.listing import show_list, show_one
from server.cli.options import Here, option
from server.cli.output import Json, printable

__all__ = ["add", "check", "list_webhooks", "remove", "show"]


def add(
    *,
    destination: str = option("ADDRESS", "Where events are sent, within what an administrator allows."),
    event: list[str] = option("--event KIND", "A kind of events, again for each. Default: monitor.passed.", []),
    subject: list[str] = option("--subject ID", "Only events about this identifier, again for each. Default: all.", []),
    remote: Remote,
    here: Here,
) -> None:
    """Add a webhook, and show its secret, once."""
    body: Json = {"url": destination}
    body |= {name: given for name, given in (("events", event), ("subjects", subject)) if given}
    with remote.connect(here.place()) as client:
        made = client.post("/v1/webhooks", body)
    lines = [*_webhook_lines(made), f"secret: {made['secret']}", "Keep it now: it is not shown again."]
    here.show(made, [printable(line) for line in lines], verbatim=True)


def check(
    remote: Remote,
    here: Here,
    webhook: str = option("ID", "The webhook, as `noisegate webhook list` names it."),
) -> None:
    """Send an event without content to a webhook."""
    with remote.connect(here.place()) as client:
        answer = client.post(f"/v1/webhooks/{quote(webhook, safe='')}:test", {})
    here.show(answer, [printable(line) for line in _webhook_lines(answer)], verbatim=True)


def list_webhooks(remote: Remote, here: Here) -> None:
    """List your webhooks, the newest first."""

    def line(item: Json) -> str:
        return f"{item['id']}  {item['host']}  {', '.join(item['events'])}"

    show_list(remote, here, "webhooks", line, none="no webhooks")


def show(
    remote: Remote,
    here: Here,
    webhook: str = option("ID", "The webhook, as `noisegate webhook list` names it."),
) -> None:
    """Show a webhook, and what came of its newest events."""
    with remote.connect(here.place()) as client:
        address = f"/v1/webhooks/{quote(webhook, safe='')}"
        answer = client.get(address)
        sent = client.get(f"{address}/deliveries?count=20")["deliveries"]
    lines = [*_webhook_lines(answer), *(f"  {_delivery_line(one)}" for one in sent)]
    here.show({**answer, "deliveries": sent}, [printable(line) for line in lines], verbatim=True)


def remove(
    remote: Remote,
    here: Here,
    webhook: str = option("ID", "The webhook, as `noisegate webhook list` names it."),
) -> None:
    """Remove a webhook. What waits for it is not sent any more."""
    show_one(remote, here, "/v1/webhooks", webhook, lambda answer: [printable(f"{answer['id']}  removed")], end=True)


def _webhook_lines(answer: Json) -> list[str]:
    """A webhook for people."""
    about = "everything of yours" if answer["subjects"] is None else ", ".join(answer["subjects"])
    lines = [f"{answer['id']}  {answer['url'] or answer['host']}", f"{', '.join(answer['events'])} of {about}"]
    return [*lines, f"{answer['waiting']} waiting"] if answer["waiting"] else lines


def _delivery_line(one: Json) -> str:
    why = f"  {one['failure']}" if one["failure"] else ""
    return f"{one['created']}  {one['event']}  {one['subject']}  {one['state']}  attempt {one['attempts']}{why}"
