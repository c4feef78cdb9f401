"""What an audit knew of every account at one entry: the next one goes on from there.

A checkpoint is a file beside the high-water mark, apart from the ledger: whoever changes the database does not change
it. It is written after a whole audit that found nothing. `rejected` says that the last whole audit found something:
such a ledger is not spent from, until a whole audit finds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from accountant.entry import Amounts, canonical_json
from privacy.values import Json

__all__ = ["AccountMark", "Checkpoint", "CheckpointFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountMark:
    """An account at a checkpoint, as its entries until then make it."""

    spent: Amounts
    entries: int
    hash: str
    granted: Sequence[dict[str, str]]
    shares: dict[str, int]
    kind: str
    frozen: bool
    grant: tuple[object, ...]
    window: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A ledger at one entry. An empty one has 0 and 64 zeros."""

    ledger: str
    sequence: int
    hash: str
    accounts: Mapping[str, AccountMark]
    rows: Mapping[str, Mapping[str, str]]
    """Of tables whose rows acts vouch for, key and hash of each row (accountant/acts.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """What the file says: the last checkpoint, and what the last whole audit found where it found something."""

    checkpoint: Checkpoint | None = None
    rejected: str | None = field(default=None)

    def text(self) -> str:
        """As it is written."""
        point = self.checkpoint
        stored: dict[str, Json] = {"rejected": self.rejected, "checkpoint": None}
        if point is not None:
            stored["checkpoint"] = {
                "ledger": point.ledger,
                "sequence": point.sequence,
                "hash": point.hash,
                "accounts": {name: _mark_json(mark) for name, mark in point.accounts.items()},
                "rows": {name: dict(rows) for name, rows in point.rows.items()},
            }
        return canonical_json(stored) + "\n"

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads `text` back. Errors: ValueError for anything else."""
        try:
            stored = json.loads(text)
            point = stored["checkpoint"]
            checkpoint = None
            if point is not None:
                accounts = {name: _mark(mark) for name, mark in point["accounts"].items()}
                if "rows" in point:
                    rows = {str(name): _texts(found) for name, found in point["rows"].items()}
                    ledger, sequence, digest = str(point["ledger"]), int(point["sequence"]), str(point["hash"])
                    checkpoint = Checkpoint(ledger, sequence, digest, accounts, rows)
                # One that an earlier version left knows no rows: the audit begins at the beginning.
            rejected = stored["rejected"]
        except (KeyError, TypeError, AttributeError):
            raise ValueError("the file is no checkpoint") from None
        return cls(checkpoint=checkpoint, rejected=None if rejected is None else str(rejected))


def _mark_json(mark: AccountMark) -> Json:
    return {
        "spent": list(mark.spent),
        "entries": mark.entries,
        "hash": mark.hash,
        "granted": [dict(limit) for limit in mark.granted],
        "shares": dict(mark.shares),
        "kind": mark.kind,
        "frozen": mark.frozen,
        "grant": [None if part is None else str(part) for part in mark.grant],
        "window": None if mark.window is None else dict(mark.window),
    }


def _texts(stored: Mapping[str, object]) -> dict[str, str]:
    return {str(key): str(digest) for key, digest in stored.items()}


def _mark(stored: Mapping[str, object]) -> AccountMark:
    spent, granted, shares, grant = (stored[name] for name in ("spent", "granted", "shares", "grant"))
    if not (isinstance(spent, list) and isinstance(granted, list) and isinstance(grant, list) and granted):
        raise TypeError("a mark has lists")
    window = stored.get("window")
    if window is not None and not isinstance(window, dict):
        raise TypeError("a mark has a window or none")
    if not isinstance(shares, dict) or not isinstance(stored["entries"], int):
        raise TypeError("a mark has shares and a count")
    return AccountMark(
        spent=Amounts(*spent),
        entries=stored["entries"],
        hash=str(stored["hash"]),
        granted=granted,
        shares=shares,
        kind=str(stored["kind"]),
        frozen=bool(stored["frozen"]),
        # Of an earlier version: every dataset was a space of its own, and nothing ended.
        grant=tuple(grant) if len(grant) > 4 else (*grant, grant[0], None),
        window=window,
    )
