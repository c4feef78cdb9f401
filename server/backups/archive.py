"""The file of a backup: a tar archive whose last member lists all others with their hashes.

Without that list a backup is not complete: whoever made it was interrupted. Nothing is taken from an archive before
every member agrees with the list.

Exception
  BackupRefused    a file that is no whole backup, or a place where none can be put
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Self

from privacy.refusal import Finding

__all__ = ["LEDGER", "BackupRefused", "Contents", "Packed", "Packer", "unpack"]

LEDGER = "ledger.sqlite"
"""The member that is the database, whatever kind of database it was copied from."""

_FOLDERS = ("datasets", "secrets", "snapshots")
_LIST = "contents.json"
_FORMAT = 1
_LIST_MAX = 16 << 20
_PIECE = 1 << 20


class BackupRefused(Exception):
    """What is wrong with a backup, or with where it shall go: what, why, and what to do instead (lines)."""

    def __init__(self, what: str, why: str, *instead: str) -> None:
        super().__init__(what)
        self.finding = Finding("command_failed", what, why, instead)


@dataclass(frozen=True, slots=True)
class Packed:
    """One member: its name in the archive, its length in bytes and the SHA-256 of its bytes."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What an archive says of itself.

    `made` is the time in UTC, `program` the version that made it, `revision` the schema of the database and `database`
    its kind; `ledger`, `sequence` and `hash` are the ledger's name and its head at that moment. `datasets` are those
    that were attached, `left_out` the folders that were not taken.
    """

    made: str
    program: str
    database: str
    revision: str
    ledger: str
    sequence: int
    hash: str
    datasets: tuple[str, ...]
    left_out: tuple[str, ...]


class Packer:
    """Writes an archive, readable by its owner only; it is there as a whole when the block ends, or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.part")
        self._part.unlink(missing_ok=True)
        self._file = os.fdopen(os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._tar = tarfile.TarFile(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)
        self._packed: list[Packed] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        if kind is not None:
            self._part.unlink(missing_ok=True)

    def add(self, name: str, file: Path) -> None:
        """Takes a file, as it is now. Errors: OSError."""
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            hashed = _Hashed(stream, size)
            self._tar.addfile(_member(name, size), hashed)
        self._packed.append(Packed(name, size, hashed.digest()))

    def finish(self, contents: Contents) -> None:
        """Writes the list, and puts the archive in its place, unless something is there. Errors: OSError."""
        listed = {"format": _FORMAT, **asdict(contents), "files": [asdict(one) for one in self._packed]}
        text = json.dumps(listed, indent=1).encode()
        self._tar.addfile(_member(_LIST, len(text)), io.BytesIO(text))
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        try:
            os.link(self._part, self._path)
        finally:
            self._part.unlink(missing_ok=True)


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


class _Hashed(io.RawIOBase):
    """The first bytes of a stream, hashed as they are read; a file that grows meanwhile is taken as it was."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left, self._hash = stream, size, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """At most `size` of the bytes that are left."""
        piece = self._stream.read(min(self._left if size < 0 else size, self._left))
        self._left -= len(piece)
        self._hash.update(piece)
        return piece

    def digest(self) -> str:
        """Of all that was read."""
        return self._hash.hexdigest()


def unpack(path: Path, folder: Path) -> Contents:
    """Writes the members of an archive into an empty folder, and checks each against the list.

    Errors: BackupRefused when it is no whole backup of a version that this program reads; OSError.
    """
    found: dict[str, Packed] = {}
    text = b""
    try:
        with tarfile.open(path, mode="r:") as tar:
            for member in tar:
                if text:
                    raise _damaged(path, "Something follows its list of contents.")
                stream = tar.extractfile(member)
                if stream is None or not member.isreg():
                    raise _damaged(path, "It has members that are no files.")
                if member.name == _LIST and member.size <= _LIST_MAX:
                    text = stream.read()
                else:
                    name = _checked_name(path, member.name, found)
                    found[name] = _written(stream, folder / name, name)
    except (tarfile.TarError, EOFError) as error:
        raise _damaged(path, "It is cut short, or no tar archive.") from error
    return _read_list(path, text, found)


def _checked_name(path: Path, name: str, found: Mapping[str, Packed]) -> str:
    parts = PurePosixPath(name).parts
    plain = "/".join(parts) == name and ".." not in parts and not name.startswith("/")
    if name in found or not plain or not (name == LEDGER or (len(parts) > 1 and parts[0] in _FOLDERS)):
        raise _damaged(path, "It has members that no backup has.")
    return name


def _written(stream: IO[bytes], target: Path, name: str) -> Packed:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        while piece := stream.read(_PIECE):
            digest.update(piece)
            size += len(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return Packed(name, size, digest.hexdigest())


def _read_list(path: Path, text: bytes, found: Mapping[str, Packed]) -> Contents:
    if not text:
        raise _damaged(path, "Its list of contents is missing: it was not made to its end.")
    try:
        listed = json.loads(text)
        version, files = listed.pop("format"), listed.pop("files")
        if version != _FORMAT:
            raise BackupRefused(
                f'cannot read the backup "{path}"',
                "A newer version of Noisegate made it.",
                "Restore it with the version that made it.",
            )
        wanted = [Packed(**one) for one in files]
        contents = Contents(**{**listed, **{name: tuple(listed[name]) for name in ("datasets", "left_out")}})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise _damaged(path, "Its list of contents cannot be read.") from None
    _require_same(path, wanted, found)
    return contents


def _require_same(path: Path, wanted: Sequence[Packed], found: Mapping[str, Packed]) -> None:
    if {one.name: one for one in wanted} != dict(found) or LEDGER not in found:
        other = sorted(
            {one.name for one in wanted if found.get(one.name) != one} | found.keys() - {one.name for one in wanted}
        )
        raise _damaged(path, f"What it holds is not what its list says: {', '.join(other[:3]) or LEDGER}.")


def _damaged(path: Path, why: str) -> BackupRefused:
    return BackupRefused(
        f'the file "{path}" is no whole backup', why, "Take another backup, or another copy of this one."
    )
