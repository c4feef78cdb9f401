"""Random bits: the only place of the project that asks the operating system for randomness.

Everything that draws noise takes a `BitSource` as an argument. The server passes `SystemBits`; tests pass a source of
their own. No setting holds a seed.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

__all__ = ["OUTPUT_PER_KEY", "BitSource", "SystemBits", "Words"]

Words = npt.NDArray[np.uint64]

OUTPUT_PER_KEY = 2**30
"""Bytes after which a key is thrown away. AES in counter mode stays indistinguishable far beyond (2^64 blocks); a
small bound limits what a key read from memory could reveal."""

_CHUNK = 2**17
_ZEROS = bytes(8 * _CHUNK)


class BitSource(Protocol):
    """A stream of independent uniform bits."""

    def words(self, count: int) -> Words:
        """The next `count` words of 64 bits. Never the same words twice."""
        ...


class SystemBits:
    """The keystream of AES-256 in counter mode, keyed by the operating system.

    Safe to share between threads. After a fork parent and child draw from different keys: the key is dropped in the
    child, and the process id is compared on each call in case the fork bypassed Python. It cannot be copied or
    stored, takes no seed, and never gives the same bits again.
    """

    __slots__ = ("__weakref__", "_left", "_lock", "_process", "_stream")

    def __init__(self) -> None:
        self._forget()
        _INSTANCES.add(self)

    def _forget(self) -> None:
        """Drops the key, and the lock with it: a thread of the parent may have held it during the fork."""
        self._lock = threading.Lock()
        self._stream: CipherContext | None = None
        self._left = 0
        self._process = -1

    def words(self, count: int) -> Words:
        """The next `count` words of 64 bits."""
        result = np.empty(count, dtype=np.uint64)
        with self._lock:
            for start in range(0, count, _CHUNK):
                part = result[start : start + _CHUNK]
                stream = self._keyed(part.nbytes)
                stream.update_into(memoryview(_ZEROS)[: part.nbytes], part.view(np.uint8).data)
        return result

    def _keyed(self, wanted: int) -> CipherContext:
        """A cipher that may still give `wanted` bytes in this process."""
        process = os.getpid()
        if self._stream is None or self._left < wanted or self._process != process:
            key, counter = os.urandom(32), os.urandom(16)
            self._stream = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
            self._left = OUTPUT_PER_KEY
            self._process = process
        self._left -= wanted
        return self._stream

    def __reduce__(self) -> str:
        raise TypeError("a source of random bits cannot be copied or stored")


_INSTANCES: weakref.WeakSet[SystemBits] = weakref.WeakSet()


def _forget_all() -> None:
    for instance in list(_INSTANCES):
        instance._forget()


os.register_at_fork(after_in_child=_forget_all)
