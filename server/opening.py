"""Opening the registry of an installation with the secret that its keys were hashed with, and with no other one."""

from __future__ import annotations

import contextlib

from accountant.ledger import utc_now
from server.rotating import follow_rotation
from server.settings import Settings, SettingsRefused
from server.store.known_secret import fingerprint, secret_is_known
from server.store.registry import Registry

__all__ = ["accept_secret", "open_registry"]

_LOST = (
    "key_secret is lost: API keys were hashed with it, and what monitors, streams, batches and webhooks keep is "
    "encrypted with it. Put secrets/key_secret back from a backup, or set key_secret to what it was; where it is gone "
    'for good: noisegate key accept-secret --reason "why"'
)
_OTHER = (
    "key_secret is another one than the API keys of this database were hashed with: all of them would be refused. Put "
    "the right one back, after a rotation the new one; where it is gone for good: "
    'noisegate key accept-secret --reason "why"'
)


def open_registry(settings: Settings, *, serving: bool = False) -> Registry:
    """The registry. The first use makes the secret, where none is set, and leaves its fingerprint in the database.

    `serving`: for a process that has announced itself in the ledger and stays; it waits for a rotation under way.
    Errors: SettingsRefused when the secret is lost or another one; those of the database.
    """
    url = settings.database()
    if not settings.has_keys_secret() and secret_is_known(url):
        raise SettingsRefused((_LOST,))
    secret = settings.keys_secret()
    registry = Registry(url, secret=secret, clock=utc_now, high_water=settings.high_water())
    try:
        known = registry.settled_secret() if serving else registry.known_secret()
        if known is not None and known != fingerprint(secret):
            if not follow_rotation(settings, known):
                raise SettingsRefused((_OTHER,))
            registry.close()
            return open_registry(settings, serving=serving)
        registry.accept_earlier(registry.earlier_secrets(secret))
        if known is None and registry.schema_revision() is not None:
            registry.know_secret(secret, actor="server")
    except BaseException:
        registry.close()
        raise
    return registry


def accept_secret(settings: Settings, *, actor: str, reason: str) -> bool:
    """Takes the secret that is set, or a new one, in place of one that is gone; False when it is the one in use.

    Keys that were hashed with the earlier one are refused from now on, and what was encrypted with it stays unreadable.
    Errors: SettingsRefused; those of the database.
    """
    secret = settings.keys_secret()
    mark = settings.high_water()
    with contextlib.closing(Registry(settings.database(), secret=secret, clock=utc_now, high_water=mark)) as registry:
        if registry.known_secret() == fingerprint(secret):
            return False
        registry.know_secret(secret, actor=actor, reason=reason)
        return True
