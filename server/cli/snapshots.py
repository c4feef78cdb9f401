"""Snapshots that a home needs and has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.failure import CommandFailed

if TYPE_CHECKING:
    from server.settings import Settings
    from server.store.registry import Registry

__all__ = ["lost_failure", "lost_snapshots"]


def lost_snapshots(settings: Settings, registry: Registry) -> list[str]:
    """Names of served datasets whose snapshot is missing or is not what was stored."""
    from engines.snapshot import open_snapshot

    return [
        version.name
        for version in registry.datasets()
        if open_snapshot(settings.snapshots_directory / version.name / f"{version.data_version}.duckdb") is None
    ]


def lost_failure(name: str) -> CommandFailed:
    """The message about such a dataset."""
    return CommandFailed(
        f'the snapshot of dataset "{name}" is missing or damaged',
        why="Queries run on it, and it is not what was stored. The ledger is not touched.",
        instead=(
            "Make it again: noisegate dataset add FILE, with the dataset file that you attached,",
            f"or stop serving it: noisegate dataset remove {name} (what was spent on it stays known).",
        ),
    )
