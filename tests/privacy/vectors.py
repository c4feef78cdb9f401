"""Reads published and recomputed reference values; their origin is written in each file of `tests/vectors`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

__all__ = ["exact", "load"]

_FOLDER = Path(__file__).parent.parent / "vectors"


def load(name: str) -> dict[str, Any]:
    """The content of `tests/vectors/{name}.json`."""
    content: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content


def exact(value: float) -> Fraction:
    """The decimal that was written: 0.1 is one tenth."""
    return Fraction(str(value))
