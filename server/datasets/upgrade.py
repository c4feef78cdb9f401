"""Older dataset files rewritten to the current version, with the same meaning.

A step of `STEPS` writes down what an older file left to a rule that has changed. What a file of version 1 means is
never changed by its upgrade: data that was attached with it is attached with the new one, and answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from server.datasets.check import load_text
from server.datasets.editing import Editing, written_out
from server.datasets.finding import Path
from server.datasets.model import VERSION
from server.datasets.reading import entries

__all__ = ["STEPS", "Upgraded", "upgrade"]

Step = Callable[[Editing], Iterator[str]]


def _say_where_other_values_count(editing: Editing) -> Iterator[str]:
    """Version 1 verified listed texts alone; of other keys it left rows out of every group, which no longer happens."""
    for name, table in entries(editing.data["tables"]).items():
        for column, declared in entries(entries(table)["columns"]).items():
            path: Path = ("tables", name, "columns", column, "keys")
            keys = editing.value(path)
            if isinstance(keys, list) and entries(declared)["type"] != "text":
                editing.wrap_list(path, "values", other=None)
            elif isinstance(keys, dict):
                editing.add_last(path, "other", None)
            else:
                continue
            yield (
                f"{name}.{column}: values that are none of its keys count in the group NULL (other: null). Where there "
                "are none, remove it: then that is verified when the data is attached."
            )


_SHARED = ("policy", "releases_shared")


def _name_sharing(editing: Editing) -> Iterator[str]:
    """`true` is called free now, because there is a third way that charges the reader."""
    if editing.value(_SHARED) is True:
        editing.replace(_SHARED, "free")
        yield (
            "policy.releases_shared: true is called free now: an analyst reads what others paid for without paying, "
            "so a personal limit does not bound what they read. Write charged to debit the reader's own accounts."
        )


STEPS: tuple[Step, ...] = (_say_where_other_values_count, _name_sharing)
"""From version 1 to version 2. Each yields what it changed, one sentence for the owner of the file per change."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A dataset file at the current version.

    `kept` says that the text is the old one but for the changes; otherwise it was written anew, without comments.
    `changes` is empty when the file was of this version already: `text` is then the old one.
    """

    text: str
    kept: bool
    changes: tuple[str, ...]


def upgrade(text: str) -> Upgraded:
    """The file at the current version. Its data files are not looked at. Errors: DatasetFileRefused."""
    file = load_text(text, sources=False)
    if file.version == VERSION:
        return Upgraded(text, kept=True, changes=())
    editing = Editing(text.removeprefix("\ufeff"))
    changes = [sentence for step in STEPS for sentence in step(editing)]
    if "version" in editing.data:
        editing.replace(("version",), VERSION)
    else:
        editing.add_first((), "version", VERSION)
    edited = editing.text()
    new = written_out(editing.data) if edited is None else edited
    assert load_text(new, sources=False).version == VERSION
    return Upgraded(new, kept=edited is not None, changes=(f"version: {VERSION} is written.", *changes))
