"""Changes to the text of a dataset file that leave everything else as it was: comments, order, quotes.

Each change is made twice, to the values and to the text. The text is kept only when it reads as exactly those values;
where it does not (an unforeseen style of YAML), the caller gets None and writes the values out anew.
"""

from __future__ import annotations

import json
import re

import yaml

from server.datasets.finding import Path
from server.datasets.reading import Yaml, read, value_at

__all__ = ["Editing", "written_out"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


class Editing:
    """A dataset file under change. Requires: `text` was read without a finding and holds a mapping."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = yaml.compose(text, Loader=yaml.SafeLoader)
        self._edits: list[tuple[int, int, str]] = []
        self._lost = False
        self.data = _read(text)

    def value(self, path: Path) -> Yaml:
        """The value at a path, as it is after the changes so far; None where there is none."""
        return value_at(self.data, path)

    def add_first(self, path: Path, name: str, value: Yaml) -> None:
        """A new first entry of the mapping at `path`."""
        mapping = self.value(path)
        assert isinstance(mapping, dict)
        assert name not in mapping
        entries = dict(mapping)
        mapping.clear()
        mapping.update({name: value, **entries})
        node = self._node(path)
        if not isinstance(node, yaml.MappingNode) or not node.value:
            self._lost = True
        elif node.flow_style:
            self._insert(node.start_mark.index + 1, f"{json.dumps(name)}: {_flow(value)}, ")
        else:
            first = node.value[0][0].start_mark
            self._insert(first.index, f"{name}: {_flow(value)}\n{' ' * first.column}")

    def add_last(self, path: Path, name: str, value: Yaml) -> None:
        """A new last entry of the mapping at `path`: in a block, on a line of its own after the last value's line."""
        mapping = self.value(path)
        assert isinstance(mapping, dict)
        assert name not in mapping
        mapping[name] = value
        node = self._node(path)
        if not isinstance(node, yaml.MappingNode) or not node.value:
            self._lost = True
            return
        if node.flow_style:
            last = node.value[-1][1].end_mark.index
            self._insert(last, f", {name}: {_flow(value)}")
            return
        end = _end_of(node.value[-1][1])
        line = self._text.find("\n", end)
        line = len(self._text) if line < 0 else line
        self._insert(line, f"\n{' ' * node.value[0][0].start_mark.column}{name}: {_flow(value)}")

    def replace(self, path: Path, value: Yaml) -> None:
        """Another value instead of the one at `path`."""
        self._put(path, value)
        node = self._node(path)
        if node is None or (isinstance(node, yaml.CollectionNode) and not node.flow_style):
            self._lost = True
        else:
            self._edits.append((node.start_mark.index, node.end_mark.index, _flow(value)))

    def wrap_list(self, path: Path, name: str, **more: Yaml) -> None:
        """The list at `path` becomes a mapping that holds it under `name`, with further entries after it."""
        self._put(path, {name: self.value(path), **more})
        node = self._node(path)
        if not isinstance(node, yaml.SequenceNode):
            self._lost = True
        elif node.flow_style:
            self._insert(node.start_mark.index, f"{{{name}: ")
            self._insert(node.end_mark.index, "".join(f", {k}: {_flow(v)}" for k, v in more.items()) + "}")
        else:
            indent = " " * node.start_mark.column
            entries = "".join(f"{k}: {_flow(v)}\n{indent}" for k, v in more.items())
            self._insert(node.start_mark.index, f"{entries}{name}:\n{indent}")

    def text(self) -> str | None:
        """The changed text; None when it would not read as the changed values."""
        if self._lost:
            return None
        text = self._text
        for start, end, new in sorted(self._edits, reverse=True):
            text = text[:start] + new + text[end:]
        document = read(text.encode())
        return text if not document.findings and document.data == self.data else None

    def _insert(self, place: int, text: str) -> None:
        self._edits.append((place, place, text))

    def _put(self, path: Path, value: Yaml) -> None:
        parent = self.value(path[:-1])
        assert isinstance(parent, dict)
        parent[str(path[-1])] = value

    def _node(self, path: Path) -> yaml.Node | None:
        here = self._root
        for part in path:
            if isinstance(here, yaml.MappingNode):
                here = next((value for key, value in here.value if key.value == part), None)
            elif isinstance(here, yaml.SequenceNode) and isinstance(part, int):
                here = here.value[part] if part < len(here.value) else None
            else:
                return None
        return here if isinstance(here, yaml.Node) else None


def written_out(data: dict[str, Yaml]) -> str:
    """The values as YAML of our own writing, where the text could not be kept. Without its comments."""
    return "\n".join(_lines(data, "")) + "\n"


def _lines(value: dict[str, Yaml], indent: str) -> list[str]:
    lines = []
    for name, entry in value.items():
        if isinstance(entry, dict) and entry and any(isinstance(part, dict) for part in entry.values()):
            lines += [f"{indent}{_name(name)}:", *_lines(entry, indent + "  ")]
        else:
            lines.append(f"{indent}{_name(name)}: {_flow(entry)}")
    return lines


def _name(name: str) -> str:
    return name if _PLAIN.match(name) else _flow(name)


def _flow(value: Yaml) -> str:
    """A value on one line: JSON is YAML too, and exact numbers keep their digits."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_name(name)}: {_flow(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if value is None or isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _read(text: str) -> dict[str, Yaml]:
    document = read(text.encode())
    assert not document.findings
    assert isinstance(document.data, dict)
    return document.data


def _end_of(node: yaml.Node) -> int:
    """Where the last scalar or flow collection of a node ends: block collections end later, after comments."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return int(node.end_mark.index)
