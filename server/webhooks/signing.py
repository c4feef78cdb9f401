"""Signatures of what is sent, by the convention of standardwebhooks.com, which libraries of many languages check.

Signed with HMAC-SHA256, under a secret of the webhook's own: the identifier of the delivery, the moment of this attempt
and the body, with dots between them. A receiver refuses moments far from its own clock, so that what was recorded is
of no use later, and remembers identifiers, so that what is sent again counts once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

__all__ = ["new_secret", "signed_headers"]

_PREFIX = "whsec_"


def new_secret() -> str:
    """A fresh secret of 256 bits, as receivers are configured with it."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signed_headers(secret: str, *, delivery: str, seconds: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt at `seconds` after 1970 in UTC."""
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = f"{delivery}.{seconds}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {"webhook-id": delivery, "webhook-timestamp": str(seconds), "webhook-signature": f"v1,{signature}"}
