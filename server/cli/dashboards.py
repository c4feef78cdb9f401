"""Dashboards over HTTP: `noisegate dashboard make`, `change`, `list`, `show`, `tile`, `refresh`, `pause`, `resume`,
`remove`, `link`, `links` and `revoke`."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from server.cli.client import Remote
from server.cli.failure import UsageError
from server.cli.listing import show_lines, show_list, show_one
from server.cli.options import Here, option
from server.cli.output import Json, printable, say, short

__all__ = [
    "change",
    "link",
    "links",
    "list_dashboards",
    "make",
    "pause",
    "refresh",
    "remove",
    "resume",
    "revoke",
    "show",
    "tile",
]

_PATH = "/v1/dashboards"
_FILE_MAX = 1 << 18
_AMOUNTS = frozenset({"epsilon", "own_epsilon", "delta"})
_ID = "The dashboard, as `noisegate dashboard list` names it."
_TILE = "The tile's name."


def make(
    *,
    file: Path = option("FILE", "The dashboard, as YAML or JSON."),
    dataset: str | None = option("--dataset NAME", "The dataset. Default: the file's, or the only one you may ask."),
    remote: Remote,
    here: Here,
) -> None:
    """Make a dashboard from a file."""
    body = _read(file)
    with remote.connect(here.place()) as client:
        body["dataset"] = dataset or body.get("dataset") or client.only_dataset("Name one with --dataset NAME.")
        made = client.store(_PATH, body)
    here.show(made, [printable(line) for line in _lines(made)], verbatim=True)


def change(
    *,
    dashboard: str = option("ID", _ID),
    file: Path = option("FILE", "What it shall be from now on, as YAML or JSON."),
    remote: Remote,
    here: Here,
) -> None:
    """Change a dashboard to what a file says. Tiles whose text or spend change begin anew."""
    body = {name: value for name, value in _read(file).items() if name != "dataset"}
    with remote.connect(here.place()) as client:
        changed = client.store(_address(dashboard), body, replaces=True)
    here.show(changed, [printable(line) for line in _lines(changed)], verbatim=True)


def list_dashboards(remote: Remote, here: Here) -> None:
    """List your dashboards, and those that you may read, the newest first."""

    def line(item: Json) -> str:
        states = ", ".join(dict.fromkeys(tile["state"] for tile in item["tiles"]))
        return f"{item['id']}  {item['dataset']}  {item['title']}  {'paused' if item['paused'] else states}"

    show_list(remote, here, "dashboards", line, none="no dashboards")


def show(remote: Remote, here: Here, dashboard: str = option("ID", _ID)) -> None:
    """Show a dashboard: its tiles, what is left of its envelope, and until when that lasts."""
    show_one(remote, here, _PATH, dashboard, lambda answer: [printable(line) for line in _lines(answer)])


def tile(
    *,
    dashboard: str = option("ID", _ID),
    name: str = option("NAME", _TILE),
    format: Literal["csv", "json"] = option("--format FORMAT", "csv or json.", "csv"),
    history: bool = option("--history", "Its last refreshes, one after the other.", False),
    remote: Remote,
    here: Here,
) -> None:
    """Print a tile. It costs nothing."""
    address = f"{_address(dashboard)}/tiles/{quote(name, safe='')}{'/history' if history else ''}"
    as_json = here.as_json or format == "json"
    with remote.connect(here.place()) as client:
        if as_json:
            say(client.text(address, accept="application/json"), verbatim=True)
        else:
            say(client.text(address, accept="text/csv").rstrip("\r\n").replace("\r\n", "\n"), verbatim=True)


def refresh(
    *,
    dashboard: str = option("ID", _ID),
    name: str = option("NAME", _TILE),
    remote: Remote,
    here: Here,
) -> None:
    """Make a refresh of a tile due now. It is charged to the envelope like every other one."""
    _act(remote, here, f"{_address(dashboard)}/tiles/{quote(name, safe='')}:refresh")


def pause(remote: Remote, here: Here, dashboard: str = option("ID", _ID)) -> None:
    """Pause a dashboard: its tiles keep their answers."""
    _act(remote, here, f"{_address(dashboard)}:pause")


def resume(remote: Remote, here: Here, dashboard: str = option("ID", _ID)) -> None:
    """Go on with a dashboard."""
    _act(remote, here, f"{_address(dashboard)}:resume")


def remove(remote: Remote, here: Here, dashboard: str = option("ID", _ID)) -> None:
    """Remove a dashboard and its links. What was charged stays."""
    show_one(remote, here, _PATH, dashboard, lambda answer: [printable(f"{answer['id']}  removed")], end=True)


def link(
    *,
    dashboard: str = option("ID", _ID),
    label: str = option("--label TEXT", "What it is for.", ...),
    days: int = option("--days N", "After so many days it opens nothing.", 30, min=1, max=366),
    remote: Remote,
    here: Here,
) -> None:
    """Make a read-only link, and show its addresses, once."""
    with remote.connect(here.place()) as client:
        made = client.post(f"{_address(dashboard)}/links", {"label": label, "days": days})
        lines = [f"{made['id']}  until {made['expires']}", *(f"{client.url}{url}" for url in made["urls"].values())]
    lines.append("Keep them now: they are not shown again. Who has one reads the tiles.")
    here.show(made, [printable(line) for line in lines], verbatim=True)


def links(remote: Remote, here: Here, dashboard: str = option("ID", _ID)) -> None:
    """List the links of a dashboard, without their addresses."""
    with remote.connect(here.place()) as client:
        found = client.get(f"{_address(dashboard)}/links")["links"]
    show_lines(here, found, map(_link_line, found), none="no links")


def revoke(
    *,
    dashboard: str = option("ID", _ID),
    identifier: str = option("LINK", "The link, as `noisegate dashboard links` names it."),
    remote: Remote,
    here: Here,
) -> None:
    """Revoke a link: it opens nothing any more."""
    path = f"{_address(dashboard)}/links"
    show_one(remote, here, path, identifier, lambda answer: [printable(_link_line(answer))], end=True)


def _act(remote: Remote, here: Here, path: str) -> None:
    with remote.connect(here.place()) as client:
        answer = client.store(path, {})
    here.show(answer, [printable(line) for line in _lines(answer)], verbatim=True)


def _address(dashboard: str) -> str:
    return f"{_PATH}/{quote(dashboard, safe='')}"


def _read(file: Path) -> Json:
    """A dashboard's file. Errors: UsageError."""
    # Only here: other commands need no reader of YAML.
    from server.datasets.reading import read

    try:
        with file.open("rb") as stream:
            content = stream.read(_FILE_MAX + 1)
    except OSError:
        raise UsageError(f"""could not read "{file}"
            It does not exist, or may not be read.
            Give a file with the dashboard: docs/dashboards.md has one.""") from None
    document = read(content)
    if document.findings or not isinstance(document.data, dict):
        found = document.findings[0].position if document.findings else None
        place = "" if found is None else f" Reading stopped in line {found.line}."
        raise UsageError(f"""could not read "{file}"
            It is not a mapping of names to values, in YAML or JSON.{place}
            Write it as in docs/dashboards.md.""")
    return {str(name): _sendable(value, str(name)) for name, value in document.data.items()}


def _sendable(value: object, name: str) -> object:
    """A value of a file as JSON has it: amounts as the decimals that were written."""
    if isinstance(value, dict):
        return {str(inner): _sendable(part, str(inner)) for inner, part in value.items()}
    if isinstance(value, list):
        return [_sendable(part, name) for part in value]
    if name in _AMOUNTS and isinstance(value, int | Decimal) and not isinstance(value, bool):
        return format(value, "f") if isinstance(value, Decimal) else str(value)
    return float(value) if isinstance(value, Decimal) else value


def _lines(answer: Json) -> list[str]:
    """A dashboard for people."""
    lines = [f"{answer['id']}  {answer['dataset']}  {answer['title']}"]
    if answer["paused"]:
        lines.append(f"paused since {answer['paused']}")
    if answer["envelope"]:
        left, limit = answer["envelope"]["remaining"]["epsilon"], answer["envelope"]["limit"]["epsilon"]
        until = f", lasts until {answer['exhausted_on']}" if answer["exhausted_on"] else ""
        lines.append(f"envelope: epsilon {short(left)} of {short(limit)} left{until}")
    for one in answer["tiles"]:
        why = f" ({one['refused']})" if one["refused"] else ""
        since = f"  as of {one['as_of']}" if one["as_of"] else ""
        lines.append(f"  {one['name']}  {one['state']}{why}{since}  {one['title']}")
    return lines


def _link_line(item: Json) -> str:
    state = f"revoked {item['revoked']}" if item["revoked"] else f"until {item['expires']}"
    return f"{item['id']}  {state}  {item['label']}"
