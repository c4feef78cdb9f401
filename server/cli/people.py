"""`noisegate key`: who may ask."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.failure import CommandFailed, usage_error
from server.cli.home import Home
from server.cli.options import HomeOption, JsonOption, default_home, operator
from server.cli.output import print_json, say, table

if TYPE_CHECKING:
    from server.store.registry import Principal, StoredKey

__all__ = ["commands"]

commands = typer.Typer(
    name="key", help="API keys for administrators and analysts.", no_args_is_help=True, rich_markup_mode=None
)


class Role(StrEnum):
    """The roles of the registry."""

    admin = "admin"
    owner = "owner"
    analyst = "analyst"
    dashboard = "dashboard"
    auditor = "auditor"


@commands.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Principal: small letters, digits, _ . -")],
    role: Annotated[
        Role | None, typer.Option("--role", help="Role of a principal that does not exist yet. Default: analyst.")
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=3650, help="Life of the key in days. Default: 365.")
    ] = None,
    label: Annotated[str, typer.Option("--label", help="A note that is shown in lists.")] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an API key, and its principal when there is none of that name.

    The key is shown once; the ledger keeps a salted hash of it. It works at once, also on a running server.

    \b
    examples
      noisegate key create research
      noisegate key create operations --role admin --days 30
      noisegate key create nightly --role auditor --json
    """
    place = Home(default_home(home))
    with place.opened() as (settings, _, registry):
        actor = operator()
        existing = registry.principal(name)
        if existing is not None and role is not None and existing.role != role.value:
            raise CommandFailed(
                f'could not make the key: "{name}" is {existing.role}, not {role.value}',
                why="A principal has one role, and all its keys have that role.",
                instead=("Leave --role away,", "or choose another name for the other role."),
            )
        if existing is not None and existing.disabled is not None:
            raise CommandFailed(
                f'could not make the key: "{name}" is disabled',
                why="Keys of a disabled principal do not work.",
                instead=f"Enable it first: PATCH /v1/principals/{name} with an administrator's key.",
            )
        try:
            if existing is None:
                existing = registry.create_principal(name, (role or Role.analyst).value, actor=actor)
            made = registry.create_key(name, label=label, days=days or settings.key_days, actor=actor)
        except ValueError as error:
            raise usage_error("could not make the key", why=f"{error}.", instead="See: noisegate key list") from None
    if as_json:
        print_json({**_body(made.key), "role": existing.role, "key": made.text})
        return
    say(f'Key {made.key.id} for "{name}" ({existing.role}), valid until {made.key.expires[:10]}:')
    say(f"\n  {made.text}\n")
    say("It is shown once and is not stored. Take it back with:")
    say(f"  noisegate key revoke {made.key.id}")
    if existing.role in ("analyst", "owner"):
        say("An analyst also needs a budget:")
        say(f"  noisegate budget set --dataset NAME --principal {name} --epsilon 5 --delta 0.000001")


@commands.command("revoke")
def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="Identifier of the key, as `key list` shows it.")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a key back. It stops working with the next request; revoking twice changes nothing.

    \b
    examples
      noisegate key list
      noisegate key revoke 5f0c1d2e3a4b
    """
    from server.store.keys import split_key

    parts = split_key(key)
    identifier = key if parts is None else parts[0]
    place = Home(default_home(home))
    with place.opened() as (_, _, registry):
        if registry.key(identifier) is None:
            raise CommandFailed(
                "there is no such key" if key.startswith("ngk_") else f'there is no key "{identifier}"',
                why="No key of this home has this identifier.",
                instead="See: noisegate key list",
            )
        revoked = registry.revoke_key(identifier, actor=operator())
    if as_json:
        print_json(_body(revoked))
    else:
        say(f'Key {revoked.id} of "{revoked.principal}" is revoked since {revoked.revoked}.')


@commands.command("list")
def list_keys(
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Of this one only.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List keys without their texts, which are not stored.

    \b
    examples
      noisegate key list
      noisegate key list --principal research --json
    """
    place = Home(default_home(home))
    with place.opened() as (_, _, registry):
        if principal is not None and registry.principal(principal) is None:
            raise CommandFailed(
                f'there is no principal "{principal}"', why="No key was ever made for this name.",
                instead="See: noisegate key list",
            )  # fmt: skip
        found: list[StoredKey] = []
        after = ""
        while page := registry.keys(principal=principal, after=after, count=500):
            found += page
            after = page[-1].id
        roles = {key.principal: registry.principal(key.principal) for key in found}
    if as_json:
        print_json([{**_body(key), "role": _role(roles[key.principal])} for key in found])
        return
    if not found:
        say("There are no keys yet. Make one with: noisegate key create NAME --role analyst")
        return
    rows = [
        [
            key.id,
            key.principal,
            _role(roles[key.principal]),
            key.created[:10],
            key.expires[:10],
            key.last_used_day or "never",
            f"revoked {key.revoked[:10]}" if key.revoked else "",
            key.label,
        ]
        for key in sorted(found, key=lambda key: (key.principal, key.created))
    ]
    say(table(["id", "principal", "role", "created", "expires", "last used", "state", "label"], rows), verbatim=True)


def _role(principal: Principal | None) -> str:
    return "" if principal is None else principal.role


def _body(key: StoredKey) -> dict[str, object]:
    return dataclasses.asdict(key)
