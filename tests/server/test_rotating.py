"""Another `key_secret`: all is read with the new one, keys work on for a stated time, and no step loses a home."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import LargeBinary, insert, select, text, update

from accountant import faults
from accountant.connection import open_engine
from accountant.ledger import Ledger, utc_now
from accountant.reader import LedgerReader
from server.opening import open_registry
from server.resources.kinds import ResourceKind
from server.roles import Role
from server.rotating import rehearse_rotation, rotate_secret
from server.sealing import Seal, SealBroken
from server.settings import Settings, SettingsRefused
from server.store.errors import KeyRefused, NotAlone, TooManySecrets
from server.store.registry import Registry
from server.store.rotation import SEALED, Sealed
from server.store.tables import earlier_secrets, metadata, monitors, resources, streams
from tests.accountant.test_ledger_audit import tamper


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def database(request: pytest.FixtureRequest) -> str:
    """The address of a fresh, migrated database: every test runs on both."""
    address: str = request.getfixturevalue(f"{request.param}_url")
    return address


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    """A home with a key, a monitor and a stream."""
    made = Settings(home=tmp_path / "home", database_url=SecretStr(database))
    registry = open_registry(made)
    registry.create_principal("ina", Role.ANALYST, actor="test")
    key = registry.create_key("ina", label="", days=60, actor="test")
    registry.close()
    (made.home / "key").write_text(key.text)
    engine = open_engine(database)
    with engine.connect() as connection:
        row = {"principal": "ina", "dataset": "d", "account": "b", "created": "2026-01-01T00:00:00Z", "terms": "{}"}
        for kind, name in ((ResourceKind.MONITOR, "m_1"), (ResourceKind.STREAM, "s_1"), (ResourceKind.STREAM, "s_2")):
            connection.execute(insert(resources).values(id=name, kind=kind.value, **row))
        monitor = {"id": "m_1", "sealed": b"", "left": 1, "revision": 1, "background": False}
        connection.execute(insert(monitors).values(**monitor))
        stream = {"frame": b"", "sealed": b"", "left": 1, "made": 0, "revision": 1, "shared": False}
        for name in ("s_1", "s_2"):
            connection.execute(insert(streams).values(id=name, **stream))
        for what in _of("monitors", "streams"):
            identifier = "m_1" if what.table == "monitors" else "s_1"
            sealed = Seal(made.keys_secret(), what.purpose).encrypted(b"noise", bound_to=f"{identifier}{what.suffix}")
            table = metadata.tables[what.table]
            connection.execute(update(table).where(table.c.id == identifier).values({what.column: sealed}))
        connection.commit()
    engine.dispose()
    return made


def _of(*tables: str) -> Iterator[Sealed]:
    return (one for one in SEALED if one.table in tables)


def rotate(settings: Settings, *, days: int = 7) -> None:
    """The secret is replaced."""
    rotate_secret(settings, given=None, days=days, actor="test", reason="a copy got lost")


def read(settings: Settings, secret: bytes) -> list[bytes]:
    """Everything that is encrypted, read with a secret. Errors: SealBroken."""
    engine = open_engine(settings.database())
    found = []
    with contextlib.ExitStack() as ending:
        ending.callback(engine.dispose)
        connection = ending.enter_context(engine.connect())
        for what in SEALED:
            for identifier, sealed in connection.execute(text(f"SELECT id, {what.column} FROM {what.table}")).all():
                if sealed:
                    bound = f"{identifier}{what.suffix}"
                    found.append(Seal(secret, what.purpose).decrypted(bytes(sealed), bound_to=bound))
    return found


def enters(settings: Settings, *, in_days: int = 0) -> bool:
    """Whether the key opens, after some days."""
    registry = open_registry(settings)
    registry._clock = lambda: utc_now() + datetime.timedelta(days=in_days)
    try:
        registry.verify_key((settings.home / "key").read_text())
    except KeyRefused:
        return False
    finally:
        registry.close()
    return True


def test_every_sealed_column_is_known() -> None:
    """Shows that no table has bytes that a rotation would leave behind: a new one is added to SEALED, or named here."""
    plain = {("api_keys", name) for name in ("salt", "digest", "previous_salt", "previous_digest")}
    plain |= {("synthetic_tables", "content"), ("earlier_secrets", "sealed")}
    binary = {
        (table.name, column.name)
        for table in metadata.tables.values()
        for column in table.c
        if isinstance(column.type, LargeBinary)
    }
    assert binary - plain == {(what.table, what.column) for what in SEALED}


def test_another_secret_than_the_databases_rotates_nothing(settings: Settings) -> None:
    """What it cannot read would be left behind for good: refused, and all is under the secret that it was."""
    before = settings.keys_secret()
    with contextlib.closing(open_registry(settings)) as registry:
        for wrong, after in ((before[::-1], b"1" * 64), (before, before)):
            with pytest.raises(ValueError, match="not the one that this database knows"):
                registry.rotate_secret(wrong, after, until=utc_now(), actor="test", reason="x")
    assert read(settings, before) == [b"noise"] * 3


def test_everything_is_under_the_new_one(settings: Settings) -> None:
    """All that was encrypted is read with the new secret and not with the old one, which is no file any more; the key
    opens, is hashed anew, and opens when the time is over; the audit agrees at each step."""
    before = settings.keys_secret()
    rotate(settings)
    after = settings.keys_secret()
    assert after != before
    assert read(settings, after) == [b"noise"] * 3
    with pytest.raises(SealBroken):
        read(settings, before)
    assert not [file for file in settings.secrets_directory.iterdir() if before in file.read_bytes()]
    old = settings.model_copy(update={"key_secret": SecretStr(before.decode())})
    with pytest.raises(SettingsRefused, match="after a rotation the new one"):
        open_registry(old)
    assert enters(settings)
    assert enters(settings, in_days=8)
    reader = LedgerReader(settings.database())
    assert reader.audit().findings == ()
    reader.close()
    registry = open_registry(settings)
    acts = [action for *_, action, _ in registry.acts()]
    registry.close()
    assert acts[-3:] == ["key_secret_known", "key_secret_rotated", "key_hashed_anew"]


@pytest.mark.parametrize(("days", "in_days"), [(7, 8), (0, 0)])
def test_a_key_that_was_not_used_in_time(settings: Settings, days: int, in_days: int) -> None:
    """It is refused, and the secret before is deleted from the database by the next start."""
    rotate(settings, days=days)
    assert not enters(settings, in_days=in_days)
    later = utc_now() + datetime.timedelta(days=in_days)
    registry = Registry(settings.database(), secret=settings.keys_secret(), clock=lambda: later)
    assert registry.earlier_secrets(settings.keys_secret()) == ()
    registry.close()
    engine = open_engine(settings.database())
    with engine.connect() as connection:
        assert connection.execute(select(earlier_secrets)).all() == []
    engine.dispose()


def test_a_time_that_was_changed_by_hand(settings: Settings) -> None:
    """What the database says of an earlier secret is authenticated: its time cannot be made longer."""
    rotate(settings)
    tamper(settings.database(), "UPDATE earlier_secrets SET until = '2999-01-01T00:00:00Z'")
    assert not enters(settings)


@pytest.mark.parametrize("point", ["made", "before_commit", "after_commit", "replaced"])
@pytest.mark.sparse(1)
def test_killed_between_two_steps(settings: Settings, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The home opens with the secret that its database knows, everything is read, and the rotation can be run again."""

    def kill(reached: str) -> None:
        if reached == f"rotate_secret.{point}":
            raise Killed

    monkeypatch.setattr(faults, "_handler", kill)
    with pytest.raises(Killed):
        rotate(settings)
    monkeypatch.undo()
    assert enters(settings)
    assert read(settings, settings.keys_secret()) == [b"noise"] * 3
    rotate(settings)
    assert enters(settings)
    assert read(settings, settings.keys_secret()) == [b"noise"] * 3


def test_not_beside_a_server(settings: Settings) -> None:
    """A process that has the ledger open would go on with the secret before: nothing is done."""
    before = settings.keys_secret()
    with Ledger(settings.database(), instance="server-1"), pytest.raises(NotAlone, match="server-1"):
        rotate(settings)
    assert settings.keys_secret() == before
    assert enters(settings)


def test_three_at_most(settings: Settings) -> None:
    """Keys of each of three secrets before are accepted; a fourth rotation has to wait."""
    for _ in range(3):
        rotate(settings)
    with pytest.raises(TooManySecrets):
        rotate(settings)
    assert enters(settings)


def test_where_the_secret_is_a_setting(settings: Settings, tmp_path: Path) -> None:
    """The operator names the new one in a file; the setting of before is refused afterwards, the new one opens."""
    given = tmp_path / "new"
    given.write_text("0123456789abcdefghijklmnopqrstuv")
    file = tmp_path / "old"
    file.write_bytes(settings.keys_secret())
    by_file = settings.model_copy(update={"key_secret_file": file})
    with pytest.raises(SettingsRefused, match="give a file"):
        rotate(by_file)
    done = rotate_secret(by_file, given=given, days=7, actor="test", reason="x")
    assert done.by_setting
    with pytest.raises(SettingsRefused, match="another one"):
        open_registry(by_file)
    assert enters(settings.model_copy(update={"key_secret_file": given}))


def test_a_rehearsal_changes_nothing(settings: Settings) -> None:
    """It says what it would do, and the home is as it was."""
    before = settings.keys_secret()
    done, ok = rehearse_rotation(settings, days=7)
    assert (done.sealed, done.unreadable, ok) == (3, 0, True)
    assert settings.keys_secret() == before
    assert read(settings, before) == [b"noise"] * 3
    assert sorted(path.name for path in settings.secrets_directory.iterdir()) == ["key_secret"]
