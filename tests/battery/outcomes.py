"""What becomes of a text in a world: the answer beside DuckDB's own, or the code of its refusal."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from privacy.refusal import Refused
from tests.plain_clinic import Clinic

__all__ = ["code_of", "difference"]


def code_of(world: Clinic, text: str) -> str:
    """The code of the first finding with which a text is refused; empty for one that is answered."""
    try:
        world.answer(text, {}, gaussian=True)
    except Refused as refused:
        return refused.findings[0].code
    return ""


def difference(world: Clinic, text: str) -> str:
    """The first difference between the answer and DuckDB's; empty where there is none. Errors: Refused.

    Groups of declared keys in which nobody is are shown with a count or sum of 0, which DuckDB leaves out. Hidden
    groups with few people are not shown: then the groups that are shown are compared, which are most of them.
    """
    ordered = "LIMIT" in text.upper()
    answer = world.answer(text, {}, gaussian=True)
    plain = world.directly(text, {})
    if not ordered:
        answer, plain = sorted(answer, key=_place), sorted(plain, key=_place)
    if len(answer) > len(plain):
        answer = [row for row in answer if not _empty(row)]
    if 0 < len(answer) < len(plain) and not ordered:
        plain = _shown(plain, answer)
    if len(answer) != len(plain):
        return f"{len(answer)} rows, DuckDB has {len(plain)}"
    for ours, theirs in zip(answer, plain, strict=True):
        if len(ours) != len(theirs) or not all(map(_same, ours, theirs)):
            return f"{ours}, DuckDB has {theirs}"
    return ""


def _shown(plain: list[list[Any]], answer: list[list[Any]]) -> list[list[Any]]:
    """The rows of DuckDB that the answer has, or whose first column it has, where most of them are."""
    keys = [row[0] for row in answer]
    whole = [row for row in plain if any(len(row) == len(ours) and all(map(_same, ours, row)) for ours in answer)]
    first = [row for row in plain if any(_same(key, row[0]) for key in keys)]
    kept = whole if len(whole) == len(answer) else first
    return kept if len(kept) * 3 > len(plain) else plain


def _empty(row: Sequence[Any]) -> bool:
    numbers = [value for value in row if isinstance(value, int | float) and not isinstance(value, bool)]
    return None in row or (bool(numbers) and all(abs(value) < 0.1 for value in numbers[-1:]))


def _place(row: Sequence[Any]) -> list[tuple[bool, str]]:
    return [(value is None, f"{value:.2f}" if isinstance(value, float) else str(value)) for value in row]


def _seconds(span: str) -> float:
    """The seconds of an interval as answers write it: 3 days 04:00:00.5, all of one sign."""
    clock, days = span.split(" ")[-1], span.partition(" day")[0] if " day" in span else "0"
    hours, minutes, seconds = (clock if ":" in clock else "0:0:0").lstrip("-").split(":")
    size = abs(int(days)) * 86_400 + int(hours) * 3_600 + int(minutes) * 60 + float(seconds)
    return -size if span.startswith("-") else size


_MEAN = datetime.timedelta(milliseconds=20)


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, datetime.timedelta):
        return isinstance(ours, str) and _same(_seconds(ours), theirs.total_seconds())
    if theirs is None and isinstance(ours, int | float):
        return abs(ours) < 0.01  # the sum of no rows is 0, as its noise has no NULL
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return bool(ours == theirs)
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=1e-3)
    if isinstance(ours, str) and isinstance(theirs, str) and re.match("[0-9]{4}-[0-9]{2}-[0-9]{2}T", ours):
        with suppress(ValueError):  # means of timestamps are answered in milliseconds
            return abs(datetime.datetime.fromisoformat(ours) - datetime.datetime.fromisoformat(theirs)) < _MEAN
    return bool(ours == theirs) or f"{ours}T00:00:00" == theirs  # a day, where DuckDB says midnight
