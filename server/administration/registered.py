"""The served datasets as the registry knows them: for a process that serves none, such as a command."""

from __future__ import annotations

from dataclasses import dataclass

from server.store.registry import Registry
from server.store.versions import EITHER, version_tag

__all__ = ["RegisteredDatasets"]


@dataclass(frozen=True, slots=True)
class RegisteredDatasets:
    """Names and tags of the served datasets, and their removal. No snapshot is opened: it may be lost."""

    registry: Registry

    def names(self) -> tuple[str, ...]:
        """Names of the served datasets, in order."""
        return tuple(version.name for version in self.registry.datasets())

    def tag(self, name: str) -> str | None:
        """The tag of the version that is served under the name, None for nothing."""
        tags = {
            version.name: version_tag(version.policy_version, version.data_version)
            for version in self.registry.datasets()
        }
        return tags.get(name)

    def remove(self, name: str, *, actor: str, replaces: str = EITHER) -> None:
        """Stops serving a dataset; servers notice it by themselves. Errors: NotThere, NotReplaced."""
        self.registry.remove_dataset(name, actor=actor, replaces=replaces)
