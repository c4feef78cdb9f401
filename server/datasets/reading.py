"""YAML text to plain values with the place of each: a small, closed part of YAML.

Only mappings, lists and scalars. Tags, anchors, aliases and several documents are refused, so a file can neither
build objects nor grow when it is read. Plain scalars follow the core schema of YAML 1.2: only `true` and `false` are
booleans (`no` and `on` stay text), numbers are decimal and exact (`Decimal`, never a float), dates stay text, and
names (the left sides) are always text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import yaml

from privacy.refusal import Finding, Position
from server.datasets.finding import ERROR, Path

__all__ = ["DEPTH_MAX", "SIZE_MAX", "Document", "Yaml", "entries", "read", "value_at"]

Yaml = None | bool | int | str | Decimal | list["Yaml"] | dict[str, "Yaml"]
"""A value of a dataset file."""

SIZE_MAX = 256 * 1024
"""Largest dataset file, in bytes."""

DEPTH_MAX = 12
"""Deepest nesting; the deepest thing a dataset file has is 7 levels in."""

_DIGITS_MAX = 40
_EXPONENT_MAX = 300
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+\Z", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE]([-+]?[0-9]+))?\Z", re.ASCII)
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z", re.ASCII)


@dataclass(slots=True)
class Document:
    """The values of a file, and the line and column (from 1) of everything in it.

    A mapping's entry is placed at its name, a list's entry at its value. `broken` is True when reading stopped early.
    """

    data: Yaml = None
    positions: dict[Path, tuple[int, int]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    broken: bool = False

    def problem(
        self,
        path: Path,
        *,
        what: str,
        why: str,
        instead: str,
        code: str = ERROR,
        at: tuple[int, int] | None = None,
    ) -> None:
        """Adds a finding at `path`; when the path itself is not in the file, at the nearest place around it."""
        position = at
        around = path
        while position is None and around:
            position = self.positions.get(around)
            around = around[:-1]
        found = Finding(
            code,
            what,
            why,
            (instead,),
            position=None if position is None else Position(*position, ""),
            field=".".join(str(part) for part in path) or None,
        )
        if found not in self.findings:
            self.findings.append(found)


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read."""

    path: Path
    value: dict[str, Yaml] | list[Yaml]
    name: str | None = None
    waiting: bool = True  # a mapping that waits for a name
    skip: bool = False  # the entry's name is a repetition: read it, drop it


def value_at(data: Yaml, path: Path) -> Yaml:
    """The value at a path; None where there is none."""
    for part in path:
        if isinstance(data, dict):
            data = data.get(str(part))
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def entries(value: Yaml) -> dict[str, Yaml]:
    """The entries of a mapping; none where the value is something else."""
    return value if isinstance(value, dict) else {}


class _Stop(Protocol):
    """Reports why reading stops."""

    def __call__(self, *, what: str, why: str, instead: str, at: tuple[int, int] | None = None) -> Document: ...


def read(content: bytes) -> Document:
    """Reads a dataset file's bytes. Never raises for bad content: findings are in the document's `findings`."""
    document = Document()

    def stop(*, what: str, why: str, instead: str, at: tuple[int, int] | None = None) -> Document:
        document.problem((), what=what, why=why, instead=instead, at=at)
        document.broken = True
        return document

    if len(content) > SIZE_MAX:
        return stop(
            what="the dataset file is too large",
            why=f"The limit is {SIZE_MAX} bytes; a description of a dataset is a page or two.",
            instead="Refer to long lists of keys by a public table: keys: {table: ..., column: ...}.",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return stop(
            what="the dataset file is not UTF-8 text",
            why="It has bytes that no UTF-8 text has; it may be a data file instead of the file that describes it.",
            instead="Save it as UTF-8, or make one with: noisegate init DATAFILE.",
        )
    try:
        _compose(text, document, stop)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = None if mark is None else (mark.line + 1, mark.column + 1)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it does not follow the grammar"
        return stop(
            what="the dataset file is not valid YAML",
            why=f"Reading stopped here: {reason}.",
            instead="Check indentation (spaces, no tabs), colons followed by a space, and quotes.",
            at=at,
        )
    if not document.broken and not isinstance(document.data, dict):
        return stop(
            what="the dataset file does not describe a dataset",
            why="It is empty, a list or a single value, and a dataset file is a mapping of names to values.",
            instead="Start with the lines dataset:, unit: and tables:, or make a file with: noisegate init DATAFILE.",
        )
    return document


def _compose(text: str, document: Document, stop: _Stop) -> None:
    """Builds the values from the parser's events in one pass, without recursion."""
    stack: list[_Open] = []
    documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        at = (event.start_mark.line + 1, event.start_mark.column + 1) if event.start_mark else None
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                stop(
                    what="the file holds more than one document",
                    why="A dataset file describes one dataset, and everything after --- would be left out.",
                    instead="Put each dataset into a file of its own.",
                    at=at,
                )
                return
        if isinstance(event, yaml.AliasEvent) or (isinstance(event, yaml.NodeEvent) and event.anchor is not None):
            stop(
                what="anchors and aliases (& and *) are not read",
                why="They can make a small file grow without limit.",
                instead="Write the value out at each place.",
                at=at,
            )
            return
        if getattr(event, "tag", None) is not None:
            stop(
                what="tags (words that begin with !) are not read",
                why="They ask the reader to build an object of some other type.",
                instead="Leave the tag out; put quotes around a text that looks like a number.",
                at=at,
            )
            return
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            assert at is not None
            if len(stack) >= DEPTH_MAX:
                stop(
                    what="the dataset file is nested too deeply",
                    why=f"Nothing in a dataset file is more than {DEPTH_MAX} levels deep.",
                    instead="Look for brackets that are not closed, or for wrong indentation.",
                    at=at,
                )
                return
            container: dict[str, Yaml] | list[Yaml] = {} if isinstance(event, yaml.MappingStartEvent) else []
            if stack and isinstance(stack[-1].value, dict) and stack[-1].waiting:
                stop(
                    what="a name is missing before a colon",
                    why="A mapping or a list stands where a name is expected.",
                    instead="Write name: value, with a name that is plain text.",
                    at=at,
                )
                return
            path = _place(stack, container, at, document)
            stack.append(_Open(path, container))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            stack.pop()
            if not stack:
                continue
        elif isinstance(event, yaml.ScalarEvent):
            assert at is not None
            if stack and isinstance(stack[-1].value, dict) and stack[-1].waiting:
                _name(stack[-1], event.value, at, document)
            else:
                _place(stack, _scalar(event, stack, at, document), at, document)


def _name(parent: _Open, name: str, at: tuple[int, int], document: Document) -> None:
    assert isinstance(parent.value, dict)
    path = (*parent.path, name)
    parent.name, parent.waiting, parent.skip = name, False, name in parent.value
    if parent.skip:
        line = document.positions[path][0]
        document.problem(
            path,
            what=f'"{name}" is given twice',
            why=f"It stands on line {line} already, and only one of the two could count.",
            instead="Remove one of them.",
            at=at,
        )
    else:
        document.positions[path] = at


def _place(stack: list[_Open], value: Yaml, at: tuple[int, int], document: Document) -> Path:
    """Puts a value where it belongs and returns its path."""
    if not stack:
        document.data = value
        return ()
    parent = stack[-1]
    if isinstance(parent.value, list):
        path = (*parent.path, len(parent.value))
        parent.value.append(value)
        document.positions.setdefault(path, at)
        return path
    assert parent.name is not None
    # A repeated entry is read under a path of its own, so that its findings do not point at the first one.
    path = (*parent.path, parent.name) if not parent.skip else (*parent.path, f"{parent.name} (again)")
    if not parent.skip:
        parent.value[parent.name] = value
    parent.waiting = True
    return path


def _scalar(event: yaml.ScalarEvent, stack: list[_Open], at: tuple[int, int], document: Document) -> Yaml:
    text: str = event.value
    if event.style is not None:  # quoted or a block: always text
        return text
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _SPECIAL.match(text):
        return (
            Decimal("NaN") if text.lower().endswith("nan") else Decimal("-Infinity" if text[0] == "-" else "Infinity")
        )
    number = _NUMBER.match(text)
    if number is None:
        return text
    exponent = number.group(1) or "0"
    if len(text) > _DIGITS_MAX or abs(int(exponent)) > _EXPONENT_MAX:
        parent = stack[-1] if stack else _Open((), [])
        path = (*parent.path, parent.name if parent.name is not None else len(parent.value))
        document.problem(
            path,
            what="a number is too long",
            why=f"It has more than {_DIGITS_MAX} characters or an exponent beyond {_EXPONENT_MAX}.",
            instead="Write a number of ordinary size; put quotes around it when it is a text.",
            at=at,
        )
        return None
    return int(text) if _INTEGER.match(text) else Decimal(text)
