"""The roles of principals."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ASKING", "OVERSEEING", "READING", "Role"]


class Role(StrEnum):
    """What a principal may do (docs/api.md). Each has exactly one; the values are stored."""

    ADMIN = "admin"
    OWNER = "owner"
    ANALYST = "analyst"
    DASHBOARD = "dashboard"
    AUDITOR = "auditor"


OVERSEEING = (Role.ADMIN, Role.AUDITOR)
"""Who sees what belongs to others."""

ASKING = (Role.ADMIN, Role.OWNER, Role.ANALYST)
"""Who may ask questions of their own."""

READING = (*ASKING, Role.AUDITOR)
"""Who may read questions and answers."""
