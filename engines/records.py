"""JSON objects as frozen dataclasses: every field is checked against its declared type, or it is a malformed frame.

What a worker is asked and what it answers is declared once, as a dataclass; both sides read it here. Types of fields
are `str`, `int`, `bool`, `float`, unions of these, a `Literal`, an enumeration, another dataclass, a tuple or a
dictionary by names of all these, and any of them or None. A field with a default may be missing. Names that the
dataclass does not have are passed over.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from engines.frames import FrameFault
from privacy.values import Json

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["read_list", "read_record", "read_records", "write_record"]

_Record = TypeVar("_Record")
_Reader = Callable[[object], object]


def read_record(kind: Callable[..., _Record], document: object) -> _Record:
    """The object as a dataclass of that kind. Errors: FrameFault when a field is missing or not of its type."""
    if not isinstance(document, dict):
        raise FrameFault
    values = {name: read(document[name]) for name, read in _readers(kind).items() if name in document}
    try:
        return kind(**values)
    except TypeError:
        raise FrameFault from None


def read_records(kind: Callable[..., _Record], documents: object) -> list[_Record]:
    """A list of objects, each as `read_record` reads it."""
    return [read_record(kind, document) for document in read_list(documents)]


def write_record(record: DataclassInstance) -> dict[str, Json]:
    """A dataclass as the object that `read_record` reads."""
    return asdict(record, dict_factory=_named)


def _named(items: Iterable[tuple[str, Json | enum.Enum]]) -> dict[str, Json]:
    return {name: item.value if isinstance(item, enum.Enum) else item for name, item in items}


@functools.cache
def _readers(kind: Callable[..., object]) -> Mapping[str, _Reader]:
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}


def _reader(hint: object) -> _Reader:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple and arguments[-1] is Ellipsis:
        return functools.partial(_read_items, _reader(arguments[0]))
    if origin is tuple:
        return functools.partial(_read_row, [_reader(argument) for argument in arguments])
    if origin is dict:
        return functools.partial(_read_named, _reader(arguments[1]))
    if origin in (Union, UnionType):
        others = tuple(argument for argument in arguments if argument is not type(None))
        read = _reader(others[0]) if len(others) == 1 else functools.partial(_read_plain, others)
        return functools.partial(_read_optional, read) if len(others) < len(arguments) else read
    if origin is Literal:
        return functools.partial(_read_choice, arguments)
    assert isinstance(hint, type), hint
    if is_dataclass(hint):
        return functools.partial(read_record, hint)
    if issubclass(hint, enum.Enum):
        return functools.partial(_read_member, hint)
    assert hint in (str, int, bool, float), hint
    return functools.partial(_read_plain, (float, int) if hint is float else (hint,))


def _read_items(read: _Reader, value: object) -> tuple[object, ...]:
    return tuple(map(read, read_list(value)))


def _read_row(readers: list[_Reader], value: object) -> tuple[object, ...]:
    items = read_list(value)
    if len(items) != len(readers):
        raise FrameFault
    return tuple(read(item) for read, item in zip(readers, items, strict=True))


def _read_named(read: _Reader, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise FrameFault
    return {name: read(item) for name, item in value.items()}


def _read_optional(read: _Reader, value: object) -> object:
    return None if value is None else read(value)


def _read_choice(choices: tuple[object, ...], value: object) -> object:
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise FrameFault
    return value


def _read_member(kind: type[enum.Enum], value: object) -> enum.Enum:
    try:
        return kind(value)
    except ValueError:
        raise FrameFault from None


def _read_plain(kinds: tuple[type, ...], value: object) -> object:
    if type(value) not in kinds:
        raise FrameFault
    return value


def read_list(value: object) -> list[object] | tuple[object, ...]:
    """A list, whatever is in it. Errors: FrameFault."""
    if isinstance(value, dict):
        return tuple(value.items())  # an object may stand for its pairs
    if not isinstance(value, list | tuple):
        raise FrameFault
    return value
