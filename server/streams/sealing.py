"""The secret state of a stream, encrypted for the database (server/sealing.py).

Two parts: what it is about, which never changes, and where it stands. The noise of the threshold has to outlast the
process and be known to nobody. The synopsis is released, but says which ranges were asked.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from dataclasses import dataclass
from typing import Self

from mechanisms.samplers.threshold import NoisyThreshold
from mechanisms.samplers.undecided import Magnitude
from mechanisms.streams.asking import StreamState
from mechanisms.streams.price import StreamNoise
from mechanisms.streams.synopsis import Cells, Synopsis, runs_of
from privacy.policy import ColumnType, KeyValue
from server.sealing import Seal
from server.streams.counted import Counted

__all__ = ["Frame", "Places", "sealed_state", "state_of"]


@dataclass(frozen=True, slots=True)
class Places:
    """Places of several numbers or days: each has `step` of them, and the last one ends at `last`."""

    step: int
    last: int


@dataclass(frozen=True, slots=True, repr=False)
class Frame:
    """What a stream is about: its text, the keys of its cells in their order, and a secret that hides what is asked.

    A cell without keys is one that no row can be in.
    """

    sql: str
    names: tuple[str, ...]
    types: tuple[ColumnType, ...]
    domain: tuple[tuple[KeyValue, ...], ...]
    groups: str
    """A hash of the groups as the text has them: where declarations change them, these are other cells."""
    salt: str
    places: tuple[Places | None, ...]
    """Of each key the size of its places and the last value in them; None where a place is one value."""
    counted: Counted | None = None
    """How much of one unit counts; None of streams that earlier servers opened."""

    def key(self, cells: Cells, version: str, *, asker: str | None) -> str:
        """Under which the answer about these cells of a version is stored: for an `asker` alone, where one is named."""
        whose = [] if asker is None else [asker]
        return hashlib.sha256(json.dumps([self.salt, version, runs_of(cells), *whose]).encode()).hexdigest()

    def sealed(self, seal: Seal, *, stream: str) -> bytes:
        """For the database."""
        plain = {
            "sql": self.sql,
            "names": self.names,
            "types": [kind.value for kind in self.types],
            "domain": [[_written(value) for value in keys] for keys in self.domain],
            "groups": self.groups,
            "salt": self.salt,
            "places": [None if one is None else [one.step, one.last] for one in self.places],
            "counted": None if self.counted is None else self.counted.plain(),
        }
        return seal.encrypted(json.dumps(plain).encode(), bound_to=f"{stream} frame")

    @classmethod
    def opened(cls, sealed: bytes, seal: Seal, *, stream: str) -> Self:
        """What was sealed for that stream. Errors: SealBroken."""
        plain = json.loads(seal.decrypted(sealed, bound_to=f"{stream} frame"))
        types = tuple(ColumnType(word) for word in plain["types"])
        return cls(
            plain["sql"],
            tuple(plain["names"]),
            types,
            tuple(
                tuple(_read(v, kind) for v, kind in zip(keys, types if keys else (), strict=True))
                for keys in plain["domain"]
            ),
            plain["groups"],
            plain["salt"],
            tuple(None if one is None else Places(*one) for one in plain["places"]),
            Counted.of_plain(plain.get("counted")),
        )


def _written(value: KeyValue) -> str | int | bool | None:
    return value.isoformat() if isinstance(value, datetime.date) else value


def _read(value: KeyValue, kind: ColumnType) -> KeyValue:
    if isinstance(value, str) and kind is ColumnType.DATE:
        return datetime.date.fromisoformat(value)
    if isinstance(value, str) and kind is ColumnType.TIMESTAMP:
        return datetime.datetime.fromisoformat(value)
    return value


def sealed_state(state: StreamState, seal: Seal, *, stream: str) -> bytes:
    """Where a stream stands, for the database."""
    noise = state.threshold.noise
    plain = {
        "noise": f"{noise.value:x}",
        "length": noise.length,
        "synopsis": None if state.synopsis is None else state.synopsis.to_plain(),
    }
    return seal.encrypted(json.dumps(plain).encode(), bound_to=f"{stream} state")


def state_of(sealed: bytes, seal: Seal, *, stream: str, noise: StreamNoise, left: int) -> StreamState:
    """The state that was sealed for that stream. Errors: SealBroken."""
    plain = json.loads(seal.decrypted(sealed, bound_to=f"{stream} state"))
    threshold = NoisyThreshold(noise.threshold_scale, Magnitude(int(plain["noise"], 16), plain["length"]))
    synopsis = None if plain["synopsis"] is None else Synopsis.from_plain(plain["synopsis"])
    return StreamState(threshold, left, synopsis)
