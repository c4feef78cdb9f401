"""Settings: sources, refusals of what is unsafe, secrets, and their documentation."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from server.settings import PREFIX, Settings, SettingsRefused, load_settings, unknown_environment
from server.web_server import uvicorn_options

DOCS = Path(__file__).resolve().parents[2] / "docs"
GOOD = "9f2c1d7a4b8e60355af1c2d3e4b5a697"


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting from the machine."""
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)


def test_defaults_are_for_this_machine_only() -> None:
    """Without any setting the server listens on loopback, keeps everything in its home, and opens nothing."""
    settings = load_settings()
    assert (settings.host, settings.loopback, settings.metrics_open) == ("127.0.0.1", True, False)
    assert settings.database().startswith("sqlite:////")
    assert settings.database().endswith("/.noisegate/ledger.sqlite")


def test_arguments_win_over_environment_over_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The three sources in their order, for YAML and TOML."""
    for name, text in (
        ("s.yaml", "port: 1\nkey_days: 1\nquery_threads: 1\n"),
        ("s.toml", "port=1\nkey_days=1\nquery_threads=1\n"),
    ):
        (tmp_path / name).write_text(text)
        monkeypatch.setenv("NOISEGATE_SETTINGS_FILE", str(tmp_path / name))
        monkeypatch.setenv("NOISEGATE_KEY_DAYS", "2")
        monkeypatch.setenv("NOISEGATE_QUERY_THREADS", "2")
        settings = load_settings(query_threads=3)
        assert (settings.port, settings.key_days, settings.query_threads) == (1, 2, 3)


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"host": "0.0.0.0"}, "TLS"),
        ({"host": "::"}, "TLS"),
        ({"host": "192.168.1.5"}, "TLS"),
        ({"host": "example.org"}, "TLS"),
        ({"host": "0.0.0.0", "tls_terminated": True, "metrics_open": True}, "loopback only"),
        ({"workers": 2}, "PostgreSQL"),
        ({"key_secret": "changeme" * 8}, "well-known"),
        ({"key_secret": "x" * 64}, "too simple"),
        ({"key_secret": "short"}, "too simple"),
        ({"key_secret_file": Path("/nonexistent")}, "does not exist"),
        ({"database_url_file": Path("/nonexistent")}, "does not exist"),
        ({"prot": 1}, "did you mean port"),
        ({"port": 70_000}, "port"),
        ({"port": "eighty"}, "port"),
        ({"query_threads": 0}, "query_threads"),
        ({"body_max_bytes": 10_000_000}, "body_max_bytes"),
        ({"log_level": "trace"}, "log_level"),
        ({"instance": "a b"}, "instance"),
        ({"answer_tick_ms": 0}, "answer_tick_ms"),
    ],
)
def test_unsafe_or_wrong_settings_are_refused(values: dict[str, object], word: str) -> None:
    """One sentence that names the setting or the way out."""
    with pytest.raises(SettingsRefused, match=re.escape(word)):
        load_settings(**values)


def test_a_list_that_is_not_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is named, and how a list is written; the value is not repeated."""
    monkeypatch.setenv("NOISEGATE_MAIL_ADDRESSES", "zebedee@example.com")
    with pytest.raises(SettingsRefused, match="mail_addresses: is not valid JSON") as caught:
        load_settings()
    assert "zebedee" not in str(caught.value)


def test_refusals_name_no_value() -> None:
    """A wrong secret or address is not repeated in the refusal."""
    with pytest.raises(SettingsRefused) as caught:
        load_settings(key_secret="changeme-Zebedee-7731-changeme-00", port="Zebedee-7731")
    assert "Zebedee" not in str(caught.value)
    assert GOOD not in repr(load_settings(key_secret=GOOD, database_url=f"postgresql://u:{GOOD}@h/d"))


def test_beyond_loopback_with_a_proxy(tmp_path: Path) -> None:
    """With a proxy that speaks TLS the server may listen anywhere; several workers need PostgreSQL."""
    settings = load_settings(
        home=tmp_path, host="0.0.0.0", tls_terminated=True, workers=3, database_url="postgresql://h/d"
    )
    assert uvicorn_options(settings)["workers"] == 3
    assert uvicorn_options(settings)["access_log"] is False
    assert uvicorn_options(settings)["proxy_headers"] is False


def test_secrets_come_from_files(tmp_path: Path) -> None:
    """Addresses and secrets may be in files; both ways at once are refused."""
    (tmp_path / "url").write_text("postgresql://h/d\n")
    (tmp_path / "key").write_text(GOOD + "\n")
    (tmp_path / "weak").write_text("weak")
    settings = load_settings(database_url_file=tmp_path / "url", key_secret_file=tmp_path / "key")
    assert (settings.database(), settings.keys_secret()) == ("postgresql://h/d", GOOD.encode())
    with pytest.raises(SettingsRefused, match="both set"):
        load_settings(key_secret=GOOD, key_secret_file=tmp_path / "key")
    with pytest.raises(SettingsRefused, match="too simple"):
        load_settings(key_secret_file=tmp_path / "weak").keys_secret()


def test_an_own_secret_is_made_once_and_kept_private(tmp_path: Path) -> None:
    """256 random bits, readable by the owner only, the same at every start; a damaged one is refused."""
    settings = load_settings(home=tmp_path)
    secret = settings.keys_secret()
    assert len(secret) == 64
    assert load_settings(home=tmp_path).keys_secret() == secret
    assert settings.own_secret("draw_key") != secret
    file = tmp_path / "secrets" / "key_secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in file.parent.iterdir()) == ["draw_key", "key_secret"]
    file.write_text("")
    with pytest.raises(SettingsRefused, match="damaged"):
        settings.keys_secret()


@pytest.mark.parametrize("name", ["absent.yaml", "settings.ini"])
def test_a_wrong_settings_file_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """A file that does not exist, or of another kind, is not ignored."""
    (tmp_path / "settings.ini").write_text("")
    monkeypatch.setenv("NOISEGATE_SETTINGS_FILE", str(tmp_path / name))
    with pytest.raises(SettingsRefused, match="SETTINGS_FILE"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "content"), [("bad.yaml", b"host: [\n"), ("bad.toml", b"host"), ("bad.yml", b"\xff\xfe")]
)
def test_a_settings_file_that_cannot_be_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: bytes
) -> None:
    """Broken YAML, broken TOML and other encodings are one clear finding."""
    (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("NOISEGATE_SETTINGS_FILE", str(tmp_path / name))
    with pytest.raises(SettingsRefused, match="SETTINGS_FILE"):
        load_settings()


def test_a_secret_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are one clear finding, without them."""
    (tmp_path / "key").write_bytes(b"\xff" * 40)
    with pytest.raises(SettingsRefused, match="not plain text"):
        load_settings(home=tmp_path, key_secret_file=tmp_path / "key").keys_secret()


def test_unknown_names_are_found() -> None:
    """Misspelt variables are named; the program's other variables and everybody else's are not."""
    environ = {"NOISEGATE_PROT": "1", "NOISEGATE_PORT": "1", "NOISEGATE_TEST_X": "1", "NOISEGATE_URL": "", "HOME": "/"}
    assert unknown_environment(environ) == ("NOISEGATE_PROT",)


def test_every_setting_has_its_paragraph() -> None:
    """docs/settings.md has exactly one section per setting, with its environment variable and default."""
    page = (DOCS / "settings.md").read_text("utf-8")
    sections = re.findall(r"^### `(\w+)`$", page, re.MULTILINE)
    assert sections == list(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        section = page.split(f"### `{name}`\n")[1].split("\n### ")[0]
        assert f"`{PREFIX}{name.upper()}`" in section
        default = "none" if field.default is None else str(field.default).lower()
        shown = re.search(r"Default: `([^`]*)`", section)
        assert shown is not None, name
        assert shown.group(1).lower() == (default if field.default not in ((), "") else "empty"), name
        assert len(section.split()) > 20, f"{name} needs a paragraph"
