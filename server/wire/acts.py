"""Models of acts of administrators."""

from __future__ import annotations

from pydantic import Field

from server.wire.answers import AnswerModel

__all__ = ["ActAnswer", "ActList"]


class ActAnswer(AnswerModel):
    """One act, in the chain of the ledger."""

    sequence: int = Field(description="Its number among the entries and acts of the ledger.")
    actor: str
    action: str
    subject: str
    details: dict[str, object] = Field(description="What changed; in `rows`, by table and key, hashes of rows.")
    created: str
    previous: str = Field(description="The hash of the entry or act before it.")
    hash: str


class ActList(AnswerModel):
    """A page of acts, oldest first."""

    acts: list[ActAnswer]
    next: int | None
    """Number after which the next page begins, null at the end."""
