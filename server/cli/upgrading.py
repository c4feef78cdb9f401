"""`noisegate dataset upgrade`: what becomes of the file on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from server.cli.failure import CommandFailed, explained
from server.cli.output import printable, say

__all__ = ["UpgradedFile", "upgraded_file", "written"]


@dataclass(frozen=True, slots=True)
class UpgradedFile:
    """The text of today, and the file that gets it: the old one, or one beside it when the style could not be kept."""

    target: Path
    text: str
    version: int
    changes: tuple[str, ...]


def upgraded_file(file: Path) -> UpgradedFile:
    """What the upgrade would write. Nothing is written yet. Errors: CommandFailed."""
    from server.datasets import DatasetFileRefused, upgrade
    from server.datasets.model import VERSION
    from server.datasets.reading import SIZE_MAX

    with explained():
        with file.open("rb") as stream:
            content = stream.read(SIZE_MAX + 1)
        try:
            result = upgrade(content.decode("utf-8-sig", "surrogateescape"))
        except DatasetFileRefused as refused:
            for problem in refused.problems:
                if problem.severity == "error":
                    say("\n".join(printable(line) for line in str(problem).splitlines()), error=True)
            raise CommandFailed(
                f'could not upgrade "{file}": it has errors',
                why="Only a file without errors has a meaning that can be kept. The file stays as it is.",
                instead=f"Correct them, then see: noisegate dataset check {file}",
            ) from None
    target = file if result.kept else file.with_name(f"{file.stem}.v{VERSION}{file.suffix}")
    if target != file and target.exists():
        raise CommandFailed(
            f'"{target}" exists',
            why=f'The new text of "{file}" would be written there, because its style could not be kept.',
            instead="Move it away, then run the command again.",
        )
    return UpgradedFile(target, result.text, VERSION, result.changes)


def written(done: UpgradedFile) -> None:
    """Puts the text in its place, in one step; permissions of a file that is there stay. Errors: CommandFailed."""
    with explained():
        target = done.target.resolve()  # a link stays one
        temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            temporary.write_bytes(done.text.encode())
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
