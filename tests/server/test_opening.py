"""The secret that keys are hashed with: it is never made anew for a database that knows one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from accountant.ledger import utc_now
from server.opening import accept_secret, open_registry
from server.roles import Role
from server.settings import Settings, SettingsRefused
from server.store.registry import Registry


@pytest.fixture
def settings(sqlite_url: str, tmp_path: Path) -> Settings:
    """A home whose secret has been used."""
    made = Settings(home=tmp_path / "home", database_url=SecretStr(sqlite_url))
    open_registry(made).close()
    return made


def secret_file(settings: Settings) -> Path:
    """Where a home keeps its own."""
    return settings.secrets_directory / "key_secret"


def test_made_once_and_known(settings: Settings) -> None:
    """The first use makes it and leaves one fingerprint, from which it cannot be read."""
    again = open_registry(settings)
    acts = [(action, subject) for _, _, _, action, subject in again.acts()]
    again.close()
    assert [action for action, _ in acts] == ["key_secret_known"]
    assert acts[0][1] not in secret_file(settings).read_text()


def test_lost(settings: Settings) -> None:
    """Nothing starts, and no secret appears in its place; put back, everything is as before."""
    text = secret_file(settings).read_text()
    secret_file(settings).unlink()
    with pytest.raises(SettingsRefused, match="key_secret is lost"):
        open_registry(settings)
    assert not secret_file(settings).exists()
    secret_file(settings).write_text(text)
    open_registry(settings).close()


def test_another_one(settings: Settings) -> None:
    """A setting that names another secret is refused."""
    other = settings.model_copy(update={"key_secret": SecretStr("0123456789abcdef" * 4)})
    with pytest.raises(SettingsRefused, match="another one"):
        open_registry(other)


def test_lost_before_it_was_known(sqlite_url: str, tmp_path: Path) -> None:
    """A database of an earlier version knows no fingerprint, but it has keys: no secret is made for them."""
    settings = Settings(home=tmp_path / "home", database_url=SecretStr(sqlite_url))
    earlier = Registry(sqlite_url, secret=b"x" * 32, clock=utc_now)
    earlier.create_principal("research", Role.ANALYST, actor="test")
    earlier.create_key("research", label="", days=1, actor="test")
    earlier.close()
    with pytest.raises(SettingsRefused, match="key_secret is lost"):
        open_registry(settings)


def test_gone_for_good(settings: Settings) -> None:
    """Somebody says so with a reason, which the log of acts keeps; the one in use is not replaced by itself."""
    assert not accept_secret(settings, actor="me", reason="none")
    secret_file(settings).unlink()
    assert accept_secret(settings, actor="me", reason="the disk is gone")
    again = open_registry(settings)
    acts = [(actor, action) for _, _, actor, action, _ in again.acts()]
    again.close()
    assert ("me", "key_secret_replaced") in acts
    assert [action for _, action in acts].count("key_secret_known") == 2
