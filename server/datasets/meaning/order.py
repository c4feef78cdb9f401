"""The order in which the parts of a file are judged."""

from __future__ import annotations

from pathlib import Path as FilePath

from server.datasets.finding import WARNING
from server.datasets.meaning.judged import Judged
from server.datasets.meaning.policy import judge_policy
from server.datasets.meaning.sources import Headers, judge_source_columns
from server.datasets.meaning.tables import judge_table
from server.datasets.meaning.units import judge_unit, judge_way
from server.datasets.model import VERSION
from server.datasets.reading import Document, entries
from server.datasets.shape import Parts

__all__ = ["check_meaning"]


def check_meaning(
    document: Document,
    parts: Parts,
    directory: FilePath | None,
    *,
    confined: bool,
    headers: Headers | None = None,
    sources: bool = True,
) -> None:
    """Adds every finding about the parts that have the right shape.

    Data files are looked for in `directory` (not at all when it is None), and when `confined` only there. `headers`
    reports the names of the columns in data files; without it only their first bytes are read. Without `sources`
    nothing that is declared about data files is judged.
    """
    judged = Judged(document, parts.unit, parts.tables, directory, confined=confined, sources=sources)
    _version(judged)
    judged.same_names((), "tables", list(judged.raw))
    judged.same_names((), "statistics", list(entries(judged.data.get("statistics"))))
    for name, table in judged.tables.items():
        judge_table(judged, name, table)
    judge_unit(judged)
    for name, table in judged.tables.items():
        judge_way(judged, name, table)
    if headers is not None and directory is not None:
        judge_source_columns(judged, headers, directory)
    if parts.policy is not None:
        judge_policy(judged, parts.policy)


def _version(judged: Judged) -> None:
    written = judged.version_written()
    if written < VERSION:
        judged.problem(
            ("version",) if "version" in judged.data else (),
            code=WARNING,
            what=f"the file is of version {written}, and the current version is {VERSION}",
            why="It is read with the meaning that it had; what is new cannot be declared in it.",
            instead="Rewrite it, with the same meaning: noisegate dataset upgrade FILE.",
        )
