"""How streams are shown: their keys, and those that are everybody's beside their dataset."""

from __future__ import annotations

import datetime

from privacy.policy import KeyValue
from privacy.values import Json
from server.store.resources import StreamRow
from server.streams.estimating import left_out
from server.streams.sealing import Frame
from server.streams.terms import Terms

__all__ = ["beside_dataset", "keys_of"]


def keys_of(frame: Frame) -> list[Json]:
    """The keys of a stream's cells: how many values each has, and the first and the last one."""
    found: list[Json] = []
    for place, (name, kind) in enumerate(zip(frame.names, frame.types, strict=True)):
        column = [keys[place] for keys in frame.domain if keys]
        ends = {"first": _shown(column[0]), "last": _shown(column[-1])}
        found.append({"name": name, "type": kind.value, "values": len(set(column)), **ends})
    return found


def beside_dataset(row: StreamRow, frame: Frame | None, *, comparing: bool) -> dict[str, Json]:
    """A shared stream, in the description of its dataset."""
    terms = Terms.from_json(row.terms)
    address = f"/v1/streams/{row.id}"
    return {
        "id": row.id,
        "principal": row.principal,
        "keys": None if frame is None else keys_of(frame),
        "sql": None if frame is None else frame.sql,
        "cells": terms.cells,
        "within": terms.within,
        **left_out(None if frame is None else frame.counted),
        "comparing": comparing,
        "links": {"self": address, "queries": f"{address}/queries"},
    }


def _shown(value: KeyValue) -> str | int | bool | None:
    return value.isoformat() if isinstance(value, datetime.date) else value
