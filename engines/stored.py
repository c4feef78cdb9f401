"""A finished snapshot: its file, the manifest beside it with its report, and how both become visible.

The manifest comes last, so that a snapshot with one is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from engines.frames import FrameFault
from engines.records import read_record, read_records, write_record
from privacy.policy import Dataset
from privacy.stored_norms import KeptTotal

__all__ = [
    "Snapshot",
    "SnapshotReport",
    "TableReport",
    "open_snapshot",
    "public_columns",
    "publish",
    "snapshot_file",
    "stored_norms",
    "stored_totals",
    "stored_units",
    "sweep",
]

FORMAT: Final = 1
_STALE_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True, repr=False)
class TableReport:
    """Counts of one table, true values: for administrators only. `non_finite` counts NaN and infinities by column.

    `rows_beyond` are rows that were left out because their unit has more than `rows_stored_per_unit`, `texts_cut`
    counts by column the texts that were longer than `length_max`.
    """

    name: str
    rows_read: int
    rows_stored: int
    rows_without_unit: int
    non_finite: tuple[tuple[str, int], ...]
    rows_beyond: int = 0
    texts_cut: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class SnapshotReport:
    """What was read, true counts: for administrators only."""

    units: int
    tables: tuple[TableReport, ...]

    def left_out(self) -> Iterator[dict[str, str | int]]:
        """What the limits of rows and texts left out: table, limit, rows, and the column where one was cut."""
        for table in self.tables:
            if table.rows_beyond:
                yield {"table": table.name, "limit": "rows_stored_per_unit", "rows": table.rows_beyond}
            for column, count in table.texts_cut:
                yield {"table": table.name, "limit": "length_max", "column": column, "rows": count}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One immutable version of a dataset's data."""

    path: Path
    data_version: str
    report: SnapshotReport


def snapshot_file(folder: Path, data_version: str) -> Path:
    """Where the snapshot of a version of the data is."""
    return folder / f"{data_version}.duckdb"


def open_snapshot(path: Path) -> Snapshot | None:
    """The complete snapshot at that path with its report, or None."""
    try:
        manifest = _manifest(path)
        if manifest["format"] != FORMAT or manifest["bytes"] != path.stat().st_size:
            return None
        if manifest["data_version"] != path.stem:
            return None
        return Snapshot(path, path.stem, read_record(SnapshotReport, manifest))
    except (OSError, ValueError, LookupError, FrameFault):
        return None


def public_columns(path: Path) -> dict[str, dict[str, str]]:
    """The public tables of a snapshot: the type of each column. Empty where no manifest says it."""
    try:
        public = _manifest(path)["public"]
        assert isinstance(public, dict)
        return {name: dict(columns) for name, columns in public.items()}
    except (OSError, ValueError, LookupError):
        return {}


def stored_norms(path: Path) -> dict[str, tuple[str, ...]]:
    """For each table of a snapshot that keeps norms of units (privacy/stored_norms.py) the columns of their squares.

    Empty where the manifest says nothing of them: the snapshots of earlier versions.
    """
    try:
        norms = _manifest(path)["norms"]
        assert isinstance(norms, dict)
        return {name: tuple(columns) for name, columns in norms.items()}
    except (OSError, ValueError, LookupError):
        return {}


def stored_totals(path: Path) -> dict[str, tuple[KeptTotal, ...]]:
    """For each table of a snapshot the totals that it keeps. Empty where the manifest says nothing of them."""
    try:
        totals = _manifest(path)["totals"]
        assert isinstance(totals, dict)
        return {name: tuple(read_records(KeptTotal, listed)) for name, listed in totals.items()}
    except (OSError, ValueError, LookupError, FrameFault):
        return {}


def stored_units(path: Path) -> frozenset[str]:
    """The tables of a snapshot beside which it keeps those of their units. None where the manifest says nothing."""
    try:
        units = _manifest(path)["units_of"]
        assert isinstance(units, list)
        return frozenset(units)
    except (OSError, ValueError, LookupError, TypeError):
        return frozenset()


def _manifest(path: Path) -> dict[str, object]:
    manifest = json.loads(_manifest_path(path).read_text())
    if not isinstance(manifest, dict):
        raise ValueError("a manifest is an object")  # noqa: TRY004 -- it was read, and it is damaged
    return manifest


def _manifest_path(path: Path) -> Path:
    return path.with_suffix(".json")


def publish(
    built: Path,
    path: Path,
    dataset: Dataset,
    report: SnapshotReport,
    *,
    norms: Mapping[str, Sequence[str]],
    totals: Mapping[str, Sequence[KeptTotal]],
) -> None:
    """Make the finished file visible under its version: durable first, then renamed; the manifest comes last.

    `norms` lists for each table that keeps norms of its units the columns of their squares, `totals` its totals;
    beside each of them are the tables of its units.
    """
    os.chmod(built, 0o400)
    _sync(built)
    manifest = {
        "format": FORMAT,
        "data_version": path.stem,
        "bytes": built.stat().st_size,
        "units": report.units,
        "tables": [
            asdict(table) | {"non_finite": dict(table.non_finite), "texts_cut": dict(table.texts_cut)}
            for table in report.tables
        ],
        "public": {
            table.name: {column.name: column.type.value for column in table.columns}
            for table in dataset.tables
            if not table.protected
        },
        "norms": norms,
        "units_of": sorted(norms),
        "totals": {name: [write_record(total) for total in listed] for name, listed in totals.items()},
    }
    os.replace(built, path)
    descriptor, name = tempfile.mkstemp(prefix=".manifest-", dir=path.parent)
    with os.fdopen(descriptor, "w") as handle:
        json.dump(manifest, handle, indent=1)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(name, _manifest_path(path))
    _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(directory: Path) -> None:
    """Remove what a killed server left behind: hidden names that are older than an hour and that nothing uses."""
    for pattern in (".open-*/snapshot.duckdb", ".manifest-*"):
        for path in directory.glob(pattern):
            with contextlib.suppress(OSError):
                # A hard link has the age of the snapshot; its folder has its own.
                age_of = path.parent if path.name == "snapshot.duckdb" else path
                if time.time() - age_of.lstat().st_mtime > _STALE_SECONDS:
                    path.unlink()
    for path in directory.glob(".open-*"):
        with contextlib.suppress(OSError):
            path.rmdir()
