"""Which cells a stream has, and which of them a query asks for."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from mechanisms.streams.asking import summed_cells
from mechanisms.streams.synopsis import Cells
from privacy.bounds import number_of_date
from privacy.policy import ColumnType, KeyValue, key_as_json
from privacy.refusal import Collector, Finding, Refused
from privacy.release import ColumnKind
from privacy.statistic import Statistic
from privacy.unit import Neighbouring
from server.journey.named_bounds import require_named_bounds
from server.journey.query import Prepared
from server.profile_types import Profile
from server.streams.refusals import (
    BOTH_WAYS,
    LEAVES_OUT,
    NOT_CELLS,
    NUMBER_KEYS,
    OTHER_RELATION,
    WHAT,
    beyond_cells,
    cells_refused,
    cuts_place,
    no_such_values,
    nothing_together,
    type_refused,
    unknown_key,
    upside_down,
)
from server.streams.sealing import Frame, Places
from server.streams.terms import Given, Within
from sql_rewrite.contribution import Contribution
from sql_rewrite.stream_text import StreamText

__all__ = ["CELLS_MAX", "cells_asked", "frame_of", "groups_of", "step_of", "sums_of"]

CELLS_MAX = 4_096
"""Most cells of a stream: every answer is a sum of them, and every one has noise."""


def sums_of(prepared: Prepared, profile: Profile | None = None) -> Statistic:
    """The one sum of each cell that the text asks for. Errors: Refused for a text that asks for anything else."""
    plan = prepared.plan
    require_named_bounds(prepared, profile, what=WHAT, why="a stream is charged for a bound that is known")
    simple = (
        len(prepared.cores) == 1
        and plan.shell.trivial
        and not (plan.stages or plan.public or plan.chosen or prepared.values)
    )
    found = summed_cells(prepared.cores[0].described) if simple else None
    if found is None:
        raise Refused([NOT_CELLS])
    domain = prepared.cores[0].described.keys.domain
    assert domain is not None
    if any(column.type is ColumnType.NUMBER for column in prepared.cores[0].described.keys.columns):
        raise Refused([NUMBER_KEYS])
    if not 2 <= len(domain) <= CELLS_MAX:
        raise Refused([cells_refused(len(domain), CELLS_MAX)])
    if found.sensitivity.relation is not Neighbouring.ADD_REMOVE:
        raise Refused([OTHER_RELATION])
    bound = prepared.cores[0].contribution
    if isinstance(bound, Contribution) and not bound.one_row:
        few = bound.rows < bound.total or (bound.choose_groups and bound.groups < bound.total)
        if few:
            # A range would leave out what a count of the range by itself would not.
            raise Refused([LEAVES_OUT])
    return found


def step_of(statistic: Statistic) -> Fraction:
    """What a unit of a sum is worth; where units are scaled, the part of a row that one is."""
    return Fraction(1) if statistic.encoding is None else statistic.encoding.step


def frame_of(prepared: Prepared, text: StreamText | str, *, salt: str) -> Frame:
    """What a stream of this text is about. Requires: `sums_of` has no objection."""
    keys = prepared.cores[0].described.keys
    assert keys.domain is not None
    named = {output.column: output.name for output in prepared.plan.shell.outputs if output.kind is ColumnKind.KEY}
    names = tuple(named.get(column.name, column.name) for column in keys.columns)
    groups = groups_of(prepared)
    if isinstance(text, str):
        types = tuple(column.type for column in keys.columns)
        return Frame(text, names, types, keys.domain, groups, salt, (None,) * len(names))
    places = tuple(None if one.first is None else Places(one.step, one.last) for one in text.columns)
    domain = tuple(text.keys(names, group) or () for group in keys.domain)
    columns = tuple(one.name for one in text.columns)
    return Frame(text.sql, columns, tuple(one.type for one in text.columns), domain, groups, salt, places)


def groups_of(prepared: Prepared) -> str:
    """A hash of the groups that a text has, in their order."""
    domain = prepared.cores[0].described.keys.domain
    assert domain is not None
    return hashlib.sha256(repr(domain).encode()).hexdigest()


def cells_asked(frame: Frame, query: Sequence[Within]) -> Cells:
    """The cells that satisfy all conditions of a query. Errors: Refused, with everything that is wrong at once."""
    collected = Collector()
    every = np.array([bool(keys) for keys in frame.domain], dtype=np.bool_)
    parts: list[Cells] = []
    seen: set[int] = set()
    for one in query:
        place = next((i for i, name in enumerate(frame.names) if name.lower() == one.key.lower()), None)
        if place is None or place in seen:
            collected.add(unknown_key(one.key, frame.names, repeated=place is not None))
            continue
        seen.add(place)
        try:
            column = [keys[place] if keys else None for keys in frame.domain]
            parts.append(every & _within(one, column, frame.types[place], frame.places[place]))
        except Refused as refused:
            for finding in refused.findings:
                collected.add(finding)
    collected.refuse()
    cells: Cells = np.logical_and.reduce([every, *parts])
    if not cells.any():
        raise Refused([_nothing_asked(frame, query, parts)])
    return cells


def _nothing_asked(frame: Frame, query: Sequence[Within], parts: Sequence[Cells]) -> Finding:
    """Of a query that no cell satisfies: what the values of a key are, or which conditions can be satisfied."""
    for one, cells in zip(query, parts, strict=True):
        if not cells.any():
            place = next(i for i, name in enumerate(frame.names) if name.lower() == one.key.lower())
            known = dict.fromkeys(keys[place] for keys in frame.domain if keys)
            return no_such_values(frame.names[place], [key_as_json(value) for value in known])
    # Each condition has cells: those up to the first that leaves none have some together.
    kept = next(n for n in range(len(parts)) if not np.logical_and.reduce(parts[: n + 1]).any())
    return nothing_together([_as_json(one) for one in query[:kept]])


def _as_json(one: Within) -> dict[str, Given | list[Given]]:
    """A condition as a request has it."""
    if one.values is not None:
        return {"key": one.key, "values": list(one.values)}
    ends = {"low": one.low, "high": one.high}
    return {"key": one.key, **{name: value for name, value in ends.items() if value is not None}}


def _within(one: Within, column: Sequence[KeyValue], kind: ColumnType, places: Places | None) -> Cells:
    """The cells whose key satisfies one condition. NULL is between no two values."""
    if one.values is not None:
        if one.low is not None or one.high is not None:
            raise Refused([BOTH_WAYS])
        wanted = {None if value is None else _value(one.key, value, kind) for value in one.values}
        return np.array([value in wanted for value in column], dtype=np.bool_)
    low = None if one.low is None else _order(_value(one.key, one.low, kind))
    high = None if one.high is None else _order(_value(one.key, one.high, kind))
    if low is None and high is None:
        raise Refused([BOTH_WAYS])
    if low is not None and high is not None and high < low:
        raise Refused([upside_down(one.key)])
    known = [None if value is None else _order(value) for value in column]
    if kind in _NUMBERED:
        _require_edges(one.key, low, high, [value for value in known if value is not None], places)
    return np.array(
        [value is not None and (low is None or low <= value) and (high is None or value <= high) for value in known],
        dtype=np.bool_,
    )


_NUMBERED = (ColumnType.INTEGER, ColumnType.DATE)


def _require_edges(key: str, low: Order | None, high: Order | None, known: list[Order], places: Places | None) -> None:
    """Refuses a range that the cells do not have: beyond their ends, or that cuts a place. Errors: Refused."""
    if not known:  # its only value is NULL
        raise Refused([beyond_cells(key)])
    first, last = min(known)[0], max(known)[0] if places is None else places.last
    if (low is not None and low[0] < first) or (high is not None and high[0] > last):
        raise Refused([beyond_cells(key)])
    if places is None:
        return
    begins = {value[0] for value in known}
    cut = low is not None and low[0] not in begins
    if cut or (high is not None and high[0] != last and high[0] + 1 not in begins):
        raise Refused([cuts_place(key, places.step)])


Order = tuple[int, str]
"""What values of one type are compared by: numbers and days as whole numbers, others as texts."""


def _order(value: KeyValue) -> Order:
    """The order of a value among those of its type: texts by their code points, as the engine does."""
    if isinstance(value, datetime.datetime):
        return 0, value.isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return int(number_of_date(value)), ""
    return (0, value) if isinstance(value, str) else (int(value or 0), "")


def _value(key: str, given: Given, kind: ColumnType) -> KeyValue:
    """A value of the key's type. Errors: Refused."""
    try:
        match kind:
            case ColumnType.INTEGER if type(given) is int and abs(given) < 2**53:
                return given
            case ColumnType.BOOLEAN if isinstance(given, bool):
                return given
            case ColumnType.TEXT if isinstance(given, str):
                return given
            case ColumnType.DATE if isinstance(given, str):
                return datetime.date.fromisoformat(given)
            case ColumnType.TIMESTAMP if isinstance(given, str):
                return datetime.datetime.fromisoformat(given).replace(tzinfo=None)
            case _:
                raise Refused([type_refused(key, kind.value)])
    except ValueError:
        raise Refused([type_refused(key, kind.value)]) from None
