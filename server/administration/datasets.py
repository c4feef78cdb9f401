"""Datasets: attaching a version and serving it no longer. The registry's log of acts gets one line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, assert_never

from privacy.policy import Dataset
from server.administration.refusal import (
    ActRefused,
    ChangedDataset,
    FaultyDataset,
    NoDataset,
    OtherDatasetName,
    ServedAlready,
    StoredVersion,
)
from server.services import DatasetRefused, OtherName, Registrar
from server.store.errors import NotReplaced, NotThere, VersionConflict
from server.store.versions import EITHER

__all__ = ["AttachDataset", "Document", "LocalFile", "Remover", "ServedFile", "attach", "remove"]


@dataclass(frozen=True, slots=True)
class Document:
    """A dataset file as JSON; its data files are in the home's folder of datasets."""

    content: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ServedFile:
    """The name of a dataset file in the home's folder of datasets."""

    name: str


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A dataset file anywhere on this machine: for its operator only."""

    path: Path


@dataclass(frozen=True, slots=True)
class AttachDataset:
    """A version to attach.

    `name` is what the dataset must be called, where that is fixed. `replaces` is what must be served under its name:
    the tag of a version, "*" for any, None for nothing, EITHER for no matter what.
    """

    source: Document | ServedFile | LocalFile
    name: str | None = None
    replaces: str | None = EITHER


class Remover(Protocol):
    """What stops serving a dataset."""

    def remove(self, name: str, *, actor: str, replaces: str = EITHER) -> None:
        """Stops serving it, where what is served is what `replaces` says. Errors: NotThere, NotReplaced."""


def attach(registrar: Registrar, request: AttachDataset, *, actor: str) -> Dataset:
    """Checks the file and every row, builds the snapshot, stores the version and serves it.

    What was served stays when it is refused. Raises ActRefused: FaultyDataset, ServedAlready, ChangedDataset,
    OtherDatasetName, StoredVersion.
    """
    try:
        match request.source:
            case Document(content):
                return registrar.register(content, actor=actor, name=request.name, replaces=request.replaces)
            case ServedFile(name):
                return registrar.register_file(name, actor=actor, name=request.name, replaces=request.replaces)
            case LocalFile(path):
                return registrar.attach_path(path, actor=actor, name=request.name, replaces=request.replaces)
            case _:
                assert_never(request.source)
    except DatasetRefused as refused:
        raise ActRefused(FaultyDataset(refused.findings)) from None
    except OtherName:
        raise ActRefused(OtherDatasetName()) from None
    except NotReplaced as served:
        new = request.replaces is None
        raise ActRefused(ServedAlready(served.name, served.tag) if new else ChangedDataset(served.name)) from None
    except VersionConflict:
        raise ActRefused(StoredVersion()) from None


def remove(
    remover: Remover, name: str, *, served: Callable[[], Iterable[str]], actor: str, replaces: str = EITHER
) -> None:
    """Stops serving a dataset. Its budgets, entries and releases stay.

    `replaces` is what must be served: the tag of a version, "*" for any, EITHER for no matter what.
    Raises ActRefused: NoDataset, ChangedDataset.
    """
    try:
        remover.remove(name, actor=actor, replaces=replaces)
    except NotThere:
        raise ActRefused(NoDataset(name, tuple(served()))) from None
    except NotReplaced:
        raise ActRefused(ChangedDataset(name)) from None
