"""Released groups in the private part of a later stage: rows joined by public keys, and released lists in IN.

    SELECT COUNT(*) FROM people AS p JOIN (SELECT region, AVG(income) AS a FROM people GROUP BY region) AS r
    ON p.region = r.region WHERE p.income > r.a
    core c1:  people where CASE region WHEN 'North' THEN there@0 WHEN ... ELSE FALSE END
              and income > CASE region WHEN 'North' THEN a0@0 WHEN ... END

Claim. The rows of the later core are those of the join, or of the condition, with the released rows. Proof: the groups
are public, so all that may be there are known from text and declarations, each has one row at most, and its key is
compared with an expression of a row. The row that is met is that of the only group whose key is equal; whether it is
there, and each of its values, is a released value (stage_values.py). So the join is a function of the row and of
released values: it repeats no row, and the rows stay unit-local. NULL equals nothing: the group of NULL meets no row.
Hidden groups are those of a released list (stage_hidden.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from privacy.policy import ColumnType, KeyValue
from sql_rewrite.expressions import Expression, Literal
from sql_rewrite.functions import build
from sql_rewrite.plan import Arrangement
from sql_rewrite.stage_values import released_flag

__all__ = ["CELLS_MAX", "EVERY", "Cells", "StageTable", "cell_name", "flags_of", "list_name", "listed_in"]

CELLS_MAX = 100
"""Most groups of a released table that a later stage reads: each is a branch of its expressions."""

EVERY = "there"
"""The list of all groups that a core releases."""

_FALSE = Literal(value=False, type=ColumnType.BOOLEAN)
_TRUE = Literal(value=True, type=ColumnType.BOOLEAN)
_UNKNOWN = Literal(None, ColumnType.BOOLEAN)


def cell_name(name: str, place: int, of: str = "") -> str:
    """The name of a column, or of a list, for one group: its place among those that may be there.

    Where groups are hidden, places are those of a list, which stands before it.
    """
    return f"{name}@{of}.{place}" if of else f"{name}@{place}"


def list_name(arrangement: Arrangement) -> str:
    """The name of the list of groups that an arrangement shows: it follows from all that decides it."""
    return "list" + hashlib.sha256(repr(arrangement).encode()).hexdigest()[:24]


Cells = tuple[tuple[Expression, ...], ...]
"""The keys of groups: constants, or released values where they are hidden (stage_hidden.py)."""


@dataclass(frozen=True, slots=True)
class StageTable:
    """The rows that a core with groups releases: `cells` are the keys of all that may be there, in their order.

    `keys` are names of columns with the place of their key in a cell; `values` those of others, with one expression
    over released values for each cell. `there` says of each cell whether its row is shown, and is never NULL; `chosen`
    that it may leave out rows which the core releases (HAVING, LIMIT), so that their values are not NULL by themselves.

    Keys of `hidden` groups are released values too, and NULL beyond the last one, where `there` is false.
    """

    core: str
    cells: Cells
    kinds: tuple[ColumnType, ...]
    keys: tuple[tuple[str, int], ...]
    values: tuple[tuple[str, tuple[Expression, ...]], ...]
    there: tuple[Expression, ...]
    chosen: bool = False
    hidden: bool = False

    def where(self, conditions: Sequence[Expression]) -> StageTable:
        """The rows of which a condition is true; there is one for each cell."""
        both = zip(conditions, self.there, strict=True)
        return replace(self, there=tuple(_case([(one, flag)], _FALSE) for one, flag in both), chosen=True)

    def columns(self, place: int) -> dict[str, Expression]:
        """What the columns of one row are, by their names in small letters; the first one of a name."""
        cell = self.cells[place]
        keys = [(name, cell[at]) for name, at in self.keys]
        found: dict[str, Expression] = {}
        for name, value in (*keys, *((name, of_cells[place]) for name, of_cells in self.values)):
            found.setdefault(name.lower(), value)
        return found

    def has(self, value: Expression, *, loose: bool) -> Expression:
        """Whether a value is among the only key of its rows, as IN says it; of hidden ones `loose` leaves out NULL."""
        keys = [key for (key,) in self.cells]
        if self.hidden:
            return _hidden_in(value, self.there, keys, loose=loose)
        return listed_in(value, self.there, [_constant(key) for key in keys])

    def joined(
        self, outside: Sequence[Expression], *, outer: bool
    ) -> tuple[Expression | None, tuple[tuple[str, Expression], ...]]:
        """What joining says of a row: the condition under which it is kept, and the columns that it gets.

        `outside` are what the keys of a cell are compared with, of their types. `outer` keeps rows that meet none.
        """
        met = [
            (place, self._met(outside, cell))
            for place, cell in enumerate(self.cells)
            if not any(isinstance(key, Literal) and key.value is None for key in cell)
        ]
        flags = [self.there[place] for place, _ in met]
        there = _case([(match, flag) for (_, match), flag in zip(met, flags, strict=True)], _FALSE)
        columns: list[tuple[str, Expression]] = []
        for name, place in self.keys:
            found = outside[place]
            columns.append((name, build("case", (there, found, Literal(None, found.type))) if outer else found))
        for name, of_cells in self.values:
            nothing = Literal(None, of_cells[0].type)
            branches = [(match, of_cells[place]) for place, match in met]
            if outer and self.chosen:
                branches = [
                    (match, _case([(flag, value)], nothing))
                    for (match, value), flag in zip(branches, flags, strict=True)
                ]
            columns.append((name, _case(branches, nothing)))
        return None if outer else there, tuple(columns)

    def _met(self, outside: Sequence[Expression], cell: Sequence[Expression]) -> Expression:
        """Whether the keys of a cell are equal to what they are compared with."""
        parts = [build("=", (one, key)) for one, key in zip(outside, cell, strict=True)]
        return parts[0] if len(parts) == 1 else build("and", tuple(parts))


def flags_of(core: str, name: str, cells: int) -> tuple[Expression, ...]:
    """Of each group of a core whether it is in a list."""
    return tuple(released_flag(core, cell_name(name, place)) for place in range(cells))


def listed_in(value: Expression, flags: Sequence[Expression], cells: Sequence[KeyValue]) -> Expression:
    """Whether a value is among the released keys of a list, as IN says it: NULL where a NULL decides. Every input.

    `flags` say which of the `cells` the list has.
    """
    null = next((flag for flag, key in zip(flags, cells, strict=True) if key is None), None)
    absent: Expression = _FALSE if null is None else _case([(null, _UNKNOWN)], _FALSE)
    branches: list[tuple[Expression, Expression]] = []
    if value.nullable:
        branches.append((build("is_null", (value,)), _case([(_any(flags), _UNKNOWN)], _FALSE)))
    for flag, key in zip(flags, cells, strict=True):
        if key is not None:
            there = flag if null is None else _case([(flag, _TRUE)], absent)
            branches.append((build("=", (value, Literal(key, value.type))), there))
    return _case(branches, absent)


def _hidden_in(
    value: Expression, flags: Sequence[Expression], keys: Sequence[Expression], *, loose: bool
) -> Expression:
    """As `listed_in`, of keys that are released themselves: a NULL among them is there where its flag says so.

    `loose` says FALSE for NULL.
    """
    found = [build("and", (flag, build("=", (value, key)))) for flag, key in zip(flags, keys, strict=True)]
    if loose:
        return _case([(_any(found), _TRUE)], _FALSE)
    nulls = [build("and", (flag, build("is_null", (key,)))) for flag, key in zip(flags, keys, strict=True)]
    absent = _case([(_any(nulls), _UNKNOWN)], _FALSE)
    branches: list[tuple[Expression, Expression]] = []
    if value.nullable:
        branches.append((build("is_null", (value,)), _case([(_any(flags), _UNKNOWN)], _FALSE)))
    branches += [(one, _TRUE) for one in found]
    return _case(branches, absent)


def _any(flags: Sequence[Expression]) -> Expression:
    return flags[0] if len(flags) == 1 else build("or", tuple(flags))


def _constant(key: Expression) -> KeyValue:
    assert isinstance(key, Literal)
    assert not isinstance(key.value, float)
    return key.value


def _case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    if not branches:
        return otherwise
    return build("case", (*(part for branch in branches for part in branch), otherwise))
