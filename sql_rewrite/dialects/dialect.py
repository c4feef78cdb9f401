"""What every dialect is: a writer for each kind of node, found by the node's class."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import TypeVar

from sql_rewrite import layer_values, relations, scalars
from sql_rewrite.dialects.costs import EngineCosts
from sql_rewrite.scalars import EngineType, Node

__all__ = ["Dialect", "kinds", "writes"]

D = TypeVar("D", bound="Dialect")
N = TypeVar("N", bound=Node)

_KIND = "_writes"


def writes(kind: type[N]) -> Callable[[Callable[[D, N], str]], Callable[[D, N], str]]:
    """Marks a method of a dialect as the writer of one kind of node."""

    def mark(method: Callable[[D, N], str]) -> Callable[[D, N], str]:
        setattr(method, _KIND, kind)
        return method

    return mark


def kinds() -> list[type[Node]]:
    """Every kind of node, in the order of their modules."""
    members = [*vars(scalars).values(), *vars(layer_values).values(), *vars(relations).values()]
    defined = [member for member in members if isinstance(member, type) and issubclass(member, Node)]
    return list(dict.fromkeys(kind for kind in defined if is_dataclass(kind)))


class Dialect:
    """Writes trees as one engine's SQL. Stateless: the same text for the same tree, always.

    A subclass has a method marked by `writes` for every kind of node. Errors: TypeError, when it is defined, for a kind
    that none of its methods writes. One that is only a `part` of a dialect leaves kinds to its own subclass.
    """

    types: Mapping[EngineType, str]
    """The engine's names of types."""

    costs: EngineCosts
    """How long the engine takes for what is written."""

    _writers: dict[type[Node], Callable[..., str]] = {}  # noqa: RUF012 - each subclass makes its own

    def __init_subclass__(cls, *, part: bool = False) -> None:
        marked = {getattr(member, _KIND): member for member in vars(cls).values() if hasattr(member, _KIND)}
        cls._writers = {**cls._writers, **marked}
        missing = [] if part else [kind.__name__ for kind in kinds() if kind not in cls._writers]
        if missing:
            raise TypeError(f"{cls.__name__} writes no {', '.join(missing)}")

    def write(self, node: Node) -> str:
        """The node, and everything below it, as text."""
        return self._writers[type(node)](self, node)
