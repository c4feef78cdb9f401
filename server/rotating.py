"""`noisegate key rotate-secret`: another `key_secret`, so that whoever got the one before has nothing any more.

    1  the new secret is in secrets/key_secret.next      the one before is in use
    2  one transaction encrypts everything anew          from its commit on the new one is in use
    3  key_secret.next takes the name key_secret         the file of the one before is gone

A process that is killed before the commit leaves a home of the secret before; after it, the next start finds in the
database the fingerprint of the secret in key_secret.next, and does step 3. Where `key_secret` is set, and is no file of
the home, the operator names a file with the new one, and changes the setting after step 2.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from accountant import faults
from accountant.ledger import utc_now
from migrations.copies import copy_out
from migrations.upgrade import require_newest
from server.files import write_whole
from server.settings import Settings, SettingsRefused, checked_secret
from server.store.copied import audit_copy
from server.store.known_secret import fingerprint
from server.store.registry import Registry
from server.store.transactions import iso

__all__ = ["DAYS_MAX", "Rotated", "follow_rotation", "rehearse_rotation", "rotate_secret"]

DAYS_MAX = 90
"""Longest time for which keys are accepted under the secret before."""

_NEXT = "key_secret.next"


@dataclass(frozen=True, slots=True)
class Rotated:
    """What was encrypted anew, what could not be read and was left, and until when earlier keys are accepted.

    `by_setting`: the setting `key_secret` has to be changed before anything starts.
    """

    sealed: int
    unreadable: int
    until: str
    by_setting: bool


def rotate_secret(settings: Settings, *, given: Path | None, days: int, actor: str, reason: str) -> Rotated:
    """Rotates the secret of a home that nobody serves.

    `given` is a file with the new secret, for homes whose secret is a setting. Errors: SettingsRefused, NotAlone,
    TooManySecrets; those of the database; OSError.
    """
    own = settings.key_secret is None and settings.key_secret_file is None
    if own == (given is not None):
        raise SettingsRefused(
            (
                "the secret is a file of this home, which the command replaces: give no file"
                if own
                else "key_secret is a setting: give a file with the new one, which you set afterwards",
            )
        )
    before = settings.keys_secret()
    after = checked_secret(given) if given is not None else _next_secret(settings)
    faults.reach("rotate_secret.made")
    until = utc_now() + datetime.timedelta(days=days)
    mark = settings.high_water()
    with contextlib.closing(Registry(settings.database(), secret=before, clock=utc_now, high_water=mark)) as registry:
        require_newest(registry.schema_revision())
        counted = registry.rotate_secret(before, after, until=until, actor=actor, reason=reason)
    if own:
        _take_over(settings)
    return Rotated(counted.sealed, counted.unreadable, iso(until), by_setting=not own)


def rehearse_rotation(settings: Settings, *, days: int) -> tuple[Rotated, bool]:
    """The same on a copy, under a secret that is thrown away; and whether the copy agrees with itself afterwards.

    Errors: as `rotate_secret`, and CopyFault.
    """
    before, after = settings.keys_secret(), secrets.token_hex(32).encode()
    until = utc_now() + datetime.timedelta(days=days)
    with tempfile.TemporaryDirectory(prefix=".rehearsal-", dir=settings.home) as folder:
        copy = Path(folder) / "ledger.sqlite"
        copy_out(settings.database(), copy)
        url = f"sqlite:///{copy.absolute()}"
        with contextlib.closing(Registry(url, secret=before, clock=utc_now)) as registry:
            require_newest(registry.schema_revision())
            counted = registry.rotate_secret(
                before, after, until=until, actor="rehearsal", reason="rehearsal", alone=False
            )
            readable = [one.secret for one in registry.earlier_secrets(after)]
        ok = audit_copy(copy).ok and (days == 0 or before in readable)
    own = settings.key_secret is None and settings.key_secret_file is None
    return Rotated(counted.sealed, counted.unreadable, iso(until), by_setting=not own), ok


def follow_rotation(settings: Settings, known: str | None) -> bool:
    """Does step 3 where a rotation was interrupted after its commit; whether it did. Errors: OSError."""
    if settings.key_secret is not None or settings.key_secret_file is not None or known is None:
        return False
    try:
        following = (settings.secrets_directory / _NEXT).read_bytes().strip()
    except FileNotFoundError:
        return False
    if fingerprint(following) != known:
        return False
    _take_over(settings)
    return True


def _next_secret(settings: Settings) -> bytes:
    """The secret to come, durable in its file; one that an interrupted rotation left is as good as any."""
    path = settings.secrets_directory / _NEXT
    with contextlib.suppress(FileNotFoundError):
        text = path.read_text("ascii").strip()
        if len(text) == 2 * 32:
            return text.encode()
    made = secrets.token_hex(32)
    write_whole(path, made, mode=0o600)
    _flush(settings.secrets_directory)  # before anything is encrypted with it
    return made.encode()


def _take_over(settings: Settings) -> None:
    folder = settings.secrets_directory
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        os.replace(folder / _NEXT, folder / "key_secret")
    faults.reach("rotate_secret.replaced")
    _flush(folder)


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
