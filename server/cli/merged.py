"""What a terminal says of rows that stand for several groups."""

from __future__ import annotations

from server.cli.output import Json, printable

__all__ = ["merged_lines"]

_SHOWN = 12


def merged_lines(merged: Json | None) -> list[str]:
    """Which rows of an answer stand for several groups, and which are less exact than asked; none where none may."""
    if not merged:
        return []
    rows = merged["rows"]
    lines = [f"{len(rows):,} of the rows stand for several values of {printable(merged['key'])}:"] if rows else []
    lines += [f"  row {row['row'] + 1}: {_values(row)} ({row['groups']:,} groups)" for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"  ... and {len(rows) - _SHOWN:,} more (--json shows all)")
    if merged["unmet"]:
        lines.append(f"{len(merged['unmet']):,} of the rows are less exact than asked, and have nothing to merge with.")
    return lines


def _values(row: Json) -> str:
    if "from" in row:
        return f"{printable(row['from'])} to {printable(row['to'])}"
    values = [printable(value) for value in row["values"]]
    return ", ".join(values[:4]) + (", ..." if len(values) > 4 else "")
