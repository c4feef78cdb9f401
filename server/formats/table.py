"""A stored answer or release as a table: columns of equal length, and what is said beside them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypedDict

from privacy.policy import ColumnType
from privacy.values import Json

__all__ = ["RESULT_HEADERS", "Column", "Table", "answer_table", "as_text", "free_name", "release_table", "sort_of"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table that is sent.

    `name` is unique in the table, also when case is ignored. `kind` is key, released, derived, standard_error, low or
    high; `of` is the place in the JSON's columns of the column that it is or describes. `type` is the JSON's type.
    """

    name: str
    kind: str
    of: int
    type: str
    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A result as columns of equal length. `about` is the rest of the JSON; `headers` are those of the response."""

    columns: tuple[Column, ...]
    about: Mapping[str, Json]
    headers: Mapping[str, str]


def answer_table(content: bytes) -> Table:
    """The table of a stored answer."""
    body = json.loads(content)
    columns = []
    for place, column in enumerate(body["columns"]):
        edges = (body["standard_errors"], body["lows"], body["highs"])
        columns.append(
            _Source(
                column["name"],
                column["kind"],
                column["type"],
                tuple(row[place] for row in body["rows"]),
                tuple(tuple(row[place] for row in part) for part in edges),
            )
        )
    accounting, provenance = body["accounting"], body["provenance"]
    headers = {
        "Noisegate-Query": body["id"],
        "Noisegate-Confidence": str(body["confidence"]),
        **_price(accounting, body.get("links", {}).get("budget"), free=not provenance["releases"]),
        "Noisegate-Remaining-Epsilon": accounting["remaining"]["epsilon"],
        "Noisegate-Remaining-Delta": accounting["remaining"]["delta"],
        "Noisegate-Reused": "true" if accounting["reused"] else "false",
        "Noisegate-Releases": ", ".join(provenance["releases"]),
    }
    if "own" in accounting:  # answers of the first version have none
        headers["Noisegate-Share"] = accounting["share"]
        headers["Noisegate-Own-Epsilon"] = accounting["own"]["epsilon"]
        headers["Noisegate-Own-Delta"] = accounting["own"]["delta"]
    if warnings := [warning["code"] for warning in body.get("warnings", ())]:
        headers["Noisegate-Warnings"] = ", ".join(dict.fromkeys(warnings))
    tabular = ("columns", "rows", "standard_errors", "lows", "highs")
    return Table(_arranged(columns), {name: body[name] for name in body if name not in tabular}, headers)


def release_table(content: bytes) -> Table:
    """The table of a stored release, from the JSON of GET /v1/releases/{id}."""
    body = json.loads(content)
    release = body["release"]
    count = release["rows"]
    columns = []
    for column in release["columns"]:
        edges = (column["standard_errors"], column["lows"], column["highs"])
        columns.append(
            _Source(
                column["name"],
                column["role"],
                ColumnType(column["type"]).sql,
                tuple(column["values"]),
                # Keys have none, and their lists are empty.
                tuple(tuple(part) if part else (None,) * count for part in edges),
            )
        )
    headers = {
        "Noisegate-Release": body["id"],
        "Noisegate-Confidence": str(float(Fraction(release["confidence"]))),
    }
    if body["query"] is not None:
        headers["Noisegate-Query"] = body["query"]
    # The noisy sums repeat the table in other words, and more of them.
    rest = {name: release[name] for name in release if name not in ("columns", "rows", "statistics")}
    return Table(_arranged(columns), {**body, "release": rest}, headers)


class _Charge(TypedDict):
    budget: str
    epsilon: str
    delta: str


class _Accounting(TypedDict):
    charged: list[_Charge]
    reused: bool


RESULT_HEADERS: Mapping[str, str] = {
    "Noisegate-Query": "Identifier of the query. This and the headers below come with every format but JSON.",
    "Noisegate-Release": "Identifier of the release.",
    "Noisegate-Releases": "Identifiers of the releases that the answer was made from.",
    "Noisegate-Confidence": "Chance with which each interval from x_low to x_high covers.",
    "Noisegate-Budget": "The account that paid.",
    "Noisegate-Charged-Epsilon": "What that account was charged; 0 when stored releases answered.",
    "Noisegate-Charged-Delta": "What that account was charged.",
    "Noisegate-Remaining-Epsilon": "What remained when the answer was stored.",
    "Noisegate-Remaining-Delta": "What remained when the answer was stored.",
    "Noisegate-Share": "The part of the paying account's limit of epsilon that the answer took, from 0 to 1.",
    "Noisegate-Own-Epsilon": "What the answer promises by itself, at Noisegate-Own-Delta. Must not be added up.",
    "Noisegate-Own-Delta": "The delta of Noisegate-Own-Epsilon.",
    "Noisegate-Reused": "true when stored releases answered and nothing was charged.",
    "Noisegate-Warnings": "Codes of the answer's warnings, where it has any; the JSON has their words.",
}
"""Headers of results that are not JSON, with their meaning. They repeat what the JSON says, in its digits."""


def _price(accounting: _Accounting, budget_address: str | None, *, free: bool) -> dict[str, str]:
    """Headers of the charge on the account that the query was asked from, where the JSON has it.

    `free` is whether the answer was made without any release.
    """
    charged = {part["budget"]: part for part in accounting["charged"]}
    budget = budget_address.rpartition("/")[2] if budget_address else next(iter(charged), None)
    headers = {} if budget is None else {"Noisegate-Budget": budget}
    if budget in charged:
        part = charged[budget]
        headers |= {"Noisegate-Charged-Epsilon": part["epsilon"], "Noisegate-Charged-Delta": part["delta"]}
    elif accounting["reused"] or free:
        headers |= {"Noisegate-Charged-Epsilon": "0", "Noisegate-Charged-Delta": "0"}
    return headers


class _Source(NamedTuple):
    name: str
    kind: str
    type: str
    values: tuple[Json, ...]
    edges: tuple[tuple[Json, ...], ...]  # standard errors, lows, highs


def _arranged(sources: Sequence[_Source]) -> tuple[Column, ...]:
    """The answer's columns, then the errors of each released or derived one, under names that are all different.

    The answer's own names come first, so that an error column never takes the name that the analyst chose.
    """
    taken: set[str] = set()
    names: list[str | None] = []
    for source in sources:
        first = source.name.casefold() not in taken
        taken.add(source.name.casefold())
        names.append(source.name if first else None)
    own = [free_name(source.name, taken) if name is None else name for source, name in zip(sources, names, strict=True)]
    columns = [
        Column(name, source.kind, place, source.type, tuple(_finite(value) for value in source.values))
        for place, (name, source) in enumerate(zip(own, sources, strict=True))
    ]
    for place, (name, source) in enumerate(zip(own, sources, strict=True)):
        if source.kind == "key":
            continue
        for kind, values in zip(("standard_error", "low", "high"), source.edges, strict=True):
            wanted = f"{name}_{kind}"
            unique = free_name(wanted, taken) if wanted.casefold() in taken else wanted
            taken.add(unique.casefold())
            columns.append(Column(unique, kind, place, "DOUBLE", tuple(_finite(value) for value in values)))
    return tuple(columns)


def free_name(name: str, taken: set[str]) -> str:
    """The name with the first number that makes it new, counted from 2; it is taken afterwards."""
    number = 2
    while f"{name}_{number}".casefold() in taken:
        number += 1
    taken.add(f"{name}_{number}".casefold())
    return f"{name}_{number}"


def _finite(value: Json) -> Json:
    return None if isinstance(value, float) and not math.isfinite(value) else value


_WHOLE = frozenset(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"))
_WIDE = frozenset(("UBIGINT", "HUGEINT", "UHUGEINT"))
_TIMESTAMPS = frozenset(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"))
_DECIMAL = re.compile(r"DECIMAL\([0-9]{1,2},([0-9]{1,2})\)\Z")


def sort_of(type_: str) -> str:
    """What sort of values a type of the JSON has; "text" for all that have no type of their own in every format."""
    if type_ in _WHOLE:
        return "whole"
    if type_ in _WIDE:
        return "wide"
    if type_ in ("DOUBLE", "FLOAT"):
        return "number"
    decimal = _DECIMAL.match(type_)
    if decimal is not None:
        return "wide" if int(decimal[1]) == 0 else "number"
    if type_ in _TIMESTAMPS:
        return "timestamp"
    return {"BOOLEAN": "boolean", "DATE": "date"}.get(type_, "text")


def as_text(value: Json) -> str | None:
    """A value of the JSON as a text; None stays None."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
