"""Histograms of values that a question releases before its sums, for columns without declared bounds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.families import NoiseFamily
from mechanisms.released_table import ReleasedTable
from privacy.bounds import ValueBounds
from privacy.norms import Norm, NormPower
from privacy.policy import ColumnType
from privacy.refusal import Refused
from privacy.release import BoundsSource
from privacy.statement import Statement
from privacy.value_grid import grid_of, values_name
from server.journey.release_key import release_key
from sql_rewrite.automatic_bounds import Place, bound_with, nominal_bounds, unbounded_columns, with_bounds
from sql_rewrite.bound import BoundedCore, bound, bound_core
from sql_rewrite.dialects.dialect import Dialect
from sql_rewrite.plan import Core, Plan
from sql_rewrite.plan_key import core_key
from sql_rewrite.value_histogram import ValueHistogram, lower_histogram, value_histogram

__all__ = ["Told", "ValueStage", "at_nominal_bounds", "bound_or_nominal", "value_stage"]


@dataclass(frozen=True, slots=True)
class Told:
    """A released histogram of values, and whether this question paid for it."""

    table: ReleasedTable
    source: BoundsSource


@dataclass(frozen=True, slots=True)
class ValueStage:
    """What is released before the sums of a question: a histogram of each column whose bounds it chooses.

    `places` are the columns of each core that needs some, by the core's name.
    """

    histograms: tuple[ValueHistogram, ...]
    statements: tuple[Statement, ...]
    keys: tuple[str, ...]
    """What each histogram asks, as the keys of cores."""
    places: Mapping[str, tuple[Place, ...]]
    stepped: frozenset[str]
    """The cores in which a step of a norm follows from the chosen bounds."""

    @property
    def norms_first(self) -> frozenset[str]:
        """The cores whose histograms of norms come before the bounds are chosen: they share no rows with the sums."""
        return frozenset(self.places) - self.stepped

    def norm_key(self, core: str, key: str) -> str:
        """What the histogram of a core's norms asks: `key` is its key at nominal bounds."""
        return self.key(core, key) if core in self.stepped else key

    def release_key(self, place: int, family: NoiseFamily) -> str:
        """The key of the releases of one histogram with this family of noise."""
        return release_key(self.keys[place], family, delta=Fraction(0))

    def key(self, core: str, key: str) -> str:
        """What a core asks whose bounds are chosen: `key` is that of the core at nominal bounds."""
        wanted = self.places.get(core)
        if wanted is None:
            return key
        chosen = [
            own
            for histogram, own in zip(self.histograms, self.keys, strict=True)
            if (histogram.table, histogram.column.name) in wanted
        ]
        body = {"core": key, "bounds": chosen, "version": 1}
        return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def value_stage(plan: Plan, power: NormPower, dialect: Dialect) -> ValueStage | None:
    """The histograms that the plan's sums need; None where they need none, or none would help."""
    found, stepped = {}, set()
    for core in plan.cores:
        try:
            places = unbounded_columns(core, plan.dataset, power=power)
        except Refused:
            continue
        if places:
            found[core.name] = places
            narrow, wide = _steps(core, plan, places, power)
            assert [norm.name for norm in narrow] == [norm.name for norm in wide]
            if any(one.step != other.step for one, other in zip(narrow, wide, strict=True)):
                stepped.add(core.name)
    if not found:
        return None
    wanted = sorted({place for places in found.values() for place in places})
    histograms = tuple(
        value_histogram(values_name(number), table, column, plan.dataset)
        for number, (table, column) in enumerate(wanted)
    )
    return ValueStage(
        histograms=histograms,
        statements=tuple(lower_histogram(histogram, dialect) for histogram in histograms),
        keys=tuple(core_key(histogram.bounded, plan.dataset) for histogram in histograms),
        places=found,
        stepped=frozenset(stepped),
    )


def bound_or_nominal(
    plan: Plan, power: NormPower, dialect: Dialect
) -> tuple[tuple[BoundedCore, ...], ValueStage | None]:
    """The bounded cores; where columns lack bounds, at nominal ones, with what chooses others. Errors: Refused."""
    try:
        return bound(plan, power=power), None
    except Refused:
        stage = value_stage(plan, power, dialect)
        if stage is None:
            raise
    return bound(at_nominal_bounds(plan, stage), power=power), stage


def at_nominal_bounds(plan: Plan, stage: ValueStage | None) -> Plan:
    """The plan with nominal bounds of the columns whose bounds its questions choose."""
    if stage is None:
        return plan
    kinds = {(one.table, one.column.name): one.column.type for one in stage.histograms}
    return replace(
        plan,
        cores=tuple(
            with_bounds(core, {place: nominal_bounds(kinds[place]) for place in stage.places.get(core.name, ())})
            for core in plan.cores
        ),
    )


def _steps(core: Core, plan: Plan, places: tuple[Place, ...], power: NormPower) -> tuple[list[Norm], list[Norm]]:
    """The norms of a core within narrow bounds, and within the widest ones."""
    nominal = {place: nominal_bounds(_type(plan, place)) for place in places}
    widest = {place: _widest(_type(plan, place)) for place in places}
    narrow = bound_core(with_bounds(core, nominal), plan.dataset, power=power)
    wide, _ = bound_with(core, plan.dataset, widest, power=power, narrowed=False)
    return [*narrow.described.norms], [*wide.described.norms]


def _type(plan: Plan, place: Place) -> ColumnType:
    table = plan.dataset.table(place[0])
    assert table is not None
    column = table.column(place[1])
    assert column is not None
    return column.type


def _widest(kind: ColumnType) -> ValueBounds:
    grid = grid_of(kind)
    return ValueBounds(grid.lows[0], grid.highs[-1])
