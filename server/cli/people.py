"""`noisegate key`: who may ask."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from server.cli.failure import CommandFailed
from server.cli.once import ONCE, carry_out
from server.cli.options import Here, argument, operator, option
from server.cli.output import print_json, say, table

if TYPE_CHECKING:
    from server.store.people import Principal, StoredKey

__all__ = ["create", "list_keys", "revoke"]


def create(
    *,
    name: str = argument("NAME", "Principal: small letters, digits, _ . -"),
    role: Literal["admin", "owner", "analyst", "dashboard", "auditor"] | None = option(
        "--role", "Role of a principal that does not exist yet. Default: analyst."
    ),
    days: int | None = option("--days", "Life of the key in days. Default: 365.", min=1, max=3650),
    label: str = option("--label", "A note that is shown in lists.", ""),
    idempotency_key: str | None = ONCE,
    here: Here,
) -> None:
    """Make an API key, and its principal when there is none of that name.

    The key is shown once; the ledger keeps a salted hash of it. It works at once, also on a running server.

    \b
    examples
      noisegate key create research
      noisegate key create operations --role admin --days 30
      noisegate key create nightly --role auditor --json
    """
    from server.administration.people import GrantKey, People
    from server.roles import Role

    wanted = GrantKey(name, None if role is None else Role(role), label, days)
    with here.place().opened() as (settings, _, registry):
        people = People(registry, settings.key_days)

        def grant() -> dict[str, Any]:
            granted = people.grant_key(wanted, actor=operator())
            return {**asdict(granted.made.key), "role": granted.principal.role, "key": granted.made.text}

        asked = {"command": "key create", **asdict(wanted)}
        made = carry_out(registry, idempotency_key, asked, grant, unkept="key")
    if here.as_json:
        print_json(made)
        return
    say(f'Key {made["id"]} for "{name}" ({made["role"]}), valid until {made["expires"][:10]}:')
    if made["key"] is None:
        say("It was made when this command ran before. Its text was shown then and is not stored.")
    else:
        say(f"\n  {made['key']}\n")
        say("It is shown once and is not stored.")
    say("Take it back with:")
    say(f"  noisegate key revoke {made['id']}")
    if made["role"] in ("analyst", "owner"):
        say("An analyst also needs a budget:")
        say(f"  noisegate budget set --dataset NAME --principal {name} --epsilon 5 --delta 0.000001")


def revoke(*, key: str = argument("ID", "Identifier of the key, as `key list` shows it."), here: Here) -> None:
    """Take a key back. It stops working with the next request; revoking twice changes nothing.

    \b
    examples
      noisegate key list
      noisegate key revoke 5f0c1d2e3a4b
    """
    from server.administration.people import People
    from server.store.keys import split_key

    parts = split_key(key)
    identifier = key if parts is None else parts[0]
    with here.place().opened() as (settings, _, registry):
        revoked = People(registry, settings.key_days).revoke_key(identifier, actor=operator())
    if here.as_json:
        print_json(asdict(revoked))
    else:
        say(f'Key {revoked.id} of "{revoked.principal}" is revoked since {revoked.revoked}.')


def list_keys(*, principal: str | None = option("--principal NAME", "Of this one only."), here: Here) -> None:
    """List keys without their texts, which are not stored.

    \b
    examples
      noisegate key list
      noisegate key list --principal research --json
    """
    with here.place().opened() as (_, _, registry):
        if principal is not None and registry.principal(principal) is None:
            raise CommandFailed(
                f'there is no principal "{principal}"',
                why="No key was ever made for this name.",
                instead="See: noisegate key list",
            )
        found: list[StoredKey] = []
        after = ""
        while page := registry.keys(principal=principal, after=after, count=500):
            found += page
            after = page[-1].id
        roles = {key.principal: registry.principal(key.principal) for key in found}
    if here.as_json:
        print_json([{**asdict(key), "role": _role(roles[key.principal])} for key in found])
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
