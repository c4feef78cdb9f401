"""The public keys of an OpenID Connect provider: a JSON Web Key Set from a file or an address, kept and renewed.

A set is asked for once and kept. It is asked for again when it is old, and when a token names a key that is not in it,
at most once in `ASKED_AGAIN_SECONDS`: whoever sends made-up names of keys makes no requests to the provider. While the
provider does not answer, the keys that are known serve on for `STALE_SECONDS`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from server.log import logger
from server.store.errors import KeysUnavailable

__all__ = ["ASKED_AGAIN_SECONDS", "STALE_SECONDS", "ProviderKeys", "read_keys"]

ASKED_AGAIN_SECONDS = 60
STALE_SECONDS = 24 * 3600
_BYTES_MAX = 256 * 1024
_KEYS_MAX = 100
_TIMEOUT_SECONDS = 5.0
_RSA_BITS_MIN = 2048
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")

_FITTING: Mapping[tuple[str, str | None], tuple[str, ...]] = MappingProxyType(
    {
        ("RSA", None): _RSA,
        ("EC", "P-256"): ("ES256",),
        ("EC", "P-384"): ("ES384",),
        ("EC", "P-521"): ("ES512",),
        ("OKP", "Ed25519"): ("EdDSA",),
    }
)
"""By type and curve of a key, the algorithms that it may be used with. Symmetric keys are none of them."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A published key under one algorithm that fits it; `number` is its place in the set."""

    number: int
    id: str | None
    algorithm: str
    key: jwt.PyJWK


class ProviderKeys:
    """The keys of one provider. `source` is a file or an https address; `clock` counts seconds. Thread-safe."""

    __slots__ = ("_asked", "_clock", "_fresh", "_keys", "_lock", "_seen", "_source", "_stamp")

    def __init__(self, source: Path | str, *, fresh_seconds: float, clock: Callable[[], float]) -> None:
        self._source = source
        self._fresh = fresh_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: tuple[_Key, ...] = ()
        self._seen = self._asked = -float("inf")
        self._stamp: tuple[int, int] | None = None

    def fitting(self, key_id: object, algorithm: str) -> tuple[jwt.PyJWK, ...]:
        """The keys of that name which the algorithm may be used with; without a name only where there is one key.

        Errors: KeysUnavailable.
        """
        known = self._known()
        found = _named(known, key_id)
        if not found and key_id is not None:
            # The provider may have begun to sign with another key.
            found = _named(self._known(again=True), key_id)
        return tuple(key.key for key in found if key.algorithm == algorithm)

    def count(self, algorithm: str) -> int:
        """How many keys the algorithm may be used with. Errors: KeysUnavailable."""
        return sum(key.algorithm == algorithm for key in self._known())

    def _known(self, *, again: bool = False) -> tuple[_Key, ...]:
        now = self._clock()
        if self._due(now, again=again):
            with self._lock:
                if self._due(now, again=again):
                    self._asked = now
                    self._ask(now)
        if not self._keys or now - self._seen > STALE_SECONDS:
            raise KeysUnavailable
        return self._keys

    def _due(self, now: float, *, again: bool) -> bool:
        """Whether the keys are asked for now. A file is looked at each time, which costs next to nothing."""
        if isinstance(self._source, Path):
            return self._stamp != _stamp(self._source) or now - self._asked >= self._fresh
        if now - self._asked < ASKED_AGAIN_SECONDS:
            return False
        return again or now - self._seen >= self._fresh

    def _ask(self, now: float) -> None:
        try:
            if isinstance(self._source, Path):
                self._stamp = _stamp(self._source)
                self._keys, self._seen = read_keys(self._source.read_bytes()), now
            else:
                self._keys, self._seen = read_keys(_fetched(self._source)), now
        except (OSError, ValueError, httpx.HTTPError) as error:
            # Its text may repeat what the provider sent.
            logger().warning("provider_keys_unavailable", exception=type(error).__name__)


def read_keys(content: bytes) -> tuple[_Key, ...]:
    """The signature keys of a JSON Web Key Set, once for each algorithm that fits. Others are left out.

    Errors: ValueError for what is no such set, and for one that has no key that can be used.
    """
    if len(content) > _BYTES_MAX:
        raise ValueError("a set of keys is larger than 256 KiB")
    try:
        listed = json.loads(content)["keys"]
    except (KeyError, TypeError, RecursionError):
        raise ValueError("a set of keys is a JSON object with the member keys") from None
    if not isinstance(listed, list) or len(listed) > _KEYS_MAX:
        raise ValueError(f"a set of keys has a list of at most {_KEYS_MAX}")
    found = tuple(key for number, item in enumerate(listed) if isinstance(item, dict) for key in _read(number, item))
    if not found:
        raise ValueError("no key of the set can check signatures")
    return found


def _read(number: int, item: Mapping[str, object]) -> list[_Key]:
    kind, curve, key_id = item.get("kty"), item.get("crv"), item.get("kid")
    if item.get("use", "sig") != "sig" or not isinstance(kind, str) or not (key_id is None or isinstance(key_id, str)):
        return []
    fitting = _FITTING.get((kind, None if kind == "RSA" else str(curve)), ())
    meant = item.get("alg")
    public = {name: value for name, value in item.items() if name in ("kty", "crv", "x", "y", "n", "e")}
    found = []
    for algorithm in fitting:
        if meant is not None and meant != algorithm:
            continue
        try:
            key = jwt.PyJWK(public, algorithm)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            return []
        if isinstance(key.key, RSAPublicKey) and key.key.key_size < _RSA_BITS_MIN:
            return []
        found.append(_Key(number, key_id, algorithm, key))
    return found


def _named(keys: tuple[_Key, ...], key_id: object) -> tuple[_Key, ...]:
    if key_id is None:
        return keys if len({key.number for key in keys}) == 1 else ()
    return tuple(key for key in keys if key.id == key_id)


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _fetched(address: str) -> bytes:
    """What is at the address. Errors: httpx.HTTPError; ValueError for more than a set of keys has."""
    content = b""
    with (
        httpx.Client(timeout=_TIMEOUT_SECONDS, follow_redirects=False) as client,
        client.stream("GET", address, headers={"Accept": "application/json"}) as response,
    ):
        response.raise_for_status()
        for part in response.iter_bytes():
            content += part
            if len(content) > _BYTES_MAX:
                raise ValueError("a set of keys is larger than 256 KiB")
    return content
