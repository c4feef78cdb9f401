"""Public keys of columns, and the group of all other values."""

from __future__ import annotations

from collections.abc import Sequence

from privacy.policy import ColumnType, KeyValue
from server.datasets.finding import Path
from server.datasets.keys import GATHERED_MAX, KEYS_MAX, parse_key, range_values
from server.datasets.meaning.judged import Judged
from server.datasets.model import VERSION, ColumnFile, KeysList, KeysOfTable, KeysRange
from server.datasets.shape import shown

__all__ = ["judge_keys"]


def judge_keys(judged: Judged, table_name: str, name: str, column: ColumnFile) -> None:
    """Finds what is wrong with a column's public keys."""
    path: Path = ("tables", table_name, "columns", name, "keys")
    called = f'column "{table_name}.{name}"'
    if column.keys is None:
        return
    kind = ColumnType(column.type)
    if kind is ColumnType.NUMBER:
        judged.problem(
            path,
            what=f"{called} of type number cannot have keys",
            why="Numbers with fractions are not compared exactly.",
            instead="Declare the column as integer or text, or group by an expression such as FLOOR(x / 10).",
        )
    elif isinstance(column.keys, KeysRange):
        try:
            range_values(column.keys.range, kind)
        except ValueError as error:
            judged.problem(
                path,
                what=f"the range of keys of {called} cannot be used",
                why=f"As given, {error}.",
                instead='Write {range: [0, 110]} or {range: ["2024-01-01", "2024-12-31"]}.',
            )
    elif isinstance(column.keys, KeysOfTable):
        _keys_of_table(judged, path, called, column, column.keys)
    elif isinstance(column.keys, KeysList):
        _keys_list(judged, (*path, "values"), called, kind, column.keys.values)
    else:
        _keys_list(judged, path, called, kind, column.keys)
    if isinstance(column.keys, KeysList | KeysRange | KeysOfTable) and "other" in column.keys.model_fields_set:
        _other(judged, (*path, "other"), called, kind, column.keys)


def _other(judged: Judged, path: Path, called: str, kind: ColumnType, keys: KeysList | KeysRange | KeysOfTable) -> None:
    """The group of all values that are not keys."""
    if judged.version_written() == 1:
        judged.problem(
            path,
            what=f'"other" of {called} is not known in files of version 1',
            why="There, values outside the keys have a meaning of their own.",
            instead=f"Write version: {VERSION} at the top, or see: noisegate dataset upgrade FILE.",
        )
    try:
        value = parse_key(keys.other, kind)
    except ValueError as error:
        judged.problem(
            path,
            what=f'"other" of {called} is not of its type',
            why=f"It is a group beside the keys, so it must be {error}, or null.",
            instead="Write a value that is none of the keys, or null to count such rows with the missing values.",
        )
        return
    listed = keys.values if isinstance(keys, KeysList) else []
    if value is not None and any(type(key) is type(keys.other) and key == keys.other for key in listed):
        judged.problem(
            path,
            what=f'"other" of {called} is one of its keys',
            why="Rows with that value and rows with unknown values would be one group.",
            instead="Write a value that is none of the keys, or null to count such rows with the missing values.",
        )
    if len(listed) > GATHERED_MAX:
        judged.problem(
            path,
            what=f"{called} has too many keys beside another group",
            why=f"Each row is compared with every key; the limit is {GATHERED_MAX}.",
            instead="Leave other out: then values outside the keys are refused when the data is attached.",
        )


def _keys_of_table(judged: Judged, path: Path, called: str, column: ColumnFile, keys: KeysOfTable) -> None:
    place = (*path, "table")
    if not judged.known_table(place, keys.table) or not judged.known_column((*path, "column"), keys.table, keys.column):
        return
    part = judged.tables.get(keys.table)
    if part is None:
        return
    if not part.public:
        judged.problem(
            place,
            what=f'the keys of {called} come from the protected table "{keys.table}"',
            why="Which values occur there is a fact about people; only public tables may give keys.",
            instead="List the keys, or declare the table public: true when everybody may know its rows.",
        )
    theirs = part.columns.get(keys.column)
    if theirs is not None and theirs.type != column.type:
        judged.problem(
            place,
            what=f'{called} is of type {column.type}, and "{keys.table}.{keys.column}" of type {theirs.type}',
            why="Keys have the type of their column.",
            instead="Declare both with the same type.",
        )


def _keys_list(judged: Judged, path: Path, called: str, kind: ColumnType, keys: Sequence[object]) -> None:
    if len(keys) > KEYS_MAX:
        judged.problem(
            path,
            what=f"{called} has too many keys",
            why=f"It lists {len(keys)}, and the limit is {KEYS_MAX}.",
            instead="Leave keys out, so that groups are shown above a threshold.",
        )
        return
    seen: dict[tuple[type, KeyValue], int] = {}
    for index, value in enumerate(keys):
        try:
            parsed = parse_key(value, kind)
        except ValueError as error:
            quoted = f' Write "{value}" in quotes.' if kind is ColumnType.TEXT and isinstance(value, int) else ""
            judged.problem(
                (*path, index),
                what=f"key {shown(value)} of {called} is not of its type",
                why=f"Keys of a column of type {kind.value} must each be {error}.",
                instead=f"Correct the key or the column's type.{quoted}",
            )
            continue
        first = seen.setdefault((type(parsed), parsed), index)
        if first != index:
            judged.problem(
                (*path, index),
                what=f"key {shown(value)} of {called} is listed twice",
                why="Each key is one row of the answer.",
                instead="Remove one of them.",
            )
