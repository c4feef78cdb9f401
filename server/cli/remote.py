"""`noisegate datasets` and `noisegate describe`: what an analyst may ask, read from a server over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.failure import CommandFailed
from server.cli.home import Home
from server.cli.options import HomeOption, JsonOption, KeyFileOption, KeyOption, UrlOption, default_home
from server.cli.output import print_json, printable, say, short, table

if TYPE_CHECKING:
    from server.cli.client import Client

__all__ = ["connect", "datasets", "describe", "one_dataset", "show_remote_budgets"]

_KEYS_SHOWN = 6


def datasets(
    url: UrlOption = None,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the datasets that you may ask, with their tables.

    \b
    examples
      noisegate datasets
      NOISEGATE_URL=https://stats.example NOISEGATE_KEY=ngk_... noisegate datasets --json
    """
    with connect(home, url, key, key_file) as client:
        _, listed = client.call("GET", "/v1/datasets")
    if as_json:
        print_json(listed["datasets"])
        return
    if not listed["datasets"]:
        say("You have a budget for no dataset. Ask an administrator for one.")
        return
    rows = [
        [printable(str(item["name"])), printable(", ".join(item["tables"])), printable(str(item["description"]))]
        for item in listed["datasets"]
    ]
    say(table(["dataset", "tables", "description"], rows), verbatim=True)
    say("Columns, types and bounds: noisegate describe DATASET")


def describe(
    dataset: Annotated[
        str | None, typer.Argument(metavar="[DATASET]", help="Default: the only one that you may ask.")
    ] = None,
    of: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="Of this table only.")] = None,
    url: UrlOption = None,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a dataset declares: tables, columns, types, bounds, groups, limits. Nothing of it was read from rows.

    \b
    examples
      noisegate describe demo
      noisegate describe demo visits --json
    """
    with connect(home, url, key, key_file) as client:
        name = dataset or one_dataset(client, "Name it: noisegate describe DATASET")
        _, body = client.call("GET", f"/v1/datasets/{_part(name)}")
        if of is not None:
            _, found = client.call("GET", f"/v1/datasets/{_part(name)}/tables/{_part(of)}")
            body["tables"] = [found]
    if as_json:
        print_json(body if of is None else body["tables"][0])
        return
    for line in _dataset_lines(body):
        say(line, verbatim=True)


def connect(home: Path | None, url: str | None, key: str | None, key_file: Path | None) -> Client:
    """A connection to the server that is meant. Errors: CommandFailed."""
    from server.cli.client import Client, choose_key, choose_url

    place = Home(default_home(home))
    address = choose_url(url, place)
    return Client(address, choose_key(key, key_file, place, address))


def one_dataset(client: Client, advice: str) -> str:
    """The only dataset that the caller may ask. Errors: CommandFailed, with their names, when there is not one."""
    _, listed = client.call("GET", "/v1/datasets")
    names = [str(item["name"]) for item in listed["datasets"]]
    if len(names) != 1:
        raise CommandFailed(
            "the dataset is missing",
            why=f"You may ask: {printable(', '.join(names))}." if names else "You have a budget for no dataset.",
            instead=advice if names else "Ask an administrator for a budget.",
            exit_code=2,
        )
    return names[0]


def _part(name: str) -> str:
    """A name as one part of a path."""
    from urllib.parse import quote

    return quote(name, safe="")


def _dataset_lines(body: dict[str, Any]) -> list[str]:
    unit, limits = body["privacy_unit"], body["limits"]
    protected = f"each row of {unit['table']}" if unit["key"] is None else f"{unit['key']} of {unit['table']}"
    lines = [
        f"{printable(str(body['name']))}: {printable(str(body['description']))}".rstrip(": "),
        f"Protected: {printable(protected)}. One query costs epsilon {short(limits['epsilon_default'])} by default, "
        f"{short(limits['epsilon_max'])} at most.",
    ]
    for item in body["tables"]:
        kind = "protected" if item["protected"] else "public"
        key = f", key {item['key']}" if item["key"] else ""
        lines += ["", printable(f"{item['name']} ({kind}{key}) {item['description']}".rstrip())]
        lines += [
            printable(f"  {part['column']} refers to {part['table']}.{part['key']}") for part in item["references"]
        ]
        bounds = item["contribution"]
        if item["protected"] and bounds != dict.fromkeys(bounds, 1):
            lines.append(
                f"  of one unit count at most {bounds['rows_per_unit']:,} rows, in "
                f"{bounds['groups_per_unit']:,} groups, {bounds['rows_per_unit_and_group']:,} in each"
            )
        rows = [
            [
                printable(str(column["name"])),
                column["type"] + ("" if column["nullable"] else ", never NULL"),
                _bounds(column["bounds"]),
                _groups(column["keys"]),
                printable(str(column["description"])),
            ]
            for column in item["columns"]
        ]
        lines.append(table(["column", "type", "bounds", "public groups", "description"], rows))
    return lines


def _bounds(bounds: dict[str, str] | None) -> str:
    return "" if bounds is None else f"{short(bounds['lower'])} to {short(bounds['upper'])}"


def _groups(keys: list[Any] | None) -> str:
    if keys is None:
        return ""
    shown = ", ".join("NULL" if key is None else str(key) for key in keys[:_KEYS_SHOWN])
    return printable(shown if len(keys) <= _KEYS_SHOWN else f"{shown}, ... ({len(keys):,})")


def show_remote_budgets(client: Client, *, dataset: str | None, principal: str | None, as_json: bool) -> None:
    """The caller's own accounts (an administrator's: all) on a server."""
    _, listed = client.call("GET", "/v1/budgets")
    found = [
        item
        for item in listed["budgets"]
        if dataset in (None, item["dataset"]) and (principal is None or item["principal"] == principal)
    ]
    if as_json:
        print_json(found)
        return
    if not found:
        say("There is no budget of yours on this server. Ask an administrator for one.")
        return
    rows = [
        [
            printable(str(item["dataset"])),
            printable(str(item["principal"] or f"({item['name']})")),
            str(item["filter"]),
            short(item["limit"]["epsilon"]),
            short(item["limit"]["delta"]),
            f"{float(item['used_share']) * 100:.1f} %",
            short(item["remaining"]["epsilon"]),
            short(item["remaining"]["delta"]),
            str(item["id"]),
        ]
        for item in found
    ]
    head = ["dataset", "whose", "filter", "epsilon", "delta", "used", "epsilon left", "delta left", "account"]
    say(table(head, rows, right=frozenset({3, 4, 5, 6, 7})), verbatim=True)
