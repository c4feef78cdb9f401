"""How long an engine takes, in nanoseconds of a reference machine: the table of a dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sql_rewrite.expressions import Expression

__all__ = ["Copies", "Cost", "EngineCosts"]

Copies = tuple[int, ...] | Callable[[Sequence[Expression]], tuple[int, ...]]
"""How often each argument is written, the last number for all that follow; of some operators it depends on them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Nanoseconds of one operator without its arguments.

    `row` is for one row (`wide` when it computes in 128 bits), `character` for each character of its text arguments,
    `pattern` for each of them and each character of the constant that is searched, `vector` for a vector of the
    engine in which one row at least needs it.
    """

    row: float
    vector: float = 1_200
    wide: float = 0
    character: float = 0
    pattern: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCosts:
    """The costs of an engine, as its dialect makes it compute. Worst cases: sql_rewrite/cost.py says what they prove.

    Expressions: `operators` of the allow-list, each with what its dialect writes for it (a plain call need not be here:
    its description says what it costs where nothing else is known), `unknown` for one that was not measured, `copies`
    where an argument is written more than once, `guard` for turning an infinity into NULL, `piece` for each character
    of a text and of a LIKE pattern without _.
    """

    probe: float
    """Time of the engine's probe on that machine. On another one costs are times the quotient of both probes."""
    operators: Mapping[str, Cost]
    unknown: Cost
    copies: Mapping[str, Copies]
    guard: Cost
    piece: float
    vector_rows: int
    """Rows that the engine works on together."""

    plan: float
    """Planning one operator."""
    plan_core: int
    """Operators that take as long to plan as a core without any."""
    plan_reading: int
    """Operators that take as long to plan as one conversion of text, whose pattern is made anew."""

    statement: float
    """One statement more of the same question: to the worker and back, its plan, its noise, and the norm it chooses."""

    # For each row, beside its expressions.
    scan: float
    join: float
    sum: float
    pair: float
    """One pair of a unit's rows that meet in a join on the unit, grouped by the unit: pairs lie together."""
    sorted: float
    """Sorting a row within its unit for a window, beside what it is sorted by."""
    sorted_key: float
    """One of these columns; a text adds its characters."""
    window: float
    """One window function."""
    place: float
    """Counting a row by its place in a tree, at worst."""
    place_usual: float
    """The same where the time of a whole table is predicted: most of its rows are in places that others are in."""
    unit: float
    """Grouping by unit and key first."""
    key: float
    key_character: float
    choice: float
    """Choosing groups, or adding up a unit's rows over its groups."""
    factor: float
    """A unit's factor by a kept norm, beside each of its rows; or reading whether a row is its unit's first."""
    cell: float
    """One cell of a unit: written to a table, read for the unit's norm, and joined with its factor."""
    cell_sum: float
    """One number of 64 bits in it beside the number of its rows."""
    salt: float
    """One hidden key in the number that decides where its groups lie; a text adds what follows."""
    salt_text: float
    salt_character: float

    # For each core, group, and bounded sum of a group.
    core_vector: float
    group: float
    """One more group that nobody else has: its way to the mechanism, its noise and its selection."""
    scattered: float
    """One bounded sum of one group of a unit beyond its bounds, in a vector where nobody else is."""
    clipped: float
    """The same where a comparison is all that is needed."""

    def copies_of(self, operator: str, arguments: Sequence[Expression], index: int) -> int:
        """How often the dialect writes that argument of an operator."""
        copies = self.copies.get(operator, (1,))
        counts = copies if isinstance(copies, tuple) else copies(arguments)
        return counts[min(index, len(counts) - 1)]

    def cost_of(self, operator: str, plain: Cost | None) -> Cost:
        """What an operator costs here; `plain` is that of a plain call, where its description says it."""
        return self.operators.get(operator) or plain or self.unknown
