"""What is judged: the parts of a file that have the right shape, and the names that are known in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from privacy.wording import nearest
from server.datasets.finding import ERROR, Path
from server.datasets.model import VERSION, ColumnFile, TableFile, UnitFile
from server.datasets.reading import Document, Yaml, entries

__all__ = ["Judged"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A file under judgement. `document` collects the findings; `sound` the tables whose data files begin as their
    formats do.

    Data files are looked for in `directory` (not at all when it is None), and when `confined` only there. Without
    `sources` nothing that is declared about data files is judged.
    """

    document: Document
    unit: UnitFile | None
    tables: dict[str, TableFile]
    directory: FilePath | None
    confined: bool
    sources: bool
    sound: list[str] = field(default_factory=list)

    @property
    def data(self) -> dict[str, Yaml]:
        """The file as it was read."""
        return entries(self.document.data)

    # Known names come from the raw data: a column with a wrong shape is reported as that, not as missing.

    @property
    def raw(self) -> dict[str, Yaml]:
        """The tables as they were read."""
        return entries(self.data.get("tables"))

    def problem(self, path: Path, *, what: str, why: str, instead: str, code: str = ERROR) -> None:
        """Adds a finding to the document."""
        self.document.problem(path, what=what, why=why, instead=instead, code=code)

    def version_written(self) -> int:
        written = self.data.get("version", 1)
        return written if isinstance(written, int) else VERSION

    def written(self, path: Path) -> bool:
        """Whether something is at the path in the file, whatever its shape."""
        return path in self.document.positions

    def raw_columns(self, table: str) -> list[str]:
        return list(entries(entries(self.raw.get(table)).get("columns")))

    def column(self, table: str, column: str) -> ColumnFile | None:
        part = self.tables.get(table)
        return part.columns.get(column) if part is not None else None

    def known_table(self, path: Path, table: str) -> bool:
        if table in self.raw:
            return True
        near = nearest(table, list(self.raw))
        self.problem(
            path,
            what=f'table "{table}" is not in this file',
            why="A table that is not listed does not exist; names are compared letter by letter.",
            instead=f'Did you mean "{near}"?' if near else f"Listed are: {', '.join(self.raw) or 'none'}.",
        )
        return False

    def known_column(self, path: Path, table: str, column: str) -> bool:
        known = self.raw_columns(table)
        if column in known:
            return True
        if not known:
            return False  # the table has no columns, and that is reported already
        near = nearest(column, known)
        self.problem(
            path,
            what=f'column "{column}" is not in table "{table}"',
            why="A column that is not listed does not exist; names are compared letter by letter.",
            instead=f'Did you mean "{near}"?' if near else f"Listed are: {', '.join(known[:30]) or 'none'}.",
        )
        return False

    def same_names(self, above: Path, part: str, names: Sequence[str]) -> None:
        seen: dict[str, str] = {}
        for name in names:
            first = seen.setdefault(name.lower(), name)
            if first != name:
                self.problem(
                    (*above, part, name),
                    what=f'"{first}" and "{name}" differ only in upper and lower case',
                    why="SQL does not distinguish such names.",
                    instead="Rename one of them, in the data file too.",
                )

    def key_type(self, path: Path, table: str, column: str) -> None:
        part = self.column(table, column)
        if part is not None and part.type in ("number", "boolean"):
            self.problem(
                path,
                what=f'column "{table}.{column}" of type {part.type} cannot be a key',
                why="Fractions are not compared exactly, and true and false name two rows at most.",
                instead="Use a column of type integer, text, date or timestamp.",
            )
