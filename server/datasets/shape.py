"""The second stage: whether each part of the file has the shape of `model`, in words for the author of the file."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from privacy.wording import nearest, shortened
from server.datasets.finding import Path
from server.datasets.identifiers import column_name_for, identifier_for, is_identifier
from server.datasets.model import VERSION, ColumnFile, DatasetFile, PolicyFile, SourceFile, TableFile, UnitFile
from server.datasets.reading import Document, Yaml, entries, value_at

_Model = TypeVar("_Model", bound=BaseModel)

__all__ = ["PLACEHOLDER", "Parts", "check_shape", "shown"]

PLACEHOLDER = "\0"
"""Stands for a source file whose description could not be read."""


@dataclass(slots=True)
class Parts:
    """What has the right shape."""

    unit: UnitFile | None
    tables: dict[str, TableFile]
    policy: PolicyFile | None


def check_shape(document: Document) -> tuple[DatasetFile | None, Parts]:
    """Validates the whole, then what is left when everything that is wrong has been taken out."""
    try:
        file = DatasetFile.model_validate(document.data)
    except ValidationError as error:
        for item in error.errors(include_url=False, include_context=True):
            _explain(document, item)
    else:
        return file, Parts(file.unit, dict(file.tables), file.policy)
    data = entries(document.data)
    tables = {}
    for name, table in entries(data.get("tables")).items():
        pruned = _prune(TableFile, table)
        if pruned is not None and is_identifier(name):
            tables[name] = pruned
    return None, Parts(
        unit=_prune(UnitFile, data.get("unit")),
        tables=tables,
        policy=_prune(PolicyFile, data.get("policy", {})),
    )


def _prune(model: type[_Model], data: Yaml) -> _Model | None:
    """The part without its wrong entries, or None when nothing is left that has the shape."""
    if not isinstance(data, dict):
        return None
    left = copy.deepcopy(data)
    for _ in range(100):
        try:
            return model.model_validate(left)
        except ValidationError as error:
            changed = False
            for item in error.errors(include_url=False, include_context=False):
                changed |= _remove(left, item)
            if not changed:
                return None
    return None


def _remove(data: dict[str, Yaml], item: ErrorDetails) -> bool:
    """Takes the smallest optional thing around one finding out of the data. Returns whether something was taken."""
    path = _path(data, item["loc"])
    if item["loc"][:1] == ("source",):
        if data.get("source") == {"file": PLACEHOLDER}:
            return False
        data["source"] = {"file": PLACEHOLDER}
        return True
    # Entries of lists cannot be taken out one by one (the others would move), so the list goes as a whole.
    while path and isinstance(path[-1], int):
        path = path[:-1]
    # Inside a column or a contribution, what is missing or wrong takes its nearest optional part away.
    if path[:1] == ("columns",) and len(path) >= 2:
        optional = len(path) >= 3 and path[2] in ("bounds", "keys", "description", "source_name", "length_max")
        known = path[2:3] and path[2] in ColumnFile.model_fields
        path = path[:3] if optional or (len(path) >= 3 and not known) else path[:2]
    elif path[:1] == ("contribution",):
        path = path[:1]
    elif path[:1] == ("references",):
        path = path[:2]
    if not path:
        return False
    parent, name = entries(value_at(data, path[:-1])), str(path[-1])
    if name not in parent:
        return False  # taken out with another finding
    del parent[name]
    return True


def _path(data: Yaml, location: Sequence[int | str]) -> Path:
    """The part of an error's location that is in the data (the others name branches of a union)."""
    path: Path = ()
    for part in location:
        here = value_at(data, path)
        if isinstance(here, list):
            inside = isinstance(part, int) and part < len(here)
        else:
            inside = part in entries(here)
        if inside:
            path = (*path, part)
    return path


_WANTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping (name: value)",
    "model_type": "a mapping (name: value)",
    "number_type": "a number",
}

_NAMES: dict[str, tuple[str, ...]] = {
    "": tuple(DatasetFile.model_fields),
    "unit": tuple(UnitFile.model_fields),
    "policy": tuple(PolicyFile.model_fields),
}


def _explain(document: Document, item: ErrorDetails) -> None:
    """Turns one finding of the model into words for the author of the file."""
    path = _path(document.data, item["loc"])
    what, why, instead = _words(item, path, value_at(document.data, path))
    document.problem(path, what=what, why=why, instead=instead)


def _words(item: ErrorDetails, path: Path, value: Yaml) -> tuple[str, str, str]:
    """What is wrong, why it is, and what to write instead."""
    location, kind, context = item["loc"], item["type"], item.get("ctx", {})
    last = location[-1] if location else ""
    name = _called(path)
    if kind == "missing":
        missing = str(last)
        return (
            f'"{missing}" is missing' + (f" in {name}" if path else ""),
            _MISSING.get(missing, "Nothing can be assumed in its place."),
            _EXAMPLES.get(missing, f"Add {missing}: ..."),
        )
    if kind == "extra_forbidden":
        known = _known_names(path)
        near = nearest(str(last), known)
        return (
            f'unknown name "{last}"' + (f" in {_called(path[:-1])}" if len(path) > 1 else ""),
            "A misspelt protection would silently not protect, so every name must be known.",
            (f'Did you mean "{near}"? ' if near else "") + f"Known here: {', '.join(known)}.",
        )
    if kind == "string_pattern_mismatch" or last == "[key]":
        return (
            f"{name} is not a name that can be used" if last == "[key]" else f"{name} cannot be {shown(value)}",
            "Names have letters A to Z, digits and underscores, no digit first, and 63 characters at most.",
            _identifier_hint(path, str(path[-1] if last == "[key]" else value)),
        )
    if path == ("version",):
        return (
            f"version {shown(value)} of dataset files is not known",
            f"This server reads versions 1 to {VERSION}; the file may be of a newer one.",
            f"Write version: {VERSION}, or use the server for which the file was written.",
        )
    if kind == "literal_error":
        choices = str(context.get("expected", ""))
        options = re.findall(r"'([^']*)'", choices)
        near = nearest(str(value), options)
        return (
            f"{name} cannot be {shown(value)}",
            "It is not one of the known choices.",
            (f'Did you mean "{near}"? ' if near else "") + f"Write one of: {', '.join(options)}.",
        )
    if path[:1] == ("policy",) and kind == "string_type":
        return (
            f"{name} must be a decimal written as text",
            "A number without quotes may be rounded on its way, and budgets are exact.",
            f'Write it in quotes: {path[-1]}: "{shown(value, bare=True)}".',
        )
    if kind in ("finite_number",):
        return (
            f"{name} cannot be {shown(value)}",
            "Noise is proportional to the bounds, so a bound is an ordinary number.",
            "Write a number that every plausible value stays within.",
        )
    wanted = _WANTED.get(kind)
    message = f"must be {wanted}" if wanted else _limit(kind, context) or _lower(item["msg"])
    return (
        f"{name} {message}" + (f", and it is {shown(value)}" if wanted else ""),
        _REASONS.get(kind, "The file is read strictly: nothing is converted or guessed."),
        _EXAMPLES.get(str(path[-1]) if path else "", "See docs/datasets.md for each name and its values."),
    )


_MISSING = {
    "unit": "Without it nobody knows whose presence is protected.",
    "tables": "A table that is not listed does not exist.",
    "columns": "A column that is not listed does not exist.",
    "type": "Types are declared, never guessed from rows.",
    "dataset": "Analysts name the dataset in their queries.",
    "source": "The rows must come from somewhere.",
}

_EXAMPLES = {
    "unit": "Add: unit: {table: people, key: person_id}.",
    "tables": "Add: tables: with one entry per table.",
    "columns": "Write: columns: {age: {type: integer, bounds: [0, 110]}}.",
    "type": "Write one of: integer, number, text, boolean, date, timestamp.",
    "dataset": "Add: dataset: a_short_name.",
    "source": "Write: source: {file: people.csv}.",
    "rows": "Write rows: true when each row is one unit, or key: COLUMN when a column names the unit.",
    "source_name": "Write the name in quotes, as the header of the data file has it.",
    "bounds": "Write the lowest and the highest plausible value: bounds: [0, 110].",
    "keys": "Write keys: [a, b], keys: {range: [0, 110]} or keys: {table: regions, column: name}.",
    "contribution": "Write: contribution: auto, or "
    "contribution: {rows_per_unit: 40, groups_per_unit: 4, rows_per_unit_and_group: 15}.",
    "rows_per_unit": "Write a whole number of 1 or more.",
    "groups_per_unit": "Write a whole number of 1 or more.",
    "rows_per_unit_and_group": "Write a whole number of 1 or more.",
    "rows_stored_per_unit": "Write a whole number of 1 or more, for instance 10000.",
    "rows_expected": "Write about how many rows the table has, for instance 200000.",
    "length_max": "Write a whole number of characters, for instance 200.",
    "references": "Write: references: {patient_id: patients.patient_id}.",
}

_REASONS = {
    "too_short": "Something is missing in it.",
    "too_long": "There is more in it than its meaning allows.",
    "greater_than_equal": "Smaller values have no meaning here.",
    "less_than_equal": "Larger values are beyond what the server accepts.",
}


def _known_names(path: Path) -> tuple[str, ...]:
    """The names that may stand beside the last part of the path."""
    above = [part for part in path[:-1] if isinstance(part, str)]
    if not above:
        return _NAMES[""]
    if above[0] in _NAMES:
        return _NAMES[above[0]]
    if above[0] == "tables" and len(above) == 2:
        return tuple(TableFile.model_fields)
    if above[-1] == "source":
        return tuple(SourceFile.model_fields)
    if above[-1] == "contribution":
        return ("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group")
    if above[-1] == "keys":
        return ("values", "range", "table", "column", "other")
    return tuple(ColumnFile.model_fields)


def _called(path: Path) -> str:
    """What a place in the file is called in a sentence."""
    match path:
        case ("tables", table):
            return f'table "{table}"'
        case ("tables", table, "columns", column):
            return f'column "{table}.{column}"'
        case ("tables", table, "columns", column, part, *_):
            return f'"{part}" of column "{table}.{column}"'
        case ("tables", table, part, *rest):
            return f'"{".".join(str(name) for name in (part, *rest))}" of table "{table}"'
        case ():
            return "the file"
    return f'"{".".join(str(part) for part in path)}"'


def shown(value: object, *, bare: bool = False) -> str:
    """A value of the file as a message shows it: texts shortened, and in quotes unless `bare`."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = shortened(str(value))
    return text if bare or not isinstance(value, str) else f'"{text}"'


def _limit(kind: str, context: Mapping[str, object]) -> str:
    """The message for a limit that was exceeded; empty for other findings."""
    match kind:
        case "greater_than_equal":
            return f"must be {context['ge']} or more"
        case "less_than_equal":
            return f"must be {context['le']} or less"
        case "too_short":
            return f"must have {context['min_length']} or more entries, and it has {context['actual_length']}"
        case "too_long":
            return f"must have {context['max_length']} entries or fewer, and it has {context['actual_length']}"
        case "string_too_long":
            return f"must have {context['max_length']} characters or fewer"
        case "string_too_short":
            return "must not be empty"
    return ""


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")


def _identifier_hint(path: Path, text: str) -> str:
    if path[:1] == ("tables",) and path[2:3] == ("columns",) and len(path) == 4:
        # Quoted as in JSON, which is YAML too.
        return (
            f"Give it a name for SQL, and say what it is called in the data file: "
            f"{column_name_for(text)}: {{source_name: {json.dumps(text, ensure_ascii=False)}, type: ...}}."
        )
    return f'Rename it, for instance "{identifier_for(text)}".'
