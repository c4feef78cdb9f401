"""The states of a query and the kinds of entries, as they are stored."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EntryKind", "QueryStatus"]


class QueryStatus(StrEnum):
    """Where a query is (README.md of this room). A reserved one is open; the others are final."""

    RESERVED = "reserved"
    SETTLED = "settled"
    FAILED_CHARGED = "failed_charged"
    FAILED_VOID = "failed_void"


class EntryKind(StrEnum):
    """Movements in the ledger."""

    GRANT = "grant"
    RESERVE = "reserve"
    POST = "post"
    VOID = "void"
    FAIL = "fail"
    ADJUST = "adjust"
