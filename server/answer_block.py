"""Which part of an answer's bytes is the same whenever the answer is sent again.

An answer begins with its identifier and ends with accounting, provenance and links. Between them are the columns, rows,
errors and intervals: most of it, and the same in every repeat. The ledger keeps them once (`SharedAnswer`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from accountant.request import SharedAnswer

__all__ = ["Block", "block_of"]

_BEGIN = b'"columns":['
_END = b',"accounting":{'


@dataclass(frozen=True, slots=True)
class Block:
    """The shared part of a stored answer: whose, from where to where, and the SHA-256 of its bytes."""

    query_id: str
    start: int
    end: int
    digest: bytes

    def shared_with(self, other: Block) -> SharedAnswer | None:
        """How another answer refers to this one's block, None when the blocks are not the same bytes."""
        if other.digest != self.digest:
            return None
        return SharedAnswer(query_id=self.query_id, start=self.start, end=self.end, at=other.start)


def block_of(query_id: str, content: bytes) -> Block | None:
    """The block of an answer's bytes, None where there is none.

    A quotation mark inside a JSON string is escaped, so neither border can occur in a name or a value; the first
    border is the first of its kind, because only the identifier comes before it, and the last the last.
    """
    start, end = content.find(_BEGIN), content.rfind(_END)
    if not 0 <= start < end:
        return None
    return Block(query_id, start, end, hashlib.sha256(memoryview(content)[start:end]).digest())
