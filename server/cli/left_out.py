"""Lines for the owner on rows and texts that a snapshot does not keep: true counts, for administrators only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engines.stored import SnapshotReport

__all__ = ["left_out_lines"]


def left_out_lines(report: SnapshotReport) -> list[str]:
    """One line for each limit that left something out, and for values that are read as missing ones."""
    lines = []
    for table in report.tables:
        if table.rows_beyond:
            lines += [
                f"In table {table.name}, {table.rows_beyond:,} of {table.rows_read:,} rows were left out, and no "
                "answer counts them: see rows_stored_per_unit in docs/datasets.md."
            ]
        lines += [
            f"In table {table.name}, {count:,} texts of column {column} were cut: see length_max in docs/datasets.md."
            for column, count in table.texts_cut
        ]
        lines += [
            f"In table {table.name}, infinite or NaN values of column {column} are read as NULL: {count:,}."
            for column, count in table.non_finite
            if count
        ]
    return lines
