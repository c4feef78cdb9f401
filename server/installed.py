"""What is installed: the program's version, and its packages against the list that was locked."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

__all__ = ["program_version", "unlocked_packages"]


def program_version() -> str:
    """The version of the installed program."""
    try:
        return version("noisegate")
    except PackageNotFoundError:
        return "0.15.0"


def unlocked_packages() -> tuple[int, list[str]] | None:
    """How many of the locked packages are installed, and what differs from the lock; None outside a checkout."""
    lock = Path(__file__).resolve().parents[1] / "requirements.lock"
    if not lock.is_file():
        return None
    # A line of the lock is name==version, sometimes with a condition on system or Python.
    locked = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)( ;)?", lock.read_text("utf-8"), re.MULTILINE)
    wrong, present = [], 0
    for name, wanted, condition in locked:
        found = next((found.version for found in distributions(name=name)), None)
        present += found is not None
        if found != wanted and not condition:
            wrong.append(f"{name} is missing" if found is None else f"{name} is {found}, locked is {wanted}")
    return present, wrong
