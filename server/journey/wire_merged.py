"""Which groups of an answer were merged, as JSON: what the rows mean."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction

from mechanisms.released_table import ReleasedTable
from privacy.numbers import decimal_text
from privacy.policy import KeyValue
from privacy.refusal import Finding
from server.arranging import arranged
from server.journey.merging import MergedRows, forest_of
from server.journey.query import Prepared
from sql_rewrite.plan import Shell
from sql_rewrite.released import ROW

__all__ = ["merged_json", "merged_warnings", "merging_json"]

_WORDS = (
    "Groups whose interval was wider than asked were merged by their noisy numbers, so which ones were says little by "
    "itself. Intervals hold for all rows that might have been shown at once."
)


def merged_json(merged: MergedRows, prepared: Prepared, table: ReleasedTable) -> dict[str, object]:
    """The member `merged` of an answer; `rows` are places in its rows."""
    (core,) = prepared.cores
    texts = {aggregate.name: aggregate.text for aggregate in core.core.aggregates}
    places = {row: place for place, row in enumerate(_order(prepared.plan.shell, table))}
    return {
        "relative": decimal_text(merged.relative),
        "key": _key_text(prepared, merged.forest.key),
        "by": texts.get(merged.column, merged.column),
        "groups": sum(len(row.cells) for row in merged.rows),
        "intervals_at_once": merged.forest.nodes,
        "rows": [
            {
                "row": places[number],
                "level": row.level,
                "groups": len(row.cells),
                **_meaning(values, rest=bool(row.whole)),
            }
            for number, (row, values) in enumerate(zip(merged.rows, merged.values, strict=True))
            if len(row.cells) > 1
        ],
        "unmet": sorted(places[number] for number, row in enumerate(merged.rows) if not row.met),
        "words": _WORDS,
    }


def merged_warnings(merged: MergedRows) -> tuple[Finding, ...]:
    """Says in formats that have no room for `merged` that keys stand for several values."""
    several = sum(len(row.cells) > 1 for row in merged.rows)
    if not several:
        return ()
    found = Finding(
        code="groups_merged",
        what=f"{several:,} of the rows stand for several groups",
        why="Groups less exact than asked were merged. The key shows the first of their values, or other.",
        instead=("read merged of the answer in JSON: it lists what each row stands for",),
    )
    return (found,)


def _meaning(values: Sequence[KeyValue], *, rest: bool) -> dict[str, object]:
    """The values of the key that a row stands for: both ends where they are in an order."""
    if rest or isinstance(values[0], str):
        return {"values": [_plain(value) for value in values]}
    ordered = sorted(values, key=lambda value: value.isoformat() if isinstance(value, datetime.date) else value or 0)
    return {"from": _plain(ordered[0]), "to": _plain(ordered[-1])}


def _plain(value: KeyValue) -> object:
    return value.isoformat() if isinstance(value, datetime.date) else value


def _order(shell: Shell, table: ReleasedTable) -> list[int]:
    """The rows of the table in the order of the answer."""
    if shell.arrangement is None:
        return list(range(table.rows))
    place = shell.arrangement.columns.index(ROW)
    return [int(str(row[place])) for row in arranged(table, shell.arrangement)]


def _key_text(prepared: Prepared, key: int) -> str:
    """The name of the key in the answer, or in its release where the answer does not show it."""
    (core,) = prepared.cores
    name = core.described.keys.columns[key].name
    return next((one.name for one in prepared.plan.shell.outputs if one.column == name), name)


def merging_json(relative: Fraction, prepared: Prepared) -> dict[str, object]:
    """The member `merging` of an estimate: what may be merged."""
    (core,) = prepared.described
    forest = forest_of(core)
    return {
        "relative": decimal_text(relative),
        "key": _key_text(prepared, forest.key),
        "levels": list(forest.levels),
        "intervals_at_once": forest.nodes,
    }
