"""Where tests write: into memory where there is room, since half of what they wait for is a disk that syncs."""

from __future__ import annotations

import os
import shutil

__all__ = ["folder_in_memory"]

FOLDER = "/dev/shm"
FREE_BYTES = 4 * 2**30


def folder_in_memory() -> str | None:
    """A folder in memory with room for a run of all tests, or None. What is synced there is as durably set."""
    try:
        roomy = shutil.disk_usage(FOLDER).free > FREE_BYTES and os.access(FOLDER, os.W_OK)
    except OSError:
        return None
    return FOLDER if roomy else None
