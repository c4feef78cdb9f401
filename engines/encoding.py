"""Statements and their parameters on their way to a worker."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from privacy.policy import ColumnType
from privacy.statement import Statement
from privacy.training import Clipping, FeatureKind, TrainingFeature, TrainingStatement
from privacy.values import Json

__all__ = ["PLACE_PARTS", "DesignRows", "encode_parameters", "encode_rows", "encode_statement", "is_unicode"]


PLACE_PARTS = ("places", "rows")
"""The ends of the names of the two columns that hold integers by place."""


def is_unicode(*texts: str) -> bool:
    """Whether the strings are proper Unicode: a lone surrogate has no bytes."""
    try:
        return all(text.encode() is not None for text in texts)
    except UnicodeEncodeError:
        return False


def encode_parameters(parameters: Sequence[object]) -> list[tuple[str, str | bool | None]] | None:
    """Parameters as pairs of a type word and a JSON value, or None when one cannot be carried."""
    items: list[tuple[str, str | bool | None]] = []
    for value in parameters:
        if value is None or isinstance(value, bool):
            items.append(("plain", value))
        elif isinstance(value, str):
            if not is_unicode(value):
                return None
            items.append(("plain", value))
        elif isinstance(value, int):
            if not -(2**127) < value < 2**127:
                return None
            items.append(("integer", str(value)))
        elif isinstance(value, float):
            items.append(("number", value.hex()))
        elif isinstance(value, datetime.datetime):
            if value.tzinfo is not None:
                return None
            items.append(("timestamp", value.isoformat()))
        elif isinstance(value, datetime.date):
            items.append(("date", value.isoformat()))
        else:
            return None
    return items


def encode_statement(statement: Statement) -> dict[str, Json] | None:
    """A statement for a worker, or None when it cannot be sent: a fault of ours that is found before anything is."""
    parameters = encode_parameters(statement.parameters)
    names = [key.name for key in statement.keys]
    names += [f"{item.name}_{part}" for item in statement.sums for part in ("high", "low")]
    names += [f"{item.name}_{part}" for item in statement.by_place for part in PLACE_PARTS]
    if parameters is None or len(set(names)) != len(names) or not names:
        return None
    shared: list[Json] = []
    for table in () if statement.shared is None else statement.shared.tables:
        own = encode_parameters(table.parameters)
        if own is None:
            return None
        shared.append({"name": table.name, "sql": table.sql, "parameters": own})
    if any(key.type is ColumnType.NUMBER for key in statement.keys):
        return None
    return {
        "sql": statement.sql,
        "parameters": parameters,
        "keys": [[key.name, key.type.value] for key in statement.keys],
        "sums": [item.name for item in statement.sums],
        "by_place": [[item.name, item.places] for item in statement.by_place],
        "shared": shared,
        "kept": statement.shared is not None and statement.shared.kept,
    }


@dataclass(frozen=True, slots=True)
class DesignRows:
    """The rows of a model, which part of the units is held out, and to which norm its rows or gradients are held."""

    statement: TrainingStatement
    held: int
    clipping: Clipping
    clip: int


def encode_rows(rows: DesignRows) -> dict[str, Json] | None:
    """The rows of a model for a worker, or None when they cannot be sent."""
    statement = rows.statement
    encoded = encode_statement(statement.rows)
    if encoded is None:
        return None
    names = [key.name for key in statement.rows.keys]
    return {
        **{name: encoded[name] for name in ("sql", "parameters", "keys")},
        "columns": [_column(feature) for feature in statement.features],
        "label": _column(statement.label),
        "label_place": names.index(statement.label.column) - 2,
        "held": rows.held,
        "clipping": rows.clipping.value,
        "clip": rows.clip,
    }


def _column(feature: TrainingFeature) -> dict[str, Json]:
    return {"highest": feature.highest, "keys": feature.kind is FeatureKind.KEYS}
