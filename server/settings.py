"""Settings: from arguments, the environment (prefix NOISEGATE_), secret files, and one optional YAML or TOML file.

Every setting has its paragraph in docs/settings.md. There is no setting that turns a protection off; settings that
would be unsafe beyond this machine are refused with the name of what to set instead.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
    YamlConfigSettingsSource,
)

from privacy.wording import nearest
from server.cross_origin import ORIGIN
from server.roles import Role
from server.webhooks.addresses import read_network
from server.webhooks.destinations import read_destination
from server.webhooks.mail import read_mail_address, read_mail_entry

__all__ = ["PREFIX", "Settings", "SettingsRefused", "checked_secret", "load_settings", "unknown_environment"]

PREFIX = "NOISEGATE_"
SECRET_LENGTH_MIN = 32
CONNECTION_BACKLOG = 256
"""Connections that the kernel keeps for a server; this many may be accepted before any of them is looked at."""
_FILE_VARIABLE = f"{PREFIX}SETTINGS_FILE"
_OTHER_VARIABLES = frozenset({"SETTINGS_FILE", "URL", "KEY", "ADULT_CSV"})
TOKEN_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Algorithms of tokens' signatures, all with public keys: never "none", never a shared secret."""
_PLACEHOLDERS = ("changeme", "change-me", "change_me", "secret", "password", "default", "example", "placeholder")


class SettingsRefused(ValueError):
    """Settings that the server does not start with: one sentence per finding, no values."""

    def __init__(self, findings: tuple[str, ...]) -> None:
        self.findings = findings
        super().__init__("; ".join(findings))


class Settings(BaseSettings):
    """Everything an operator may choose. Frozen; read once at the start."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True, validate_default=True
    )

    home: Path = Field(Path(".noisegate"), description="Folder of the ledger, datasets, snapshots and secrets.")
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8765, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    tls_terminated: bool = Field(
        False, description="The operator's word that a proxy in front speaks TLS; required beyond loopback."
    )
    trusted_proxies: tuple[str, ...] = Field((), description="Addresses of proxies whose X-Forwarded-For is believed.")
    workers: int = Field(1, ge=1, le=64, description="Server processes; more than one needs PostgreSQL.")
    database_url: SecretStr | None = Field(
        None, description="Ledger and registry: sqlite:///file or postgresql://...; a file in the home by default."
    )
    database_url_file: Path | None = Field(None, description="File that holds database_url.")
    high_water_file: Path | None = Field(
        None, description="File of the ledger's high-water mark; best on another disk than the ledger."
    )
    key_secret: SecretStr | None = Field(
        None, description="Secret that stored API keys are hashed with; made in the home when absent."
    )
    key_secret_file: Path | None = Field(None, description="File that holds key_secret.")
    old_snapshots_minutes: int = Field(
        60, ge=5, le=525_600, description="How long a copy of data is kept that no dataset serves any more."
    )
    adjust_max_epsilon: Decimal = Field(
        Decimal(1), ge=0, le=1_000, description="Most epsilon by which one adjustment raises or lowers a limit."
    )
    adjust_max_delta: Decimal = Field(
        Decimal("0.000001"), ge=0, le=Decimal("0.01"), description="Most delta by which one adjustment does."
    )
    raises_need_two: bool = Field(
        False, description="Whether only two administrators raise a limit above those that its account had."
    )
    key_days: int = Field(365, ge=1, le=3650, description="Life of an API key when its creator names none.")

    oidc_issuer: str | None = Field(None, description="Issuer of bearer tokens that are accepted beside API keys.")
    oidc_audience: str | None = Field(None, description="What the claim aud of a token has to name.")
    oidc_keys_file: Path | None = Field(None, description="File with the issuer's public keys, a JSON Web Key Set.")
    oidc_keys_url: str | None = Field(None, description="Address of the issuer's public keys, a JSON Web Key Set.")
    oidc_keys_minutes: int = Field(60, ge=5, le=1_440, description="How long those keys are kept before a new look.")
    oidc_algorithms: tuple[str, ...] = Field(
        ("RS256", "PS256", "ES256", "EdDSA"), min_length=1, description="Signature algorithms of tokens."
    )
    oidc_leeway_seconds: int = Field(30, ge=0, le=300, description="By how much the issuer's clock may be another.")
    oidc_principal_claim: str = Field("sub", min_length=1, max_length=100, description="Claim that names the caller.")
    oidc_principal_prefix: str = Field(
        "oidc.",
        pattern=r"^([a-z][a-z0-9_.-]{0,31})?$",
        description="Beginning of such a principal's name, before that claim.",
    )
    oidc_roles_claim: str | None = Field(None, description="Claim that has to agree with the principal's role.")
    oidc_roles: dict[str, Role] = Field({}, description="Roles by the values of that claim.")

    body_max_bytes: int = Field(65_536, ge=1_024, le=65_536, description="Largest body on analysts' routes.")
    admin_body_max_bytes: int = Field(1_048_576, ge=1_024, le=16_777_216, description="Largest body of a dataset.")
    body_timeout_seconds: float = Field(10.0, gt=0, le=120, description="Time for a body to arrive.")
    requests_per_minute: int = Field(6_000, ge=1, le=1_000_000, description="Steady request rate per principal.")
    requests_burst: int = Field(600, ge=1, le=1_000_000, description="Requests per principal at once.")
    failed_keys_per_minute: int = Field(30, ge=1, le=10_000, description="Wrong API keys per address and minute.")

    open_queries_per_principal: int = Field(
        128, ge=1, le=100_000, description="Queries of a principal that wait or run, in all processes together."
    )
    open_queries_per_dataset: int = Field(
        1_024, ge=1, le=100_000, description="Queries of a dataset that wait or run, in all processes together."
    )

    connections_max: int = Field(1_000, ge=16, le=100_000, description="Open connections of one server process.")
    connections_per_address: int = Field(
        256, ge=4, le=100_000, description="Open connections of one address; trusted_proxies have no such limit."
    )
    header_timeout_seconds: float = Field(
        10.0, gt=0, le=120, description="Time for the head of a request to arrive on an open connection."
    )

    query_threads: int = Field(4, ge=1, le=256, description="Queries of this process that run at the same time.")
    query_queue: int = Field(256, ge=0, le=10_000, description="Admitted queries that may wait for a thread.")
    answer_tick_ms: float = Field(4.0, ge=1, le=60_000, description="Least tick of a plan, and grid of first moments.")
    lease_seconds: float = Field(30.0, ge=2, le=600, description="Silence after which a process counts as dead.")
    shutdown_seconds: float = Field(20.0, ge=0, le=600, description="Time for running queries at shutdown.")

    engine_workers: int = Field(2, ge=1, le=64, description="Worker processes that read private data.")
    engine_threads: int = Field(2, ge=1, le=256, description="Threads of one such worker.")
    engine_memory_mb: int = Field(2_048, ge=256, le=1_048_576, description="Memory of one such worker.")

    webhook_destinations: tuple[str, ...] = Field(
        (), description="Where webhooks may go: https://host or http://host, with a port or a path where one is meant."
    )
    webhook_networks: tuple[str, ...] = Field(
        (), description="Networks of private addresses that webhooks may reach; without them public ones only."
    )
    mail_directory: Path | None = Field(
        None, description="Folder in which notices are written as messages, for this machine's mailer to send."
    )
    mail_from: str = Field("noisegate@localhost", description="Address that such messages come from.")
    mail_addresses: tuple[str, ...] = Field(
        (), description="Whom such messages may go to: addresses, or *@ and a domain."
    )

    cors_origins: tuple[str, ...] = Field(
        (), description="Origins whose pages may read tiles of dashboards, such as https://wall.example.com."
    )

    docs_enabled: bool = Field(True, description="Serve the API documentation page at /docs.")
    metrics_open: bool = Field(False, description="Serve /metrics without a key; loopback only.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged.")
    instance: str = Field(
        "", max_length=64, pattern=r"^[A-Za-z0-9_.-]*$", description="Name of this process in the ledger."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments win over the environment, the environment over the file. No .env file is read."""
        sources: list[PydanticBaseSettingsSource] = [init_settings, env_settings]
        name = os.environ.get(_FILE_VARIABLE)
        if name:
            path = Path(name)
            if not path.is_file():
                raise SettingsRefused((f"{_FILE_VARIABLE} names a file that does not exist",))
            if path.suffix == ".toml":
                sources.append(TomlConfigSettingsSource(settings_cls, path))
            elif path.suffix in (".yaml", ".yml"):
                sources.append(YamlConfigSettingsSource(settings_cls, path))
            else:
                raise SettingsRefused((f"{_FILE_VARIABLE} must name a .yaml, .yml or .toml file",))
        return tuple(sources)

    @model_validator(mode="after")
    def _safe(self) -> Self:
        findings = []
        if not self.loopback and not self.tls_terminated:
            findings.append(
                "host is not a loopback address: keys would cross the network in clear text. Put a proxy that speaks "
                "TLS in front and set tls_terminated to true, or listen on 127.0.0.1"
            )
        if not self.loopback and self.metrics_open:
            findings.append("metrics_open is for loopback only: give the scraper an API key of an auditor")
        if self.database_url is not None and self.database_url_file is not None:
            findings.append("database_url and database_url_file are both set: set one")
        if self.key_secret is not None and self.key_secret_file is not None:
            findings.append("key_secret and key_secret_file are both set: set one")
        if self.key_secret is not None:
            findings.extend(_weak_secret(self.key_secret.get_secret_value()))
        for name in ("database_url_file", "key_secret_file", "oidc_keys_file"):
            path = getattr(self, name)
            if path is not None and not path.is_file():
                findings.append(f"{name} names a file that does not exist or cannot be read")
        findings.extend(self._token_faults())
        for entry in self.webhook_destinations:
            findings.extend(_fault(read_destination, entry, "webhook_destinations"))
        if not all(ORIGIN.match(entry) for entry in self.cors_origins):
            findings.append(
                "an entry of cors_origins is not an origin: write https://host, with a port where one is meant"
            )
        for entry in self.webhook_networks:
            findings.extend(_fault(read_network, entry, "webhook_networks"))
        findings.extend(_fault(read_mail_address, self.mail_from, "mail_from"))
        for entry in self.mail_addresses:
            findings.extend(_fault(read_mail_entry, entry, "mail_addresses"))
        if not findings and (self.database_url is not None or self.database_url_file is not None):
            findings.extend(_database_faults(self.database()))
        if not findings and self.workers > 1 and self.database().startswith("sqlite"):
            findings.append("workers above 1 need PostgreSQL: set database_url to a postgresql:// address")
        if findings:
            raise ValueError("; ".join(findings))
        return self

    def _token_faults(self) -> list[str]:
        """Why tokens of an issuer cannot be checked; empty when they can be, or when none is named."""
        given = [name for name in ("oidc_audience", "oidc_keys_file", "oidc_keys_url", "oidc_roles_claim")
                 if getattr(self, name) is not None]  # fmt: skip
        if self.oidc_issuer is None:
            return [f"{name} is set without oidc_issuer" for name in given]
        findings = []
        if not self.oidc_audience:
            findings.append("oidc_audience is not set: a token for another service would be accepted")
        if (self.oidc_keys_file is None) == (self.oidc_keys_url is None):
            findings.append("set one of oidc_keys_file and oidc_keys_url")
        if self.oidc_keys_url is not None and not _private_address(self.oidc_keys_url):
            findings.append("oidc_keys_url is not https: whoever is on the way could put keys of their own in place")
        findings += [
            f"oidc_algorithms has an algorithm that is not accepted; known ones are {', '.join(TOKEN_ALGORITHMS)}"
            for name in self.oidc_algorithms
            if name not in TOKEN_ALGORITHMS
        ][:1]
        if (self.oidc_roles_claim is None) != (not self.oidc_roles):
            findings.append("oidc_roles_claim and oidc_roles are for each other: set both or none")
        return findings

    @property
    def loopback(self) -> bool:
        """Whether the server listens on this machine only."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def datasets_directory(self) -> Path:
        """Folder of the dataset files."""
        return self.home / "datasets"

    @property
    def snapshots_directory(self) -> Path:
        """Folder of the snapshots."""
        return self.home / "snapshots"

    @property
    def secrets_directory(self) -> Path:
        """Folder of the secrets that this server made for itself."""
        return self.home / "secrets"

    def database(self) -> str:
        """Address of the database with the ledger and the registry. May hold a password: never log it."""
        if self.database_url_file is not None:
            return _secret_text(self.database_url_file, "database_url_file")
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{(self.home / 'ledger.sqlite').absolute()}"

    def high_water(self) -> Path:
        """The file that remembers how far the ledger was, so that an older copy is noticed when it is restored."""
        return self.high_water_file or self.home / "ledger.highwater"

    def keys_secret(self) -> bytes:
        """The secret that stored API keys are hashed with; made at first use when none is set.

        Errors: SettingsRefused when the file holds a short or well-known text.
        """
        if self.key_secret is not None:
            return self.key_secret.get_secret_value().encode()
        if self.key_secret_file is not None:
            text = _secret_text(self.key_secret_file, "key_secret_file")
            findings = _weak_secret(text)
            if findings:
                raise SettingsRefused(tuple(findings))
            return text.encode()
        return self.own_secret("key_secret")

    def has_keys_secret(self) -> bool:
        """Whether that secret is there, so that none would be made."""
        given = self.key_secret is not None or self.key_secret_file is not None
        return given or (self.secrets_directory / "key_secret").exists()

    def own_secret(self, name: str) -> bytes:
        """A secret of 256 bits in the home's folder of secrets, made at first use and readable by the owner only."""
        assert name.isidentifier()
        self.secrets_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.secrets_directory / name
        fresh = self.secrets_directory / f"{name}.{secrets.token_hex(8)}"
        if not path.exists():
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_hex(32))
                file.flush()
                os.fsync(file.fileno())
            try:
                # A link, not a rename: of two processes that start together the second must not replace the first's.
                os.link(fresh, path)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        text = path.read_text("ascii").strip()
        if len(text) < SECRET_LENGTH_MIN:
            raise SettingsRefused((f"the secret {name} in the home is damaged: restore it from a backup",))
        return text.encode()


def _fault(read: Callable[[str], object], entry: str, name: str) -> list[str]:
    """Why an entry of a setting cannot be used; empty when it can be."""
    try:
        read(entry)
    except ValueError as error:
        return [f"an entry of {name} is not accepted: {error}"]
    return []


def _private_address(text: str) -> bool:
    """Whether nobody on the way can change what is at the address: https, or this machine."""
    try:
        found = urlsplit(text)
        machine = found.hostname in ("127.0.0.1", "::1", "localhost")
    except ValueError:
        return False
    return bool(found.hostname) and (found.scheme == "https" or (found.scheme == "http" and machine))


def _database_faults(url: str) -> list[str]:
    """Why the text is not the address of a ledger; empty when it is one. Never repeats it: it may hold a password."""
    # Only here: most commands use the home's own file, and need not load the database's library to name it.
    from accountant.connection import parse_url

    try:
        parse_url(url)
    except ValueError as error:
        return [
            f"database_url is not accepted: {error}. Write sqlite:////absolute/file.sqlite or "
            "postgresql://user:password@host:5432/name; in a password %3A stands for :, %2F for /, %40 for @"
        ]
    return []


def checked_secret(path: Path) -> bytes:
    """The secret in a file. Errors: SettingsRefused for one that is short or well known, or for no file."""
    if not path.is_file():
        raise SettingsRefused(("the file of the new secret does not exist or cannot be read",))
    text = _secret_text(path, "the option")
    findings = _weak_secret(text)
    if findings:
        raise SettingsRefused(tuple(findings))
    return text.encode()


def _weak_secret(text: str) -> list[str]:
    """Why the text is not secret; empty when it may be one."""
    folded = text.lower()
    if any(word in folded for word in _PLACEHOLDERS):
        return [
            "key_secret is a well-known text: make one with python3 -c 'import secrets; print(secrets.token_hex(32))'"
        ]
    if len(text) < SECRET_LENGTH_MIN or len(set(text)) < 10:
        return [f"key_secret is too simple: it needs at least {SECRET_LENGTH_MIN} random characters"]
    return []


def _secret_text(path: Path, name: str) -> str:
    try:
        return path.read_text("utf-8").strip()
    except UnicodeDecodeError:
        raise SettingsRefused((f"{name} names a file that is not plain text",)) from None


def load_settings(**values: Any) -> Settings:
    """The settings; arguments win over the environment and the file.

    Errors: SettingsRefused with every finding, one sentence each, without the values.
    """
    try:
        return Settings(**values)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise SettingsRefused((f"{_FILE_VARIABLE} names a file that is not valid YAML or TOML",)) from None
    except SettingsError as error:
        # A list that is not JSON. The message names the field between quotes, and not the value.
        _, _, rest = str(error).partition('"')
        name = rest.partition('"')[0]
        raise SettingsRefused((f'{name}: is not valid JSON; a list is written as ["one", "two"]',)) from None
    except ValidationError as error:
        findings = []
        for item in error.errors(include_url=False, include_input=False):
            name = ".".join(str(part) for part in item["loc"])
            text = str(item["msg"]).removeprefix("Value error, ")
            if item["type"] == "extra_forbidden":
                near = nearest(name, tuple(Settings.model_fields))
                text = "is not a setting" + ("" if near is None else f"; did you mean {near}?")
            findings.append(f"{name}: {text}" if name else text)
        raise SettingsRefused(tuple(findings)) from None


def unknown_environment(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names that start with the prefix and are not settings: most likely misspelt. Values are not looked at."""
    known = {name.upper() for name in Settings.model_fields} | _OTHER_VARIABLES
    names = (name for name in environ if name.upper().startswith(PREFIX))
    return tuple(
        sorted(
            name
            for name in names
            if name.upper().removeprefix(PREFIX) not in known and not name.upper().startswith(f"{PREFIX}TEST_")
        )
    )
