"""What the registry refuses. Texts name things, never secrets.

RegistryError
├── NameTaken        the name exists
├── NotThere         no such principal, key or dataset
├── KeyEnded         the key is revoked or has expired
├── LastAdministrator  no enabled administrator would be left
├── VersionConflict  the dataset version exists with another document or snapshot
├── NotReplaced      something else is served than was to be replaced
├── CollectorClosed  the collector takes no more reports or tokens
├── TokenRefused     a token is unknown or was used
├── NotStopped       the principal is not stopped, or may not be
├── RequestDecided   the request was decided before
├── TooManyTokens    the collector would have more tokens than one may have
├── ProposalDecided  the proposal was decided, or its time is over
├── NotAlone         another process has the database open
├── TooManySecrets   keys are accepted under as many earlier secrets as may be
├── KeysUnavailable  the keys that tokens are checked with are not known at the moment
└── KeyRefused       the text is not a valid key
"""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from accountant.errors import LedgerError

__all__ = [
    "UNAVAILABLE",
    "CollectorClosed",
    "KeyEnded",
    "KeyFault",
    "KeyRefused",
    "KeysUnavailable",
    "LastAdministrator",
    "NameTaken",
    "NotAlone",
    "NotReplaced",
    "NotStopped",
    "NotThere",
    "ProposalDecided",
    "RegistryError",
    "RequestDecided",
    "TokenRefused",
    "TooManySecrets",
    "TooManyTokens",
    "VersionConflict",
]

UNAVAILABLE: tuple[type[Exception], ...] = (OperationalError, PoolTimeout)
"""What is raised when the database cannot be reached in time."""


class RegistryError(Exception):
    """Every error of the registry. Texts name things, never secrets."""


class NameTaken(RegistryError):
    """The name exists already."""


class NotThere(RegistryError):
    """There is no such principal, key or dataset."""


class ProposalDecided(RegistryError, LedgerError):
    """The proposal was decided before, or its time is over. An error of the ledger too, as `RequestDecided`."""


class NotAlone(RegistryError):
    """Another process has the database open; the text is its name."""


class TooManySecrets(RegistryError):
    """Keys are accepted under as many earlier secrets as may be; the text is until when the oldest of them counts."""


class KeyEnded(RegistryError):
    """The key is revoked or has expired: it gets no new secret."""


class LastAdministrator(RegistryError):
    """The change would leave no principal that is an enabled administrator."""


class VersionConflict(RegistryError):
    """The version of the dataset is stored with other contents; versions never change."""


class NotReplaced(RegistryError):
    """Something else is served under the name than was to be replaced: `tag`, None for nothing."""

    def __init__(self, name: str, tag: str | None) -> None:
        self.name = name
        self.tag = tag
        super().__init__(name)


class CollectorClosed(RegistryError):
    """The collector takes no more reports or tokens."""


class TokenRefused(RegistryError):
    """The token of the report at `place` is not one of this collector, or it was used before."""

    def __init__(self, place: int, *, used: bool) -> None:
        self.place = place
        self.used = used
        super().__init__("used" if used else "unknown")


class TooManyTokens(RegistryError):
    """The collector would have more tokens than one may have."""


class NotStopped(RegistryError, LedgerError):
    """The principal is not stopped, or, as the `last` administrator, may not be; nothing was changed."""

    def __init__(self, principal: str, *, last: bool) -> None:
        self.last = last
        super().__init__(principal)


class RequestDecided(RegistryError, LedgerError):
    """The budget request was decided or withdrawn before; nothing was changed.

    An error of the ledger too: it refuses the step that would have carried the decision out.
    """


class KeyFault(StrEnum):
    """Why a request has no key that works."""

    MISSING = "missing"
    SCHEME = "scheme"
    INVALID = "invalid"
    REVOKED = "revoked"
    ROTATED = "rotated"
    EXPIRED = "expired"
    DISABLED = "disabled"
    NOT_YET = "not_yet"
    STRANGER = "stranger"


class KeysUnavailable(RegistryError):
    """The public keys of the provider of tokens are not known at the moment."""


class KeyRefused(RegistryError):
    """The text is not a key that works now. `reason` is reported only to a caller who proved to hold the secret."""

    def __init__(self, reason: KeyFault) -> None:
        self.reason = reason
        super().__init__(reason)
