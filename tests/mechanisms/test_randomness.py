"""Random bits: fresh, keyed by the system, never shared between processes, never seeded."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

import mechanisms
from mechanisms import randomness
from mechanisms.randomness import SystemBits, Words

ROOM = Path(mechanisms.__file__).parent


def in_child(source: randomness.BitSource) -> bytes:
    """The next words that a forked child draws."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, source.words(4).tobytes())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        words = stream.read()
    assert os.waitpid(child, 0)[1] == 0
    return words


class UnwatchedBits:
    """The planted bug: a keystream that does not notice a fork."""

    def __init__(self) -> None:
        self._stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(os.urandom(16))).encryptor()

    def words(self, count: int) -> Words:
        return np.frombuffer(self._stream.update(bytes(8 * count)), dtype=np.uint64)


def test_children_draw_from_other_keys() -> None:
    """After a fork, parent and children give different words, also when a key was in use before."""
    source = SystemBits()
    source.words(4)
    children = [in_child(source), in_child(source)]
    assert len({source.words(4).tobytes(), *children}) == 3


def test_children_differ_without_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process id alone is enough, should the fork bypass Python's hooks."""
    source = SystemBits()
    source.words(4)
    monkeypatch.setattr(randomness, "_INSTANCES", set())
    assert in_child(source) != source.words(4).tobytes()


def test_a_shared_keystream_is_caught() -> None:
    """The fork test sees the planted bug: the child repeats the parent's words."""
    source = UnwatchedBits()
    source.words(4)
    assert in_child(source) == source.words(4).tobytes()


def test_a_lock_held_during_the_fork_does_not_block_the_child() -> None:
    """The child has a lock of its own, whatever a thread of the parent held."""
    source = SystemBits()
    with source._lock:
        words = in_child(source)
    assert len(words) == 32


def test_a_key_gives_a_bounded_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new key is drawn when the old one has given its share, also within one call."""
    monkeypatch.setattr(randomness, "OUTPUT_PER_KEY", 8 * randomness._CHUNK)
    drawn: list[int] = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: drawn.append(size) or real(size))
    SystemBits().words(3 * randomness._CHUNK)
    assert drawn == [32, 16] * 3


@pytest.mark.slow
def test_words_look_uniform_and_never_repeat() -> None:
    """Every bit is set about half the time (7 sigma: false alarm below 1e-9), no word twice."""
    words = SystemBits().words(1_000_000)
    assert len(np.unique(words)) == len(words)
    for bit in range(64):
        share = int(((words >> np.uint64(bit)) & np.uint64(1)).sum()) / len(words)
        assert abs(share - 0.5) < 7 * 0.0005
    assert SystemBits().words(0).shape == (0,)


def test_threads_share_a_source_without_repeats() -> None:
    """Eight threads that draw from one source never see the same word."""
    source = SystemBits()
    parts: list[Words] = []

    def draw() -> None:
        for _ in range(20):
            parts.append(source.words(500))

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(parts)
    assert len(np.unique(words)) == 80_000


def test_a_source_has_no_seed_and_no_copy() -> None:
    """There is no argument to fix the bits with, and an instance can be neither copied nor stored."""
    assert not inspect.signature(SystemBits).parameters
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            attempt(SystemBits())


SOURCES = sorted(path for path in ROOM.rglob("*.py") if path.name != "randomness.py")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOM)))
def test_no_other_randomness(path: Path) -> None:
    """No module but randomness.py asks for random numbers in another way (E28), or takes a seed."""
    text = path.read_text()
    forbidden = (
        r"np\.random|numpy\.random|import random\b|from random\b|urandom|secrets|default_rng|getrandbits|\bseed\b"
    )
    assert re.findall(forbidden, text) == []
    # Replicates are simulated from released numbers only; every other module takes its source as an argument.
    assert "SystemBits" not in text or path.name == "replicates.py"


def test_the_tidy_rule_can_fail() -> None:
    """The rule above finds what it forbids where it is allowed: in randomness.py."""
    assert "urandom" in (ROOM / "randomness.py").read_text()
