"""Acts at most once under an idempotency key: claimed before the act, its reply kept after it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from server.administration.refusal import ActRefused, KeyUsed, OutcomeUnknown
from server.store.registry import Registry
from server.store.replies import ClaimedAlready, OtherRequest, Reply

__all__ = ["KEY_FORM", "once"]

KEY_FORM = re.compile(r"[\x21-\x7e]{1,200}\Z")
"""An idempotency key: 1 to 200 visible ASCII characters."""

Done = TypeVar("Done")


def once(
    registry: Registry,
    *,
    actor: str,
    key: str,
    request_hash: str,
    act: Callable[[], Done],
    kept: Callable[[Done], Reply],
) -> Done | Reply:
    """Carries an act out, or returns the reply that was kept when the same request was carried out under the same key.

    `kept` makes the reply that is stored. A refusal gives the key back, because nothing was done. Any other failure
    leaves the claim: nobody knows whether the act was carried out. Raises ActRefused: KeyUsed, OutcomeUnknown.
    """
    try:
        earlier = registry.claim_reply(actor, key, request_hash=request_hash)
    except OtherRequest:
        raise ActRefused(KeyUsed()) from None
    except ClaimedAlready:
        raise ActRefused(OutcomeUnknown()) from None
    if earlier is not None:
        return earlier
    try:
        done = act()
    except ActRefused:
        registry.drop_reply(actor, key)
        raise
    registry.keep_reply(actor, key, kept(done))
    return done
