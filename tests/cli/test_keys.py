"""`noisegate key`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from accountant.ledger import utc_now
from server.home import Home
from server.store.errors import KeyRefused
from server.store.registry import Registry
from tests.cli.support import cli, misused, refused


def registry_of(home: Path) -> Registry:
    settings = Home(home).settings()
    return Registry(settings.database(), secret=settings.keys_secret(), clock=utc_now)


def test_create_makes_principal_and_working_key(empty_home: Path) -> None:
    """A key of a new principal works, has its role and its life, and is printed once."""
    ran = cli("key", "create", "research", "--role", "auditor", "--days", "7", "--json", "--home", str(empty_home))
    assert ran.code == 0
    registry = registry_of(empty_home)
    try:
        principal, key = registry.verify_key(ran.json["key"])
        assert (principal.name, principal.role, key.id) == ("research", "auditor", ran.json["id"])
    finally:
        registry.close()
    listed = cli("key", "list", "--home", str(empty_home))
    assert ran.json["id"] in listed.out
    assert ran.json["key"] not in listed.out


def test_create_again_adds_a_key_of_the_same_role(empty_home: Path) -> None:
    """A second key needs no role, and the default role of a new principal is analyst."""
    first = cli("key", "create", "research", "--json", "--home", str(empty_home)).json
    second = cli("key", "create", "research", "--json", "--home", str(empty_home)).json
    assert first["role"] == second["role"] == "analyst"
    assert first["id"] != second["id"]


def test_text_for_people_holds_the_key_once(empty_home: Path) -> None:
    """Without --json the key is on a line of its own."""
    ran = cli("key", "create", "research", "--home", str(empty_home))
    assert len(re.findall(r"^  ngk_\w+$", ran.out, re.MULTILINE)) == 1


def test_revoked_key_stops_working(empty_home: Path) -> None:
    """Revoking by identifier or by the whole text; twice changes nothing."""
    made = cli("key", "create", "research", "--json", "--home", str(empty_home)).json
    assert cli("key", "revoke", made["key"], "--home", str(empty_home)).code == 0
    again = cli("key", "revoke", made["id"], "--json", "--home", str(empty_home))
    assert again.code == 0
    assert again.json["revoked"] is not None
    registry = registry_of(empty_home)
    try:
        with pytest.raises(KeyRefused, match="revoked"):
            registry.verify_key(made["key"])
    finally:
        registry.close()


@pytest.mark.parametrize("name", ["Ana", "", "a b", "x" * 80, "research;drop", "-"])
@pytest.mark.sparse(3)
def test_bad_names_are_refused(empty_home: Path, name: str) -> None:
    """A name that cannot be a principal's is wrong usage, and nothing is made."""
    refused(cli("key", "create", "--home", str(empty_home), "--", name), code=2)
    assert cli("key", "list", "--json", "--home", str(empty_home)).json == []


@pytest.mark.sparse(3)
@pytest.mark.parametrize("days", ["0", "-1", "4000", "nan", "1e3", "soon"])
def test_bad_days_are_refused(empty_home: Path, days: str) -> None:
    """The life of a key is a whole number of days, from 1 to 3650."""
    misused(cli("key", "create", "research", "--days", days, "--home", str(empty_home)), "--days")


def test_unknown_things_are_named(empty_home: Path) -> None:
    """Unknown key, principal and role each get one message; another role than the stored one too."""
    at = ("--home", str(empty_home))
    refused(cli("key", "revoke", "nothing", *at), 'no key "nothing"')
    refused(cli("key", "list", "--principal", "nobody", *at), 'no principal "nobody"')
    misused(cli("key", "create", "research", "--role", "king", *at), "--role", "analyst")
    assert cli("key", "create", "research", *at).code == 0
    refused(cli("key", "create", "research", "--role", "admin", *at), '"research" is analyst, not admin')


def test_wrong_key_text_is_not_repeated(empty_home: Path) -> None:
    """A secret that was pasted with a typo does not come back in the message."""
    ran = cli("key", "revoke", "ngk_0123456789ab_SECRETSECRET", "--home", str(empty_home))
    refused(ran, "there is no such key")
    assert "SECRET" not in ran.err


def test_without_a_ledger_the_way_out_is_told(tmp_path: Path) -> None:
    """A home that was never set up is not created by a look into it."""
    ran = cli("key", "list", "--home", str(tmp_path / "none"))
    refused(ran, "there is no ledger", " up", "--home DIR")
    assert not (tmp_path / "none").exists()
