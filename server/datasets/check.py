"""Checks a dataset file as a whole and reports every finding at once.

Three stages, and each looks at whatever the one before could read: the YAML text (`reading`), the shape (`shape`), and
the meaning (`meaning`). A part with a wrong shape is left out of the third stage, so that it is reported once, and the
rest is still judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path as FilePath

from privacy.refusal import Finding
from server.datasets.finding import ERROR, DatasetFileRefused, is_error
from server.datasets.meaning import Headers, check_meaning
from server.datasets.model import DatasetFile
from server.datasets.reading import SIZE_MAX, read
from server.datasets.shape import check_shape

__all__ = ["check", "check_text", "load", "load_stored", "load_text"]


def load(path: FilePath | str, *, confined: bool = False) -> DatasetFile:
    """The dataset file at `path`.

    `confined` refuses data files outside the dataset file's own folder: for callers who may not name any file.
    Errors: DatasetFileRefused with every finding; OSError when it cannot be read.
    """
    path = FilePath(path)
    return _accept(*_check(_bytes(path), path.parent, confined=confined))


def load_text(
    text: str, *, directory: FilePath | None = None, confined: bool = False, sources: bool = True
) -> DatasetFile:
    """As `load`, for a text. Data files are looked for in `directory`, or not at all when it is None.

    Without `sources` nothing is judged that the text says about data files.
    """
    return _accept(*_check(text.encode("utf-8", "surrogatepass"), directory, confined=confined, sources=sources))


def load_stored(document: Mapping[str, object]) -> DatasetFile:
    """The dataset file that the registry keeps of an attached dataset.

    What it says about data files is not judged: they were read when it was attached, and may be anywhere by now.
    Errors: DatasetFileRefused with every finding.
    """
    return load_text(json.dumps(document), sources=False)


def check(path: FilePath | str, *, headers: Headers | None = None) -> list[Finding]:
    """Every finding in the dataset file at `path`, errors and warnings, in the order of the file. Never raises.

    With `headers`, which reports the names of columns in data files, declared columns are looked for in them.
    """
    path = FilePath(path)
    try:
        content = _bytes(path)
    except OSError as error:
        return [
            Finding(
                ERROR,
                what=f'could not read the dataset file "{path}"',
                why=f"The system says: {error.strerror or 'no such file'}.",
                instead=("Check the path and its permissions, or make a file with: noisegate init DATAFILE.",),
            )
        ]
    return _check(content, path.parent, confined=False, headers=headers)[1]


def check_text(text: str, *, directory: FilePath | None = None) -> list[Finding]:
    """As `check`, for a text. Without a `directory` data files are not looked for."""
    return _check(text.encode("utf-8", "surrogatepass"), directory, confined=False)[1]


def _bytes(path: FilePath) -> bytes:
    with path.open("rb") as stream:
        return stream.read(SIZE_MAX + 1)


def _accept(file: DatasetFile | None, findings: list[Finding]) -> DatasetFile:
    if file is None or any(map(is_error, findings)):
        raise DatasetFileRefused(findings)
    return file


def _check(
    content: bytes,
    directory: FilePath | None,
    *,
    confined: bool,
    headers: Headers | None = None,
    sources: bool = True,
) -> tuple[DatasetFile | None, list[Finding]]:
    document = read(content)
    file = None
    if isinstance(document.data, dict) and not document.broken:
        file, parts = check_shape(document)
        check_meaning(document, parts, directory, confined=confined, headers=headers, sources=sources)
    findings = sorted(document.findings, key=_in_order)
    if any(map(is_error, findings)):
        file = None
    return file, findings


def _in_order(finding: Finding) -> tuple[int, int]:
    position = finding.position
    return (0, 0) if position is None else (position.line, position.column)
