"""Levels of groups beside aggregates that are releases of their own (apart.py).

    SELECT ward, MODE(sex), COUNT(*) FROM visits GROUP BY ROLLUP (ward)
    a:  SELECT ward, GROUPING(ward), COUNT(*) FROM visits GROUP BY GROUPING SETS ((ward), ())
    b:  SELECT ward, 0, MODE(sex) FROM visits GROUP BY ward UNION ALL SELECT NULL, 1, MODE(sex) FROM visits

Each block has the rows of all levels, and the number that GROUPING gives of all keys, by which a group of NULL differs
from a level without the key: rows are joined on the keys and that number. A histogram's counts are those of the levels
with its value as a further key of each, so they add up over the levels as other counts do. The most frequent value of a
level does not follow from those of a finer one: each level is a choice of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from sql_rewrite.levels import GROUPINGS, levels_of
from sql_rewrite.refuse import refuse
from sql_rewrite.text import Text

__all__ = ["ApartLevels", "apart_levels"]


@dataclass(frozen=True, slots=True)
class ApartLevels:
    """The levels of a block: its keys, and of each level the places of those that it groups by."""

    keys: tuple[exp.Expr, ...]
    sets: tuple[tuple[int, ...], ...]

    def which(self) -> exp.Expr:
        """The number that tells levels apart."""
        return exp.Grouping(expressions=[key.copy() for key in self.keys])

    def group(self, *also: exp.Expr) -> exp.Group:
        """GROUP BY of all levels, each with further keys."""
        levels = [
            exp.Tuple(expressions=[*(self.keys[place].copy() for place in places), *(one.copy() for one in also)])
            for places in self.sets
        ]
        return exp.Group(expressions=[exp.GroupingSets(expressions=levels)])

    def one_by_one(
        self, rows: Callable[[], exp.Select], shown: Callable[[int, exp.Expr], exp.Expr]
    ) -> list[exp.Select]:
        """A block for each level, over `rows`, with the keys and its number as they are `shown` at their places."""
        found = []
        for places in self.sets:
            block = rows()
            values = [key.copy() if place in places else exp.Null() for place, key in enumerate(self.keys)]
            values.append(exp.Literal.number(_bits(range(len(self.keys)), places)))
            block.set("expressions", [shown(place, value) for place, value in enumerate(values)])
            if places:
                block.set("group", exp.Group(expressions=[self.keys[place].copy() for place in places]))
            found.append(block)
        return found

    def grouping(self, node: exp.Expr, number: exp.Expr) -> exp.Expr | None:
        """GROUPING of some of the keys by the number of the level; None for anything else."""
        if not isinstance(node, GROUPINGS) or any(one not in self.keys for one in node.expressions):
            return None
        wanted = [self.keys.index(one) for one in node.expressions]
        known = {_bits(range(len(self.keys)), places): _bits(wanted, places) for places in self.sets}
        ifs = [exp.If(this=exp.Literal.number(level), true=exp.Literal.number(value)) for level, value in known.items()]
        return exp.Case(this=number.copy(), ifs=ifs)


def _bits(wanted: range | list[int], places: tuple[int, ...]) -> int:
    """A bit for each of the keys, the first one the highest: whether a level does not group by it."""
    return sum(1 << at for at, place in enumerate(reversed(wanted)) if place not in places)


def apart_levels(node: exp.Select, call: exp.Expr, text: Text, resolved: Callable[[exp.Expr], exp.Expr]) -> ApartLevels:
    """The levels of a block whose aggregate `call` is set apart. `resolved` gives the key that an item stands for.

    Errors: Refused.
    """
    levels = levels_of(node, text)
    different = levels is not None and len(set(map(frozenset, levels.sets))) == len(levels.sets)
    if levels is None or not levels.keys or not different:
        raise refuse(
            "unsupported_sql",
            "levels of groups beside such an aggregate are refused in this form",
            "A level is there twice, or there is no key: rows of blocks that are released apart are joined by their "
            "level.",
            "write each level once",
            position=text.position(call),
        )
    return ApartLevels(tuple(resolved(key) for key in levels.keys), levels.sets)
