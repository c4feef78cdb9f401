"""The registry on SQLite and PostgreSQL: people, keys, dataset versions, and the log of acts that only grows."""

from __future__ import annotations

import datetime
import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from accountant.connection import open_engine
from server.store.api_keys import digest_of, make_key, split_key
from server.store.errors import KeyRefused, LastAdministrator, NameTaken, NotThere, VersionConflict
from server.store.registry import Registry
from tests.clocks import Clock
from tests.server.conftest import NOW, SECRET


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database(request: pytest.FixtureRequest) -> str:
    """The address of a fresh, migrated database: every test runs on both."""
    address: str = request.getfixturevalue(f"{request.param}_url")
    return address


def test_keys_have_a_form_that_tells_them_from_junk() -> None:
    """A made key splits into what it was made of; any changed character breaks the checksum."""
    identifier, secret, whole = make_key()
    assert len(whole) == 4 + 12 + 1 + 43 + 6
    assert split_key(whole) == (identifier, secret)
    for place in range(4, len(whole)):
        if whole[place] != "_":
            other = "1" if whole[place] == "0" else "0"
            assert split_key(whole[:place] + other + whole[place + 1 :]) is None
    for junk in ("", "ngk_", whole + "0", whole[:-1], whole.upper(), " " + whole, whole + "\n"):
        assert split_key(junk) is None


def test_keys_do_not_repeat() -> None:
    """A thousand keys are different, in identifier and in secret."""
    made = [make_key() for _ in range(1000)]
    assert len({key[0] for key in made}) == len({key[1] for key in made}) == 1000


def test_the_database_does_not_hold_the_secret(registry: Registry, database: str) -> None:
    """Neither the text nor its unsalted hash is stored; equal secrets have different digests under different salts."""
    registry.create_principal("ina", "analyst", actor="test")
    made = registry.create_key("ina", label="x", days=1, actor="test")
    secret = made.text.split("_")[2][:43]
    engine = open_engine(database)
    with engine.connect() as connection:
        dump = repr([tuple(row) for row in connection.execute(text("SELECT * FROM api_keys"))])
    engine.dispose()
    assert secret not in dump
    assert made.text not in repr(made)
    assert digest_of(secret, salt=b"1" * 16, pepper=SECRET) != digest_of(secret, salt=b"2" * 16, pepper=SECRET)
    assert digest_of(secret, salt=b"1" * 16, pepper=SECRET) != digest_of(secret, salt=b"1" * 16, pepper=SECRET[::-1])


def test_a_key_lives_until_it_expires_or_is_revoked(registry: Registry, clock: Clock[datetime.datetime]) -> None:
    """It identifies its principal, and is refused with its reason from the moment on that it ends."""
    registry.create_principal("ina", "analyst", actor="test")
    made = registry.create_key("ina", label="x", days=1, actor="test")
    principal, key = registry.verify_key(made.text)
    assert (principal.name, principal.role, key.id) == ("ina", "analyst", made.key.id)
    clock.now = NOW + datetime.timedelta(days=1) - datetime.timedelta(seconds=1)
    registry.verify_key(made.text)
    clock.now = NOW + datetime.timedelta(days=1)
    with pytest.raises(KeyRefused, match="expired"):
        registry.verify_key(made.text)
    other = registry.create_key("ina", label="y", days=1, actor="test")
    registry.revoke_key(other.key.id, actor="test")
    with pytest.raises(KeyRefused, match="revoked"):
        registry.verify_key(other.text)


def test_a_guess_learns_nothing(registry: Registry) -> None:
    """A well-formed key with an unknown identifier, or with a known one and another secret, is just invalid."""
    registry.create_principal("ina", "analyst", actor="test")
    made = registry.create_key("ina", label="x", days=1, actor="test")
    registry.revoke_key(made.key.id, actor="test")
    import zlib

    from server.store.api_keys import _base62

    body = f"ngk_{made.key.id}_{'A' * 43}"
    guess = body + _base62(zlib.crc32(body.encode()), length=6)
    assert split_key(guess) is not None
    for wrong in (guess, make_key()[2], "ngk_nonsense"):
        with pytest.raises(KeyRefused, match="invalid"):
            registry.verify_key(wrong)


def test_another_secret_of_the_server_accepts_no_key(
    registry: Registry, database: str, clock: Clock[datetime.datetime]
) -> None:
    """A copy of the database without the server's secret is of no use."""
    registry.create_principal("ina", "analyst", actor="test")
    made = registry.create_key("ina", label="x", days=1, actor="test")
    stranger = Registry(database, secret=SECRET[::-1], clock=clock)
    with pytest.raises(KeyRefused, match="invalid"):
        stranger.verify_key(made.text)
    stranger.close()


def test_the_last_use_is_a_day(registry: Registry, clock: Clock[datetime.datetime]) -> None:
    """The day of last use is written once a day, and no hour is kept."""
    registry.create_principal("ina", "analyst", actor="test")
    made = registry.create_key("ina", label="x", days=9, actor="test")
    assert registry.key(made.key.id).last_used_day is None  # type: ignore[union-attr]
    registry.verify_key(made.text)
    assert registry.key(made.key.id).last_used_day == "2026-03-01"  # type: ignore[union-attr]
    clock.now += datetime.timedelta(days=2)
    registry.verify_key(made.text)
    assert registry.key(made.key.id).last_used_day == "2026-03-03"  # type: ignore[union-attr]


def test_names_and_roles_are_checked(registry: Registry) -> None:
    """Bad names, roles, labels and lives are ValueErrors; taken names and absent principals have their own."""
    for name, role in (("Ina", "analyst"), ("", "analyst"), ("ina", "root"), ("x" * 64, "analyst"), ("a\n", "analyst")):
        with pytest.raises(ValueError, match=r"name|role"):
            registry.create_principal(name, role, actor="test")
    registry.create_principal("ina", "analyst", actor="test")
    with pytest.raises(NameTaken):
        registry.create_principal("ina", "admin", actor="test")
    for label, days in (("x" * 101, 1), ("a\n", 1), ("x", 0), ("x", 3651)):
        with pytest.raises(ValueError, match=r"label|lives"):
            registry.create_key("ina", label=label, days=days, actor="test")
    with pytest.raises(NotThere):
        registry.create_key("absent", label="x", days=1, actor="test")
    with pytest.raises(NotThere):
        registry.revoke_key("absent", actor="test")


def test_a_principal_has_at_most_a_hundred_keys(registry: Registry) -> None:
    """The hundred-and-first key is refused until one is revoked."""
    registry.create_principal("ina", "analyst", actor="test")
    made = [registry.create_key("ina", label="x", days=1, actor="test") for _ in range(100)]
    with pytest.raises(ValueError, match="at most"):
        registry.create_key("ina", label="x", days=1, actor="test")
    registry.revoke_key(made[0].key.id, actor="test")
    registry.create_key("ina", label="x", days=1, actor="test")


def test_somebody_can_always_administrate(registry: Registry) -> None:
    """The last enabled administrator keeps role and access; a disabled one does not count."""
    registry.create_principal("ann", "admin", actor="test")
    registry.create_principal("bob", "admin", actor="test")
    registry.change_principal("bob", disabled=True, actor="test")
    for change in ({"disabled": True}, {"role": "owner"}):
        with pytest.raises(LastAdministrator):
            registry.change_principal("ann", actor="test", **change)  # type: ignore[arg-type]
    registry.change_principal("bob", disabled=False, actor="test")
    assert registry.change_principal("ann", role="owner", actor="test").role == "owner"


def test_two_administrators_cannot_disable_each_other(registry: Registry) -> None:
    """Of two simultaneous changes one is refused: an administrator is left."""
    registry.create_principal("ann", "admin", actor="test")
    registry.create_principal("bob", "admin", actor="test")
    outcomes: list[str] = []

    def disable(name: str) -> None:
        try:
            registry.change_principal(name, disabled=True, actor="test")
            outcomes.append("done")
        except LastAdministrator:
            outcomes.append("refused")

    threads = [threading.Thread(target=disable, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done", "refused"]


def register(
    registry: Registry, *, policy: int = 1, data: str = "d1", snapshot: str = "s1", **document: object
) -> object:
    """One version of the dataset "clinic"."""
    return registry.register_dataset(
        name="clinic", policy_version=policy, data_version=data, snapshot=snapshot, document=document, actor="test"
    )


def test_the_newest_registered_version_is_served(registry: Registry) -> None:
    """Each new version replaces the one before; an old one can come back; all are kept."""
    register(registry, data="d1")
    register(registry, data="d2")
    assert [version.data_version for version in registry.datasets()] == ["d2"]
    register(registry, data="d1")
    assert [version.data_version for version in registry.datasets()] == ["d1"]
    assert [(version.data_version, version.current) for version in registry.dataset_versions("clinic")] == [
        ("d1", True),
        ("d2", False),
    ]


def test_a_version_never_changes(registry: Registry) -> None:
    """The same version with other contents or another snapshot is a conflict; unchanged it is no new act."""
    register(registry, unit="patient")
    acts = len(registry.acts())
    assert register(registry, unit="patient") == registry.datasets()[0]
    assert len(registry.acts()) == acts
    with pytest.raises(VersionConflict):
        register(registry, unit="visit")
    with pytest.raises(VersionConflict):
        register(registry, unit="patient", snapshot="s2")


def test_a_document_keeps_its_order(registry: Registry) -> None:
    """Names come back as their owner wrote them; the same ones in another order are the same version."""
    register(registry, tables={"visits": 1, "people": 2}, dataset="clinic")
    (stored,) = registry.datasets()
    assert list(stored.document) == ["tables", "dataset"]
    assert list(stored.document["tables"]) == ["visits", "people"]
    assert register(registry, dataset="clinic", tables={"people": 2, "visits": 1}) == stored


def test_a_removed_dataset_keeps_its_versions(registry: Registry) -> None:
    """It is not served any more, its versions stay, and it can be registered again."""
    register(registry)
    registry.remove_dataset("clinic", actor="test")
    assert registry.datasets() == ()
    assert len(registry.dataset_versions("clinic")) == 1
    with pytest.raises(NotThere):
        registry.remove_dataset("clinic", actor="test")
    register(registry)
    assert len(registry.datasets()) == 1


def test_every_act_is_in_the_log_with_its_actor(registry: Registry) -> None:
    """Creating, changing, revoking and registering leave one line each, in order."""
    registry.create_principal("ina", "analyst", actor="setup")
    made = registry.create_key("ina", label="x", days=1, actor="admin")
    registry.revoke_key(made.key.id, actor="admin")
    registry.change_principal("ina", role="owner", disabled=True, actor="admin")
    register(registry)
    assert [(act[2], act[3], act[4]) for act in registry.acts()] == [
        ("setup", "principal_created", "ina"),
        ("admin", "key_created", f"ina/{made.key.id}"),
        ("admin", "key_revoked", f"ina/{made.key.id}"),
        ("admin", "role_owner", "ina"),
        ("admin", "principal_disabled", "ina"),
        ("test", "dataset_registered", "clinic/1"),
    ]


@pytest.mark.parametrize("change", ["UPDATE acts SET actor = 'x'", "DELETE FROM acts"])
def test_the_log_of_acts_only_grows(registry: Registry, database: str, change: str) -> None:
    """The database itself refuses to change or delete a line."""
    registry.create_principal("ina", "analyst", actor="test")
    engine = open_engine(database)
    with engine.connect() as connection, pytest.raises(DBAPIError, match="kept"):
        connection.execute(text(change))
    engine.dispose()
    assert len(registry.acts()) == 1


def test_the_check_of_writability_leaves_nothing(registry: Registry) -> None:
    """Readiness writes and takes back."""
    registry.check_writable()
    assert registry.acts() == ()
    assert registry.schema_revision() is not None
