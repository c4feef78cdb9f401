"""The rows of a core as a box of cells: what its sums are of the finest cells that conditions and keys tell apart.

    SELECT COUNT(*) FROM people                                   all cells
    SELECT COUNT(*) FROM people WHERE age < 40                    those of some values of age, added up
    SELECT age < 40, sex, COUNT(*) FROM people GROUP BY ALL       blocks of values of age, by values of sex
    SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 50       an overlapping range of the same cells

A *place* is a column whose public values a condition or a key can be evaluated for (or a key that is none, as it is). A
box says of each of its values in which block of the core it is, or that the core leaves it out; cells of the core are
the products of blocks. Of a number, a date or a timestamp whose values are not public, conditions and keys that compare
it with constants alone are the same for all values between two of these: its "values" are then the constants and the
gaps between them (a *line*, sql_rewrite/lines.py), which `aligned` makes equal for several boxes. Boxes of the same
rows, without all such conditions, have the same `wide`.

**Claim.** Let x be the sums of a statistic over the finest cells (products of values) of the rows without those
conditions. The sums of a core with a box are A x, where A has a row for each product of its blocks, with ones for the
cells within: each unit adds to A x what the core's own bounds let it add. **Proof.** A row is in one cell, and
satisfies the conditions, and has a key, exactly when its values are in the block (finer_groups.py: values are closed,
the evaluator is the engine bit for bit for exact operators). `wide` names rows, bounds, unit and data, so that bounds
are equal. They hold a unit to the same in each core, whatever rows the conditions leave it: it has one row, or every
column of a place reads what is the same in all rows of a unit, which are then in one cell; a core has all of them
there or none. QED. So a total less a part is what the other rows add: of units with rows in both, each would be held
to its bounds by itself, the difference would be another number, and neither has a box.

What is linear in x is estimated from any of them (mechanisms/least_squares.py).
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from privacy.policy import ColumnType, Dataset, KeyValue
from privacy.refusal import Refused
from sql_rewrite.bounded import BoundedCore
from sql_rewrite.contribution import Contribution
from sql_rewrite.evaluate import as_key, closed_domain, evaluate, is_exact, is_quick
from sql_rewrite.expressions import Call, ColumnRef, Expression, Literal, Value, columns_of, form_of, walk
from sql_rewrite.finer_groups import VALUES_MAX, coarse_of, key_digest, values_of_key
from sql_rewrite.functions import build
from sql_rewrite.lines import LINES, may_lack, place_of, value_at
from sql_rewrite.reachable import conjuncts
from sql_rewrite.unit_facts import steady_relations

__all__ = ["ATOMS_MAX", "Box", "Equations", "Sum", "aligned", "box_of", "equations", "rows_within"]

_ENDS_MAX = 64
"""Most constants that one column is compared with."""

ATOMS_MAX = 64
"""Most sets of cells that the boxes of one estimate tell apart."""

_SUMS_MAX = 256
"""Most sums of one release that are looked at for one estimate."""

_OUT = -1


@dataclass(frozen=True, slots=True)
class Box:
    """What a core's cells are, by place: the block of each value, or -1. `keys` are the places of its keys, in order.

    With each key goes the number of its values. A place that is not named leaves nothing out and tells nothing apart.
    """

    places: Mapping[str, tuple[int, ...]]
    keys: tuple[tuple[str, int], ...]
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The constants of places that are lines, in order. Their values are: what is below, then each constant and what is
    above it, up to the next one; NULL last, where it may be."""

    @property
    def grouped(self) -> frozenset[str]:
        """The places by which it groups."""
        return frozenset(name for name, _ in self.keys)


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of some cells of a core: the atoms that it is of, and the values of each key whose cells are added up."""

    atoms: frozenset[int]
    picked: tuple[tuple[int, ...], ...]

    @property
    def cells(self) -> int:
        """How many cells of the core are added up."""
        return math.prod(map(len, self.picked))

    def rows(self, sizes: Sequence[int]) -> list[int]:
        """Their rows, where all combinations of so many values of each key are listed in order."""
        return [_row(one, sizes) for one in itertools.product(*self.picked)]


@dataclass(frozen=True, slots=True)
class Equations:
    """Sums of several cores in atoms, which are the sets of cells that all of them treat alike."""

    wanted: frozenset[int]
    sums: tuple[tuple[Sum, ...], ...]


def box_of(bounded: BoundedCore, dataset: Dataset) -> tuple[str, Box] | None:
    """The rows of a core without the conditions that can be evaluated, and its box in them; None where it has none."""
    core, contribution, cells = bounded.core, bounded.contribution, bounded.described.keys.domain
    if not isinstance(contribution, Contribution) or cells is None:
        return None
    domains = [tuple(dict.fromkeys(cell[place] for cell in cells)) for place in range(len(core.keys))]
    if list(cells) != list(itertools.product(*domains)):
        return None
    told: dict[object, tuple[ColumnRef, list[Expression]]] = {}
    rest = []
    for part in () if core.where is None else conjuncts(core.where):
        column = _column_of(part) or _line_of(part)
        if column is None:
            rest.append(part)
        else:
            told.setdefault(form_of(column), (column, []))[1].append(part)
    by_key = [_column_of(key) or _line_of(key) for _, key in core.keys]
    known = [column for column in by_key if column is not None]
    for column in known:
        told.setdefault(form_of(column), (column, []))
    where = build("and", rest) if len(rest) > 1 else rest[0] if rest else None
    wide = coarse_of(bounded, dataset, where)
    read = [column for column, _ in told.values()] + [ref for _, key in core.keys for ref in columns_of(key)]
    steady = steady_relations(core.sources)
    if wide is None or len({form_of(one) for one in known}) < len(known):
        return None
    if not contribution.one_row and any(ref.relation not in steady for ref in read):
        return None
    places, keys, lines = dict[str, tuple[int, ...]](), list[tuple[str, int]](), dict[str, tuple[int, ...]]()
    names = {}
    try:
        for form, (column, conditions) in told.items():
            at = next((place for place, one in enumerate(by_key) if one is not None and form_of(one) == form), None)
            expression = None if at is None else core.keys[at][1]
            if _is_open(column):
                read_here = [*conditions, *(() if expression is None else (expression,))]
                name, ends = _line(column, dataset), _ends(read_here, column.type)
                points = _points(ends) if may_lack(column) else _points(ends)[:-1]
                values: Sequence[Value] = [None if one is None else value_at(one, column.type) for one in points]
                lines[name] = ends
            else:
                name, values = values_of_key(core, column, where, dataset)
            names[form] = name
            places[name] = _blocks(column, values, conditions, expression, () if at is None else domains[at])
    except (Refused, KeyError):
        return None
    for place, (_, key) in enumerate(core.keys):
        column = by_key[place]
        name = key_digest(key, domains[place], dataset) if column is None else names[form_of(column)]
        places.setdefault(name, tuple(range(len(domains[place]))))
        keys.append((name, len(domains[place])))
    grouped = {name for name, _ in keys}
    told_apart = {name: blocks for name, blocks in places.items() if name in grouped or any(blocks)}
    return wide, Box(told_apart, tuple(keys), {name: ends for name, ends in lines.items() if name in told_apart})


_COMPARED = frozenset({"=", "<>", "<", "<=", ">", ">=", "in", "is_distinct_from", "is_not_distinct_from"})
_JOINED = frozenset({"and", "or", "not", "case", "is_null", "is_not_null"})


def _is_open(column: ColumnRef) -> bool:
    return closed_domain(column) is None


def _line_of(expression: Expression) -> ColumnRef | None:
    """The only column of an expression that compares it with constants alone; None where there is none."""
    columns = {form_of(column): column for column in columns_of(expression)}
    if len(columns) != 1:
        return None
    (column,) = columns.values()
    if column.type not in LINES or column.other is not None or isinstance(expression, ColumnRef):
        return None
    few = len(_ends([expression], column.type)) <= _ENDS_MAX
    return column if few and _is_open(column) and _compares(expression, column.type) else None


def _compares(node: Expression, kind: ColumnType) -> bool:
    """Whether a truth value, or one of several constants, follows from comparisons of a column with constants."""
    if isinstance(node, Literal):
        return True
    if not isinstance(node, Call):
        return False
    if node.operator in _COMPARED or node.operator in ("is_null", "is_not_null"):
        sides = node.arguments
        if any(isinstance(one, ColumnRef) for one in sides):
            return all(isinstance(one, ColumnRef) or _place_of(one, kind) is not None for one in sides)
    return node.operator in _JOINED and all(_compares(one, kind) for one in node.arguments)


def _place_of(node: Expression, kind: ColumnType) -> int | None:
    """The place of a constant on the line of its type; None for what is none, or leaves no room beside it."""
    return place_of(node.value, kind) if isinstance(node, Literal) else None


def _ends(expressions: Sequence[Expression], kind: ColumnType) -> tuple[int, ...]:
    """The places of constants in expressions, in order: more than are compared do no harm."""
    found = {_place_of(node, kind) for expression in expressions for node in walk(expression)}
    return tuple(sorted(place for place in found if place is not None))


def _points(ends: Sequence[int]) -> tuple[int | None, ...]:
    """A place of each value of a line: below, each constant and what is above it, NULL.

    Where nothing is between two constants the number is the second one: no row is there, so any block is true of it.
    """
    if not ends:
        return (0, None)
    return (ends[0] - 1, *[number for end in ends for number in (end, end + 1)], None)


def _line(column: ColumnRef, dataset: Dataset) -> str:
    """The digest of a line."""
    return key_digest(column, ("line", may_lack(column)), dataset)


def aligned(boxes: Sequence[Box]) -> list[Box]:
    """The boxes with the same values of each line: those of all their constants, without values that no row has."""
    ends: dict[str, set[int]] = {}
    for box in boxes:
        for name, own in box.lines.items():
            ends.setdefault(name, set()).update(own)
    return [_on(box, {name: tuple(sorted(own)) for name, own in ends.items()}) for box in boxes] if ends else [*boxes]


def _on(box: Box, ends: Mapping[str, tuple[int, ...]]) -> Box:
    """A box with these constants of its lines, which have its own among them."""
    places = dict(box.places)
    for name, own in box.lines.items():
        blocks, found = box.places[name], list[int]()
        numbers = _numbers(ends[name])
        for number in numbers if len(blocks) == 2 * len(own) + 2 else numbers[:-1]:
            if number is None:
                found.append(blocks[-1])
                continue
            at = bisect.bisect_left(own, number)
            found.append(blocks[2 * at + (at < len(own) and own[at] == number)])
        places[name] = tuple(found)
    return Box(places, box.keys, box.lines)


def _numbers(ends: Sequence[int]) -> list[int | None]:
    """A number of each value of a line that a row may have."""
    points = _points(ends)
    return [number for place, number in enumerate(points) if number is None or number not in points[:place]]


def _column_of(expression: Expression) -> ColumnRef | None:
    """The only column of an expression that can be evaluated for all of its values; None where there is none."""
    columns = {form_of(column): column for column in columns_of(expression)}
    if len(columns) != 1:
        return None
    (column,) = columns.values()
    values = closed_domain(column)
    if values is None or len(values) > VALUES_MAX or column.other is not None:
        return None
    return column if is_quick(expression) and is_exact(expression) else None


def _blocks(
    column: ColumnRef,
    values: Sequence[Value],
    conditions: Sequence[Expression],
    key: Expression | None,
    domain: Sequence[KeyValue],
) -> tuple[int, ...]:
    """The block of each value. Errors: KeyError for a key that no cell has."""
    read, order = (column.relation, column.name), {value: place for place, value in enumerate(domain)}
    found = []
    for value in values:
        row = {read: value}
        if not all(evaluate(one, row) is True for one in conditions):
            found.append(_OUT)
        else:
            found.append(0 if key is None else order[as_key(evaluate(key, row))])
    return tuple(found)


def _row(picked: Sequence[int], sizes: Sequence[int]) -> int:
    """The place of a combination among all in order."""
    row = 0
    for one, size in zip(picked, sizes, strict=True):
        row = row * size + one
    return row


def _of(box: Box, name: str, values: int) -> tuple[int, ...]:
    return box.places.get(name, (0,) * values)


def rows_within(asked: Box, held: Box) -> list[list[int]] | None:
    """For each cell of a box the cells of another one that make it, in order; None where they do not, or not as many.

    Requires: both are of the same rows.
    """
    asked, held = aligned([asked, held])
    by_key: list[list[list[int]]] = []  # of each key of the asked one: of each of its values, those of the held key
    free: dict[str, list[int]] = {}
    for name in {*asked.places, *held.places}:
        values = len(asked.places.get(name) or held.places[name])
        ours, theirs = _of(asked, name, values), _of(held, name, values)
        made: dict[int, set[int]] = {}
        for own, other in zip(ours, theirs, strict=True):
            if own != _OUT:
                made.setdefault(own, set()).add(other)
        within = {other for own, other in zip(ours, theirs, strict=True) if own != _OUT}
        beyond = {other for own, other in zip(ours, theirs, strict=True) if own == _OUT}
        # Where no value is wanted nothing is read: the whole of a box without this key is not its part without rows.
        if not within or _OUT in within or within & beyond or sum(map(len, made.values())) != len(within):
            return None
        free[name] = sorted(within)
        if name in asked.grouped and (name not in held.grouped or len(set(map(len, made.values()))) > 1):
            return None
    sizes = [size for _, size in held.keys]
    for name, size in asked.keys:
        values = len(asked.places[name])
        pairs = list(zip(asked.places[name], _of(held, name, values), strict=True))
        by_key.append([sorted({other for own, other in pairs if own == value}) for value in range(size)])
    found = []
    for cell in itertools.product(*by_key):
        of_key = dict(zip([name for name, _ in asked.keys], cell, strict=True))
        picked = [of_key.get(name, free.get(name, list(range(size)))) for name, size in held.keys]
        rows = [_row(one, sizes) for one in itertools.product(*picked)]
        found.append(rows)
    return found if found and found[0] and len(set(map(len, found))) == 1 else None


def equations(asked: Box, held: Sequence[Box]) -> Equations | None:
    """What a box without keys, and the sums of others, are of the atoms that they make; None where these are too many.

    Values are one class where they are in the same blocks, or each in a block of its own. Whoever exchanges two of them
    changes no equation, so the best estimate has the same weight for both: their sums are all that it needs.
    Requires: all are of the same rows, and the first one has no keys.
    """
    assert not asked.keys
    asked, *held = aligned([asked, *held])
    names = sorted({name for box in (asked, *held) for name in box.places})
    classes: list[int] = []
    factors: list[list[list[tuple[frozenset[int], tuple[int, ...]]]]] = [[] for _ in held]
    wanted: list[frozenset[int]] = []
    for name in names:
        values = next(len(box.places[name]) for box in (asked, *held) if name in box.places)
        ours = _of(asked, name, values)
        theirs = [_of(box, name, values) for box in held]
        alone = [_singles(blocks) for blocks in theirs]
        both = list(zip(theirs, alone, strict=True))
        signs = [
            (ours[value], *[_ALONE if blocks[value] in own else blocks[value] for blocks, own in both])
            for value in range(values)
        ]
        order = {sign: place for place, sign in enumerate(dict.fromkeys(signs))}
        of = [order[sign] for sign in signs]
        classes.append(len(order))
        wanted.append(frozenset(one for one, block in zip(of, ours, strict=True) if block != _OUT))
        for place, (box, blocks, own) in enumerate(zip(held, theirs, alone, strict=True)):
            factors[place].append(_entries(of, blocks, own, grouped=name in box.grouped))
    if math.prod(classes) > ATOMS_MAX:
        return None
    sums = []
    for box, entries in zip(held, factors, strict=True):
        if math.prod(map(len, entries)) > _SUMS_MAX:
            return None
        at = [names.index(name) for name, _ in box.keys]
        sums.append(
            tuple(
                [
                    Sum(_atoms([one[0] for one in chosen], classes), tuple([chosen[place][1] for place in at]))
                    for chosen in itertools.product(*entries)
                ]
            )
        )
    return Equations(_atoms(wanted, classes), tuple(sums))


_ALONE = -2
"""In place of a block: it has this value only."""


@lru_cache(maxsize=1024)
def _singles(blocks: tuple[int, ...]) -> frozenset[int]:
    """The blocks of one value."""
    return frozenset(block for block, times in Counter(blocks).items() if times == 1 and block != _OUT)


def _entries(
    of: Sequence[int], blocks: Sequence[int], alone: frozenset[int], *, grouped: bool
) -> list[tuple[frozenset[int], tuple[int, ...]]]:
    """The classes that are added up in one place, and the blocks that hold them."""
    if not grouped:
        return [(frozenset(one for one, block in zip(of, blocks, strict=True) if block != _OUT), ())]
    singles: dict[int, list[int]] = {}
    larger: dict[int, set[int]] = {}
    for one, block in zip(of, blocks, strict=True):
        if block in alone:
            singles.setdefault(one, []).append(block)
        elif block != _OUT:
            larger.setdefault(block, set()).add(one)
    found = [(frozenset([one]), tuple(own)) for one, own in singles.items()]
    return found + [(frozenset(own), (block,)) for block, own in larger.items()]


def _atoms(chosen: Sequence[frozenset[int]], classes: Sequence[int]) -> frozenset[int]:
    """The atoms of a product of classes."""
    return frozenset(_row(one, classes) for one in itertools.product(*chosen))
